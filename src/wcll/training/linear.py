"""The engine for linear models: many runs on shared batches in two matrix products a step, without autograd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll.losses import Context, Targets, Transition
from wcll.losses.softmax import softmax
from wcll.models.dense import Linear
from wcll.training.batches import batches
from wcll.training.engines import Engine, RunGroup, RunLoss, Training, evaluated_at_once
from wcll.training.graph import Replay
from wcll.training.optim import StackedAdam

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
        first, n_classes, dtype, device = groups[0], training.n_classes, training.dtype, training.device
        self.seeds = [group.seed for group in groups]
        self.n, self.batch_size = len(first.x), min(training.batch_size, len(first.x))
        self.n_runs, self.n_classes = len(first.rates), n_classes
        self.training, self.scale, self.dtype, self.device = training, training.scale, dtype, device
        self.evaluated = evaluated_at_once("linear")
        self.n_features = prod(first.x.shape[1:])
        self.width = padded(self.n_features)
        self.x = torch.cat([self.prepare(group.x) for group in groups])
        self.labels = torch.cat([group.labels for group in groups]).to(device)
        self.weights = self._initial(groups).to(device)
        rates = torch.tensor([list(group.rates) for group in groups], dtype=dtype).repeat_interleave(n_classes, 1)
        self.optimiser = StackedAdam(self.weights, rates.to(device), weight_decay=training.weight_decay)
        same_runs = zip(*(group.losses for group in groups), strict=True)
        self.losses = [_stacked(parts, n_classes, dtype, device) for parts in same_runs]
        self.classes = torch.arange(n_classes, device=device).unsqueeze(-1)
        self.rows = torch.zeros(len(groups) * self.batch_size, dtype=torch.int64, device=device)
        self.logits = torch.zeros(len(groups), self.n_runs * n_classes, self.batch_size, dtype=dtype, device=device)
        self.slope = torch.zeros_like(self.logits)
        self.epoch = 0
        self._replay = Replay(self._step, device)

    def run_epoch(self) -> None:
        """One pass over the data."""
        for rows in self._order():
            self.rows.copy_(rows)
            self._replay()
        self.epoch += 1
        targets, logits = self._targets(), self._by_run(self.logits)
        values = [loss.value(logits[:, loss.start : loss.stop], targets) for loss in self.losses]
        self._last = torch.cat(values, dim=-1)

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return self._last[group]

    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""
        parts = [self.weights[group] @ self._numbers(part).T for part in torch.split(prepared, self.evaluated)]
        return torch.cat(parts, dim=-1).view(self.n_runs, self.n_classes, -1).mT

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Weights and biases of a group, (runs, ...), named as in the model ``linear``."""
        mine = self.weights[group].view(self.n_runs, self.n_classes, self.width)
        return {"layer.weight": mine[..., : self.n_features], "layer.bias": mine[..., self.n_features]}

    def prepare(self, x: Tensor) -> Tensor:
        """Samples as rows with a feature that is 1 and padding; bytes stay bytes on a GPU, where memory is dear."""
        flat = x.flatten(1)
        keep = flat.dtype == torch.uint8 and self.device.type == "cuda"
        rows = torch.zeros(len(flat), self.width, dtype=torch.uint8 if keep else self.dtype, device=self.device)
        if keep:
            rows[:, : self.n_features] = flat.to(self.device)
        else:
            rows[:, : self.n_features] = self.training.numbers(flat)
        rows[:, self.n_features] = self.scale if keep else 1.0
        return rows

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from."""
        adam = self.optimiser
        place = torch.tensor(self.epoch)
        return {"weights": self.weights, "mean": adam.mean, "square": adam.square, "steps": adam.steps, "epoch": place}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        self.epoch = int(state["epoch"])

    def _initial(self, groups: Sequence[RunGroup]) -> Tensor:
        """The weights with which ``linear`` models of these seeds start."""
        whole = torch.zeros(len(groups), self.n_runs, self.n_classes, self.width, dtype=self.dtype)
        for place, seed in zip(whole, self.seeds, strict=True):
            layer = Linear((self.n_features,), self.n_classes, [seed], self.dtype).layer
            place[..., : self.n_features], place[..., self.n_features] = layer.weight.detach(), layer.bias.detach()
        return whole.view(len(groups), -1, self.width)

    def _numbers(self, rows: Tensor) -> Tensor:
        return rows.to(self.dtype) / self.scale if rows.dtype == torch.uint8 else rows

    def _order(self) -> Tensor:
        """The rows of every step of an epoch: (steps, groups * batch)."""
        orders = [torch.stack(list(batches(self.n, self.batch_size, seed=s, epoch=self.epoch))) for s in self.seeds]
        shifted = [order + self.n * g for g, order in enumerate(orders)]
        return torch.cat(shifted, dim=1).to(self.device, non_blocking=True)

    def _targets(self) -> Targets:
        """Labels of the batch, laid out as the logits are: samples are neighbours in memory."""
        index = self.labels.index_select(0, self.rows).view(len(self.seeds), 1, -1)
        return Targets((index.unsqueeze(-2) == self.classes).mT, index)

    def _by_run(self, flat: Tensor) -> Tensor:
        return flat.view(len(self.seeds), self.n_runs, self.n_classes, -1).mT

    @torch.no_grad()
    def _step(self) -> None:
        x = self._numbers(self.x.index_select(0, self.rows)).view(len(self.seeds), -1, self.width)
        _products(self.weights, x.mT, self.logits)
        targets, logits, slope = self._targets(), self._by_run(self.logits), self._by_run(self.slope)
        p = softmax(logits)
        for loss in self.losses:
            part = slice(loss.start, loss.stop)
            slope[:, part] = loss.gradient(logits[:, part], p[:, part], targets)
        _products(self.slope, x, self.optimiser.gradient)
        self.optimiser.step()


def _products(left: Tensor, right: Tensor, out: Tensor) -> None:
    """A product a group; the product of a single pair is faster as such."""
    if len(left) == 1:
        torch.mm(left[0], right[0], out=out[0])
    else:
        torch.bmm(left, right, out=out)


class _GroupLoss:
    """A loss of the same runs in every group, its context stacked over groups."""

    def __init__(self, parts: Sequence[RunLoss], context: Context) -> None:
        first = parts[0]
        self.start, self.stop = first.start, first.stop
        self.value = first.spec.bind(context, **dict(first.options))
        self.gradient = first.spec.bind_gradient(context, **dict(first.options))


def _stacked(parts: Sequence[RunLoss], n_classes: int, dtype: torch.dtype, device: torch.device) -> _GroupLoss:
    like = torch.empty(0, n_classes, dtype=dtype, device=device)
    ready = [part.context.beside(like) for part in parts]
    values: dict[str, Any] = {f.name: _stack([getattr(one, f.name) for one in ready]) for f in fields(Context)}
    return _GroupLoss(parts, Context(**values))


def _stack(values: list[Any]) -> Any:
    """One value a group, with an axis of length 1 for its runs."""
    if values[0] is None:
        return None
    if isinstance(values[0], Transition):
        exact = np.stack([one.exact for one in values])[:, None]
        return Transition(torch.stack([one.matrix for one in values]).unsqueeze(1), exact)
    return torch.stack(values).unsqueeze(1)
