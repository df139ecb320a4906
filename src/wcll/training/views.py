"""Views of images: moved, mirrored, with a square left out, on the device where they lie."""

from __future__ import annotations

import torch
from torch import Tensor

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
