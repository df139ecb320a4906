"""Noise-robust (NCLL) and one-versus-rest losses (ML-CLL, SCARCE)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from wcll._validation import choice
from wcll.exceptions import InputError
from wcll.losses.registry import LOSSES, Base, Table1, ascend, ascent, mae, partial_risks, risk_gradient
from wcll.losses.targets import (
    Array,
    Labels,
    Reduction,
    Targets,
    Transition,
    as_transition,
    checked_per_class,
    prepare,
    present,
    reduce_samples,
    sample_factor,
)


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
        return mae
    scale = transition.inverse.sum(-2, keepdim=True)
    return lambda logits: scale * mae(logits)


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


def _ml_cll_gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None, variant: str = "unbiased"
) -> Tensor:
    """The sigmoid at the label; (a + b) sigmoid - a at the others."""
    a, b = _shares(logits.shape[-1], variant)
    chance = logits.sigmoid()
    slope = torch.where(targets.mask, chance, (a + b) * chance - a)
    return sample_factor(logits, targets, weight) * slope


def _shares(k: int, variant: str) -> tuple[float, float]:
    """a and b, without large powers."""
    tiny = 0.5 ** (k - 1)
    return (0.5 / (1 - tiny), (0.5 - tiny) / (1 - tiny)) if variant == "unbiased" else (1.0, 0.0)


def _softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), exact everywhere; torch's softplus is linear from 20 on."""
    return -logsigmoid(-x)


@LOSSES.add(
    "ml-cll",
    title="ML-CLL",
    paper="Gao, Xu, Zhang: Unbiased risk estimator to multi-labeled complementary label learning (IJCAI 2023)",
    equation="Eq. 9 (unbiased), Eq. 12 (gdf)",
    link="sigmoid",
    table1=Table1(),
    gradient=_ml_cll_gradient,
)
def ml_cll(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    variant: Literal["unbiased", "gdf"] = "unbiased",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Multi-label learning from one label that does not apply.

    Every class has a yes-or-no question of its own; the label answers its question, and the others are guessed.

    .. math:: a \sum_{j \ne \bar y} \zeta(-f_j) + b \sum_{j \ne \bar y} \zeta(f_j) + \zeta(f_{\bar y}),\quad
              \zeta(z) = \log(1 + e^z)

    with :math:`a = 2^{K-2} / (2^{K-1} - 1)`, :math:`b = (2^{K-2} - 1) / (2^{K-1} - 1)` if every non-empty label set
    without :math:`\bar y` is equally likely (``"unbiased"``, Eq. 9 of [1]_), and a = 1, b = 0 for ``"gdf"`` (Eq. 12).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    variant : {"unbiased", "gdf"}
        Which a and b.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    With one true class a sample, predict the largest score. Outputs are sigmoid scores that do not sum to 1 over the
    classes; ``ComplementaryClassifier`` has no ``predict_proba`` with this loss. With one true class the assumption on
    label sets does not hold, so ``"unbiased"`` is not unbiased.

    References
    ----------
    .. [1] Gao, Xu, Zhang: Unbiased risk estimator to multi-labeled complementary label learning (IJCAI 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import ml_cll
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> ml_cll(logits, torch.tensor([1, 0]))
    tensor(2.1064)
    """
    batch = prepare(logits, ybar, weight, reduction, single="ml-cll")
    choice("variant", variant, ("unbiased", "gdf"))
    a, b = _shares(logits.shape[-1], variant)
    other = a * _softplus(-logits) + b * _softplus(logits)
    per_sample = torch.where(batch.targets.mask, _softplus(logits), other).sum(-1)
    return reduce_samples(per_sample, batch.targets, batch.weight, reduction)


@LOSSES.add(
    "scarce",
    title="SCARCE",
    paper="Wang, Ishida, Zhang, Niu, Sugiyama: Learning with complementary labels revisited (ICML 2024)",
    equation="absolute-value correction",
    several=True,
    link="sigmoid",
)
def scarce(logits: Tensor, ybar: Labels, *, prior: Array, reduction: Reduction = "mean") -> Tensor:
    r"""Negative-unlabelled learning, one class at a time, from the ordinary class shares.

    Samples labelled k are negatives of class k, all others are unlabelled.

    .. math:: \sum_k (1 - \pi_k)\, m_k[\zeta(f_k)] +
              \Bigl| \tfrac1n \sum_i \zeta(-f_k(x_i)) - (1 - \pi_k)\, m_k[\zeta(-f_k)] \Bigr|,\quad
              \zeta(z) = \log(1 + e^z)

    with :math:`m_k` the batch mean over samples labelled k (the absolute-value correction of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    prior : array of shape (..., k)
        The ordinary class shares :math:`\pi`: with Q and label shares :math:`\bar p`, :math:`\pi^\top Q = \bar p^\top`.
    reduction : {"mean"}
        No other: the loss is built on class means, which no single sample has.

    Returns
    -------
    tensor
        One loss per run, (...).

    Notes
    -----
    A wrong prior biases the loss: shares of 1/K, as in the authors' code, do not suit imbalanced classes. A class
    absent from the batch is skipped. Not a mean over samples, so class weights do not apply. Outputs are sigmoid
    scores: predict the largest; ``ComplementaryClassifier`` has no ``predict_proba`` with this loss.

    References
    ----------
    .. [1] Wang, Ishida, Zhang, Niu, Sugiyama: Learning with complementary labels revisited (ICML 2024).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import scarce
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> scarce(logits, torch.tensor([1, 0]), prior=[0.3, 0.4, 0.3])
    tensor(1.2535)
    """
    batch = prepare(logits, ybar, None, reduction, means="scarce")
    share = checked_per_class("prior", prior, logits, ybar)
    if share is None:
        raise InputError("prior", "a value, which loss 'scarce' needs", None)
    sample_weight = batch.targets.sample_weight
    named = batch.targets.mask.to(logits.dtype)
    everyone = torch.ones_like(named[..., :1])
    if sample_weight is not None:
        named, everyone = named * sample_weight.unsqueeze(-1), everyone * sample_weight.unsqueeze(-1)
    count = named.sum(-2)
    negative, positive = _softplus(logits), _softplus(-logits)
    is_not = (1 - share) * (named * negative).sum(-2) / present(count)
    might_be = (everyone * positive).mean(-2) - (1 - share) * (named * positive).sum(-2) / present(count)
    return ((is_not + might_be.abs()) * (count > 0)).sum(-1)
