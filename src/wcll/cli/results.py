"""``wcll results``: what is in a store; out of it, and into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from wcll.atomic import check_target
from wcll.checks import InputError, choice
from wcll.cli.messages import tell
from wcll.cli.output import byte_size, console, grid
from wcll.cli.suites import StorePath
from wcll.results import Row, Store
from wcll.results.exchange import ending, export, flat, read_rows
from wcll.running.run import STORE

COLUMNS = ("key", "dataset", "p", "labels", "loss", "weights", "model", "lr", "seed", "accuracy", "balanced_accuracy")

app = typer.Typer(rich_markup_mode=None)

Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only runs with this value, such as loss=wcll or lr=5e-4; may be given again."),
]
OtherStore = Annotated[Path | None, typer.Option("--store", help=f"Where results are kept (default: {STORE}).")]


@app.callback(invoke_without_command=True)
def listing(
    context: typer.Context,
    store: StorePath = STORE,
    where: Where = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print figures as JSON.")] = False,
) -> None:
    """List finished runs: their settings and what they reached in the last epoch (fractions)."""
    if context.invoked_subcommand:
        if as_json:
            raise InputError("--json", "no command beside it", context.invoked_subcommand)
        context.obj = (store, where or [])
        return
    lines = [flat(row) for row in matching(store, where)]
    if as_json:
        print(json.dumps(lines, indent=2))
    else:
        cells = ([_text(line.get(column)) for column in COLUMNS] for line in lines)
        console().print(grid(COLUMNS, cells, right=COLUMNS[-4:]), f"{len(lines)} runs", sep="\n")


@app.command("export")
def export_rows(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="A .json or .json.gz file (whole rows), or .csv or .parquet (figures).")],
    store: OtherStore = None,
    where: Where = None,
    shard: Annotated[str | None, typer.Option(help="Several files of at most this size, such as 15MB.")] = None,
) -> None:
    """Write runs to a file, or to several of a limited size."""
    ending(out)
    before, conditions = context.obj
    rows = matching(store or before, [*conditions, *(where or [])])
    paths = export(rows, out, shard=None if shard is None else byte_size("--shard", shard))
    tell(f"{len(rows)} runs: {', '.join(map(str, paths)) or 'no file, as there are none'}")


@app.command("import")
def import_rows(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help=".json or .json.gz files that export wrote.")],
    store: OtherStore = None,
) -> None:
    """Add the runs of exported files to a store; those that it has already stay as they are."""
    target = store or context.obj[0]
    check_target(target, "--store")
    rows = [row for path in files for row in read_rows(path)]
    with Store(target) as results:
        added = results.add(rows)
    tell(f"{added} of {len(rows)} runs were new to {target}")


def matching(store: Path, where: list[str] | None) -> list[Row]:
    """The rows of a store that have all the values asked for."""
    with Store(store, create=False) as results:
        rows = list(results.rows())
    for condition in where or []:
        name, equals, wanted = condition.partition("=")
        if not equals:
            raise InputError("--where", "name=value", repr(condition))
        known = {key for row in rows for key in flat(row)}
        if rows and name not in known:
            choice("--where", name, sorted(known))
        rows = [row for row in rows if _same(flat(row).get(name), wanted)]
    return rows


def _same(value: Any, wanted: str) -> bool:
    """Numbers as numbers, so that 5e-4 finds 0.0005; all else as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(wanted) == value
        except ValueError:
            return False
    return value is not None and str(value) == wanted


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
