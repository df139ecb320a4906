"""Images whose channels have mean 0 and standard deviation 1 over the samples that a model learns from."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor


@dataclass(frozen=True)
class Standard:
    """What is taken off every channel of images, and what it is divided by then: shapes (channels, 1, 1)."""

    mean: Tensor
    std: Tensor

    @staticmethod
    def of(x: Tensor, scale: float) -> Standard:
        """Of images (n, h, w) or (n, channels, h, w) that are divided by ``scale``; a constant channel becomes 0."""
        channels = [x] if x.ndim == 3 else list(x.unbind(1))
        found = torch.tensor([_mean_and_std(channel.reshape(-1)) for channel in channels], dtype=torch.float64) / scale
        mean, std = found.view(-1, 2, 1, 1).unbind(1)
        return Standard(mean, torch.where(std > 0, std, 1.0))

    def to(self, device: torch.device, dtype: torch.dtype) -> Standard:
        """The same where it is needed."""
        return Standard(self.mean.to(device, dtype), self.std.to(device, dtype))

    def __call__(self, numbers: Tensor) -> Tensor:
        """Images, as numbers that were divided by the scale."""
        return (numbers - self.mean) / self.std


def _mean_and_std(values: Tensor) -> tuple[float, float]:
    """Of many values; those of bytes are exact, whatever number of threads counts them."""
    if values.dtype != torch.uint8:
        std, mean = torch.std_mean(values.double(), correction=0)
        return float(mean), float(std)
    counts: list[int] = torch.bincount(values, minlength=256).tolist()
    n, total = len(values), sum(value * count for value, count in enumerate(counts))
    squares = sum(value * value * count for value, count in enumerate(counts))
    return total / n, sqrt(n * squares - total * total) / n
