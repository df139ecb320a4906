"""Tables of text: what they take in memory is known before it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.memory import check_memory
from wcll.reading import check_file

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
