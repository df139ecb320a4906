"""Noise-robust complementary losses (NCLL)."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from wcll._validation import choice
from wcll.losses import base_losses
from wcll.losses.arguments import Array, Labels, Transition, as_transition, prepare
from wcll.losses.base_losses import Base
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
    table1=Table1(),
    gradient=_gradient,
)
def ncll(
    logits: Tensor,
    ybar: Labels,
    *,
    marginal: Array,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    base: Literal["mae", "weighted-mae", "gce", "symmetric"] = "mae",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Backward-corrected risk of a noise-robust loss, with the class-wise ascent of :func:`wcll.functional.ga`.

    A loss whose sum over classes is constant, such as the absolute error, is not misled by wrong labels that are spread
    evenly.

    .. math:: r_k = \sum_j \bar p_j\, Q^{-1}_{jk}\, m_j[L_k]

    are the partial risks of the robust loss L, and the loss is made of them as GA's is.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    marginal : array of shape (..., k)
        Shares of the labels in the whole training set, see :func:`wcll.labels.observed_marginal`.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    transition : array of shape (k, k), optional
        ``Q[y, ybar]``, invertible; uniform if not given.
    base : {"mae", "weighted-mae", "gce", "symmetric"}
        L. ``weighted-mae`` is :math:`c_k \cdot 2 (1 - p_k)` with :math:`c_k = \sum_j Q^{-1}_{jk}`, robust under a
        biased Q; for the uniform Q it is ``mae``.
    reduction : {"mean"}
        No other: the loss is built on class means, which no single sample has.

    Returns
    -------
    tensor
        One loss per run, (...).

    Notes
    -----
    ``marginal`` is required, for the reason that :func:`wcll.functional.ga` gives. Under a Q that is wrong the ascent
    may dominate even then: :func:`wcll.functional.free` with ``base="mae"`` is the same risk without it.

    A wrong Q moves the risks; a singular Q is an error. The paper's own code is not public: this follows its abstract
    and later work.

    References
    ----------
    .. [1] Ishiguro, Ishida, Sugiyama: Learning from noisy complementary labels with robust losses (IEICE 2022).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import ncll
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> ncll(logits, torch.tensor([1, 0]), marginal=[0.3, 0.4, 0.3])
    tensor(0.5444)
    """
    batch = prepare(logits, ybar, weight, reduction, marginal=marginal, means="ncll")
    choice("base", base, ("mae", "weighted-mae", "gce", "symmetric"))
    transition = None if transition is None else as_transition(transition, logits)
    return ascend(partial_risks(logits, batch, _robust(base, transition), transition), batch)
