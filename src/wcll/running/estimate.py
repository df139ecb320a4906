"""How long a suite will take and how much memory: a few steps of each kind of unit are measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from wcll.results.provenance import provenance
from wcll.running.execute import Load, Tasks, make_job
from wcll.running.job import head, train
from wcll.running.memory import need_of
from wcll.running.plan import Unit

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
    job = make_job([replace(trial, epochs=1) for trial in unit.trials], task)
    batch = min(first.batch_size, len(job.data.x))
    steps = len(job.data.x) // batch
    most = min(STEPS, steps)
    times = []
    for count in (1, 1, most):  # the first pays for warming up
        part = replace(job, data=head(job.data, count * batch))
        start = time.perf_counter()
        train([part], device)
        times.append(time.perf_counter() - start)
    step = max(times[2] - times[1], 0.0) / max(most - 1, 1)
    seconds = first.epochs * (times[1] + (steps - 1) * step)
    return seconds, need_of(make_job(unit.trials[:1], task), device).of(len(job.trials))
