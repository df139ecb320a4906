"""Reading small files of labels."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.checks import InputError


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
    with path.open("rb") as file:
        try:
            values: NDArray[Any] = np.load(file, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InputError(str(path), "a NumPy .npy file of numbers or text", str(error)) from None
    return values


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
    return values


def _read_csv(path: Path, column: str | None) -> NDArray[Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            rows = list(csv.DictReader(file, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    if not rows:
        raise InputError(str(path), "a header line and at least one row", "none")
    names = [name for name in rows[0] if name]
    if not names or any(name.lstrip("-").isdecimal() for name in names):
        raise InputError(str(path), "a header line with the names of columns", repr(",".join(names)))
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise InputError(str(path), "columns separated by commas", repr(names[0]))
    if column is None:
        known = [name for name in ("label", "y") if name in names]
        if len(names) > 1 and not known:
            raise InputError("--column", "one of " + ", ".join(map(repr, names)), "none", "say which column has labels")
        column = known[0] if len(names) > 1 else names[0]
    if column not in names:
        raise InputError("--column", "one of " + ", ".join(map(repr, names)), repr(column))
    cells = [row[column] for row in rows]
    if not all(cells):
        line = 2 + [bool(cell) for cell in cells].index(False)
        raise InputError(str(path), "a label in every row", f"an empty one in line {line}")
    if all(_is_integer(cell) for cell in cells):
        return np.array([int(cell) for cell in cells])
    return np.array(cells)


def _is_integer(cell: str) -> bool:
    """Written as Python would write it: 01 and 1 are different names."""
    digits = cell.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19 and str(int(cell)) == cell
