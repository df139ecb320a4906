"""Classes that nobody told, from the labels that their samples share: EM for Q and the class shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wcll._validation import FloatArray, IntArray
from wcll.labels.sets import FLOOR, LabelSets
from wcll.labels.transition import normalised

TOLERANCE = 1e-8  #: gain in the mean log-likelihood of a sample below which steps end


@dataclass(frozen=True, eq=False)
class Lean:
    """What an estimate leans towards, and how much: as if so many labels and samples had been seen besides."""

    target: FloatArray  #: a Q
    strength: float  #: labels of every class that follow the target
    shares: FloatArray  #: class shares
    samples: float  #: that follow them; infinite if the shares are told

    def value(self, transition: FloatArray, prior: FloatArray) -> float:
        r"""What it adds to the likelihood: :math:`s \sum_{yj} T_{yj} \log (Q_{yj} / T_{yj})`, likewise of shares."""
        value = self.strength * _log_ratio(self.target, transition)
        return value + (self.samples * _log_ratio(self.shares, prior) if np.isfinite(self.samples) else 0.0)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Q, the class shares, and the log-likelihood of samples that they give, with and without what it leans to."""

    transition: FloatArray
    prior: FloatArray
    log_likelihood: float = -np.inf
    value: float = -np.inf


def _log_ratio(target: FloatArray, values: FloatArray) -> float:
    some = target > 0
    return float(target[some] @ (np.log(np.maximum(values[some], FLOOR)) - np.log(target[some])))


def posterior(sets: LabelSets, at: Mixture) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""P(y given the labels) of every group, log P(labels), and the exposures of :meth:`LabelSets.likelihood`.

    .. math:: P(y \mid c) \propto p_y \prod_j Q_{yj}^{c_j}
    """
    joint, exposure = sets.likelihood(at.transition)
    joint = joint + np.log(np.maximum(at.prior, FLOOR))
    top = joint.max(axis=1, keepdims=True)
    np.exp(np.subtract(joint, top, out=joint), out=joint)
    whole = joint.sum(axis=1, keepdims=True)
    joint /= whole
    return joint, (top + np.log(whole))[:, 0], exposure


def em_step(sets: LabelSets, at: Mixture, lean: Lean) -> Mixture:
    r"""One step; the values that come back are those *before* it.

    .. math:: Q_{yj} \propto \frac{\sum_g w_g P(y \mid g)\, c_{gj} + s T_{yj}}{\sum_g w_g P(y \mid g)\, e_{gyj} + s}
              , \qquad p_y \propto \sum_g w_g P(y \mid g) + m t_y

    with exposures e, which are the same for all j if labels are drawn with replacement (then this is Dawid and Skene's
    step with one Q for all annotators), and otherwise Hunter's minorisation for choices of what is left.
    """
    share, log_chance, exposure = posterior(sets, at)
    log_likelihood = float(sets.weight @ log_chance)
    share *= sets.weight[:, None]
    named = share.T @ sets.counts + lean.strength * lean.target
    if not sets.replacement:
        named = named / np.maximum(np.einsum("gy,gyj->yj", share, exposure) + lean.strength, FLOOR)
    sums = named.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, named / np.maximum(sums, 1e-300), at.transition)
    told = np.isinf(lean.samples)
    prior = lean.shares if told else normalised(share.sum(axis=0) + lean.samples * lean.shares)
    value = log_likelihood + lean.value(at.transition, at.prior)
    return Mixture(transition, prior, log_likelihood, value)


def climb(sets: LabelSets, start: FloatArray, lean: Lean, *, steps: int, prior: FloatArray | None = None) -> Mixture:
    """EM from a start until hardly anything is gained, or for so many steps."""
    at = Mixture(start, lean.shares if prior is None else prior)
    last = -np.inf
    for _ in range(steps):
        following = em_step(sets, at, lean)
        if following.value - last < TOLERANCE * sets.n:
            break
        last, at = following.value, following
    log_likelihood = float(sets.weight @ posterior(sets, at)[1])
    value = log_likelihood + lean.value(at.transition, at.prior)
    return Mixture(at.transition, at.prior, log_likelihood, value)


def spectral_start(sets: LabelSets, rng: np.random.Generator) -> FloatArray | None:
    r"""Rows of Q, in any order, from the moments of three labels; None if fewer were drawn, or without replacement.

    For labels a, b, c of a sample, as unit vectors, :math:`M_2 = E[a b^\top] = Q^\top D Q` and
    :math:`M_3(v) = E[a b^\top (c^\top v)] = Q^\top D\, \mathrm{diag}(Qv)\, Q` with class shares D: where the first is
    the identity, the second has the rows of Q as its eigenvectors.
    """
    three = sets.sizes >= 3
    if not (sets.replacement and three.any()):
        return None
    counts, weight, n = sets.counts[three], sets.weight[three], sets.sizes[three].astype(np.float64)
    direction: FloatArray = rng.standard_normal(size=(counts.shape[1],))
    pairs: FloatArray = weight / (n * (n - 1))
    second = (counts * pairs[:, None]).T @ counts - np.diag(pairs @ counts)
    triples: FloatArray = pairs / (n - 2)
    along: FloatArray = counts @ direction
    crossed = (counts * triples[:, None]).T @ counts
    third = (counts * (triples * along)[:, None]).T @ counts - np.diag((triples * along) @ counts)
    third += 2 * np.diag((triples @ counts) * direction) - crossed * direction - crossed * direction[:, None]
    roots, axes = np.linalg.eigh(second / weight.sum())
    scale = np.sqrt(np.maximum(roots, 1e-6))
    white = axes / scale
    vectors = np.linalg.eigh(white.T @ (third / weight.sum()) @ white)[1]
    rows = ((axes * scale) @ vectors).T
    rows = rows * np.where(rows.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    return normalised(np.maximum(rows, 1e-4))


def which_class(transition: FloatArray, shares: FloatArray) -> IntArray:
    r"""Which row is which class: that which its own samples name least, by :math:`\sum_k Q_{r_k k} / \bar p_k`."""
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    order: IntArray = linear_sum_assignment((transition / np.maximum(shares, FLOOR)).T)[1]
    return order
