"""The confusion table, recall and F1 of a model, from complementary labels alone, with intervals and verdicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from wcll.checks import FloatArray, InputError, IntArray, class_indices, inverse_transition, numeric, same_length, whole
from wcll.labels.beliefs import Belief

Verdict = Literal["ok", "too few labels", "the assumed Q does not fit"]

WIDEST = 0.3  #: an interval that is wider tells nothing
LEVEL = 0.95


@dataclass(frozen=True)
class Figure:
    """An estimate with its 95 % interval; it may leave [0, 1] by its error."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Whether the figure can be used: an interval outside [0, 1] accuses Q, a wide one the number of labels."""
        if self.low > 1 or self.high < 0:
            return "the assumed Q does not fit"
        return "ok" if self.high - self.low <= WIDEST else "too few labels"  # NaN, too, is too few

    def to_dict(self) -> dict[str, Any]:
        """Numbers and the verdict, for JSON."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True)
class LabelFreeConfusion:
    """What a table of held-out labels against predictions tells."""

    joint: FloatArray  #: the estimate of P(y, prediction)
    accuracy: Figure
    balanced_accuracy: Figure
    macro_f1: Figure
    recall: tuple[Figure, ...]
    belief: Belief  #: that all of it rests on
    n: int


def complementary_table(ybar: ArrayLike, predicted: ArrayLike, n_classes: int) -> IntArray:
    """How often label j meets prediction k: ``N[ybar, prediction]``."""
    labels, guesses = class_indices("ybar", ybar, n_classes), class_indices("predicted", predicted, n_classes)
    same_length("ybar", len(labels), "predicted", len(guesses))
    return np.bincount(labels * n_classes + guesses, minlength=n_classes**2).reshape(n_classes, n_classes)


def tables_of(labels: Tensor, predicted: Tensor, n_classes: int) -> Tensor:
    """The table label against prediction of every run, (runs, k, k), for labels (n,) and predictions (runs, n)."""
    cells = n_classes**2
    runs = torch.arange(len(predicted), device=predicted.device).unsqueeze(-1)
    pairs = runs * cells + labels * n_classes + predicted
    return torch.bincount(pairs.flatten(), minlength=len(predicted) * cells).view(-1, n_classes, n_classes)


def label_free_confusion(table: ArrayLike, belief: Belief, *, draws: int = 1000, seed: int = 0) -> LabelFreeConfusion:
    r"""Estimate the ordinary confusion table from ``table[ybar, prediction]`` counts.

    As :math:`N = Q^\top J` in expectation, the plain inverse :math:`J = (Q^\top)^{-1} N` is unbiased. With class shares
    :math:`\alpha` and prediction shares :math:`q`,

    .. math:: \text{recall}_k = J_{kk} / \alpha_k,\quad F_k = 2 J_{kk} / (\alpha_k + q_k) .

    Intervals are percentiles of a multinomial bootstrap of the table, and of the class shares where they were solved
    from counts.

    >>> table = np.array([[0, 50, 50], [50, 0, 50], [50, 50, 0]])  # nobody predicts what a label rules out
    >>> found = label_free_confusion(table, Belief.of("uniform", [100, 100, 100]))
    >>> found.accuracy.value, found.accuracy.verdict
    (1.0, 'ok')
    """
    whole("draws", draws)
    counts = numeric("table", table)
    k = len(belief.transition)
    if counts.shape != (k, k) or (counts < 0).any() or (counts != np.rint(counts)).any() or not counts.any():
        raise InputError("table", f"counts of shape ({k}, {k}), not all 0", f"shape {counts.shape}")
    n = int(counts.sum())
    rng = np.random.default_rng(seed)
    shares = counts / n
    sampled = rng.multinomial(n, shares.ravel(), size=draws).reshape(draws, k, k) / n
    inverse = inverse_transition(belief.transition)
    prior, priors = belief.priors(shares.sum(axis=1), sampled.sum(axis=2), rng)
    value = _figures(shares[None], inverse, prior[None])
    spread = _figures(sampled, inverse, priors)
    figures = {name: _intervals(value[name][0], spread[name]) for name in value}
    (accuracy,), (balanced,), (f1,) = figures["accuracy"], figures["balanced_accuracy"], figures["macro_f1"]
    return LabelFreeConfusion(inverse.T @ shares, accuracy, balanced, f1, tuple(figures["recall"]), belief, n)


def _figures(shares: FloatArray, inverse: FloatArray, prior: FloatArray) -> dict[str, FloatArray]:
    """Figures of tables (draws, k, k); only the diagonal of J is needed: sum over j of (Q^-1)[j, k] N[j, k]."""
    diagonal = (inverse * shares).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = diagonal / prior
        f1 = 2 * diagonal / (prior + shares.sum(axis=1))
    return {
        "accuracy": diagonal.sum(axis=1, keepdims=True),
        "balanced_accuracy": recall.mean(axis=1, keepdims=True),
        "macro_f1": f1.mean(axis=1, keepdims=True),
        "recall": recall,
    }


def _intervals(values: FloatArray, draws: FloatArray) -> list[Figure]:
    tail = (1 - LEVEL) / 2
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return [Figure(*map(float, figure)) for figure in zip(values, low, high, strict=True)]
