"""How long a suite will take and how much memory: a few steps of each kind of unit are measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from wcll.experiments.containers import Task, Weak
from wcll.experiments.execute import Load, Tasks
from wcll.experiments.plan import Unit
from wcll.experiments.provenance import provenance
from wcll.experiments.runner import train
from wcll.experiments.tasks import loss_context
from wcll.experiments.trial import Trial

STEPS = 10  # steps measured


@dataclass(frozen=True)
class Cost:
    """What is left to do costs about this."""

    seconds: float
    bytes: int  #: of the largest unit
    device: str


def estimate(units: Sequence[Unit], load: Load, device: torch.device) -> Cost:
    """Measure one unit of each kind (everything but the seed alike) and scale it up."""
    tasks, measured, total, largest = Tasks(load), {}, 0.0, 0
    for unit in units:
        kind = tuple(replace(trial, seed=0) for trial in unit.trials)
        if kind not in measured:
            measured[kind] = _measure(unit, tasks, device)
        total += measured[kind][0]
        largest = max(largest, measured[kind][1])
    return Cost(total, largest, str(provenance(device)["device"]))


def _measure(unit: Unit, tasks: Tasks, device: torch.device) -> tuple[float, int]:
    """Seconds and bytes of a unit, from two trainings of one epoch that differ in their number of steps."""
    task, first = tasks.of(unit), unit.trials[0]
    trials = [replace(trial, epochs=1) for trial in unit.trials]
    data: Any = task.limit or task.train
    contexts = [loss_context(trial, task, task.limit.y if task.limit else task.train.ybar) for trial in trials]
    steps = max(len(data.x) // min(first.batch_size, len(data.x)), 1)
    few, most = min(1, steps), min(STEPS, steps)
    times = []
    for count in (few, few, most):  # the first pays for warming up
        part = _head(data, count * min(first.batch_size, len(data.x)))
        start = time.perf_counter()
        recording = train(trials, contexts, part, task.valid, task.test.x, task.judge, device=device)
        times.append(time.perf_counter() - start)
    step = max(times[2] - times[1], 0.0) / (most - few) if most > few else 0.0
    seconds = first.epochs * (times[1] + (steps - few) * step)
    return seconds, _bytes(trials, recording.model, task, first)


def _head(data: Any, n: int) -> Any:
    labels = data.ybar if isinstance(data, Weak) else data.y
    return type(data)(data.x[:n], labels[:n])


def _bytes(trials: Sequence[Trial], model: torch.nn.Module, task: Task, first: Trial) -> int:
    """Data, parameters with gradients and Adam's two moments, recorded predictions, one batch of test logits."""
    images = sum(part.x.nbytes for part in (task.train, task.valid, task.test) if part is not None)
    parameters = 4 * sum(p.nbytes for p in model.parameters())
    recorded = first.epochs * len(trials) * len(task.test.y)
    logits = len(trials) * min(len(task.test.y), 4096) * task.n_classes * 8
    return images + parameters + recorded + logits
