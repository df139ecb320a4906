"""A folder of images with a table ``manifest.csv``: path, label or not_label, and case (of what belongs together)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from wcll._validation import BoolArray, IntArray
from wcll.datasets.base import Content, Split, in_order, some_names
from wcll.datasets.entries import DATASETS, Counts, DatasetSpec
from wcll.datasets.given import Source, check_classes, from_pairs
from wcll.datasets.images import read_images
from wcll.datasets.tables import check_table, text_array
from wcll.exceptions import InputError

MANIFEST = "manifest.csv"


def read_manifest(folder: Path, classes: Sequence[str] | None = None) -> Content:
    """All images of the table; without ``classes``, its labels sorted (as numbers if all are).

    Complementary labels may be given in a column not_label, several of an image with ``|`` between them. A label, which
    is then for evaluation only, may be missing.
    """
    path = folder / MANIFEST
    rows = _rows(path)
    given = "not_label" in rows[0]
    ruled_out = [_parts(row["not_label"]) if given else [] for row in rows]
    labels = [row.get("label", "") for row in rows]
    labels = [label.strip() for label in labels] if given else labels
    named = [[*filter(None, [label]), *parts] for label, parts in zip(labels, ruled_out, strict=True)]
    names = tuple(classes) if classes is not None else in_order([name for some in named for name in some])
    number = {name: k for k, name in enumerate(names)}
    if unknown := [
        (name, row["path"]) for some, row in zip(named, rows, strict=True) for name in some if name not in number
    ]:
        raise InputError(str(path), f"labels among {some_names(names)}", "{!r} for {}".format(*unknown[0]))
    ybar = _ybar(path, ruled_out, number) if given else None
    paths = image_paths(folder, [row["path"] for row in rows])
    groups = text_array(path, [row["case"] for row in rows]) if "case" in rows[0] else None
    y = np.array([number.get(label, -1) for label in labels], np.int64)
    return Content(names, Split(read_images(paths), y, groups, ybar), None)


def _parts(cell: str) -> list[str]:
    """The names in a cell."""
    return [part.strip() for part in cell.split("|") if part.strip()]


def _ybar(path: Path, ruled_out: Sequence[Sequence[str]], number: Mapping[str, int]) -> IntArray | BoolArray:
    check_classes(path, tuple(number))
    rows = np.repeat(np.arange(len(ruled_out)), [len(parts) for parts in ruled_out])
    labels = np.array([number[name] for parts in ruled_out for name in parts], np.int64)
    source = Source(path, "not_label", lambda i: f"row {i + 1}")
    return from_pairs(source, (len(ruled_out), len(number)), rows, labels)


def files(folder: Path) -> list[Path]:
    """The table and every image that it names."""
    path = folder / MANIFEST
    return [path, *dict.fromkeys(image_paths(folder, [row["path"] for row in _rows(path)]))]


def count(folder: Path) -> Counts:
    """The rows of the table."""
    return len(_rows(folder / MANIFEST)), None


def image_paths(folder: Path, names: Sequence[str]) -> list[Path]:
    """The images of these names, which must lie in the folder."""
    path, inside = folder / MANIFEST, folder.resolve()
    if outside := [name for name in names if not _real(folder / name).is_relative_to(inside)]:
        raise InputError(str(path), "paths inside its folder", repr(outside[0]), "neither .. nor links lead out of it")
    if missing := [name for name in names if not _is_file(folder / name)]:
        raise InputError(str(path), "a file for every row", f"no {missing[0]} ({len(missing)} missing)")
    return [folder / name for name in names]


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
    """The columns that matter; none is empty, but that of true labels may be where others are given."""
    check_table(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            table = csv.DictReader(file, strict=True)
            header = list(table.fieldnames or ())
            columns: list[str] = [name for name in ("path", "label", "not_label", "case") if name in header]
            rows = [{name: row[name] or "" for name in columns} for row in table]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    given = "not_label" in columns
    if "path" not in columns or not (given or "label" in columns):
        raise InputError(str(path), "columns path and label", ", ".join(header) or "none")
    if double := [name for name in columns if header.count(name) > 1]:
        raise InputError(str(path), f"one column {double[0]}", header.count(double[0]), "rename the others")
    if not rows:
        raise InputError(str(path), "at least one row", "none")
    for i, row in enumerate(rows):
        if empty := [name for name in columns if not (row[name].strip() or (given and name == "label"))]:
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
