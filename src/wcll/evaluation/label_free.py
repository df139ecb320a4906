"""Evaluation by complementary labels alone: accuracy, likelihood, confusion, recall, and their intervals."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import betaincinv, logsumexp
from torch import Tensor

from wcll._memory import check_memory
from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    check_sum,
    class_indices,
    finite_array,
    inverse_transition,
    numeric,
    same_length,
    sample_weights,
    transition_matrix,
    unmasked,
    whole,
)
from wcll.exceptions import InputError, InputTypeError, LabelWarning
from wcll.labels.encoding import Classes, class_count, indexed, to_mask
from wcll.labels.goodness_of_fit import Check, Names, asked_by_predictions, check_samples, check_table, remedy_of
from wcll.labels.label_model import Belief

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
BELIEFS = 200  #: how many other beliefs are tried where label counts made it
FACTOR = 2.0  #: a class whose share may be wrong by this factor is one of unknown recall


def figures_of(counts: FloatArray, belief: Belief, draws: int, rng: np.random.Generator) -> list[list[float]]:
    r"""Value, low and high of accuracy, balanced accuracy, macro-F1 and all recalls, not yet cut to [0, 1].

    With known Q and shares, accuracy, recall and balanced accuracy are means over labels of terms
    :math:`v(\bar y, \hat y)` between known ends a and b: of :math:`Q^{-1}_{\bar y \hat y}` times 1,
    :math:`[\hat y = k] / \alpha_k` or :math:`1 / (K \alpha_{\hat y})`. Gaffke's bounds (2005) of such a mean are the
    2.5 % quantile of the first and the 97.5 % quantile of the second of

    .. math:: \sum_i D_i v_i + D_{n+1} a ,\quad \sum_i D_i v_i + D_{n+1} b ,
              \qquad D \sim \text{Dirichlet}(1, \dots, 1) ,

    as if one more label had told the worst, or the best. For two values, as of accuracy under uniform Q, they are
    exact, those of Clopper and Pearson, and computed so; for more they are conjectured to hold, and take ``draws``
    draws. Macro-F1, no mean, takes the one more label that moves it most.

    What label counts told (class shares, Q) has errors. Counts are redrawn: recalls are those under the redrawn
    belief; what it adds to means is added and subtracted, and the wider interval taken: one fits an error that is
    mostly one rare class's, the other errors of many that leave a bias. A class whose share may be wrong by ``FACTOR``
    has an unknown recall, from 0 to 1, also within means; if its denominator of F1 may be, its F1 is unknown.
    """
    n = counts.sum()
    inverse = inverse_transition(belief.transition)
    prior, inverses, priors = belief.redrawn(counts.sum(axis=1), BELIEFS, rng)
    predicted = counts.sum(axis=0) / n
    classes = _Classes.of(prior, priors, predicted, n)
    diagonal = (inverse * counts).sum(axis=0) / n
    value = classes.figures(diagonal, predicted, prior)
    low, high = _one_more_label(counts, inverse, classes, draws, rng)
    if len(priors) > 1:
        diagonals = np.einsum("djk,jk->dk", inverses, counts) / n
        low, high = (classes.with_errors(end, value, diagonals, predicted, priors) for end in (low[0], high[0]))
    low, high = np.quantile(low, TAIL, axis=-2).min(axis=0), np.quantile(high, 1 - TAIL, axis=-2).max(axis=0)
    top = np.isclose(inverse, inverse.max())
    if len(inverses) == 1 and (top | np.isclose(inverse, inverse.min())).all():
        low[0], high[0] = inverse.min() + np.ptp(inverse) * np.array(clopper_pearson(counts[top].sum(), n))
    rest, most = classes.unknown(diagonal, predicted)
    value, high = value + rest, high + most
    low = np.minimum(np.where(np.isnan(low), -np.inf, low), value)
    high = np.maximum(np.where(np.isnan(high), np.inf, high), value)
    value[3:][~classes.there], high[3:][~classes.there] = np.nan, 1.0
    figures: list[list[float]] = np.stack([value, low, high], axis=1).tolist()
    return figures


def clopper_pearson(successes: ArrayLike, n: float) -> tuple[FloatArray, FloatArray]:
    """The exact 95 % interval of a probability, or of each of several.

    >>> [round(float(end), 3) for end in clopper_pearson(0, 10)]
    [0.0, 0.308]
    """
    hits = np.asarray(successes, dtype=np.float64)
    low = betaincinv(np.maximum(hits, 1), n - hits + 1, TAIL)
    high = betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - TAIL)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)


@dataclass(frozen=True)
class _Classes:
    """Class shares, which classes there are, and of which recall and F1 have denominators that are well known."""

    prior: FloatArray
    there: BoolArray
    recalled: BoolArray
    weighed: BoolArray

    @staticmethod
    def of(prior: FloatArray, priors: FloatArray, predicted: FloatArray, n: float) -> _Classes:
        there = prior > 0 if len(priors) == 1 else np.ones(len(prior), dtype=bool)
        recalled = there & _well_known(prior, *np.quantile(priors, [TAIL, 1 - TAIL], axis=0))
        both = [prior + share for share in (predicted, *clopper_pearson(predicted * n, n))]
        return _Classes(prior, there, recalled, recalled & _well_known(*both))

    def figures(self, diagonal: FloatArray, predicted: FloatArray, prior: FloatArray) -> FloatArray:
        """Accuracy, balanced accuracy, macro-F1 and recalls, in a row; what is not well known counts as 0."""
        size = max(self.there.sum(), 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            recall = np.where(self.recalled, diagonal / prior, 0.0)
            f1 = np.where(self.weighed, 2 * diagonal / (prior + predicted), 0.0)
        means = [diagonal.sum(axis=-1), recall.sum(axis=-1) / size, f1.sum(axis=-1) / size]
        return np.concatenate([np.stack(means, axis=-1), recall], axis=-1)

    def with_errors(
        self, draws: FloatArray, value: FloatArray, diagonals: FloatArray, predicted: FloatArray, priors: FloatArray
    ) -> FloatArray:
        """Draws of figures with errors of the belief: recalls with other shares, means more and less what these add."""
        which = np.arange(len(draws)) % len(priors)
        priors = np.where(self.recalled, np.maximum(priors, self.prior / FACTOR**2), 1.0)[which]
        diagonals = np.broadcast_to(diagonals, (len(diagonals), len(self.prior)))[which % len(diagonals)]
        error = self.figures(diagonals, predicted, priors) - value
        found = np.stack([draws + error, draws - error])
        moved = draws[:, 3:] * self.prior + np.where(self.recalled, diagonals - value[3:] * self.prior, 0)
        found[..., 3:] = moved / priors
        return found

    def unknown(self, diagonal: FloatArray, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is missing in these figures: the most plausible value, and the most."""
        prior = np.maximum(self.prior, 1e-12)
        rest = replace(self, recalled=self.there & ~self.recalled, weighed=self.there & ~self.weighed)
        value = rest.figures(np.clip(diagonal, 0, prior), predicted, prior)
        most = rest.figures(prior, prior, prior)
        value[0] = most[0] = 0
        return value, most


def _well_known(value: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    known: BoolArray = (value > 0) & (low >= value / FACTOR) & (high <= value * FACTOR)  # NaN is not
    return known


def _one_more_label(
    counts: FloatArray, inverse: FloatArray, classes: _Classes, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of all figures with one more label of the worst, and of the best kind."""
    guesses, labels = np.nonzero(counts.T)
    weight = rng.standard_gamma(counts[labels, guesses], (draws, len(labels)))  # of Dirichlet, up to its sum
    one = rng.standard_exponential((draws, 1))
    total = weight.sum(axis=1, keepdims=True) + one
    starts = np.flatnonzero(np.diff(guesses, prepend=-1))  # of each prediction's cells
    diagonal, predicted = np.zeros((2, draws, len(counts)))
    diagonal[:, guesses[starts]] = np.add.reduceat(weight * inverse[labels, guesses], starts, axis=1) / total
    predicted[:, guesses[starts]] = np.add.reduceat(weight, starts, axis=1) / total
    one /= total
    plain = classes.figures(diagonal, predicted, classes.prior)
    by_class = np.where(classes.recalled, 1 / np.where(classes.recalled, classes.prior, 1.0), 0.0)
    size = max(classes.there.sum(), 1)
    low, high = plain.copy(), plain.copy()
    for moved, end, where in ((low, np.min, np.argmin), (high, np.max, np.argmax)):
        column = end(inverse, axis=0, initial=0.0)  # labels that meet another prediction count as 0
        moved += one * np.array([end(inverse), end(inverse * by_class) / size, 0.0, *(column * by_class)])
        j, k = np.unravel_index(where(_slope_of_f1(counts, inverse, classes)), counts.shape)
        there = np.eye(len(counts))[k] * one
        moved[:, 2] = classes.figures(diagonal + there * inverse[j, k], predicted + there, classes.prior)[:, 2]
    return low[None], high[None]


def _slope_of_f1(counts: FloatArray, inverse: FloatArray, classes: _Classes) -> FloatArray:
    """By how much, up to a factor, one more label in each cell moves macro-F1."""
    shares = counts / counts.sum()
    both = np.where(classes.weighed, classes.prior + shares.sum(axis=0), np.inf)
    slope: FloatArray = inverse / both - (inverse * shares).sum(axis=0) / both**2
    return slope


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

    Intervals are meant to hold for few labels, too: see ``wcll.evaluation.label_free.figures_of``. Each is for one
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


LEAST = float(np.log(np.finfo(np.float64).tiny))  #: the log-likelihood of what is impossible


def label_free_accuracy(
    ybar: Any,
    predicted: ArrayLike,
    transition: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> tuple[float, float]:
    r"""An estimate of accuracy from complementary labels, and its standard error.

    .. math:: \frac1n \sum_i Q^{-1}_{\bar y_i \hat y_i}
              \quad\bigl(\text{uniform } Q:\ 1 - (K-1) \cdot \text{share of } \hat y = \bar y\bigr)

    Unbiased if Q is right; it may leave [0, 1] by its error. Of several labels a sample the mean is taken, which is
    unbiased for uniform Q. The standard error is that with one more label, the one farthest from the mean: labels
    that are too few to disagree do not make it 0. An interval is in :func:`wcll.evaluation.label_free_confusion`.
    Labels and predictions are class indices, or names among ``classes``, which are those of the rows of Q.

    >>> label_free_accuracy(np.array([0, 1, 2, 0]), np.array([1, 2, 0, 0]), (1 - np.eye(3)) / 2)[0]
    0.5
    >>> label_free_accuracy(["cat", "dog"], ["dog", "dog"], (1 - np.eye(3)) / 2, classes=["bird", "cat", "dog"])[0]
    0.0
    """
    inverse = inverse_transition(transition)
    k = len(inverse)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, k), k)
    guesses = class_indices("predicted", indexed("predicted", predicted, classes, k), k)
    same_length("ybar", len(mask), "predicted", len(guesses))
    credit = ((mask / mask.sum(axis=1, keepdims=True)) @ inverse)[np.arange(len(mask)), guesses]
    mean, error = _weighted_mean(credit, sample_weight)
    weight = sample_weights(sample_weight, len(credit))
    one_more = np.abs(inverse - mean).max() * np.square(weight / weight.sum()).sum()
    return mean, float(np.hypot(error, one_more))


def complementary_log_likelihood(
    ybar: Any,
    probabilities: ArrayLike,
    transition: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> tuple[float, float]:
    r"""The mean of :math:`\log (p Q)_{\bar y}` over the samples, and its standard error.

    Several labels of a sample are one observation: :math:`\log \sum_y p_y \prod_{j \in S} Q_{yj}`. A proper score of
    the posterior: among models it prefers the one whose probabilities are right under the TRAINING class shares.
    Labels are class indices, or names among ``classes``, which are those of the rows of Q.
    """
    matrix = transition_matrix(transition)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, len(matrix)), len(matrix))
    chances = probability_rows(probabilities, mask.shape)
    impossible = mask.astype(float) @ (matrix == 0).T > 0  # some label of the sample, given y
    of_set = mask @ np.log(np.where(matrix == 0, 1.0, matrix)).T
    with np.errstate(divide="ignore"):
        joint = np.where(impossible, -np.inf, np.log(chances) + of_set)
    return _weighted_mean(np.maximum(logsumexp(joint, axis=1), LEAST), sample_weight)


def probability_rows(values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Class probabilities, a row a sample."""
    chances = finite_array("probabilities", values, shape)
    if (chances < 0).any() or not np.allclose(chances.sum(axis=1), 1.0, atol=1e-4):
        worst = chances[np.abs(chances.sum(axis=1) - 1).argmax()]
        expected, remedy = "rows of probabilities that sum to 1", "logits need a softmax"
        raise InputError("probabilities", expected, worst.tolist(), remedy)
    return chances


def _weighted_mean(values: FloatArray, sample_weight: ArrayLike | None) -> tuple[float, float]:
    weight = sample_weights(sample_weight, len(values))
    weight = weight / weight.sum()
    mean = float(weight @ values)
    return mean, float(np.sqrt(np.square(weight * (values - mean)).sum()))


def warn_of_contradiction(
    ybar: IntArray | BoolArray,
    predicted: IntArray,
    belief: Belief,
    names: Any,
    *,
    weight: ArrayLike | None = None,
    stacklevel: int = 2,
) -> None:
    """One line, as a warning, if held-out labels may be true ones, or contradict the Q by which a model is judged."""
    if ybar.ndim == 1 and (question := asked_by_predictions(complementary_table(ybar, predicted, len(names)))):
        warnings.warn(question, LabelWarning, stacklevel=stacklevel + 1)
        return
    found = check_samples(ybar, belief, names, weight=sample_weights(weight, len(ybar)), predicted=predicted)
    if found.contradicted:
        warnings.warn(found.warning, LabelWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class LogLikelihoodScorer:
    """The log-likelihood of held-out labels as a scorer; higher is better; needs class probabilities.

    With ``transition`` every candidate is judged under the same Q, so that candidates may differ in their own; without
    it, under the Q that it assumes. Probabilities for other class shares than those of training (``target_prior``) are
    moved back to these: only so labels like those of training can judge them.
    """

    transition: Any = None

    def __call__(self, estimator: Any, X: Any, ybar: Any) -> float:
        last = _last(estimator)
        belief, labels = _belief(self.transition, last), last.encode(ybar)
        chances = last.as_trained(estimator.predict_proba(X))
        score = complementary_log_likelihood(labels, chances, belief.transition)[0]
        warn_of_contradiction(labels, chances.argmax(axis=1), belief, last.classes_)
        return score


def _belief(transition: Any, last: Any) -> Belief:
    """What a scorer was told, or else what the classifier believes."""
    if transition is None:
        believed: Belief = last.belief_
        return believed
    return Belief(transition_matrix(transition, len(last.classes_)), "given")


def _last(estimator: Any) -> Any:
    """The classifier inside searches and pipelines."""
    if hasattr(estimator, "best_estimator_"):
        return _last(estimator.best_estimator_)
    return _last(estimator[-1]) if hasattr(estimator, "steps") else estimator


@dataclass(frozen=True, eq=False)
class Reliability:
    """Mean confidence and estimated accuracy of samples, in bins of like confidence, the least sure first."""

    samples: IntArray  #: how many are in each bin
    share: FloatArray  #: their part of the summed sample weights
    confidence: FloatArray  #: the mean of the largest probability
    accuracy: FloatArray  #: how often that class is right, estimated; it may leave [0, 1] by its error
    standard_error: FloatArray  #: of the accuracy

    @property
    def gap(self) -> tuple[float, float]:
        """How much surer than right predictions are over all, and its standard error."""
        error = float(np.sqrt(np.square(self.share * self.standard_error).sum()))
        return float(self.share @ (self.confidence - self.accuracy)), error


def label_free_reliability(
    probabilities: ArrayLike,
    ybar: Any,
    transition: ArrayLike,
    *,
    bins: int = 10,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> Reliability:
    r"""Reliability of class probabilities, from complementary labels that were not trained on.

    Samples are put into bins of about as many each by their confidence :math:`\max_y p_{iy}`, so that all have like
    errors. In a bin B the mean confidence is compared with the accuracy that labels tell:

    .. math:: \frac1{|B|} \sum_{i \in B} Q^{-1}_{\bar y_i \hat y_i} , \qquad \hat y_i = \arg\max_y p_{iy} ,

    which is unbiased if Q is right (:func:`label_free_accuracy`). Its error is that of one true label a sample times
    several: for uniform labels about K - 1 times, so few bins tell more than many.

    Probabilities are to be for the class shares of these samples: of a classifier with a ``target_prior``, those of
    ``model.as_trained(model.predict_proba(X))``.

    Parameters
    ----------
    probabilities : array of shape (n, k)
    ybar : complementary labels
        Class indices, lists of them, or a mask; or names among ``classes``.
    transition : array of shape (k, k)
        ``Q[y, ybar]``; it must have an inverse.
    bins : int
        At most so many: samples of the same confidence stay together.
    sample_weight : array of shape (n,), optional
    classes : sequence, optional
        The names of all classes, in the order of columns of ``probabilities`` and of rows of Q.

    Examples
    --------
    >>> p = np.repeat([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], 4, axis=0)
    >>> found = label_free_reliability(p, [1, 2, 1, 0, 0, 2, 0, 2], (1 - np.eye(3)) / 2, bins=2)
    >>> found.confidence.tolist(), found.accuracy.tolist()
    ([0.5, 0.8], [0.5, 1.0])
    """
    matrix = transition_matrix(transition)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, len(matrix)), len(matrix))
    chances = probability_rows(probabilities, mask.shape)
    weight = sample_weights(sample_weight, len(mask))
    confidence, predicted = chances.max(axis=1), chances.argmax(axis=1)
    wanted = min(whole("bins", bins), len(mask))
    edges = np.unique(np.quantile(confidence, np.arange(1, wanted) / wanted, method="inverted_cdf"))
    member = np.searchsorted(edges, confidence)
    found = [rows for k in range(len(edges) + 1) if weight[rows := np.flatnonzero(member == k)].any()]
    accuracy = [label_free_accuracy(mask[rows], predicted[rows], matrix, sample_weight=weight[rows]) for rows in found]
    value, error = np.array(accuracy).T
    return Reliability(
        samples=np.array([len(rows) for rows in found]),
        share=np.array([weight[rows].sum() for rows in found]) / weight.sum(),
        confidence=np.array([np.average(confidence[rows], weights=weight[rows]) for rows in found]),
        accuracy=value,
        standard_error=error,
    )
