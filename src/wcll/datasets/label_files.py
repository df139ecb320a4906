"""Complementary labels in files: tables (.csv, .parquet) with one or several labels a row, and arrays (.npz)."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wcll._files import check_file
from wcll._memory import check_memory
from wcll._validation import IntArray, extra
from wcll.datasets.arrays import load_members
from wcll.datasets.base import check_names, in_order, some_names
from wcll.datasets.tables import ROW, check_table, names_in_cell
from wcll.exceptions import InputError
from wcll.labels.encoding import LabelRecords, checked, label_records

USUAL = ("not_label", "ybar")  #: names of a column of labels, if none is told
TRUE = "true_label"  #: a column of true labels; rows that have nothing else are no complementary labels

Columns = dict[str, list[str]]  #: cells by the name of their column; an empty one is none


def read_label_file(
    path: Path,
    *,
    labels: Sequence[str] = (),
    item: str | None = None,
    annotator: str | None = None,
    classes: Sequence[str] | None = None,
) -> LabelRecords:
    """Labels from a table or from arrays.

    In a table every row has a label in each of the columns ``labels`` (of several, some may be empty), or several in a
    cell, as ``cat|dog`` or as a list; rows with the same ``item`` are of one sample, and without ``item`` every row is
    one. Rows that have nothing but a ``true_label``, as imported ones may, are left out. An ``.npz`` file has an array
    ``ybar``, of shape (n,), (n, m), or a boolean mask (n, K), and perhaps ``classes`` and ``annotators``.
    """
    if path.suffix == ".npz":
        for option, value in (("--not-label", labels), ("--item", item), ("--annotator", annotator)):
            if value:
                raise InputError(option, "none for an .npz file, which has an array ybar", value)
        return _named(path, lambda: _from_arrays(path, classes))
    readers = {".csv": _csv_columns, ".parquet": _parquet_columns}
    if path.suffix not in readers:
        raise InputError(str(path), "a .csv, .parquet or .npz file", path.suffix or "a name without ending")
    reader = readers[path.suffix]
    return _named(path, lambda: _from_table(path, reader, labels, item, annotator, classes))


def _named(path: Path, read: Any) -> LabelRecords:
    """What is read, or an error that names the file rather than an argument nobody gave."""
    try:
        records: LabelRecords = read()
    except InputError as error:
        if error.argument in ("ybar", "y", "annotators"):
            remedy = error.remedy.replace("`classes`", "--classes")
            raise InputError(str(path), error.expected, error.got, remedy) from None
        raise
    return records


def _from_arrays(path: Path, classes: Sequence[str] | None) -> LabelRecords:
    arrays = load_members(path, ("ybar",), ("classes", "annotators"))
    names = classes
    if "classes" in arrays:
        if classes is not None:
            raise InputError("--classes", "none, as the file has its own", some_names(classes))
        names = [str(name) for name in arrays["classes"].ravel().tolist()]
    if names is not None:
        check_classes(path, names)
    ybar = arrays["ybar"]
    if ybar.dtype.kind not in "iubU":
        raise InputError(str(path), "ybar of whole numbers, text or truth values", ybar.dtype)
    if ybar.dtype.kind == "U":
        check_names(path, list(dict.fromkeys(ybar.ravel().tolist())))
    return label_records(ybar, names, arrays.get("annotators"))


def check_classes(path: Path, names: Sequence[str]) -> None:
    """At least two names, all different."""
    check_names(path, names)
    if len(names) < 2 or len(set(names)) != len(names):
        raise InputError("--classes", "at least two names, each once", some_names(names))


def _from_table(
    path: Path, read: Any, labels: Sequence[str], item: str | None, annotator: str | None, classes: Any
) -> LabelRecords:
    """Records of a table: a label is a cell, its sample the row or the item."""
    others = [("--item", item), ("--annotator", annotator)]
    columns: Columns = read(path, labels, [(option, name) for option, name in others if name is not None])
    columns = _without_true(columns, labels, [name for _, name in others if name is not None])
    cells = [columns[name] for name in columns if name not in (item, annotator)]
    if not cells[0]:
        raise InputError(str(path), "at least one row of labels", "none")
    rows, flat = _apart(*_cells(path, cells), classes)
    names = in_order(list(set(flat))) if classes is None else tuple(classes)
    check_names(path, names)
    index = _indices(path, flat, names)
    sample = rows if item is None else _groups(path, columns[item], "item")[0][rows]
    records = LabelRecords(tuple(names), index, sample)
    if annotator is not None:
        number, who = _groups(path, columns[annotator], "annotator")
        records = replace(records, annotator=number[rows], annotators=who)
    return checked(records)


def _without_true(columns: Columns, labels: Sequence[str], others: Sequence[str]) -> Columns:
    """The same without true labels that nobody asked for, and without rows that have no other."""
    if TRUE in (*labels, *others) or TRUE not in columns:
        return columns
    truth = columns.pop(TRUE)
    cells = [columns[name] for name in columns if name not in others]
    rows = [i for i, true in enumerate(truth) if not true.strip() or any(column[i].strip() for column in cells)]
    return {name: [column[i] for i in rows] for name, column in columns.items()}


def _cells(path: Path, columns: list[list[str]]) -> tuple[IntArray, list[str]]:
    """Labels of all columns, row by row, and the row of each; of several columns some may be empty, never all."""
    if len(columns) == 1:
        flat = columns[0]
        if not all(map(str.strip, flat)):
            row = [bool(cell.strip()) for cell in flat].index(False)
            raise InputError(str(path), "a label in every row", f"an empty one in row {row + 1}")
        return np.arange(len(flat)), flat
    there = np.array([[bool(cell.strip()) for cell in column] for column in columns]).T
    if not there.any(axis=1).all():
        row = int(there.any(axis=1).argmin())
        raise InputError(str(path), "a label in every row", f"empty ones in row {row + 1}")
    flat = [cell for row in zip(*columns, strict=True) for cell in row if cell.strip()]
    return np.nonzero(there)[0], flat


def _apart(rows: IntArray, cells: list[str], classes: Sequence[str] | None) -> tuple[IntArray, list[str]]:
    """Cells that name several classes, as ``cat|dog`` or as a JSON list, as labels one by one."""
    parts = {cell: names_in_cell(cell, classes) or (cell,) if set(cell) & set("|[") else (cell,) for cell in set(cells)}
    if all(len(names) == 1 for names in parts.values()):
        return rows, [parts[cell][0] for cell in cells]
    return np.repeat(rows, [len(parts[cell]) for cell in cells]), [name for cell in cells for name in parts[cell]]


def _indices(path: Path, labels: list[str], classes: Sequence[str]) -> IntArray:
    number = {name: k for k, name in enumerate(classes)}
    try:
        return np.fromiter((number[label] for label in labels), np.int64, len(labels))
    except KeyError as error:
        raise InputError(str(path), f"labels among {some_names(classes)}", repr(error.args[0])) from None


def _groups(path: Path, cells: list[str], what: str) -> tuple[IntArray, tuple[str, ...]]:
    """Cells as numbers, in the order in which they first occur, and what they stand for."""
    number: dict[str, int] = {}
    index = np.fromiter((number.setdefault(cell, len(number)) for cell in cells), np.int64, len(cells))
    empty = next((number[cell] for cell in number if not cell.strip()), None)
    if empty is not None:
        row = int((index == empty).argmax())
        raise InputError(str(path), f"an {what} in every row", f"an empty one in row {row + 1}")
    return index, tuple(number)


def _wanted(path: Path, header: Sequence[str], labels: Sequence[str], others: list[tuple[str, str]]) -> list[str]:
    """The columns to read, each there and once."""
    there = f"one of the columns {some_names([repr(name) for name in header])}" if header else "a table with columns"
    if not labels:
        labels = [name for name in USUAL if name in header][:1]
        if not labels:
            raise InputError("--not-label", there, "none", "say which column has labels")
    asked = [*(("--not-label", name) for name in labels), *others]
    for option, name in asked:
        if name not in header:
            raise InputError(option, there, repr(name))
        if list(header).count(name) > 1:
            raise InputError(str(path), f"one column {name!r}", list(header).count(name), "rename the others")
        if [other for _, other in asked].count(name) > 1:
            raise InputError(option, "a column of its own", f"{name!r} twice")
    wanted = [name for _, name in asked]
    return [*wanted, TRUE] if list(header).count(TRUE) == 1 and TRUE not in wanted else wanted


def _csv_columns(path: Path, labels: Sequence[str], others: list[tuple[str, str]]) -> Columns:
    check_table(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            wanted = _wanted(path, header, labels, others)
            places = [header.index(name) for name in wanted]
            rows = [[row[place] if place < len(row) else "" for place in places] for row in reader if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    return {name: [row[i] for row in rows] for i, name in enumerate(wanted)}


def _parquet_columns(path: Path, labels: Sequence[str], others: list[tuple[str, str]]) -> Columns:
    check_file(path)
    parquet = extra("pyarrow.parquet", "parquet")
    try:
        table = parquet.ParquetFile(path)
        header, rows = table.schema_arrow.names, table.metadata.num_rows
        wanted = _wanted(path, header, labels, others)
        check_memory(str(path), f"{rows} rows", ROW * rows * len(wanted))
        columns = table.read(columns=wanted)
        return {name: [_text(path, name, cell) for cell in columns.column(name).to_pylist()] for name in wanted}
    except InputError:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise InputError(str(path), "a whole .parquet file", str(error) or type(error).__name__) from None


def _text(path: Path, column: str, cell: Any) -> str:
    """A cell of text or a whole number, as a table of text has it; none is empty."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, list) and all(isinstance(name, str) for name in cell):
        return json.dumps(cell) if cell else ""
    if isinstance(cell, int):  # also truth values, by their names
        return str(cell)
    if isinstance(cell, float) and (
        cell != cell or cell == int(cell)
    ):  # whole numbers become floats beside missing ones
        return "" if cell != cell else str(int(cell))
    raise InputError(str(path), f"text or whole numbers in column {column!r}", type(cell).__name__)
