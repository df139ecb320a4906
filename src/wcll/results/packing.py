"""Rows as a store keeps them: tables as JSON, the history packed. What cannot be read back is a ValueError."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wcll.results.row import Row

MOST = 2**28  #: bytes that a history may unpack to
PLAIN = {str, int, float, bool}  #: what a cell may be

Packed = tuple[str, str, str, bytes, str, float]  #: key, config, metrics, history, provenance and the time


def pack(row: Row) -> Packed:
    """A row as the columns of a store."""
    history = zlib.compress(json.dumps(row.history, separators=(",", ":")).encode(), 1)
    return row.key, json.dumps(row.config), json.dumps(row.metrics), history, json.dumps(row.provenance), time.time()


def unpack(key: Any, config: Any, metrics: Any, history: Any, provenance: Any) -> Row:
    """The whole row, every part of it checked."""
    from wcll.results.border import check_row
    from wcll.results.row import Row

    with _as_value_errors():
        tables = (_table(part) for part in (config, metrics, _unzipped(history), provenance))
        row = Row(key, *tables)
        check_row(row)
    return row


def figures(key: Any, config: Any, metrics: Any, provenance: Any) -> dict[str, Any]:
    """One line of figures: settings, metrics of the last epoch, where it was made; histories are not looked at."""
    with _as_value_errors():
        settings, reached, made = _table(config), _table(metrics), _table(provenance)
        if not isinstance(key, str):
            raise ValueError("its key is no text")
        line = {"key": key, **settings, **reached}
        line |= {name: value for name, value in made.items() if type(value) is not dict}
        if not set(map(type, line.values())) <= PLAIN:
            line |= {name: json.dumps(value) for name, value in settings.items() if type(value) not in PLAIN}
            if not set(map(type, line.values())) <= PLAIN:
                raise ValueError("a figure that is neither text nor a number")
    return line


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Whatever comes of parts that no version of this package wrote."""
    try:
        yield
    except (zlib.error, AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _table(text: Any) -> dict[str, Any]:
    """A table that was written as JSON, which is ASCII."""
    plain = json.loads(text) if isinstance(text, str) and text.isascii() else None
    if not isinstance(plain, dict):
        raise ValueError("a part of it is no table")
    return plain


def _unzipped(history: Any) -> str:
    if not isinstance(history, bytes):
        raise ValueError("its history is not packed")
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(history, MOST)
    if not unpacking.eof:
        raise ValueError("its history is cut short, or larger than any")
    return text.decode()
