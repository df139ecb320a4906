"""Likelihood of the complementary label under a transition matrix."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from wcll.losses.arguments import Array, Labels, Transition, as_transition, prepare
from wcll.losses.modules import LossModule
from wcll.losses.softmax import softmax
from wcll.losses.spec import LOSSES, Table1, autograd
from wcll.losses.targets import Reduction, Targets, reduce_pairs, reduce_samples, sample_factor


def _gradient(
    logits: Tensor, p: Tensor, targets: Targets, *, transition: Transition, weight: Tensor | None = None
) -> Tensor:
    """The softmax less the posterior of y given the label: softmax(f) - softmax(f + log Q[:, ybar])."""
    if targets.index is None:
        return autograd(partial(forward, transition=transition, weight=weight))(logits, p, targets)
    posterior = softmax(logits + _log_likelihood(transition, targets.index))
    return sample_factor(logits, targets, weight) * (p - posterior)


def _log_likelihood(transition: Transition, index: Tensor) -> Tensor:
    """log Q[y, ybar] for the labels ``index`` (..., n) and all y: (..., n, k)."""
    by_label = transition.log.mT  # [ybar, y]; log 0 = -inf is fine
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
    table1=Table1(complementary_labels=True, any_loss=False, any_model=False, class_imbalance=False),
    gradient=_gradient,
)
def forward(
    logits: Tensor,
    ybar: Labels,
    *,
    transition: Array | Transition,
    weight: Array | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Forward correction: fit :math:`Q^\top \mathrm{softmax}(f)` to the complementary labels.

    .. math:: -\log \sum_y p_y\, Q_{y \bar y} = -\mathrm{lse}_y(\log p_y + \log Q_{y\bar y})

    The loss of a label set is the mean over its labels. Parameters as for :func:`wcll.functional.free`, with
    ``transition`` required; it need not be invertible.
    """
    batch = prepare(logits, ybar, weight, reduction)
    log_p = logits.log_softmax(-1)
    prepared = as_transition(transition, logits)
    if batch.targets.index is not None:
        per_sample = -torch.logsumexp(log_p + _log_likelihood(prepared, batch.targets.index), -1)
        return reduce_samples(per_sample, batch.targets, batch.weight, reduction)
    log_q = prepared.log.mT.unsqueeze(-3).masked_fill(~batch.targets.mask.unsqueeze(-1), 0.0)  # labels not named: lse 0
    per_label = -torch.logsumexp(log_p.unsqueeze(-2) + log_q, -1)
    return reduce_pairs(per_label, batch.targets, batch.weight, reduction)


class ForwardLoss(LossModule):
    spec = LOSSES["forward"]
