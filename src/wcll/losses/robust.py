"""Noise-robust complementary losses (NCLL)."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from wcll.checks import choice
from wcll.losses import base_losses
from wcll.losses.arguments import Array, Labels, Transition, as_transition, checked_per_class, prepare
from wcll.losses.base_losses import Base
from wcll.losses.modules import LossModule
from wcll.losses.risks import ascend, ascent, partial_risks, risk_gradient
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets


def _gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, transition: Transition | None, base: str = "mae", **keywords: Any
) -> Tensor:
    """That of GA with the robust base."""
    robust = _robust(base, transition)
    return risk_gradient(logits, p, targets, transition=transition, base=robust, correction=ascent, **keywords)


def _robust(base: str, transition: Transition | None) -> Base:
    """The base loss by its name here."""
    if base != "weighted-mae":
        return base
    if transition is None:
        return base_losses.mae
    scale = transition.inverse.sum(-2, keepdim=True)
    return lambda logits: scale * base_losses.mae(logits)


@LOSSES.add(
    "ncll",
    title="NCLL",
    paper="Ishiguro, Ishida, Sugiyama: Learning from noisy complementary labels with robust losses (IEICE 2022)",
    equation="robust backward correction",
    several=True,
    table1=Table1(complementary_labels=True, any_loss=True, any_model=True, class_imbalance=False),
    gradient=_gradient,
)
def ncll(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Literal["mae", "weighted-mae", "gce", "symmetric"] = "mae",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Backward-corrected risk of a noise-robust loss, with the class-wise ascent of :func:`wcll.functional.ga`.

    ``weighted-mae`` is :math:`c_k \cdot 2 (1 - p_k)` with :math:`c_k = \sum_j Q^{-1}_{jk}`, robust under a biased Q;
    for the uniform Q it is ``mae``. The paper's own code is not public: this follows its abstract and later work.
    """
    batch = prepare(logits, ybar, weight, reduction, name="ncll")
    choice("base", base, ("mae", "weighted-mae", "gce", "symmetric"))
    transition = None if transition is None else as_transition(transition, logits)
    robust = _robust(base, transition)
    marginal = checked_per_class("marginal", marginal, logits, ybar)
    return ascend(partial_risks(logits, batch, robust, transition, marginal), batch)


class NCLLLoss(LossModule):
    spec = LOSSES["ncll"]
