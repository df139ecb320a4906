"""Columns of a user's table: text of a CSV file or typed values, as numbers, dates, categories or labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wcll._validation import FloatArray
from wcll.datasets.tables import names_in_cell
from wcll.exceptions import InputError

Kind = Literal["number", "date", "text", "list", "other"]

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null"})  #: cells without a value, whatever their case
DAY = 86400.0  #: seconds; dates are counted in days
SHOWN = 40  #: characters of a cell that a message repeats


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one column; those of a CSV file are cells of text that may be meant as anything."""

    path: Path
    name: str
    values: Any  #: numbers and dates as floats, NaN for none; text as a list, "" for none; lists as a list of lists
    typed: Kind | None = None  #: what the file says that they are; None: cells of a CSV file
    first: int = 1  #: the number of its first row: of a part of a table, not 1

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def kind(self) -> Kind:
        """What the values are: numbers if all are, or dates if all are, else text."""
        if self.typed is not None:
            return self.typed
        different = {cell for cell in set(self.values) if not is_missing(cell)}
        for kind, read in (("number", float), ("date", in_days)):
            if _all(read, different):
                return kind  # type: ignore[return-value]
        return "text"

    def numbers(self) -> FloatArray:
        """As numbers, NaN for none; an error that shows a value that is none."""
        return self._numbers

    def dates(self) -> FloatArray:
        """As days since 1970, NaN for none."""
        return self._floats("date", in_days, "a date such as 2024-05-31")

    @cached_property
    def _numbers(self) -> FloatArray:
        return self._floats("number", float, "a number")

    def texts(self) -> list[str]:
        """As categories, "" for none."""
        if self.typed in ("number", "date"):
            return ["" if value != value else f"{value:.17g}" for value in self.values.tolist()]
        if self.typed in ("list", "other"):
            raise InputError(str(self.path), f"text in column {self.name!r}", self._what())
        return ["" if is_missing(cell) else cell.strip() for cell in self.values]

    def labels(self, known: Sequence[str] | None = None) -> list[tuple[str, ...]]:
        """Names of classes in each cell: one, several as ``cat|dog`` or as a JSON list, or none."""
        if self.typed == "list":
            return [tuple(str(name) for name in names) for names in self.values]
        if self.typed == "number":
            return [() if value != value else (self._whole(value),) for value in self.values.tolist()]
        if self.typed in ("date", "other"):
            raise InputError(str(self.path), f"names of classes in column {self.name!r}", self._what())
        found = {cell: names_in_cell(cell, known) for cell in set(self.values)}
        return [found[cell] for cell in self.values]

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Column:
        """Some of the rows."""
        values = (
            self.values[np.asarray(rows)] if isinstance(self.values, np.ndarray) else [self.values[i] for i in rows]
        )
        return Column(self.path, self.name, values, self.typed)

    def _floats(self, kind: Kind, read: Callable[[str], float], expected: str) -> FloatArray:
        if self.typed == kind:
            values: FloatArray = self.values
        elif self.typed in (None, "text"):
            values = self._parsed(read, expected)
        else:
            raise InputError(str(self.path), f"{expected} in every row of column {self.name!r}", self._what())
        if np.isinf(values).any():
            row = int(np.isinf(values).argmax()) + self.first
            raise InputError(str(self.path), f"finite numbers in column {self.name!r}", f"infinity in row {row}")
        return values

    def _parsed(self, read: Callable[[str], float], expected: str) -> FloatArray:
        try:  # quick where none is missing
            return np.array([read(cell) for cell in self.values], np.float64)
        except ValueError:
            return np.array([self._read(cell, read, expected) for cell in self.values], np.float64)

    def _read(self, cell: str, read: Callable[[str], float], expected: str) -> float:
        if is_missing(cell):
            return np.nan
        try:
            return read(cell)
        except ValueError:
            got = f"text such as {cell[:SHOWN]!r} in column {self.name!r}"
            raise InputError(str(self.path), expected, got, f"column {self.name!r} held them in training") from None

    def _whole(self, value: float) -> str:
        if not value.is_integer():
            raise InputError(str(self.path), f"names or whole numbers in column {self.name!r}", value)
        return str(int(value))

    def _what(self) -> str:
        words = {"number": "numbers", "date": "dates", "list": "lists", "text": "text"}
        return words.get(str(self.typed), "values of another kind")


def is_missing(cell: str) -> bool:
    """Whether a cell of text stands for no value."""
    return cell.strip().casefold() in MISSING


def in_days(text: str) -> float:
    """A date, with or without time, as ISO 8601 writes it; without a zone it is taken as UTC.

    >>> in_days("1970-01-02"), in_days("1970-01-01T12:00:00")
    (1.0, 0.5)
    """
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / DAY


def _all(read: Callable[[str], float], cells: set[str]) -> bool:
    try:
        return bool([read(cell) for cell in cells]) or not cells
    except ValueError:
        return False
