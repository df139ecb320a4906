"""Pairwise comparison, and unbiased risk estimators with their non-negative corrections."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from wcll._validation import choice, non_negative
from wcll.losses.registry import (
    LOSSES,
    Base,
    Table1,
    ascend,
    ascent,
    base_loss,
    coefficients,
    partial_risks,
    risk_gradient,
)
from wcll.losses.targets import (
    Array,
    Labels,
    Reduction,
    Targets,
    Transition,
    apply_reduction,
    prepare,
    reduce_samples,
    sample_factor,
)


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
    table1=Table1(any_loss=False),
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

    The label is compared with each other class, as in ranking; no class probabilities are involved.

    .. math:: (K-1) \sum_{k \ne \bar y} g(f_k - f_{\bar y}) - \frac{K(K-1)}{2} + (K-1)

    with :math:`g(z) = \sigma(-z)` or the ramp :math:`g(z) = \tfrac12 \mathrm{clip}(1 - z, 0, 2)`: the
    pairwise-comparison loss of [1]_.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n): one label a sample; split sets with :func:`wcll.labels.to_pairs`.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    surrogate : {"sigmoid", "ramp"}
        The function g.
    reduction : {"mean", "sum", "none"}
        Over the samples of each run.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    For uniform labels the expectation is the ordinary pairwise risk up to a constant, because :math:`g(z) + g(-z) = 1`;
    it is no such thing for labels chosen with a bias. Values lie between :math:`-(K-1)(K-2)/2` and :math:`K(K-1)/2`.
    Where the label is far above or below the other classes, the gradient vanishes, and with the ramp it is exactly 0.

    Outputs are scores: they rank classes and softmax(f) is no probability. ``ComplementaryClassifier`` has no
    ``predict_proba`` with this loss.

    References
    ----------
    .. [1] Ishida, Niu, Hu, Sugiyama: Learning from complementary labels (NeurIPS 2017).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import pc
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> pc(logits, torch.tensor([1, 0]))
    tensor(0.3881)
    """
    batch = prepare(logits, ybar, weight, reduction, single="pc")
    choice("surrogate", surrogate, ("sigmoid", "ramp"))
    k = logits.shape[-1]
    lead = batch.targets.named(logits).unsqueeze(-1) - logits  # f_ybar - f_k
    losses = lead.sigmoid() if surrogate == "sigmoid" else 0.5 * (1 + lead).clamp(0, 2)
    others = losses.sum(-1) - 0.5  # the label against itself counts 1/2
    return reduce_samples((k - 1) * others - k * (k - 1) / 2 + (k - 1), batch.targets, batch.weight, reduction)


PAPER = "Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019)"


def _nn_gradient(logits: Tensor, p: Tensor, targets: Targets, *, beta: float = 0.0, **keywords: Any) -> Tensor:
    """Of the partial risks that are not cut off."""
    return risk_gradient(logits, p, targets, correction=lambda risks, _: risks >= -beta, **keywords)


_ga_gradient = partial(risk_gradient, correction=ascent)


@LOSSES.add(
    "free", title="FREE", paper=PAPER, equation="Theorem 1", several=True, table1=Table1(), gradient=risk_gradient
)
def free(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Unbiased estimator of the ordinary risk, for any base loss and model.

    The inverse of Q turns the complementary label into signed ordinary losses whose expectation is the ordinary loss.

    .. math:: \bar\ell(x, \bar y) = \sum_k Q^{-1}_{\bar y k}\, \ell_k(x)
              \quad\bigl(\text{uniform } Q:\ -(K-1)\,\ell_{\bar y} + \textstyle\sum_k \ell_k\bigr)

    (Theorem 1 of [1]_).

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    transition : array of shape (k, k), optional
        ``Q[y, ybar]``, invertible; uniform if not given.
    marginal : array of shape (..., k), optional
        Shares of the labels in the whole training set: the class form, in which the batch enters through its class
        means (classes absent from a batch are skipped, which is slightly biased). Equal to the plain mean on a full
        batch.
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean", "sum", "none"}
        Over the samples of each run; only the mean with ``marginal``.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    With cross-entropy the loss has no lower bound: :math:`-(K-1)\,\ell_{\bar y}` falls without end as :math:`p_{\bar
    y}` goes to 0, and a flexible model overfits. :func:`nn` and :func:`ga` correct that; bounded bases (``mae``,
    ``gce``) do not have the problem.

    A wrong Q makes the estimate biased, a singular one is an error, and one close to it inflates the variance:
    :func:`forward` needs no inverse. The loss of a set is the mean over its labels, unbiased for uniform labels; sets
    drawn without replacement do not follow another Q label by label.

    References
    ----------
    .. [1] Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import free
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> free(logits, torch.tensor([1, 0]))
    tensor(0.3955)
    >>> q = [[0.0, 0.8, 0.2], [0.5, 0.0, 0.5], [0.1, 0.9, 0.0]]
    >>> free(logits, torch.tensor([1, 0]), transition=q, base="mae")
    tensor(0.2993)
    """
    means = None if marginal is None else "free"
    batch = prepare(logits, ybar, weight, reduction, marginal=marginal, means=means)
    per_sample = (coefficients(logits, batch, transition) * base_loss(base)(logits)).sum(-1)
    return apply_reduction(per_sample * len(batch.targets), reduction)


@LOSSES.add(
    "nn", title="NN", paper=PAPER, equation="the max operator", several=True, table1=Table1(), gradient=_nn_gradient
)
def nn(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    marginal: Array | None = None,
    base: Base = "ce",
    beta: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Non-negative correction of :func:`free`: each ordinary class's partial risk is kept above :math:`-\beta`.

    A partial risk is an expectation of losses and cannot be negative; an estimate below 0 is noise that was learnt.

    .. math:: \sum_k \max(r_k, -\beta),\quad r_k = \sum_j \bar p_j\, Q^{-1}_{jk}\, m_j[\ell_k]

    with :math:`m_j` the batch mean over samples labelled j and :math:`\bar p_j` the share of label j (the max operator
    of [1]_); :math:`E[r_k] = P(y{=}k)\, E[\ell_k \mid y{=}k] \ge 0`.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    transition : array of shape (k, k), optional
        ``Q[y, ybar]``, invertible; uniform if not given.
    marginal : array of shape (..., k), optional
        Shares of the labels in the whole training set, see :func:`wcll.labels.observed_marginal`.
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    beta : float
        How far below 0 a partial risk may fall.
    reduction : {"mean"}
        No other: the loss is built on class means, which no single sample has.

    Returns
    -------
    tensor
        One loss per run, (...).

    Notes
    -----
    Without ``marginal`` the batch's own shares stand for :math:`\bar p`. Then even an untrained model has a negative
    risk for every label that more than 1/(K-1) of the batch have: with 10 classes in nearly every batch of 256. What is
    cut off has no gradient: those classes do not learn from that batch. Give ``marginal``, or large batches. Classes
    absent from a batch are skipped, which is slightly biased. A wrong Q moves the risks; a singular Q is an error.

    References
    ----------
    .. [1] Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import nn
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> nn(logits, torch.tensor([1, 0]), marginal=[0.3, 0.4, 0.3])
    tensor(1.0613)
    """
    non_negative("beta", beta)
    batch = prepare(logits, ybar, weight, reduction, marginal=marginal, means="nn")
    return partial_risks(logits, batch, base, transition).clamp(min=-beta).sum(-1)


@LOSSES.add("ga", title="GA", paper=PAPER, equation="Algorithm 1", several=True, table1=Table1(), gradient=_ga_gradient)
def ga(
    logits: Tensor,
    ybar: Labels,
    *,
    marginal: Array,
    weight: Array | None = None,
    transition: Array | Transition | None = None,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Gradient ascent: while some partial risk is negative, climb back out of it.

    With the partial risks :math:`r_k` of :func:`nn` and batch counts :math:`n_k` of the labels

    .. math:: \begin{cases} \sum_k r_k & \text{if no } r_k \text{ is negative,} \\
              -\sum_k \min(0, n_k r_k) & \text{else;} \end{cases}

    a step down this loss is the step up of Algorithm 1 of [1]_.

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
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean"}
        No other: the loss is built on class means, which no single sample has.

    Returns
    -------
    tensor
        One loss per run, (...).

    Notes
    -----
    ``marginal`` is required. With a batch's own shares in its place even an untrained model would have a negative risk
    for every label that more than 1/(K-1) of the batch have, with 10 classes in nearly every batch of 256; one negative
    class turns the whole step into an ascent, and the model would learn the reverse: a linear model of handwritten
    digits fell below chance with batches of 64 and 256.

    The ascent is scaled by counts, the descent is not: their steps differ in size by about n/K. A wrong Q moves the
    risks; a singular Q is an error.

    References
    ----------
    .. [1] Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import ga
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> ga(logits, torch.tensor([1, 0]), marginal=[0.3, 0.4, 0.3])
    tensor(0.8000)
    """
    batch = prepare(logits, ybar, weight, reduction, marginal=marginal, means="ga")
    return ascend(partial_risks(logits, batch, base, transition), batch)
