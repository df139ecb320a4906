"""How fast runs train, and how much of them there is time for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

import torch

from wcll.running.plan import RUNS_IN_STEP, Job

UNWRITTEN = 60.0  #: seconds of a GPU's work that may be lost, about
ALONE = 1.25  #: a network by itself takes a GPU so much longer than one of many (2.12 and 1.70 ms a step, an H200)
RESERVE, WRITTEN = 2.0, 1e8  #: seconds that are kept for the end, and bytes that are saved in a second


def now() -> float:
    """Seconds since the machine was started: all its processes count alike."""
    return time.monotonic()


@dataclass(frozen=True)
class Measured:
    """What training so many runs took, in seconds."""

    runs: int
    first: float  #: until the first epoch was over, all preparation included
    epoch: float  #: of a later one, on average: not all are looked at

    @property
    def each(self) -> float:
        """Seconds of an epoch of one run."""
        return max(self.epoch / self.runs, 1e-9)


class Pace:
    """The times that training has taken so far, by the kind of job, and the moment at which it has to be over."""

    def __init__(self, end: float = inf) -> None:
        self.end = end
        self.over = False  #: whether something was left for lack of time
        self.samples: dict[object, float] = {}  #: seconds that a sample takes a CPU, by network, in forecasts
        self._begun = False
        self._measured: dict[object, dict[object, Measured]] = {}  #: by the kind of job, and by what trained together
        self._planned: Counter[object] = Counter()

    @property
    def left(self) -> float:
        """Seconds of training that there is time for."""
        return self.end - RESERVE - now()

    def expect(self, jobs: Sequence[Job]) -> None:
        """These are to be trained."""
        for job in jobs:
            self._planned[job.network] += job.epochs

    def planned(self, job: Job) -> int:
        """Epochs of all runs with a job's network that were to be trained, of which some may be by now."""
        return self._planned[job.network]

    def note(self, job: Job, measured: Measured) -> None:
        """Remember what jobs such as this one take."""
        self._begun = True
        self._measured.setdefault(job.kind, {})[job.keys] = measured

    def most(self, job: Job) -> int:
        """Return how many such runs a GPU may train in step, so that what they do is written within a minute."""
        if (one := self._latest(job)) is None:
            return RUNS_IN_STEP
        return min(max(int(UNWRITTEN / (one.each * job.first.epochs)), 1), RUNS_IN_STEP)

    def fitting(self, job: Job) -> int:
        """Return how many such runs of networks for images a GPU can finish in time; time is over if it is none.

        The slowest runs of their kind are the measure, or the slowest of all if none of their kind was trained. If
        nothing was trained yet, one run begins, so that no checkpoint of many networks can be left over.
        """
        if self.end == inf:
            return RUNS_IN_STEP
        alike = [self._measured[job.kind]] if job.kind in self._measured else self._measured.values()
        some = [one for kind in alike for one in kind.values()]
        if not some:
            return 1
        first = (self._latest(job) or max(some, key=lambda one: one.first)).first
        each = ALONE * max(one.each for one in some) * job.first.epochs
        fit = max(int((self.left - first) / each), 0)
        self.over = self.over or not fit
        return fit

    def _latest(self, job: Job) -> Measured | None:
        """Return what was measured last of such jobs."""
        return next(reversed(self._measured.get(job.kind, {}).values()), None)

    def time_for(self, job: Job) -> bool:
        """Whether an epoch of a job would end in time; there is always time for the first, so that any call goes on."""
        one = self._latest(job)
        if self._begun and self.left < (0.0 if one is None else one.first):
            self.over = True
        return not self.over

    def watch(self, job: Job, runs: int, device: torch.device) -> Stopwatch | None:
        """A watch for a training that begins, where its time matters: looking at it makes a GPU wait."""
        matters = self.end < inf or (device.type == "cuda" and job.image)
        return Stopwatch(self, job, runs, device) if matters else None

    def ends_before(self, seconds: float) -> bool:
        """Whether so many seconds more would be too long; says that something is left then."""
        self.over = self.over or self.left < seconds
        return self.over


class Stopwatch:
    """The epochs of one training."""

    def __init__(self, pace: Pace, job: Job, runs: int, device: torch.device) -> None:
        self.pace, self.job, self.runs, self.device = pace, job, runs, device
        self.start = self.begun = now()
        self.first, self.epochs = 0.0, list[float]()

    def epoch_begins(self) -> None:
        """From now on."""
        self.begun = now()

    def epoch_ends(self) -> None:
        """Until now."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        moment = now()
        self.epochs.append(moment - self.begun)
        self.first = self.first or moment - self.start
        self.pace.note(self.job, Measured(self.runs, self.first, fmean(self._later)))

    @property
    def _later(self) -> list[float]:
        """The first pays for what is prepared in it."""
        return self.epochs[1:] or self.epochs

    @property
    def expected(self) -> float:
        """Seconds of an epoch, at most."""
        return max(self._later)

    def out_of_time(self, size: int) -> bool:
        """Whether the next epoch, after which ``size`` bytes may have to be saved, would end too late."""
        return self.pace.ends_before(self.expected + size / WRITTEN)
