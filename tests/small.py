"""Small suites for tests, and ways to run the command line in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

import torch

from wcll.datasets import load_dataset
from wcll.evaluation import checkpoints
from wcll.experiments import Row, Trial
from wcll.experiments.grouping import in_step, plan
from wcll.experiments.messages import work
from wcll.experiments.worker import Tasks, run_jobs

LINEAR_MODEL = {"title": "linear", "model": "linear"}
MLP = {"title": "mlp", "model": {"name": "mlp", "hidden": 16, "dropout": 0.2}}
WCLL, PC = {"loss": "wcll"}, {"loss": "pc"}
FORWARD = {"title": "forward", "loss": "forward", "assume": "inverse-size"}
LIMIT = {"title": "limit", "loss": "cross-entropy"}
TABLE = {"metrics": ["accuracy", "macro_f1"], "select": "label-free"}
SETTINGS = {
    "dataset": "digits",
    "imbalance": "eq6",
    "minority": [0],
    "p": 2,
    "n_majority": 60,
    "labels": "inverse-size",
    "judge": "inverse-size",
    "batch_size": 64,
    "epochs": 12,
    "dtype": "float64",
}


def toml(value: object) -> str:
    """Return a value as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def suite_toml(
    *,
    title: str = "Small",
    trials: int = 3,
    grid: Mapping[str, object] | None = None,
    columns: Sequence[Mapping[str, object]] = (LINEAR_MODEL, MLP),
    rows: Sequence[Mapping[str, object]] = (WCLL, PC, FORWARD, LIMIT),
    tables: Sequence[Mapping[str, object]] = (TABLE,),
    **settings: object,
) -> str:
    """Return a suite as TOML: four methods with two models on digits, but for what is given."""
    parts = {"[settings]": {**SETTINGS, **settings}, "[grid]": {"lr": [1e-3, 1e-2]} if grid is None else grid}
    named = [*parts.items()]
    for name, some in (("[[columns]]", columns), ("[[rows]]", rows), ("[[tables]]", tables)):
        named += [(name, one) for one in some]
    lines = ["", f"title = {toml(title)}", f"trials = {trials}"]
    for head, values in named:
        lines += ["", head, *(f"{name} = {toml(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


SMALL = suite_toml()

#: As many runs, all of linear models: a process that asks what networks take loads for seconds more.
RARER = {"title": "rarer", "model": "linear", "p": 4}
linear_toml = partial(suite_toml, columns=(LINEAR_MODEL, RARER))
LINEAR = linear_toml()


BASE = {
    **{"dataset": "digits", "loss": "wcll", "lr": 1e-2, "seed": 0, "imbalance": "eq6", "minority": [0], "p": 2},
    **{"n_majority": 60, "labels": "inverse-size", "epochs": 3, "batch_size": 64, "dtype": "float64"},
}


def trial(**changes):
    """A short run on digits with one rare class."""
    return Trial.of({**BASE, **changes})


def finished(run, correct=5):
    """A row as training would leave it: of ten test samples a class, so many are right from the first epoch on."""
    k, epochs, wrong = 10, run.epochs, 10 - correct
    table = [[correct if i == j else wrong if j == (i + 1) % k else 0 for j in range(k)] for i in range(k)]
    judge = {"transition": [[0 if i == j else 1 / 9 for j in range(k)] for i in range(k)], "prior": None}
    history = {
        **{"sizes": [30] + [60] * 9, "train_labels": [57] * k, "test_sizes": [10] * k},
        **{"judge": {**judge, "transition_source": "assumed", "prior_source": "estimated", "totals": [57] * k}},
        **{"checkpoints": list(checkpoints(epochs)), "correct": [[correct] * k] * epochs},
        **{name: [table] * len(checkpoints(epochs)) for name in ("confusion", "held_out")},
        **{name: [1.0] * epochs for name in ("train_loss", "log_likelihood", "log_likelihood_se")},
    }
    made = {"seconds": 1.0, "data": {"fingerprint": "f", "official": True, "stamp": ""}}
    return Row(run.key, run.config(), {"accuracy": correct / 10}, history, made)


def run_suite(suite, seeds, device="cpu", *, load=load_dataset, plain=False):
    """The rows of a suite by key, without a store, by the engine or a plain loop."""
    tasks, where = Tasks(load), torch.device(device)
    jobs = plan(list(suite.all_trials(seeds)), together=64)
    steps = [[(job, tasks.of(job)) for job in step] for step in in_step(jobs, where)]
    return {row.key: row for step in steps for row in run_jobs(step, where, plain=plain)}


#: Seconds for what takes a few: machines are shared and slow, and what hangs is found all the same.
PATIENCE = 600


def heeds_control_c() -> None:
    """For a new process: one that was started in the background would ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """A Python process of its own; its errors come back as text."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            text=True, **{"preexec_fn": heeds_control_c, **options})  # fmt: skip


MAIN = "from wcll.cli import main; main()"


def work_or_die(text: str) -> str:
    """In place of what workers do: a unit of one loss kills its worker, however often it is tried."""
    if '"loss":"pc"' in text and '"p":2' in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(text)
