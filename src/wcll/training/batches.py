"""The order in which training sees its samples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from wcll._random import stream


def batches(n: int, batch_size: int, *, seed: int, epoch: int) -> Iterator[Tensor]:
    """Indices of one epoch's batches, shuffled by the stream ``batches`` of (seed, epoch).

    The last incomplete batch is dropped, so that every step averages the same number of samples; fewer samples than
    ``batch_size`` are one batch.
    """
    order = torch.from_numpy(stream(seed, "batches", epoch).permutation(n))
    size = min(batch_size, n)
    for start in range(0, n - size + 1, size):
        yield order[start : start + size]
