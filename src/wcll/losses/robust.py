"""Noise-robust complementary losses (NCLL)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from wcll.checks import choice
from wcll.losses import base as bases
from wcll.losses.base import Base
from wcll.losses.inputs import Array, Labels, Transition, as_transition, checked_per_class, prepare
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets
from wcll.losses.unbiased import ascend, ga_gradient, partial_risks

__all__ = ["ncll"]


def _gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Transition | None = None,
    marginal: Tensor | None = None,
    base: str = "mae",
) -> Tensor:
    """That of GA with the robust base."""
    robust = _robust(base, transition)
    return ga_gradient(logits, p, targets, weight=weight, transition=transition, marginal=marginal, base=robust)


def _robust(base: str, transition: Transition | None) -> Base:
    """The base loss by its name here."""
    if base != "weighted-mae":
        return base
    if transition is None:
        return bases.mae
    scale = transition.inverse.sum(-2, keepdim=True)
    return lambda logits: scale * bases.mae(logits)


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
