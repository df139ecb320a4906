"""``wcll paper`` and ``wcll bound``: the paper's experiments and its bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import torch
import typer
from rich.text import Text

from wcll._files import check_output, check_outside_models
from wcll._validation import choice, positive
from wcll.cli import tell
from wcll.cli.console import ForceOption, console, grid, progress_bar, write_file
from wcll.cli.data import DataOption
from wcll.cli.experiments import (
    SEEDS,
    UNFINISHED,
    Device,
    DryRun,
    MaxTime,
    Memory,
    Trials,
    end_of,
    memory_size,
    shown,
    train_until,
    train_with_progress,
)
from wcll.datasets import DATASETS, load_dataset
from wcll.datasets.folders import data_folders
from wcll.evaluation import METRICS
from wcll.exceptions import InputError
from wcll.experiments import Row, Store, Suite, Trial, load_suite
from wcll.experiments.grouping import Pace, now
from wcll.experiments.request import MOST_WORKERS, RunRequest
from wcll.experiments.row import provenance
from wcll.experiments.trial import LARGEST
from wcll.paper import bound_study, protocols
from wcll.paper.bound_study import Case, own_case, suite_cases
from wcll.paper.comparison import Part, keys_of, make_part, mean_absolute, show_name, write_part
from wcll.paper.page import BEYOND, figure_files, render_report
from wcll.paper.protocols import FACTORS, IMAGES, NAMED, Growing, Stage, named_suite, stages
from wcll.paper.reproduction import read_reproduction

STORE = Path("wcll-paper.sqlite")
RESULTS = Path("results/paper")
PAGE = Path("wcll-paper.html")
ALL = "all"  #: the name of all suites but the slow one
#: Suites that can be run, and what they are.
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
#: The suites of a part, where they are not the one of its name: a suite is about one data set.
PARTS = {
    "table2": ("table2", "table2-cifar10", "table2-tiny-imagenet"),
    "table3": ("table3", "table3-cifar10"),
    "table4": ("table4", "table4-cifar10"),
}

#: What "all" is without: other data, and days on a CPU.
ALONE = {"table7": "Mammograms of DDSM: total, benign and cancer accuracy (slow: take a GPU)."}

app = typer.Typer(help="The paper's experiments: every published number beside ours.", rich_markup_mode=None)

STAGE = 60.0  #: seconds that must be left for another stage to begin, which may have to compile networks
USUAL = "mnist"  #: where --only is not given and it is among the data sets
ONLY_HELP = "One data set, such as cifar10 (tables 2 to 4 without it: mnist, as networks for images take a GPU)."
EPOCHS_HELP = "Fewer epochs than the paper's 100, for a try."
STORE_HELP = "Where runs are kept; a stopped command goes on from there."
PROCESSES_HELP = "Processes on this machine's CPU (default: one a core; one on a GPU)."


@dataclass(frozen=True)
class Asked:
    """What a user wants of some suites."""

    trials: int | None
    only: str | None
    epochs: int | None
    folder: Path | None  #: of result files

    def suites(self, *some: Suite) -> list[Suite]:
        """Those that are about the data set that is asked for, with so many trials and epochs."""
        datasets = sorted({str(suite.settings["dataset"]) for suite in some})
        if self.only is not None:
            choice("--only", self.only, datasets)
        only = self.only or (USUAL if USUAL in datasets else None)
        settings = {} if self.epochs is None else {"epochs": self.epochs}
        return [
            replace(suite, trials=self.trials or suite.trials, settings=suite.settings | settings)
            for suite in some
            if only in (None, suite.settings["dataset"])
        ]

    def command(self, name: str, suite: Suite | None = None) -> str:
        """The command that makes a result file."""
        about = f" --only {suite.settings['dataset']}" if suite is not None and suite.name != name else ""
        return f"wcll paper run {name}{about}" + (f" --trials {self.trials}" if self.trials else "")


def _run_suites(parts: Iterable[str], asked: Asked, work: RunRequest) -> None:
    """Train what is missing of some parts at once, print each beside the paper, and write result files."""
    names = [name for part in parts for name in PARTS.get(part, (part,))]
    suites = asked.suites(*map(load_suite, names))
    wanted = [trial for suite in suites for trial in suite.all_trials()]
    title = suites[0].title if len(suites) == 1 else "The paper"
    rows = _all_rows(title, wanted, work)
    for suite in suites if rows else ():
        name = suite.name.partition("-")[0]
        keys = keys_of(suite, suite.trials)
        part = make_part(suite, suite.trials, [rows[key] for key in keys], asked.command(name, suite))
        print_part(part)
        if asked.folder is not None:
            write_part(part, asked.folder / f"{suite.name}.json")


def _run_images(asked: Asked, work: RunRequest) -> None:
    """Run what the paper prints on images, then what it leaves open, of which one trial is enough."""
    suites = _with_data(asked.suites(*map(load_suite, (*IMAGES, FACTORS))), work.data)
    suites = [replace(suite, trials=1) if suite.name == FACTORS else suite for suite in suites]
    _run_stages("images", suites, stages(suites), asked, work)


def _run_beyond(asked: Asked, work: RunRequest) -> None:
    """All suites beyond the paper."""
    suites = _with_data(asked.suites(*map(load_suite, BEYOND)), work.data)
    _run_stages("beyond", suites, stages(suites), asked, work)


def _run_stages(name: str, suites: Sequence[Suite], todo: Iterable[Stage], asked: Asked, work: RunRequest) -> None:
    """Stage by stage, so that every cell has a number before any has two; what is finished is in the result files."""
    growing, begun, over = Growing(suites, asked.folder), False, False
    for stage in todo:
        if not growing.missing(stage):
            continue
        if begun and work.pace.end - now() < STAGE:
            tell("out of time: the same command goes on from here")
            over = True
            break
        begun = True
        rows, over = train_until(stage.title, growing.missing(stage, _finished(stage, work.path)), work)
        for part in growing.add(rows, asked.command(name)):
            if asked.folder is not None:
                write_part(part, asked.folder / f"{part.suite.name}.json", partial=True)
        if over:
            break
    for part in () if work.dry_run else growing.parts.values():
        print_part(part.begun)
    if over:
        raise typer.Exit(UNFINISHED)


def _finished(stage: Stage, path: Path) -> set[str]:
    """Return the keys of the runs of a stage that a store has, also of those that are in result files."""
    if not path.is_file() or not path.stat().st_size:
        return set()
    with Store(path) as store:
        return store.finished([trial.key for trials in stage.trials.values() for trial in trials])


def _with_data(suites: list[Suite], data: Path | None) -> list[Suite]:
    """Those whose data are there, as not every machine has all; if none are, all, of which the first will say so."""
    names = dict.fromkeys(str(suite.settings["dataset"]) for suite in suites)
    absent = [name for name in names if DATASETS[name].find(data_folders(data)) is None]
    if len(absent) == len(names):
        return suites
    for name in absent:
        tell(f"{name}: not found, so its runs are left for a machine that has it")
    return [suite for suite in suites if suite.settings["dataset"] not in absent]


def _run_protocols(asked: Asked, work: RunRequest) -> None:
    """One protocol after the other, so that what is finished is kept whatever happens to the rest."""
    for suite in asked.suites(*map(named_suite, NAMED)):
        rows = _all_rows(suite.title, list(suite.all_trials()), work)
        if rows and asked.folder is not None:
            keys = keys_of(suite, suite.trials)
            part = make_part(suite, suite.trials, [rows[key] for key in keys], asked.command("protocols"))
            write_part(part, asked.folder / f"{suite.name}.json")


def _run_search(asked: Asked, work: RunRequest) -> None:
    """Train what is missing of the search, print what fits best, and write its result file."""
    (base,) = asked.suites(protocols.base_suite())
    rows = _all_rows(base.title, protocols.search_trials(base, base.trials), work)
    if not rows:
        return
    found = protocols.measure(base, base.trials, rows)
    for fit in found.ranked[: protocols.MOST]:
        one = fit.protocol
        console().print(f"{fit.distance:5.1f}  {one.loss}; {one.generator}, {one.size}; {one.lr:g}, {one.epoch} epoch")
    if asked.folder is not None:
        protocols.write_search(found, asked.command(protocols.NAME), asked.folder / f"{protocols.NAME}.json")


#: What is run in other ways than the suites, and what it is.
ACTIONS: dict[str, tuple[Callable[[Asked, RunRequest], None], str]] = {
    "images": (
        _run_images,
        "All of it on CIFAR-10, Tiny-ImageNet and DDSM: every printed cell once at one learning rate, then at the "
        "other, before any gets a second trial. What the paper leaves open, and cells that it does not print, are "
        "last. What the result files have is not run again (take a GPU).",
    ),
    "beyond": (
        _run_beyond,
        "Networks trained well, on the same data and labels: every printed setting, the paper's methods, and one "
        "option of training at a time. What the result files have is not run again (take a GPU).",
    ),
    "protocols": (
        _run_protocols,
        "All methods under other readings of the paper, one for each way to draw labels (many runs: take a GPU).",
    ),
    "search": (
        _run_search,
        "Which generator of labels, size, formula, rate and epoch fits the printed numbers (many runs: take a GPU).",
    ),
}
#: Every name that can be run, and what it is.
NAMES = {**SUITES, **ALONE, ALL: "All of the above but table7, on MNIST."}
NAMES |= {name: about for name, (_, about) in ACTIONS.items()}
HELP = "Run experiments of the paper, and print each number beside the printed one.\n\n\b\n"
HELP += "\n".join(fill(f"{name:<10} {about}", 90, subsequent_indent=" " * 11) for name, about in NAMES.items())


@app.command("run", help=HELP)
def run(  # noqa: PLR0913 - one argument an option
    names: Annotated[list[str], typer.Argument(help="Names of this list; tables are trained together, and first.")],
    store: Annotated[Path, typer.Option(help=STORE_HELP)] = STORE,
    data: DataOption = None,
    trials: Trials = None,
    epochs: Annotated[int | None, typer.Option(help=EPOCHS_HELP, min=1, max=LARGEST)] = None,
    only: Annotated[str | None, typer.Option(help=ONLY_HELP)] = None,
    device: Device = "auto",
    processes: Annotated[int | None, typer.Option(help=PROCESSES_HELP, min=1, max=MOST_WORKERS)] = None,
    memory: Memory = None,
    max_time: MaxTime = None,
    results: Annotated[Path | None, typer.Option(help="Also write a result file of each part here.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Run experiments by name."""
    for name in names:
        choice("NAMES", name, NAMES)
    if results is not None:
        _check_folder(results)
        if epochs is not None:
            raise InputError("--epochs", "none with --results", epochs, "result files are of the paper's epochs")
    work = RunRequest(
        store,
        data=data,
        device=device,
        processes=processes,
        memory=memory_size(memory),
        pace=Pace(end_of(max_time)),
        dry_run=dry_run,
    )
    asked = Asked(trials, only, epochs, results)
    parts = dict.fromkeys(part for name in names for part in (SUITES if name == ALL else [name]) if part not in ACTIONS)
    if parts:
        _run_suites(parts, asked, work)
    for name in dict.fromkeys(names):
        if name in ACTIONS:
            ACTIONS[name][0](asked, work)


@app.command("report")
def report(
    results: Annotated[Path, typer.Option("--results", help="The folder of result files.")] = RESULTS,
    out: Annotated[Path, typer.Option(help="A .html page, or the same as .md.")] = PAGE,
    force: ForceOption = False,
) -> None:
    """Make the report from result files: every published number beside ours, and a verdict on every claim."""
    choice("--out (ending)", out.suffix, (".html", ".md"))
    sources = [*results.glob("*.json")]
    check_output(out, "--out", *sources, force=force, page_of="wcll paper report" if out == PAGE else "")
    found = read_reproduction(results)
    files = {out: render_report(found, out.suffix)}
    if out.suffix == ".md":  # which shows figures that are files
        files |= {out.parent / "figures" / name: text for name, text in figure_files(found).items()}
        if (figures := out.parent / "figures").exists() and not figures.is_dir():
            raise InputError("--out", "a folder for figures", f"{figures}, which is none")
        for path in files:
            if path.parent.exists():
                check_output(path, "--out", *sources, force=force)
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        write_file(path, text)
    tell(f"report: {out}")


def _all_rows(title: str, trials: Sequence[Trial], work: RunRequest) -> dict[str, Row]:
    """Train what is missing; none for a dry run, else all: of a part of them no number can be made."""
    rows = train_with_progress(title, trials, work)
    if rows and (lacking := {trial.key for trial in trials} - rows.keys()):
        remedy = "they are trained when the command is given again, damaged ones when they are removed"
        raise InputError("--store", f"all runs of {title}", f"{len(lacking)} missing", remedy)
    return rows


def _check_folder(folder: Path) -> None:
    """Whether a folder can be made, before hours of training."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError("--results", "a folder", f"{folder}, of which {there} is a file")
    check_outside_models(folder / "results.json", "--results")


def print_part(part: Part) -> None:
    """What the paper prints and what we measure, side by side."""
    screen, beside = console(), [one for some in part.all_beside.values() for one in some.values()]
    screen.print(part.suite.title, style="bold")
    places = {_head(part, column, metric): (column, metric) for column, metric in product(part.columns, part.figures)}
    heads = {"paper": f"{'paper / ours' if beside else 'ours'}: the paper's protocol"}
    if part.suite.name in BEYOND:
        heads = {title: f"ours: {title}" for title in part.tables}
    elif part.suite.grid:  # else there is one rate, and nothing is chosen
        heads["fair"] = "ours: the fair protocol"
    for protocol, head in heads.items():
        screen.print(f"{head}, {METRICS[part.metric]} in percent")
        cells = {
            method: [_cell(part, protocol, method, *place) for place in places.values()] for method in part.methods
        }
        rows = ([Text(show_name(method)), *line] for method, line in cells.items())
        screen.print(grid(["method", *places], rows, right=places))
        screen.print()
    note = f"Mean ± std over {part.trials} trials." if part.trials > 1 else "One trial."
    if beside:
        note += f" {sum(one.close for one in beside)} of {len(beside)} within 2 points; mean absolute difference "
        note += f"{mean_absolute(beside):.1f}, of WCLL {mean_absolute(part.of('wcll')):.1f}."
    screen.print(f"{note}\n")
    if part.suite.about:
        screen.print(f"{part.suite.about}\n")


def _head(part: Part, column: str, metric: str) -> str:
    """A setting, the figure if there are several, or both."""
    parts = [column] if len(part.figures) == 1 or len(part.columns) > 1 else []
    return ", ".join(parts + ([part.figures[metric]] if len(part.figures) > 1 else []))


def _cell(part: Part, protocol: str, method: str, column: str, metric: str) -> Text:
    cell = part.cell(protocol, method, column, metric)
    printed = part.all_printed[metric].get((method, column)) if protocol == "paper" else None
    return shown(cell) if printed is None else Text(f"{printed.mean:.1f} / ") + shown(cell)


bound_app = typer.Typer(help="The paper's bounds: every term, and what is measured beside them.", rich_markup_mode=None)

MOST = 10**12  #: labels that anybody may ask about
NORM = "The largest norm of a class's weights (default: 1; for a suite, that of a trained model)."
LAYERS = "For networks instead of linear models: a layer's Frobenius norm; may come again."
SUITE = "Take classes, sizes and samples from the columns of a suite instead."
BESIDE_SUITE = {"--suite", "--data", "--norm", "--delta", "--gap", "--json"}  #: a suite has the others itself


@bound_app.callback(invoke_without_command=True)
def bound(  # noqa: PLR0913 - one argument an option
    context: typer.Context,
    suite: Annotated[str | None, typer.Option(help=SUITE)] = None,
    data: DataOption = None,
    classes: Annotated[int, typer.Option(help="K.", min=2, max=10**6)] = 10,
    p: Annotated[float, typer.Option("-p", "--p", help="How many times rarer the first class is (Eq. 6).")] = 2.0,
    n: Annotated[int, typer.Option(help="Complementary labels.", min=1, max=MOST)] = 19_000,
    norm: Annotated[float | None, typer.Option(help=NORM)] = None,
    radius: Annotated[float, typer.Option(help="The largest norm of a sample.")] = 1.0,
    layer_norm: Annotated[list[float] | None, typer.Option(help=LAYERS)] = None,
    delta: Annotated[float, typer.Option(help="The probability with which a bound may fail.")] = 0.05,
    gap: Annotated[float | None, typer.Option(help="Also say how many labels bring each bound down to this.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Print Lemma 1 and Theorem 1 for cross-entropy, as printed and corrected, term by term."""
    given = _given(context)
    if context.invoked_subcommand is not None:
        _refuse(given, "no command beside it", context.invoked_subcommand)
        return
    if gap is not None:
        positive("--gap", gap)
    if suite is not None:
        unused = [name for name in given if name not in BESIDE_SUITE]
        _refuse(unused, "none beside --suite, which has its own", "a value")
        cases = suite_cases(load_suite(suite), partial(load_dataset, data=data), norm=norm, delta=delta)
    else:
        if not 1e-6 <= p <= 1e6:
            raise InputError("--p", "a ratio from 1e-06 to 1e+06", p)
        shares = [1.0, *[p] * (classes - 1)]
        cases = [own_case(shares, n, norm=norm, layer_norms=layer_norm or [], radius=radius, delta=delta)]
    if gap is not None:
        for case in cases:  # what cannot be said is found out before anything is
            case.bounds[-1].labels_for(gap)
    if as_json:
        print(json.dumps([case.to_dict(gap) for case in cases], indent=2))
    else:
        for case in cases:
            _print_bound(case, gap)


@bound_app.command("simulate")
def simulate(
    draws: Annotated[int, typer.Option(help="Draws of N samples, at each N.", min=2, max=10**9)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the distribution and of all draws.", min=0, max=SEEDS)] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write everything to this .json file.")] = None,
    force: ForceOption = False,
) -> None:
    """Measure deviations on a known distribution over three decades of N, and compare them with the bounds."""
    wanted, trends = list(product(bound_study.LABELS, bound_study.KINDS)), []
    if out is not None:
        check_output(out, "--out", force=force)
    torch.set_num_threads(1)
    with progress_bar("measuring") as progress:
        for i, (labels, kind) in enumerate(wanted):
            trends.append(bound_study.simulate(labels, kind, draws=draws, seed=seed))
            progress(i + 1, len(wanted))
    for trend in trends:
        _print_trend(trend)
    if out is not None:
        _write(out, f"simulate --draws {draws} --seed {seed}", "trends", [trend.to_dict() for trend in trends])


@bound_app.command("counterexample")
def counterexample(
    draws: Annotated[
        int, typer.Option(help="Draws of N samples, with the seeds from 0.", min=1, max=10**4)
    ] = bound_study.COUNTEREXAMPLE_DRAWS,
    out: Annotated[Path | None, typer.Option(help="Also write everything to this .json file.")] = None,
    force: ForceOption = False,
) -> None:
    """Compare the bounds on orthogonal samples of many classes, where Lemma 1 as printed is false."""
    if out is not None:
        check_output(out, "--out", force=force)
    torch.set_num_threads(1)
    with progress_bar("measuring") as progress:
        found = bound_study.measure(bound_study.OrthogonalWorld(), range(draws), progress=progress)
    _print_counterexample(found)
    if out is not None:
        _write(out, f"counterexample --draws {draws}", "counterexample", found.to_dict())


def _write(out: Path, command: str, name: str, found: Any) -> None:
    made = {"command": f"wcll bound {command}", **provenance(torch.device("cpu"))}
    write_file(out, json.dumps({"made": made, name: found}, indent=1) + "\n")


def _given(context: typer.Context) -> list[str]:
    """The options that were given, by their long names."""
    sources = {option: context.get_parameter_source(option.name or "") for option in context.command.params}
    return [option.opts[-1] for option, source in sources.items() if source and source.name == "COMMANDLINE"]


def _refuse(given: Sequence[str], expected: str, got: str) -> None:
    """Options that would have no effect."""
    if given:
        raise InputError(given[0], expected, got)


def _print_bound(case: Case, gap: float | None) -> None:
    screen, first = console(), case.bounds[0]
    screen.print(case.title, style="bold")
    if case.note:
        screen.print(case.note)
    scale = "" if first.scale is None else f"; outputs that are all 0 have a risk of {first.scale:.4g}"
    screen.print(f"range of the loss {first.width:.4g}{scale}")
    for one in case.bounds:
        screen.print(f"\n{one.name}, with probability at least {one.confidence:g}", style="bold")
        screen.print(f"  {one.formula}")
        screen.print("  " + ", ".join(f"{name} = {value:.6g}" for name, value in one.ingredients.items()))
        for term, value in one.terms.items():
            screen.print(f"  {term:<12}{value:>12.6g}")
        screen.print(f"  {'sum':<12}{one.value:>12.6g}   {one.verdict}")
        if gap is not None:
            screen.print(f"  {one.labels_for(gap)} labels bring it down to {gap:g}")
    screen.print()


def _print_trend(trend: bound_study.Trend) -> None:
    heads = ("N", "measured", "as printed", "corrected", "corrected / measured", "holds", "as printed holds")
    rows = [
        (
            *(f"{point.n}", f"{point.mean:.5f}", f"{point.printed:.3f}", f"{point.corrected:.3f}"),
            f"{point.median_ratio:.0f}" + (" (vacuous)" if point.vacuous else ""),
            *(f"{held} of {trend.draws}" for held in (point.held, point.held_printed)),
        )
        for point in trend.points
    ]
    screen = console()
    screen.print(f"{bound_study.KIND_TITLES[trend.kind]}, {trend.labels} labels", style="bold")
    screen.print(grid(heads, rows, right=heads))
    interval = f"95 % interval {trend.slope_low:.3f} to {trend.slope_high:.3f}"
    screen.print(f"log-log slope {trend.slope:.3f} ({interval})\n")


def _print_counterexample(found: bound_study.Counterexample) -> None:
    screen, of = console(), f"of {len(found.seeds)}"
    title = (
        f"orthogonal samples: K = {found.classes}, N = {found.n}, B = {found.norm:g}, r = 1, delta = {found.delta:g}"
    )
    screen.print(title, style="bold")
    low, high = min(found.at_least), max(found.at_least)
    rows = [
        ("largest deviation, at least", f"{found.mean:.4f}", f"{low:.4f} to {high:.4f} over draws"),
        ("largest deviation, at most", f"{max(found.at_most):.4f}", "in every draw"),
        ("Lemma 1, as printed", f"{found.printed:.4g}", f"violated in {found.violated} {of} draws"),
        ("Lemma 1, corrected", f"{found.corrected:.4g}", f"holds in {found.held} {of} draws"),
    ]
    screen.print(grid(("", "value", ""), rows, right=("value",)))
