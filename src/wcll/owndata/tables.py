"""Tables with columns of any kind: CSV by Python's own reader, Parquet where its extra is installed."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wcll._files import check_file
from wcll._memory import check_memory
from wcll._validation import extra
from wcll.datasets.tables import check_table
from wcll.exceptions import InputError
from wcll.owndata.columns import DAY, Column

TEXT, NUMBER = 150, 24  #: bytes in memory for one value of a Parquet file, about
EXACT = 2**53  #: from which on floats do not hold every whole number

Table = dict[str, Column]


def read_table(path: Path, too_large: str = "") -> Table:
    """Every column of a ``.csv`` or ``.parquet`` file by its name, in their order; at least one row.

    ``too_large`` is what to do about a Parquet file that does not fit into memory.
    """
    table = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path, too_large)
    check_rows(path, n_rows(table))
    return table


def check_rows(path: Path, rows: int) -> None:
    """Fail if a table has none."""
    if not rows:
        raise InputError(str(path), "at least one row", "none")


def n_rows(table: Table) -> int:
    """How many rows a table has."""
    return len(next(iter(table.values())))


def _read_csv(path: Path) -> Table:
    check_table(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            _check_header(path, header)
            rows = [_row(path, row, header, reader.line_num) for row in reader if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), "a CSV file with a header line", str(error)) from None
    cells = list(map(list, zip(*rows, strict=True))) or [[] for _ in header]
    return {name: Column(path, name, cells[i]) for i, name in enumerate(header)}


def _row(path: Path, row: list[str], header: list[str], line: int) -> list[str]:
    if len(row) != len(header):
        raise InputError(str(path), f"{len(header)} cells in every line, as in the first", f"{len(row)} in line {line}")
    return row


def _check_header(path: Path, header: list[str]) -> None:
    """Fail unless columns have different names, and commas between them."""
    if not any(name.strip() for name in header):
        raise InputError(str(path), "a header line with the names of columns", "none")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise InputError(str(path), "columns separated by commas", repr(header[0]))
    if double := [f"{name!r} {times} times" for name, times in Counter(header).items() if times > 1]:
        raise InputError(str(path), "columns of different names", double[0], "rename the others")
    if empty := [i for i, name in enumerate(header) if not name.strip()]:
        raise InputError(str(path), "a name of every column", f"none of column {empty[0] + 1}")


def _read_parquet(path: Path, too_large: str) -> Table:
    with open_parquet(path) as file:
        names, schema, rows = column_names(path, file), file.schema_arrow, file.metadata.num_rows
        what = f"{rows} rows of {len(schema.names)} columns"
        check_memory(str(path), what, rows * _row_size(schema), too_large)
        table = file.read(columns=names, use_threads=False)
        return {name: arrow_column(path, name, table.column(name).combine_chunks()) for name in names}


@contextmanager
def open_parquet(path: Path, buffer_size: int = 0) -> Iterator[Any]:
    """A Parquet file; one line for whatever a damaged one does to its reader.

    With ``buffer_size`` that many bytes of a column are read at a time, else all of a group of rows.
    """
    check_file(path)
    parquet = extra("pyarrow.parquet", "parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=buffer_size) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # it fails in many ways
        raise InputError(str(path), "a whole .parquet file", str(error) or type(error).__name__) from None


def column_names(path: Path, file: Any) -> list[str]:
    """Those of a Parquet file, each once; the index of a table of pandas is none."""
    schema = file.schema_arrow
    _check_header(path, list(schema.names))
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    return [name for name in schema.names if name not in index]


def _row_size(schema: Any) -> int:
    from pyarrow import types

    kinds = [schema.field(name).type for name in schema.names]
    return sum(NUMBER if types.is_integer(kind) or types.is_floating(kind) else TEXT for kind in kinds)


def arrow_column(path: Path, name: str, array: Any, first: int = 1, *, as_text: bool = False) -> Column:
    """A column of Arrow's; what can be neither a feature nor a label is kept as a kind that is refused when used.

    A part of a column begins with the row ``first``. Whole numbers that floats cannot hold are text, and with
    ``as_text`` all are: other parts may have such.
    """
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_boolean(kind):  # as tables of text have them
        return Column(path, name, ["" if one is None else str(one) for one in array.to_pylist()], "text", first)
    if types.is_integer(kind) and len(array) and (as_text or is_large(array)):  # of items: some would be the same
        return Column(path, name, ["" if one is None else str(one) for one in array.to_pylist()], "text", first)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return Column(path, name, _floats(array), "number", first)
    if types.is_date(kind) or types.is_timestamp(kind):
        return Column(path, name, _days(array), "date", first)
    if str(kind) in ("string", "large_string", "string_view"):
        return Column(path, name, [one or "" for one in array.to_pylist()], "text", first)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        listed = [[one for one in some or [] if one is not None] for some in array.to_pylist()]
        if all(isinstance(one, str | int) for some in listed for one in some):
            return Column(path, name, listed, "list", first)
    return Column(path, name, [None] * len(array), "other", first)


def is_large(array: Any) -> bool:
    """Whether whole numbers are such that floats do not hold every one."""
    from pyarrow import compute

    ends = compute.min_max(array).as_py()
    return any(end is not None and abs(end) >= EXACT for end in ends.values())


def _floats(array: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    from pyarrow import float64

    return np.array(array.cast(float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _days(array: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    from pyarrow import timestamp

    whole = np.asarray(array.cast(timestamp("us"), safe=False).to_numpy(zero_copy_only=False), "datetime64[us]")
    days: np.ndarray[Any, np.dtype[np.float64]] = whole.astype(np.int64) / (DAY * 1e6)
    days[np.isnat(whole)] = np.nan
    return days
