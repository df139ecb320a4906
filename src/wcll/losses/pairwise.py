"""Pairwise comparison (PC)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from wcll.checks import choice
from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.modules import LossModule
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets, reduce_samples, sample_factor


def _gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None, surrogate: str = "sigmoid"
) -> Tensor:
    """(K-1) times g'(f_ybar - f_k): up at the label, down at the others."""
    lead = targets.named(logits).unsqueeze(-1) - logits
    if surrogate == "sigmoid":
        value = lead.sigmoid()
        slope = value * (1 - value)
    else:
        slope = 0.5 * ((lead >= -1) & (lead <= 1)).to(lead.dtype)
    up = torch.where(targets.mask, slope.sum(-1, keepdim=True), 0.0)
    return (logits.shape[-1] - 1) * sample_factor(logits, targets, weight) * (up - slope)


@LOSSES.add(
    "pc",
    title="PC",
    paper="Ishida, Niu, Hu, Sugiyama: Learning from complementary labels (NeurIPS 2017)",
    equation="pairwise comparison",
    link="scores",
    table1=Table1(complementary_labels=True, any_loss=False, any_model=True, class_imbalance=False),
    gradient=_gradient,
)
def pc(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    surrogate: Literal["sigmoid", "ramp"] = "sigmoid",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Pairwise comparison: every other class should score above the label.

    .. math:: (K-1) \sum_{k \ne \bar y} g(f_k - f_{\bar y}) - \frac{K(K-1)}{2} + (K-1)

    with :math:`g(z) = \sigma(-z)` or the ramp :math:`g(z) = \tfrac12 \mathrm{clip}(1 - z, 0, 2)`; unbiased because
    :math:`g(z) + g(-z) = 1`. One label a sample; uniform labels assumed.
    """
    batch = prepare(logits, ybar, weight, reduction)
    choice("surrogate", surrogate, ("sigmoid", "ramp"))
    k = logits.shape[-1]
    batch.targets.single("pc")
    lead = batch.targets.named(logits).unsqueeze(-1) - logits  # f_ybar - f_k
    losses = lead.sigmoid() if surrogate == "sigmoid" else 0.5 * (1 + lead).clamp(0, 2)
    others = losses.sum(-1) - 0.5  # the label against itself counts 1/2
    return reduce_samples((k - 1) * others - k * (k - 1) / 2 + (k - 1), batch.targets, batch.weight, reduction)


class PCLoss(LossModule):
    spec = LOSSES["pc"]
