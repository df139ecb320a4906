"""Trainings for tests of several processes: what each of them does, and a way to start them.

Run as a script, it is one of the processes; they meet in a file, and speak through loopback.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from cases import CASES, context
from wcll import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training, make_engine
from wcll.training.distributed import ranks, together
from wcll.training.recipe import recipe_of

K, N, BATCH, RATE = 4, 45, 9, 1e-2  #: an odd batch: parts of two processes differ
EPOCHS = 2  #: of five steps: the last incomplete batch is dropped

#: Models, and what is drawn for them: tables or small images.
MODELS = {
    "linear": "linear",
    "mlp": {"name": "mlp", "hidden": 8, "dropout": 0.3},
    "cnn9": {"name": "cnn9", "width": 2},
    "strong": {"name": "cnn9", "width": 2, "dropout": 0.0},
}


def group(kind: str, labels: str = "one") -> RunGroup:
    """Every loss as a run of its own: all of them, or those that take several labels."""
    rng = np.random.default_rng(0)
    image = kind in ("cnn9", "strong")
    x = torch.from_numpy(rng.normal(size=(N, 3, 8, 8) if image else (N, 6)))
    ybar = torch.from_numpy(rng.integers(0, K, N))
    ybar[: N // 2] %= K - 1  # one class is rare
    cases = [case for case in CASES if labels == "one" or case.several]
    if image:
        cases = cases[::20]
    if labels == "several":
        mask = torch.nn.functional.one_hot(ybar, K).bool()
        ybar = mask | torch.nn.functional.one_hot((ybar + 1) % K, K).bool()
    weight = torch.from_numpy(rng.uniform(0.2, 1.8, N))
    losses = [
        RunLoss(LOSSES[case.name], tuple(case.options.items()), Context(**context(case, K, 0)), i, i + 1)
        for i, case in enumerate(cases)
    ]
    return RunGroup(x, Targets.of(ybar, K, weight / weight.mean()), 3, [RATE] * len(cases), losses)


def training(kind: str) -> Training:
    recipe = recipe_of("strong" if kind == "strong" else "plain")
    if kind == "strong":
        recipe = replace(recipe, crop=1)
    plain = Training(MODELS[kind], K, 1.0, BATCH, 1e-4, torch.float64, torch.device("cpu"), EPOCHS)
    return replace(plain, recipe=recipe, mean_losses=True)


def engine(kind: str, labels: str = "one"):
    return make_engine([group(kind, labels)], training(kind))


def trained(kind: str, labels: str = "one", epochs: int = EPOCHS):
    """Parameters after some epochs, and losses of the last."""
    made = engine(kind, labels)
    for _ in range(epochs):
        made.run_epoch()
    return {**made.parameters(0), "losses": made.mean_losses(0)}


def absent_classes() -> int:
    """How often a class of the batch is absent from this process's part of it."""
    made, who, found = engine("linear"), ranks(), 0
    for epoch in range(EPOCHS):
        made.epoch = epoch
        for rows in made._order()[:, 0]:
            whole, own = (set(made.groups[0].targets.index[some].tolist()) for some in (rows, rows[who.part(BATCH)]))
            found += whole > own
    return found


def start(folder: Path, count: int = 2) -> list[subprocess.CompletedProcess[str]]:
    """Let some processes do everything together; what each said."""
    command = [sys.executable, __file__, str(folder)]
    quiet = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    here = [
        subprocess.Popen([*command, str(rank), str(count)], env=quiet, stdout=-1, stderr=-1, text=True)
        for rank in range(count)
    ]
    found = []
    try:
        for process in here:
            out, err = process.communicate(timeout=240)
            found.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    finally:
        for process in here:
            process.kill()
    return found


def everything(folder: Path, rank: int) -> None:
    """Train all models with every loss, some of them halfway, and write what came of it; try to train apart."""
    for kind, labels in [*((kind, "one") for kind in MODELS), ("linear", "several"), ("mlp", "several")]:
        torch.save(trained(kind, labels), folder / f"{kind}-{labels}-{rank}.pt")
    for kind in ("linear", "mlp"):
        made = engine(kind)
        for _ in range(EPOCHS // 2):
            made.run_epoch()
        torch.save(made.state(), folder / f"state-{kind}-{rank}.pt")
    print(absent_classes())
    x, ybar = group("linear").x.numpy(), group("linear").targets.index.numpy()
    late = ComplementaryClassifier(model="mlp", max_time=0.05 * (1 + rank), random_state=0).fit(x, ybar)
    print(late.selection_)
    try:
        make_engine([replace(group("linear"), seed=rank)], training("linear"))
    except InputError as error:
        print(error)


def main() -> None:
    folder, rank, count = Path(sys.argv[1]), *map(int, sys.argv[2:])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", (folder / "meeting").as_uri(), rank=rank, world_size=count)
    with together():
        everything(folder, rank)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
