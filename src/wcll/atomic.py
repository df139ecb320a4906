"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wcll.errors import InputError

DATABASE = b"SQLite format 3\0"  #: how such a file begins


def check_target(path: Path, argument: str, *, store: bool = False) -> None:
    """Fail before any work if ``path`` could not be written afterwards; a store is added to, and never replaced."""
    if path.is_dir():
        raise InputError(argument, "a file", f"{path}, which is a folder")
    if "\0" in str(path) or (path.exists() and not path.is_file()):  # a device that is replaced is lost to all
        raise InputError(argument, "a plain file", f"{path}, which is none")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(argument, "a folder that can be written", str(path.parent))
    if not store and _is_database(path):
        raise InputError(argument, "a file that may be replaced", f"{path}, a store of results", "name another file")


def _is_database(path: Path) -> bool:
    """Whether there is a file of SQLite's, as stores are."""
    try:
        with path.open("rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except OSError:  # none is there, or it cannot be read
        return False


@contextmanager
def replacing(path: Path, argument: str) -> Iterator[Path]:
    """A file beside ``path`` to write to; it takes the place of ``path`` if all goes well, else it vanishes."""
    check_target(path, argument)
    path = path.resolve()  # through a link to what it names
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:60]}.", delete=False) as file:
        draft = Path(file.name)
    try:
        yield draft
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)  # as any new file, not private as temporary ones are
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def check_folder_target(path: Path, argument: str) -> None:
    """Fail before any work if a folder ``path`` could not be made afterwards."""
    if "\0" in str(path) or not path.name or path.name == "..":
        raise InputError(argument, "the name of a folder", repr(str(path)))
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InputError(argument, "a folder", f"{path}, which is none")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(argument, "a folder that can be written", str(path.parent))


@contextmanager
def replacing_folder(path: Path, argument: str) -> Iterator[Path]:
    """A folder beside ``path`` to write into; it takes the place of ``path`` if all goes well, else it vanishes."""
    check_folder_target(path, argument)
    path = path.absolute()
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:60]}."))
    old = draft.with_name(f"{draft.name}.old")
    try:
        yield draft
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o777 & ~mask)
        if path.exists():
            path.rename(old)  # a folder that is not empty cannot be replaced in one step
        draft.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(draft, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
