"""Losses for ordinary labels: the upper bound of what complementary labels can reach."""

from __future__ import annotations

from torch import Tensor

from wcll._validation import non_negative
from wcll.exceptions import InputError
from wcll.losses.registry import LOSSES, softmax
from wcll.losses.targets import Array, Labels, Reduction, Targets, prepare, present, reduce_pairs, sample_factor


def _gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """p - e_y."""
    return sample_factor(logits, targets, weight) * (p - targets.mask.to(logits.dtype))


@LOSSES.add(
    "cross-entropy",
    title="Cross-entropy",
    paper="ordinary supervised learning",
    equation="Eq. 2 with cross-entropy",
    labels="ordinary",
    gradient=_gradient,
)
def cross_entropy(logits: Tensor, y: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Cross-entropy on ORDINARY labels: what complementary labels cannot beat, for comparison.

    .. math:: -\log p_y

    (Eq. 2 of the paper of :func:`wcll.functional.wcll`, with cross-entropy).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    y : tensor or Targets
        ORDINARY class indices of shape (..., n).
    weight : array of shape (..., k), optional
        Class weights, indexed by the class.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    Complementary labels given by mistake are learnt as if they were true: nothing can notice it. The weighted sum is
    divided by n, not by the sum of the weights as in ``torch.nn.functional.cross_entropy``.

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import cross_entropy
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> cross_entropy(logits, torch.tensor([0, 2]))
    tensor(0.3955)
    """
    batch = prepare(logits, y, weight, reduction, single="cross-entropy")
    return reduce_pairs(-logits.log_softmax(-1), batch.targets, batch.weight, reduction)


def _adjusted_gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, marginal: Tensor, weight: Tensor | None = None, tau: float = 1.0
) -> Tensor:
    """softmax(f + tau log m) - e_y: cross-entropy's at the adjusted logits."""
    return _gradient(logits, softmax(_adjusted(logits, marginal, tau)), targets, weight=weight)


def _adjusted(logits: Tensor, marginal: Tensor, tau: float) -> Tensor:
    """f + tau log m, with 0 for log 0."""
    return logits + (tau * present(marginal).log()).unsqueeze(-2)


@LOSSES.add(
    "logit-adjusted",
    title="Logit-adjusted",
    paper="Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-tail learning via logit adjustment (ICLR 2021)",
    equation="Eq. 10",
    labels="ordinary",
    gradient=_adjusted_gradient,
)
def logit_adjusted(
    logits: Tensor,
    y: Labels,
    *,
    marginal: Array,
    weight: Array | None = None,
    tau: float = 1.0,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Cross-entropy on ORDINARY labels whose rare classes get a larger margin.

    The model absorbs the shares of the classes, so that argmax f is the prediction for balanced classes.

    .. math:: -\log \mathrm{softmax}(f + \tau \log m)_y

    with the shares m of the classes among the training labels (Eq. 10 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    y : tensor or Targets
        ORDINARY class indices of shape (..., n).
    marginal : array of shape (..., k)
        m, the shares of the classes in the training set.
    weight : array of shape (..., k), optional
        Class weights, indexed by the class.
    tau : float
        1 is for balanced classes, 0 is :func:`cross_entropy`.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    A class of share 0 is not adjusted: as in cross-entropy every sample speaks against it, where a margin of
    :math:`\log 0` would leave its output as it happened to be initialised. Weights that favour rare classes correct the
    imbalance a second time.

    References
    ----------
    .. [1] Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-tail learning via logit adjustment (ICLR 2021).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import logit_adjusted
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> logit_adjusted(logits, torch.tensor([0, 2]), marginal=[0.6, 0.3, 0.1])
    tensor(0.7738)
    """
    batch = prepare(logits, y, weight, reduction, marginal=marginal, single="logit-adjusted")
    if batch.marginal is None:
        raise InputError("marginal", "a value, which loss 'logit-adjusted' needs", None)
    adjusted = _adjusted(logits, batch.marginal, non_negative("tau", tau))
    return reduce_pairs(-adjusted.log_softmax(-1), batch.targets, batch.weight, reduction)
