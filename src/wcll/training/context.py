"""From label counts to what losses need: the assumed Q, class weights, priors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import FloatArray, InputError, choice, inverse_transition, transition_matrix
from wcll.labels.statistics import solve_pi
from wcll.labels.transition import normalised, transition_from_pi, uniform_transition
from wcll.labels.weights import WEIGHTINGS, ClassWeights, weights_of_marginal
from wcll.losses import Context, LossSpec


@dataclass(frozen=True)
class Assumptions:
    """What training assumes of its labels, derived from their counts and the user's choices."""

    marginal: FloatArray  #: observed shares of the labels
    transition: FloatArray  #: Q
    weights: ClassWeights | None

    def context(self, spec: LossSpec) -> Context:
        """What a loss may take; the ordinary prior is worked out only for a loss that needs it."""
        prior = None
        if "prior" in spec.context:
            shares = self.marginal @ inverse_transition(self.transition)
            prior = normalised(shares.clip(0.0))
        weights = self.weights
        if weights is None and spec.context.get("weight"):
            weights = weights_of_marginal([1.0] * len(self.marginal), self.marginal, 1.0)  # wcll without weights: FREE
        return Context(
            weight=None if weights is None else weights.values,
            transition=self.transition,
            marginal=self.marginal,
            prior=prior,
            pi=self.marginal if weights is None or weights.pi is None else weights.pi,
        )


def assume(
    totals: FloatArray,
    transition: str | ArrayLike | None,
    weights: str | ArrayLike | ClassWeights | None,
    spec: LossSpec,
) -> Assumptions:
    """Derive what training assumes from the label counts ``totals``.

    ``transition``: None or "uniform", "inverse-size" (recovered from the counts), or a matrix. ``weights``: None,
    "auto" (Eq. 13 from the recovered pi for the loss ``wcll``, none for others), a scheme, an array, or weights that
    :func:`wcll.labels.class_weights` made.
    """
    marginal = normalised(totals)
    if marginal.max() > 1 - 1e-12:
        raise InputError(
            "y", "labels of at least two classes", f"one class, {int(marginal.argmax())}, for every sample"
        )
    if isinstance(weights, str):
        weights = choice("weights", weights, ["auto", *WEIGHTINGS])
        if weights == "auto":
            weights = spec.auto_weights
    if weights is None or isinstance(weights, ClassWeights):
        chosen = weights
    else:
        chosen = _weights(weights, marginal, float(totals.sum()))
    matrix = _transition(transition, marginal)
    impossible = np.flatnonzero((marginal > 0) & (matrix.max(axis=0) == 0))
    if impossible.size:
        k = int(impossible[0])
        raise InputError("transition", f"some chance of the label {k}, which occurs", "0 for every class")
    return Assumptions(marginal, matrix, chosen)


def _transition(transition: str | ArrayLike | None, marginal: FloatArray) -> FloatArray:
    if transition is None:
        return uniform_transition(len(marginal))
    if isinstance(transition, str):
        if choice("transition", transition, ("uniform", "inverse-size")) == "inverse-size":
            return transition_from_pi(solve_pi(marginal))
        return uniform_transition(len(marginal))
    return transition_matrix(transition, len(marginal))


def _weights(scheme: str | ArrayLike, marginal: FloatArray, n: float) -> ClassWeights:
    if isinstance(scheme, str) and not marginal.all():
        absent = int(marginal.argmin())
        warnings.warn(
            f"class {absent} never occurs as a complementary label: weights come from the observed shares",
            stacklevel=2,
        )
        return weights_of_marginal(scheme, marginal, n, pi="observed")
    return weights_of_marginal(scheme, marginal, n)
