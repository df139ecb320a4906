"""``wcll bound``: the paper's bounds with every term, how many labels they ask for, and the bounds put to the test."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wcll.checks import InputError, positive
from wcll.cli.data import DataOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wcll.running.containers import Task
    from wcll.suites.trial import Trial
    from wcll.theory import Bound, Problem
    from wcll.theory.simulation import Trend

app = typer.Typer(help="The paper's bounds: every term, and what is measured beside them.", rich_markup_mode=None)

MOST = 10**12  #: labels that anybody may ask about
Classes = Annotated[int | None, typer.Option("--classes", help="K (default: 10).", min=2, max=10**6)]
Ratio = Annotated[float | None, typer.Option("-p", "--p", help="Majority to minority ratio of Eq. 6 (default: 2).")]
Minority = Annotated[list[int] | None, typer.Option("--minority", help="A rare class (default: 0); may come again.")]
Number = Annotated[int | None, typer.Option("--n", help="Complementary labels (default: 19000).", min=1, max=MOST)]
Norm = Annotated[
    float | None,
    typer.Option(
        "--norm", help="The largest norm of a class's weights (default: 1; for a suite, that of a trained model)."
    ),
]
Radius = Annotated[float | None, typer.Option("--radius", help="The largest norm of a sample (default: 1).")]
Layers = Annotated[
    list[float] | None,
    typer.Option(
        "--layer-norm", help="For networks instead of linear models: a layer's Frobenius norm; may come again."
    ),
]
Delta = Annotated[float, typer.Option("--delta", help="The probability with which a bound may fail.")]
SuiteOption = Annotated[
    str | None, typer.Option("--suite", help="Take classes, sizes and samples from the columns of a suite instead.")
]
Gap = Annotated[float | None, typer.Option("--gap", help="Also say how many labels bring each bound down to this.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="An .svg figure of Lemma 1 over N (of the first column).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


@dataclass(frozen=True)
class Case:
    """A problem, and what is to be said of it."""

    title: str
    problem: Problem
    note: str = ""


@app.callback(invoke_without_command=True)
def bound(  # noqa: PLR0913 - one argument an option
    context: typer.Context,
    suite: SuiteOption = None,
    data: DataOption = None,
    classes: Classes = None,
    p: Ratio = None,
    minority: Minority = None,
    n: Number = None,
    norm: Norm = None,
    radius: Radius = None,
    layer_norm: Layers = None,
    delta: Delta = 0.05,
    gap: Gap = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print Lemma 1 and Theorem 1 for cross-entropy, as printed and corrected, term by term."""
    shape = {"--classes": classes, "--p": p, "--minority": minority, "--n": n, "--radius": radius}
    given = [name for name, value in {**shape, "--layer-norm": layer_norm}.items() if value]
    if context.invoked_subcommand is not None:
        others = {"--suite": suite, "--data": data, "--norm": norm, "--gap": gap, "--plot": plot, "--json": as_json}
        _refuse([*given, *(name for name, value in others.items() if value)], "no command beside it", context)
        return
    _check(gap, plot)
    if suite is not None:
        _refuse(given, "none beside --suite, which has its own", context)
        cases = _of_suite(suite, data, norm, delta)
    else:
        shares = _shares(classes or 10, 2.0 if p is None else p, minority or [0])
        cases = [_case(shares, n or 19_000, norm, 1.0 if radius is None else radius, layer_norm, delta)]
    found = [(case, _bounds(case.problem)) for case in cases]
    for _, bounds in found:  # what cannot be said is found out before anything is
        _needed(bounds[-1], gap)
    if as_json:
        print(json.dumps([_plain(case, bounds, gap) for case, bounds in found], indent=2))
    else:
        for case, bounds in found:
            _print(case, bounds, gap)
    if plot is not None:
        _plot(cases[0], plot)


@app.command("simulate")
def simulate(
    draws: Annotated[int, typer.Option(help="Draws of N samples, at each N.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the distribution and of all draws.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write everything to this .json file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also write figures over N to this folder.")] = None,
) -> None:
    """Measure deviations on a known distribution over three decades of N, and compare them with the bounds."""
    import torch

    from wcll.atomic import check_target, replacing
    from wcll.cli.output import progress_bar
    from wcll.report.bounds import figure_name, trend_figure
    from wcll.results.provenance import provenance
    from wcll.theory.simulation import KINDS, LABELS
    from wcll.theory.simulation import simulate as measure

    if out is not None:
        check_target(out, "--out")
    if plot is not None and not plot.is_dir():
        raise InputError("--plot", "a folder", f"{plot}, which is none")
    torch.set_num_threads(1)
    wanted = [(labels, kind) for labels in LABELS for kind in KINDS]
    trends = []
    with progress_bar("measuring") as progress:
        for i, (labels, kind) in enumerate(wanted):
            trends.append(measure(labels, kind, draws=draws, seed=seed))
            progress(i + 1, len(wanted))
    for trend in trends:
        _print_trend(trend)
        if plot is not None:
            with replacing(plot / figure_name(trend), "--plot") as draft:
                draft.write_text(trend_figure(trend), encoding="utf-8")
    if out is not None:
        made = {"command": f"wcll bound simulate --draws {draws} --seed {seed}", **provenance(torch.device("cpu"))}
        text = json.dumps({"made": made, "trends": [trend.to_dict() for trend in trends]}, indent=1)
        with replacing(out, "--out") as draft:
            draft.write_text(text + "\n", encoding="utf-8")


def _refuse(given: Sequence[str], expected: str, context: typer.Context) -> None:
    """Options that would have no effect."""
    if given:
        raise InputError(given[0], expected, context.invoked_subcommand or "a value")


def _check(gap: float | None, plot: Path | None) -> None:
    """What can be wrong with them, before anything is computed or printed."""
    from wcll.atomic import check_target

    if gap is not None:
        positive("--gap", gap)
    if plot is not None:
        if plot.suffix != ".svg":
            raise InputError("--plot", "an .svg file", plot.name)
        check_target(plot, "--plot")


def _shares(classes: int, p: float, minority: Sequence[int]) -> list[float]:
    """The class shares of Eq. 6, not rounded to samples."""
    from wcll.labels.imbalance import minority_classes

    rare = set(minority_classes(minority, classes).tolist())
    return [1.0 if k in rare else positive("--p", p) for k in range(classes)]


def _case(
    shares: list[float], n: int, norm: float | None, radius: float, layers: list[float] | None, delta: float
) -> Case:
    from wcll.theory import Problem

    title = f"K = {len(shares)}, class shares {min(shares):g} to {max(shares):g}, N = {n}"
    if layers:
        if norm is not None:
            raise InputError("--norm", "none beside --layer-norm, which has its own", norm)
        return Case(f"{title}, networks of {len(layers)} layers without biases",
                    Problem.network(shares, n, norms=layers, radius=radius, delta=delta))  # fmt: skip
    problem = Problem.linear(shares, n, norm=1.0 if norm is None else norm, radius=radius, delta=delta)
    return Case(f"{title}, linear models", problem)


def _bounds(problem: Problem) -> list[Bound]:
    from wcll.theory import corrected_lemma, corrected_theorem, lemma1, theorem1

    return [statement(problem) for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem)]


def _of_suite(name: str, data: Path | None, norm: float | None, delta: float) -> list[Case]:
    """One case for every column that differs in its data set, labels or class sizes."""
    from wcll.datasets import load_dataset
    from wcll.running.task import make_task
    from wcll.suites import load_suite

    suite = load_suite(name)
    cases: dict[object, Case] = {}
    for column in suite.columns:
        trials = [trial for row in suite.rows for trial in suite.candidates(column, row, 0)]
        trial = next((one for one in trials if one.loss == "wcll" and not one.loss_options and not one.resample), None)
        if trial is None or trial.model != "linear":
            raise InputError("--suite", "a row of loss 'wcll' with a linear model, which the bounds are about", name)
        task = make_task(trial, load_dataset(trial.dataset, data=data))
        kind = (
            trial.dataset,
            trial.labels,
            trial.imbalance_of,
            len(task.train.x),
            *sorted(task.declared.sizes.tolist()),
        )
        if kind not in cases:
            title = f"{suite.title}, {column.title}" if column.title else suite.title
            cases[kind] = _case_of_task(title, trial, task, norm, delta)
    return list(cases.values())


def _case_of_task(title: str, trial: Trial, task: Task, norm: float | None, delta: float) -> Case:
    """The problem of a task: its samples' radius, and the norm that training reaches unless one is given."""
    import numpy as np

    from wcll.theory import Problem, linear_complexity_of

    x = task.train.x.flatten(1).double().numpy() / task.scale
    x = np.column_stack([x, np.ones(len(x))])  # a bias is a feature that is 1
    radius = float(np.linalg.norm(x, axis=1).max())
    largest = _trained_norm(trial, task) if norm is None else norm
    problem = Problem.linear(task.declared.sizes, len(x), norm=largest, radius=radius, delta=delta)
    inverse_size = trial.labels == "inverse-size" and trial.imbalance_of is None
    measured, error = linear_complexity_of(x, norm=largest, draws=20, random_state=0)
    how = (
        f"that of WCLL trained there (rate {trial.lr:g}, {trial.epochs} epochs, seed 0)" if norm is None else "as given"
    )
    note = (
        f"weights of norm at most {largest:.3g}, {how}; samples of norm at most {radius:.2f}; R_N at most "
        f"{problem.complexity:.4g}, on these samples by Monte Carlo {measured:.4g} ± {error:.1g} (ratio "
        f"{problem.complexity / measured:.1f})"
    )
    return Case(title, replace(problem, inverse_size=inverse_size), note)


def _trained_norm(trial: Trial, task: Task) -> float:
    """The largest norm of a class's weights, its bias among them, after training."""
    import torch

    from wcll.running.plan import Job
    from wcll.running.train import train

    (recording,) = train([(Job((trial,)), task.view)], torch.device("cpu"))
    weights = torch.cat(
        [recording.parameters[f"layer.{name}"][0].view(task.n_classes, -1) for name in ("weight", "bias")], 1
    )
    return float(weights.norm(dim=1).max())


def _plain(case: Case, bounds: list[Bound], gap: float | None) -> dict[str, Any]:
    listed = [{**asdict(one), "value": one.value, "verdict": one.verdict, **_needed(one, gap)} for one in bounds]
    return {"title": case.title, "note": case.note, "problem": asdict(case.problem), "bounds": listed}


def _needed(one: Bound, gap: float | None) -> dict[str, int]:
    from wcll.theory import labels_needed

    return {} if gap is None else {"labels_needed": labels_needed(one.value, int(one.ingredients["N"]), gap)}


def _print(case: Case, bounds: list[Bound], gap: float | None) -> None:
    from wcll.cli.output import console

    screen = console()
    screen.print(case.title, style="bold", markup=False)
    if case.note:
        screen.print(case.note, markup=False)
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


def _plot(case: Case, path: Path) -> None:
    from wcll.atomic import replacing
    from wcll.report.figures import loglog_figure
    from wcll.theory import corrected_lemma, lemma1

    sizes = [round(10 ** (exponent / 4)) for exponent in range(8, 33)]
    lines = {
        "as printed": [lemma1(case.problem.at(n)).value for n in sizes],
        "corrected": [corrected_lemma(case.problem.at(n)).value for n in sizes],
        "range of the loss": [case.problem.width] * len(sizes),
    }
    with replacing(path, "--plot") as draft:
        draft.write_text(loglog_figure(f"Lemma 1: {case.title}", sizes, lines), encoding="utf-8")
    print(f"figure: {path}", file=sys.stderr)
