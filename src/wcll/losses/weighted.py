"""WCLL, the paper's weighted loss, in each formulation; with a penalty; with adaptive weights."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from wcll._validation import choice, is_number, non_negative
from wcll.exceptions import InputError
from wcll.losses.registry import LOSSES, Base, Table1, base_gradient, base_loss, softmax
from wcll.losses.targets import Array, Labels, Reduction, Targets, apply_reduction, checked_per_class, prepare, present

PAPER = "Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023)"

Reading = Literal["algorithm1", "eq9", "eq12", "eq10"]


DEFAULT: Reading = "algorithm1"  #: what the paper prints to be run, and what does better on held-out labels


def factors(logits: Tensor, targets: Targets, weight: Tensor, pi: Tensor | None, reading: Reading) -> Tensor:
    """What multiplies :math:`\\ell_j(x_i)` in the sum over samples: (..., n, k)."""
    others = logits.shape[-1] - 1
    if reading == "eq9":
        pairs = targets.pairs(logits, weight)
        return pairs.sum(-1, keepdim=True) - others * pairs
    if reading == "eq10":
        pairs, scale = targets.pairs(logits, None), weight
    elif pi is None:
        raise InputError("pi", f"the shares of Eq. 7, which reading {reading!r} needs", None)
    elif reading == "eq12":
        pairs, scale = targets.pairs(logits, pi), weight
    else:
        pairs, scale = targets.class_pairs(logits, None, weight.new_ones(logits.shape[-1])), weight * pi
    return scale.unsqueeze(-2) * (pairs.sum(-1, keepdim=True) - others * pairs)


def risk_factors(logits: Tensor, targets: Targets, weight: Tensor, pi: Tensor | None, reading: Reading) -> Tensor:
    """The same for the mean: summed over samples, :math:`\\ell_j` times these is the partial risk of class j."""
    found = factors(logits, targets, weight, pi, reading)
    return found if reading == "algorithm1" else found / len(targets)


def needed(weight: Tensor | None, loss: str) -> Tensor:
    """The weights, without which there is no weighted loss."""
    if weight is None:
        raise InputError("weight", f"a value, which loss {loss!r} needs", None)
    return weight


def weighted_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor,
    pi: Tensor | None = None,
    reading: Reading = DEFAULT,
    base: Base = "ce",
) -> Tensor:
    """As the loss is linear in the base losses, so is its gradient in theirs."""
    return base_gradient(base, logits, p, risk_factors(logits, targets, weight, pi, reading))


@LOSSES.add(
    "wcll",
    title="WCLL",
    paper=PAPER,
    equation="Algorithm 1 (default), Eq. 9, Eq. 12, Eq. 10",
    several=True,
    table1=Table1(class_imbalance=True),
    recorded_defaults={"reading": "eq9"},
    gradient=weighted_gradient,
)
def wcll(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array,
    pi: Array | None = None,
    reading: Reading = DEFAULT,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The paper's weighted loss, with weights :math:`\omega` of Eq. 13.

    ``"algorithm1"``, what the paper prints to be run:
    :math:`\sum_k m_k\bigl[-(K-1)\,\omega_k \pi_k \ell_k + \sum_j \omega_j \pi_j \ell_j\bigr]` with batch means
    :math:`m_k` over samples labelled k (Algorithm 1 of [1]_). The paper's other statements differ from it and from one
    another:

    - ``"eq9"``: :math:`\frac1n \sum_i \omega_{\bar y_i} \bigl[-(K-1)\,\ell_{\bar y_i} + \sum_k \ell_k\bigr]`, one
      weight a sample; equal to ``"algorithm1"`` on a full batch if pi is its own marginal and the weights are
      :math:`\propto 1/\pi`.
    - ``"eq10"``: :math:`\frac1n \sum_i \bigl[-(K-1)\,\omega_{\bar y_i} \ell_{\bar y_i} + \sum_j \omega_j \ell_j\bigr]`.
    - ``"eq12"``: Eq. 10's bracket times :math:`\pi_{\bar y_i}`.

    For labels of the inverse-size selector and the declared :math:`\pi` of Eq. 7, Eq. 9 is an unbiased estimator:

    .. math:: E[\omega_{\bar y} \bar\ell \mid y] = \frac{c\,(K-1)}{1 - \pi_y}\, \ell_y,\quad
              c = 1 / \textstyle\sum_i (1/\pi_i) .

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
        Which of the paper's statements. The default is the one that is ahead where rates and epochs are chosen by
        held-out complementary labels (``docs/reproduction.md``).
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean", "sum", "none"}
        Over the samples of each run; only the mean with ``"algorithm1"``.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    The weights take out the bias of the inverse-size selector and of no other; with weights from the observed shares of
    the labels in place of the declared :math:`\pi` the estimate is biased, and the more so the stronger the imbalance.
    Labels of a known Q are served by :func:`forward`, without weights. With cross-entropy the loss has no lower bound,
    as :func:`free`; :func:`wcll_penalty` gives it one. :func:`wcll_adaptive` takes the weights from the model.

    References
    ----------
    .. [1] Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import wcll
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> wcll(logits, torch.tensor([1, 0]), weight=[0.8, 1.1, 1.1], pi=[0.5, 0.25, 0.25])
    tensor(0.0535)
    >>> wcll(logits, torch.tensor([1, 0]), weight=[0.8, 1.1, 1.1], reading="eq9")
    tensor(0.3523)
    """
    choice("reading", reading, get_args(Reading))
    batch = prepare(logits, ybar, weight, reduction, means="wcll (algorithm1)" if reading == "algorithm1" else None)
    shares = checked_per_class("pi", pi, logits, ybar)
    found = factors(logits, batch.targets, needed(batch.weight, "wcll"), shares, reading)
    per_sample = (found * base_loss(base)(logits)).sum(-1)
    return per_sample.sum(-1) if reading == "algorithm1" else apply_reduction(per_sample, reduction)


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


def _followed(p: Tensor, targets: Targets, weight: Tensor, mix: float) -> Tensor:
    """The weights, moved towards the mean of the probabilities p over the batch, their sum kept; (..., k)."""
    if targets.sample_weight is None:
        balance = p.mean(-2)
    else:
        counted = targets.sample_weight.unsqueeze(-1)
        balance = (counted * p).sum(-2) / present(counted.sum(-2))
    return (1 - mix) * weight + mix * weight.sum(-1, keepdim=True) * balance


def _adaptive_gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor, mix: float = 0.5, base: Base = "ce"
) -> Tensor:
    """That of Eq. 9 with these weights."""
    held = _followed(p, targets, weight, mix)
    return weighted_gradient(logits, p, targets, weight=held, reading="eq9", base=base)


@LOSSES.add(
    "wcll-adaptive",
    title="WCLL-adaptive",
    paper=PAPER,
    equation="future work: dynamic weights, in Eq. 9",
    several=True,
    held=True,
    gradient=_adaptive_gradient,
)
def wcll_adaptive(
    logits: Tensor,
    ybar: Labels,
    *,
    weight: Array,
    mix: float = 0.5,
    base: Base = "ce",
    reduction: Reduction = "mean",
) -> Tensor:
    r"""WCLL whose weights follow the class balance that the model estimates while it learns.

    Eqs. 7 and 13 of [1]_ together say that the weight of a label is the share of the class that it names:
    :math:`\pi_j \propto 1/\alpha_j` and :math:`\omega_j \propto 1/\pi_j` make :math:`\omega_j \propto \alpha_j`. Here
    the model has its say in that share, in every batch anew: Eq. 9 is taken with

    .. math:: \omega'_j = (1 - \mu)\, \omega_j + \mu\, \hat\alpha_j \textstyle\sum_k \omega_k,\quad
              \hat\alpha_j = \frac1n \sum_i p_j(x_i)

    in place of :math:`\omega_j`, where p is the softmax of the outputs, :math:`\omega` are the given weights and
    :math:`\mu` is ``mix``.

    Parameters
    ----------
    logits : tensor of shape (..., n, k)
        The model's outputs f; leading axes are runs.
    ybar : tensor or Targets
        Class indices of shape (..., n), or a boolean mask of shape (..., n, k); the loss of a set is the mean over its
        labels.
    weight : array of shape (..., k)
        :math:`\omega`, see :func:`wcll.labels.class_weights`: what the weights are before the model has learnt
        anything, and what keeps them above 0.
    mix : float
        :math:`\mu`, from 0 (:func:`wcll` by Eq. 9) to 1 (the model alone).
    base : str or callable
        The ordinary loss: ``ce``, ``mae``, ``mse``, ``gce``, ``phuber``, ``symmetric``, or a function of logits to
        losses a class, both of shape (..., n, k).
    reduction : {"mean", "sum", "none"}
        Over the samples of each run; the weights are those of the batch in all three.

    Returns
    -------
    tensor
        One loss per run, (...); (..., n) with ``reduction="none"``.

    Notes
    -----
    What is estimated is the balance of the ordinary classes in the training set, by the batch's mean prediction: good
    if the model is calibrated in the mean, and as noisy as a mean of n numbers. If it is right, and labels follow the
    inverse-size selector, the weights are Eq. 13's for the class sizes, which nobody had to declare, and Eq. 9 is
    unbiased. It corrects itself: labels that name a class that is predicted too seldom count less, and they are what
    pushes its probability down. For other selectors it is as wrong as :func:`wcll`.

    The weights are held still in the gradient. They say how much a label counts, which is not to be learnt from the
    loss: as its bracket is negative where the model has ruled a label out, a gradient through the weights would
    raise the predicted share of classes only because that makes negative terms larger. So the gradient is not the
    derivative of the value, and values of different steps have different weights.

    In Algorithm 1 weights and shares meet as :math:`\omega_j \pi_j`, which is constant if both follow the model: there
    would be nothing to adapt. Only :math:`\omega` following would count the risk of a class less where it is predicted
    too seldom, the opposite of what is wanted.

    References
    ----------
    .. [1] Wei, Zhou, Li, Xu: Class-imbalanced complementary-label learning via weighted loss (Neural Networks 2023).

    Examples
    --------
    >>> import torch
    >>> from wcll.functional import wcll, wcll_adaptive
    >>> logits, ybar = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([1, 0])
    >>> wcll_adaptive(logits, ybar, weight=[0.8, 1.1, 1.1])
    tensor(0.4113)
    >>> wcll_adaptive(logits, ybar, weight=[0.8, 1.1, 1.1], mix=0.0) == wcll(
    ...     logits, ybar, weight=[0.8, 1.1, 1.1], reading="eq9"
    ... )
    tensor(True)
    """
    if not is_number(mix) or not 0 <= mix <= 1:
        raise InputError("mix", "a number from 0 to 1", mix)
    batch = prepare(logits, ybar, weight, reduction)
    held = _followed(softmax(logits.detach()), batch.targets, needed(batch.weight, "wcll-adaptive"), mix)
    return wcll(logits, batch.targets, weight=held, reading="eq9", base=base, reduction=reduction)
