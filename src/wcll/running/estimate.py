"""How long a suite will take and how much memory: a few steps of each kind of job are measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from wcll.results.provenance import provenance
from wcll.running.execute import Tasks
from wcll.running.memory import check_job, need_of
from wcll.running.plan import Job
from wcll.running.train import train

STEPS = 10  # steps measured


@dataclass(frozen=True)
class Cost:
    """What is left to do costs about this."""

    seconds: float
    bytes: int  #: of the largest job
    device: str


def estimate(jobs: Sequence[Job], tasks: Tasks, device: torch.device) -> Cost:
    """Measure one job of each kind (everything but the seed alike) and scale it up."""
    measured: dict[object, tuple[float, int]] = {}
    total, largest = 0.0, 0
    for job in jobs:
        kind = tuple(replace(trial, seed=0) for trial in job.trials)
        if kind not in measured:
            measured[kind] = _measure(job, tasks, device)
        total += measured[kind][0]
        largest = max(largest, measured[kind][1])
    return Cost(total, largest, str(provenance(device)["device"]))


def _measure(job: Job, tasks: Tasks, device: torch.device) -> tuple[float, int]:
    """Seconds and bytes of a job, from two trainings of one epoch that differ in their number of steps."""
    view = tasks.of(job).view
    check_job(job, view)
    short = Job(tuple(replace(trial, epochs=1) for trial in job.trials))
    batch = min(job.first.batch_size, len(view.data.x))
    steps = len(view.data.x) // batch
    most = min(STEPS, steps)
    times = []
    for count in (1, 1, most):  # the first pays for warming up
        start = time.perf_counter()
        train([(short, view)], device, samples=count * batch)
        times.append(time.perf_counter() - start)
    step = max(times[2] - times[1], 0.0) / max(most - 1, 1)
    seconds = job.first.epochs * (times[1] + (steps - 1) * step)
    return seconds, need_of(job, view, device).of(len(job.trials))
