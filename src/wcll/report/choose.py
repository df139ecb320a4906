"""Which run and epoch of a cell is shown: the last, the one that held-out labels choose, or an oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wcll._validation import FloatArray
from wcll.evaluation.selection import select

#: How tables say what their figures are.
SELECTED_BY = {
    "last": "the last epoch of each run",
    "label-free": (
        "rate and epoch chosen without true labels: the lowest held-out -log (pQ)_ybar, averaged over three checkpoints"
    ),
    "oracle": "ORACLE: rate and epoch chosen with the TEST labels, an upper limit that no user can reach",
}


class Run(Protocol):
    """A run as tables see it: a whole row, or the little that a result file keeps of one."""

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""

    @property
    def diverged(self) -> bool:
        """Whether outputs ceased to be numbers."""

    @property
    def checkpoints(self) -> Sequence[int]:
        """The epochs that held-out labels can choose."""

    def held_out_scores(self) -> FloatArray:
        """What selection minimises, one score a checkpoint."""

    def best_epoch(self, metric: str) -> int:
        """The epoch of the highest TEST figure."""

    def value(self, metric: str, epoch: int) -> float:
        """A figure of the test set after an epoch, counted from 1."""


R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Picked(Generic[R]):
    """A run, and the epoch at which it is looked at (counted from 1)."""

    run: R
    epoch: int

    def value(self, metric: str) -> float:
        """A figure of the run at that epoch."""
        return self.run.value(metric, self.epoch)


def choose(candidates: Sequence[R], how: str, metric: str) -> Picked[R]:
    """Pick among the runs of one cell and seed, which differ in their rate or other values of the grid.

    Only here, over finished runs, may test results choose (``how="oracle"``); tables say so wherever they do.
    """
    if how == "last":
        (run,) = candidates
        return Picked(run, run.epochs)
    if how == "label-free":
        found = [lowest_score(run) for run in candidates]
        best = found.index(min(found))  # of equal scores the earlier checkpoint, then the earlier candidate
        return Picked(candidates[best], found[best][1])
    picked = [Picked(run, run.best_epoch(metric)) for run in candidates]
    return max(picked, key=lambda one: one.value(metric))


def lowest_score(run: Run) -> tuple[float, int]:
    """The lowest held-out score of a run, averaged over three checkpoints, and the epoch that has it."""
    found = select([run.held_out_scores()])
    return found.score, run.checkpoints[found.checkpoint]
