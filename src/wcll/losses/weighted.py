"""WCLL: the weighted complementary loss of the paper, in each of its readings."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from torch import Tensor

from wcll.checks import InputError, choice
from wcll.losses.arguments import Array, Labels, checked_per_class, prepare
from wcll.losses.base_losses import Base, base_loss
from wcll.losses.modules import LossModule
from wcll.losses.risks import risk_gradient
from wcll.losses.spec import LOSSES, Table1, autograd
from wcll.losses.targets import Reduction, Targets, apply_reduction

Reading = Literal["eq9", "algorithm1", "eq12", "eq10"]


def _gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, pi: Tensor | None, reading: Reading = "eq9", **keywords: Any
) -> Tensor:
    """Eq. 9 is FREE with weighted samples; the other readings by autograd."""
    if reading == "eq9":
        return risk_gradient(logits, p, targets, **keywords)
    return autograd(partial(wcll, pi=pi, reading=reading, **keywords))(logits, p, targets)


@LOSSES.add(
    "wcll",
    title="WCLL",
    paper="Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023)",
    equation="Eq. 9 (default), Algorithm 1, Eq. 12, Eq. 10",
    several=True,
    table1=Table1(class_imbalance=True),
    gradient=_gradient,
)
def wcll(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array,
    pi: Array | None = None,
    reading: Reading = "eq9",
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The paper's weighted loss, with weights :math:`\omega` of Eq. 13.

    ``"eq9"``: :math:`\frac1n \sum_i \omega_{\bar y_i} \bigl[-(K-1)\,\ell_{\bar y_i} + \sum_k \ell_k\bigr]`, one weight
    a sample (Eq. 9 of [1]_). For labels of the inverse-size selector and the declared :math:`\pi` of Eq. 7 it is an
    unbiased estimator:

    .. math:: E[\omega_{\bar y} \bar\ell \mid y] = \frac{c\,(K-1)}{1 - \pi_y}\, \ell_y,\quad
              c = 1 / \textstyle\sum_i (1/\pi_i) .

    The paper's other statements differ from it and from one another:

    - ``"algorithm1"``: :math:`\sum_k m_k\bigl[-(K-1)\,\omega_k \pi_k \ell_k + \sum_j \omega_j \pi_j \ell_j\bigr]` with
      batch means :math:`m_k` over samples labelled k; equal to ``"eq9"`` on a full batch if pi is its own marginal.
    - ``"eq10"``: :math:`\frac1n \sum_i \bigl[-(K-1)\,\omega_{\bar y_i} \ell_{\bar y_i} + \sum_j \omega_j \ell_j\bigr]`.
    - ``"eq12"``: Eq. 10's bracket times :math:`\pi_{\bar y_i}`.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k); the loss of a set is the mean over its
        labels.
    weight : array of shape (..., k)
        :math:`\omega`, see :func:`wcll.labels.class_weights`.
    pi : array of shape (..., k), optional
        The shares of Eq. 7, required by ``"algorithm1"`` and ``"eq12"``.
    reading : {"eq9", "algorithm1", "eq12", "eq10"}
        Which of the paper's statements.
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean", "sum", "none"}
        Over the samples of each run; only the mean with ``"algorithm1"``.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    The weights take out the bias of the inverse-size selector and of no other; with weights from the observed shares of
    the labels in place of the declared :math:`\pi` the estimate is biased, and the more so the stronger the imbalance.
    Labels of a known Q are served by :func:`forward`, without weights. With cross-entropy the loss has no lower bound,
    as :func:`free`.

    References
    ----------
    .. [1] Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import wcll
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> wcll(logits, torch.tensor([1, 0]), weight=[0.8, 1.1, 1.1])
    tensor(0.3523)
    """
    choice("reading", reading, get_args(Reading))
    batch = prepare(logits, ybar, weight, reduction, means="wcll (algorithm1)" if reading == "algorithm1" else None)
    if batch.weight is None:
        raise InputError("weight", "a value, which loss 'wcll' needs", None)
    others = logits.shape[-1] - 1
    losses = base_loss(base)(logits)
    if reading == "eq9":
        pairs = batch.targets.pairs(logits, batch.weight)
        per_sample = ((pairs.sum(-1, keepdim=True) - others * pairs) * losses).sum(-1)
        return apply_reduction(per_sample, reduction)
    shares = checked_per_class("pi", pi, logits, ybar)
    if reading != "eq10" and shares is None:
        raise InputError("pi", f"the shares of Eq. 7, which reading {reading!r} needs", None)
    scale = batch.weight if reading != "algorithm1" or shares is None else batch.weight * shares
    weighted = scale.unsqueeze(-2) * losses
    bracket = weighted.sum(-1, keepdim=True) - others * weighted  # one value for every possible label
    if reading == "algorithm1":
        ones = batch.weight.new_ones(logits.shape[-1])
        return (batch.targets.class_pairs(logits, None, ones) * bracket).sum((-2, -1))
    pairs = batch.targets.pairs(logits, shares if reading == "eq12" else None)
    return apply_reduction((pairs * bracket).sum(-1), reduction)


class WCLLLoss(LossModule, loss="wcll"): ...
