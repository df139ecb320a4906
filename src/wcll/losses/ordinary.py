"""The upper limit: learning from ordinary labels."""

from __future__ import annotations

from torch import Tensor

from wcll.losses.inputs import Array, Labels, prepare
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets, reduce_pairs, sample_factor

__all__ = ["cross_entropy"]


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
