"""Intervals of label-free figures that hold for few labels, too."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from wcll._validation import BoolArray, FloatArray, inverse_transition
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
