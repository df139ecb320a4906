"""Training: many runs on one sequence of batches."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from wcll.losses import Targets
from wcll.models import RunStack
from wcll.training.batches import batches
from wcll.training.optim import RunAdam

Loss = Callable[[Tensor, Targets], Tensor]
EpochCallback = Callable[[dict[str, Any]], bool | None]


@dataclass(frozen=True)
class LossGroup:
    """Consecutive runs of a stack that share a loss."""

    loss: Loss
    start: int = 0
    stop: int | None = None


@dataclass
class Trainer:
    """A stack of runs and its optimiser; training may go on where it stopped."""

    model: RunStack
    optimiser: RunAdam
    losses: Sequence[LossGroup]
    seed: int
    epoch: int = 0
    step: int = 0
    last_losses: Tensor = field(default_factory=lambda: torch.empty(0))  #: of the last batch, before its step

    def run_epoch(self, x: Tensor, targets: Targets, batch_size: int) -> dict[str, Any]:
        """One pass over the data, on the device of ``x``; returns the epoch's number, mean loss a run and seconds."""
        start = time.perf_counter()
        self.model.train()
        total = torch.zeros(self.model.n_runs, dtype=x.dtype, device=x.device)
        steps = 0
        for rows in batches(len(x), batch_size, seed=self.seed, epoch=self.epoch):
            index = rows.to(x.device)
            self.last_losses = self.run_step(x[index], targets[index])
            total += self.last_losses
            steps += 1
        self.epoch += 1
        return {"epoch": self.epoch, "loss": (total / steps).tolist(), "seconds": time.perf_counter() - start}

    def run_step(self, x: Tensor, targets: Targets) -> Tensor:
        """One step of every run on one batch; returns the losses, (runs,)."""
        self.optimiser.zero_grad()
        logits = self.model(x, self.step)
        losses = torch.cat([group.loss(logits[group.start : group.stop], targets) for group in self.losses])
        losses.sum().backward()  # type: ignore[no-untyped-call]  # a sum: each run has its own gradient
        self.optimiser.step()
        self.step += 1
        return losses.detach()

    def fit(
        self, x: Tensor, targets: Targets, *, epochs: int, batch_size: int, callbacks: Sequence[EpochCallback] = ()
    ) -> list[dict[str, Any]]:
        """Epochs until there are ``epochs`` more, or a callback returns True; returns their rows."""
        rows = []
        for _ in range(epochs):
            rows.append(self.run_epoch(x, targets, batch_size))
            stop = [callback(rows[-1]) for callback in callbacks]  # every callback sees every epoch
            if any(stop):
                break
        return rows


@torch.no_grad()
def predict_logits(model: RunStack, x: Tensor, *, batch_size: int = 4096, exact: bool = True) -> Tensor:
    """Logits of every run in evaluation mode, (runs, n, classes); ``exact=False`` keeps the precision of ``x``."""
    if exact and model.exact and x.dtype != torch.float64:
        model, x = copy.deepcopy(model).double(), x.double()
    model.eval()
    return torch.cat([model(part) for part in torch.split(x, batch_size)], dim=1)
