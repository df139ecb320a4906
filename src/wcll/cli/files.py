"""Reading small files of labels."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import check_file
from wcll.datasets.base import check_names
from wcll.datasets.npy import read_npy
from wcll.datasets.tables import check_table, text_array
from wcll.exceptions import InputError


def read_labels(path: Path, column: str | None) -> NDArray[Any]:
    """Labels from .npy (one axis) or .csv (a column with a header); names or integers."""
    if path.suffix == ".npy":
        if column is not None:
            raise InputError("--column", "none for a .npy file", repr(column))
        return _read_npy(path)
    if path.suffix == ".csv":
        return _read_csv(path, column)
    raise InputError("labels", "a .npy or .csv file", path.name)


def load_npy(path: Path) -> NDArray[Any]:
    """An array of numbers or text; pickled objects are refused."""
    check_file(path)
    with path.open("rb") as file:
        return read_npy(file, path.stat().st_size, str(path), "a NumPy .npy file of numbers or text")


def _read_npy(path: Path) -> NDArray[Any]:
    values = load_npy(path)
    if values.ndim != 1 or values.size == 0:
        raise InputError(str(path), "one label a sample, shape (n,)", f"shape {values.shape}")
    if values.dtype.kind not in "iubfU":
        raise InputError(str(path), "whole numbers or text", values.dtype)
    if values.dtype.kind == "f":
        if not (np.isfinite(values).all() and (values == np.rint(values)).all() and np.abs(values).max() < 2**53):
            raise InputError(str(path), "class labels", "fractions, NaN, infinity or numbers too large to be labels")
        values = values.astype(np.int64)
    if values.dtype.kind == "U":
        check_names(path, list(dict.fromkeys(values.tolist())))
    return values


def _read_csv(path: Path, column: str | None) -> NDArray[Any]:
    check_table(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.reader(file, strict=True)
            header, lines = next(reader, []), [(reader.line_num, line) for line in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    while lines and not lines[-1][1]:  # empty lines at the end are nobody's rows
        lines.pop()
    if not lines:
        raise InputError(str(path), "a header line and at least one row", "none")
    place = header.index(_column(path, header, column))
    cells = [line[place] if place < len(line) else "" for _, line in lines]
    if not all(map(str.strip, cells)):  # not skipped: the labels after it would belong to other rows
        number = lines[[bool(cell.strip()) for cell in cells].index(False)][0]
        raise InputError(str(path), "a label in every row", f"an empty one in line {number}")
    if all(_is_integer(cell) for cell in cells):
        return np.array([int(cell) for cell in cells])
    check_names(path, list(dict.fromkeys(cells)))
    return text_array(path, cells)


def _column(path: Path, header: list[str], column: str | None) -> str:
    """The column that is asked for, or the only one that can be meant."""
    names = [name for name in header if name]
    if not names or any(name.lstrip("-").isdecimal() for name in names):
        raise InputError(str(path), "a header line with the names of columns", repr(",".join(names)))
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise InputError(str(path), "columns separated by commas", repr(names[0]))
    known = "one of " + ", ".join(map(repr, names))
    if column is None:
        usual = names if len(names) == 1 else [name for name in ("label", "y") if name in names]
        if not usual:
            raise InputError("--column", known, "none", "say which column has labels")
        column = usual[0]
    if column not in names:
        raise InputError("--column", known, repr(column))
    if names.count(column) > 1:
        raise InputError(str(path), f"one column {column!r}", names.count(column), "rename the others")
    return column


def _is_integer(cell: str) -> bool:
    """Written as Python would write it: 01 and 1 are different names."""
    digits = cell.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19 and str(int(cell)) == cell
