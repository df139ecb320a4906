"""``wcll run`` and ``wcll report``: the runs behind a table, and the table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wcll.cli.data import DataOption
from wcll.cli.output import STOPPED, byte_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from wcll.results import Row, Store
    from wcll.running.plan import Job
    from wcll.suites import Suite, Trial

STORE = Path("wcll-results.sqlite")

SuiteName = Annotated[str, typer.Argument(help="A suite of the package by name, or a .toml file.")]
StorePath = Annotated[Path, typer.Option("--store", help="Where results are kept.")]
Trials = Annotated[
    int | None, typer.Option("--trials", help="How many trials, seeds 0, 1, ... (default: the suite's).", min=1)
]


Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Together = Annotated[int | None, typer.Option(help="Train at most this many runs at once (default: 64).", min=1)]
Threads = Annotated[int, typer.Option(help="Threads of torch; small models are fastest with one.", min=1)]
Memory = Annotated[str | None, typer.Option(help="Memory to use, such as 4GB (default: most of what is free).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and how long it would take.")]


def run(
    suite: SuiteName,
    store: StorePath = STORE,
    data: DataOption = None,
    trials: Trials = None,
    device: Device = "auto",
    together: Together = None,
    threads: Threads = 1,
    processes: Annotated[int, typer.Option(help="Processes on this machine's CPU.", min=1)] = 1,
    memory: Memory = None,
    dry_run: DryRun = False,
) -> None:
    """Run what is missing of a suite, and print its tables. A stopped run goes on where it was."""
    from wcll.results import Store
    from wcll.suites import load_suite

    plan_of = load_suite(suite)
    seeds = range(trials or plan_of.trials)
    work = Work(store, data, workers(device, threads, processes, memory), dry_run, together)
    if train_missing(plan_of.title, list(plan_of.all_trials(seeds)), work):
        with Store(store) as results:
            print_tables(plan_of, results, seeds)


@dataclass(frozen=True)
class Workers:
    """Who does the work."""

    device: torch.device
    threads: int
    processes: int
    memory: int | None


@dataclass(frozen=True)
class Work:
    """Where results go, what runs are trained on, and how."""

    store: Path
    data: Path | None
    workers: Workers
    dry_run: bool
    together: int | None = None


def workers(device: str, threads: int, processes: int | None, memory: str | None) -> Workers:
    """Checked; without a number of processes, as many as there are cores on a CPU."""
    from joblib import cpu_count

    from wcll.checks import InputError
    from wcll.training.device import place

    where = place("float32", device)[1]
    if processes is None:
        processes = max(cpu_count() // threads, 1) if where.type == "cpu" else 1
    if processes > 1 and where.type != "cpu":
        raise InputError("--processes", "1 on a GPU, which trains many runs at once", processes)
    return Workers(where, threads, processes, None if memory is None else byte_size("--memory", memory))


def train_missing(title: str, trials: Sequence[Trial], work: Work) -> bool:
    """Train what the store does not have; False for a dry run, which only says what would be done."""
    import torch

    from wcll.atomic import check_target
    from wcll.datasets import load_dataset
    from wcll.results import Store
    from wcll.running.execute import Tasks, check_jobs
    from wcll.running.plan import TOGETHER, plan

    jobs = plan(trials, together=work.together or TOGETHER)
    torch.set_num_threads(work.workers.threads)
    check_target(work.store, "--store")
    if work.dry_run:
        _dry_run(title, jobs, work)
        return False
    left = _left(jobs, work.store, work.data)
    if left:  # before the store is made: data that cannot be used leave nothing behind
        check_jobs(left, Tasks(partial(load_dataset, data=work.data)), work.workers.device)
    with Store(work.store) as results:
        total, missing = (sum(len(job.keys) for job in some) for some in (jobs, left))
        if left:
            print(f"{title}: {total} runs, {total - missing} of them in {work.store}", file=sys.stderr)
            _execute(jobs, results, work.data, work.workers)
        else:
            print(f"{title}: all {total} runs are in {work.store}; nothing is left to do", file=sys.stderr)
    return True


def report(
    suite: SuiteName,
    store: StorePath = STORE,
    trials: Trials = None,
    out: Annotated[
        Path | None, typer.Option(help="A .html page, or tables as .md, .tex or .csv; default: print.")
    ] = None,
) -> None:
    """Make tables and figures from the results of a suite; no training, no data."""
    from wcll.atomic import replacing
    from wcll.results import Store
    from wcll.suites import load_suite

    plan_of = load_suite(suite)
    seeds = range(trials or plan_of.trials)
    with Store(store, create=False) as results:
        rows = rows_of(plan_of, results, seeds)
        if out is None:
            print_tables(plan_of, results, seeds)
            return
    text = _formatted(plan_of, rows, seeds, out, f"wcll run {suite}")
    with replacing(out, "--out") as draft:
        draft.write_text(text, encoding="utf-8")
    print(f"{len(rows)} runs: {out}", file=sys.stderr)


def _formatted(suite: Suite, rows: dict[str, Row], seeds: Sequence[int], out: Path, command: str) -> str:
    from wcll.checks import choice
    from wcll.report.formats import to_csv, to_latex, to_markdown
    from wcll.report.suite_page import suite_page
    from wcll.report.tables import build_table

    kind = choice("--out (ending)", out.suffix, (".html", ".md", ".tex", ".csv"))
    if kind == ".html":
        return suite_page(suite, rows, seeds, command)
    tables = [build_table(suite, spec, rows, seeds) for spec in suite.tables]
    if kind == ".csv":
        return to_csv(tables)
    return "\n".join((to_markdown if kind == ".md" else to_latex)(table) for table in tables)


def print_tables(suite: Suite, results: Store, seeds: Sequence[int]) -> None:
    """The suite's tables on the terminal."""
    from wcll.cli.output import print_table
    from wcll.report.tables import build_table

    rows = rows_of(suite, results, seeds)
    for spec in suite.tables:
        print_table(build_table(suite, spec, rows, seeds))


def rows_of(suite: Suite, results: Store, seeds: Sequence[int]) -> dict[str, Row]:
    """The finished runs of a suite, by key."""
    keys = [trial.key for trial in suite.all_trials(seeds)]
    return {row.key: row for row in results.rows(keys)}


def _left(jobs: Sequence[Job], path: Path, data: Path | None) -> list[Job]:
    """Units that are not finished, each with the runs that are missing."""
    from wcll.results import Store

    if not path.exists() or not path.stat().st_size:
        return list(jobs)
    keys = [key for job in jobs for key in job.keys]
    with Store(path) as results:
        done = results.finished(keys)
        _check_same_data(results.data_seen(keys), path, data)
    return [left for job in jobs if (left := job.without(done))]


def _check_same_data(seen: dict[str, set[str]], path: Path, data: Path | None) -> None:
    """A user's own file may change under its name: finished runs must not stand for data that they did not see."""
    from wcll.checks import InputError
    from wcll.datasets import own_stamp

    for name, stamps in seen.items():
        if stamps != {""} and stamps != {own_stamp(name, data)}:
            raise InputError(f"dataset {name!r}", f"the file that the runs in {path} have read", "one that was changed",
                             "give the new data another name, or use another --store")  # fmt: skip


def _execute(jobs: Sequence[Job], results: Store, data: Path | None, workers: Workers) -> None:
    from wcll.cli.output import progress_bar
    from wcll.datasets import load_dataset
    from wcll.running.execute import Tasks, execute
    from wcll.running.processes import execute_in_processes

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    load = partial(load_dataset, data=data)
    try:
        with progress_bar("training") as progress:
            if workers.processes > 1:
                options = {"processes": workers.processes, "threads": workers.threads, "memory": workers.memory}
                execute_in_processes(jobs, results.path, load, progress=progress, **options)  # type: ignore[arg-type]
            else:
                execute(jobs, results, Tasks(load), workers.device, memory=workers.memory, progress=progress, say=say)
    except KeyboardInterrupt:
        keys = [key for job in jobs for key in job.keys]
        done = f"{len(results.finished(keys))} of {len(keys)} runs are in {results.path}"
        print(f"{done}; the same command goes on from there", file=sys.stderr)
        raise typer.Exit(STOPPED) from None


def _dry_run(title: str, jobs: Sequence[Job], work: Work) -> None:
    from wcll.cli.output import duration
    from wcll.datasets import load_dataset
    from wcll.running.estimate import estimate
    from wcll.running.execute import Tasks

    left = _left(jobs, work.store, work.data)
    total, missing = (sum(len(job.keys) for job in some) for some in (jobs, left))
    sizes = [len(job.keys) for job in jobs]
    print(f"{title}: {total} runs, {total - missing} of them in {work.store}, {missing} left")
    print(f"{len(jobs)} groups of {min(sizes)} to {max(sizes)} runs that train together, {len(left)} left")
    if left:
        cost = estimate(left, Tasks(partial(load_dataset, data=work.data)), work.workers.device)
        memory = f"{cost.bytes / 2**20:.0f} MiB"
        print(f"about {duration(cost.seconds)} and {memory} on {cost.device} (a few steps measured now)")
