"""One pass over a table that does not fit into memory: what preprocessing and labels need to know of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from wcll._validation import FloatArray, IntArray
from wcll.datasets.base import in_order
from wcll.exceptions import InputError
from wcll.owndata.columns import Column
from wcll.owndata.parts import ParquetRows, Rows
from wcll.owndata.preprocessing import NEARLY, Held, Preprocessing, settled_kinds, too_different
from wcll.owndata.sources import Roles, WrongLabels, names_in

MOST_TEXTS = 2**16  #: different texts of a column that are kept while they are counted
NEVER = 2**62  #: a row that no table has
MOST_PARTS = 1024  #: of a table whose labels are counted apart; an even number
SURE = 3.0  #: times what chance makes of it, from which on an order of rows is none


class _TurnsTextError(Exception):
    """A column of whole numbers has some that floats do not hold: they are names, in all parts."""


@dataclass
class NumberCount:
    """How many numbers or dates a column has, their mean, and their squared distances from it."""

    there: int = 0
    missing: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: FloatArray) -> None:
        """A part of the column.

        Of two parts with n and m numbers, means a and b, and sums of squared distances A and B, all have the mean
        a + (b - a) m / (n + m) and the sum A + B + (b - a)^2 n m / (n + m).
        """
        missing = np.isnan(values)
        present = values[~missing] if missing.any() else values
        self.missing += len(values) - len(present)
        if not len(present):
            return
        mean = float(present.mean())
        away, shift, both = present - mean, mean - self.mean, self.there + len(present)
        self.squares += float(np.square(away).sum()) + shift**2 * self.there * len(present) / both
        self.mean += shift * len(present) / both
        self.there = both


@dataclass
class TextCount:
    """Which texts a column has, in the order in which they come, and how many rows have none."""

    there: int = 0
    missing: int = 0
    texts: dict[str, None] = field(default_factory=dict)

    def add(self, column: Column, rows: IntArray) -> None:
        """The different cells of a part of the column, and which of them each row has."""
        for text, times in zip(column.texts(), np.bincount(rows, minlength=len(column)).tolist(), strict=True):
            if text:
                self.texts[text] = None
                self.there += times
            else:
                self.missing += times
        if len(self.texts) > MOST_TEXTS:
            held = self.held(column.path, column.name)
            if held.different > NEARLY * held.there:
                raise too_different(held)
            expected = f"at most {MOST_TEXTS} categories in a column of a table that is streamed"
            raise InputError(str(column.path), expected, f"more in column {column.name!r}", f"--ignore {column.name}")

    def held(self, path: Path, name: str) -> Held:
        """As it is judged."""
        return Held(path, name, "text", self.there, len(self.texts), next(iter(self.texts), ""))


class LabelCount:
    """How often each class is named, and whether all labels can be learnt from."""

    def __init__(self, path: Path, declared: Sequence[str] | None) -> None:
        self.wrong, self.declared = WrongLabels(path, "row"), declared
        self.named: Counter[str] = Counter()  #: how often
        self.shares: dict[str, float] = {}  #: of s labels of a row, each counts 1/s
        self.least = self.most = 0  #: labels of a row
        self._lacking = 0  #: rows without any
        self._parts: list[Counter[str]] = []  #: how often each class is named in rows that follow each other
        #: The first rows without a label, with most labels, and with one of no class, and that label.
        self._without = self._fullest = self._odd = NEVER
        self._label = ""

    def add(self, first: int, sets: Sequence[tuple[str, ...]], which: IntArray) -> None:
        """Sets of labels, and which of them each row has; ``first`` is the number of the first row."""
        rows = np.zeros(len(sets), np.int64)
        rows[which[::-1]] = first + np.arange(len(which))[::-1]  # the first of each set is written last
        counts = np.bincount(which, minlength=len(sets))
        own: Counter[str] = Counter()
        for names, times, row in zip(sets, counts.tolist(), rows.tolist(), strict=True):
            if times:
                self._add(names, times, row)
                own.update(dict.fromkeys(names, times))
        self._parts.append(own)
        if len(self._parts) == MOST_PARTS:
            self._parts = [one + next_one for one, next_one in zip(self._parts[::2], self._parts[1::2], strict=True)]

    def _add(self, names: tuple[str, ...], times: int, row: int) -> None:
        size = len(names)
        if not size:
            self._lacking, self._without = self._lacking + times, min(self._without, row)
            return
        for name in names:
            self.named[name] += times
            self.shares[name] = self.shares.get(name, 0.0) + times / size
        self.least = min(self.least or size, size)
        if size >= self.most:
            self.most, self._fullest = size, row if size > self.most else min(self._fullest, row)
        odd = [] if self.declared is None else [name for name in names if name not in self.declared]
        if odd and row < self._odd:
            self._odd, self._label = row, odd[0]

    def classes(self) -> tuple[str, ...]:
        """All of them, once all rows are counted; labels that cannot be learnt from are an error, as in memory."""
        if self._lacking:
            raise self.wrong.none(str(self._without), self._lacking)
        classes = in_order(list(self.named)) if self.declared is None else tuple(self.declared)
        self.wrong.check_classes(classes)
        full = self._fullest if self.most == len(classes) else NEVER
        if self._odd <= full and self._label:
            raise self.wrong.odd(str(self._odd), self._label, classes)
        if full < NEVER:
            raise self.wrong.all_classes(str(full), classes)
        return classes

    def sorted_by_class(self, classes: Sequence[str]) -> bool:
        """Whether parts of the table name classes in other shares than all of it, so that rows lie in some order.

        A part of one class alone never names it: its labels are 1/k away from those of all, in total variation. Half of
        that on average, and several times what chance would make of parts of their size, is taken for an order.
        """
        total, k = self.named.total(), len(classes)
        sizes = [own.total() for own in self._parts]
        away = [
            sum(abs(own[name] / n - self.named[name] / total) for name in classes) / 2
            for own, n in zip(self._parts, sizes, strict=True)
        ]
        chance = float(np.mean([sqrt(k / n) for n in sizes])) / 2
        return len(away) > 1 and float(np.mean(away)) > max(0.5 / k, SURE * chance)

    def totals(self, classes: Sequence[str]) -> FloatArray:
        """How often each class is a label, of several of a row each counting as its share."""
        return np.array([self.shares.get(name, 0.0) for name in classes])


@dataclass(frozen=True, eq=False)
class Counted:
    """What a pass over all rows tells."""

    rows: ParquetRows
    labels: LabelCount
    columns: dict[str, NumberCount | TextCount]
    kinds: dict[str, str]
    sample: Any  #: some rows, as a table of Arrow's

    def fitted(self) -> tuple[Preprocessing, list[str]]:
        """Preprocessing as if it were fitted to all rows in memory, but for rounding; and what is to be said of it."""
        kinds, notes = settled_kinds(self._held())
        n, columns = len(self.rows), [self.columns[name] for name in kinds]
        numbers = [one for one in columns if isinstance(one, NumberCount)]
        texts = [one for one in columns if isinstance(one, TextCount)]
        flagged = [j for j, one in enumerate(numbers) if one.missing]
        lacking = [numbers[j].missing / n for j in flagged]
        mean = [*(one.mean for one in numbers), *lacking]
        variance = [*(one.squares / n for one in numbers), *(share * (1 - share) for share in lacking)]
        scale = [_scale(*both, n) for both in zip(mean, variance, strict=True)]
        imputer = {"name": "SimpleImputer", "statistics": mean[: len(numbers)], "flagged": flagged}
        steps = [imputer, {"name": "StandardScaler", "mean": mean, "scale": scale}]
        listed = [sorted([*one.texts, *([""] if one.missing else [])]) for one in texts]
        plain = {
            "columns": [{"name": name, "kind": kind} for name, kind in kinds.items()],
            "width": 0,
            "steps": steps if numbers else [],
            "encoder": {"name": "OneHotEncoder", "categories": listed} if texts else None,
        }
        return Preprocessing.from_dict(plain), notes

    def _held(self) -> list[Held]:
        path = self.rows.path
        return [
            one.held(path, name) if isinstance(one, TextCount) else Held(path, name, self.kinds[name], one.there)
            for name, one in self.columns.items()
        ]


def _scale(mean: float, variance: float, n: int) -> float:
    """The deviation; 1 of what is constant but for rounding, by scikit-learn's rule."""
    eps = float(np.finfo(np.float64).eps)
    return 1.0 if variance <= n * eps * variance + (n * mean * eps) ** 2 else sqrt(variance)


def count(rows: ParquetRows, roles: Roles, categories: Sequence[str], chosen: IntArray) -> Counted:
    """One pass over all rows; those at the places ``chosen``, in order, are kept."""
    while True:
        try:
            return _count(rows, roles, categories, chosen)
        except _TurnsTextError as turned:
            rows = replace(rows, as_text=rows.as_text | {str(turned)})


def _count(rows: ParquetRows, roles: Roles, categories: Sequence[str], chosen: IntArray) -> Counted:
    from pyarrow import Table

    special = {name for _, name in roles.options()}
    features = [name for name in rows.names if name not in special]
    found = Counted(rows, LabelCount(rows.path, roles.classes), {}, {}, None)
    kept = []
    for part in rows.read():
        found.labels.add(part.first, *part.label_sets(roles.not_label, roles.classes))
        if roles.group is not None:
            names_in(part.column(roles.group), "group")
        for name in features:
            _add(found, part, name, name in categories)
        low, high = np.searchsorted(chosen, [part.first - 1, part.first - 1 + len(part)])
        if high > low:
            kept.append(part.batch.take((chosen[low:high] - part.first + 1).tolist()))
    return replace(found, sample=Table.from_batches(kept).combine_chunks())


def _add(found: Counted, part: Rows, name: str, is_category: bool) -> None:
    """Count a part of a column of features."""
    columns, kinds = found.columns, found.kinds
    if name not in columns:
        kinds[name] = "text" if is_category else part.column(name).kind
        if kinds[name] not in ("number", "date", "text"):
            settled_kinds([Held(part.path, name, kinds[name], 0)])
        columns[name] = TextCount() if kinds[name] == "text" else NumberCount()
    counted = columns[name]
    if isinstance(counted, TextCount):
        counted.add(*part.different(name))
        return
    column = part.column(name)
    if column.kind == "text":
        raise _TurnsTextError(name)
    counted.add(column.numbers() if kinds[name] == "number" else column.dates())
