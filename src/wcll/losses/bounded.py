"""Losses for sets of complementary labels: bounded base losses and upper bounds of the absolute error."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from wcll.losses import base_losses
from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.modules import LossModule
from wcll.losses.risks import risk_gradient
from wcll.losses.softmax import softmax
from wcll.losses.spec import LOSSES
from wcll.losses.targets import Reduction, Targets, reduce_samples, sample_factor
from wcll.losses.unbiased import free

PAPER = "Feng, Kaneko, Han, Niu, An, Sugiyama: Learning with multiple complementary labels (ICML 2020)"
ESTIMATOR = "Eqs. 8-11"
FAR = 1e30  # no logit comes near


def _scale(logits: Tensor, targets: Targets) -> Tensor | float:
    """(K - 1) / s, (..., n); one number where all samples have one label."""
    others = logits.shape[-1] - 1
    return others if targets.index is not None else others / targets.size.to(logits.dtype)


def _of_samples(scale: Tensor | float) -> Tensor | float:
    return scale.unsqueeze(-1) if isinstance(scale, Tensor) else scale


def _remaining(logits: Tensor, targets: Targets) -> Tensor:
    """log of the probability that the labels leave: log sum_{j not named} p_j, (..., n)."""
    return logits.masked_fill(targets.mask, -torch.inf).logsumexp(-1) - logits.logsumexp(-1)


def _log_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """The softmax over all classes less the one over those that are left."""
    left = softmax(logits - FAR * targets.share(logits))  # as good as minus infinity, and faster to fill in
    scale = _of_samples(_scale(logits, targets)) * sample_factor(logits, targets, weight)
    return scale * (p - left)


def _exp_gradient(logits: Tensor, p: Tensor, targets: Targets, *, weight: Tensor | None = None) -> Tensor:
    """With P the probability that is left: e^-P p_j (P - [j is left])."""
    left = p.masked_fill(targets.mask, 0.0)
    total = left.sum(-1, keepdim=True)
    scale = _of_samples(_scale(logits, targets)) * sample_factor(logits, targets, weight)
    return scale * torch.exp(-total) * (p * total - left)


_mae_gradient = partial(risk_gradient, base=base_losses.mae)


@LOSSES.add("log", title="LOG", paper=PAPER, equation="Section 4.3", several=True, gradient=_log_gradient)
def log(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Upper bound of the absolute error: :math:`-\frac{K-1}{s} \log \sum_{j \notin \bar Y} p_j`.

    In log-sum-exp form, so that it stays finite where the model is most wrong.
    """
    batch = prepare(logits, ybar, weight, reduction)
    per_sample = -_scale(logits, batch.targets) * _remaining(logits, batch.targets)
    return reduce_samples(per_sample, batch.targets, batch.weight, reduction)


class LOGLoss(LossModule):
    spec = LOSSES["log"]


@LOSSES.add("exp", title="EXP", paper=PAPER, equation="Section 4.3", several=True, gradient=_exp_gradient)
def exp(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Upper bound of the absolute error: :math:`\frac{K-1}{s} \exp(-\sum_{j \notin \bar Y} p_j)`."""
    batch = prepare(logits, ybar, weight, reduction)
    per_sample = _scale(logits, batch.targets) * torch.exp(-_remaining(logits, batch.targets).exp())
    return reduce_samples(per_sample, batch.targets, batch.weight, reduction)


class EXPLoss(LossModule):
    spec = LOSSES["exp"]


@LOSSES.add("mae", title="MAE", paper=PAPER, equation=ESTIMATOR, several=True, gradient=_mae_gradient)
def mae(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""Unbiased estimator for label sets with the absolute error.

    .. math:: \sum_{j \notin \bar Y} \ell_j - \frac{K-s-1}{s} \sum_{j \in \bar Y} \ell_j,\quad \ell_j = 2 (1 - p_j)
    """
    return free(logits, ybar, weight=weight, base=base_losses.mae, reduction=reduction)


class MAELoss(LossModule):
    spec = LOSSES["mae"]


@LOSSES.add("mse", title="MSE", paper=PAPER, equation=ESTIMATOR, several=True)
def mse(logits: Tensor, ybar: Labels, *, weight: Array | None = None, reduction: Reduction = "mean") -> Tensor:
    r"""As :func:`mae`, with the squared error :math:`\ell_j = 1 - 2 p_j + \sum_i p_i^2`."""
    return free(logits, ybar, weight=weight, base=base_losses.mse, reduction=reduction)


class MSELoss(LossModule):
    spec = LOSSES["mse"]


@LOSSES.add("gce", title="GCE", paper=PAPER, equation=ESTIMATOR, several=True)
def gce(
    logits: Tensor, ybar: Labels, *, weight: Array | None = None, q: float = 0.7, reduction: Reduction = "mean"
) -> Tensor:
    r"""As :func:`mae`, with the generalised cross-entropy :math:`\ell_j = (1 - p_j^q) / q`."""
    return free(logits, ybar, weight=weight, base=partial(base_losses.gce, q=q), reduction=reduction)


class GCELoss(LossModule):
    spec = LOSSES["gce"]


@LOSSES.add("phuber", title="PHuber", paper=PAPER, equation=ESTIMATOR, several=True)
def phuber(
    logits: Tensor, ybar: Labels, *, weight: Array | None = None, tau: float = 10.0, reduction: Reduction = "mean"
) -> Tensor:
    r"""As :func:`mae`, with the cross-entropy made linear where :math:`p_j \le 1/\tau`."""
    return free(logits, ybar, weight=weight, base=partial(base_losses.phuber, tau=tau), reduction=reduction)


class PHuberLoss(LossModule):
    spec = LOSSES["phuber"]
