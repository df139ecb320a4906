"""Pairwise comparison (PC)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from wcll._validation import choice
from wcll.losses.arguments import Array, Labels, prepare
from wcll.losses.spec import LOSSES, Table1
from wcll.losses.targets import Reduction, Targets, reduce_samples, sample_factor


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
