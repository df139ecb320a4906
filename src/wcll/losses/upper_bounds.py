"""Losses for sets of complementary labels: upper bounds of the absolute error."""

from __future__ import annotations

import torch
from torch import Tensor

from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.softmax import softmax
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets, reduce_samples, sample_factor

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
