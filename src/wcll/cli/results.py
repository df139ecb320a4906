"""``wcll results``: what is in a store; out of it, into it, and away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from wcll._files import check_target
from wcll.cli import tell
from wcll.cli.console import ForceOption, byte_size, print_lines
from wcll.exceptions import InputError
from wcll.experiments.exchange import ending, export, read_rows
from wcll.experiments.store import STORE, Store, pack, sole_writer

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
    store: Annotated[Path, typer.Option("--store", help="Where results are kept.")] = STORE,
    where: Where = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print figures as JSON.")] = False,
) -> None:
    """List finished runs: their settings and what they reached in the last epoch (fractions)."""
    if context.invoked_subcommand:
        if as_json:
            raise InputError("--json", "no command beside it", context.invoked_subcommand)
        context.obj = (store, where or [])
        return
    with opened(store) as results:
        if as_json:
            _print_json(results.figures(where or []))
        else:
            lines = results.table(COLUMNS[1:], where or [])
            print_lines(COLUMNS, lines, right=COLUMNS[-4:])
            print(f"{len(lines)} runs")


@app.command("export")
def export_rows(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(help="A .json or .json.gz file (whole rows), or .csv or .parquet (figures).")],
    store: OtherStore = None,
    where: Where = None,
    shard: Annotated[str | None, typer.Option(help="Several files of at most this size, such as 15MB.")] = None,
    force: ForceOption = False,
) -> None:
    """Write runs to a file, or to several of a limited size."""
    ending(out)
    before, conditions = context.obj
    size = None if shard is None else byte_size("--shard", shard)
    with opened(store or before) as results:
        count, paths = export(results, [*conditions, *(where or [])], out, shard=size, force=force)
        tell(f"{count} runs: {', '.join(map(str, paths)) or 'no file, as there are none'}")


@app.command("import")
def import_rows(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help=".json or .json.gz files that export wrote.")],
    store: OtherStore = None,
) -> None:
    """Add the runs of exported files to a store; those that it has already stay as they are."""
    target = store or context.obj[0]
    check_target(target, "--store", store=True)
    packed = [pack(row) for path in files for row in read_rows(path)]  # before a store is made
    with sole_writer(target), Store(target) as results:
        added = results.put(packed)
    tell(f"{added} of {len(packed)} runs were new to {target}")


@app.command("remove")
def remove_rows(
    context: typer.Context,
    store: OtherStore = None,
    where: Where = None,
    damaged: Annotated[bool, typer.Option("--damaged", help="Runs that cannot be read; every run is read.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All runs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many would be removed, and remove none.")] = False,
) -> None:
    """Remove finished runs: those with some values, damaged ones, or all; a suite trains them again."""
    before, conditions = context.obj
    conditions = [*conditions, *(where or [])]
    if bool(conditions) + damaged + everything != 1:
        got = "several" if conditions or damaged or everything else "none"
        raise InputError("results remove", "one of --where, --damaged and --all", got)
    with Store(store or before, create=False) as results, nullcontext() if dry_run else sole_writer(results.path):
        total = results.count()
        chosen = None if everything else results.damaged() if damaged else results.found(conditions)
        if dry_run:
            tell(f"{total if chosen is None else len(chosen)} of {total} runs would be removed from {results.path}")
        else:
            tell(f"{results.remove(chosen)} of {total} runs were removed from {results.path}")


@contextmanager
def opened(store: Path) -> Iterator[Store]:
    """A store to read; what was left out because it is damaged is said in the end."""
    with Store(store, create=False) as results:
        yield results
        if damage := results.damage():
            tell(damage)


def _print_json(lines: Iterator[dict[str, Any]]) -> None:
    """A list, one entry after the other."""
    count = 0
    for count, line in enumerate(lines, 1):
        print("[" if count == 1 else ",", indent(json.dumps(line, indent=2), "  "), sep="\n", end="")
    print("\n]" if count else "[]")
