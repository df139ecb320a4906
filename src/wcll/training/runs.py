"""What engines are given: runs that share data, their losses, and what all runs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import log
from typing import Any

import torch
from torch import Tensor

from wcll.exceptions import InputError
from wcll.losses import Context, LossSpec, Targets
from wcll.losses.forward import BALANCE
from wcll.models.base import Family, ModelChoice, RunStack, Turns, build_model, family_of
from wcll.training.device import all_finite
from wcll.training.feed import Feed
from wcll.training.recipe import PLAIN, Recipe
from wcll.training.standard import Standard

Loss = Callable[[Tensor, Targets], Tensor]
Gradient = Callable[[Tensor, Tensor, Targets], Tensor]

TRIED, TRIES = 12, 3  #: samples, and draws of their logits, by which a loss shows whether it uses sample weights
SAME = 1e-5  #: the relative difference of two losses that is only rounding


@dataclass(frozen=True)
class RunLoss:
    """Consecutive runs that share a loss."""

    spec: LossSpec
    options: tuple[tuple[str, Any], ...]
    context: Context
    start: int
    stop: int
    early: RunLoss | None = None  #: what takes its place in the first epochs
    warm_up: float = 0  #: how many these are
    own_labels: bool = False  #: whether labels of near samples are left out, though targets have them

    def at(self, epoch: float) -> RunLoss:
        """The loss of these runs in an epoch, counted from 0; within one that is streamed, at a part of it."""
        early = self.early if epoch < self.warm_up else None
        return early or replace(self, early=None, warm_up=0)

    def after(self, warm_up: float, told: Context, balance: float = BALANCE) -> RunLoss:
        """The same after some epochs in which it is told something else, and no class is given up, if it knows how."""
        kept = {"balance": balance} if balance and "balance" in self.spec.options else {}
        early = replace(self, context=told, options=tuple({**dict(self.options), **kept}.items()))
        return replace(self, early=early, warm_up=warm_up)

    def value(self, context: Context) -> Loss:
        """The loss as a function of logits (..., runs, n, k) and targets, told ``context``."""
        loss = self.spec.bind(context, **dict(self.options))
        return (lambda logits, targets: loss(logits, targets.own())) if self.own_labels else loss

    def gradient(self, context: Context) -> Gradient:
        """Its gradient as a function of logits, their softmax, and targets."""
        slope = self.spec.bind_gradient(context, **dict(self.options))
        return (lambda logits, p, targets: slope(logits, p, targets.own())) if self.own_labels else slope

    def uses_sample_weights(self, like: Tensor, *, sets: bool) -> bool:
        """Return whether the loss of made-up samples depends on their weights; ``sets``: labels come as sets.

        A loss that fails on them is taken to use weights: training will show what is wrong with it.
        """
        loss, k = self.value(self.context), like.shape[-1]
        rows = torch.arange(TRIED, device=like.device)
        labels = rows % 2  # few classes: a mean over a class of one sample does not depend on its weight
        ybar = labels.unsqueeze(-1) == torch.arange(k, device=like.device) if sets else labels
        weights = (torch.ones(TRIED), torch.linspace(0.5, 1.5, TRIED))
        targets = [Targets.of(ybar, k, weight.to(like)) for weight in weights]
        try:
            for seed in range(TRIES):
                draw = torch.randn(1, TRIED, k, generator=torch.Generator().manual_seed(seed))
                draw[..., :2] += log(k) + 1  # else the losses of samples are nearly equal where classes are many
                found = []
                for some in targets:
                    with Turns(seed, like.device).turn(), torch.no_grad():  # the loss may draw, too
                        found.append(loss(draw.to(like), some))
                equal, weighted = found
                if not bool(torch.isclose(equal, weighted, rtol=SAME, atol=0).all()):
                    return True
        except Exception:
            return True
        return False


@dataclass(frozen=True)
class RunGroup:
    """Runs that share data: samples, labels, initial weights and the order of batches."""

    x: Tensor  #: (n, ...) as stored: bytes or numbers; the place for some, if they are streamed
    targets: Targets  #: of all samples: one label or several, and weights, if samples have some
    seed: int
    rates: Sequence[float]  #: one a run
    losses: Sequence[RunLoss]
    standard: Standard | None = None  #: how images are normalised, if they are

    def head(self, n: int | None) -> RunGroup:
        """The same with the first samples only; what losses are told stays, and how images are normalised."""
        return replace(self, x=self.x[:n], targets=self.targets[slice(n)])

    def streamed(self, feed: Feed) -> RunGroup:
        """Return the same for samples that come from elsewhere."""
        x, targets = feed.place
        return replace(self, x=x, targets=targets)

    @property
    def ordinary(self) -> bool:
        """Whether targets are true classes, of which none is ruled out."""
        return all(loss.spec.labels == "ordinary" for loss in self.losses)

    def at(self, epoch: float) -> RunGroup:
        """The same with losses as they are in an epoch, counted from 0."""
        return replace(self, losses=[loss.at(epoch) for loss in self.losses])


@dataclass(frozen=True)
class Training:
    """What all runs share."""

    model: ModelChoice
    n_classes: int
    scale: float  #: samples are divided by it
    batch_size: int
    weight_decay: float
    dtype: torch.dtype
    device: torch.device
    epochs: int = 1  #: how long it will be: schedules end with it, and long trainings are worth more preparation
    recipe: Recipe = PLAIN  #: how they are trained beside all this
    planned: int = 0  #: epochs of runs such as these, of this training and of those that will follow it, if known
    feed: Feed | None = None  #: where the samples of the one group come from, if they are not kept
    mean_losses: bool = False  #: whether losses are averaged over every epoch, which takes some time
    turn: Callable[[], AbstractContextManager[None]] = nullcontext  #: around every step of what may draw as it likes

    @property
    def family(self) -> Family:
        """The kind of model, which decides who can train it."""
        return family_of(self.model)

    @property
    def like(self) -> Tensor:
        """No logits, of the dtype and on the device of those to come."""
        return torch.empty(0, self.n_classes, dtype=self.dtype, device=self.device)

    def build(self, x: Tensor, seeds: Sequence[int]) -> RunStack:
        """New models of these seeds for samples such as ``x``."""
        return build_model(self.model, tuple(x.shape[1:]), self.n_classes, seeds, self.dtype).to(self.device)

    def numbers(self, x: Tensor) -> Tensor:
        """Samples as the model takes them; numbers that the precision cannot hold are an error."""
        numbers = x.to(self.device, self.dtype) / self.scale
        if x.is_floating_point() and not all_finite(numbers):
            largest = f"{float(x.abs().max()):g}"
            raise InputError("dataset", f"numbers that {self.dtype} can hold", largest, "scale them")
        return numbers
