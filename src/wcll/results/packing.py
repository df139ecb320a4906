"""Rows as a store keeps them: tables as JSON, the history packed. What cannot be read back is a ValueError."""

from __future__ import annotations

import json
import time
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wcll.results.row import Row

MOST = 2**28  #: bytes that a history may unpack to
PLAIN = {str, int, float, bool}  #: what a cell may be
#: What parts may lead to that no version of this package wrote.
STRANGE = (zlib.error, AttributeError, KeyError, OverflowError, RecursionError, TypeError)

Packed = tuple[str, str, str, bytes, str, float]  #: key, config, metrics, history, provenance and the time


def pack(row: Row) -> Packed:
    """A row as the columns of a store."""
    history = zlib.compress(json.dumps(row.history, separators=(",", ":")).encode(), 1)
    return row.key, json.dumps(row.config), json.dumps(row.metrics), history, json.dumps(row.provenance), time.time()


def unpack(key: Any, config: Any, metrics: Any, history: Any, provenance: Any) -> Row:
    """The whole row, every part of it checked."""
    from wcll.results.border import check_row
    from wcll.results.row import Row

    try:
        row = Row(key, *(_table(part) for part in (config, metrics, _unzipped(history), provenance)))
        check_row(row)
    except STRANGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return row


def figures(key: Any, config: Any, metrics: Any, provenance: Any) -> dict[str, Any]:
    """One line of figures: settings, metrics of the last epoch, where it was made; histories are not looked at."""
    try:
        settings, reached, made = _table(config), _table(metrics), _table(provenance)
    except STRANGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    made.pop("data", None)
    if not isinstance(key, str) or not PLAIN.issuperset(map(type, (*reached.values(), *made.values()))):
        raise ValueError("a figure that is neither text nor a number")
    for name, value in settings.items():
        if type(value) not in PLAIN:
            settings[name] = json.dumps(value)
    return {"key": key, **settings, **reached, **made}


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
