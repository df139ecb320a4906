"""Unbiased risk estimators from complementary labels, and their non-negative corrections."""

from __future__ import annotations

import torch
from torch import Tensor

from wcll.checks import non_negative
from wcll.losses.base import Base, base_gradient, base_loss
from wcll.losses.inputs import Array, Batch, Labels, Transition, as_transition, checked_per_class, prepare
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets, apply_reduction

__all__ = ["free", "ga", "nn"]

PAPER = "Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019)"
TABLE1 = Table1(complementary_labels=True, any_loss=True, any_model=True, class_imbalance=False)


Prepared = Transition | None  # a gradient's arguments were checked when it was bound


def free_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Prepared = None,
    marginal: Tensor | None = None,
    base: Base = "ce",
) -> Tensor:
    """As the risk is linear in the base losses, so is its gradient in theirs."""
    coefficients = _coefficients(logits, Batch(targets, weight, "mean"), transition, marginal)
    return base_gradient(base, logits, p, coefficients)


def _nn_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Prepared = None,
    marginal: Tensor | None = None,
    base: Base = "ce",
    beta: float = 0.0,
) -> Tensor:
    """Of the partial risks that are not cut off."""
    coefficients = _coefficients(logits, Batch(targets, weight, "mean"), transition, marginal)
    kept = (coefficients * base_loss(base)(logits)).sum(-2, keepdim=True) >= -beta
    return base_gradient(base, logits, p, coefficients * kept)


def ga_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Prepared = None,
    marginal: Tensor | None = None,
    base: Base = "ce",
) -> Tensor:
    """Of all partial risks, or, run by run, of the negative ones, upwards."""
    coefficients = _coefficients(logits, Batch(targets, weight, "mean"), transition, marginal)
    risks = (coefficients * base_loss(base)(logits)).sum(-2, keepdim=True)
    climb = -targets.counts(risks).unsqueeze(-2) * (risks <= 0)
    factor = torch.where((risks >= 0).all(-1, keepdim=True), 1.0, climb)
    return base_gradient(base, logits, p, coefficients * factor)


@LOSSES.add(
    "free", title="FREE", paper=PAPER, equation="Theorem 1", several=True, table1=TABLE1, gradient=free_gradient
)
def free(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Unbiased estimator of the ordinary risk, for any base loss and model.

    .. math:: \bar\ell(x, \bar y) = \sum_k Q^{-1}_{\bar y k}\, \ell_k(x)
              \quad\bigl(\text{uniform } Q:\ -(K-1)\,\ell_{\bar y} + \textstyle\sum_k \ell_k\bigr)

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
    ybar : tensor or Targets
        Class indices of shape (..., n), or a mask of shape (..., n, k); the loss of a set is the mean over its labels,
        unbiased for uniform labels (sets drawn without replacement do not follow another Q label by label).
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    transition : array of shape (k, k), optional
        ``Q[y, ybar]``; uniform if not given.
    marginal : array of shape (k,), optional
        Shares of the labels in the whole training set: the class form, in which the batch enters through its class
        means (classes absent from a batch are skipped, which is slightly biased). Equal to the plain mean on a full
        batch.
    base : str or callable
        ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to losses a class.

    Returns
    -------
    tensor
        One loss per run; (..., n) with ``reduction="none"``.
    """
    batch = prepare(logits, ybar, weight, reduction, name=None if marginal is None else "free")
    coefficients = _coefficients(logits, batch, transition, checked_per_class("marginal", marginal, logits, ybar))
    per_sample = (coefficients * base_loss(base)(logits)).sum(-1)
    return apply_reduction(per_sample * len(batch.targets), reduction)


@LOSSES.add(
    "nn", title="NN", paper=PAPER, equation="the max operator", several=True, table1=TABLE1, gradient=_nn_gradient
)
def nn(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Base = "ce",
    beta: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Non-negative correction: each ordinary class's partial risk is kept above :math:`-\beta`.

    .. math:: \sum_k \max(r_k, -\beta),\quad r_k = \sum_j \bar p_j\, Q^{-1}_{jk}\, m_j[\ell_k]

    with :math:`m_j` the batch mean over samples labelled j; :math:`E[r_k] = P(y{=}k)\, E[\ell_k \mid y{=}k] \ge 0`.
    Parameters as for :func:`free`; without ``marginal`` the batch's own shares are used.
    """
    non_negative("beta", beta)
    batch = prepare(logits, ybar, weight, reduction, name="nn")
    marginal = checked_per_class("marginal", marginal, logits, ybar)
    return partial_risks(logits, batch, base, transition, marginal).clamp(min=-beta).sum(-1)


@LOSSES.add("ga", title="GA", paper=PAPER, equation="Algorithm 1", several=True, table1=TABLE1, gradient=ga_gradient)
def ga(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Gradient ascent: while some partial risk is negative, climb back out of it.

    With the :math:`r_k` of :func:`nn` and batch counts :math:`n_k`: :math:`\sum_k r_k` if no :math:`r_k` is negative,
    else :math:`-\sum_k \min(0, n_k r_k)`; a step down this loss is the paper's step up.
    """
    batch = prepare(logits, ybar, weight, reduction, name="ga")
    marginal = checked_per_class("marginal", marginal, logits, ybar)
    return ascend(partial_risks(logits, batch, base, transition, marginal), batch)


def partial_risks(
    logits: Tensor, batch: Batch, base: Base, transition: Array | Transition | None, marginal: Tensor | None
) -> Tensor:
    """Estimates of P(y=k) E[l_k | y=k] for the ordinary classes k: (..., k)."""
    return (_coefficients(logits, batch, transition, marginal) * base_loss(base)(logits)).sum(-2)


def ascend(risks: Tensor, batch: Batch) -> Tensor:
    """The sum of partial risks, or, run by run, the loss that climbs out of the negative ones."""
    climb = -(batch.targets.counts(risks) * risks).clamp(max=0).sum(-1)
    return risks.sum(-1).where((risks >= 0).all(-1), climb)


def _coefficients(
    logits: Tensor, batch: Batch, transition: Array | Transition | None, marginal: Tensor | None
) -> Tensor:
    """What multiplies l_k(x_i) in the risk: the pair weights of i times row ybar of the inverse of Q; (..., n, k)."""
    pairs = batch.targets.class_pairs(logits, batch.weight, marginal)
    if transition is None:  # the inverse of the uniform Q is 11' - (K-1) I
        return pairs.sum(-1, keepdim=True) - (logits.shape[-1] - 1) * pairs
    return pairs @ as_transition(transition, logits).inverse
