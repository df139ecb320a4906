"""Results out of a store and into another: JSON keeps everything, CSV and Parquet are flat tables."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from wcll._files import check_output, check_target, csv_line, read_bytes, replacing
from wcll._memory import check_memory
from wcll.exceptions import InputError
from wcll.experiments.store import Store

if TYPE_CHECKING:
    from wcll.experiments.row import Row


ENDINGS = (".json", ".json.gz", ".csv", ".parquet")
MOST = 2**28  #: bytes that a file of rows may unpack to
SMALLER = "export with --shard 200MB"
BLANK = re.compile(r"[ \t\n\r]*")  #: what JSON may have between its parts
BATCH = 10_000  #: runs of a Parquet file that are turned into columns at once


def ending(path: Path) -> str:
    """The format that a file's name asks for."""
    from wcll._validation import choice  # which loads numpy: a list of runs must not wait for it

    found = [end for end in ENDINGS if path.name.endswith(end)]
    return max(found, key=len) if found else choice("file ending", path.suffix, ENDINGS)


def export(
    store: Store, where: Sequence[str], path: Path, *, shard: int | None = None, force: bool = False
) -> tuple[int, list[Path]]:
    """Write runs to a file, or to files ``name-1``, ``name-2``, ... of at most ``shard`` bytes each.

    Files are whole or not there at all; those that exist are replaced with ``force`` alone. Returns how many runs there
    were, and the files.
    """
    kind = ending(path)
    check_target(path, "--out")
    if shard is None:
        check_output(path, "--out", store.path, force=force)
    if kind == ".parquet" and shard is not None:
        raise InputError("--shard", "a .json, .json.gz or .csv file", path.name)
    with store.reading():  # what is written meanwhile is in all of it or in nothing
        if kind == ".parquet":
            return _write_parquet(store, where, path), [path]
        text = _Csv(store, where) if kind == ".csv" else _Json(store, where)
        if shard is None:
            return _write(path, kind, text, text.items()), [path]
        sizes, items = list(_shards(text, shard)), text.items()
        paths = [path.with_name(f"{path.name.removesuffix(kind)}-{i}{kind}") for i in range(1, len(sizes) + 1)]
        for target in paths:
            check_output(target, "--out", store.path, force=force)
        for target, size in zip(paths, sizes, strict=True):
            _write(target, kind, text, islice(items, size))
        return sum(sizes), paths


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a .json or .json.gz file that :func:`export` wrote, one by one, each checked."""
    if ending(path) not in (".json", ".json.gz"):
        raise InputError(str(path), "a .json or .json.gz file, which keeps whole rows", path.suffix)
    raw = read_bytes(path, MOST, SMALLER)
    try:
        text = raw.decode()
    except ValueError as error:
        raise _no_rows(str(path), error) from None
    yield from parse_rows(text, str(path))


def parse_rows(text: str, name: str) -> Iterator[Row]:
    """Rows of a text as :func:`row_text` writes them, in a JSON list, one by one, each checked; errors say ``name``."""
    try:
        for plain in _entries(text, name):
            yield _checked(plain)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise _no_rows(name, error) from None


def row_text(row: Row) -> str:
    """A whole row as JSON, in one line."""
    return json.dumps(vars(row), separators=(",", ":"))


def parse_table(text: str) -> dict[str, Any]:
    """A JSON table, in which no name stands twice and numbers are numbers; else a ValueError."""
    table = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    if not isinstance(table, dict):
        raise ValueError("no table")
    return table


def _no_rows(name: str, error: Exception) -> InputError:
    return InputError(name, "rows that 'wcll results export' wrote", str(error))


def _checked(plain: Any) -> Row:
    from wcll.experiments.row import PARTS, Row, check_names, check_row

    if not isinstance(plain, dict) or set(plain) != {"key", *PARTS}:
        other = [repr(name) for name in plain if name not in ("key", *PARTS)] if isinstance(plain, dict) else []
        raise ValueError(f"an entry with {', '.join(other)}" if other else "an entry that is not made of its parts")
    row = Row(**plain)
    try:
        check_row(row)
        check_names(row)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the run {str(row.key)[:40]} ({error})") from None
    return row


def _entries(text: str, name: str) -> Iterator[Any]:
    """The entries of a JSON list, one at a time: all of them at once would take many times the memory of the file."""
    need = 80 * (text.count("[") + text.count("{")) + 16 * text.count(",") + 32 * (text.count(".") + text.count('"'))
    check_memory(name, "rows", need, SMALLER)
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
    place, closed = _after(text, 0, "["), False
    if text[place : place + 1] == "]":
        place, closed = _after(text, place, "]"), True
    while not closed:
        entry, place = decoder.raw_decode(text, place)
        yield entry
        place = _blank(text, place)
        closed = text[place : place + 1] == "]"
        place = _after(text, place, "]" if closed else ",")
    if place != len(text):
        raise ValueError(f"more after its end: char {place}")


def _after(text: str, place: int, sign: str) -> int:
    """Behind a sign that must be there."""
    place = _blank(text, place)
    if text[place : place + 1] != sign:
        raise ValueError(f"no {sign!r} at char {place}")
    return _blank(text, place + 1)


def _blank(text: str, place: int) -> int:
    return cast(re.Match[str], BLANK.match(text, place)).end()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} twice")
    return table


def _no_number(name: str) -> None:
    raise ValueError(f"{name}, which is no number")


class _Json:
    """Whole rows, one a line."""

    head, between, tail = "[\n", ",\n", "\n]\n"

    def __init__(self, store: Store, where: Sequence[str]) -> None:
        self._store, self._where = store, where

    def items(self) -> Iterator[str]:
        return map(row_text, self._store.rows(where=self._where))


class _Csv:
    """Figures, one run a line; nothing where a run has none."""

    between = tail = ""

    def __init__(self, store: Store, where: Sequence[str]) -> None:
        self._store, self._where = store, where
        self._columns = list(dict.fromkeys(name for line in store.figures(where) for name in line))
        self.head = csv_line(self._columns)

    def items(self) -> Iterator[str]:
        for line in self._store.figures(self._where):
            yield csv_line(line.get(column) for column in self._columns)


def _write(path: Path, kind: str, text: _Json | _Csv, items: Iterable[str]) -> int:
    """A file, whole or not at all; returns how many items it has."""
    count = 0
    with replacing(path, "--out") as draft, draft.open("wb") as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if kind == ".json.gz" else None
        file = cast(BinaryIO, packed or raw)
        file.write(text.head.encode())
        for count, item in enumerate(items, 1):
            file.write(((text.between if count > 1 else "") + item).encode(errors="replace"))
        file.write(text.tail.encode())
        if packed:
            packed.close()
    return count


def _shards(text: _Json | _Csv, limit: int) -> Iterator[int]:
    """How many items fit into each of the files, found before one is written."""
    around, between = len((text.head + text.tail).encode()), len(text.between)
    count = size = 0
    for item in text.items():
        length = len(item.encode(errors="replace")) + between
        if around + length > limit:
            raise InputError("--shard", f"at least {around + length} bytes, the size of one run", limit)
        if around + size + length > limit:
            yield count
            count = size = 0
        count += 1
        size += length
    if count:
        yield count


def _write_parquet(store: Store, where: Sequence[str], path: Path) -> int:
    from wcll._validation import extra

    extra("pyarrow", "parquet")
    import pyarrow
    from pyarrow import parquet

    lines, parts = store.figures(where), []
    try:
        while some := list(islice(lines, BATCH)):
            names = dict.fromkeys(name for line in some for name in line)
            parts.append(pyarrow.table({name: [line.get(name) for line in some] for name in names}))
        whole = pyarrow.concat_tables(parts, promote_options="permissive") if parts else pyarrow.table({})
    except pyarrow.ArrowException as error:
        raise InputError("--out", "figures of one kind in every column", str(error), "export to .csv") from None
    with replacing(path, "--out") as draft:
        parquet.write_table(whole, draft)
    return int(whole.num_rows)
