"""One model in two processes against one: time of a step, and what is exchanged.

    python benchmarks/ranks.py [--steps 20] [--repeats 5]

Every process has one thread. Prints milliseconds a step (medians over repeats) alone and in two processes that meet in
a file and speak through loopback (gloo), their ratio (below 1: two are faster, 0.5 at best), and the bytes that a
process sends a step: logits of its part of the batch, and the gradient of all parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from wcll.labels import Belief
from wcll.losses import LOSSES, Targets
from wcll.training import Engine, RunGroup, RunLoss, Training, make_engine, together

CLASSES = 10
#: Models with the shape of a sample and the size of a batch.
SIZES = [
    ("linear", (100,), 256),
    ("linear", (100,), 8192),
    ("mlp", (784,), 256),
    ("mlp", (784,), 4096),
    ("cnn9", (3, 32, 32), 64),
]


def engine(model: str, shape: tuple[int, ...], batch: int, steps: int) -> Engine:
    """An epoch of so many steps on random samples: time does not depend on what they show."""
    rng = np.random.default_rng(0)
    n = batch * steps if len(shape) == 1 and batch * steps < 200_000 else batch * min(steps, 5)
    x = torch.from_numpy(rng.standard_normal((n, *shape), dtype=np.float32))
    ybar = torch.from_numpy(rng.integers(0, CLASSES, n))
    spec = LOSSES["forward"]
    told = spec.told(Belief.of("uniform", np.bincount(ybar, minlength=CLASSES).astype(float)))
    group = RunGroup(x, Targets.of(ybar, CLASSES), 0, [1e-3], [RunLoss(spec, (), told, 0, 1)])
    return make_engine([group], Training(model, CLASSES, 1.0, batch, 1e-4, torch.float32, torch.device("cpu")))


def measure(steps: int, repeats: int) -> list[dict[str, float]]:
    """Milliseconds a step of each size."""
    found = []
    for model, shape, batch in SIZES:
        made, times = engine(model, shape, batch, steps), []
        made.run_epoch()
        for _ in range(repeats):
            start = time.perf_counter()
            made.run_epoch()
            times.append((time.perf_counter() - start) / (made.n // batch))
        parameters = sum(tensor.numel() for name, tensor in made.parameters(0).items() if "running" not in name)
        found.append({"ms": 1000 * statistics.median(times), "parameters": parameters})
    return found


def two(steps: int, repeats: int) -> list[dict[str, float]]:
    """The same in two processes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--steps", str(steps), "--repeats", str(repeats), "--meeting", folder]
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        both = [
            subprocess.Popen([*command, "--rank", str(rank)], env=environment, stdout=subprocess.PIPE, text=True)
            for rank in (0, 1)
        ]
        said = [process.communicate()[0] for process in both]
    found: list[dict[str, float]] = json.loads(said[0])
    return found


def main() -> None:
    """Measure alone, then together; a process of two says what it has measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--meeting", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.meeting is not None:
        place = (options.meeting / "meeting").as_uri()
        distributed.init_process_group("gloo", place, rank=options.rank, world_size=2)
        with together():
            print(json.dumps(measure(options.steps, options.repeats)))
        distributed.destroy_process_group()
        return
    versions = f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}"
    print(f"{versions}, {os.cpu_count()} cores, one thread a process")
    alone, both = measure(options.steps, options.repeats), two(options.steps, options.repeats)
    print(f"{'model':8}{'batch':>7}{'parameters':>12}{'alone, ms':>11}{'two, ms':>9}{'ratio':>7}{'KB sent a step':>16}")
    for (model, _, batch), one, other in zip(SIZES, alone, both, strict=True):
        sent = 4 * (batch / 2 * CLASSES + one["parameters"]) / 1000
        line = f"{model:8}{batch:7}{one['parameters']:12}{one['ms']:11.2f}{other['ms']:9.2f}"
        print(f"{line}{other['ms'] / one['ms']:7.2f}{sent:16.0f}")


if __name__ == "__main__":
    main()
