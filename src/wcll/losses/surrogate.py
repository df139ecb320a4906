"""Surrogate complementary losses: functions of the label's own probability."""

from __future__ import annotations

import torch
from torch import Tensor

from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.modules import LossModule
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, reduce_pairs

PAPER = "Chou, Niu, Lin, Sugiyama: Unbiased risk estimators can mislead (ICML 2020)"


@LOSSES.add("scl-nl", title="SCL-NL", paper=PAPER, equation="Eq. 11", several=True)
def scl_nl(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Negative learning: :math:`-\log(1 - p_{\bar y})`, the mean over a set's labels."""
    batch = prepare(logits, ybar, weight, reduction)
    return reduce_pairs(-log_complement(logits), batch.targets, batch.weight, reduction)


class SCLNLLoss(LossModule):
    spec = LOSSES["scl-nl"]


@LOSSES.add("scl-exp", title="SCL-EXP", paper=PAPER, equation="Eqs. 10-12", several=True)
def scl_exp(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Exponential surrogate: :math:`\exp(p_{\bar y})`, the mean over a set's labels."""
    batch = prepare(logits, ybar, weight, reduction)
    return reduce_pairs(logits.softmax(-1).exp(), batch.targets, batch.weight, reduction)


class SCLEXPLoss(LossModule):
    spec = LOSSES["scl-exp"]


def log_complement(logits: Tensor) -> Tensor:
    """log(1 - p_j) for every class j, finite however sure the model is.

    Only the likeliest class can have 1 - p_j round to 0: it takes the log-sum-exp of the others, they log1p.
    """
    top = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.argmax(-1, keepdim=True), True)
    others = logits.masked_fill(top, -torch.inf).logsumexp(-1, keepdim=True) - logits.logsumexp(-1, keepdim=True)
    small = torch.log1p(-logits.softmax(-1).masked_fill(top, 0.0))
    return torch.where(top, others, small)
