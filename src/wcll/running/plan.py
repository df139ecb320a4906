"""Which runs train together: a function of the suite alone, never of what is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wcll.suites.settings import Role
from wcll.suites.trial import Trial

JOBS_IN_STEP = 40  #: jobs that a GPU is given at once: what is lost if the process dies
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
        return self.first.epochs * len(self.trials)

    def without(self, keys: set[str]) -> Job | None:
        """What is left of it, if anything is."""
        left = tuple(trial for trial in self.trials if trial.key not in keys)
        return Job(left) if left else None


def plan(trials: Sequence[Trial], *, together: int) -> list[Job]:
    """Cut trials into jobs of at most ``together`` runs that share data and model; order is kept."""
    groups: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in dict.fromkeys(trials):
        groups.setdefault((trial.ordinary, *trial.of_role(Role.DATA, Role.SHARED)), []).append(trial)
    return [
        Job(tuple(group[start : start + together]))
        for group in groups.values()
        for start in range(0, len(group), together)
    ]


def in_step(jobs: Sequence[Job], device: torch.device) -> list[list[Job]]:
    """Jobs to be handed out at once: one on a CPU; on a GPU, which has room for more, those that may be alike."""
    if device.type != "cuda":
        return [[job] for job in jobs]
    kinds: dict[object, list[Job]] = {}
    for job in jobs:
        kind = (*job.first.of_role(Role.SHARED), job.first.dataset, job.first.classes, job.first.ordinary)
        kinds.setdefault(kind, []).append(job)
    size = JOBS_IN_STEP
    return [same[start : start + size] for same in kinds.values() for start in range(0, len(same), size)]
