"""The confusion table, recall and F1 of a model, from complementary labels alone, with intervals and verdicts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from wcll._memory import check_memory
from wcll._validation import (
    FloatArray,
    IntArray,
    check_sum,
    class_indices,
    inverse_transition,
    numeric,
    same_length,
    whole,
)
from wcll.evaluation.intervals import figures_of
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.encoding import Classes, class_count, indexed
from wcll.labels.goodness_of_fit import Check, Names, asked_by_predictions, check_table, remedy_of
from wcll.labels.label_model import Belief

Verdict = Literal["ok", "too few labels", "can't be checked", "the assumed Q does not fit"]

WIDEST = 0.3  #: an interval that is wider tells too little
LEAST_DRAWS = 100  #: of which intervals may be made


@dataclass(frozen=True)
class Figure:
    """An estimate with its 95 % interval, both cut to [0, 1], unless the interval is far outside."""

    value: float
    low: float
    high: float
    uncut: float = 0.0  #: how wide the interval was before it was cut
    contradicted: bool = False  #: whether the labels contradict the Q that it rests on
    known: bool = True  #: whether that Q is known or measured, rather than taken for granted

    @property
    def verdict(self) -> Verdict:
        """Whether the figure can be used: an interval far outside [0, 1] accuses Q, a wide one the number of labels.

        It is the width before the cut that counts, so that nothing seems sure because it was cut. Where the labels
        contradict Q, no figure can be used. "Ok" stands on a Q that is known or measured. Labels that do not contradict
        a Q fit others as well, under which the figure is another (see :mod:`wcll.labels.goodness_of_fit`): a figure
        whose Q was taken for granted "can't be checked", and is true if that is.
        """
        if self.contradicted or self.low > 1 or self.high < 0:
            return "the assumed Q does not fit"
        narrow = self.high - self.low <= WIDEST and self.uncut <= WIDEST  # NaN is not
        if not narrow:
            return "too few labels"
        return "ok" if self.known else "can't be checked"

    @property
    def rejected(self) -> bool:
        """Whether the figure cannot be used, as the Q that it rests on does not fit the labels."""
        return self.verdict == "the assumed Q does not fit"

    @property
    def shown(self) -> tuple[float, float, float] | tuple[None, None, None]:
        """Value, low and high, as they may be printed: nothing of a figure that is rejected."""
        return (None, None, None) if self.rejected else (self.value, self.low, self.high)

    def __str__(self) -> str:
        numbers = "-" if self.rejected else f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return f"{numbers}  {self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Numbers and the verdict, for JSON; None instead of the numbers of a figure that is rejected."""
        numbers = dict(zip(("value", "low", "high"), self.shown, strict=True))
        return {**asdict(self), **numbers, "verdict": self.verdict}


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
    check: Check  #: whether the labels contradict the belief's Q, and why
    classes: Names = None  #: their names
    warning: str | None = None  #: why no figure can be used, and what to do

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by its name; recalls by that of their class."""
        names = range(len(self.recall)) if self.classes is None else self.classes
        recalls = {f"recall of {name}": figure for name, figure in zip(names, self.recall, strict=True)}
        means = {"accuracy": self.accuracy, "balanced accuracy": self.balanced_accuracy, "macro F1": self.macro_f1}
        return {**means, **recalls}

    def withdrawn(self, warning: str) -> LabelFreeConfusion:
        """Return the same without a figure that can be used, and why."""
        accuracy, balanced, f1, *recall = (replace(figure, contradicted=True) for figure in self.figures.values())
        return replace(
            self, accuracy=accuracy, balanced_accuracy=balanced, macro_f1=f1, recall=tuple(recall), warning=warning
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: figures with intervals and verdicts, what they rest on, and whether labels contradict it."""
        figures = {name: figure.to_dict() for name, figure in self.figures.items()}
        rests = {"belief": str(self.belief), "check": str(self.check), "warning": self.warning}
        return {"labels": self.n, **rests, "figures": figures}

    def __str__(self) -> str:
        width = max(map(len, self.figures))
        lines = [f"{name:<{width}}  {one}" for name, one in self.figures.items()]
        about = f"From {self.n} complementary labels, no true one; 95 % intervals. {self.belief}."
        if self.warning is not None:
            return "\n".join([f"Warning: {self.warning}.", about, *lines])
        checked = f"Q is {self.check}" if self.belief.known or self.check.contradicted else f"Q {self.check}"
        remedy = "" if self.belief.known or self.check.contradicted else f"; {self.check.remedy}"
        return "\n".join([about, f"{checked}{remedy}.", *lines])


def complementary_table(
    ybar: Any, predicted: Any, n_classes: int | None = None, *, classes: Classes = None
) -> IntArray:
    """How often label j meets prediction k: ``N[ybar, prediction]``, of class indices, or of names among ``classes``.

    >>> complementary_table(["cat", "dog", "dog"], ["dog", "cat", "cat"], classes=["cat", "dog"])
    array([[0, 1],
           [2, 0]])
    """
    k = whole("n_classes", class_count(n_classes, classes))
    labels = class_indices("ybar", indexed("ybar", ybar, classes), k)
    guesses = class_indices("predicted", indexed("predicted", predicted, classes), k)
    same_length("ybar", len(labels), "predicted", len(guesses))
    return np.bincount(labels * k + guesses, minlength=k**2).reshape(k, k)


def tables_of(labels: Tensor, predicted: Tensor, n_classes: int) -> Tensor:
    """The table label against prediction of every run, (runs, k, k), for labels (n,) and predictions (runs, n)."""
    cells = n_classes**2
    runs = torch.arange(len(predicted), device=predicted.device).unsqueeze(-1)
    pairs = runs * cells + labels * n_classes + predicted
    return torch.bincount(pairs.flatten(), minlength=len(predicted) * cells).view(-1, n_classes, n_classes)


def label_free_confusion(
    table: ArrayLike, belief: Belief, *, draws: int = 1000, seed: int = 0, classes: Names = None
) -> LabelFreeConfusion:
    r"""Estimate the ordinary confusion table from ``table[ybar, prediction]`` counts.

    As :math:`N = Q^\top J` in expectation, the plain inverse :math:`J = (Q^\top)^{-1} N` is unbiased. With class shares
    :math:`\alpha` and prediction shares :math:`q`,

    .. math:: \text{recall}_k = J_{kk} / \alpha_k,\quad F_k = 2 J_{kk} / (\alpha_k + q_k) .

    Intervals are meant to hold for few labels, too: see :func:`wcll.evaluation.intervals.figures_of`. Each is for one
    figure, not for all at once.

    Before anything is believed, ``check`` says whether the labels of the table, or the label counts that the belief was
    formed from, contradict its Q (:func:`wcll.labels.check_table`), with the names of ``classes``: then the verdict on
    every figure is that Q does not fit. Where they do not, a figure is "ok" if its interval is narrow and Q is known or
    measured; if Q is assumed, given or fitted to label counts, it "can't be checked": it is true if Q is.

    >>> table = np.array([[0, 50, 50], [50, 0, 50], [50, 50, 0]])  # nobody predicts what a label rules out
    >>> found = label_free_confusion(table, Belief.of("uniform", [100, 100, 100]))
    >>> found.accuracy.value, round(found.accuracy.low, 3), found.accuracy.verdict
    (1.0, 0.976, "can't be checked")
    >>> label_free_confusion(table, Belief.true(found.belief.transition, [1 / 3] * 3)).accuracy.verdict
    'ok'
    >>> label_free_confusion(table // 50, Belief.of("uniform", [100, 100, 100])).accuracy.verdict
    'too few labels'
    """
    if whole("draws", draws) < LEAST_DRAWS:
        raise InputError("draws", f"at least {LEAST_DRAWS}, as intervals are made of them", draws)
    if not isinstance(belief, Belief):
        raise InputTypeError("belief", "a Belief", type(belief).__name__, "Belief.of or Belief.true make one")
    counts = numeric("table", table)
    k = len(belief.transition)
    if counts.shape != (k, k) or not counts.any():
        raise InputError("table", f"counts of shape ({k}, {k}), not all 0", f"shape {counts.shape}")
    if (wrong := ~np.isfinite(counts) | (counts < 0) | (counts != np.rint(counts))).any():
        raise InputError("table", f"counts of shape ({k}, {k}), not all 0", f"{counts[wrong][0]:g}")
    check_sum("table", counts)
    check_memory("draws", f"{draws} draws", 8 * draws * (2 * int(np.count_nonzero(counts)) + 10 * (k + 3)))
    rng = _generator(seed)
    check = check_table(counts, belief, classes, counts=belief.totals)
    rests = {"contradicted": check.contradicted, "known": belief.known}
    figures = [_cut(*figure, **rests) for figure in figures_of(counts, belief, draws, rng)]
    joint = inverse_transition(belief.transition).T @ counts / counts.sum()
    accuracy, balanced, f1, *recall = figures
    found = LabelFreeConfusion(joint, accuracy, balanced, f1, tuple(recall), belief, int(counts.sum()), check, classes)
    return _withdrawn(found, counts)


def _withdrawn(found: LabelFreeConfusion, counts: FloatArray) -> LabelFreeConfusion:
    """Reject all figures if the labels contradict Q, if any figure is impossible, or if labels may be true ones."""
    impossible = [name for name, figure in found.figures.items() if figure.rejected]
    warning = asked_by_predictions(counts)
    if warning is None and impossible:
        reason, by = found.check.line, found.check.by
        if not found.check.contradicted:
            reason, by = f"under it {', '.join(impossible)} would be outside 0 to 100 %", "predictions"
        remedy = remedy_of(found.belief, by)
        warning = f"labels contradict the assumed Q: {reason}. No estimate that rests on it can be used; {remedy}"
    return found if warning is None else found.withdrawn(warning)


def _generator(seed: int) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError("seed", "a whole number from 0", repr(seed)) from None


def _cut(value: float, low: float, high: float, *, contradicted: bool = False, known: bool = True) -> Figure:
    """The figure in [0, 1], unless even an interval twice as wide is outside: just outside may be chance."""
    width = high - low
    if low - width / 2 <= 1 and high + width / 2 >= 0:
        moved = min(max(value, 0.0), 1.0) - value if low > 1 or high < 0 else 0.0
        value, low, high = np.clip([value + moved, low + moved, high + moved], 0, 1).tolist()
    return Figure(value, low, high, width, contradicted, known)
