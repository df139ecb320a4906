"""Losses for sets of complementary labels: unbiased estimators with bounded ordinary losses."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from wcll.losses import base_losses
from wcll.losses.arguments import Array, Labels
from wcll.losses.risks import risk_gradient
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction
from wcll.losses.unbiased import free
from wcll.losses.upper_bounds import LABEL_SETS_PAPER

ESTIMATOR = "Eqs. 8-11"

_mae_gradient = partial(risk_gradient, base=base_losses.mae)


@LOSSES.add("mae", title="MAE", paper=LABEL_SETS_PAPER, equation=ESTIMATOR, several=True, gradient=_mae_gradient)
def mae(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Unbiased estimator for label sets with the absolute error.

    The estimator of :func:`free` for uniform labels, with a bounded loss that keeps it from falling without end.

    .. math:: \sum_{j \notin \bar Y} \ell_j - \frac{K-s-1}{s} \sum_{j \in \bar Y} \ell_j,\quad
              \ell_j = 2 (1 - p_j)

    for a set of s uniform labels (Eqs. 8-11 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    For one label it is :math:`2 (K-1)\, p_{\bar y}`: never negative, and robust to wrong labels. Its gradient vanishes
    where the model is sure, right or wrong, so training is slow at first if the initial model is confident.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import mae
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> mae(logits, torch.tensor([1, 0]))
    tensor(0.6369)
    """
    return free(logits, ybar, weight=weight, base=base_losses.mae, reduction=reduction)


@LOSSES.add("mse", title="MSE", paper=LABEL_SETS_PAPER, equation=ESTIMATOR, several=True)
def mse(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Unbiased estimator for label sets with the squared error.

    As :func:`mae`, with a loss that also looks at the other classes' probabilities.

    .. math:: \sum_{j \notin \bar Y} \ell_j - \frac{K-s-1}{s} \sum_{j \in \bar Y} \ell_j,\quad
              \ell_j = 1 - 2 p_j + \textstyle\sum_i p_i^2

    for a set of s uniform labels (Eqs. 8-11 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    For one label it is :math:`2 (K-1)\, p_{\bar y} + \sum_i p_i^2 - 1`: bounded, a little below 0 where the label has
    no probability, and lowest where the other classes share it equally. The gradient vanishes where the model is sure.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import mse
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> mse(logits, torch.tensor([1, 0]))
    tensor(0.1688)
    """
    return free(logits, ybar, weight=weight, base=base_losses.mse, reduction=reduction)


@LOSSES.add("gce", title="GCE", paper=LABEL_SETS_PAPER, equation=ESTIMATOR, several=True)
def gce(
    logits: Tensor, ybar: Labels, *, weight: Array | None = None, q: float = 0.7, reduction: Reduction = "mean"
) -> Tensor:
    r"""Unbiased estimator for label sets with the generalised cross-entropy.

    As :func:`mae`, with a loss between the absolute error and the cross-entropy.

    .. math:: \sum_{j \notin \bar Y} \ell_j - \frac{K-s-1}{s} \sum_{j \in \bar Y} \ell_j,\quad
              \ell_j = (1 - p_j^q) / q

    for a set of s uniform labels (Eqs. 8-11 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    q : float
        Above 0, at most 1: half of :func:`mae` at 1, towards cross-entropy as q goes to 0.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    :math:`\ell_j` is at most 1/q, so the estimate is bounded, but it can be negative. A small q fits harder and brings
    back the overfitting of :func:`free` with cross-entropy.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import gce
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> gce(logits, torch.tensor([1, 0]), q=0.7)
    tensor(0.3390)
    """
    return free(logits, ybar, weight=weight, base=partial(base_losses.gce, q=q), reduction=reduction)


@LOSSES.add("phuber", title="PHuber", paper=LABEL_SETS_PAPER, equation=ESTIMATOR, several=True)
def phuber(
    logits: Tensor, ybar: Labels, *, weight: Array | None = None, tau: float = 10.0, reduction: Reduction = "mean"
) -> Tensor:
    r"""Unbiased estimator for label sets with the partially Huberised cross-entropy.

    As :func:`mae`, with the cross-entropy made linear in :math:`p_j` where it would grow without bound.

    .. math:: \sum_{j \notin \bar Y} \ell_j - \frac{K-s-1}{s} \sum_{j \in \bar Y} \ell_j,\quad
              \ell_j = \begin{cases} -\log p_j & p_j > 1/\tau \\
              1 + \log\tau - \tau p_j & \text{else} \end{cases}

    for a set of s uniform labels (Eqs. 8-11 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    tau : float
        Above 1; the larger, the closer to cross-entropy.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    :math:`\ell_j` is at most :math:`1 + \log\tau`, so the estimate is bounded below, but it can be negative, and more
    so for a large :math:`\tau`.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import phuber
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> phuber(logits, torch.tensor([1, 0]), tau=10)
    tensor(0.3955)
    """
    return free(logits, ybar, weight=weight, base=partial(base_losses.phuber, tau=tau), reduction=reduction)
