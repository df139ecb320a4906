"""``wcll bound``: the paper's bounds with every term, how many labels they ask for, and the bounds put to the test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wcll.checks import InputError
from wcll.cli.data import DataOption

if TYPE_CHECKING:
    from wcll.theory import Bound, Problem
    from wcll.theory.simulation import Trend

app = typer.Typer(
    help="The paper's bounds: every term, and how they compare with what is measured.", rich_markup_mode=None
)

Classes = Annotated[int, typer.Option("--classes", help="K.", min=2)]
Ratio = Annotated[float, typer.Option("-p", "--p", help="Majority to minority ratio (Eq. 6).")]
Minority = Annotated[
    list[int] | None, typer.Option("--minority", help="A rare class; may be given again (default: 0).")
]
Number = Annotated[int, typer.Option("--n", help="Complementary labels.", min=1)]
Norm = Annotated[float, typer.Option("--norm", help="The largest norm of a class's weights, B.")]
Radius = Annotated[float, typer.Option("--radius", help="The largest norm of a sample.")]
Delta = Annotated[float, typer.Option("--delta", help="The probability with which a bound may fail.")]
SuiteOption = Annotated[
    str | None, typer.Option("--suite", help="Take classes, sizes and samples from the columns of a suite instead.")
]
Gap = Annotated[float | None, typer.Option("--gap", help="Also say how many labels bring each bound down to this.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="An .svg figure of the bounds over N.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


@app.callback(invoke_without_command=True)
def bound(  # noqa: PLR0913 - one argument an option
    context: typer.Context,
    suite: SuiteOption = None,
    data: DataOption = None,
    classes: Classes = 10,
    p: Ratio = 2.0,
    minority: Minority = None,
    n: Number = 19_000,
    norm: Norm = 1.0,
    radius: Radius = 1.0,
    delta: Delta = 0.05,
    gap: Gap = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print Lemma 1 and Theorem 1 for linear models and cross-entropy, as printed and corrected, term by term."""
    if context.invoked_subcommand is not None:
        return
    from wcll.labels import imbalance_counts
    from wcll.theory import Problem

    if suite is None:
        sizes = imbalance_counts(n, n_classes=classes, minority=minority or [0], p=p)
        problems = {
            f"K = {classes}, p = {p:g}, N = {n}": Problem.linear(sizes, n, norm=norm, radius=radius, delta=delta)
        }
        notes = dict.fromkeys(problems, "")
    else:
        problems, notes = _of_suite(suite, data, norm, delta)
    found = {title: _bounds(problem) for title, problem in problems.items()}
    if as_json:
        print(json.dumps([_plain(title, bounds, notes[title], gap) for title, bounds in found.items()], indent=2))
    else:
        for title, bounds in found.items():
            _print(title, bounds, notes[title], gap)
    if plot is not None:
        _plot(next(iter(problems.values())), plot)


@app.command("simulate")
def simulate(
    draws: Annotated[int, typer.Option(help="Draws of N samples, at each N.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the distribution and of all draws.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write everything to this .json file.")] = None,
) -> None:
    """Measure deviations on a known distribution over three decades of N, and compare them with the bounds."""
    import torch

    from wcll.atomic import check_target, replacing
    from wcll.cli.output import progress_bar
    from wcll.experiments.provenance import provenance
    from wcll.theory.simulation import KINDS, LABELS
    from wcll.theory.simulation import simulate as measure

    if out is not None:
        check_target(out, "--out")
    torch.set_num_threads(1)
    wanted = [(labels, kind) for labels in LABELS for kind in KINDS]
    trends = []
    with progress_bar("measuring") as progress:
        for i, (labels, kind) in enumerate(wanted):
            trends.append(measure(labels, kind, draws=draws, seed=seed))
            progress(i + 1, len(wanted))
    for trend in trends:
        _print_trend(trend)
    if out is not None:
        made = {"command": f"wcll bound simulate --draws {draws} --seed {seed}", **provenance(torch.device("cpu"))}
        text = json.dumps({"made": made, "trends": [trend.to_dict() for trend in trends]}, indent=1)
        with replacing(out, "--out") as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def _bounds(problem: Problem) -> list[Bound]:
    from wcll.theory import corrected_lemma, corrected_theorem, lemma1, theorem1

    return [statement(problem) for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem)]


def _of_suite(name: str, data: Path | None, norm: float, delta: float) -> tuple[dict[str, Problem], dict[str, str]]:
    """One problem for every column whose classes have other sizes than the ones before."""
    import numpy as np

    from wcll.datasets import load_dataset
    from wcll.experiments import load_suite
    from wcll.experiments.tasks import make_task
    from wcll.theory import Problem, linear_complexity_of

    suite = load_suite(name)
    problems: dict[str, Problem] = {}
    notes: dict[str, str] = {}
    seen = set()
    for column in suite.columns:
        trial = suite.candidates(column, suite.rows[0], 0)[0]
        task = make_task(trial, load_dataset(trial.dataset, data=data))
        sizes = task.declared.sizes
        if tuple(sorted(sizes)) in seen:
            continue
        seen.add(tuple(sorted(sizes)))
        x = task.train.x.flatten(1).double().numpy() / task.scale
        x = np.column_stack([x, np.ones(len(x))])  # a bias is a feature that is 1
        radius = float(np.linalg.norm(x, axis=1).max())
        measured, error = linear_complexity_of(x, norm=norm, draws=20, random_state=0)
        title = f"{suite.title}, {column.title}" if column.title else suite.title
        problems[title] = Problem.linear(sizes, len(x), norm=norm, radius=radius, delta=delta)
        notes[title] = (
            f"samples of norm at most {radius:.2f}; R_N on these samples by Monte Carlo {measured:.4g} ± {error:.1g} "
            f"(the bound uses {problems[title].complexity:.4g})"
        )
    return problems, notes


def _plain(title: str, bounds: list[Bound], note: str, gap: float | None) -> dict[str, Any]:
    from dataclasses import asdict

    listed = [{**asdict(one), "value": one.value, "verdict": one.verdict, **_needed(one, gap)} for one in bounds]
    return {"title": title, "note": note, "bounds": listed}


def _needed(one: Bound, gap: float | None) -> dict[str, int]:
    from wcll.theory.bounds import labels_needed

    return {} if gap is None else {"labels_needed": labels_needed(one.value, int(one.ingredients["N"]), gap)}


def _print(title: str, bounds: list[Bound], note: str, gap: float | None) -> None:
    from wcll.cli.output import console

    screen = console()
    screen.print(title, style="bold")
    if note:
        screen.print(note)
    scale = "" if bounds[0].scale is None else f"; outputs that are all 0 have a risk of {bounds[0].scale:.4g}"
    screen.print(f"range of the loss {bounds[0].width:.4g}{scale}", markup=False)
    for one in bounds:
        screen.print(f"\n{one.name}, with probability at least {one.confidence:g}", style="bold", markup=False)
        screen.print(f"  {one.formula}", markup=False)
        screen.print("  " + ", ".join(f"{name} = {value:.6g}" for name, value in one.ingredients.items()), markup=False)
        for term, value in one.terms.items():
            screen.print(f"  {term:<12}{value:>12.6g}", markup=False)
        screen.print(f"  {'sum':<12}{one.value:>12.6g}   {one.verdict}", markup=False)
        for needed in _needed(one, gap).values():
            screen.print(f"  {needed} labels bring it down to {gap:g}", markup=False)
    screen.print()


def _print_trend(trend: Trend) -> None:
    from rich.table import Table
    from rich.text import Text

    from wcll.cli.output import console
    from wcll.theory.simulation import KIND_TITLES

    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = ("N", "measured", "as printed", "corrected", "corrected / measured", "holds", "as printed holds")
    for head in heads:
        table.add_column(Text(head), justify="right")
    for point in trend.points:
        table.add_row(
            *(f"{point.n}", f"{point.mean:.5f}", f"{point.printed:.3f}", f"{point.corrected:.3f}"),
            f"{point.median_ratio:.0f}" + (" (vacuous)" if point.vacuous else ""),
            f"{point.held} of {trend.draws}",
            f"{point.held_printed} of {trend.draws}",
        )
    screen = console()
    screen.print(f"{KIND_TITLES[trend.kind]}, {trend.labels} labels", style="bold", markup=False)
    screen.print(table)
    interval = f"95 % interval {trend.slope_low:.3f} to {trend.slope_high:.3f}"
    screen.print(f"log-log slope {trend.slope:.3f} ({interval})\n", markup=False)


def _plot(problem: Problem, path: Path) -> None:
    from wcll.atomic import check_target, replacing
    from wcll.report.figures import loglog_figure
    from wcll.theory import corrected_lemma, lemma1

    if path.suffix != ".svg":
        raise InputError("--plot", "an .svg file", path.name)
    check_target(path, "--plot")
    sizes = [round(10 ** (exponent / 4)) for exponent in range(8, 33)]
    lines = {
        "as printed": [lemma1(problem.at(n)).value for n in sizes],
        "corrected": [corrected_lemma(problem.at(n)).value for n in sizes],
        "range of the loss": [problem.width] * len(sizes),
    }
    with replacing(path, "--plot") as draft:
        draft.write_text(loglog_figure("Lemma 1 over the number of labels", sizes, lines), encoding="utf-8")
    print(f"figure: {path}", file=sys.stderr)
