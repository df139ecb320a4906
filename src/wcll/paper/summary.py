"""A finished run in a few numbers: what it reached in the end, where held-out labels would stop it, and at best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import inf, isfinite
from typing import Any

from wcll.evaluation import select
from wcll.report.choose import choose
from wcll.results import Row

METRICS = ("accuracy", "balanced_accuracy", "minority_recall")
FIELDS = (
    *("key", "diverged", "score"),
    *(f"{look} {name}" for look in ("last", "chosen", "best") for name in ("epoch", *METRICS)),
    "curve",
)


@dataclass(frozen=True)
class Look:
    """What a run had reached after an epoch (fractions)."""

    epoch: int
    accuracy: float
    balanced_accuracy: float
    minority_recall: float

    @staticmethod
    def at(row: Row, epoch: int) -> Look:
        """A look at a run; five digits are more than 10,000 test images can tell apart."""
        return Look(epoch, *(round(row.value(metric, epoch), 5) for metric in METRICS))


@dataclass(frozen=True)
class Summary:
    """One run."""

    key: str
    diverged: bool
    score: float  #: the lowest held-out score, averaged over three checkpoints; infinite for a run that lost its way
    last: Look
    chosen: Look  #: at the checkpoint of that score: no true label is used
    best: Look  #: at the epoch of the highest TEST accuracy: an oracle, for comparison only
    curve: tuple[float, ...] = ()  #: minority recall after every epoch, where a figure shows it

    def to_list(self) -> list[Any]:
        """Plain values in the order of FIELDS; JSON has no infinity."""
        score = self.score if isfinite(self.score) else None
        looks = [value for look in (self.last, self.chosen, self.best) for value in astuple(look)]
        return [self.key, int(self.diverged), score, *looks, *([list(self.curve)] if self.curve else [])]

    @staticmethod
    def from_list(values: Sequence[Any]) -> Summary:
        """What :meth:`to_list` wrote."""
        key, diverged, score, *rest = values
        last, chosen, best = (Look(*rest[i : i + 4]) for i in (0, 4, 8))
        return Summary(key, bool(diverged), inf if score is None else score, last, chosen, best, tuple(*rest[12:]))


def summarise(row: Row, *, curve: bool = False) -> Summary:
    """The summary of a run."""
    last, chosen, best = (
        Look.at(row, choose([row], how, "accuracy").epoch) for how in ("last", "label-free", "oracle")
    )
    score = round(select([row.held_out_scores()]).score, 9)
    recalls = tuple(round(float(value), 5) for value in row.curve("minority_recall")) if curve else ()
    return Summary(row.key, row.diverged, score, last, chosen, best, recalls)


def chosen(candidates: Sequence[Summary]) -> Summary:
    """The run of the lowest held-out score among the rates of a cell; ties take the earlier checkpoint."""
    return min(candidates, key=lambda run: (run.score, run.chosen.epoch))
