"""``wcll simulate``: ordinary labels in, complementary labels and what they tell out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wcll._files import check_output, csv_line, replacing
from wcll._memory import check_memory
from wcll._validation import IntArray
from wcll.cli.files import load_npy, read_labels
from wcll.cli.output import ForceOption, console, grid
from wcll.exceptions import InputError
from wcll.labels import make_complementary
from wcll.labels.counts import LabelSummary, describe_labels
from wcll.labels.transition import TRANSITIONS, make_transition

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
