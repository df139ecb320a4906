"""Columns of labels in Arrow's form, whatever their type: one or several a row, as numbers, text or categories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wcll._memory import check_memory
from wcll._validation import IntArray
from wcll.datasets.given import PAIR
from wcll.exceptions import InputError


def is_label(kind: Any, several: bool) -> bool:
    """Whether a type can hold labels; pandas makes floats of whole numbers where some are missing."""
    from pyarrow import types

    if several and _is_list(kind):
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    text = str(kind) in ("string", "large_string", "string_view")
    return bool(text or types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))


class LabelColumn:
    """Which row has which labels; with ``blanks``, -1 or an empty text is none."""

    def __init__(self, path: Path, name: str, blanks: bool) -> None:
        self._path, self._name, self._blanks = path, name, blanks
        self._names: list[str] = []
        self._codes: dict[Any, int] = {None: -1}  #: of values as they are; -1 is none
        self._parts: list[tuple[IntArray, IntArray]] = []  #: rows and codes
        self._count = 0

    def add(self, first: int, column: Any) -> None:
        """Rows from ``first`` on."""
        from pyarrow import compute, types

        lengths = np.ones(len(column), np.int64)
        if _is_list(column.type):
            lengths = compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
            column = compute.list_flatten(column)
        self._count += len(column)
        check_memory(str(self._path), f"{self._count} labels in column {self._name}", PAIR * self._count)
        if not types.is_dictionary(column.type):
            column = column.dictionary_encode()
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = first + np.repeat(np.arange(len(lengths)), lengths)
        used, places = np.unique(places, return_inverse=True)  # a dictionary may hold more
        values = [column.dictionary[int(place)].as_py() if place >= 0 else None for place in used]
        codes = [self._code(value) for value in values]
        self._parts.append((rows, np.array(codes, np.int64)[places]))

    @property
    def is_text(self) -> bool:
        """Whether they are names, not numbers."""
        return any(isinstance(value, str) for value in self._codes)

    def names(self) -> list[str]:
        """The different labels, as text."""
        return list(self._names)

    def indices(self, classes: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Rows, and the class of each label; -1 for none."""
        number = {name: k for k, name in enumerate(classes)}
        numbers = np.array([*(number[name] for name in self._names), -1], np.int64)
        rows, codes = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        return rows, numbers[codes]

    def _code(self, value: Any) -> int:
        if value != value or (self._blanks and value == ("" if isinstance(value, str) else -1)):  # NaN, or a blank
            return -1
        if value not in self._codes:
            self._codes[value] = len(self._names)
            self._names.append(self._text(value))
        return self._codes[value]

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if not float(value).is_integer():
            raise InputError(str(self._path), f"whole numbers or text in column {self._name}", value)
        return str(int(value))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
