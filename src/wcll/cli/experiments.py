"""``wcll run``, ``report``, ``demo`` and ``methods``: suites of runs, their tables, and the losses."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from wcll._files import check_output
from wcll._validation import choice
from wcll.cli import begun, show, tell
from wcll.cli.console import ForceOption, byte_size, console, duration, grid, progress_bar, time_span, write_file
from wcll.cli.data import DataOption
from wcll.datasets import load_dataset
from wcll.experiments import Row, Store, Suite, Trial, load_suite
from wcll.experiments.grouping import TOGETHER, Pace
from wcll.experiments.request import MOST_WORKERS, RunRequest
from wcll.experiments.run import Forecast, OutOfTimeError, forecast, run, train_missing
from wcll.experiments.store import STORE
from wcll.experiments.suite import MOST_RUNS
from wcll.experiments.task import make_task
from wcll.losses import LOSSES
from wcll.report.result_tables import Cell, Table, build_table, caption, finding, to_csv, to_dict, to_latex, to_markdown
from wcll.report.suite_report import Example, demo_page, suite_page

SEEDS = 2**63 - 1  #: the largest seed
UNFINISHED = 3  #: the exit code of a command whose time was over; the same command goes on
SuiteName = Annotated[str, typer.Argument(help="A suite of the package by name, or a .toml file.")]
StorePath = Annotated[Path, typer.Option("--store", help="Where results are kept.")]
Trials = Annotated[
    int | None,
    typer.Option("--trials", help="How many trials, seeds 0, 1, ... (default: the suite's).", min=1, max=MOST_RUNS),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Together = Annotated[int, typer.Option(help="Train at most this many runs at once.", min=1)]
Threads = Annotated[
    int, typer.Option(help="Threads of torch; small models are fastest with one.", min=1, max=MOST_WORKERS)
]
Memory = Annotated[str | None, typer.Option(help="Memory to use, such as 4GB (default: most of what is free).")]
MaxTime = Annotated[
    str | None,
    typer.Option(
        "--max-time",
        help="Stop in time for this, such as 90s, 9m or 1.5h (default: never). What is not finished is kept, at the "
        "epoch where it is: the command then ends with exit code 3, and the same command goes on. It trains one epoch "
        "at least.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and how long it would take.")]


def run_suite(  # noqa: PLR0913 - one argument an option
    suite: SuiteName,
    store: StorePath = STORE,
    data: DataOption = None,
    trials: Trials = None,
    device: Device = "auto",
    together: Together = TOGETHER,
    threads: Threads = 1,
    processes: Annotated[int, typer.Option(help="Processes on this machine's CPU.", min=1, max=MOST_WORKERS)] = 1,
    memory: Memory = None,
    max_time: MaxTime = None,
    dry_run: DryRun = False,
    runner: Annotated[
        str, typer.Option(help="Who trains: local (processes of this machine), or workers of dask.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler that is running, such as tcp://127.0.0.1:8786 (default: one is started)."),
    ] = None,
) -> None:
    """Run what is missing of a suite, and print its tables. A stopped run goes on where it was."""
    pace = Pace(end_of(max_time))
    wanted = load_suite(suite)
    seeds = range(trials or wanted.trials)
    request = RunRequest(
        store,
        data=data,
        device=device,
        threads=threads,
        processes=processes,
        memory=memory_size(memory),
        together=together,
        executor=runner,
        address=address,
        pace=pace,
        dry_run=dry_run,
    )
    if rows := train_with_progress(wanted.title, list(wanted.all_trials(seeds)), request):
        print_tables(wanted, rows, seeds)


def report(
    suite: SuiteName,
    store: StorePath = STORE,
    trials: Trials = None,
    out: Annotated[
        Path | None, typer.Option(help="A .html page, or tables as .md, .tex or .csv; default: print.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make tables and figures from the results of a suite; no training, no data."""
    if out is not None:
        check_output(out, "--out", store, suite_file(suite), force=force)
    wanted = load_suite(suite)
    seeds = range(trials or wanted.trials)
    asked = wanted.all_trials(seeds)
    with Store(store, create=False) as results:
        rows = {row.key: row for row in results.rows(trial.key for trial in asked)}
        if damage := results.damage():
            tell(damage)
    if out is None:
        print_tables(wanted, rows, seeds)
        return
    write_file(out, _formatted(wanted, rows, seeds, out, f"wcll run {suite}"))
    tell(f"{len(rows)} runs: {out}")


def suite_file(suite: str) -> Path | None:
    """Return the file of a suite; None for one of the package."""
    return Path(suite) if Path(suite).is_file() else None


def memory_size(memory: str | None) -> int | None:
    """The bytes of the option ``--memory``."""
    return None if memory is None else byte_size("--memory", memory)


def end_of(max_time: str | None) -> float:
    """The moment at which the command has to be over."""
    return inf if max_time is None else begun() + time_span("--max-time", max_time)


def train_with_progress(title: str, trials: Sequence[Trial], request: RunRequest) -> dict[str, Row]:
    """Train what the store does not have; returns all rows by key, none for a dry run, which only says what is left.

    If there is no time for all, the command ends here.
    """
    rows, over = train_until(title, trials, request)
    if over:
        raise typer.Exit(UNFINISHED)
    return rows


def train_until(title: str, trials: Sequence[Trial], request: RunRequest) -> tuple[dict[str, Row], bool]:
    """The same; whether time was over before all were trained is said beside the rows that there are."""
    request = replace(request, trials=trials, title=title, say=tell)
    if request.dry_run:
        _print_forecast(title, forecast(request), request.path)
        return {}, False
    try:
        with progress_bar("training") as progress:
            return train_missing(replace(request, progress=progress)), False
    except OutOfTimeError as error:
        return error.rows, True


def print_tables(suite: Suite, rows: dict[str, Row], seeds: Sequence[int]) -> None:
    """The suite's tables on the terminal."""
    for spec in suite.tables:
        print_table(build_table(suite, spec, rows, seeds))


def print_table(table: Table) -> None:
    """A table of results on the terminal, in as many parts as it takes for no figure to be wrapped."""
    screen = console()
    parts = table.split(columns_that_fit(table, screen.width))
    for part in parts:
        heads = [f"{head} %" for head in part.head_texts()]
        rows = ([Text(line.title + line.mark), *map(shown, line.cells)] for line in part.lines)
        tabular = grid(["method", *heads], rows, right=heads, title=Text(part.title))
        screen.print(tabular, *([""] if len(parts) > 1 else []), sep="\n")
    screen.print(Text(caption(table), style="dim"), "", sep="\n")


def columns_that_fit(table: Table, width: int) -> int:
    """How many columns of figures stand beside the methods in so many characters, none of their words broken."""
    methods = max((len(line.title + line.mark) for line in table.lines), default=0)
    words = [word for head in table.head_texts() for word in head.split()]
    texts = [cell.text() for line in table.lines for cell in line.cells]
    widest = max(map(len, (*words, *texts)), default=0)
    return max(1, (width - max(methods, len("method"))) // (widest + 2))


def shown(cell: Cell) -> Text:
    """A cell on the terminal, bold for the best."""
    return Text(cell.text(), style="bold" if cell.best else "")


def _formatted(suite: Suite, rows: dict[str, Row], seeds: Sequence[int], out: Path, command: str) -> str:
    """Everything as a page, or the tables alone, as the ending of the file asks for."""
    kind = choice("--out (ending)", out.suffix, (".html", ".md", ".tex", ".csv"))
    if kind == ".html":
        return suite_page(suite, rows, seeds, command)
    tables = [build_table(suite, spec, rows, seeds) for spec in suite.tables]
    if kind == ".csv":
        return to_csv(tables)
    return "\n".join((to_markdown if kind == ".md" else to_latex)(table) for table in tables)


def _print_forecast(title: str, forecast: Forecast, store: Path) -> None:
    done = forecast.runs - forecast.runs_left
    sizes = f"{min(forecast.groups)} to {max(forecast.groups)}"
    show(f"{title}: {forecast.runs} runs, {done} of them in {store}, {forecast.runs_left} left")
    show(f"{len(forecast.groups)} groups of {sizes} runs that train together, {forecast.groups_left} left")
    if cost := forecast.cost:
        memory = f"{cost.bytes / 2**20:.0f} MiB"
        show(f"about {duration(cost.seconds)} and {memory} on {cost.device} (a few steps measured now)")


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


COLUMNS = ("name", "needs", "uses", "several", "link", "equation", "paper")


def method_rows() -> list[dict[str, Any]]:
    """One row a registered loss, with everything the registry says of it."""
    return [
        {
            "name": spec.name,
            "title": spec.title,
            "paper": spec.paper,
            "equation": spec.equation,
            "labels": spec.labels,
            "needs": [name for name, required in spec.context.items() if required],
            "uses": [name for name, required in spec.context.items() if not required],
            "options": spec.options,
            "several": spec.several,
            "link": spec.link,
            "table1": asdict(spec.table1) if spec.table1 else None,
            "revision": spec.revision,
        }
        for spec in LOSSES.values()
    ]


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print the registry as JSON.")] = False,
) -> None:
    """List the losses: what each needs, whether it takes several labels a sample, and its paper."""
    rows = method_rows()
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        table = grid(COLUMNS, ([cell(row, column) for column in COLUMNS] for row in rows))
        for column in table.columns:
            column.no_wrap = column.header in ("name", "several", "link")
        console().print(table)


def cell(row: dict[str, Any], column: str) -> str:
    """One entry of the table, as text."""
    value = row[column]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return str(value)
