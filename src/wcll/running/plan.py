"""Which runs train together: a function of the suite alone, never of what is left to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wcll.models import MODELS, Family
from wcll.suites.settings import Role
from wcll.suites.trial import Trial

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
