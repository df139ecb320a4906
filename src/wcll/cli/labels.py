"""``wcll labels``: what complementary labels in a file say of themselves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from wcll import __version__
from wcll.atomic import check_target
from wcll.cli.output import console, grid, write_file
from wcll.datasets.label_files import read_label_file
from wcll.errors import InputError
from wcll.labels.health import health_of
from wcll.report.label_page import label_page
from wcll.report.label_sections import Section, sections

app = typer.Typer(help="Complementary labels in a file: their health.", rich_markup_mode=None)

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
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say what labels tell: counts, families of Q and what a wrong one costs, agreement, mistakes, annotators."""
    _check(file, out)
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
        _print(section)
    if out is not None:
        console().print(f"page: {out}")


def _check(file: Path, out: Path | None) -> None:
    """What can be wrong with a page to write, before anything is read."""
    if out is None:
        return
    if out.suffix not in (".html", ".htm"):
        raise InputError("--out", "an .html file", out.name)
    check_target(out, "--out")
    if out.exists() and file.exists() and out.samefile(file):
        raise InputError("--out", "another file than the labels", str(out))


def _print(section: Section) -> None:
    screen = console()
    screen.print(section.title, style="bold")
    for line in section.lines:
        screen.print(line)
    if section.rows:
        screen.print(
            grid(section.heads, section.rows, right=[head for head in section.heads if head not in section.left])
        )
    screen.print()
