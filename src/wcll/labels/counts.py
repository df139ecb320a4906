"""Counts of complementary labels: marginals, class priors and class sizes, with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    class_indices,
    inverse_transition,
    matrix_size,
    sample_weights,
)
from wcll.exceptions import InputError
from wcll.labels.encoding import Classes, class_count, indexed, to_mask
from wcll.labels.transition import normalised, transition_from_pi


@dataclass(frozen=True)
class Estimate:
    """An unbiased or consistent estimate of one number a class, and its standard error.

    An estimate of probabilities may leave [0, 1] by its error: ``distribution`` clips and renormalises it.
    """

    value: FloatArray
    standard_error: FloatArray

    @property
    def distribution(self) -> FloatArray:
        """The nearest plausible probabilities: negative entries become 0, the rest sums to 1."""
        return normalised(np.clip(self.value, 0.0, None))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.value, dtype=dtype)

    def to_dict(self) -> dict[str, list[float]]:
        """Plain lists, for JSON."""
        return {"value": self.value.tolist(), "standard_error": self.standard_error.tolist()}


@dataclass(frozen=True)
class InverseSizeRecovery:
    """What the inverse-size assumption makes of the observed counts."""

    pi: Estimate  #: Eq. 7's pi
    prior: Estimate  #: the ordinary class shares, proportional to 1 / pi
    transition: FloatArray  #: Q[y, j] = pi_j / (1 - pi_y)


def label_totals(labels: IntArray | BoolArray, n_classes: int, weight: FloatArray) -> FloatArray:
    """Summed sample weights of each label (indices or mask), a sample's weight shared by its labels."""
    if labels.ndim == 1:
        return np.bincount(labels, weights=weight, minlength=n_classes).astype(np.float64)
    shares = labels / labels.sum(axis=1, keepdims=True)
    totals: FloatArray = weight @ shares
    return totals


def observed_marginal(
    ybar: Any, n_classes: int | None = None, *, sample_weight: ArrayLike | None = None, classes: Classes = None
) -> Estimate:
    """The share of each class among the labels, ``pbar``; of s labels of a sample each counts 1/s.

    Labels are class indices, lists of them, or a mask, of ``n_classes``; or names among ``classes``.

    >>> observed_marginal([0, 0, 1, 2], 3).value
    array([0.5 , 0.25, 0.25])
    """
    value, covariance = _marginal_and_covariance(ybar, n_classes, sample_weight, classes)
    return Estimate(value, _root_diagonal(covariance))


def ordinary_prior(ybar: Any, transition: ArrayLike) -> Estimate:
    r"""The ordinary class shares under a known Q: solve :math:`\alpha^\top Q = \bar p` for :math:`\alpha`.

    Unbiased for one label a sample (for several, if they are uniform: sets drawn without replacement do not follow
    another Q label by label), but noise grows with the inverse: under uniform labels
    :math:`\alpha_k = 1 - (K-1)\bar p_k`, K - 1 times the error of the counts.
    """
    inverse = inverse_transition(transition)
    value, covariance = _marginal_and_covariance(ybar, len(inverse))
    return Estimate(value @ inverse, _root_diagonal(inverse.T @ covariance @ inverse))


def recover_inverse_size(ybar: Any, n_classes: int) -> InverseSizeRecovery:
    r"""Class sizes, pi and Q from the labels alone, if they come from the inverse-size selector.

    The observed marginal of that selector is not Eq. 7's pi but

    .. math:: \bar p_j = \pi_j (S - t_j),\quad t_y = \frac{\alpha_y}{1 - \pi_y},\quad S = \sum_y t_y,\quad
              \alpha_y \propto 1/\pi_y ,

    which is solved by iterating :math:`\pi \leftarrow \bar p / (S - t)`, normalised and damped. It holds for one label
    a sample; sets drawn without replacement spread more evenly. Standard errors by the delta method.
    """
    marginal, covariance = _marginal_and_covariance(ybar, n_classes)
    pi = solve_pi(marginal)
    slope_pi = _jacobian(solve_pi, marginal)
    slope_prior = _jacobian(lambda shares: _prior_of(solve_pi(shares)), marginal)
    return InverseSizeRecovery(
        pi=Estimate(pi, _root_diagonal(slope_pi @ covariance @ slope_pi.T)),
        prior=Estimate(_prior_of(pi), _root_diagonal(slope_prior @ covariance @ slope_prior.T)),
        transition=transition_from_pi(pi),
    )


@dataclass(frozen=True)
class LabelSummary:
    """What labels alone tell; an entry is ``None`` where the labels do not allow it."""

    n: int
    counts: Estimate
    marginal: Estimate
    prior: Estimate | None  #: ordinary class shares under the Q that was given
    inverse_size: InverseSizeRecovery | None  #: pi, class shares and Q under the inverse-size assumption
    inverse_size_problem: str | None  #: why it is missing

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        recovered = self.inverse_size
        return {
            "n": self.n,
            "counts": self.counts.to_dict(),
            "marginal": self.marginal.to_dict(),
            "prior_under_transition": self.prior.to_dict() if self.prior else None,
            "inverse_size": {"pi": recovered.pi.to_dict(), "prior": recovered.prior.to_dict()} if recovered else None,
            "inverse_size_problem": self.inverse_size_problem,
        }


def describe_labels(ybar: Any, n_classes: int, *, transition: ArrayLike | None = None) -> LabelSummary:
    """Counts, marginal, the ordinary prior under ``transition`` (if given), and the inverse-size recovery.

    Labels are class indices, lists of them, or a mask; of s labels of a sample each counts 1/s.

    >>> describe_labels([0, 0, 1, 2], 3).marginal.value
    array([0.5 , 0.25, 0.25])
    """
    marginal, n = observed_marginal(ybar, n_classes), len(ybar)
    recovered, problem = None, None
    try:
        recovered = recover_inverse_size(ybar, n_classes)
    except InputError as error:
        problem = str(error)
    return LabelSummary(
        n=n,
        counts=Estimate(n * marginal.value, n * marginal.standard_error),
        marginal=marginal,
        prior=None if transition is None else ordinary_prior(ybar, transition),
        inverse_size=recovered,
        inverse_size_problem=problem,
    )


def solve_pi(
    marginal: FloatArray, *, prior: FloatArray | None = None, tolerance: float = 1e-14, max_steps: int = 10_000
) -> FloatArray:
    """The fixed point of :func:`recover_inverse_size` for an observed marginal, or a stack of them.

    With ``prior`` the class shares are told, rather than proportional to 1 / pi.
    """
    if not marginal.all():
        absent, remedy = f"none of class {marginal.argmin()}", "declare the class sizes or use the observed shares"
        raise InputError("ybar", "every class to occur as a complementary label", absent, remedy)
    pi = normalised(marginal)
    for _ in range(max_steps):
        ratio = (_prior_of(pi) if prior is None else prior) / (1.0 - pi)
        update = normalised(marginal / (ratio.sum(axis=-1, keepdims=True) - ratio))
        if np.abs(update - pi).max() < tolerance:
            return update
        pi = normalised(np.sqrt(pi * update))  # half-way: full steps swing for ever where a class is very rare
    shares = f"shares from {marginal.min():g} to {marginal.max():g}"
    wanted = "counts that the inverse-size selector could give" if prior is None else "counts that these shares allow"
    raise InputError("ybar", wanted, shares, "declare the class sizes")


def _prior_of(pi: FloatArray) -> FloatArray:
    return normalised(1.0 / pi)


def _marginal_and_covariance(
    ybar: Any, n_classes: int | None, sample_weight: ArrayLike | None = None, classes: Classes = None
) -> tuple[FloatArray, FloatArray]:
    """The weighted mean of the samples' label shares (1/s on each of s labels), and the covariance of that mean."""
    n_classes = matrix_size(class_count(n_classes, classes), least=1)  # of one class, the labels say what is wrong
    ybar = indexed("ybar", ybar, classes)
    labels = class_indices("ybar", ybar, n_classes) if _is_index(ybar) else to_mask(ybar, n_classes)
    n = len(labels)
    weight = sample_weights(sample_weight, n)
    weight = weight * (n / weight.sum())
    if labels.ndim == 1:  # no (n, K) array: ten million labels fit
        marginal = np.bincount(labels, weights=weight, minlength=n_classes) / n
        square = np.bincount(labels, weights=weight**2, minlength=n_classes)
        second = np.diag(square)
        everyone = marginal > 1 - 1e-12
    else:
        shares = labels / labels.sum(axis=1, keepdims=True)
        marginal = weight @ shares / n
        square = weight**2 @ shares
        second = (shares * weight[:, None] ** 2).T @ shares
        everyone = labels[weight > 0].all(axis=0)
    if everyone.any():
        one = f"one class, {everyone.argmax()}, for every sample"
        remedy = "a class that no sample can have teaches nothing; drop it"
        raise InputError("ybar", "labels of at least two classes", one, remedy)
    cross = np.outer(square, marginal)
    covariance = second - cross - cross.T + np.outer(marginal, marginal) * (weight**2).sum()
    return marginal, covariance / n**2


def _is_index(ybar: ArrayLike) -> bool:
    """One label a sample, in an array, a series or a list."""
    if isinstance(ybar, list | tuple):
        return len(ybar) > 0 and np.ndim(ybar[0]) == 0
    array = as_array("ybar", ybar)
    return array.ndim == 1 and array.dtype != object


def _root_diagonal(covariance: FloatArray) -> FloatArray:
    root: FloatArray = np.sqrt(np.diag(covariance).clip(0.0))
    return root


def _jacobian(function: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """Central differences, column by column; steps are relative, as the arguments are positive shares."""
    columns = [(function(at + shift) - function(at - shift)) / (2 * shift.sum()) for shift in np.diag(at * 1e-5)]
    return np.stack(columns, axis=1)
