"""``wcll methods``: the registry of losses as a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from wcll.cli.output import console, grid
from wcll.losses import LOSSES

COLUMNS = ("name", "needs", "uses", "several", "link", "equation", "paper")


def method_rows() -> list[dict[str, Any]]:
    """One row a registered loss, with everything the registry says of it."""
    return [
        {
            "name": spec.name,
            "title": spec.title,
            "paper": spec.paper,
            "equation": spec.equation,
            "labels": spec.labels,
            "needs": [name for name, required in spec.context.items() if required],
            "uses": [name for name, required in spec.context.items() if not required],
            "options": spec.options,
            "several": spec.several,
            "link": spec.link,
            "table1": asdict(spec.table1) if spec.table1 else None,
            "revision": spec.revision,
        }
        for spec in LOSSES.values()
    ]


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print the registry as JSON.")] = False,
) -> None:
    """List the losses: what each needs, whether it takes several labels a sample, and its paper."""
    rows = method_rows()
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def cell(row: dict[str, Any], column: str) -> str:
    """One entry of the table, as text."""
    value = row[column]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return str(value)


def _print_table(rows: list[dict[str, Any]]) -> None:
    table = grid(COLUMNS, ([cell(row, column) for column in COLUMNS] for row in rows))
    for column in table.columns:
        column.no_wrap = column.header in ("name", "several", "link")
    console().print(table)
