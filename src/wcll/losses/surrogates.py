"""Bounded losses, upper bounds and surrogate losses, for sets of complementary labels."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from wcll.losses import registry
from wcll.losses.registry import LOSSES, risk_gradient, softmax
from wcll.losses.targets import Array, Labels, Reduction, Targets, prepare, reduce_pairs, reduce_samples, sample_factor
from wcll.losses.unbiased import free

LABEL_SETS_PAPER = "Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020)"
FAR = 1e30  # no logit comes near


def _scale(logits: Tensor, targets: Targets) -> Tensor | float:
    """(K - 1) / s, (..., n); one number where all samples have one label."""
    others = logits.shape[-1] - 1
    return others if targets.index is not None else others / targets.size.to(logits.dtype)


def _factor(logits: Tensor, targets: Targets, weight: Tensor | None) -> Tensor | float:
    """What multiplies the gradient of each sample, (..., n, 1) or one number."""
    scale = _scale(logits, targets)
    return (scale.unsqueeze(-1) if isinstance(scale, Tensor) else scale) * sample_factor(logits, targets, weight)


def _remaining(logits: Tensor, targets: Targets) -> Tensor:
    """log of the probability that the labels leave: log sum_{j not named} p_j, (..., n)."""
    return logits.masked_fill(targets.mask, -torch.inf).logsumexp(-1) - logits.logsumexp(-1)


def _log_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """The softmax over all classes less the one over those that are left."""
    left = softmax(logits - FAR * targets.share(logits))  # as good as minus infinity, and faster to fill in
    return _factor(logits, targets, weight) * (p - left)


def _exp_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """With P the probability that is left: e^-P p_j (P - [j is left])."""
    left = p.masked_fill(targets.mask, 0.0)
    total = left.sum(-1, keepdim=True)
    return _factor(logits, targets, weight) * torch.exp(-total) * (p * total - left)


@LOSSES.add("log", title="LOG", paper=LABEL_SETS_PAPER, equation="Section 4.3", several=True, gradient=_log_gradient)
def log(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Logarithmic upper bound of the absolute error: the classes that are left should have all probability.

    .. math:: -\frac{K-1}{s} \log \sum_{j \notin \bar Y} p_j

    for a set of s labels (Section 4.3 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label; a set takes the mean of its labels' weights.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    In log-sum-exp form, so that value and gradient stay finite where the model is most wrong. There the loss grows
    without bound: wrong labels pull hard, and :func:`exp` or :func:`mae` are more robust to them.

    For one label it is K - 1 times :func:`scl_nl`. It knows of no Q: for labels chosen with a bias use :func:`forward`,
    or class weights.

    The factor :math:`(K-1)/s` is half of that in Eq. 12 of [1]_.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import log
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> log(logits, torch.tensor([1, 0]))
    tensor(0.3508)
    >>> log(logits, torch.tensor([[False, True, True], [True, False, False]]))
    tensor(0.3580)
    """
    batch = prepare(logits, ybar, weight, reduction)
    per_sample = -_scale(logits, batch.targets) * _remaining(logits, batch.targets)
    return reduce_samples(per_sample, batch.targets, batch.weight, reduction)


@LOSSES.add("exp", title="EXP", paper=LABEL_SETS_PAPER, equation="Section 4.3", several=True, gradient=_exp_gradient)
def exp(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Exponential upper bound of the absolute error: the classes that are left should have all probability.

    .. math:: \frac{K-1}{s} \exp\Bigl(-\sum_{j \notin \bar Y} p_j\Bigr)

    for a set of s labels (Section 4.3 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label; a set takes the mean of its labels' weights.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    Bounded, between (K-1)/(s e) and (K-1)/s: a wrong label does little harm. The price is a gradient that vanishes
    where the model is sure and wrong; :func:`log` has the largest one there. For one label it is (K-1)/e times
    :func:`scl_exp`.

    The factor :math:`(K-1)/s` is half of that in Eq. 12 of [1]_.

    References
    ----------
    .. [1] Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import exp
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> exp(logits, torch.tensor([1, 0]))
    tensor(0.8640)
    """
    batch = prepare(logits, ybar, weight, reduction)
    per_sample = _scale(logits, batch.targets) * torch.exp(-_remaining(logits, batch.targets).exp())
    return reduce_samples(per_sample, batch.targets, batch.weight, reduction)


ESTIMATOR = "Eqs. 8-11"

_mae_gradient = partial(risk_gradient, base=registry.mae)


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
    return free(logits, ybar, weight=weight, base=registry.mae, reduction=reduction)


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
    return free(logits, ybar, weight=weight, base=registry.mse, reduction=reduction)


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
    return free(logits, ybar, weight=weight, base=partial(registry.gce, q=q), reduction=reduction)


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
    return free(logits, ybar, weight=weight, base=partial(registry.phuber, tau=tau), reduction=reduction)


SURROGATE_PAPER = "Chou, Niu, Lin, Sugiyama: Unbiased risk estimators can mislead (ICML 2020)"


@LOSSES.add("scl-nl", title="SCL-NL", paper=SURROGATE_PAPER, equation="Eq. 11", several=True)
def scl_nl(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Negative learning: the label's probability should be small.

    .. math:: -\log(1 - p_{\bar y})

    (Eq. 11 of [1]_), the mean over a set's labels.

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
    Never negative, unlike the unbiased :func:`free` with cross-entropy, at the price of a bias. Finite however sure the
    model is. For one label it is :func:`log` over K - 1; for sets they differ: each label counts by itself here, all at
    once there. Uniform labels are assumed.

    References
    ----------
    .. [1] Chou, Niu, Lin, Sugiyama: Unbiased risk estimators can mislead (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import scl_nl
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> scl_nl(logits, torch.tensor([1, 0]))
    tensor(0.1754)
    """
    batch = prepare(logits, ybar, weight, reduction)
    return reduce_pairs(-log_complement(logits), batch.targets, batch.weight, reduction)


@LOSSES.add("scl-exp", title="SCL-EXP", paper=SURROGATE_PAPER, equation="Eqs. 10-12", several=True)
def scl_exp(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Exponential surrogate: the label's probability should be small.

    .. math:: \exp(p_{\bar y})

    (Eqs. 10-12 of [1]_), the mean over a set's labels.

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
    Between 1 and e, so wrong labels do little harm, but the gradient vanishes where the model is sure and wrong. For
    one label it is e/(K-1) times :func:`exp`. Uniform labels are assumed.

    References
    ----------
    .. [1] Chou, Niu, Lin, Sugiyama: Unbiased risk estimators can mislead (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import scl_exp
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> scl_exp(logits, torch.tensor([1, 0]))
    tensor(1.1742)
    """
    batch = prepare(logits, ybar, weight, reduction)
    return reduce_pairs(logits.softmax(-1).exp(), batch.targets, batch.weight, reduction)


def log_complement(logits: Tensor) -> Tensor:
    """log(1 - p_j) for every class j, finite however sure the model is.

    Only the likeliest class can have 1 - p_j round to 0: it takes the log-sum-exp of the others, they log1p.
    """
    top = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.argmax(-1, keepdim=True), True)
    others = logits.masked_fill(top, -torch.inf).logsumexp(-1, keepdim=True) - logits.logsumexp(-1, keepdim=True)
    small = torch.log1p(-logits.softmax(-1).masked_fill(top, 0.0))
    return torch.where(top, others, small)
