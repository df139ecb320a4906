"""Tables of text: what they take in memory is known before it is taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import check_file
from wcll._memory import check_memory

ROW = 100  #: bytes in memory for one of a file, at most: short cells weigh more than what they hold


def check_table(path: Path) -> None:
    """Fail unless a file of text is a plain one whose rows fit in memory."""
    check_file(path)
    check_memory(str(path), "rows", ROW * path.stat().st_size)


def text_array(path: Path, texts: Sequence[str]) -> NDArray[Any]:
    """Texts of a file as an array, in which every one has the room of the longest."""
    longest = max(map(len, texts))
    check_memory(str(path), f"{len(texts)} texts, one of {longest} characters,", 4 * longest * len(texts))
    return np.array(texts)


def names_in_cell(cell: str, known: Sequence[str] | None = None) -> tuple[str, ...]:
    """The names of classes in a cell: one, several as ``cat|dog`` or as a JSON list, or none.

    One that is a class as it stands is not taken apart.

    >>> names_in_cell("cat|dog"), names_in_cell('["cat", "dog"]'), names_in_cell("a|b", ["a|b", "c"])
    (('cat', 'dog'), ('cat', 'dog'), ('a|b',))
    """
    plain = cell.strip()
    if known is not None and plain in known:
        return (plain,)
    if plain.startswith("[") and plain.endswith("]"):
        try:
            listed = json.loads(plain)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and all(isinstance(name, str | int) for name in listed):
            return tuple(str(name).strip() for name in listed)
    return tuple(part.strip() for part in plain.split("|") if part.strip())
