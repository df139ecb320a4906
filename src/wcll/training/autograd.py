"""The plain loop: any model and any loss, by autograd. The reference that the faster engines are compared with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wcll.losses import Targets
from wcll.models.registry import RunStack, predict_logits
from wcll.training.engine import Engine, Need, network_need
from wcll.training.optimizers import RunAdam, RunSGD
from wcll.training.recipe import Now
from wcll.training.runs import Loss, RunGroup, Training

Optimiser = RunAdam | RunSGD | torch.optim.Adam
Forward = Callable[[Tensor, int | Tensor], Tensor]


@dataclass(frozen=True)
class Batch:
    """What a step is given."""

    views: Sequence[Tensor]  #: of the samples; the first is learnt from
    targets: Targets
    beside: Targets | None = None  #: of what is mixed into each sample, if they are mixed
    now: Now | None = None  #: the step's own numbers, if anything changes from step to step


class StackStep:
    """A step of a stack of runs: logits, losses, their gradients, and the optimiser's step."""

    def __init__(self, group: RunGroup, training: Training, start: int, stop: int) -> None:
        """Of the runs from ``start`` to ``stop`` of a group."""
        self.training, self.start, self.stop = training, start, stop
        self.model = training.build(group.x, [group.seed] * (stop - start))
        self.rates = torch.tensor(list(group.rates[start:stop]), dtype=training.dtype, device=training.device)
        self.lr = self.rates.clone()  #: at this step: what the optimiser reads
        self.optimiser: Optimiser = optimiser_of(self.model, self.lr, training)
        self.forward: Forward = self.model
        self.average = copy.deepcopy(self.model).requires_grad_(False) if training.recipe.ema else None
        self.take_losses(group)
        self.last = torch.zeros(stop - start, dtype=training.dtype, device=training.device)  #: losses of the last batch
        self.total = torch.zeros_like(self.last)  #: of the batches of this epoch

    def take_losses(self, group: RunGroup) -> None:
        """Train with the losses of this group from now on."""
        start, stop, like = self.start, self.stop, self.training.like
        self.ordinary = group.ordinary
        self.losses: list[tuple[Loss, slice]] = [
            (loss.value(loss.context.to(like)), slice(max(loss.start, start) - start, loss.stop - start))
            for loss in group.losses
            if loss.start < stop and loss.stop > start
        ]

    @property
    def predicting(self) -> RunStack:
        """The models that predict: their average over steps, if there is one."""
        return self.average or self.model

    def __call__(self, batch: Batch, step: int | Tensor) -> None:
        self.optimiser.zero_grad()
        if batch.now is not None:
            self.lr.copy_(batch.now.rate * self.rates.view(self.lr.shape))
        said = self._said(batch, step)  # before the step's own logits: drop-out of both is kept in the same memory
        logits = self.forward(batch.views[0], step).to(self.training.dtype)
        losses = self._losses(logits, batch)
        total = losses if said is None else losses + self._distances(logits, said, batch)
        total.sum().backward()  # type: ignore[no-untyped-call]  # a sum: each run has its own gradient
        self.optimiser.step()
        if self.average is not None and batch.now is not None:
            self._add_to_average(batch.now.kept)
        self.last.copy_(losses.detach())
        if self.training.mean_losses:
            self.total += self.last

    def _losses(self, logits: Tensor, batch: Batch) -> Tensor:
        """Of every run, (runs,); of mixed samples, those of both with their shares."""
        losses = torch.cat([loss(logits[runs], batch.targets) for loss, runs in self.losses])
        if batch.beside is None or batch.now is None:
            return losses
        beside = torch.cat([loss(logits[runs], batch.beside) for loss, runs in self.losses])
        return batch.now.share * losses + (1 - batch.now.share) * beside

    @torch.no_grad()
    def _said(self, batch: Batch, step: int | Tensor) -> Tensor | None:
        """What the models say of another view, if there is one, of classes that are not ruled out."""
        if len(batch.views) == 1:
            return None
        logits = self.forward(batch.views[1], step).to(self.training.dtype)
        if not self.ordinary:
            beside = batch.targets if batch.beside is None else batch.beside
            logits = logits.masked_fill(batch.targets.mask & beside.mask, -torch.inf)
        return logits.softmax(-1)

    def _distances(self, logits: Tensor, said: Tensor, batch: Batch) -> Tensor:
        """The cross entropy to what was said of another view, as much as it counts now: (runs,)."""
        assert batch.now is not None
        each, weight = -(said * logits.log_softmax(-1)).sum(-1), batch.targets.sample_weight
        return batch.now.consistency * (each if weight is None else each * weight).mean(-1)

    @torch.no_grad()
    def _add_to_average(self, kept: Tensor) -> None:
        assert self.average is not None
        for mean, value in zip(self.average.state_dict().values(), self.model.state_dict().values(), strict=True):
            if mean.is_floating_point():
                mean.lerp_(value, (1 - kept).to(mean.dtype))
            else:
                mean.copy_(value)

    def parameters(self) -> dict[str, Tensor]:
        """Those that predict, and running statistics, by name; what else a user's module keeps there stays with it."""
        return _tensors_of(self.predicting)

    def load_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        """Put models, and their average, there."""
        for model in {self.model, self.predicting}:
            model.load_state_dict(parameters)

    def tensors(self) -> dict[str, Tensor]:
        """Parameters, statistics and moments, to be read or written in place."""
        state = {f"model.{name}": tensor for name, tensor in _tensors_of(self.model).items()}
        if self.average is not None:
            state |= {f"average.{name}": tensor for name, tensor in _tensors_of(self.average).items()}
        if isinstance(self.optimiser, RunAdam | RunSGD):
            moments = {"mean": self.optimiser.means}
            steps = {}
            if isinstance(self.optimiser, RunAdam):
                moments["square"], steps = self.optimiser.squares, {"steps": self.optimiser.steps}
            state |= {f"{name}.{i}": tensor for name, found in moments.items() for i, tensor in enumerate(found)}
            return state | steps
        for i, parameter in enumerate(self.model.parameters()):
            moments = self.optimiser.state[parameter]
            if not moments:  # before the first step: as torch itself would begin
                zero = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
                moments.update(step=torch.zeros((), device=parameter.device), **zero)
            state |= {f"adam.{i}.{name}": tensor for name, tensor in moments.items()}
        return state


def optimiser_of(model: RunStack, rates: Tensor, training: Training) -> RunAdam | RunSGD:
    """What the recipe names, with one rate a run."""
    name, decay = training.recipe.optimiser, training.weight_decay
    if name == "sgd":
        return RunSGD(model.parameters(), rates, weight_decay=decay)
    return RunAdam(model.parameters(), rates, weight_decay=decay, decoupled=name == "adamw")


def _tensors_of(model: RunStack) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in model.state_dict().items() if isinstance(tensor, Tensor)}


def mixed(views: Sequence[Tensor], targets: Targets, rows: Tensor, now: Now, mixing: bool) -> Batch:
    """A batch of views; ``mixing`` mixes each sample with its neighbour in the batch, which is any other by chance."""
    if not mixing:
        return Batch(views, targets[rows], None, now)
    both = [now.share * view + (1 - now.share) * view.roll(1, 0) for view in views]
    return Batch(both, targets[rows], targets[rows.roll(1)], now)


class PlainLoop(Engine):
    """Stacks of runs, one after another."""

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        super().__init__(groups, training)
        self.x = [self._normalised(g, training.numbers(group.x)) for g, group in enumerate(groups)]
        self.targets = [group.targets.to(training.device) for group in groups]
        self.stacks = [StackStep(group, training, 0, self.n_runs) for group in groups]
        if self.ranks is not None:
            for stack in self.stacks:
                stack.forward = self.ranks.sharing(stack.model)
        self.step = torch.tensor(0)  #: how many are done

    def run_epoch(self) -> None:
        """One pass over the data, group by group."""
        self._tell()
        self._prepare_courses()
        for stack in self.stacks:
            stack.model.train()
            stack.total.zero_()
        done = 0
        for order in self._orders():
            for g, stack in enumerate(self.stacks):
                for i, rows in enumerate(order[:, g].to(self.training.device), done):
                    batch = self._batch(g, rows, i)
                    with self.training.turn():
                        stack(batch, int(self.step) + i)
                    self.after_step((g * self.steps + i + 1) / (len(self.stacks) * self.steps))
            done += len(order)
        self.step = self.step + self.steps
        self.epoch += 1

    def _batch(self, g: int, rows: Tensor, place: int) -> Batch:
        """What a step of a group is given."""
        course = self.courses[g]
        if course is None:
            return Batch([self.x[g].index_select(0, rows)], self.targets[g][rows])
        views = [
            course.finished(course.images(self.x[g], rows, place, view), place, view)
            for view in range(self.training.recipe.views)
        ]
        return mixed(views, self.targets[g], rows, course.at(place), self.training.recipe.mixup > 0)

    def take_samples(self, x: Tensor, targets: Targets) -> None:
        """Put these in the place of the first samples of the one group."""
        for place, part in zip(torch.split(self.x[0], self.at_once), torch.split(x, self.at_once), strict=False):
            place[: len(part)] = self._normalised(0, self.training.numbers(part))
        self.targets[0].take(targets)

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

    def _logits(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples as they are, (runs, n, classes)."""
        return predict_logits(self.stacks[group].predicting, self._normalised(group, prepared))

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters and running statistics of a group by name, (runs, ...)."""
        return self.stacks[group].parameters()

    def load_parameters(self, group: int, parameters: Mapping[str, Tensor]) -> None:
        """Put the runs of a group where :meth:`parameters` says; optimisers stay as they are."""
        self.stacks[group].load_parameters(parameters)

    def export(self, group: int) -> RunStack:
        """The models themselves: a user's module may hold more than its parameters tell."""
        return self.stacks[group].predicting

    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from, to be read or written in place."""
        stacks = enumerate(self.stacks)
        return {"step": self.step} | {f"{g}.{name}": t for g, stack in stacks for name, t in stack.tensors().items()}

    @classmethod
    def need(cls, x: Tensor, training: Training, n_others: int, n_evaluated: int) -> Need:
        """Memory: all runs of a stack are at work at once."""
        shared, own, at_work = network_need(x, training, n_others, n_evaluated)
        return Need(shared, own + at_work)
