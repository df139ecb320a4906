"""What ``ComplementaryClassifier()`` reaches without being told anything: the paper's settings, and a user's tables.

    export WCLL_DATA=DATA
    python benchmarks/auto.py paper RUNS.jsonl --part 1/16       (... 16/16: as many processes)
    python benchmarks/auto.py rivals RUNS.jsonl --store S.sqlite --device cuda
    python benchmarks/auto.py tables FOLDER RUNS.jsonl
    python benchmarks/auto.py summary RUNS.jsonl

``paper``: MNIST as in tables 2, 3, 4 and 6 (linear models, on the CPU; seeds 100 to 104 unless ``--seeds`` names
others), against the best number that the paper prints for any method in that setting. ``rivals``: both readings of
WCLL, and ordinary labels, on the same images and labels by the fair protocol (rate and epoch chosen by held-out
complementary labels). The summary says which share of the gap between WCLL, in the reading that is better in that
setting by TEST, and ordinary labels is closed,

    sum(auto - WCLL) / sum(ordinary labels - WCLL) ,

with a 95 % interval (seeds of every setting drawn again), and how good the default's estimates of its own accuracy are.

``tables``: FOLDER has ``uniform.csv``, ``biased.csv`` and ``inverse-size.csv`` with columns of features and
``not_label``, ``new.csv`` with features of further rows, and ``true.csv`` with the ``label`` of all of them, which is
read for the final evaluation alone. Numbers are standardised and text is one-hot encoded; linear models and networks
are tried.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from annotators import pooled
from default_runs import (
    AUTO,
    SEEDS,
    Line,
    append,
    by_seed,
    coverage,
    draw,
    have,
    new,
    own_words,
    part_of,
    read,
    run_default,
)
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import wcll
from wcll import ComplementaryClassifier
from wcll.datasets import load_dataset
from wcll.experiments import Suite, load_suite
from wcll.experiments.trial import Trial
from wcll.paper.comparison import FORMULAS, METHODS, find
from wcll.report.result_tables import build_table

SUITES = ("table2", "table3", "table4", "table6")
KINDS = ("uniform", "biased", "inverse-size")
LIMIT = "ordinary labels"
PAPER, RIVALS, TABLES = "paper", "rivals", "tables"  #: parts


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


def of_paper(todo: Sequence[tuple[str, Trial]], **told: Any) -> Iterator[Line]:
    """A run of every setting and seed; training sees all labels that were drawn, and no true one."""
    dataset = load_dataset("mnist")
    for title, trial in todo:
        found = run_default(draw(trial, dataset), trial.seed, model="linear", **told)
        yield {"part": PAPER, "setting": title, "seed": trial.seed, "best": best_published(trial), **found}


def rivals(name: str) -> Suite:
    """A suite of the paper with those rows alone that the default is compared with."""
    suite = load_suite(name)
    return replace(suite, rows=tuple(row for row in suite.rows if row.title in (*FORMULAS, LIMIT)))


def of_rivals(suites: Sequence[Suite], seeds: Sequence[int], store: Path, **how: Any) -> Iterator[Line]:
    """Both readings of WCLL, and ordinary labels, by the fair protocol."""
    for suite in suites:
        rows = wcll.run(suite, store=store, trials=list(seeds), say=print, **how)
        fair = next(spec for spec in suite.tables if spec.title == "fair")
        table = build_table(suite, fair, rows, seeds)
        for column, row in product(suite.columns, suite.rows):
            for seed, value in table.cell(row.title, column.title, "accuracy").values.items():
                about = {"part": RIVALS, "setting": column.title, "seed": seed, "method": row.title}
                yield {**about, "accuracy": 100 * value}


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
        yield {
            "part": TABLES,
            "setting": kind,
            "seed": 0,
            "method": AUTO,
            "accuracy": right,
            "limit": 100 * float(limit.score(further, truth[len(table) :])),
            **own_words(model),
            "seconds": seconds,
        }


Accuracies = Mapping[str, Mapping[int, float]]  #: in percent, by method and seed


def better_reading(rivals: Accuracies) -> str:
    """The reading of WCLL that is better by TEST."""
    return max(FORMULAS, key=lambda name: np.mean(list(rivals[name].values())))


def gap_closed(auto: Mapping[str, Accuracies], rivals: Mapping[str, Accuracies], titles: Sequence[str]) -> str:
    """The share of the gap between WCLL and ordinary labels that is closed, pooled over settings, with its interval."""
    parts: list[dict[str, np.ndarray]] = [{}, {}, {}]
    for title in titles:
        rows = auto[title][AUTO], rivals[title][better_reading(rivals[title])], rivals[title][LIMIT]
        seeds = sorted(set(rows[0]) & set(rows[1]) & set(rows[2]))
        for part, row in zip(parts, rows, strict=True):
            part[title] = np.array([row[seed] for seed in seeds])
    share, low, high = pooled(*parts)
    return f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def summary_of_paper(lines: Sequence[Line]) -> Iterator[str]:
    """A line a setting, and tables 2 and 3 together."""
    own = [line for line in lines if line["part"] == PAPER]
    auto, others = by_seed(own), by_seed(line for line in lines if line["part"] == RIVALS)
    best = {line["setting"]: line["best"] for line in own}
    for title in auto:
        values = np.array(list(auto[title][AUTO].values()))
        spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
        text = f"{title:32} {values.mean():.1f}{spread} (n={len(values)})  best published {best[title]:.1f}: "
        text += f"{values.mean() - best[title]:+.1f}, least {values.min() - best[title]:+.1f}"
        if title in others:
            reading = better_reading(others[title])
            wcll, limit = (np.mean(list(others[title][name].values())) for name in (reading, LIMIT))
            text += f"; {reading} {wcll:.1f}, {LIMIT} {limit:.1f}: {gap_closed(auto, others, [title])} of the gap"
        yield text
    for names in (("table2",), ("table3",), ("table2", "table3")):
        titles = [column.title for name in names for column in load_suite(name).columns]
        if all(title in auto and title in others for title in titles):
            yield f"{' and '.join(names)}: {gap_closed(auto, others, titles)} of the gap closed"


def summary(lines: Sequence[Line]) -> Iterator[str]:
    """All of it."""
    yield f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}"
    yield from summary_of_paper(lines)
    for line in (line for line in lines if line["part"] == TABLES):
        text = f"{line['setting']:32} {line['accuracy']:.1f}  true labels, logistic regression {line['limit']:.1f}"
        if line.get("estimate"):
            value, low, high = line["estimate"]
            text += f"; its own estimate {value:.1f} [{low:.1f}, {high:.1f}], {line['verdict']}"
        yield text
    own = [line for line in lines if line["part"] in (PAPER, TABLES)]
    yield from coverage(own)
    for part in (PAPER, TABLES):
        if some := [line["seconds"] for line in own if line["part"] == part]:
            yield f"{part}: {np.mean(some):.0f} s a fit, {max(some):.0f} at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in (PAPER, RIVALS, TABLES, "summary"):
        command = commands.add_parser(name)
        if name == TABLES:
            command.add_argument("folder", type=Path)
        command.add_argument("runs", type=Path)
        if name in (PAPER, RIVALS):
            command.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
        if name == PAPER:
            command.add_argument("--part", default="1/1", help="such as 2/16: a sixteenth of the work")
            command.add_argument("--budget", type=int, help="run-steps, for short tries")
        if name == RIVALS:
            command.add_argument("--store", type=Path, required=True)
            command.add_argument("--device", default="auto")
            command.add_argument("--together", type=int)
    given = parser.parse_args()
    if given.command == "summary":
        print(*summary(read([given.runs])), sep="\n")
    elif given.command == TABLES:
        append(given.runs, of_tables(given.folder))
    elif given.command == RIVALS:
        lines = of_rivals(
            [rivals(name) for name in SUITES], given.seeds, given.store, device=given.device, together=given.together
        )
        append(given.runs, new(lines, given.runs))
    else:
        done = have(given.runs)
        work = [(title, replace(trial, seed=seed)) for seed in given.seeds for title, trial in settings().items()]
        todo = [one for one in part_of(work, given.part) if (PAPER, one[0], one[1].seed, AUTO) not in done]
        append(given.runs, of_paper(todo, **({"budget": given.budget} if given.budget else {})))


if __name__ == "__main__":
    main()
