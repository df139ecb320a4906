"""What changes from step to step: how images are shown, the rate, and how much each term of the loss counts."""

from __future__ import annotations

from math import cos, pi
from typing import NamedTuple

import torch
from scipy.stats import beta
from torch import Tensor

from wcll.models.layers import counter_uniform, stream_keys
from wcll.training.recipe import Recipe
from wcll.training.views import DRAWS, view_of, without_square

RISE = 0.25  #: of the steps of "one-cycle", until the rate is at its height
LOW = 0.04  #: the part of the rate at which it begins
RAMP = 0.4  #: of all steps, until consistency counts in full: what a model says at first is not worth much
VIEWS, MIXES = 0, 1  #: layers of draws: those of views, and of shares of mixed images


class Now(NamedTuple):
    """A step's own numbers, each a tensor without axes."""

    rate: Tensor  #: what the rate is multiplied with
    kept: Tensor  #: the part of the average of weights that is kept
    consistency: Tensor  #: how much it counts
    share: Tensor  #: of the first image among two that are mixed


class Course:
    """The steps of a training, prepared epoch by epoch in the same memory, so that a recorded step finds them there.

    All is a function of (seed, step): where a training goes on makes no difference, nor what trains beside it.
    """

    def __init__(
        self,
        recipe: Recipe,
        seed: int,
        *,
        batch: int,
        steps: int,
        epochs: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Of ``steps`` steps an epoch, and so many epochs."""
        self.recipe, self.batch, self.steps, self.length = recipe, batch, steps, steps * epochs
        self.keys = stream_keys([seed], "augment").to(device)
        self.numbers = torch.zeros(steps, len(Now._fields), dtype=dtype, device=device)
        drawn = (steps, recipe.views, batch, DRAWS) if recipe.moves else (0,)
        self.drawn = torch.zeros(drawn, dtype=torch.float32, device=device)

    def prepare(self, epoch: int) -> None:
        """Draw for the steps of an epoch, counted from 0."""
        first = epoch * self.steps
        places = torch.arange(first, first + self.steps, device=self.keys.device)
        mixes = counter_uniform(self.keys, places, MIXES, 1).flatten().tolist() if self.recipe.mixup else []
        rows = [self._numbers(first + i, mixes[i] if mixes else None) for i in range(self.steps)]
        self.numbers.copy_(torch.tensor(rows, dtype=self.numbers.dtype))
        if self.recipe.moves:
            size = self.recipe.views * self.batch * DRAWS
            self.drawn.copy_(counter_uniform(self.keys, places, VIEWS, size).view(self.drawn.shape))

    def at(self, place: int | Tensor) -> Now:
        """The numbers of a step within the prepared epoch; a tensor of one place is looked up on its device."""
        row = self.numbers[place] if isinstance(place, int) else self.numbers.index_select(0, place)[0]
        return Now(*row.unbind())

    def images(self, x: Tensor, rows: Tensor, place: int | Tensor, view: int) -> Tensor:
        """A view of some of the images, as they are stored."""
        if not (self.recipe.crop or self.recipe.flip):
            return x[rows]
        return view_of(x, rows, self._drawn(place, view), crop=self.recipe.crop, flip=self.recipe.flip)

    def finished(self, numbers: Tensor, place: int | Tensor, view: int) -> Tensor:
        """What is done to a view once its pixels are numbers."""
        size = self.recipe.cutout
        return without_square(numbers, self._drawn(place, view), size) if size else numbers

    def _drawn(self, place: int | Tensor, view: int) -> Tensor:
        of_step = self.drawn[place] if isinstance(place, int) else self.drawn.index_select(0, place)[0]
        return of_step[view]

    def _numbers(self, step: int, chance: float | None) -> list[float]:
        recipe, done = self.recipe, min(step / max(self.length, 1), 1.0)
        kept = min(recipe.ema, (1 + step) / (10 + step))  # at first an average of few weights, or it would lag behind
        ramp = min(done / RAMP, 1.0) * recipe.consistency
        share = 1.0 if chance is None else float(beta.ppf(chance, recipe.mixup, recipe.mixup))
        return [rate_at(recipe.schedule, done), kept, ramp, max(share, 1 - share)]


def rate_at(schedule: str, done: float) -> float:
    """What the rate is multiplied with when a part of all steps is done.

    >>> [round(rate_at("one-cycle", done), 2) for done in (0, 0.25, 0.625, 1)]
    [0.04, 1.0, 0.5, 0.0]
    >>> rate_at("constant", 0.3), rate_at("cosine", 0.5)
    (1.0, 0.5)
    """
    if schedule == "constant":
        return 1.0
    if schedule == "one-cycle":
        if done < RISE:
            return LOW + (1 - LOW) * done / RISE
        done = (done - RISE) / (1 - RISE)
    return round((1 + cos(pi * done)) / 2, 12)
