"""Surrogate complementary losses: functions of the label's own probability."""

from __future__ import annotations

import torch
from torch import Tensor

from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, reduce_pairs

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
