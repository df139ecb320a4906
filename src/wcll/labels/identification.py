"""Whether labels that samples share tell Q: equations against unknowns, and how well without anything to lean on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from wcll._validation import FloatArray
from wcll.labels.mixture import Mixture, posterior
from wcll.labels.sets import FLOOR, LabelSets

MOST_CLASSES = 32  #: of more, the information has too many entries
MOST_OFF = 0.1  #: total variation to which every row has to be known
APART = 2.0  #: standard errors by which one reading of the classes has to beat every other
CLEAR = 0.05  #: and by how much: the sum of Q[k, k] over k's share of the labels
DISTINCT = 5.0  #: standard errors by which two rows have to differ; equal ones come out a few apart, split by chance
OPEN = 10.0  #: labels of every class that are taken as seen where the labels tell nothing: what is open has an error
CHUNK = 1 << 22  # numbers of a piece of the scores


@dataclass(frozen=True)
class Identification:
    """Whether the labels tell Q by themselves, why, and how far a row of it may be off (total variation)."""

    identified: bool
    reason: str
    row_error: float  #: the largest standard error of a row, if nothing is leant on; infinite if nobody looked
    standard_error: FloatArray | None  #: of Q's entries, if nothing is leant on; None if nobody looked
    shares_error: FloatArray | None  #: likewise of the class shares; 0 if they are told


def equations_and_unknowns(n_classes: int, labels: int, *, replacement: bool, told: bool) -> tuple[int, int]:
    """How many numbers the law of ``labels`` labels a sample has, and how many Q and untold class shares have.

    >>> equations_and_unknowns(10, 2, replacement=True, told=False)
    (54, 99)
    """
    ways = comb(n_classes + labels - 1, labels) if replacement else comb(n_classes, labels)
    return ways - 1, n_classes * (n_classes - 1) + (0 if told else n_classes - 1)


def identification(sets: LabelSets, at: Mixture, *, told: bool) -> Identification:
    r"""Count equations, then look at the Fisher information of Q (and shares) at the estimate.

    Its inverse says how well the labels tell each row, and by how many standard errors the reading of latent classes as
    classes (which rests on the diagonal, the sum of :math:`Q_{kk} / \bar p_k`) is better than the next.
    """
    k, most = len(at.transition), int(sets.sizes.max())
    have, need = equations_and_unknowns(k, most, replacement=sets.replacement, told=told)
    several = f"{most} label{'s' if most > 1 else ''} a sample"
    if have < need:
        few = f"{several} give {have} equations for the {need} unknowns of {k} classes"
        few = f"{few}: what they leave open follows popularity"
    if k > MOST_CLASSES:
        unseen = f"not checked for more than {MOST_CLASSES} classes"
        return Identification(False, few if have < need else unseen, np.inf, None, None)
    covariance = free_covariance(sets, at, told=told)
    every = np.sqrt(np.maximum(np.diag(covariance), 0))
    errors = every[: k * k].reshape(k, k), np.zeros(k) if told else every[k * k :]
    if have < need:
        return Identification(False, few, np.inf, *errors)
    rows = (
        np.sqrt(2 / np.pi) / 2 * errors[0].sum(axis=1)
    )  # the mean of |error| is sqrt(2 / pi) of its standard deviation
    worst, off = int(rows.argmax()), float(rows.max())
    other = nearest_reading(at.transition, covariance[: k * k, : k * k], sets.totals / sets.totals.sum())
    if other.margin < max(APART * other.error, CLEAR):
        swapped = f"classes {other.first} and {other.second} may be swapped"
        better = f"{max(other.margin, 0):.2g} +- {other.error:.2g}"
        reason = f"{swapped}: on the diagonal, the next reading of the rows is worse by {better} only"
        return Identification(False, reason, off, *errors)
    near = nearest_rows(at.transition, covariance)
    if near.margin < DISTINCT:
        agree = (
            f"the rows of classes {near.first} and {near.second} nearly agree, {near.margin:.1f} standard errors apart"
        )
        return Identification(False, f"{agree}: these classes may be swapped", off, *errors)
    if off > MOST_OFF:
        known = f"of themselves, the labels tell the row of class {worst} to {off:.0%} total variation only"
        return Identification(False, f"{known}: the rest follows popularity", off, *errors)
    reason = f"{several}: the labels tell every row to {off:.1%} total variation or better"
    return Identification(True, reason, off, *errors)


@dataclass(frozen=True)
class Reading:
    """Another reading of which row is which class: two that it confuses, and how much worse it is."""

    first: int
    second: int
    margin: float
    error: float


def free_covariance(sets: LabelSets, at: Mixture, *, told: bool) -> FloatArray:
    """The covariance of Q's entries and, after them, of untold class shares, by the information that samples give.

    Scores are those of log Q and log p with each row's sum free, which adds one direction a row without effect. So that
    what nothing is known of has a large error rather than an infinite one, ``OPEN`` labels of every class are added.
    """
    k = len(at.transition)
    information = np.zeros((k * k + (0 if told else k),) * 2)
    chunk = max(1, CHUNK // (k * k))
    for start in range(0, len(sets.counts), chunk):
        part = LabelSets(sets.counts[start : start + chunk], sets.weight[start : start + chunk], sets.replacement)
        share, _, exposure = posterior(part, at)
        scores = share[:, :, None] * (part.counts[:, None, :] - exposure * at.transition)
        flat = scores.reshape(len(share), -1)
        if not told:
            flat = np.hstack([flat, share - at.prior])
        information += (flat * part.weight[:, None]).T @ flat
    slope, without_effect = np.zeros_like(information), np.zeros_like(information)
    for y, row in enumerate(at.transition if told else [*at.transition, at.prior]):
        block = slice(y * k, (y + 1) * k)
        slope[block, block] = np.diag(row) - np.outer(row, row)
        without_effect[block, block] = 1.0
    scale = information.trace() / len(information)
    inverse = np.linalg.inv(information + OPEN * slope + scale * without_effect + 1e-9 * np.eye(len(information)))
    covariance: FloatArray = slope @ inverse @ slope.T
    return covariance


def nearest_reading(transition: FloatArray, covariance: FloatArray, shares: FloatArray) -> Reading:
    """The next best reading of the rows, by the fewest standard errors."""
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    k = len(transition)
    cost = transition / np.maximum(shares, FLOOR)
    found = []
    for forbidden in range(k):
        other = cost.copy()
        other[forbidden, forbidden] = 1e9
        reading = linear_sum_assignment(other)[1]
        weight = np.zeros((k, k))
        np.add.at(weight, (np.arange(k), reading), 1 / np.maximum(shares[reading], FLOOR))
        weight -= np.diag(1 / np.maximum(shares, FLOOR))
        error = np.sqrt(max(float(weight.ravel() @ covariance @ weight.ravel()), 1e-300))
        found.append(Reading(forbidden, int(reading[forbidden]), float((weight * transition).sum()), float(error)))
    return min(found, key=lambda one: one.margin - APART * one.error)


def nearest_rows(transition: FloatArray, covariance: FloatArray) -> Reading:
    r"""The two rows that differ least, in standard errors: the root of :math:`d^\top C^+ d / (K - 1)` with C of d."""
    k = len(transition)
    found = []
    for a, b in combinations(range(k), 2):
        one, other = slice(a * k, (a + 1) * k), slice(b * k, (b + 1) * k)
        cross = covariance[one, other]
        spread = covariance[one, one] + covariance[other, other] - cross - cross.T
        gap = transition[a] - transition[b]
        apart = float(gap @ np.linalg.pinv(spread, rcond=1e-8, hermitian=True) @ gap)
        found.append(Reading(a, b, float(np.sqrt(max(apart, 0.0) / (k - 1))), 1.0))
    return min(found, key=lambda one: one.margin)
