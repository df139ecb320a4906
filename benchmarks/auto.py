"""What ``ComplementaryClassifier()`` reaches without being told anything: the paper's settings, and a user's tables.

    WCLL_DATA=DATA python benchmarks/auto.py paper RUNS.jsonl [--seeds 100 101 102 103 104]
    python benchmarks/auto.py tables FOLDER RUNS.jsonl
    python benchmarks/auto.py summary RUNS.jsonl

``paper``: MNIST as in tables 2, 3, 4 and 6 (same images, same labels; linear models), against the best number that the
paper prints for any method in that setting. ``tables``: FOLDER has ``uniform.csv``, ``biased.csv`` and
``inverse-size.csv`` with columns of features and ``not_label``, ``new.csv`` with features of further rows, and
``true.csv`` with the ``label`` of all of them, which is read for the final evaluation alone. Numbers are standardised
and text is one-hot encoded; linear models and networks are tried.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wcll import ComplementaryClassifier
from wcll.datasets import load_dataset
from wcll.paper.published import METHODS, find
from wcll.running.task import make_task
from wcll.suites import load_suite
from wcll.suites.trial import Trial

SUITES = ("table2", "table3", "table4", "table6")
SEEDS = (100, 101, 102, 103, 104)  #: fresh: nothing was chosen by looking at them
KINDS = ("uniform", "biased", "inverse-size")


def settings() -> dict[str, Trial]:
    """A trial of every setting of the tables, by its title; settings of two tables are one."""
    found: dict[str, Trial] = {}
    for suite in map(load_suite, SUITES):
        row = next(row for row in suite.rows if row.title == "wcll")
        for column in suite.columns:
            found.setdefault(column.title, suite.candidates(column, row, 0)[0])
    return found


def best_published(trial: Trial) -> float:
    """The best number of any method that the paper prints for a setting."""
    minority = " ".join(map(str, trial.minority or ()))
    rows = (*METHODS, "under-sampling", "over-sampling")
    found = [find(table, "mnist", trial.p, minority, row) for table in (2, 3, 4, 5, 6) for row in rows]
    return max(one.mean for one in found if one is not None)


def of_paper(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A run of every setting and seed; training sees all labels that were drawn, and no true one."""
    dataset = load_dataset("mnist")
    for seed in seeds:
        for title, trial in settings().items():
            task = make_task(Trial.of({**_plain(trial), "seed": seed}), dataset)
            assert task.valid is not None
            x = torch.cat([task.train.x, task.valid.x]).flatten(1).numpy() / np.float32(255)
            ybar = np.concatenate([task.train.ybar, task.valid.ybar])
            start = time.perf_counter()
            model = ComplementaryClassifier(model="linear", random_state=seed).fit(x, ybar)
            seconds = time.perf_counter() - start
            test = task.test.x.flatten(1).numpy() / np.float32(255)
            right = 100 * float((model.predict(test) == task.test.y).mean())
            yield {
                "part": "paper",
                "setting": title,
                "seed": seed,
                "accuracy": right,
                "best": best_published(trial),
                **_chosen(model),
                "seconds": seconds,
            }


def _plain(trial: Trial) -> dict[str, Any]:
    """The settings of a trial as a suite writes them."""
    config = trial.config()
    for name in ("loss_options", "loss_revision", "model_options"):
        config.pop(name)
    return config


def of_tables(folder: Path) -> Iterator[dict[str, Any]]:
    """A run of every table; true labels are read at the end."""
    new = pd.read_csv(folder / "new.csv")
    for kind in KINDS:
        table = pd.read_csv(folder / f"{kind}.csv")
        labels = table.pop("not_label").to_numpy()
        numbers, text = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
        prepare = make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text)
        ).fit(table)
        x, further = prepare.transform(table), prepare.transform(new)
        start = time.perf_counter()
        model = ComplementaryClassifier(random_state=0).fit(x, labels)
        seconds = time.perf_counter() - start
        truth = pd.read_csv(folder / "true.csv").label.to_numpy()
        right = 100 * float((model.predict(further) == truth[len(table) :]).mean())
        limit = LogisticRegression(max_iter=2000).fit(x, truth[: len(table)])
        estimate = model.estimate_
        assert estimate is not None
        figure = estimate.accuracy
        yield {
            "part": "tables",
            "setting": kind,
            "seed": 0,
            "accuracy": right,
            "limit": 100 * float(limit.score(further, truth[len(table) :])),
            **_chosen(model),
            "seconds": seconds,
            "estimate": [100 * figure.value, 100 * figure.low, 100 * figure.high],
            "verdict": figure.verdict,
        }


def _chosen(model: ComplementaryClassifier) -> dict[str, Any]:
    chosen = model.chosen_
    q = chosen["transition"] if isinstance(chosen["transition"], str) else chosen["transition"].basis
    return {"model": chosen["model"], "lr": chosen["lr"], "epochs": chosen["max_epochs"], "Q": q}


def summary(rows: Sequence[dict[str, Any]]) -> None:
    """A line a setting."""
    by_setting = defaultdict(list)
    for row in rows:
        by_setting[row["part"], row["setting"]].append(row)
    print(f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}")
    for (part, title), found in by_setting.items():
        values = np.array([row["accuracy"] for row in found])
        spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
        line = f"{title:32} {values.mean():.1f}{spread} (n={len(values)})"
        if part == "paper":
            best = found[0]["best"]
            line += f"  best published {best:.1f}: {values.mean() - best:+.1f}, least {values.min() - best:+.1f}"
        else:
            low, high = found[0]["estimate"][1:]
            line += f"  true labels, logistic regression {found[0]['limit']:.1f}; its own estimate "
            line += f"{found[0]['estimate'][0]:.1f} [{low:.1f}, {high:.1f}], {found[0]['verdict']}"
        print(f"{line}; {np.mean([row['seconds'] for row in found]):.0f} s a fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    paper = commands.add_parser("paper")
    paper.add_argument("runs", type=Path)
    paper.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    tables = commands.add_parser("tables")
    tables.add_argument("folder", type=Path)
    tables.add_argument("runs", type=Path)
    commands.add_parser("summary").add_argument("runs", type=Path)
    given = parser.parse_args()
    if given.command == "summary":
        summary([json.loads(line) for line in given.runs.read_text().splitlines()])
        return
    for row in of_paper(given.seeds) if given.command == "paper" else of_tables(given.folder):
        with given.runs.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
