"""WCLL: the weighted complementary loss of the paper, in each of its readings."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

from wcll._validation import choice
from wcll.exceptions import InputError
from wcll.losses.arguments import Array, Labels, checked_per_class, prepare
from wcll.losses.base_losses import Base, base_gradient, base_loss
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets, apply_reduction

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
