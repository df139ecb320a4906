"""Is this the official file, and is it the one of last time? Digests are computed once and kept in the user's cache."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from wcll._files import check_file, read_bytes, replacing
from wcll.datasets.folders import user_cache
from wcll.exceptions import InputError

SEAL = ".wcll-seal.json"

MOST_SEAL = 2**16  #: bytes of a seal
MOST_MEMORY = 2**26  #: bytes of what is remembered: more is not ours

Memory = dict[str, tuple[str, str]]  # what -> how its files looked, digest


def md5(path: Path) -> str:
    """The MD5 of a file; read again only if it looks otherwise than last time."""
    return _remembered(str(path.resolve()), look(path), lambda: hash_file(path))


def stamp_of(folder: Path, paths: Sequence[Path]) -> str:
    """A digest of what files of a folder hold, and of their names: the same for a copy, and packed or not."""

    def compute() -> str:
        lines = sorted(f"{_name(folder, path)} {content_digest(path)}\n" for path in paths)
        return hashlib.blake2b("".join(lines).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    key = f"stamp of {(paths[0] if len(paths) == 1 else folder).resolve()}"
    return _remembered(key, appearance(folder, paths), compute)


def appearance(folder: Path, paths: Sequence[Path]) -> str:
    """A digest of how files look from outside: read again what looks otherwise."""
    lines = sorted(f"{_name(folder, path)} {look(path)}\n" for path in paths)
    return hashlib.blake2b("".join(lines).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def look(path: Path) -> str:
    """The size of a file and its times, of which the last cannot be set: a file that was replaced looks otherwise."""
    try:
        status = path.stat()
    except OSError:
        return "none"  # whoever reads it will say so
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def content_digest(path: Path) -> str:
    """A digest of what a file holds, unpacked if it is packed."""
    check_file(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            plain = cast(io.BufferedReader, file)
            return hashlib.file_digest(plain, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(str(path), "a whole gzip file", str(error)) from None


def hash_file(path: Path) -> str:
    """The MD5 of a file, read whole."""
    check_file(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def seal(folder: Path, archive_md5: str) -> None:
    """Note in a folder that it was unpacked from an archive with this checksum, and how its files looked then.

    This is for archives whose single files have no published checksums.
    """
    text = json.dumps({"archive_md5": archive_md5, "files": _appearance(folder)})
    (folder / SEAL).write_text(text, encoding="utf-8")


def is_sealed(folder: Path, archive_md5: str) -> bool:
    """True if the folder came from this archive and no file was added, removed or changed since."""
    try:
        note = json.loads(read_bytes(folder / SEAL, MOST_SEAL))
    except (OSError, ValueError, RecursionError):
        return False
    return bool(note == {"archive_md5": archive_md5, "files": _appearance(folder)})


def _appearance(folder: Path) -> str:
    """A digest of the names, sizes and times of change of all files of a folder."""
    lines = []
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names if name != SEAL):
            size_and_time = look(path).rpartition(" ")[0]
            lines.append(f"{path.relative_to(folder).as_posix()} {size_and_time}\n")
    return hashlib.blake2b("".join(sorted(lines)).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _memory_file() -> Path:
    return user_cache() / "checksums.json"


def _memory() -> Memory:
    try:
        entries = json.loads(read_bytes(_memory_file(), MOST_MEMORY))
        return {str(key): (str(seen), str(digest)) for key, (seen, digest) in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}  # none yet, damaged, or of an earlier version: it will be written anew


def _remembered(key: str, seen: str, compute: Callable[[], str]) -> str:
    """The digest of last time if the files look as they did then."""
    before, digest = _memory().get(key, ("", ""))
    if before != seen:
        digest = compute()
        _remember(key, (seen, digest))
    return digest


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix().removesuffix(".gz")


def _remember(key: str, entry: tuple[str, str]) -> None:
    path = _memory_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, "cache") as draft:
            draft.write_text(json.dumps({**_memory(), key: entry}, indent=0), encoding="utf-8")
    except (OSError, InputError):
        pass  # without a cache it only takes longer next time
