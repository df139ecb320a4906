"""WCLL with weights that follow the model: the dynamic weights that the paper leaves to future work."""

from __future__ import annotations

from torch import Tensor

from wcll._validation import is_number
from wcll.exceptions import InputError
from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.base_losses import Base
from wcll.losses.softmax import softmax
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets, present
from wcll.losses.weighted import PAPER, needed, wcll, weighted_gradient


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
