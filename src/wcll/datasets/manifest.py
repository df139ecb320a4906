"""A folder of images with a table ``manifest.csv``: columns path and label, and case where images belong together."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from wcll.checks import InputError
from wcll.datasets.base import Content, Split, in_order, some_names
from wcll.datasets.entries import DATASETS, Counts, DatasetSpec
from wcll.datasets.images import read_images
from wcll.datasets.tables import check_table, text_array

MANIFEST = "manifest.csv"


def read_manifest(folder: Path, classes: Sequence[str] | None = None) -> Content:
    """All images of the table; without ``classes``, its labels sorted (as numbers if all are)."""
    path = folder / MANIFEST
    rows = _rows(path)
    labels = [row["label"] for row in rows]
    names = tuple(classes) if classes is not None else in_order(labels)
    number = {name: k for k, name in enumerate(names)}
    if unknown := [i for i, label in enumerate(labels) if label not in number]:
        got = f"{labels[unknown[0]]!r} for {rows[unknown[0]]['path']}"
        raise InputError(str(path), f"labels among {some_names(names)}", got)
    paths = _images(folder, rows)
    groups = text_array(path, [row["case"] for row in rows]) if "case" in rows[0] else None
    y = np.array([number[label] for label in labels], np.int64)
    return Content(names, Split(read_images(paths), y, groups), None)


def files(folder: Path) -> list[Path]:
    """The table and every image that it names."""
    path = folder / MANIFEST
    return [path, *dict.fromkeys(_images(folder, _rows(path)))]


def count(folder: Path) -> Counts:
    """The rows of the table."""
    return len(_rows(folder / MANIFEST)), None


def _images(folder: Path, rows: Sequence[dict[str, str]]) -> list[Path]:
    """The image of every row, which must lie in the folder."""
    path, inside = folder / MANIFEST, folder.resolve()
    if outside := [row["path"] for row in rows if not _real(folder / row["path"]).is_relative_to(inside)]:
        raise InputError(str(path), "paths inside its folder", repr(outside[0]), "neither .. nor links lead out of it")
    if missing := [row["path"] for row in rows if not _is_file(folder / row["path"])]:
        raise InputError(str(path), "a file for every row", f"no {missing[0]} ({len(missing)} missing)")
    return [folder / row["path"] for row in rows]


def _real(path: Path) -> Path:
    """Where a path leads; one that leads in a circle or is too long leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _rows(path: Path) -> list[dict[str, str]]:
    """The columns that matter, none of them empty."""
    check_table(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            table = csv.DictReader(file, strict=True)
            header = list(table.fieldnames or ())
            columns: list[str] = [name for name in ("path", "label", "case") if name in header]
            rows = [{name: row[name] or "" for name in columns} for row in table]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    if columns[:2] != ["path", "label"]:
        raise InputError(str(path), "columns path and label", ", ".join(header) or "none")
    if double := [name for name in columns if header.count(name) > 1]:
        raise InputError(str(path), f"one column {double[0]}", header.count(double[0]), "rename the others")
    if not rows:
        raise InputError(str(path), "at least one row", "none")
    for i, row in enumerate(rows):
        if empty := [name for name in columns if not row[name].strip()]:
            raise InputError(str(path), f"a {empty[0]} in every row", f"an empty one in row {i + 1}")
        if odd := [name for name in columns if "\0" in row[name]]:
            raise InputError(str(path), "text", f"a NUL in the {odd[0]} of row {i + 1}")
    return rows


DATASETS.register(
    DatasetSpec(
        name="ddsm",
        read=partial(read_manifest, classes=("normal", "benign", "cancer")),
        count=count,
        folders=("ddsm-thumbs", "ddsm"),
        files=(MANIFEST,),
        opens=files,
        remedy="there is no official file to download: make a folder ddsm-thumbs of images and a manifest.csv with "
        "columns path, label (normal, benign or cancer) and case",
    )
)
