"""Tables that do not fit into memory: counted in one pass, learnt from in as many as there are epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.checks import BoolArray, FloatArray, InputError, IntArray
from wcll.labels.masks import to_pairs
from wcll.memory import check_memory
from wcll.owndata.counting import Counted, count
from wcll.owndata.parts import ParquetRows, Rows
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import (
    ENDINGS,
    Counts,
    Reading,
    Roles,
    Samples,
    check_categories,
    check_roles,
    labels_of,
    of_table,
    stamp_of,
)
from wcll.owndata.tables import arrow_column
from wcll.streams import stream
from wcll.training.feed import Buffer, Feed, Part, room_for

SAMPLE = 100_000  #: rows that stand for all where something is chosen
SAMPLE_BYTES = 2**28  #: of these in memory, at most, unless a user says how many
#: Of the rows that are shuffled together: they are there twice, where they are read to and where they are learnt from.
BUFFER_BYTES = 2**27


@dataclass(frozen=True)
class Streaming:
    """How data are streamed, as far as a user says it."""

    sample: int | None = None  #: rows that stand for all
    buffer: int | None = None  #: rows that are shuffled together
    seed: int = 0

    def chosen(self, n: int, width: int) -> IntArray:
        """The places of rows that stand for all ``n``, of ``width`` columns, in order: drawn by the seed."""
        size = min(SAMPLE, room_for((2 * width,), SAMPLE_BYTES)) if self.sample is None else self.sample
        if size >= n:
            return np.arange(n)
        return np.sort(stream(self.seed, "validation", "sample").choice(n, size, replace=False, shuffle=False))

    def room(self, shape: tuple[int, ...]) -> int:
        """How many samples of a shape are shuffled together, if that fits into memory."""
        if self.buffer is None:
            return room_for(shape, BUFFER_BYTES)
        size = 2 * 4 * self.buffer * int(np.prod(shape))  # where they are read to, and where they are learnt from
        check_memory("--buffer", f"{self.buffer} samples of {int(np.prod(shape))} numbers", size)
        return self.buffer


@dataclass(frozen=True, eq=False)
class TableStream:
    """A Parquet file that is read anew in every epoch, and some of its rows that stand for all."""

    samples: Samples  #: these
    preprocessing: Preprocessing
    notes: tuple[str, ...]
    x: NDArray[np.float32]
    rows: ParquetRows
    roles: Roles
    counts: Counts
    totals: FloatArray
    streaming: Streaming

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.counts.n

    @property
    def y(self) -> Any:
        """Labels of those that stand for all."""
        return labels_of(self.samples)

    @property
    def groups(self) -> NDArray[Any] | None:
        """Groups of those that stand for all."""
        return None if self.samples.groups is None else np.array(self.samples.groups)

    @property
    def key(self) -> str:
        """Of what a training depends on beside those that stand for all."""
        return f"{self.samples.stamp} {self.n} {self.streaming.room(self.x.shape[1:])}"

    def feed(self, *, pairs: bool, batch_size: int, seed: int, dtype: str) -> Feed:
        """All rows, for an engine; where some have several labels, as pairs of row and label, if asked for."""
        split, labels = pairs and self.counts.most > 1, self.counts.named.total()
        mass = self.n / labels if split else 1.0
        reader = _Reader(self, split, mass if split and self.counts.least < self.counts.most else None, seed, dtype)
        return Buffer(
            reader.read,
            labels if split else self.n,
            next(reader.read(None)).each(lambda values: values[:1].copy()),
            n_classes=len(self.totals),
            room=self.streaming.room(self.x.shape[1:]),
            batch_size=batch_size,
            seed=seed,
            mass=mass,
        )


@dataclass(frozen=True, eq=False)
class _Reader:
    """Makes parts of rows."""

    source: TableStream
    split: bool  #: whether label sets become pairs
    mean_weight: float | None  #: of pairs, where weights differ
    seed: int
    dtype: str

    def read(self, epoch: int | None) -> Iterator[Part]:
        """All rows: as they lie, or groups of rows in an order drawn by (seed, epoch)."""
        source = self.source
        wanted = source.rows.only([*source.preprocessing.kinds, *source.roles.not_label])
        order = None
        if epoch is not None:
            order = stream(self.seed, "batches", epoch, "groups").permutation(len(wanted.groups)).tolist()
        yield from map(self.part, wanted.read(order))

    def part(self, rows: Rows) -> Part:
        """Rows as a model takes them."""
        source = self.source
        x = source.preprocessing.transform(rows.table(list(source.preprocessing.kinds))).astype(self.dtype, copy=False)
        labels = self.labels(rows)
        if not self.split:
            return Part(x, labels)
        sample, label, share = to_pairs(labels.astype(np.bool_, copy=False))
        weight = None if self.mean_weight is None else (share / self.mean_weight).astype(self.dtype)
        return Part(x[sample], label, weight)

    def labels(self, rows: Rows) -> IntArray | BoolArray:
        """Class indices, or a mask where some rows have several labels."""
        classes, roles = self.source.samples.all_classes(), self.source.roles
        sets, which = rows.label_sets(roles.not_label, roles.classes)
        place = {name: k for k, name in enumerate(classes)}
        mask = np.zeros((len(sets), len(classes)), np.bool_)
        for i, names in enumerate(sets):
            if not names or not set(names) <= set(place):
                raise InputError(str(rows.path), "the labels that it had before", f"others from row {rows.first} on")
            mask[i, [place[name] for name in names]] = True
        return mask[which] if self.source.counts.most > 1 else mask.argmax(1)[which]


def read_stream(
    path: Path, roles: Roles, reading: Reading, streaming: Streaming, categories: Sequence[str] = ()
) -> TableStream:
    """Count a Parquet file, and take some of its rows."""
    if path.suffix != ".parquet" or path.is_dir():
        raise InputError("--stream", "a .parquet file", str(path), f"without it, {ENDINGS}")
    for option, value in (("--item", roles.item), ("--labels", reading.labels_in)):
        if value is not None:
            remedy = "rows of one item may lie anywhere in it: join them before"
            raise InputError(option, "none for a file that is streamed", str(value), remedy)
    rows = ParquetRows.all_of(path)
    roles = check_roles(path, dict.fromkeys(rows.names), roles, reading)
    rows = rows.only([name for name in rows.names if name not in roles.ignore])
    special = {name for _, name in roles.options()}
    check_categories([name for name in rows.names if name not in special], categories)
    chosen = streaming.chosen(len(rows), len(rows.names))
    counted = count(rows, roles, categories, chosen)
    classes = counted.labels.classes()
    counted.check_no_truth(classes, categories)
    preprocessing, notes = counted.fitted()
    counts = _counts(counted)
    samples = _sample(counted, replace(roles, ignore=(), classes=classes), chosen)  # what is ignored was not read
    samples = replace(samples, counts=counts, stamp=stamp_of([path]))
    return TableStream(
        samples,
        preprocessing,
        tuple(notes),
        preprocessing.transform(samples.features),
        counted.rows,
        roles,
        counts,
        counted.labels.totals(classes),
        streaming,
    )


def _sample(counted: Counted, roles: Roles, chosen: IntArray) -> Samples:
    """Rows that stand for all, named by their numbers in the file."""
    rows = counted.rows
    table = {
        name: arrow_column(rows.path, name, counted.sample.column(name).combine_chunks(), as_text=name in rows.as_text)
        for name in counted.sample.column_names
    }
    return replace(of_table(rows.path, table, roles, Reading()), names=[str(i + 1) for i in chosen.tolist()])


def _counts(counted: Counted) -> Counts:
    labels = counted.labels
    columns = {name: (one.missing, len(one.texts)) for name, one in counted.columns.items()}
    return Counts(len(counted.rows), labels.named, labels.least, labels.most, columns)
