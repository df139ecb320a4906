"""``wcll demo``: what the library does by default beside the paper's methods, on real digits, in under a minute."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from wcll._files import check_output
from wcll.cli.output import ForceOption, console, progress_bar, write_file
from wcll.cli.suites import print_table
from wcll.datasets import load_dataset
from wcll.report.result_tables import build_table, finding, to_dict
from wcll.report.suite_report import Example, demo_page
from wcll.running.run import run
from wcll.running.task import make_task
from wcll.suites import Trial, load_suite
from wcll.suites.suite import MOST_RUNS

SUITE = "demo"
PAGE = Path("wcll-demo.html")
EXAMPLES = 12  #: training images that the page shows


def demo(
    trials: Annotated[int, typer.Option(help="Draws of data, labels and initial weights.", min=1, max=MOST_RUNS)] = 5,
    out: Annotated[Path, typer.Option(help="The HTML report.")] = PAGE,
    force: ForceOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON.")] = False,
) -> None:
    """Compare the default and the paper's methods on real digits with two rare classes, and write a report."""
    check_output(out, "--out", force=force, page_of="wcll demo" if out == PAGE else "")
    suite, seeds, start = load_suite(SUITE), range(trials), time.perf_counter()
    with progress_bar("training") as progress:
        rows = run(suite, store=None, trials=seeds, device="cpu", progress=progress)
    seconds = time.perf_counter() - start
    examples = _examples(next(suite.all_trials([0])))
    write_file(out, demo_page(suite, rows, seeds, f"wcll demo --trials {trials}", examples))
    table = build_table(suite, suite.tables[0], rows, seeds)
    if as_json:
        made = {"seeds": list(seeds), **next(iter(rows.values())).provenance, "seconds": seconds}
        print(json.dumps({"made": made, **to_dict(table)}, indent=2))
        return
    print_table(table)
    if found := finding(suite, table):
        console().print(found)
    console().print(f"{seconds:.0f} s; report: {out}")


def _examples(trial: Trial) -> list[Example]:
    """A few training images of a trial, from its first to its last, with the labels that they have."""
    dataset = load_dataset(trial.dataset)
    train = make_task(trial, dataset).train
    some = np.linspace(0, len(train.ybar) - 1, EXAMPLES).astype(int)
    return [Example(train.x[i].numpy() / dataset.scale, dataset.classes[int(train.ybar[i])]) for i in some]
