"""Where the time of network runs goes: preparation, compiling, steps, looks at test and held-out images, writing.

    python benchmarks/networks.py [--device cuda] [--runs 16] [--width 64] [--images 12600] [--epochs 100]

The paper's network on random images of CIFAR-10's size, with five classes, batches of 256, a ninth more images held out
and 5000 tested. Two units of a suite are trained one after the other, each ``--measured`` epochs of the ``--epochs``
that it is said to have (they decide whether networks are compiled); the rest is extrapolated. What the first unit takes
longer in its first epoch than the second is what is shared between units. Steps and looks are each waited for, which
a suite does not do. ``--width 4 --images 512 --runs 1 --epochs 10`` is quick on a CPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from wcll.datasets import Dataset, Split
from wcll.evaluation import checkpoints
from wcll.experiments import Store, Trial
from wcll.experiments.grouping import Job
from wcll.experiments.row import provenance
from wcll.experiments.train import _Recorder, run_group, training_of
from wcll.experiments.worker import Tasks, outcomes
from wcll.training import make_engine
from wcll.training.cuda_graph import CapturedRuns, worth_compiling
from wcll.training.engine import engine_for

CLASSES, TESTED, BATCH, HELD_OUT = 5, 5000, 256, 1 / 9


def data(images: int, tested: int) -> Dataset:
    """Random bytes: time does not depend on what they show."""
    rng = np.random.default_rng(0)

    def split(n: int) -> Split:
        return Split(rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8), np.arange(n) % CLASSES)

    each = images // CLASSES
    pool = CLASSES * (each + max(round(each * HELD_OUT), 1))
    return Dataset("random", tuple("abcde"), split(pool), split(tested), 255.0, False, "random", "memory")


def job(options: argparse.Namespace, seed: int) -> Job:
    """Runs that differ in their rate; how long a step takes does not depend on it."""
    settings = {"dataset": "random", "loss": "log", "seed": seed, "batch_size": BATCH, "epochs": options.epochs}
    settings |= {"n_majority": options.images // CLASSES, "validation": HELD_OUT, "normalise": options.normalise}
    settings |= {"model": {"name": "cnn9", "width": options.width}}
    return Job(tuple(Trial.of({**settings, "lr": 1e-4 * (1 + i)}) for i in range(options.runs)))


class Unit:
    """The seconds of one unit of a suite."""

    def __init__(self, one: Job, tasks: Tasks, options: argparse.Namespace, planned: int) -> None:
        self.device = torch.device(options.device)
        short = Job(tuple(replace(trial, epochs=options.measured) for trial in one.trials))
        task = tasks.of(short)
        training = replace(training_of(one, task.view, self.device), planned=planned)
        groups = [run_group(one, task.view)]
        self.compiled = engine_for(training) is CapturedRuns and worth_compiling(groups, training)
        self.prepared, engine = self.timed(lambda: make_engine(groups, training))
        recorder = _Recorder(engine, 0, task.view, short)
        self.epochs, self.looks = list[float](), list[float]()
        for _ in range(options.measured):
            self.epochs.append(self.timed(engine.run_epoch)[0])
            self.looks.append(self.timed(lambda: recorder(engine))[0])
        made = {"seconds": 1.0, "together": len(one.trials), **provenance(self.device), "data": task.data}

        def write() -> None:
            with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.sqlite") as store:
                store.add(outcomes(short.trials, recorder.recording, task, made))

        self.written = self.timed(write)[0] * options.epochs / options.measured

    def timed(self, function: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds until all is done that was asked for."""
        self._wait()
        start = time.perf_counter()
        found = function()
        self._wait()
        return time.perf_counter() - start, found

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    @property
    def epoch(self) -> float:
        """Seconds of the steps of an epoch; the first pays for what is prepared in it."""
        return median(self.epochs[1:])

    @property
    def first(self) -> float:
        """Seconds that the first epoch takes more: compiling, and recording steps."""
        return max(self.epochs[0] - self.epoch, 0.0)

    @property
    def look(self) -> float:
        """Seconds of one look at all test and held-out images, by all runs."""
        return median(self.looks[1:])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Two units, and what a run takes in all."""
    content = data(options.images, options.tested)
    tasks, planned = Tasks(lambda name: content), 2 * options.runs * options.epochs
    units = [Unit(job(options, seed), tasks, options, planned) for seed in (0, 1)]
    last, runs, epochs = units[-1], options.runs, options.epochs
    steps = max(options.images // BATCH, 1)
    looks = {"epochs": epochs, "checkpoints": len(checkpoints(epochs))}
    parts = {"steps": epochs * last.epoch / runs, "writing": last.written / runs}
    looking = {name: count * last.look / runs for name, count in looks.items()}
    return {
        "ms_per_run_step": 1e3 * last.epoch / (steps * runs),
        "compiled": last.compiled,
        "units": [{"preparation": u.prepared, "compiling and recording": u.first} for u in units],
        "seconds_a_run": {**parts, **{f"evaluation, evaluate={name}": value for name, value in looking.items()}},
        "seconds_a_run_in_all": {name: sum(parts.values()) + value for name, value in looking.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in {"runs": 16, "width": 64, "images": 12_600, "tested": TESTED, "epochs": 100}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--measured", type=int, default=4, help="epochs that are trained; two at least")
    parser.add_argument("--normalise", choices=["none", "standard"], default="none")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(arguments)
    options.measured = max(options.measured, 2)
    device = torch.device(options.device)
    command = f"python benchmarks/networks.py --runs {options.runs} --width {options.width} --images {options.images}"
    found = {"command": f"{command} --epochs {options.epochs}", "made": provenance(device), **measure(options)}
    text = json.dumps(found, indent=1)
    print(text)
    if options.out:
        options.out.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
