"""WCLL whose partial risks pay for being negative: the penalty that the paper leaves to future work."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from wcll._validation import choice, is_number, non_negative
from wcll.exceptions import InputError
from wcll.losses.arguments import Array, Labels, checked_per_class, prepare
from wcll.losses.base_losses import Base, base_gradient, base_loss
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets
from wcll.losses.weighted import DEFAULT, PAPER, Reading, needed, risk_factors


def _penalty_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor,
    pi: Tensor | None = None,
    reading: Reading = DEFAULT,
    strength: float = 1.0,
    power: float = 1.0,
    bound: float = 0.0,
    base: Base = "ce",
) -> Tensor:
    """Each partial risk's gradient, less what the penalty's slope takes off where the risk is too low."""
    factors = risk_factors(logits, targets, weight, pi, reading)
    below = -bound - (factors * base_loss(base)(logits)).sum(-2, keepdim=True)
    slope = torch.where(below > 0, strength * power * below.relu() ** (power - 1), 0.0)
    return base_gradient(base, logits, p, factors * (1 - slope))


@LOSSES.add(
    "wcll-penalty",
    title="WCLL-penalty",
    paper=PAPER,
    equation="future work: a penalty on the negative term",
    several=True,
    gradient=_penalty_gradient,
)
def wcll_penalty(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array,
    pi: Array | None = None,
    reading: Reading = DEFAULT,
    strength: float = 1.0,
    power: float = 1.0,
    bound: float = 0.0,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""WCLL with a penalty on partial risks that are negative: non-negative, absolute-value and bounded forms in one.

    :func:`wcll` is a sum over the ordinary classes j of partial risks :math:`R_j`, all that it has of :math:`\ell_j`:
    in Eq. 9 of [1]_ :math:`R_j = \frac1n \sum_i \omega_{\bar y_i} (1 - (K-1) [\bar y_i = j])\, \ell_j(x_i)`, in
    Algorithm 1 :math:`R_j = \omega_j \pi_j \sum_k m_k\bigl[(1 - (K-1) [k = j])\, \ell_j\bigr]`. What they estimate is
    never negative; the term with :math:`-(K-1)` makes estimates negative that a model has overfitted. They pay for it:

    .. math:: \sum_j R_j + \lambda \max(0, -b - R_j)^q

    with the ``strength`` :math:`\lambda`, the ``power`` q and the ``bound`` b. Cases of it are known by name:

    - :math:`\lambda = 1, q = 1` (default): :math:`\sum_j \max(R_j, -b)`, non-negative if b is 0 [2]_, else bounded from
      below: a risk that is too low is left alone.
    - :math:`\lambda = 2, q = 1`: :math:`\sum_j |R_j + b| - b`, for b = 0 the absolute value [3]_, else flooding at the
      level -b [4]_: a step climbs out of a risk that is too low, and goes on with the others.
    - :math:`q = 2`: a penalty that grows with the depth, without a kink.
    - :math:`\lambda = 0`: :func:`wcll`.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k); the loss of a set is the mean over its
        labels.
    weight : array of shape (..., k)
        :math:`\omega`, see :func:`wcll.labels.class_weights`.
    pi : array of shape (..., k), optional
        The shares of Eq. 7, required by ``"algorithm1"`` and ``"eq12"``.
    reading : {"algorithm1", "eq9", "eq12", "eq10"}
        Which of the paper's statements, as in :func:`wcll`.
    strength : float
        :math:`\lambda`, from 0: the price of a negative risk.
    power : float
        q, from 1: how the price grows with the depth.
    bound : float
        b, from 0: how far below 0 a partial risk may fall free of charge.
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean"}
        No other: the penalty is one on sums over the batch, which no single sample has.

    Returns
    -------
    tensor
        One loss per run, (...).

    Notes
    -----
    Where Eq. 9 is unbiased (see :func:`wcll`), :math:`E[R_j] = c\,(K-1)\, P(y{=}j)\, E[\ell_j \mid y{=}j] / (1 -
    \pi_j) \ge 0`. The penalty makes it biased upwards, by what the risks of batches fall below -b by chance.

    By Algorithm 1 an untrained model has no negative risk in a batch in which every label occurs, as its class means
    count alike. By Eq. 9 it has one for every label that is a little too frequent in the batch, as :func:`nn` without
    its marginal: the penalty then acts on noise from the first step. The loss is bounded from below, unless
    :math:`\lambda` is 0, or q is 1 and :math:`\lambda < 1`.

    References
    ----------
    .. [1] Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023).
    .. [2] Ishida, Niu, Menon, Sugiyama: Complementary-label learning for arbitrary losses and models (ICML 2019).
    .. [3] Lu, Zhang, Niu, Sugiyama: Mitigating overfitting in supervised classification from two unlabeled datasets
       (AISTATS 2020).
    .. [4] Ishida, Yamane, Sakai, Niu, Sugiyama: Do we need zero training loss after achieving zero training error?
       (ICML 2020).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import wcll, wcll_penalty
    >>> logits, ybar = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([1, 0])
    >>> given = {"weight": [0.8, 1.1, 1.1], "pi": [0.5, 0.25, 0.25]}
    >>> wcll(logits, ybar, **given)
    tensor(0.0535)
    >>> wcll_penalty(logits, ybar, **given)
    tensor(0.7675)
    >>> wcll_penalty(logits, ybar, **given, strength=2.0)
    tensor(1.4815)
    """
    choice("reading", reading, get_args(Reading))
    non_negative("strength", strength)
    non_negative("bound", bound)
    if not is_number(power) or power < 1:
        raise InputError("power", "a number from 1", power)
    batch = prepare(logits, ybar, weight, reduction, means="wcll-penalty")
    shares = checked_per_class("pi", pi, logits, ybar)
    factors = risk_factors(logits, batch.targets, needed(batch.weight, "wcll-penalty"), shares, reading)
    risks = (factors * base_loss(base)(logits)).sum(-2)
    return (risks + strength * (-bound - risks).relu() ** power).sum(-1)
