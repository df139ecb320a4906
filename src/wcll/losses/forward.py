"""Likelihood of the complementary label under a transition matrix."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from wcll._validation import non_negative
from wcll.losses.registry import LOSSES, Table1, softmax
from wcll.losses.targets import (
    Array,
    Labels,
    Reduction,
    Targets,
    Transition,
    as_transition,
    prepare,
    present,
    reduce_samples,
    sample_factor,
)

BALANCE = 0.3  #: of the first epochs of a training; a third of it, or three times as much, do as well


def _gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    transition: Transition,
    weight: Tensor | None = None,
    balance: float = 0.0,
) -> Tensor:
    """The softmax less the posterior of y given the labels: softmax(f) - softmax(f + log Q[:, ybar]).

    With the labels of near samples it is the mean posterior, p (c / pQ) Q', over their shares c.
    """
    if targets.near is None:
        posterior = softmax(logits + _log_likelihood(transition, targets, logits))
    else:
        chances = (p @ transition.matrix).clamp(min=torch.finfo(p.dtype).tiny)
        posterior = p * ((targets.near / chances) @ transition.matrix.mT)
    gradient = sample_factor(logits, targets, weight) * (p - posterior)
    return gradient + balance / logits.shape[-1] * _balance_gradient(p, targets) if balance else gradient


def _balance(logits: Tensor, targets: Targets) -> Tensor:
    """The mean of -log m_k, where m_k is class k's mean probability over the batch: (...)."""
    log_p = logits.log_softmax(-1)
    if targets.sample_weight is not None:
        log_p = log_p + targets.sample_weight.log().unsqueeze(-1)
    return log(len(targets)) - log_p.logsumexp(-2).mean(-1)


def _balance_gradient(p: Tensor, targets: Targets) -> Tensor:
    """K times its gradient, p sum_j r_j - r, with r_ik the part of sample i in class k's probability."""
    mass = p if targets.sample_weight is None else p * targets.sample_weight.unsqueeze(-1)
    parts = mass / present(mass.sum(-2, keepdim=True))
    return p * parts.sum(-1, keepdim=True) - parts


def _log_likelihood(transition: Transition, targets: Targets, like: Tensor) -> Tensor:
    """The summed log Q[y, ybar] of a sample's labels, for all y: (..., n, k); -inf where one of them is impossible."""
    if targets.index is None:
        named = targets.mask.to(like.dtype)  # products with them, not (n, k, k) numbers
        impossible = named @ (transition.matrix == 0).to(like.dtype).mT > 0
        return (named @ transition.log.nan_to_num(neginf=0.0).mT).masked_fill(impossible, -torch.inf)
    by_label, index = transition.log.mT, targets.index  # [ybar, y]; log 0 = -inf is fine
    if by_label.ndim == 2:
        return by_label[index]
    runs, k = by_label.shape[:-2], by_label.shape[-1]
    return by_label.gather(-2, index.unsqueeze(-1).expand(*runs, index.shape[-1], k))


@LOSSES.add(
    "forward",
    title="Forward",
    paper="Yu, Liu, Gong, Tao: Learning with biased complementary labels (ECCV 2018)",
    equation="forward correction",
    several=True,
    table1=Table1(any_loss=False, any_model=False),
    gradient=_gradient,
)
def forward(
    logits: Tensor,
    ybar: Labels,
    *,
    transition: Array | Transition,
    weight: Array | None = None,
    balance: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Forward correction: fit :math:`Q^\top \mathrm{softmax}(f)` to the complementary labels.

    The model predicts the class, Q turns that into a prediction of the label, and the label's likelihood is maximised.

    .. math:: -\log \sum_y p_y\, Q_{y \bar y} = -\mathrm{lse}_y(\log p_y + \log Q_{y\bar y})

    (the forward correction of [1]_). Several labels of a sample, a set S, are one observation:
    :math:`-\log \sum_y p_y \prod_{j \in S} Q_{yj}`.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k) of label sets.
    transition : array of shape (k, k)
        ``Q[y, ybar]``; it need not be invertible.
    weight : array of shape (..., k), optional
        Class weights, indexed by the label.
    balance : float
        :math:`\lambda` of a penalty on giving up classes, :math:`-\frac{\lambda}{K} \sum_k \log m_k` with the mean
        :math:`m_k` of :math:`p_k` over the batch: for the first epochs of a training (``warm_up``).
    reduction : {"mean", "sum", "none"}
        Over the samples of each run; only the mean with ``balance``.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    The labels of a set are taken as drawn independently given y. Drawn without replacement they are not quite: under
    the uniform Q that makes no difference to the gradient, else the sum over the orders of the draws is left out. All
    classes but some candidates ("partial labels") are such a set. With the uniform Q and one label the loss is
    :func:`log` over K - 1, plus :math:`\log(K-1)`.

    Q already accounts for labels that are chosen with a bias; class weights on top correct twice. A wrong Q pulls the
    class probabilities away from the truth, and the fit to the labels need not show it. With a singular Q different
    class probabilities can have the same likelihood. A label that Q calls impossible for every class has an infinite
    loss.

    The likelihood has poor optima in which some class, often a rare one, is predicted for no sample: while a model
    knows little, the labels that name a class push its probability down everywhere, and what is left of it is too
    little to learn from. With ``balance`` in the first epochs every class is tried on some samples; kept on, it would
    pull class shares towards equal ones.

    Targets may have the labels of near samples (``neighbors`` of :class:`wcll.ComplementaryClassifier`). With their
    shares :math:`c_j` the loss of a sample is :math:`-\sum_j c_j \log (p Q)_j`.

    References
    ----------
    .. [1] Yu, Liu, Gong, Tao: Learning with biased complementary labels (ECCV 2018).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import forward
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> forward(logits, torch.tensor([1, 0]), transition=[[0.0, 0.8, 0.2], [0.5, 0.0, 0.5], [0.1, 0.9, 0.0]])
    tensor(1.0657)
    """
    non_negative("balance", balance)
    batch = prepare(logits, ybar, weight, reduction, means="forward (balance)" if balance else None)
    matrix = as_transition(transition, logits)
    if batch.targets.near is None:
        per_sample = -torch.logsumexp(logits.log_softmax(-1) + _log_likelihood(matrix, batch.targets, logits), -1)
    else:
        chances = (logits.softmax(-1) @ matrix.matrix).clamp(min=torch.finfo(logits.dtype).tiny)
        per_sample = -(batch.targets.near * chances.log()).sum(-1)
    risk = reduce_samples(per_sample, batch.targets, batch.weight, reduction)
    return risk + balance * _balance(logits, batch.targets) if balance else risk
