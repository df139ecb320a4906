"""How long a list of 100,000 stored runs takes, and how much memory.

    python benchmarks/store.py [--runs 100000]

Makes a store in a temporary folder, of runs with the settings of MNIST and histories as 100 epochs leave them, and
calls the command line in processes of their own, from the start of Python to the last line: the best of three.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wcll.evaluation import checkpoints
from wcll.experiments import Row, Store, Trial
from wcll.experiments.store import Packed, pack

SETTINGS = {
    **{"dataset": "mnist", "lr": 1e-4, "seed": 0, "imbalance": "eq6", "minority": [0], "p": 5, "n_majority": 1000},
    **{"labels": "inverse-size", "judge": "inverse-size", "epochs": 100},
}
LOSSES, K, TESTED = ("wcll", "pc", "forward", "free", "nn"), 10, 1000
COMMANDS = {
    "results": [],
    "results --where seed=5": ["--where", "seed=5"],
    "results --where lr=5e-4": ["--where", "lr=5e-4"],
    "results export x.csv": ["export", "x.csv"],
}
#: The command, and then what Linux says of the process's peak.
CHILD = """
import sys
from wcll.cli.app import run
assert run(sys.argv[1:]) == 0
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
"""


def history(rng: np.random.Generator) -> dict[str, Any]:
    """Counts and scores as a run leaves them."""
    compared = checkpoints(100)
    right = np.sort(rng.integers(300, 900, (100, K)), axis=0)
    tables = rng.multinomial(TESTED, np.full(K, 1 / K), size=(len(compared), K))
    judge = {"transition": ((1 - np.eye(K)) / (K - 1)).tolist(), "transition_source": "assumed", "prior": None}
    return {
        **{"sizes": [200] + [1000] * 9, "train_labels": [920] * K, "test_sizes": [TESTED] * K},
        **{"judge": {**judge, "prior_source": "estimated", "totals": [920] * K}, "checkpoints": list(compared)},
        **{"correct": right.tolist(), "confusion": tables.tolist(), "held_out": (tables // 10).tolist()},
        **{name: rng.random(100).tolist() for name in ("train_loss", "log_likelihood", "log_likelihood_se")},
    }


def packed(runs: int) -> list[Packed]:
    """Runs of five losses, rates and seeds; the histories of a hundred of them are used again and again."""
    rng = np.random.default_rng(0)
    made = {
        **{"seconds": 1.25, "together": 28, "commit": "0123456789ab", "wcll": "0.1.0", "torch": "2.13.0"},
        **{"numpy": "2.4.6", "python": "3.11.7", "device": "x86_64", "threads": 1},
        "data": {"fingerprint": "0123456789abcdef", "official": True, "stamp": ""},
    }
    trials = [Trial.of({**SETTINGS, "loss": loss}) for loss in LOSSES]
    histories = [pack(Row("", {}, {}, history(rng), {}))[3] for _ in range(100)]
    found = []
    for i in range(runs):
        seed, place = divmod(i, 20)
        run = replace(trials[place % 5], lr=(1e-4, 5e-4, 1e-3, 5e-3)[place // 5], seed=seed)
        metrics = {"accuracy": rng.random(), "balanced_accuracy": rng.random(), "minority_recall": rng.random()}
        key, config, figures, _, provenance, now = pack(Row(run.key, run.config(), metrics, {}, made))
        found.append((key, config, figures, histories[i % 100], provenance, now))
    return found


def measure(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Seconds and seconds of the CPU of the fastest of three, and the peak memory in MB."""
    times, cpu, peaks = [], [], []
    for _ in range(3):
        start, before = time.perf_counter(), sum(os.times()[2:4])
        child = subprocess.run(
            [sys.executable, "-c", CHILD, "results", "--store", "runs.sqlite", *command],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        times.append(time.perf_counter() - start)
        cpu.append(sum(os.times()[2:4]) - before)
        peaks.append(int(child.stderr.split()[-2]) / 1000)
    return min(times), min(cpu), max(peaks)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store(folder / "runs.sqlite") as store:
            store.put(packed(runs))
        size = (folder / "runs.sqlite").stat().st_size / 1e6
        print(f"{runs:,} runs, {size:.0f} MB")
        print(f"{'wcll':<28}{'seconds':>9}{'CPU s':>9}{'peak MB':>9}")
        for text, command in COMMANDS.items():
            seconds, cpu, peak = measure(command, folder)
            print(f"{text:<28}{seconds:>9.2f}{cpu:>9.2f}{peak:>9.0f}", flush=True)
    versions = f"python {platform.python_version()}, sqlite {sqlite3.sqlite_version}"
    print(f"{versions}, {platform.machine()}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
