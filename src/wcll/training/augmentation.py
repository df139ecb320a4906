"""Standardised channels and augmentation of images: random crops, flips and Cutout, on their device."""

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


DRAWS = 5  #: numbers that a view of one image takes: two moves, a mirror, two coordinates of a square


def view_of(x: Tensor, rows: Tensor, drawn: Tensor, *, crop: int, flip: bool) -> Tensor:
    """Some of the images (n, h, w) or (n, channels, h, w), each moved by up to ``crop`` pixels and perhaps mirrored.

    ``drawn`` are numbers in [0, 1), (batch, DRAWS). What comes in at an edge is the image itself, mirrored there.
    """
    height, width = x.shape[-2:]
    moved = torch.floor(drawn[:, :2] * (2 * crop + 1)).long() - crop
    down = _mirrored(torch.arange(height, device=x.device) + moved[:, :1], height)
    across = _mirrored(torch.arange(width, device=x.device) + moved[:, 1:2], width)
    if flip:
        across = torch.where(drawn[:, 2:3] < 0.5, across.flip(1), across)
    if x.ndim == 3:
        return x[rows[:, None, None], down[:, :, None], across[:, None, :]]
    channels = torch.arange(x.shape[1], device=x.device)[None, :, None, None]
    return x[rows[:, None, None, None], channels, down[:, None, :, None], across[:, None, None, :]]


def without_square(numbers: Tensor, drawn: Tensor, size: int) -> Tensor:
    """Images with a square of ``size`` pixels a side set to 0, its centre anywhere in the image."""
    height, width = numbers.shape[-2:]
    top = torch.floor(drawn[:, 3:4] * height).long() - size // 2
    left = torch.floor(drawn[:, 4:5] * width).long() - size // 2
    down, across = (torch.arange(n, device=numbers.device) for n in (height, width))
    inside = ((down >= top) & (down < top + size))[:, :, None] & ((across >= left) & (across < left + size))[:, None, :]
    return numbers.masked_fill(inside if numbers.ndim == 3 else inside.unsqueeze(1), 0.0)


def _mirrored(place: Tensor, size: int) -> Tensor:
    """Places beyond an edge, taken back into the image."""
    return (size - 1) - ((size - 1) - place.abs()).abs()
