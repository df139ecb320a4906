"""Files of others: only plain files are opened, and what they hold is counted before it is kept."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from wcll.errors import InputError
from wcll.memory import free_memory, in_words

CHUNK = 2**20  #: bytes that are unpacked at once


def check_file(path: Path, what: str = "a file") -> None:
    """Fail unless ``path`` is a plain file, or a link to one: a pipe or a device may never end, or never begin."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(str(path), what, getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        raise InputError(str(path), what, next((name for test, name in kinds if test(mode)), "a device"))


def read_bytes(path: Path, most: int | None = None, remedy: str = "") -> bytes:
    """All that a file holds, unpacked if its name ends in ``.gz``; more than ``most`` bytes (or memory) is an error."""
    check_file(path)
    limit = free_memory() if most is None else most
    with path.open("rb") as file:
        try:
            return read_at_most(
                cast(BinaryIO, gzip.open(file)) if path.suffix == ".gz" else file, limit, str(path), remedy
            )
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(str(path), "a whole gzip file", str(error)) from None


def read_at_most(file: BinaryIO, limit: int, name: str, remedy: str = "") -> bytes:
    """The rest of an open file; it is an error, found before it is kept, if that is more than ``limit`` bytes."""
    parts, size = [], 0
    while part := file.read(CHUNK):
        size += len(part)
        if size > limit:
            told = remedy or "a file that unpacks to this is refused"
            raise InputError(name, f"at most {in_words(limit)}", "more", told)
        parts.append(part)
    return b"".join(parts)
