"""Unbiased risk estimators from complementary labels, and their non-negative corrections."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from wcll.checks import non_negative
from wcll.losses.arguments import Array, Labels, Transition, checked_per_class, prepare
from wcll.losses.base_losses import Base, base_loss
from wcll.losses.modules import LossModule
from wcll.losses.risks import ascend, ascent, coefficients, partial_risks, risk_gradient
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets, apply_reduction

PAPER = "Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019)"
TABLE1 = Table1(complementary_labels=True, any_loss=True, any_model=True, class_imbalance=False)


def _nn_gradient(logits: Tensor, p: Tensor, targets: Targets, *, beta: float = 0.0, **keywords: Any) -> Tensor:
    """Of the partial risks that are not cut off."""
    return risk_gradient(logits, p, targets, correction=lambda risks, _: risks >= -beta, **keywords)


_ga_gradient = partial(risk_gradient, correction=ascent)


@LOSSES.add(
    "free", title="FREE", paper=PAPER, equation="Theorem 1", several=True, table1=TABLE1, gradient=risk_gradient
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
    factors = coefficients(logits, batch, transition, checked_per_class("marginal", marginal, logits, ybar))
    per_sample = (factors * base_loss(base)(logits)).sum(-1)
    return apply_reduction(per_sample * len(batch.targets), reduction)


class FREELoss(LossModule):
    spec = LOSSES["free"]


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


class NNLoss(LossModule):
    spec = LOSSES["nn"]


@LOSSES.add("ga", title="GA", paper=PAPER, equation="Algorithm 1", several=True, table1=TABLE1, gradient=_ga_gradient)
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


class GALoss(LossModule):
    spec = LOSSES["ga"]
