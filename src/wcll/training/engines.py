"""How runs are trained: a plain loop that works for all, and faster ways for those that allow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wcll.checks import InputError
from wcll.losses import Context, LossSpec, Targets
from wcll.models import MODELS, RunStack, build_model
from wcll.training.loop import LossGroup, Trainer, predict_logits
from wcll.training.optim import RunAdam


def evaluated_at_once(model: str) -> int:
    """Samples that are predicted at a time: fewer where a sample's activations are large."""
    return 4096 if MODELS[model].exact else 512


@dataclass(frozen=True)
class RunLoss:
    """Consecutive runs that share a loss."""

    spec: LossSpec
    options: tuple[tuple[str, Any], ...]
    context: Context
    start: int
    stop: int


@dataclass(frozen=True)
class RunGroup:
    """Runs that share data: samples, labels, initial weights and the order of batches."""

    x: Tensor  #: (n, ...) as stored: bytes or numbers
    labels: Tensor  #: (n,)
    seed: int
    rates: Sequence[float]  #: one a run
    losses: Sequence[RunLoss]


@dataclass(frozen=True)
class Training:
    """What all runs share."""

    model: dict[str, Any]
    n_classes: int
    scale: float  #: samples are divided by it
    batch_size: int
    weight_decay: float
    dtype: torch.dtype
    device: torch.device
    epochs: int = 1  #: how long it will be: long trainings are worth more preparation

    def numbers(self, x: Tensor) -> Tensor:
        """Samples as the model takes them; numbers that the precision cannot hold are an error."""
        numbers = x.to(self.device, self.dtype) / self.scale
        if x.is_floating_point() and not bool(numbers.isfinite().all()):
            largest = f"{float(x.abs().max()):g}"
            raise InputError("dataset", f"numbers that {self.dtype} can hold", largest, "scale them")
        return numbers


def _class_type(n_classes: int) -> torch.dtype:
    return torch.uint8 if n_classes <= 256 else torch.int32


class Engine(ABC):
    """Groups of runs that are trained in step; a result of one group or run does not depend on the others."""

    n_classes: int
    evaluated: int  #: samples that are predicted at a time

    @abstractmethod
    def run_epoch(self) -> None:
        """One pass over the data."""

    @abstractmethod
    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""

    @abstractmethod
    def prepare(self, x: Tensor) -> Tensor:
        """Samples put where :meth:`predict` wants them, once."""

    @abstractmethod
    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""

    def classify(self, group: int, prepared: Tensor) -> Tensor:
        """Predicted classes of prepared samples, (runs, n), in one byte each if they fit."""
        parts = [self.predict(group, part).argmax(-1) for part in torch.split(prepared, self.evaluated)]
        return torch.cat([part.to(_class_type(self.n_classes)) for part in parts], dim=-1)

    @abstractmethod
    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters of a group by name, (runs, ...)."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """All that training goes on from."""

    @abstractmethod
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""


class PlainLoop(Engine):
    """Stacks of runs, one after another, with autograd: the reference that the faster engines are compared with."""

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        self.training, self.n_classes = training, training.n_classes
        self.evaluated = evaluated_at_once(training.model["name"])
        self.x = [training.numbers(group.x) for group in groups]
        self.targets = [Targets.of(g.labels, training.n_classes).to(training.device) for g in groups]
        self.trainers = [self._trainer(group, x) for group, x in zip(groups, self.x, strict=True)]
        self.losses = [torch.empty(0)] * len(groups)

    def run_epoch(self) -> None:
        """One pass over the data, group by group."""
        for i, (trainer, x, targets) in enumerate(zip(self.trainers, self.x, self.targets, strict=True)):
            trainer.run_epoch(x, targets, self.training.batch_size)
            self.losses[i] = trainer.last_losses

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return self.losses[group]

    def prepare(self, x: Tensor) -> Tensor:
        """Samples as numbers on the device."""
        return self.training.numbers(x)

    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""
        return predict_logits(self.trainers[group].model, prepared, batch_size=self.evaluated, exact=False)

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters of a group by name, (runs, ...)."""
        return {name: value.detach() for name, value in self.trainers[group].model.named_parameters()}

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from."""
        state = {"place": torch.tensor([self.trainers[0].epoch, self.trainers[0].step])}
        for i, trainer in enumerate(self.trainers):
            state |= {f"{i}.{name}": tensor for name, tensor in stack_state(trainer.model, trainer.optimiser).items()}
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        for i, trainer in enumerate(self.trainers):
            for name, tensor in stack_state(trainer.model, trainer.optimiser).items():
                tensor.copy_(state[f"{i}.{name}"])
            trainer.epoch, trainer.step = state["place"].tolist()

    def _trainer(self, group: RunGroup, x: Tensor) -> Trainer:
        training, seeds = self.training, [group.seed] * len(group.rates)
        stack = build_model(training.model, tuple(x.shape[1:]), training.n_classes, seeds, x.dtype).to(x.device)
        rates = torch.tensor(list(group.rates), dtype=x.dtype, device=x.device)
        optimiser = RunAdam(stack.parameters(), rates, weight_decay=training.weight_decay)
        like = torch.empty(0, training.n_classes, dtype=x.dtype, device=x.device)
        losses = [
            LossGroup(part.spec.bind(part.context.beside(like), **dict(part.options)), part.start, part.stop)
            for part in group.losses
        ]
        return Trainer(stack, optimiser, losses, group.seed)


def stack_state(model: RunStack, optimiser: RunAdam) -> dict[str, Tensor]:
    """Parameters, statistics and moments, to be read or written in place."""
    state = {f"model.{name}": tensor.detach() for name, tensor in model.state_dict().items()}
    state |= {f"mean.{i}": tensor for i, tensor in enumerate(optimiser.means)}
    state |= {f"square.{i}": tensor for i, tensor in enumerate(optimiser.squares)}
    return {**state, "steps": optimiser.steps}


def make_engine(groups: Sequence[RunGroup], training: Training, *, plain: bool = False) -> Engine:
    """The fastest engine for the model and the device, or the plain loop."""
    from wcll.training.captured import CapturedRuns, worth_compiling
    from wcll.training.linear import LinearRuns

    if plain:
        return PlainLoop(groups, training)
    if training.model == {"name": "linear"}:
        return LinearRuns(groups, training)
    if training.device.type == "cuda":
        return CapturedRuns(groups, training, compiled=worth_compiling(groups, training))
    return PlainLoop(groups, training)
