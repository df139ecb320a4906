"""``wcll demo``: the paper's methods on real digits, within a minute."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wcll.demo import DemoResult


def demo(
    trials: Annotated[int, typer.Option(help="Draws of data, labels and initial weights.", min=1)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first trial; the others follow.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="The HTML report.")] = Path("wcll-demo.html"),
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON.")] = False,
) -> None:
    """Compare the paper's methods on real digits with two rare classes, and write a report."""
    import torch

    from wcll.atomic import check_target, replacing
    from wcll.demo import DemoSettings, demo_page, run_demo

    check_target(out, "--out")
    torch.set_num_threads(1)  # small matrices: a second thread costs more than it brings
    settings = DemoSettings(trials=trials, seed=seed)
    with progress_bar("training") as progress:
        result = run_demo(settings, progress)
    command = f"wcll demo --trials {trials} --seed {seed}"
    page = demo_page(result, command)
    with replacing(out, "--out") as draft:
        draft.write_text(page, encoding="utf-8")
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _print(result, out)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, a line every tenth otherwise; both on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    if not sys.stderr.isatty():
        yield _lines(what)
        return
    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TextColumn("left:"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str) -> Callable[[int, int], None]:
    import time

    start = time.perf_counter()

    def report(done: int, total: int) -> None:
        if done * 10 // total > (done - 1) * 10 // total:
            left = (time.perf_counter() - start) * (total - done) / done
            print(f"{what}: {100 * done // total} %, about {left:.0f} s left", file=sys.stderr, flush=True)

    return report


def _print(result: DemoResult, out: Path) -> None:
    from rich.table import Table

    from wcll.cli.output import console
    from wcll.demo import best_methods
    from wcll.report.page import percent

    rows = result.summary()
    best = best_methods(rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("method")
    for name in ("accuracy %", "balanced accuracy %", "minority recall %"):
        table.add_column(name, justify="right")
    for row in rows:
        cells = [
            f"[bold]{percent(row[figure])}[/bold]" if best[figure] == row["method"] else percent(row[figure])
            for figure in best
        ]
        table.add_row(row["label"], *cells)
    screen = console()
    screen.print(table)
    trials = result.settings.trials
    screen.print(f"mean ± std over {trials} trial{'s' if trials > 1 else ''}, {result.seconds:.0f} s; report: {out}")
