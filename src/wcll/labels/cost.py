"""What it costs if the Q that is assumed is wrong: the model that forward correction tends to, worked out exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from wcll._memory import check_memory
from wcll._validation import FloatArray, class_weights_array, transition_matrix
from wcll.exceptions import InputError
from wcll.labels.mixtures import CLOSE, nearest_mixtures
from wcll.labels.transition import normalised

LABELS = 1e8  #: "very many": Newton steps go on until the fit of so many labels could not be better
FEWER = 1e6  #: or of so many, if that cannot be had
INVISIBLE = 1e-9  #: nats a label below which a billion labels show nothing
EQUAL = 1e-4  #: chances that differ by less are a tie: no model learns them so exactly
WORST = 1e12  #: condition beyond which a Q counts as having no inverse
MOST_NEWTON = 100  #: classes of which every row is solved by Newton steps; of more, by matrix products alone
COST_STEPS = (300, 20_000)  #: of these, and of those for a Q without an inverse: least and most
WORK = 10**9  #: in between, as many as take so many multiplications
LEFT = 1e-11  #: nats, at most, that the latter leave, unless steps run out


@dataclass(frozen=True, eq=False)
class CostIfWrong:
    """What a perfect model learns from labels of one Q if it is told another; means are over class shares."""

    learned: FloatArray  #: (K, K): the chances of every class that it learns for samples of each class
    per_class: FloatArray  #: (K,): the share of the samples of each class that is predicted right; a tie is a part
    accuracy: float  #: the mean of that
    confidence: float  #: the mean chance of the right class
    likelihood: float  #: nats a label by which even the best model misses the labels; 0: nothing ever shows it
    identified: bool  #: whether the assumed Q has rank K; if not, other models fit as well, and predict otherwise
    gap: float  #: by how much, at most, the likelihood may be less

    @property
    def invisible(self) -> bool:
        """Whether no number of labels, one a sample, can show that the assumed Q is wrong."""
        return self.likelihood < INVISIBLE

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON, without the chances."""
        names = ("accuracy", "confidence", "likelihood", "invisible", "identified")
        return {**{name: getattr(self, name) for name in names}, "per_class": self.per_class.tolist()}


def cost_if_wrong(assumed: ArrayLike, truth: ArrayLike, prior: ArrayLike | None = None) -> CostIfWrong:
    r"""What it costs to assume a Q' where labels really follow Q.

    A model that is trained with forward correction under Q' gives samples that are surely of class y the chances

    .. math:: p' = \arg\min_p \mathrm{KL}(Q_y \,\|\, p^\top Q')

    if there are so many labels that nothing but Q' is wrong, and predicts the greatest of them. That is a limit, not a
    forecast for a data set: where classes overlap, or labels are few, it may cost more, also where nothing is lost
    here. Where Q' has no inverse, many p' are as good (``identified`` is False); the one that is taken is what
    multiplicative steps of EM from equal chances lead to. Of more than ``MOST_NEWTON`` classes p' is always found by
    such steps, as near as ``gap`` says; a thousand take a minute or so.

    Parameters
    ----------
    assumed, truth : array of shape (K, K), or an estimated Q
        Q' and Q, rows by true class.
    prior : array of shape (K,), optional
        Class shares, for the means; equal ones if None.

    Examples
    --------
    >>> uniform = (1 - np.eye(4)) / 3
    >>> habits = np.array([np.roll([0.0, 0.8, 0.1, 0.1], y) for y in range(4)])
    >>> cost = cost_if_wrong(habits, uniform)
    >>> cost.accuracy, round(cost.confidence, 2), cost.invisible
    (1.0, 0.39, False)
    """
    wrong = transition_matrix(assumed, argument="assumed")
    right = transition_matrix(truth, len(wrong), argument="truth")
    k = len(wrong)
    check_memory("assumed", f"matrices of {k} classes", 12 * 8 * k**2)
    shares = normalised(np.ones(k) if prior is None else class_weights_array("prior", prior, k))
    never = np.flatnonzero((wrong.max(axis=0) == 0) & (right.max(axis=0) > 0))
    if never.size:
        raise InputError("assumed", f"some chance of the label {never[0]}, which truth has", "0 for every class")
    identified = bool(np.linalg.cond(wrong, 1) < WORST)
    learned = _learned(right, wrong, identified)
    mixture = learned @ wrong
    missed = rel_entr(right, mixture).sum(axis=1)
    gap = np.log(np.maximum(_slopes(right, mixture, wrong).max(axis=1), 1.0))
    per_class = _predicted_right(learned)
    return CostIfWrong(
        learned=learned,
        per_class=per_class,
        accuracy=min(float(shares @ per_class), 1.0),
        confidence=min(float(shares @ np.diag(learned)), 1.0),
        likelihood=float(max(shares @ missed, 0.0)),
        identified=identified,
        gap=float(shares @ gap),
    )


def _predicted_right(learned: FloatArray) -> FloatArray:
    tied = learned > learned.max(axis=1, keepdims=True) - EQUAL
    right: FloatArray = np.diag(tied) / tied.sum(axis=1)
    return right


def _learned(right: FloatArray, wrong: FloatArray, identified: bool) -> FloatArray:
    """The nearest mixtures of wrong rows: those that are right rows by linear algebra, the others by steps."""
    if not identified:
        return _by_products(right, wrong)
    solved = np.linalg.solve(wrong.T, right.T).T
    learned = normalised(solved.clip(0.0))
    far = np.flatnonzero(np.abs(learned @ wrong - right).max(axis=1) > 1e-12)
    if far.size:
        nearest = _by_newton if len(wrong) <= MOST_NEWTON else _by_products
        learned[far] = nearest(right[far], wrong)
    return learned


def _by_newton(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """The finer the aim, the more often rounding ends the steps too early: such rows are tried with a coarser one."""
    fine = nearest_mixtures(LABELS * right, wrong)
    learned = fine.shares
    for row in np.flatnonzero(fine.gap > CLOSE):
        coarse = nearest_mixtures(FEWER * right[row : row + 1], wrong)
        if coarse.gap[0] / FEWER < fine.gap[row] / LABELS:
            learned[row] = coarse.shares[0]
    return learned


def _by_products(right: FloatArray, wrong: FloatArray) -> FloatArray:
    r"""By steps :math:`p_k \leftarrow p_k (\sum_j Q_{yj} Q'_{kj} / (p Q')_j)^s`, of all rows at once.

    With s = 1 it is EM, which never gets worse but takes very many steps as rows of Q' are alike; s grows as long as a
    row does not get worse. No array is larger than Q.
    """
    learned = np.full((len(right), len(wrong)), 1 / len(wrong))
    mixture = learned @ wrong
    missed = rel_entr(right, mixture).sum(axis=1, keepdims=True)
    power = np.ones_like(missed)
    for _ in range(int(np.clip(WORK / (len(right) * wrong.size), *COST_STEPS))):
        slopes = _slopes(right, mixture, wrong)
        if slopes.max() < 1 + LEFT:
            break
        logs = np.log(np.maximum(learned, 1e-300)) + power * np.log(np.maximum(slopes, 1e-300))
        tried = normalised(np.exp(logs - logs.max(axis=1, keepdims=True)))
        found = tried @ wrong
        misses = rel_entr(right, found).sum(axis=1, keepdims=True)
        kept = (misses <= missed) | (power == 1)
        learned, mixture, missed = (
            np.where(kept, to, at) for at, to in ((learned, tried), (mixture, found), (missed, misses))
        )
        power = np.where(kept, 1.3 * power, power / 2).clip(1.0, 1e6)
    return learned


def _slopes(right: FloatArray, mixture: FloatArray, wrong: FloatArray) -> FloatArray:
    """How much likelier labels get by more of each class: 1 at the best where a class has a chance, else at most 1."""
    ratio = np.divide(right, mixture, out=np.zeros_like(right), where=right > 0)
    slopes: FloatArray = ratio @ wrong.T
    return slopes
