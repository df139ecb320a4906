"""Q from a few samples whose true label is known, smoothed towards a family that all labels tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, chndtr

from wcll._validation import FloatArray, class_indices, matrix_size, non_negative, same_length
from wcll.exceptions import InputError
from wcll.labels.encoding import Classes, class_count, indexed
from wcll.labels.families import FAMILIES, EstimatedTransition, label_totals_of
from wcll.labels.transition import normalised

STRENGTHS = np.geomspace(0.1, 1e4, 51)  #: pairs of every class that the family may count for; tried, if none is told
BEHIND = 0.5  #: standard errors: by as much a larger lean may be less likely than the likeliest
LEAST_PAIRS = 5  #: of every class, without which a row of Q is the family's rather than measured
LEAST = 1e-3  #: of the target that is spread over all labels: nothing that may come has no chance


@dataclass(frozen=True, eq=False)
class PairsTransition(EstimatedTransition):
    """Q from true pairs."""

    strength: float  #: for how many pairs of each class the family counts
    counts: FloatArray  #: the pairs of each class
    target: FloatArray  #: the member of the family that it leans to

    @property
    def measured(self) -> bool:
        r"""Whether the pairs tell it: whether they would show it if the family that it leans to were wrong.

        Rows that are 20 % off (total variation) move a chi-square test of n pairs against the family, with K (K - 1)
        degrees of freedom, by at least :math:`n \, 0.2^2 / (\tfrac12 \tfrac12) = 0.16 n`; at the level 5 % that has to
        be seen with a chance of 90 % (109 pairs of 3 classes, 295 of 10). Of every class there are some pairs.
        """
        k = len(self.transition)
        freedom, moved = k * (k - 1), (0.2**2 / 0.25) * self.counts.sum()
        seen = chndtr(chdtri(freedom, 0.05), freedom, moved) <= 0.1
        return bool(seen and self.counts.min() >= LEAST_PAIRS)


def transition_from_pairs(
    y: Any,
    ybar: Any,
    n_classes: int | None = None,
    *,
    family: str = "popularity-noise",
    totals: ArrayLike | None = None,
    strength: float | None = None,
    classes: Classes = None,
) -> PairsTransition:
    r"""Q counted from samples with a true and a complementary label, as if s more pairs of each class were of a family.

    .. math:: Q_{yj} = \frac{N_{yj} + s T_{yj}}{N_y + s}, \qquad
              \mathrm{se}_{yj} = \sqrt{\frac{Q_{yj} (1 - Q_{yj})}{N_y + s + 1}}

    with N counts of pairs and T the member of ``family`` that all labels tell (a thousandth of it spread evenly). The
    error is that of a row which scatters around T as much as s says; where s was not told it is that of all s, in
    proportion to their likelihood, around the Q of the best. Class shares are not estimated: which samples were
    labelled truly is up to whoever did it.

    Parameters
    ----------
    y, ybar : arrays of shape (n,)
        True and complementary class indices of the same samples, of ``n_classes``; or names among ``classes``.
    n_classes : int, optional
    family : str
        What to lean to, by its name in ``FAMILIES``; ``"free"`` leans to the shares of all labels, for any class.
    totals : array of shape (K,), optional
        Counts of all labels, those without a true label included. None: those of the pairs, and half a label each.
    strength : float, optional
        s. None: the largest under which each pair is as likely to one who saw all others (leave one out) as under the
        best s, up to half a standard error of the difference: few pairs do not lead away from the family by chance.

    Examples
    --------
    >>> found = transition_from_pairs([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1], 3, totals=[400, 300, 300])
    >>> print(found.basis)
    6 true pairs
    """
    k = matrix_size(class_count(n_classes, classes))
    true = class_indices("y", indexed("y", y, classes), k)
    label = class_indices("ybar", indexed("ybar", ybar, classes), k)
    same_length("y", len(true), "ybar", len(label))
    pairs = np.bincount(true * k + label, minlength=k * k).reshape(k, k).astype(np.float64)
    counts = label_totals_of(pairs.sum(axis=0) + 0.5 if totals is None else totals)
    if len(counts) != k:
        raise InputError("totals", f"label counts of {k} classes", len(counts))
    target = (1 - LEAST) * FAMILIES[family].fit(counts, pairs=pairs).transition + LEAST / k
    if strength is None:
        scores = np.array([left_out(pairs, target, one) for one in STRENGTHS])
        likelihood = scores @ pairs[pairs > 0]
        s, tried, weights = _largest(scores, pairs[pairs > 0]), STRENGTHS, np.exp(likelihood - likelihood.max())
    else:
        s = non_negative("strength", strength)
        tried, weights = np.array([s]), np.ones(1)
    transition, _ = _smoothed(pairs, target, s)
    variance = np.zeros_like(pairs)
    for one, weight in zip(tried, weights / weights.sum(), strict=True):
        other, scatter = _smoothed(pairs, target, one)
        variance += weight * (scatter + (other - transition) ** 2)
    return PairsTransition(
        transition=transition,
        standard_error=np.sqrt(variance),
        shares=None,
        basis=f"{len(true)} true pair{'s' if len(true) > 1 else ''}",
        family=family,
        strength=s,
        counts=pairs.sum(axis=1),
        target=target,
    )


def left_out(pairs: FloatArray, target: FloatArray, strength: float) -> FloatArray:
    r"""The log-likelihood of a pair of each kind that there is, for one who saw all others:
    :math:`\log \frac{N_{yj} - 1 + s T_{yj}}{N_y - 1 + s}`.
    """
    some = pairs > 0
    seen = np.broadcast_to(pairs.sum(axis=1, keepdims=True), pairs.shape)
    logs: FloatArray = np.log((pairs[some] - 1 + strength * target[some]) / (seen[some] - 1 + strength))
    return logs


def _largest(scores: FloatArray, times: FloatArray) -> float:
    """The largest strength whose sum of scores is within BEHIND standard errors of the best one's."""
    behind = scores[(scores @ times).argmax()] - scores
    gap = behind @ times
    error = np.sqrt(np.square(behind - gap[:, None] / times.sum()) @ times)
    return float(STRENGTHS[np.flatnonzero(gap <= BEHIND * error)[-1]])


def _smoothed(pairs: FloatArray, target: FloatArray, strength: float) -> tuple[FloatArray, FloatArray]:
    """Q, and the variance of its entries, if the family counts for so many pairs of each class."""
    whole = pairs.sum(axis=1, keepdims=True) + strength
    counted = (pairs + strength * target) / np.maximum(whole, 1e-300)
    transition = normalised(np.where(whole > 0, counted, target))
    return transition, transition * (1 - transition) / (whole + 1)
