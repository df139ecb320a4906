"""Results out of a store and into another: JSON keeps everything, CSV and Parquet are flat tables of figures."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from wcll.atomic import check_target, replacing
from wcll.checks import InputError, choice, extra
from wcll.results.row import Row
from wcll.suites.trial import key_of

ENDINGS = (".json", ".json.gz", ".csv", ".parquet")


def ending(path: Path) -> str:
    """The format that a file's name asks for."""
    found = [end for end in ENDINGS if path.name.endswith(end)]
    return max(found, key=len) if found else choice("file ending", path.suffix, ENDINGS)


def flat(row: Row) -> dict[str, Any]:
    """One line of figures: settings, metrics of the last epoch, where it was made."""
    made = {key: value for key, value in row.provenance.items() if not isinstance(value, dict)}
    settings = {
        key: value if isinstance(value, str | int | float) else json.dumps(value) for key, value in row.config.items()
    }
    return {"key": row.key, **settings, **row.metrics, **made}


def export(rows: Sequence[Row], path: Path, *, shard: int | None = None) -> list[Path]:
    """Write rows to a file, or to files ``name-1``, ``name-2``, ... of at most ``shard`` bytes each.

    Files are whole or not there at all.
    """
    kind = ending(path)
    check_target(path, "--out")
    if kind == ".parquet":
        if shard is not None:
            raise InputError("--shard", "a .json, .json.gz or .csv file", path.name)
        with replacing(path, "--out") as draft:
            _write_parquet(rows, draft)
        return [path]
    head, items, tail = _csv_parts(rows) if kind == ".csv" else _json_parts(rows)
    separator = "" if kind == ".csv" else ",\n"
    parts, paths = [items], [path]
    if shard is not None:
        parts = list(_shards(items, shard, len((head + tail).encode()), len(separator)))
        paths = [path.with_name(f"{path.name.removesuffix(kind)}-{i}{kind}") for i in range(1, len(parts) + 1)]
    for target, part in zip(paths, parts, strict=True):
        text = (head + separator.join(part) + tail).encode()
        with replacing(target, "--out") as draft:
            draft.write_bytes(gzip.compress(text, mtime=0) if kind == ".json.gz" else text)
    return paths


def read_rows(path: Path) -> list[Row]:
    """Rows of a .json or .json.gz file that :func:`export` wrote."""
    if ending(path) not in (".json", ".json.gz"):
        raise InputError(str(path), "a .json or .json.gz file, which keeps whole rows", path.suffix)
    try:
        raw = path.read_bytes()
        plain = json.loads(gzip.decompress(raw) if path.name.endswith(".gz") else raw)
        if not isinstance(plain, list):
            raise ValueError(type(plain).__name__)
        rows = [Row(**row) for row in plain]
        for row in rows:
            row.check()
        if wrong := [row.key for row in rows if row.key != key_of(row.config)]:
            raise ValueError(f"the run {wrong[0]}, whose settings have another key")
        return rows
    except (ValueError, TypeError, EOFError, RecursionError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(str(path), "rows that 'wcll results export' wrote", str(error)) from None


def _json_parts(rows: Iterable[Row]) -> tuple[str, list[str], str]:
    return "[\n", [json.dumps(row.to_dict(), separators=(",", ":")) for row in rows], "\n]\n"


def _table(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The figures of all rows by column; None where a row has none."""
    lines = [flat(row) for row in rows]
    return {
        column: [line.get(column) for line in lines] for column in dict.fromkeys(key for line in lines for key in line)
    }


def _csv_parts(rows: Sequence[Row]) -> tuple[str, list[str], str]:
    table = _table(rows)

    def text(values: Iterable[Any]) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(values)
        return out.getvalue()

    return text(table), [text(line) for line in zip(*table.values(), strict=True)], ""


def _shards(items: list[str], limit: int, around: int, between: int) -> Iterator[list[str]]:
    """Consecutive items that fit into files of at most ``limit`` bytes."""
    part: list[str] = []
    size = 0
    for item in items:
        length = len(item.encode()) + between
        if around + length > limit:
            raise InputError("--shard", f"at least {around + length} bytes, the size of one run", limit)
        if around + size + length > limit:
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    if part:
        yield part


def _write_parquet(rows: Sequence[Row], path: Path) -> None:
    extra("pyarrow", "parquet")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pydict(_table(rows)), path)
