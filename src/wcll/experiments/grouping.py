"""Which runs train together, and how many of them there is time for."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Any

import torch

from wcll.experiments.trial import Role, Trial
from wcll.models import MODELS
from wcll.models.registry import Family

JOBS_IN_STEP = 40  #: jobs that a GPU is given at once: what is lost if the process dies
RUNS_IN_STEP = 16  #: runs of networks for images that it is given: more are not faster
CHOOSING = 1000  #: epochs of single runs that the search of the default counts as, in progress bars
TOGETHER = 64  #: runs that train at once, unless said otherwise


@dataclass(frozen=True)
class Job:
    """Runs that are trained together, on the same data, and written together or not at all."""

    trials: tuple[Trial, ...]

    @property
    def first(self) -> Trial:
        """A trial that has what all share."""
        return self.trials[0]

    @property
    def data(self) -> tuple[Any, ...]:
        """Equal for jobs that share a task."""
        return (self.first.ordinary, *self.first.of_role(Role.DATA))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its runs."""
        return tuple(trial.key for trial in self.trials)

    @property
    def epochs(self) -> int:
        """Epochs of all its runs, which is what progress counts."""
        return (CHOOSING if self.auto else self.first.epochs) * len(self.trials)

    @property
    def auto(self) -> bool:
        """Whether it is a run that chooses its own loss, rate and epochs, and is alone."""
        return self.first.auto

    @property
    def image(self) -> bool:
        """Whether it trains networks for images, which are slow."""
        return MODELS[self.first.model].family is Family.IMAGE

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for jobs that may be alike but for their labels and the number of samples."""
        first = self.first
        return (*first.of_role(Role.SHARED), first.dataset, first.classes, first.ordinary, first.auto)

    @property
    def network(self) -> tuple[Any, ...]:
        """Equal for jobs whose networks are the same, so that what is compiled for one serves the others."""
        one = self.first
        return one.model, one.model_options, one.dtype, one.batch_size, one.dataset, one.pixels, one.classes

    def cut(self, most: int) -> list[Job]:
        """Its runs in jobs of at most so many."""
        return [Job(self.trials[start : start + most]) for start in range(0, len(self.trials), most)]

    def without(self, keys: set[str]) -> Job | None:
        """What is left of it, if anything is."""
        left = tuple(trial for trial in self.trials if trial.key not in keys)
        return Job(left) if left else None


def plan(trials: Sequence[Trial], *, together: int) -> list[Job]:
    """Cut trials into jobs of at most ``together`` runs that share data and model; order is kept."""
    groups: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in dict.fromkeys(trials):
        alike = (trial.ordinary, *trial.of_role(Role.DATA, Role.SHARED))
        groups.setdefault((trial,) if trial.auto else alike, []).append(trial)
    return [
        Job(tuple(group[start : start + together]))
        for group in groups.values()
        for start in range(0, len(group), together)
    ]


def in_step(
    jobs: Sequence[Job],
    device: torch.device,
    most: Callable[[Job], int] = lambda job: RUNS_IN_STEP,
    fitting: Callable[[Job], int] = lambda job: RUNS_IN_STEP,
) -> Iterator[list[Job]]:
    """Yield jobs to be trained at once: one on a CPU; on a GPU, which has room for more, those that may be alike.

    What is yielded together is written together. Networks for images take a GPU long. Before each time ``most`` is
    asked how many such runs are wanted, where one job of at most 16 runs is the least, and ``fitting`` how many there
    is time for, to which a job is cut. If there is time for none, nothing more is yielded.
    """
    if device.type != "cuda":
        yield from ([job] for job in jobs)
        return
    kinds: dict[object, deque[Job]] = {}
    yield from ([job] for job in jobs if job.auto)
    for job in (job for job in jobs if not job.auto):
        kinds.setdefault(job.kind, deque()).extend(job.cut(RUNS_IN_STEP) if job.image else [job])
    for same in kinds.values():
        while same:
            room, first = sum(len(job.trials) for job in same), same.popleft()
            if first.image:
                if not (fit := fitting(first)):
                    return
                room, (first, *rest) = min(most(first), fit), first.cut(fit)
                same.extendleft(reversed(rest))
            together = [first]
            room -= len(first.trials)
            while same and len(together) < JOBS_IN_STEP and len(same[0].trials) <= room:
                room -= len(same[0].trials)
                together.append(same.popleft())
            yield together


def as_begun(jobs: Sequence[Job], begun: Sequence[Sequence[Sequence[str]]]) -> tuple[list[list[Job]], list[Job]]:
    """What was begun together, given by the keys of its groups, if all of it is still a part of jobs; and the rest."""
    where = {trial.key: (i, trial) for i, job in enumerate(jobs) for trial in job.trials}
    bundles = []
    for groups in begun:
        places = [{where[key][0] if key in where else None for key in group} for group in groups]
        if places and all(len(place) == 1 and None not in place for place in places):
            bundles.append([Job(tuple(where[key][1] for key in group)) for group in groups])
            for key in (key for group in groups for key in group):
                where.pop(key, None)
    return bundles, [left for job in jobs if (left := job.without(set(job.keys) - where.keys()))]


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
