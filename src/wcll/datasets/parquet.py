"""A user's own table in a ``.parquet`` file: columns not_label, label and group; all others are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import check_file
from wcll._memory import check_memory
from wcll._validation import BoolArray, IntArray, extra
from wcll.datasets.base import Content, Split, check_names, in_order
from wcll.datasets.columns import LabelColumn, is_label
from wcll.datasets.given import PAIR, Source, check_classes, check_kinds, from_pairs
from wcll.datasets.tables import text_array
from wcll.exceptions import InputError

SPECIAL = ("not_label", "label", "group")
SEVERAL = re.compile(r"not_label_[0-9]+")
BATCH = 2**24  #: bytes of features that are unpacked at once
ROW = "row {} (the first is 0)".format


def read_parquet(path: Path) -> Content:
    """Features in the order of their columns, samples in that of their rows; there is no test split.

    Complementary labels are in a column ``not_label``, one a row or a list of them, or in ``not_label_1``,
    ``not_label_2`` and so on. True labels, in ``label``, are then for evaluation only and may be missing. Rows of one
    ``group`` stay on one side of a split. Labels are whole numbers or text; no value, and beside ``not_label`` also -1
    or an empty text, is none. The index of a table of pandas is no feature.
    """
    check_file(path)
    extra("pyarrow", "parquet")
    from pyarrow.parquet import ParquetFile

    with _whole(path), ParquetFile(path, pre_buffer=False) as file:
        features, labels = _columns(path, file.schema_arrow)
        dtype = _check_size(path, file, features, labels)
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]  # kept once, as in the file
    with _whole(path), ParquetFile(path, pre_buffer=False, read_dictionary=texts) as file:
        x, found = _read(path, file, features, labels, dtype)
    return _content(path, x, found)


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """One line for whatever a damaged file does to its reader."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # one of many kinds
        raise InputError(str(path), "a whole .parquet file", str(error) or type(error).__name__) from None


def _columns(path: Path, schema: Any) -> tuple[list[str], list[str]]:
    """Names of the columns that are features, and of those that are labels or groups."""
    if double := [f"{name} {times} times" for name, times in Counter(schema.names).items() if times > 1]:
        raise InputError(str(path), "columns of different names", double[0])
    labels = [name for name in schema.names if name in SPECIAL or SEVERAL.fullmatch(name)]
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    features = [name for name in schema.names if name not in labels and name not in index]
    _check_names(path, features, labels)
    for name in features:
        if not _is_number(schema.field(name).type):
            expected = "numbers in every column but not_label, label and group"
            raise InputError(str(path), expected, f"type {schema.field(name).type} in column {name}")
    for name in labels:
        if not is_label(schema.field(name).type, several=name.startswith("not_label")):
            expected = f"whole numbers or text in column {name}"
            raise InputError(str(path), expected, f"type {schema.field(name).type}")
    return features, labels


def _check_names(path: Path, features: Sequence[str], labels: Sequence[str]) -> None:
    """Fail unless there are features and labels, and no feature that was meant as labels."""
    for name in features:
        plain = name.strip().casefold()
        if plain in SPECIAL or plain.startswith("not_label"):
            raise InputError(str(path), "columns not_label, not_label_1, not_label_2, ..., label or group", repr(name))
    if not set(labels) - {"group"}:
        raise InputError(str(path), "a column not_label or label", "none")
    if "not_label" in labels and any(map(SEVERAL.fullmatch, labels)):
        raise InputError(str(path), "a column not_label, or not_label_1, not_label_2, ...", "both")
    if not features:
        raise InputError(str(path), "at least one column of numbers beside the labels", "none")


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _check_size(path: Path, file: Any, features: Sequence[str], labels: Sequence[str]) -> np.dtype[Any]:
    """The type of the features, if all of them and all labels fit in memory."""
    rows = file.metadata.num_rows
    if rows < 1:
        raise InputError(str(path), "at least one row", "none")
    narrow = all(str(file.schema_arrow.field(name).type) in ("float", "halffloat") for name in features)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    pairs = rows * len(labels)  # more where they are lists; what the file says of single columns may stop its reader
    need = rows * len(features) * dtype.itemsize + pairs * PAIR + path.stat().st_size
    check_memory(str(path), f"{rows} rows of {len(features)} features", need)
    return dtype


def _read(
    path: Path, file: Any, features: Sequence[str], labels: Sequence[str], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], dict[str, LabelColumn]]:
    """All features, and the columns of labels; some rows at a time, and one thread: who reads may fork later."""
    rows = file.metadata.num_rows
    x, done = np.empty((rows, len(features)), dtype), 0
    given = any(name.startswith("not_label") for name in labels)
    found = {name: LabelColumn(path, name, given and name != "group") for name in labels}
    batch = max(BATCH // (8 * len(features)), 1000)
    for group in range(file.num_row_groups):
        for part in file.iter_batches(batch, row_groups=[group], use_threads=False):
            if done + len(part) > rows:
                raise ValueError(f"more than {rows} rows")
            for j, name in enumerate(features):
                _fill(x[done : done + len(part), j], part.column(name), Source(path, name, partial(_row, done)))
            for name, column in found.items():
                column.add(done, part.column(name))
            done += len(part)
    if done != rows:
        raise ValueError(f"{done} of {rows} rows")
    return x, found


def _fill(x: NDArray[Any], column: Any, source: Source) -> None:
    """A part of a column of features, none of them missing."""
    expected = f"a number in every row of column {source.name}"
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        raise InputError(str(source.path), expected, f"none in {source.sample(int(missing.argmax()))}")
    x[:] = column.to_numpy(zero_copy_only=False)
    if not (finite := np.isfinite(x)).all():
        first = int(finite.argmin())
        raise InputError(str(source.path), expected, f"{x[first]} in {source.sample(first)}")


def _row(start: int, i: int) -> str:
    return ROW(start + i)


def _content(path: Path, x: NDArray[Any], found: dict[str, LabelColumn]) -> Content:
    n, groups = len(x), found.pop("group", None)
    classes = in_order([name for column in found.values() for name in column.names()])
    given = [column for name, column in found.items() if name.startswith("not_label")]
    numbers = [name for name, column in found.items() if column.names() and not column.is_text]
    check_kinds(path, numbers, {name: column.names() for name, column in found.items() if column.is_text})
    (check_classes if given else check_names)(path, classes)
    y = found["label"].indices(classes)[1] if "label" in found else np.full(n, -1, np.int64)
    if not given and (y < 0).any():
        raise InputError(str(path), "a label in every row", f"none in {ROW((y < 0).argmax())}")
    ybar = _ybar(path, given, n, classes) if given else None
    return Content(classes, Split(x, y, None if groups is None else _groups(path, groups), ybar), None, 1.0)


def _ybar(path: Path, given: Sequence[LabelColumn], n: int, classes: Sequence[str]) -> IntArray | BoolArray:
    pairs = [column.indices(classes) for column in given]
    rows, labels = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return from_pairs(Source(path, "not_label", ROW), (n, len(classes)), rows[labels >= 0], labels[labels >= 0])


def _groups(path: Path, column: LabelColumn) -> NDArray[Any]:
    """Names of groups, one a row."""
    names = column.names()
    _, groups = column.indices(names)
    if (groups < 0).any():
        raise InputError(str(path), "a group in every row", f"none in {ROW((groups < 0).argmax())}")
    return text_array(path, [names[k] for k in groups])
