"""Partial risks of the ordinary classes, estimated from complementary labels: what unbiased losses are made of."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from wcll.exceptions import InputError
from wcll.losses.arguments import Array, Batch, Transition, as_transition
from wcll.losses.base_losses import Base, base_gradient, base_loss
from wcll.losses.targets import Targets

Correction = Callable[[Tensor, Targets], Tensor]  #: from partial risks (..., 1, k) to the factors of their gradients


def coefficients(logits: Tensor, batch: Batch, transition: Array | Transition | None) -> Tensor:
    """What multiplies l_k(x_i) in the risk: the pair weights of i times row ybar of the inverse of Q; (..., n, k)."""
    pairs = batch.targets.class_pairs(logits, batch.weight, batch.marginal)
    if transition is None:  # the inverse of the uniform Q is 11' - (K-1) I
        return pairs.sum(-1, keepdim=True) - (logits.shape[-1] - 1) * pairs
    return pairs @ as_transition(transition, logits).inverse


def partial_risks(logits: Tensor, batch: Batch, base: Base, transition: Array | Transition | None) -> Tensor:
    """Estimates of P(y=k) E[l_k | y=k] for the ordinary classes k: (..., k)."""
    return (coefficients(logits, batch, transition) * base_loss(base)(logits)).sum(-2)


def ascend(risks: Tensor, batch: Batch) -> Tensor:
    """The sum of partial risks, or, run by run, the loss that climbs out of the negative ones."""
    if batch.marginal is None:  # a batch's own shares would make risks negative by chance, and ascent would dominate
        expected = "the shares of the labels in the whole training set"
        raise InputError("marginal", expected, None, "wcll.labels.observed_marginal gives them")
    climb = -(batch.targets.counts(risks) * risks).clamp(max=0).sum(-1)
    return risks.sum(-1).where((risks >= 0).all(-1), climb)


def ascent(risks: Tensor, targets: Targets) -> Tensor:
    """The correction of :func:`ascend`: all partial risks, or, run by run, the negative ones upwards."""
    climb = -targets.counts(risks).unsqueeze(-2) * (risks <= 0)
    return torch.where((risks >= 0).all(-1, keepdim=True), 1.0, climb)


def risk_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Transition | None = None,
    marginal: Tensor | None = None,
    base: Base = "ce",
    correction: Correction | None = None,
) -> Tensor:
    """The gradient of the summed, perhaps corrected risks: as they are linear in the base losses, so is it in theirs.

    Its arguments were checked when it was bound.
    """
    factors = coefficients(logits, Batch(targets, weight, marginal), transition)
    if correction is not None:
        risks = (factors * base_loss(base)(logits)).sum(-2, keepdim=True)
        factors = factors * correction(risks, targets)
    return base_gradient(base, logits, p, factors)
