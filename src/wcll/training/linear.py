"""The engine for linear models: many runs on shared batches in two matrix products a step, without autograd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll.losses import Context, Targets
from wcll.losses.registry import softmax
from wcll.losses.targets import Transition, overwrite
from wcll.models.architectures import Linear
from wcll.training.cuda_graph import Replay
from wcll.training.engine import Engine, Need, logits_need, samples_need
from wcll.training.optimizers import StackedAdam
from wcll.training.runs import RunGroup, RunLoss, Training

AT_ONCE = 2**16  #: samples that are laid out together, so that not all are there twice
ALIGNED = 16  # columns are padded to a multiple: products like it


def padded(n_features: int) -> int:
    """Columns of the parameters: the features, one that is always 1, and padding."""
    return -(-(n_features + 1) // ALIGNED) * ALIGNED


class LinearRuns(Engine):
    """Groups of linear runs, trained in step.

    With G groups (different data, equally many samples), R runs each, K classes and D features, parameters are one
    array (G, R K, D), the bias being the weight of a feature that is always 1. A step is one product for the logits of
    all runs, closed gradients of their losses, one product for the gradients of all parameters, and one pass of Adam.
    Logits lie as (G, R, K, batch): classes are few and samples many, and it is along many that processors are fast.
    """

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        super().__init__(groups, training)
        assert not any(self.standards)  # that is for networks for images
        dtype, device, n_classes = training.dtype, training.device, training.n_classes
        self.n_features = prod(groups[0].x.shape[1:])
        self.width = padded(self.n_features)
        prepared = [self.prepare(group.x) for group in groups]
        self.x = torch.cat(prepared) if len(prepared) > 1 else prepared[0]  # which would be copied
        self.labels = _Labels(groups, training)
        self.weights = self._initial(groups).to(device)
        rates = torch.tensor([list(group.rates) for group in groups], dtype=dtype).repeat_interleave(n_classes, 1)
        self.optimiser = StackedAdam(self.weights, rates.to(device), weight_decay=training.weight_decay)
        self.rows = torch.zeros(len(groups) * self.batch_size, dtype=torch.int64, device=device)
        self.logits = torch.zeros(len(groups), self.n_runs * n_classes, self.batch_size, dtype=dtype, device=device)
        self.slope = torch.zeros_like(self.logits)
        self.total = torch.zeros(len(groups), self.n_runs, dtype=dtype, device=device)  #: of the losses of this epoch
        self._tell()

    def _take_losses(self, groups: Sequence[RunGroup]) -> None:
        """Train with the losses of these groups from now on; a step is recorded anew."""
        alike, training = zip(*(group.losses for group in groups), strict=True), self.training
        self.losses = [_GroupLoss(parts, training) for parts in alike]
        alone = self.ranks is None  # what processes exchange is not recorded
        self._replay = Replay(training.device if alone else torch.device("cpu"))

    def run_epoch(self) -> None:
        """One pass over the data."""
        self._tell()
        shift = self.n * torch.arange(len(self.groups)).unsqueeze(-1)  # groups lie one after another
        self.total.zero_()
        for order in self._orders():
            for rows in (order + shift).flatten(1).to(self.training.device, non_blocking=True):
                self.rows.copy_(rows)
                self._replay(self._step)
        self.epoch += 1

    def take_samples(self, x: Tensor, targets: Targets) -> None:
        """Put these in the place of the first samples of the one group, where recorded steps find them."""
        for place, part in zip(torch.split(self.x, AT_ONCE), torch.split(x, AT_ONCE), strict=False):
            place[: len(part)] = self.prepare(part)
        self.labels.take(targets)

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return self._values(self._by_run(self.logits), self.labels.of(self.rows))[group]

    def mean_losses(self, group: int) -> Tensor:
        """The losses averaged over the last epoch, (runs,), for a training that asks for them."""
        return self.total[group] / self.steps

    def _logits(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""
        parts = [self.weights[group] @ self._numbers(part).T for part in torch.split(prepared, self.at_once)]
        return torch.cat(parts, dim=-1).view(self.n_runs, self.n_classes, -1).mT

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Weights and biases of a group, (runs, ...), named as in the model ``linear``."""
        mine = self.weights[group].view(self.n_runs, self.n_classes, self.width)
        return {"layer.weight": mine[..., : self.n_features], "layer.bias": mine[..., self.n_features]}

    def load_parameters(self, group: int, parameters: Mapping[str, Tensor]) -> None:
        """Put the runs of a group where :meth:`parameters` says; the optimiser stays as it is."""
        for name, tensor in self.parameters(group).items():
            tensor.copy_(parameters[name])

    def prepare(self, x: Tensor) -> Tensor:
        """Samples as rows with a feature that is 1 and padding; bytes stay bytes on a GPU, where memory is dear."""
        flat, training = x.flatten(1), self.training
        keep = flat.dtype == torch.uint8 and training.device.type == "cuda"
        kind = torch.uint8 if keep else training.dtype
        rows = torch.zeros(len(flat), self.width, dtype=kind, device=training.device)
        for place, part in zip(torch.split(rows, AT_ONCE), torch.split(flat, AT_ONCE), strict=True):
            place[:, : self.n_features] = part.to(training.device) if keep else training.numbers(part)
        rows[:, self.n_features] = training.scale if keep else 1.0
        return rows

    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from, to be read or written in place."""
        adam = self.optimiser
        return {"weights": self.weights, "mean": adam.mean, "square": adam.square, "steps": adam.steps}

    @classmethod
    def need(cls, x: Tensor, training: Training, n_others: int, n_evaluated: int) -> Need:
        """Memory: samples are padded; a run has its weights, their gradient and two moments."""
        features = padded(prod(x.shape[1:]))
        own = 4 * training.n_classes * features * training.dtype.itemsize
        return Need(samples_need(x, training, n_others, features), own + logits_need(x, training, n_evaluated))

    def _initial(self, groups: Sequence[RunGroup]) -> Tensor:
        """The weights with which ``linear`` models of these seeds start."""
        whole = torch.zeros(len(groups), self.n_runs, self.n_classes, self.width, dtype=self.training.dtype)
        for place, group in zip(whole, groups, strict=True):
            layer = Linear((self.n_features,), self.n_classes, [group.seed], self.training.dtype).layer
            place[..., : self.n_features], place[..., self.n_features] = layer.weight.detach(), layer.bias.detach()
        return whole.view(len(groups), -1, self.width)

    def _numbers(self, rows: Tensor) -> Tensor:
        return rows.to(self.training.dtype) / self.training.scale if rows.dtype == torch.uint8 else rows

    def _by_run(self, flat: Tensor) -> Tensor:
        return flat.view(len(self.groups), self.n_runs, self.n_classes, -1).mT

    def _values(self, logits: Tensor, targets: Targets) -> Tensor:
        return torch.cat([loss.value(logits[:, loss.runs], targets) for loss in self.losses], dim=-1)

    @torch.no_grad()
    def _step(self) -> None:
        x = self._numbers(self.x.index_select(0, self._own_rows())).view(len(self.groups), -1, self.width)
        if self.ranks is None:
            _products(self.weights, x.mT, self.logits)
        else:
            self.logits.copy_(self.ranks.gathered(self.weights @ x.mT, self.batch_size, -1))
        targets, logits, slope = self.labels.of(self.rows), self._by_run(self.logits), self._by_run(self.slope)
        p = softmax(logits)
        for loss in self.losses:
            slope[:, loss.runs] = loss.gradient(logits[:, loss.runs], p[:, loss.runs], targets)
        if self.training.mean_losses:
            self.total += self._values(logits, targets)
        if self.ranks is None:
            _products(self.slope, x, self.optimiser.gradient)
        else:
            torch.matmul(self.slope[..., self.ranks.part(self.batch_size)], x, out=self.optimiser.gradient)
            self.ranks.sum_in_place(self.optimiser.gradient)
        self.optimiser.step()

    def _own_rows(self) -> Tensor:
        """Those of the batch that this process computes."""
        if self.ranks is None:
            return self.rows
        return self.rows.view(len(self.groups), -1)[:, self.ranks.part(self.batch_size)].flatten()


class _Labels:
    """The labels of all groups, one after another; those of a batch are laid out as its logits are."""

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        parts, device = [group.targets for group in groups], training.device
        (self.mass,) = {part.mass for part in parts}  # groups that are trained in step weigh alike
        single = [part.index for part in parts if part.index is not None]
        weights = [part.sample_weight for part in parts if part.sample_weight is not None]
        self.index = torch.cat(single).to(device) if len(single) == len(parts) else None
        self.mask = torch.cat([part.mask for part in parts]).to(device) if self.index is None else None
        self.weight = torch.cat(weights).to(device) if weights else None
        near = [part.near for part in parts if part.near is not None]
        self.near = torch.cat(near).to(device) if near else None
        self.classes = torch.arange(training.n_classes, device=device).unsqueeze(-1)
        self.n_groups = len(groups)

    def take(self, targets: Targets) -> None:
        """Put others in the place of the first."""
        own = (self.index, self.mask, self.weight, self.near)
        overwrite(own, (targets.index, targets.mask, targets.sample_weight, targets.near))

    def of(self, rows: Tensor) -> Targets:
        """The targets of rows (groups * batch,): shapes begin with (groups, 1)."""
        index, mask, weight, near = (
            None if whole is None else whole.index_select(0, rows).view(self.n_groups, 1, -1, *whole.shape[1:])
            for whole in (self.index, self.mask, self.weight, self.near)
        )
        if index is not None:
            mask = (index.unsqueeze(-2) == self.classes).mT  # samples are neighbours in memory
        assert mask is not None
        return Targets(mask, index, weight, self.mass, near)


def _products(left: Tensor, right: Tensor, out: Tensor) -> None:
    """A product a group; the product of a single pair is faster as such."""
    if len(left) == 1:
        torch.mm(left[0], right[0], out=out[0])
    else:
        torch.bmm(left, right, out=out)


class _GroupLoss:
    """A loss of the same runs in every group, its context stacked over groups."""

    def __init__(self, parts: Sequence[RunLoss], training: Training) -> None:
        ready = [part.context.to(training.like) for part in parts]
        context = Context(**{f.name: _stack([getattr(one, f.name) for one in ready]) for f in fields(Context)})
        self.runs = slice(parts[0].start, parts[0].stop)
        self.value, self.gradient = parts[0].value(context), parts[0].gradient(context)


def _stack(values: list[Any]) -> Any:
    """One value a group, with an axis of length 1 for its runs."""
    if values[0] is None:
        return None
    if isinstance(values[0], Transition):
        exact = np.stack([one.exact for one in values])[:, None]
        return Transition(torch.stack([one.matrix for one in values]).unsqueeze(1), exact)
    return torch.stack(values).unsqueeze(1)
