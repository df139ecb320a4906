"""``wcll paper``: the paper's experiments, each number beside the printed one, and a report on all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from wcll.atomic import check_target
from wcll.checks import InputError, choice
from wcll.cli.data import DataOption
from wcll.cli.messages import tell
from wcll.cli.output import console, grid, write_file
from wcll.cli.suites import Device, DryRun, MaxTime, Memory, Trials, Work, end_of, shown, train_missing, workers
from wcll.evaluation import METRICS
from wcll.paper import search
from wcll.paper.named import NAMED, named_suite
from wcll.paper.page import figure3, render_report
from wcll.paper.part import Part, mean_absolute
from wcll.paper.published import show_name
from wcll.paper.reproduction import read_reproduction
from wcll.paper.result_files import keys_of, make_part, write_part
from wcll.results import Row
from wcll.running.processes import MOST_WORKERS
from wcll.suites import Suite, Trial, load_suite

STORE = Path("wcll-paper.sqlite")
RESULTS = Path("results/paper")
#: What can be run, and what it is; "all" is all of it but the search and the other protocols.
SUITES = {
    "table2": "One imbalanced class.",
    "table3": "Two imbalanced classes.",
    "table4": "Five imbalanced classes.",
    "table5": "Weights that do not match pi.",
    "table6": "Resampling instead of weights.",
    "figure3": "Accuracy on the imbalanced class, epoch by epoch.",
    "steady": "The same with more trials, for claims on the step from p = 2 to 2.5.",
    "bases": "WCLL with other ordinary losses, linear and MLP.",
    "sizes": "WCLL with fewer and more images.",
    "family": "Forward correction, and the choice of rates, where what they are told of labels is wrong.",
}

app = typer.Typer(help="The paper's experiments: every published number beside ours.", rich_markup_mode=None)

STORE_HELP = "Where runs are kept; a stopped command goes on from there."
PROCESSES_HELP = "Processes on this machine's CPU (default: one a core; one on a GPU)."
Action = Callable[[int | None, str | None, Work, Path | None], None]


def _command(action: Action) -> Callable[..., None]:
    """A command that runs something: all of them have the same options."""

    def command(
        store: Annotated[Path, typer.Option(help=STORE_HELP)] = STORE,
        data: DataOption = None,
        trials: Trials = None,
        only: Annotated[str | None, typer.Option(help="Only the columns of this data set, such as mnist.")] = None,
        device: Device = "auto",
        processes: Annotated[int | None, typer.Option(help=PROCESSES_HELP, min=1, max=MOST_WORKERS)] = None,
        memory: Memory = None,
        max_time: MaxTime = None,
        results: Annotated[Path | None, typer.Option(help="Also write a result file of each part here.")] = None,
        dry_run: DryRun = False,
    ) -> None:
        if results is not None:
            _check_folder(results)
        work = Work(store, data, workers(device, 1, processes, memory), dry_run, end=end_of(max_time))
        action(trials, only, work, results)

    return command


def _run_suites(names: Sequence[str]) -> Action:
    """Train what is missing of some suites at once, print each beside the paper, and write result files."""

    def action(trials: int | None, only: str | None, work: Work, folder: Path | None) -> None:
        suites = [_restricted(load_suite(name), only) for name in names]
        wanted = [trial for suite in suites for trial in suite.all_trials(range(trials or suite.trials))]
        title = suites[0].title if len(suites) == 1 else "The paper"
        rows = _all_rows(title, wanted, work)
        for suite in suites if rows else ():
            count = trials or suite.trials
            part = make_part(suite, count, [rows[key] for key in keys_of(suite, count)], _made_by(suite.name, trials))
            print_part(part)
            if folder is not None:
                write_part(part, folder / f"{suite.name}.json")

    return action


def _run_protocols(trials: int | None, only: str | None, work: Work, folder: Path | None) -> None:
    """One protocol after the other, so that what is finished is kept whatever happens to the rest."""
    for name in NAMED:
        suite = _restricted(named_suite(name), only)
        count = trials or suite.trials
        rows = _all_rows(suite.title, list(suite.all_trials(range(count))), work)
        if rows and folder is not None:
            part = make_part(suite, count, [rows[key] for key in keys_of(suite, count)], _made_by("protocols", trials))
            write_part(part, folder / f"{name}.json")


def _run_search(trials: int | None, only: str | None, work: Work, folder: Path | None) -> None:
    """Train what is missing of the search, print what fits best, and write its result file."""
    base = _restricted(search.base_suite(), only)
    rows = _all_rows(base.title, search.search_trials(base, trials or base.trials), work)
    if not rows:
        return
    found = search.measure(base, trials or base.trials, rows)
    for fit in found.ranked[: search.MOST]:
        one = fit.protocol
        console().print(f"{fit.distance:5.1f}  {one.loss}; {one.generator}, {one.size}; {one.lr:g}, {one.epoch} epoch")
    if folder is not None:
        search.write_search(found, _made_by(search.NAME, trials), folder / f"{search.NAME}.json")


for _name, _help in SUITES.items():
    app.command(_name, help=_help)(_command(_run_suites([_name])))
app.command("all", help="All of the above.")(_command(_run_suites(list(SUITES))))
app.command(
    "protocols",
    help="All methods under other readings of the paper, one for each way to draw labels (many runs: take a GPU).",
)(_command(_run_protocols))
app.command(
    "search",
    help="Which generator of labels, size, formula, rate and epoch fits the printed numbers (many runs: take a GPU).",
)(_command(_run_search))


@app.command("report")
def report(
    results: Annotated[Path, typer.Option("--results", help="The folder of result files.")] = RESULTS,
    out: Annotated[Path, typer.Option(help="A .html page, or the same as .md.")] = Path("wcll-paper.html"),
) -> None:
    """Make the report from result files: every published number beside ours, and a verdict on every claim."""
    choice("--out (ending)", out.suffix, (".html", ".md"))
    check_target(out, "--out")
    found = read_reproduction(results)
    files = {out: render_report(found, out.suffix)}
    if out.suffix == ".md":  # which shows figures that are files
        files[out.parent / "figures" / "figure3.svg"] = figure3(found)
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        write_file(path, text)
    tell(f"report: {out}")


def _all_rows(title: str, trials: Sequence[Trial], work: Work) -> dict[str, Row]:
    """Train what is missing; none for a dry run, else all: of a part of them no number can be made."""
    rows = train_missing(title, trials, work)
    if rows and (lacking := {trial.key for trial in trials} - rows.keys()):
        remedy = "they are trained when the command is given again, damaged ones when they are removed"
        raise InputError("--store", f"all runs of {title}", f"{len(lacking)} missing", remedy)
    return rows


def _restricted(suite: Suite, only: str | None) -> Suite:
    """A suite, or those of its columns that are about one data set."""
    if only is None:
        return suite
    datasets = {column.title: str((suite.settings | column.settings)["dataset"]) for column in suite.columns}
    choice("--only", only, sorted(set(datasets.values())))
    return replace(suite, columns=tuple(column for column in suite.columns if datasets[column.title] == only))


def _made_by(name: str, trials: int | None) -> str:
    return f"wcll paper {name}" + (f" --trials {trials}" if trials else "")


def _check_folder(folder: Path) -> None:
    """Whether a folder can be made, before hours of training."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError("--results", "a folder", f"{folder}, of which {there} is a file")


def print_part(part: Part) -> None:
    """What the paper prints and what we measure, side by side."""
    screen, beside = console(), list(part.beside.values())
    screen.print(part.suite.title, style="bold")
    heads = {"paper": f"{'paper / ours' if beside else 'ours'}: the paper's protocol"}
    if part.suite.grid:  # else there is one rate, and nothing is chosen
        heads["fair"] = "ours: the fair protocol"
    for protocol, head in heads.items():
        screen.print(f"{head}, {METRICS[part.metric]} in percent")
        rows = ([Text(show_name(m)), *(_cell(part, protocol, m, c) for c in part.columns)] for m in part.methods)
        screen.print(grid(["method", *part.columns], rows, right=part.columns))
        screen.print()
    note = f"Mean ± std over {part.trials} trials." if part.trials > 1 else "One trial."
    if beside:
        note += f" {sum(one.close for one in beside)} of {len(beside)} within 2 points; mean absolute difference "
        note += f"{mean_absolute(beside):.1f}, of WCLL {mean_absolute(part.of('wcll')):.1f}."
    screen.print(f"{note}\n")


def _cell(part: Part, protocol: str, method: str, column: str) -> Text:
    cell = part.cell(protocol, method, column, part.metric)
    printed = part.printed.get((method, column)) if protocol == "paper" else None
    return shown(cell) if printed is None else Text(f"{printed.mean:.1f} / ") + shown(cell)
