"""The upper limits: learning from ordinary labels."""

from __future__ import annotations

from torch import Tensor

from wcll.checks import non_negative
from wcll.losses.arguments import Array, Labels, checked_per_class, prepare
from wcll.losses.modules import LossModule
from wcll.losses.softmax import softmax
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets, present, reduce_pairs, sample_factor


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
    r"""Cross-entropy on ORDINARY labels, :math:`-\log p_y`: what complementary labels cannot beat, for comparison."""
    batch = prepare(logits, y, weight, reduction)
    batch.targets.single("cross-entropy")
    return reduce_pairs(-logits.log_softmax(-1), batch.targets, batch.weight, reduction)


class CrossEntropyLoss(LossModule):
    spec = LOSSES["cross-entropy"]


def _adjusted_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    marginal: Tensor,
    weight: Tensor | None = None,
    tau: float = 1.0,
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

    .. math:: -\log \mathrm{softmax}(f + \tau \log m)_y

    with the shares m (``marginal``) of the classes among the training labels. The model absorbs the shares, so that
    argmax f is the prediction for balanced classes (:math:`\tau = 1`); :math:`\tau = 0` is :func:`cross_entropy`. A
    class of share 0 is not adjusted: as in cross-entropy every sample speaks against it, where a margin of
    :math:`\log 0` would leave its output as it happened to be initialised.
    """
    batch = prepare(logits, y, weight, reduction)
    batch.targets.single("logit-adjusted")
    share = checked_per_class("marginal", marginal, logits, y)
    assert share is not None
    adjusted = _adjusted(logits, share, non_negative("tau", tau))
    return reduce_pairs(-adjusted.log_softmax(-1), batch.targets, batch.weight, reduction)


class LogitAdjustedLoss(LossModule):
    spec = LOSSES["logit-adjusted"]
