"""Tables that do not fit into memory: counted in one pass, learnt from in as many as there are epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wcll._random import stream
from wcll._validation import BoolArray, IntArray
from wcll.exceptions import InputError
from wcll.labels.encoding import to_pairs
from wcll.owndata.counting import Counted, TextCount, count
from wcll.owndata.mapped import ImageStream, read_image_stream
from wcll.owndata.parts import ParquetRows, Rows
from wcll.owndata.sources import (
    Counts,
    Reading,
    Roles,
    Samples,
    check_categories,
    check_no_truth,
    check_roles,
    of_table,
    stamp_of,
)
from wcll.owndata.standing import Standing, Streaming
from wcll.owndata.tables import arrow_column
from wcll.training.runs import Buffer, Feed, Part

SORTED = "rows lie in an order by class, it seems: shuffle the file, as only rows of one buffer meet in a batch"


@dataclass(frozen=True, eq=False)
class TableStream(Standing):
    """A Parquet file that is read anew in every epoch, and some of its rows that stand for all."""

    rows: ParquetRows
    roles: Roles

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
            room=self.room,
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
    path: Path,
    roles: Roles,
    reading: Reading,
    streaming: Streaming,
    categories: Sequence[str] = (),
    unfinished: Path | None = None,
    kept: Sequence[str] = (),
) -> TableStream | ImageStream:
    """A Parquet file, or a folder of images, which are decoded into the folder ``unfinished``."""
    if path.is_dir() and unfinished is not None:
        check_categories(np.zeros(0), categories)
        check_categories(np.zeros(0), kept, "--feature")
        return read_image_stream(path, roles, reading, streaming, unfinished)
    if path.suffix != ".parquet":
        raise InputError("--stream", "a .parquet file or a folder of images", str(path), "others are read at once")
    return read_table_stream(path, roles, reading, streaming, categories, kept)


def read_table_stream(
    path: Path,
    roles: Roles,
    reading: Reading,
    streaming: Streaming,
    categories: Sequence[str] = (),
    kept: Sequence[str] = (),
) -> TableStream:
    """Count a Parquet file, and take some of its rows; ``kept`` are columns that are features whatever they hold."""
    for option, value in (("--item", roles.item), ("--labels", reading.labels_in)):
        if value is not None:
            remedy = "rows of one item may lie anywhere in it: join them before"
            raise InputError(option, "none for a file that is streamed", str(value), remedy)
    rows = ParquetRows.all_of(path)
    roles = check_roles(path, dict.fromkeys(rows.names), roles, reading)
    rows = rows.only([name for name in rows.names if name not in roles.ignore])
    special = {name for _, name in roles.options()}
    features = [name for name in rows.names if name not in special]
    check_categories(features, categories)
    check_categories(features, kept, "--feature")
    chosen = streaming.chosen(len(rows), len(rows.names))
    counted = count(rows, roles, categories, chosen)
    classes = counted.labels.classes()
    samples = _sample(counted, replace(roles, ignore=(), classes=classes), chosen)  # what is ignored was not read
    samples = check_no_truth(samples, kept)
    preprocessing, notes = counted.fitted()
    counts = _counts(counted)
    if counted.labels.sorted_by_class(classes):
        notes.append(SORTED)
    x = preprocessing.transform(samples.features)
    return TableStream(
        samples=replace(samples, features={}, counts=counts, stamp=stamp_of([path])),  # what they were is in x
        x=x,
        preprocessing=preprocessing,
        notes=tuple(notes),
        counts=counts,
        totals=counted.labels.totals(classes),
        streaming=streaming,
        rows=counted.rows,
        roles=roles,
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
    columns = {
        name: (one.missing, len(one.texts) if isinstance(one, TextCount) else 0)
        for name, one in counted.columns.items()
    }
    return Counts(len(counted.rows), labels.named, labels.least, labels.most, columns)
