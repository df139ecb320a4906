"""``wcll bound``: the paper's bounds with every term, how many labels they ask for, and the bounds put to the test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from wcll._files import check_output
from wcll._validation import positive
from wcll.cli.data import DataOption
from wcll.cli.output import ForceOption, console, grid, progress_bar, write_file
from wcll.cli.suites import SEEDS
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.paper import bound_study
from wcll.paper import bound_study as orthogonal
from wcll.paper.bound_study import Case, own_case, suite_cases
from wcll.results.provenance import provenance
from wcll.suites import load_suite

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
    ] = orthogonal.COUNTEREXAMPLE_DRAWS,
    out: Annotated[Path | None, typer.Option(help="Also write everything to this .json file.")] = None,
    force: ForceOption = False,
) -> None:
    """Compare the bounds on orthogonal samples of many classes, where Lemma 1 as printed is false."""
    if out is not None:
        check_output(out, "--out", force=force)
    torch.set_num_threads(1)
    with progress_bar("measuring") as progress:
        found = orthogonal.measure(orthogonal.OrthogonalWorld(), range(draws), progress=progress)
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


def _print_counterexample(found: orthogonal.Counterexample) -> None:
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
