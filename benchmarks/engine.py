"""The engine against plain loops, on MNIST's shape: 28 runs (7 losses x 4 rates) of a linear model.

    python benchmarks/engine.py [--repeats 5] [--epochs 5] [--before CHECKOUT]

Prints ``ratio: N``, the time of the FASTEST plain loop over that of the fastest engine, both for the same 28 runs. A
plain loop trains run after run from tensors in memory with torch.optim.Adam: in one process with one thread, with two
threads, or in two processes of one thread each that share the runs. The engine trains all runs at once, likewise in one
process or in two. All variants are interleaved; medians over repeats are compared. ``--before`` takes the engine of
another checkout among them, each in a process of its own with one thread, and prints how much slower this one is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from wcll.losses import LOSSES, Context, Targets
from wcll.losses.registry import softmax
from wcll.training import RunGroup, RunLoss, Training
from wcll.training.linear import LinearRuns, _products

N, FEATURES, CLASSES, BATCH = 10_000, 784, 10, 256
STEPS = N // BATCH
LOSS_NAMES = ("pc", "free", "nn", "log", "exp", "l-uw", "wcll")
RATES = (5e-4, 1e-4, 5e-5, 5e-6)
DECAY = 1e-4


@cache
def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Random images and labels: time does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(N, FEATURES, generator=generator), torch.randint(0, CLASSES, (N,), generator=generator)


def context(name: str) -> Context:
    """What each loss is told: uniform Q, observed shares, weights for WCLL."""
    shares = np.full(CLASSES, 1 / CLASSES)
    return Context(
        weight=np.ones(CLASSES) if name == "wcll" else None,
        marginal=shares if name in ("free", "nn") else None,
        pi=shares,
    )


def plain_loop(runs: list[tuple[str, float]], epochs: int) -> None:
    """Run after run, as one would write it."""
    x, ybar = data()
    targets = Targets.of(ybar, CLASSES)  # labels are checked once: that is no part of a step
    for name, rate in runs:
        model = torch.nn.Linear(FEATURES, CLASSES)
        optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=DECAY)
        loss = LOSSES[name].bind(context(name).to(torch.empty(0, CLASSES)))
        for _ in range(epochs):
            order = torch.randperm(N)
            for start in range(0, N - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                optimiser.zero_grad()
                loss(model(x[rows]), targets[rows]).backward()
                optimiser.step()


RUNS = [(name, rate) for name in LOSS_NAMES for rate in RATES]


def engine(runs: list[tuple[str, float]], epochs: int) -> None:
    """All runs at once, set-up included."""
    stack = make_engine(runs)
    for _ in range(epochs):
        stack.run_epoch()


def make_engine(runs: list[tuple[str, float]]) -> LinearRuns:
    """Runs in one stack; those of a loss beside each other."""
    x, ybar = data()
    losses, stop = [], 0
    for name, same in groupby(runs, key=lambda run: run[0]):
        start, stop = stop, stop + len(list(same))
        losses.append(RunLoss(LOSSES[name], (), context(name), start, stop))
    training = Training({"name": "linear"}, CLASSES, 1.0, BATCH, DECAY, torch.float32, torch.device("cpu"))
    return LinearRuns([RunGroup(x, Targets.of(ybar, CLASSES), 0, [rate for _, rate in runs], losses)], training)


Work = Callable[[list[tuple[str, float]], int], None]


def one_process(work: Work, threads: int, epochs: int) -> float:
    """Seconds in this process."""
    data()
    torch.set_num_threads(threads)
    start = time.perf_counter()
    work(RUNS, epochs)
    return time.perf_counter() - start


def _half(connection, work: Work, half: int, epochs: int) -> None:  # type: ignore[no-untyped-def]
    torch.set_num_threads(1)
    mine = [run for i, run in enumerate(RUNS) if i % len(RATES) % 2 == half]  # every loss, half of the rates
    work(mine[:2], 1)  # warm up
    connection.send("ready")
    connection.recv()
    work(mine, epochs)
    connection.send("done")


def two_processes(work: Work, epochs: int) -> float:
    """Seconds of two processes with half of the runs each, from when both are ready."""
    spawn = multiprocessing.get_context("spawn")
    pipes = [spawn.Pipe() for _ in range(2)]
    workers = [spawn.Process(target=_half, args=(pipe[1], work, i, epochs)) for i, pipe in enumerate(pipes)]
    for worker in workers:
        worker.start()
    for pipe in pipes:
        pipe[0].recv()
    start = time.perf_counter()
    for pipe in pipes:
        pipe[0].send("go")
    for pipe in pipes:
        pipe[0].recv()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return seconds


def in_checkout(checkout: Path, epochs: int) -> float:
    """Seconds of the engine of a checkout in a new process with one thread, after a short warm-up."""
    code = f"import engine; engine.engine(engine.RUNS, 1); print(engine.one_process(engine.engine, 1, {epochs}))"
    path = os.pathsep.join([str(checkout / "src"), str(checkout / "benchmarks")])
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def seconds_of(function: Callable[[], object], repeats: int = 200) -> float:
    """Median seconds of one call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def split() -> dict[str, float]:
    """Milliseconds of a step's parts, with one thread."""
    torch.set_num_threads(1)
    runs = make_engine(RUNS)
    runs.run_epoch()
    x = runs.x.index_select(0, runs.rows).view(1, -1, runs.width)

    def products() -> None:
        _products(runs.weights, x.mT, runs.logits)
        _products(runs.slope, x, runs.optimiser.gradient)

    def losses() -> None:
        targets, logits, slope = runs.labels.of(runs.rows), runs._by_run(runs.logits), runs._by_run(runs.slope)
        p = softmax(logits)
        for loss in runs.losses:
            slope[:, loss.runs] = loss.gradient(logits[:, loss.runs], p[:, loss.runs], targets)

    with torch.no_grad():
        parts = {"products": seconds_of(products), "losses": seconds_of(losses)}
        parts["optimiser"] = seconds_of(runs.optimiser.step)
        whole = seconds_of(runs._step)
    parts["rest"] = max(whole - sum(parts.values()), 0.0)
    return {name: 1e3 * value for name, value in parts.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit")
    options = parser.parse_args()
    epochs = options.epochs
    variants: dict[str, Callable[[], float]] = {
        "plain, 1 thread": lambda: one_process(plain_loop, 1, epochs),
        "plain, 2 threads": lambda: one_process(plain_loop, 2, epochs),
        "plain, 2 processes": lambda: two_processes(plain_loop, epochs),
        "engine, 1 thread": lambda: one_process(engine, 1, epochs),
        "engine, 2 threads": lambda: one_process(engine, 2, epochs),
        "engine, 2 processes": lambda: two_processes(engine, epochs),
    }
    if options.before:
        variants |= {
            "before": lambda: in_checkout(options.before, epochs),
            "now": lambda: in_checkout(Path(__file__).parents[1], epochs),
        }
    times: dict[str, list[float]] = {name: [] for name in variants}
    one_process(plain_loop, 1, 1)  # warm up
    for _ in range(options.repeats):
        for name, measure in variants.items():
            times[name].append(measure())
    steps = STEPS * epochs * len(RUNS)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        shown = ", ".join(f"{value:.2f}" for value in values)
        print(f"{name}: median {medians[name]:.2f} s ({1e3 * medians[name] / steps:.3f} ms a run-step); all: {shown}")
    parts = split()
    left, right = torch.rand(280, 800), torch.rand(800, 256)
    rate = 2 * 280 * 800 * 256 / seconds_of(lambda: left @ right) / 1e9
    print("a step of 28 runs with 1 thread, ms: " + ", ".join(f"{name} {value:.2f}" for name, value in parts.items()))
    print(f"matrix products here with 1 thread: {rate:.0f} GFLOP/s")
    print(f"{platform.machine()}, {os.cpu_count()} cores; torch {torch.__version__}, numpy {np.__version__}")
    plain = min(value for name, value in medians.items() if name.startswith("plain"))
    fast = min(value for name, value in medians.items() if name.startswith("engine"))
    if options.before:
        print(f"now / before: {medians['now'] / medians['before']:.2f}")
    print(f"ratio: {plain / fast:.1f}")


if __name__ == "__main__":
    main()
