"""Safe files: written atomically, read only if plain and not too large, CSV lines without formulas."""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from wcll._memory import free_memory, in_words
from wcll.exceptions import InputError

DATABASE = b"SQLite format 3\0"  #: how such a file begins
MODEL = "model.safetensors"  #: the weights in the folder of a model
PREPROCESSING = "preprocessing.json"  #: the file beside the weights
UNFINISHED = ".unfinished"  #: how the name of a folder ends in which a training is saved
STATE = "state.safetensors"  #: the state of its optimiser
HEAD = 1024  #: bytes at the beginning of a page that name the command that wrote it


def check_target(path: Path, argument: str, *, store: bool = False) -> None:
    """Fail before any work if ``path`` could not be written afterwards; a store is added to, and never replaced."""
    if path.is_dir():
        raise InputError(argument, "a file", f"{path}, which is a folder")
    if "\0" in str(path) or (path.exists() and not path.is_file()):  # a device that is replaced is lost to all
        raise InputError(argument, "a plain file", f"{path}, which is none")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(argument, "a folder that can be written", str(path.parent))
    if store:
        check_outside_models(path, argument)
    elif _is_database(path):
        raise InputError(argument, "a file that may be replaced", f"{path}, a store of results", "name another file")


def check_output(path: Path, argument: str, *inputs: Path | None, force: bool, page_of: str = "") -> None:
    """Fail before any work unless a command may write ``path``; the one rule of all commands.

    Nobody may write into the folder of a model, or onto one of ``inputs``: the files that the command reads, and those
    in the folders that it reads, under any name. Another file is replaced with ``force`` alone, unless it is a page
    that the command ``page_of`` wrote.
    """
    check_target(path, argument)
    check_outside_models(path, argument)
    if not path.exists():
        return
    if any(one is not None and _is_read(path, one) for one in inputs):
        raise InputError(argument, "another file than those that are read", str(path), "name another file")
    if not (force or (page_of and _is_page(path, page_of))):
        raise InputError(argument, "a new file", f"{path}, which exists", "add --force to replace it")


def check_outside_models(path: Path, argument: str) -> None:
    """Fail if a path leads into the folder of a model, or of a training that is saved."""
    for folder in _real(path).parents:
        is_model = (folder / MODEL).is_file() and (folder / PREPROCESSING).is_file()
        if is_model or (folder.name.endswith(UNFINISHED) and (folder / STATE).is_file()):
            raise InputError(argument, "a file outside of models", f"{path}, in one", "name another folder")


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path leads into a folder, or to it."""
    return _real(path).is_relative_to(_real(folder))


def _real(path: Path) -> Path:
    """Where a path leads; one that leads in a circle leads nowhere."""
    return Path(os.path.realpath(path))


def _is_read(path: Path, source: Path) -> bool:
    """Return whether a file is a source, or in a folder that is one; under whatever name, as links have several."""
    if not source.is_dir():
        return _is_same(path, source)
    if is_inside(path, source):
        return True
    return any(_is_same(path, Path(root, name)) for root, _, names in os.walk(source) for name in names)


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError, ValueError):  # there is none, or its name is none
        return path.samefile(other)
    return False


def _is_page(path: Path, command: str) -> bool:
    """Return whether a page says that a command wrote it."""
    with path.open("rb") as file:
        return f'<meta name="generator" content="{command}">'.encode() in file.read(HEAD)


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
    path = _real(path)  # through a link to what it names
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
def replacing_folder(path: Path, argument: str, names: Collection[str]) -> Iterator[Path]:
    """A folder beside ``path`` to write into; it takes the place of ``path`` if all goes well, else it vanishes.

    Of a folder that was there, only files of these ``names`` are deleted. Others, which may have come while the new one
    was made, move into it.
    """
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
    for left in [*old.iterdir()] if old.exists() else []:
        with suppress(OSError):  # what can neither be deleted nor moved stays where it is
            if left.name in names and left.is_file() and not left.is_symlink():
                left.unlink()
            elif not os.path.lexists(path / left.name):
                left.rename(path / left.name)
    with suppress(OSError):
        old.rmdir()


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


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  #: what spreadsheets take for the begin of one, or for nothing


def csv_line(values: Iterable[Any]) -> str:
    """One line; text that would be a formula begins with an apostrophe, numbers stay numbers.

    >>> csv_line(["=1+1", "plain", -0.5, "-0.5", None])
    "'=1+1,plain,-0.5,-0.5,\\n"
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text[0].isspace()
