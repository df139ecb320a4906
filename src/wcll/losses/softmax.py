"""Softmax over classes, whichever way the logits lie in memory."""

from __future__ import annotations

from torch import Tensor


def softmax(logits: Tensor) -> Tensor:
    """softmax(f) over the last axis; fast also where samples, not classes, are neighbours in memory.

    torch is slow along a short last axis, and slower still if it has to copy: logits that are a transposed view
    (..., k, n).mT are handled as they lie.
    """
    return logits.mT.softmax(-2).mT if _transposed(logits) else logits.softmax(-1)


def log_softmax(logits: Tensor) -> Tensor:
    """log softmax(f), likewise."""
    return logits.mT.log_softmax(-2).mT if _transposed(logits) else logits.log_softmax(-1)


def _transposed(logits: Tensor) -> bool:
    return logits.stride(-2) == 1 and logits.shape[-1] > 1 and logits.stride(-1) != 1
