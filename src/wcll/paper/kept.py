"""What a result file keeps of a run: its figures in the end, where held-out labels would stop it, and at best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from wcll._validation import FloatArray, choice, is_number
from wcll.report.result_tables import lowest_score
from wcll.results import Row
from wcll.suites import Suite

METRICS = ("accuracy", "balanced_accuracy", "minority_recall")  #: of most suites
MOST_CURVES = 2  #: of the imbalanced classes' recall, and of accuracy
LOOKS = ("last", "chosen", "best")  #: when a run is looked at


def metrics_of(suite: Suite) -> tuple[str, ...]:
    """What is kept of a suite's runs: all that its tables show."""
    return tuple(dict.fromkeys(metric for spec in suite.tables for metric in spec.metrics))


def fields_of(metrics: Sequence[str], curves: int = 1) -> tuple[str, ...]:
    """The values of a run's line, in order; curves only where a figure shows them."""
    looks = (f"{look} {name}" for look in LOOKS for name in ("epoch", *metrics))
    return ("key", "diverged", "score", *looks, "curve", *(["accuracy curve"] if curves == MOST_CURVES else []))


@dataclass(frozen=True)
class Kept:
    """A run as tables see it (:class:`wcll.report.result_tables.Run`), looked at after three of its epochs."""

    key: str
    diverged: bool
    score: float  #: the lowest held-out score, averaged over three checkpoints; infinite if lost, or nothing held out
    epochs: int
    chosen: int  #: the epoch of that score: no true label is used
    best: int  #: the epoch of the highest TEST accuracy: an oracle, for comparison only
    figures: dict[int, dict[str, float]]  #: by epoch and metric (fractions)
    recalls: tuple[float, ...] = ()  #: minority recall after every epoch (NaN: not looked at), where a figure shows it
    accuracies: tuple[float, ...] = ()  #: likewise

    @property
    def checkpoints(self) -> tuple[int]:
        """The one that held-out labels choose among all."""
        return (self.chosen,)

    def held_out_scores(self) -> FloatArray:
        """The score at that checkpoint."""
        return np.array([self.score])

    def best_epoch(self, metric: str) -> int:
        """The oracle's, which goes by accuracy."""
        choice("metric", metric, ("accuracy",))
        return self.best

    def value(self, metric: str, epoch: int) -> float:
        """A figure after an epoch that is kept."""
        return self.figures[epoch][metric]

    def to_list(self) -> list[Any]:
        """Plain values in the order of :func:`fields_of`; JSON has no infinity."""
        score = self.score if isfinite(self.score) else None
        epochs = (self.epochs, self.chosen, self.best)
        looks = [value for epoch in epochs for value in (epoch, *self.figures[epoch].values())]
        curves = [[value if isfinite(value) else None for value in curve] for curve in (self.recalls, self.accuracies)]
        return [self.key, int(self.diverged), score, *looks, *(curve for curve in curves if curve)]

    @staticmethod
    def from_list(values: Sequence[Any], metrics: Sequence[str] = METRICS) -> Kept:
        """What :meth:`to_list` wrote of these metrics; anything else is a ValueError."""
        key, diverged, score, *rest = values
        size = 1 + len(metrics)
        looks, curves = [rest[i * size : (i + 1) * size] for i in range(len(LOOKS))], rest[len(LOOKS) * size :]
        if len(looks[-1]) < size:
            raise ValueError("a run without all of its figures")
        epochs = (looks[0][0], looks[1][0], looks[2][0])
        shares = [share for _, *some in looks for share in some]
        shares += [value for curve in curves for value in curve if value is not None]
        if not (isinstance(key, str) and diverged in (0, 1) and (score is None or is_number(score))):
            raise ValueError("a run without a key, or whose score is no number")
        if not all(type(epoch) is int and 1 <= epoch <= epochs[0] for epoch in epochs):
            raise ValueError("an epoch that is none of the run's")
        if not all(is_number(value) and 0 <= value <= 1 for value in shares) or len(curves) > MOST_CURVES:
            raise ValueError("a share that is not from 0 to 1")
        if any(len(curve) != epochs[0] or curve[-1] is None for curve in curves):
            raise ValueError("a curve that does not tell its end")
        figures = {epoch: dict(zip(metrics, some, strict=True)) for epoch, *some in looks}
        told = (tuple(nan if value is None else value for value in curve) for curve in curves)
        return Kept(key, bool(diverged), inf if score is None else score, *epochs, figures, *told)


def keep(row: Row, metrics: Sequence[str] = METRICS, *, curves: int = 0) -> Kept:
    """Of a whole run, with none, the first or both of its curves.

    Five digits are more than 10,000 test images can tell apart. Nothing held out chooses the end.
    """
    score, chosen = lowest_score(row) if row.history["held_out"] is not None else (inf, row.epochs)
    best = row.best_epoch("accuracy")
    figures = {
        epoch: {metric: round(row.value(metric, epoch), 5) for metric in metrics}
        for epoch in (row.epochs, chosen, best)
    }
    shown = [tuple(round(float(v), 5) for v in row.curve(name)) for name in ("minority_recall", "accuracy")[:curves]]
    score = round(score, 9) if isfinite(score) else inf
    return Kept(row.key, row.diverged, score, row.epochs, chosen, best, figures, *shown)
