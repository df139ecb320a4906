"""``wcll labels``: what complementary labels in a file say of themselves, and labels of annotation tools."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from wcll import __version__
from wcll._files import check_output
from wcll.cli.messages import show, tell
from wcll.cli.output import ForceOption, console, grid, write_file
from wcll.datasets.label_files import read_label_file
from wcll.exceptions import InputError
from wcll.labels.diagnostics import health_of
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
