"""``wcll data``: which data sets are at hand, and how to get the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from wcll.cli import show
from wcll.cli.console import console, grid, progress_bar
from wcll.datasets import DATASETS, DatasetSpec
from wcll.datasets.download import download_dataset
from wcll.datasets.folders import check_folder, data_folders, download_folder
from wcll.exceptions import InputError

app = typer.Typer(rich_markup_mode=None)

DataOption = Annotated[
    Path | None, typer.Option("--data", help="A folder with data; also looked in: WCLL_DATA and the user's cache.")
]


@app.callback(invoke_without_command=True)
def data(
    context: typer.Context,
    folder: DataOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the data sets: found or not, where, whether they are the official files, how many samples."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise InputError("--json", "no command beside it", context.invoked_subcommand)
        context.obj = folder
        return
    check_folder(folder)
    folders = data_folders(folder)
    rows = [_row(spec, folders) for spec in DATASETS.values()]
    if as_json:
        print(json.dumps({"folders": [str(path) for path in folders], "datasets": rows}, indent=2))
    else:
        _print(rows, folders)


@app.command("download")
def download(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The data set.")],
    folder: Annotated[
        Path | None, typer.Option("--data", help="Where to; else the folder of WCLL_DATA, else the user's cache.")
    ] = None,
) -> None:
    """Download a data set and check it; one that was stopped goes on."""
    spec, folder = DATASETS[name], folder or context.obj
    if spec.installed:
        show(f"{name}: comes with {spec.installed}, nothing to download")
    elif place := spec.find([download_folder(folder)]):
        show(f"{name}: already in {_shown(place)}, {_kind(spec.is_official(place))}")
    else:
        place = download_dataset(name, folder, progress_bar)
        show(f"{name}: downloaded to {_shown(place)}, {_kind(spec.is_official(place))}")


def _row(spec: DatasetSpec, folders: list[Path]) -> dict[str, Any]:
    """What there is of a data set; nothing is decoded."""
    row = {"name": spec.name, "found": False, "official": None, "train": None, "test": None, "place": None}
    place = Path(spec.installed) if spec.installed else spec.find(folders)
    if place is None:
        return row
    row |= {"found": True, "place": str(place)}
    try:
        train, test = spec.count(place)
        return row | {"official": spec.is_official(place), "train": train, "test": test}
    except (InputError, OSError) as error:
        return row | {"problem": str(error)}


def _kind(official: bool) -> str:
    return "official" if official else "not the official file"


def _print(rows: list[dict[str, Any]], folders: list[Path]) -> None:
    screen, heads = console(), ("name", "found", "train", "test", "files", "place")
    screen.print(grid(heads, map(_cells, rows), right=("train", "test")))
    screen.print(f"looked in: {', '.join(map(_shown, folders))}")
    if not all(row["found"] for row in rows):
        screen.print("get one with: wcll data download NAME")


def _cells(row: dict[str, Any]) -> list[str]:
    counts = ["-" if row[split] is None else str(row[split]) for split in ("train", "test")]
    files = row.get("problem") or ("-" if row["official"] is None else _kind(row["official"]))
    return [row["name"], "yes" if row["found"] else "no", *counts, _shown(files), _shown(row["place"] or "-")]


def _shown(path: Path | str) -> str:
    """A path as text that can be printed: names of files may be any bytes."""
    return str(path).encode("utf-8", "backslashreplace").decode()
