"""The engine on a GPU: time of table 2's MNIST runs, of a step of the paper's network, and whether precision matters.

    python benchmarks/gpu.py --data DIR --out benchmarks/results/NAME.json

DIR holds MNIST. Every figure is measured in this one run; hardware and versions are written beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from wcll.datasets import load_dataset
from wcll.experiments import parse_suite
from wcll.experiments.grouping import Job, plan
from wcll.experiments.row import provenance
from wcll.experiments.train import run_group, training_of
from wcll.experiments.worker import Tasks, run_jobs
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training
from wcll.training.cuda_graph import STREAMS, CapturedRuns
from wcll.training.recipe import PLAIN, RECIPES

HERE = Path(__file__).parent
CUDA = torch.device("cuda")
STEP_TFLOP = 0.41  # of cnn9 with widths 64/128/256 on 256 images of 3 x 32 x 32, forward and backward

AGREE = """
trials = 10
[settings]
dataset = "mnist"
imbalance = "eq6"
minority = [0]
p = 2
n_majority = 2000
labels = "inverse-size"
pi = "declared"
lr = 5e-4
epochs = 20
[[rows]]
loss = "wcll"
[[rows]]
loss = "log"
[[rows]]
loss = "free"
[[rows]]
loss = "forward"
assume = "inverse-size"
"""

NETWORK = """
trials = 5
[settings]
dataset = "mnist"
imbalance = "eq6"
minority = [0]
p = 2
n_majority = 500
labels = "inverse-size"
model = "cnn9"
lr = 5e-4
epochs = 15
[[rows]]
loss = "log"
[[rows]]
loss = "forward"
assume = "inverse-size"
"""


def timed_suite(data: Path, trials: int) -> dict[str, Any]:
    """All of a command: start of Python, reading data, training, evaluation, writing, printing tables."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["run", "benchmarks/table2.toml", "--data", str(data), "--store", f"{folder}/s.sqlite"]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "wcll", *command, "--trials", str(trials)], cwd=HERE.parent, check=True,
                       capture_output=True)  # fmt: skip
        return {"command": f"wcll run benchmarks/table2.toml --trials {trials}", "runs": 288 * trials,
                "seconds": time.perf_counter() - start}  # fmt: skip


def matmul_rate() -> float:
    """Measured bf16 TFLOP/s of a large product."""
    a = torch.randn(8192, 8192, device=CUDA, dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - start) / 1e12


def _images(runs: int, steps: int) -> tuple[RunGroup, Training]:
    """Runs of cnn9 on random images of CIFAR-10's size."""
    n = 256 * steps
    x, y = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 5, (n,))
    loss = RunLoss(LOSSES["log"], (), Context(), 0, runs)
    group = RunGroup(x, Targets.of(y, 5), 0, [1e-4] * runs, [loss])
    return group, Training({"name": "cnn9"}, 5, 255.0, 256, 1e-4, torch.float32, CUDA, epochs=100)


def _ms_per_run_step(engine: CapturedRuns, epochs: int = 2) -> float:
    """Of an engine that is under way."""
    for _ in range(2):
        engine.run_epoch()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(epochs):
        engine.run_epoch()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / (epochs * engine.steps * engine.n_runs)


def recipes(runs: int = 4, steps: int = 46, repeats: int = 2) -> dict[str, Any]:
    """Milliseconds of a run-step of cnn9 under each way of training, in turns, and how many times the paper's it is."""
    group, training = _images(runs, steps)
    strong = RECIPES["strong"]
    asked = {"plain": PLAIN, "strong, one view": replace(strong, consistency=0.0), "strong": strong}
    asked["strong, cut-out and mixup"] = replace(strong, cutout=8, mixup=0.2)
    found: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(repeats):
        for name, recipe in asked.items():
            engine = CapturedRuns([group], replace(training, recipe=recipe), compiled=True)
            found[name].append(_ms_per_run_step(engine))
            del engine
            torch.cuda.empty_cache()
    best = {name: min(times) for name, times in found.items()}
    rate = matmul_rate()
    shares = {"share_of_rate": STEP_TFLOP / best["plain"] * 1e3 / rate, "bf16_tflops_measured": rate}
    return {"ms_per_run_step": found, "times_the_papers": {n: t / best["plain"] for n, t in best.items()}, **shares}


def network(runs: int = 16, steps: int = 46) -> dict[str, Any]:
    """Milliseconds of a run-step of cnn9 while many runs are under way, and where they go."""
    group, training = _images(runs, steps)
    rate, found = matmul_rate(), {}
    for compiled in (False, True):
        for streams in (1, STREAMS):
            engine = CapturedRuns([group], training, compiled=compiled, streams=streams)
            found[f"compiled={compiled}, streams={streams}"] = _ms_per_run_step(engine)
            kernels = _kernels(engine, runs) if streams == 1 else None
            if kernels:
                found[f"kernels, compiled={compiled}"] = kernels
            del engine
            torch.cuda.empty_cache()
    best = min(value for value in found.values() if isinstance(value, float))
    share = STEP_TFLOP / best * 1e3 / rate
    return {"ms_per_run_step": found, "best_ms": best, "bf16_tflops_measured": rate, "share_of_rate": share}


def _kernels(engine: CapturedRuns, runs: int) -> dict[str, float]:
    """Milliseconds a run-step by kind of kernel."""
    engine.position.zero_()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        engine._replay()
        torch.cuda.synchronize()
    kinds = {
        "convolutions": ("gemm", "conv", "xmma", "cutlass", "wgrad", "dgrad", "fprop"),
        "pooling": ("max_pool",),
        "norm": ("batch_norm", "native_batch", "var_mean", "red_fused"),
        "optimiser": ("FusedOptim", "multi_tensor"),
        "compiled, pointwise": ("triton_poi",),
    }
    split = dict.fromkeys([*kinds, "other"], 0.0)
    for row in seen.key_averages():
        kind = next((kind for kind, names in kinds.items() if any(name in row.key for name in names)), "other")
        split[kind] += row.self_device_time_total / 1e3 / runs
    return split


def agreement(data: Path) -> dict[str, Any]:
    """Final accuracies of linear runs, all of them in step and one by one, in float32 over ten seeds."""
    suite, tasks = parse_suite(AGREE, "agree"), Tasks(lambda name: load_dataset(name, data))
    jobs = [(job, tasks.of(job)) for job in plan(list(suite.all_trials()), together=64)]
    together = {row.key: row for row in run_jobs(jobs, CUDA)}
    singles = [(Job((trial,)), task) for job, task in jobs for trial in job.trials]
    alone = {row.key: row for single in singles for row in run_jobs([single], CUDA)}
    found = {}
    for loss in ("wcll", "log", "free", "forward"):
        keys = [key for key, row in together.items() if row.config["loss"] == loss]
        first, second = (np.array([rows[key].metrics["accuracy"] for key in keys]) for rows in (together, alone))
        means = {"together": first.mean(), "alone": second.mean(), "seed_std": first.std(ddof=1)}
        found[loss] = {**means, "largest_difference": np.abs(first - second).max()}
    return found


def precision(data: Path) -> dict[str, Any]:
    """Final test accuracies of cnn9 in bfloat16 and in float32 over five seeds."""
    suite, tasks = parse_suite(NETWORK, "network"), Tasks(lambda name: load_dataset(name, data))
    accuracy: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    for job in plan(list(suite.all_trials()), together=64):
        task = tasks.of(job)
        for half, found in accuracy.items():
            engine = CapturedRuns([run_group(job, task.view)], training_of(job, task.view, CUDA), half=half)
            for _ in range(job.first.epochs):
                engine.run_epoch()
            right = engine.classify(0, engine.prepare(task.test.x)).cpu() == torch.as_tensor(task.test.y)
            for trial, hits in zip(job.trials, right, strict=True):
                found.setdefault(trial.loss, []).append(float(hits.float().mean()))
    kinds = {"bfloat16": accuracy[True], "float32": accuracy[False]}
    return {
        loss: {kind: {"mean": np.mean(f[loss]), "std": np.std(f[loss], ddof=1)} for kind, f in kinds.items()}
        for loss in accuracy[True]
    }


def main() -> None:
    """Measure everything, print it, write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", action="append", help="only this part; the others of the file stay as they are")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    results: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    results |= {"command": "python benchmarks/gpu.py --data DIR --out FILE", "made": provenance(CUDA)}
    parts = {
        "table 2, 1440 runs": lambda: timed_suite(options.data, 5),
        "as many runs as the paper's MNIST half": lambda: timed_suite(options.data, 14),
        "cnn9": network,
        "cnn9, ways of training": recipes,
        "linear, together and alone": lambda: agreement(options.data),
        "cnn9, bfloat16 and float32": lambda: precision(options.data),
    }
    for name, measure in parts.items():
        if options.part and name not in options.part:
            continue
        results[name] = measure()
        print(name, json.dumps(results[name], indent=1), flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
