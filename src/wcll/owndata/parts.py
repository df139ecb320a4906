"""A Parquet file some rows at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._validation import IntArray, extra
from wcll.exceptions import InputError
from wcll.owndata.columns import Column
from wcll.owndata.tables import Table, arrow_column, check_rows, column_names, open_parquet

PART = 2**24  #: bytes of numbers that are unpacked at once
LEAST = 1000  #: rows at once, however wide they are
AT_ONCE = 2**18  #: bytes of a column that are read at once


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows that follow each other."""

    path: Path
    first: int  #: the number of the first of them, counted from 1
    batch: Any  #: of Arrow's
    as_text: frozenset[str] = frozenset()  #: columns of whole numbers that are names

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def column(self, name: str) -> Column:
        """A column as a table in memory has it."""
        return arrow_column(self.path, name, self.batch.column(name), self.first, as_text=name in self.as_text)

    def table(self, names: Sequence[str]) -> Table:
        """Columns by name."""
        return {name: self.column(name) for name in names}

    def different(self, name: str) -> tuple[Column, IntArray]:
        """The different cells of a column, and which of them each row has; of lists, those of all rows."""
        from pyarrow import types

        array = self.batch.column(name)
        if types.is_nested(array.type):
            return self.column(name), np.arange(len(self))
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        coded = array.dictionary_encode(null_encoding="encode")
        column = arrow_column(self.path, name, coded.dictionary, self.first, as_text=name in self.as_text)
        return column, coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def label_sets(
        self, names: Sequence[str], known: Sequence[str] | None
    ) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
        """The different sets of labels that rows have in these columns, each class once, and which one each row has."""
        columns = [self.different(name) for name in names]
        sets = [column.labels(known) for column, _ in columns]
        if len(columns) == 1:
            return [tuple(dict.fromkeys(some)) for some in sets[0]], columns[0][1]
        found, which = np.unique(np.stack([rows for _, rows in columns], axis=1), axis=0, return_inverse=True)
        joined = [
            tuple(dict.fromkeys(label for some, i in zip(sets, one, strict=True) for label in some[i]))
            for one in found.tolist()
        ]
        return joined, which.reshape(-1)


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """The rows of a Parquet file in some of its columns; a file that has changed on the way is refused."""

    path: Path
    names: tuple[str, ...]
    groups: tuple[int, ...]  #: how many rows each group has
    as_text: frozenset[str] = frozenset()  #: columns of whole numbers that are names

    @staticmethod
    def all_of(path: Path) -> ParquetRows:
        """With all of its columns; the index of a table of pandas is none."""
        with open_parquet(path) as file:
            check_rows(path, file.metadata.num_rows)
            groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            return ParquetRows(path, tuple(column_names(path, file)), tuple(groups))

    def only(self, names: Sequence[str]) -> ParquetRows:
        """In these columns."""
        return replace(self, names=tuple(names))

    def __len__(self) -> int:
        return sum(self.groups)

    def read(self, order: Sequence[int] | None = None) -> Iterator[Rows]:
        """All rows, group after group: as they lie, or in another order of groups."""
        starts = np.cumsum([0, *self.groups]).tolist()
        size, pool = (
            max(PART // (8 * max(len(self.names), 1)), LEAST),
            extra("pyarrow", "parquet").default_memory_pool(),
        )
        with open_parquet(self.path, AT_ONCE) as file:
            for group in range(len(self.groups)) if order is None else order:
                done = 0
                parts = file.iter_batches(size, row_groups=[group], columns=list(self.names), use_threads=False)
                for batch in parts:
                    yield Rows(self.path, starts[group] + done + 1, batch, self.as_text)
                    done += batch.num_rows
                if done != self.groups[group]:
                    got = f"{done} rows in group {group}"
                    raise InputError(str(self.path), f"the {self.groups[group]} rows that it had before", got)
                pool.release_unused()  # or it would keep several times what it needs
