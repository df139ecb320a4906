"""``wcll labels`` and ``wcll simulate``: diagnostics, annotation tools, and labels drawn from true ones."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wcll import __version__
from wcll._files import check_output, csv_line, replacing
from wcll._memory import check_memory
from wcll._validation import IntArray
from wcll.cli import show, tell
from wcll.cli.console import ForceOption, console, grid, write_file
from wcll.cli.files import load_npy, read_labels
from wcll.datasets.label_files import read_label_file
from wcll.exceptions import InputError
from wcll.labels import make_complementary
from wcll.labels.counts import LabelSummary, describe_labels
from wcll.labels.diagnostics import health_of
from wcll.labels.transition import TRANSITIONS, make_transition
from wcll.owndata.annotation_tools import Label, read_export
from wcll.owndata.importing import kept_labels, write_labels
from wcll.report.label_report import Section, label_page, sections

app = typer.Typer(help="Complementary labels in a file: their health, and where they come from.", rich_markup_mode=None)

LABELS = "Column with a label, a class that the sample is NOT; may come again."


@app.callback()
def labels() -> None:
    """Look at complementary labels; true ones are never asked for."""


@app.command("describe")
def describe(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet table, or an .npz file with an array ybar.")],
    not_label: Annotated[list[str] | None, typer.Option(help=LABELS)] = None,
    item: Annotated[str | None, typer.Option(help="Column that says which sample a row is of.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Column that says who gave the label.")] = None,
    classes: Annotated[str | None, typer.Option(help="All classes, separated by commas (default: all named).")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write a page, an .html file.")] = None,
    force: ForceOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say what labels tell: counts, families of Q and what a wrong one costs, agreement, mistakes, annotators."""
    _check(file, out, force)
    names = None if classes is None else [name.strip() for name in classes.split(",")]
    if names is not None and (len(names) < 2 or len(set(names)) < len(names) or not all(names)):
        raise InputError("--classes", "at least two names, each once, separated by commas", repr(classes))
    records = read_label_file(file, labels=not_label or [], item=item, annotator=annotator, classes=names)
    health = health_of(records)
    if out is not None:
        given = [(("--not-label", name) for name in not_label or []), [("--item", item), ("--annotator", annotator)]]
        words = [file.name, *(word for part in given for option, name in part if name for word in (option, name))]
        words += [] if classes is None else ["--classes", classes]
        made = [("command", f"wcll labels describe {shlex.join(words)}")]
        made += [("versions", f"wcll {__version__}, numpy {np.__version__}")]
        write_file(out, label_page(health, file.name, made))
    if as_json:
        print(json.dumps({"file": str(file), "wcll": __version__, **health.to_dict()}, indent=2))
        return
    for section in sections(health):
        _print_section(section)
    if out is not None:
        console().print(f"page: {out}")


@app.command("import")
def import_labels(
    file: Annotated[Path, typer.Argument(help="Label Studio's JSON export, or Prodigy's JSON lines.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table that labels go to, .csv or .parquet.")],
    item: Annotated[str | None, typer.Option(help="Field of a task that names its item (default: its id).")] = None,
    control: Annotated[
        str | None, typer.Option(help="Label Studio's control that asks what the item is NOT, if there are several.")
    ] = None,
    true_labels: Annotated[
        bool, typer.Option("--true-labels", help="Keep what Prodigy accepted, in a column true_label.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Turn an annotation tool's export into a table: item, not_label, annotator, offered, time."""
    check_output(out, "--out", file, force=force)
    if out.suffix not in (".csv", ".parquet"):
        raise InputError("--out", "a .csv or .parquet file", out.name)
    found = read_export(file, item=item, control=control)
    labels = kept_labels(found.labels, true_labels)
    if not labels:
        got = f"none ({len(found.labels)} true ones)" if found.labels else "none"
        raise InputError(str(file), "at least one label that says what an item is NOT", got)
    write_labels(out, labels, true_labels)
    for reason, times in found.skipped.items():
        tell(f"wcll: note: {times} annotations {reason}")
    if left := len(found.labels) - len(labels):
        tell(f"wcll: note: {left} true labels are left out; --true-labels keeps them, for evaluation only")
    show(_imported(labels, out))


def _imported(labels: list[Label], out: Path) -> str:
    """What was written, in a line, and how to look at it."""
    items, who = {label.item for label in labels}, {label.annotator for label in labels} - {""}
    classes = {label.not_label for label in labels} - {""}
    by = f" by {len(who)} annotators" if who else ""
    look = shlex.join(
        ["wcll", "labels", "describe", out.name, "--item", "item", *(["--annotator", "annotator"] if by else [])]
    )
    return f"{len(labels)} labels of {len(items)} items{by}, {len(classes)} classes: {out} (look: {look})"


def _check(file: Path, out: Path | None, force: bool) -> None:
    """What can be wrong with a page to write, before anything is read."""
    if out is None:
        return
    if out.suffix not in (".html", ".htm"):
        raise InputError("--out", "an .html file", out.name)
    check_output(out, "--out", file, force=force)


def _print_section(section: Section) -> None:
    screen = console()
    screen.print(section.title, style="bold")
    for line in section.lines:
        screen.print(line)
    if section.rows:
        screen.print(
            grid(section.heads, section.rows, right=[head for head in section.heads if head not in section.left])
        )
    screen.print()


MOST_CLASSES = 10_000  #: a matrix has this many rows and columns
SEEDS = 2**63 - 1  #: the largest seed


@dataclass(frozen=True)
class Simulation:
    """Complementary labels for the samples of a file."""

    classes: NDArray[Any]  # names, sorted; their position is the class index
    ybar: NDArray[Any]  # class indices, or a mask
    summary: LabelSummary


def simulate(
    labels: Annotated[Path, typer.Argument(help="Ordinary labels: a .npy array, or a .csv file with a header.")],
    out: Annotated[Path, typer.Option(help="Where the labels go: .csv or .npz (index, ybar, classes).")],
    column: Annotated[str | None, typer.Option(help="Column of the .csv file.")] = None,
    transition: Annotated[
        str, typer.Option(help=f"{', '.join(TRANSITIONS)}, or a .npy file with Q[y, ybar].")
    ] = "uniform",
    n_labels: Annotated[str, typer.Option(help="Labels a sample: a number, or 'random'.")] = "1",
    seed: Annotated[int, typer.Option(help="Seed of all draws.", min=0, max=SEEDS)] = 0,
    force: ForceOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Turn ordinary labels into complementary ones, and say what they tell of classes and priors."""
    check_output(out, "--out", labels, Path(transition) if transition.endswith(".npy") else None, force=force)
    if out.suffix not in (".csv", ".npz"):
        raise InputError("--out", "a .csv or .npz file", out.name)
    classes, y = _classes(labels, column, n_labels)
    simulation = Simulation(classes, *_draw(y, transition, n_labels, seed))
    with replacing(out, "--out") as draft:
        _write(draft, out.suffix, simulation)
    if as_json:
        print(json.dumps({"classes": classes.tolist(), **simulation.summary.to_dict()}, indent=2))
    else:
        _print_simulation(simulation, out)


def _classes(path: Path, column: str | None, n_labels: str) -> tuple[NDArray[Any], IntArray]:
    """The names of the classes in a file, and the class index of every sample."""
    classes, y = np.unique(read_labels(path, column), return_inverse=True)
    if len(classes) < 2:
        raise InputError(str(path), "at least two classes", len(classes))
    if len(classes) > MOST_CLASSES:
        raise InputError(str(path), f"at most {MOST_CLASSES} classes", len(classes), "are these labels?")
    check_memory(str(path), f"matrices of {len(classes)} classes", 6 * 8 * len(classes) ** 2)
    if n_labels != "1":
        check_memory(str(path), f"masks of {len(y)} samples", 4 * 8 * len(y) * len(classes))
    if n_labels != "1" and any(";" in str(name) for name in classes):
        raise InputError(str(path), "class names without ';', which separates several labels", "one with it")
    return classes, y


def _draw(y: IntArray, transition: str, n_labels: str, seed: int) -> tuple[NDArray[Any], LabelSummary]:
    """Complementary labels of some samples, and what they tell."""
    kind = load_npy(Path(transition)) if transition.endswith(".npy") else transition
    matrix = make_transition(kind, np.bincount(y), random_state=seed)
    number = int(n_labels) if n_labels.isdecimal() and len(n_labels) < 10 else n_labels
    ybar = make_complementary(y, matrix, n_labels=number, random_state=seed)
    known = matrix if np.linalg.cond(matrix) < 1e12 and ybar.ndim == 1 else None
    return ybar, describe_labels(ybar, len(matrix), transition=known)


def _write(path: Path, suffix: str, simulation: Simulation) -> None:
    if suffix == ".npz":
        with path.open("wb") as file:
            np.savez(file, index=np.arange(len(simulation.ybar)), ybar=simulation.ybar, classes=simulation.classes)
        return
    names = simulation.classes
    if simulation.ybar.ndim == 1:
        cells = names[simulation.ybar].tolist()
    else:  # several labels: separated by semicolons
        cells = [";".join(map(str, names[row])) for row in simulation.ybar]
    with path.open("w", newline="", encoding="utf-8") as text:
        text.write(csv_line(["index", "ybar"]))
        text.writelines(map(csv_line, enumerate(cells)))


def _print_simulation(simulation: Simulation, out: Path) -> None:
    summary, screen = simulation.summary, console()
    columns = {"labels": (summary.counts, 0), "share": (summary.marginal, 4)}
    if summary.prior:
        columns["prior under Q"] = summary.prior, 4
    if summary.inverse_size:
        columns["pi, inverse-size"] = summary.inverse_size.pi, 4
        columns["prior, inverse-size"] = summary.inverse_size.prior, 4
    rows = [
        [str(name), *(f"{e.value[k]:.{d}f}±{e.standard_error[k]:.{d}f}" for e, d in columns.values())]
        for k, name in enumerate(simulation.classes)
    ]
    screen.print(f"{summary.n} samples, {len(simulation.classes)} classes -> {out}")
    screen.print(grid(["class", *columns], rows, right=columns))
    if summary.inverse_size_problem:
        screen.print(f"inverse-size recovery: {summary.inverse_size_problem}")
