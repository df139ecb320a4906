"""Is this the official file? Digests are computed once and remembered in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from wcll.atomic import replacing
from wcll.checks import InputError
from wcll.datasets.folders import user_cache

SEAL = ".wcll-seal.json"

Memory = dict[str, tuple[int, int, str]]  # resolved path -> size, time of change, digest


def md5(path: Path) -> str:
    """The MD5 of a file; read again only if its size or its time of change differ from last time."""
    key, before = str(path.resolve()), path.stat()
    size, changed, digest = _memory().get(key, (-1, -1, ""))
    if (size, changed) == (before.st_size, before.st_mtime_ns):
        return digest
    digest = hash_file(path)
    _remember(key, (before.st_size, before.st_mtime_ns, digest))
    return digest


def hash_file(path: Path) -> str:
    """The MD5 of a file, read whole."""
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
        note = json.loads((folder / SEAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(note == {"archive_md5": archive_md5, "files": _appearance(folder)})


def _appearance(folder: Path) -> str:
    """A digest of the names, sizes and times of change of all files of a folder."""
    lines = []
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names if name != SEAL):
            stat = path.stat()
            lines.append(f"{path.relative_to(folder).as_posix()} {stat.st_size} {stat.st_mtime_ns}\n")
    return hashlib.blake2b("".join(sorted(lines)).encode(), digest_size=16).hexdigest()


def _memory_file() -> Path:
    return user_cache() / "checksums.json"


def _memory() -> Memory:
    try:
        entries = json.loads(_memory_file().read_text(encoding="utf-8"))
        return {str(key): (int(size), int(changed), str(digest)) for key, (size, changed, digest) in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # none yet, or damaged: it will be written anew


def _remember(key: str, entry: tuple[int, int, str]) -> None:
    path = _memory_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, "cache") as draft:
            draft.write_text(json.dumps({**_memory(), key: entry}, indent=0), encoding="utf-8")
    except (OSError, InputError):
        pass  # without a cache it only takes longer next time
