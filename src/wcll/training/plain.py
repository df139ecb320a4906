"""The plain loop: any model and any loss, by autograd. The reference that the faster engines are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from wcll.losses import Targets
from wcll.models import RunStack, predict_logits
from wcll.training.engine import Engine, Need, network_need
from wcll.training.optim import RunAdam
from wcll.training.runs import Loss, RunGroup, Training

Optimiser = RunAdam | torch.optim.Adam
Forward = Callable[[Tensor, int | Tensor], Tensor]


class StackStep:
    """A step of a stack of runs: logits, losses, their gradients, and the optimiser's step."""

    def __init__(self, group: RunGroup, training: Training, start: int, stop: int) -> None:
        """Of the runs from ``start`` to ``stop`` of a group."""
        self.training, self.start, self.stop = training, start, stop
        self.model = training.build(group.x, [group.seed] * (stop - start))
        rates = torch.tensor(list(group.rates[start:stop]), dtype=training.dtype, device=training.device)
        self.optimiser: Optimiser = RunAdam(self.model.parameters(), rates, weight_decay=training.weight_decay)
        self.forward: Forward = self.model
        self.take_losses(group)
        self.last = torch.zeros(stop - start, dtype=training.dtype, device=training.device)  #: losses of the last batch
        self.total = torch.zeros_like(self.last)  #: of the batches of this epoch

    def take_losses(self, group: RunGroup) -> None:
        """Train with the losses of this group from now on."""
        start, stop, like = self.start, self.stop, self.training.like
        self.losses: list[tuple[Loss, slice]] = [
            (loss.value(loss.context.to(like)), slice(max(loss.start, start) - start, loss.stop - start))
            for loss in group.losses
            if loss.start < stop and loss.stop > start
        ]

    def __call__(self, x: Tensor, targets: Targets, step: int | Tensor) -> None:
        self.optimiser.zero_grad()
        logits = self.forward(x, step).to(self.training.dtype)
        losses = torch.cat([loss(logits[runs], targets) for loss, runs in self.losses])
        losses.sum().backward()  # type: ignore[no-untyped-call]  # a sum: each run has its own gradient
        self.optimiser.step()
        self.last.copy_(losses.detach())
        if self.training.mean_losses:
            self.total += self.last

    def parameters(self) -> dict[str, Tensor]:
        """Parameters and running statistics by name; what else a user's module keeps there stays with it."""
        named = self.model.state_dict().items()
        return {name: tensor.detach() for name, tensor in named if isinstance(tensor, Tensor)}

    def tensors(self) -> dict[str, Tensor]:
        """Parameters, statistics and moments, to be read or written in place."""
        state = {f"model.{name}": tensor for name, tensor in self.parameters().items()}
        if isinstance(self.optimiser, RunAdam):
            moments = {"mean": self.optimiser.means, "square": self.optimiser.squares}
            state |= {f"{name}.{i}": tensor for name, found in moments.items() for i, tensor in enumerate(found)}
            return {**state, "steps": self.optimiser.steps}
        for i, parameter in enumerate(self.model.parameters()):
            moments = self.optimiser.state[parameter]
            if not moments:  # before the first step: as torch itself would begin
                zero = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
                moments.update(step=torch.zeros((), device=parameter.device), **zero)
            state |= {f"adam.{i}.{name}": tensor for name, tensor in moments.items()}
        return state


class PlainLoop(Engine):
    """Stacks of runs, one after another."""

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        super().__init__(groups, training)
        self.x = [self._normalised(g, training.numbers(group.x)) for g, group in enumerate(groups)]
        self.targets = [group.targets.to(training.device) for group in groups]
        self.stacks = [StackStep(group, training, 0, self.n_runs) for group in groups]
        self.step = torch.tensor(0)  #: how many are done

    def run_epoch(self) -> None:
        """One pass over the data, group by group."""
        self._tell()
        order = self._order()
        for g, stack in enumerate(self.stacks):
            stack.model.train()
            stack.total.zero_()
            for i, rows in enumerate(order[:, g].to(self.training.device)):
                x, targets = self.x[g][rows], self.targets[g][rows]
                with self.training.turn():
                    stack(x, targets, int(self.step) + i)
        self.steps, self.step = len(order), self.step + len(order)
        self.epoch += 1

    def _take_losses(self, groups: Sequence[RunGroup]) -> None:
        """Train with the losses of these groups from now on."""
        for stack, group in zip(self.stacks, groups, strict=True):
            stack.take_losses(group)

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return self.stacks[group].last.clone()

    def mean_losses(self, group: int) -> Tensor:
        """The losses averaged over the last epoch, (runs,), for a training that asks for them."""
        return self.stacks[group].total / self.steps

    def prepare(self, x: Tensor) -> Tensor:
        """Samples as numbers on the device."""
        return self.training.numbers(x)

    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""
        return predict_logits(self.stacks[group].model, self._normalised(group, prepared))

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters and running statistics of a group by name, (runs, ...)."""
        return self.stacks[group].parameters()

    def load_parameters(self, group: int, parameters: Mapping[str, Tensor]) -> None:
        """Put the runs of a group where :meth:`parameters` says; optimisers stay as they are."""
        self.stacks[group].model.load_state_dict(parameters)

    def export(self, group: int) -> RunStack:
        """The models themselves: a user's module may hold more than its parameters tell."""
        return self.stacks[group].model

    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from, to be read or written in place."""
        stacks = enumerate(self.stacks)
        return {"step": self.step} | {f"{g}.{name}": t for g, stack in stacks for name, t in stack.tensors().items()}

    @classmethod
    def need(cls, x: Tensor, training: Training, n_others: int, n_evaluated: int) -> Need:
        """Memory: all runs of a stack are at work at once."""
        shared, own, at_work = network_need(x, training, n_others, n_evaluated)
        return Need(shared, own + at_work)
