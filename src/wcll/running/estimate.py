"""How long a suite will take and how much memory: a few steps of each kind of job are measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from wcll.results.provenance import provenance
from wcll.running.choosing import stand_in
from wcll.running.containers import View
from wcll.running.execute import Tasks
from wcll.running.memory import available, need_of, runs_that_fit
from wcll.running.plan import Job
from wcll.running.train import train

CPU = torch.device("cpu")
FIRST, STEPS = 5, 10  # steps of a short epoch, in which a GPU records them, and more of a longer one
SLOW = 32  # samples of a step of networks for images on a CPU: 256 take seconds
FORWARD = 1 / 3  # of a step's time is what a prediction of as many samples takes


@dataclass(frozen=True)
class Cost:
    """What is left to do costs about this."""

    seconds: float
    bytes: int  #: of the largest job, or of what of it is trained at once
    device: str


def estimate(
    jobs: Sequence[Job], tasks: Tasks, device: torch.device, samples: dict[object, float] | None = None
) -> Cost:
    """Measure one job of each kind (everything but the seed alike) and scale it up.

    On a CPU networks for images are measured once for all jobs and calls with the same ``samples``: the seconds that a
    sample takes, by network.
    """
    measured: dict[object, tuple[float, int]] = {}
    total, largest, samples = 0.0, 0, {} if samples is None else samples
    for job in jobs:
        kind = tuple(replace(trial, seed=0) for trial in job.trials)
        if kind not in measured:
            view = tasks.of(job).view
            need = need_of(job, view, device)
            job = Job((stand_in(job.first, view),)) if job.auto else job
            at_once = min(runs_that_fit(need, available(device)), len(job.trials))
            slow = job.image and device.type == "cpu"
            seconds = _slow(job, view, samples) if slow else _measure(job, view, device, at_once)
            measured[kind] = seconds, need.of(at_once)
        total += measured[kind][0]
        largest = max(largest, measured[kind][1])
    return Cost(total, largest, str(provenance(device)["device"]))


def _slow(job: Job, view: View, samples: dict[object, float]) -> float:
    """Return the seconds of a job whose runs take turns: a few steps of one run are enough for all of its network."""
    network = (*job.network, job.first.recipe)
    if network not in samples:
        batch = min(SLOW, job.first.batch_size, len(view.data.x) // 3)
        short = Job((replace(job.first, epochs=2, batch_size=batch),))
        looked = replace(view, unlabelled=view.unlabelled[:1], valid=None)
        (_, brief), (_, longer) = (_timed(short, looked, CPU, n * batch) for n in (1, 3))
        samples[network] = max(longer - brief, 0.0) / (2 * batch)
    looks = len(view.unlabelled) + (0 if view.valid is None else len(view.valid.x))
    seen = job.first.epochs * len(view.data.x) + FORWARD * len(job.first.looked_at) * looks
    return len(job.trials) * seen * samples[network]


def _measure(job: Job, view: View, device: torch.device, at_once: int) -> float:
    """Seconds of a job, from two trainings of two epochs that differ in their number of steps.

    Where not all of its runs fit into memory at once, those that do are measured.
    """
    short = Job(tuple(replace(trial, epochs=2) for trial in job.trials[:at_once]))
    batch = min(job.first.batch_size, len(view.data.x))
    steps = len(view.data.x) // batch
    few = min(FIRST, steps)
    most = min(few + STEPS, steps)
    times = [_timed(short, view, device, count * batch) for count in dict.fromkeys((few, most))]
    (_, brief), (prepared, longer) = times[0], times[-1]  # the same where an epoch has few steps
    step = max(longer - brief, 0.0) / max(most - few, 1)
    look = max(brief - few * step, 0.0) if most > few else 0.0  # too few steps do not tell what takes how long
    unseen = job.first.epochs - len(job.first.looked_at)
    seconds = prepared + job.first.epochs * (brief + (steps - few) * step) - unseen * look
    return seconds * len(job.trials) / at_once


def _timed(job: Job, view: View, device: torch.device, samples: int) -> tuple[float, float]:
    """Seconds of preparation, and of the second epoch of two: the first pays for warming up."""
    moments = [time.perf_counter()]

    def note(done: int) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        moments.append(time.perf_counter())

    train([(job, view)], device, progress=note, samples=samples)
    start, _, first, second = moments
    return max(first - start - (second - first), 0.0), second - first
