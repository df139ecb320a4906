"""``wcll demo``: the paper's methods on real digits, within a minute."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

SUITE = "demo"


def demo(
    trials: Annotated[int, typer.Option(help="Draws of data, labels and initial weights.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; the others follow.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="The HTML report.")] = Path("wcll-demo.html"),
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON.")] = False,
) -> None:
    """Compare the paper's methods on real digits with two rare classes, and write a report."""
    import torch

    from wcll.atomic import check_target, replacing
    from wcll.cli.output import console, print_table, progress_bar
    from wcll.report.formats import to_dict
    from wcll.report.suite_page import suite_page
    from wcll.report.tables import build_table
    from wcll.results.provenance import provenance
    from wcll.running.execute import run_suite
    from wcll.suites import load_suite

    check_target(out, "--out")
    torch.set_num_threads(1)  # small matrices: a second thread costs more than it brings
    suite, seeds = load_suite(SUITE), range(seed, seed + trials)
    start, device = time.perf_counter(), torch.device("cpu")
    with progress_bar("training") as progress:
        rows = run_suite(suite, seeds, device, progress=progress)
    seconds = time.perf_counter() - start
    page = suite_page(suite, rows, seeds, f"wcll demo --trials {trials} --seed {seed}")
    with replacing(out, "--out") as draft:
        draft.write_text(page, encoding="utf-8")
    table = build_table(suite, suite.tables[0], rows, seeds)
    if as_json:
        made = {"seeds": list(seeds), "seconds": seconds, **provenance(device)}
        print(json.dumps({"made": made, **to_dict(table)}, indent=2))
        return
    print_table(table)
    console().print(f"{seconds:.0f} s; report: {out}")
