"""Losses on the model's own estimate of the label's distribution: L-UW, L-W, OP, OP-W."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wcll.losses.registry import LOSSES, Table1, log_softmax, softmax
from wcll.losses.targets import Array, Labels, Reduction, Targets, prepare, reduce_pairs, sample_factor

GAO = "Gao, Zhang: Discriminative complementary-label learning with weighted loss (ICML 2021)"
LIU = "Liu, Cao, Zhang, Feng, An: Consistent complementary-label learning via order-preserving losses (AISTATS 2023)"

MAX_INVERSE = 1e18  # of 1/q, as in the authors' code: 1/q itself reaches infinity


def _l_uw_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """Through both softmaxes: first e_ybar - q in p, then that in the logits."""
    return _through_softmax(p, targets.mask.to(p.dtype) - softmax(1 - p), targets, weight)


def _l_w_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """As L-UW's, weighted, and through the weight."""
    rest = 1 - p
    own = targets.mask.to(p.dtype)
    log_q = log_softmax(rest)
    others = p.shape[-1] - 1
    confidence = 1 + (own * rest).sum(-1, keepdim=True) / others
    return _through_softmax(p, own * (log_q / others) + confidence * (own - log_q.exp()), targets, weight)


def _through_softmax(p: Tensor, slope: Tensor, targets: Targets, weight: Tensor | None) -> Tensor:
    """From a gradient in p to the one in the logits, averaged over samples."""
    scaled = p * slope
    return sample_factor(p, targets, weight) * torch.addcmul(scaled, p, scaled.sum(-1, keepdim=True), value=-1)


@LOSSES.add("l-uw", title="L-UW", paper=GAO, equation="Eq. 7", table1=Table1(), gradient=_l_uw_gradient)
def l_uw(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Cross-entropy of a second softmax, which turns class probabilities into those of the label.

    .. math:: -\log q_{\bar y},\quad q = \mathrm{softmax}(1 - p)

    (Eq. 7 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
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
    As :math:`1 - p` lies in [0, 1], the loss lies between :math:`\log(1 + (K-1) e^{-1/(K-1)})` and :math:`\log(1 +
    (K-1) e)` (2.20 and 3.24 for 10 classes): a loss that hardly moves is no sign of a model that does not learn.
    Gradients are small, one K-th of :func:`log`'s for an untrained model, so the learning rate matters more, and they
    vanish where the model is sure and wrong.

    References
    ----------
    .. [1] Gao, Zhang: Discriminative complementary-label learning with weighted loss (ICML 2021).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import l_uw
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> l_uw(logits, torch.tensor([1, 0]))
    tensor(0.9551)
    """
    batch = prepare(logits, ybar, weight, reduction, single="l-uw")
    return reduce_pairs(-(1 - logits.softmax(-1)).log_softmax(-1), batch.targets, batch.weight, reduction)


@LOSSES.add("l-w", title="L-W", paper=GAO, equation="Eq. 8", table1=Table1(), gradient=_l_w_gradient)
def l_w(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""L-UW weighted by how little the model believes in the label.

    .. math:: -\Bigl(1 + \frac{1 - p_{\bar y}}{K-1}\Bigr) \log q_{\bar y},\quad q = \mathrm{softmax}(1 - p)

    (Eq. 8 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
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
    The factor lies between 1 and 1 + 1/(K-1): with many classes this is :func:`l_uw`. The gradient flows through the
    factor as well. Gradients are as small as L-UW's, so the learning rate matters more than for :func:`log`.

    References
    ----------
    .. [1] Gao, Zhang: Discriminative complementary-label learning with weighted loss (ICML 2021).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import l_w
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> l_w(logits, torch.tensor([1, 0]))
    tensor(1.3556)
    """
    batch = prepare(logits, ybar, weight, reduction, single="l-w")
    rest = 1 - logits.softmax(-1)
    per_label = -(1 + rest / (logits.shape[-1] - 1)) * rest.log_softmax(-1)
    return reduce_pairs(per_label, batch.targets, batch.weight, reduction)


@LOSSES.add("op", title="OP", paper=LIU, equation="order-preserving loss", link="scores")
def op(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Order-preserving loss: the label should score lowest.

    .. math:: -\log \mathrm{softmax}(-f)_{\bar y} = f_{\bar y} + \mathrm{lse}(-f)

    (the order-preserving loss of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
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
    It fits softmax(-f) to the distribution of the label: the order of the scores is that of the classes if labels are
    uniform, but softmax(f) is not their probability. ``ComplementaryClassifier`` has no ``predict_proba`` with this
    loss.

    References
    ----------
    .. [1] Liu, Cao, Zhang, Feng, An: Consistent complementary-label learning via order-preserving losses
       (AISTATS 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import op
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> op(logits, torch.tensor([1, 0]))
    tensor(0.8103)
    """
    batch = prepare(logits, ybar, weight, reduction, single="op")
    return reduce_pairs(-(-logits).log_softmax(-1), batch.targets, batch.weight, reduction)


@LOSSES.add("op-w", title="OP-W", paper=LIU, equation="weighted order-preserving loss", link="scores", revision=2)
def op_w(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Order-preserving loss, weighted by the model's own outputs.

    .. math:: -w_{\bar y} \log q_{\bar y},\quad q = \mathrm{softmax}(-f),\quad
              w = p \cdot \mathrm{softmax}(1 + 1/q) + 10^{-6}

    (the weighted order-preserving loss of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
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
    The gradient flows through the weight as well. An untrained model gives every class a weight of about :math:`1/K^2`:
    the loss starts that much smaller than :func:`op`. As soon as logits differ, softmax(1 + 1/q) is nearly 1 for the
    class with the largest output and nearly 0 for all others. :math:`1/q` is bounded by :math:`10^{18}`, as in the
    authors' code, so that the loss stays finite. Outputs are scores, not probabilities, as for :func:`op`.

    References
    ----------
    .. [1] Liu, Cao, Zhang, Feng, An: Consistent complementary-label learning via order-preserving losses
       (AISTATS 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import op_w
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> op_w(logits, torch.tensor([1, 0]))
    tensor(0.0015)
    """
    batch = prepare(logits, ybar, weight, reduction, single="op-w")
    log_q = (-logits).log_softmax(-1)
    inverse = torch.exp((-log_q).clamp(max=math.log(MAX_INVERSE)))
    own = logits.softmax(-1) * (1 + inverse).softmax(-1) + 1e-6
    return reduce_pairs(-own * log_q, batch.targets, batch.weight, reduction)
