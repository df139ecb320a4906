"""The upper limit: learning from ordinary labels."""

from __future__ import annotations

from torch import Tensor

from wcll.losses.inputs import Array, Labels, prepare
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, reduce_pairs

__all__ = ["cross_entropy"]


@LOSSES.add(
    "cross-entropy",
    title="Cross-entropy",
    paper="ordinary supervised learning",
    equation="Eq. 2 with cross-entropy",
    labels="ordinary",
)
def cross_entropy(logits: Tensor, y: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Cross-entropy on ORDINARY labels, :math:`-\log p_y`: what complementary labels cannot beat, for comparison."""
    batch = prepare(logits, y, weight, reduction)
    batch.targets.single("cross-entropy")
    return reduce_pairs(-logits.log_softmax(-1), batch.targets, batch.weight, reduction)
