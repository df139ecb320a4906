"""Suites from files: those of the package by name, a user's own by path, each of which may extend another."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from wcll._files import read_bytes
from wcll._validation import choice
from wcll.exceptions import InputError
from wcll.suites.reading import Reader
from wcll.suites.suite import Suite
from wcll.suites.toml_lines import Lines

#: Where suites of the package lie; the paper keeps its own.
LARGEST = 2**20  #: bytes of a suite's file
LONGEST_CHAIN = 20  #: of suites each of which extends the next
DEEPEST = 20  #: lists and tables within each other
LONGEST_NUMBER = 10**1000

_FOLDERS = (resources.files("wcll.suites"), resources.files("wcll") / "paper" / "suites")


def packaged_suites() -> list[str]:
    """The suites that come with the package."""
    return [name for name in _packaged() if not name.startswith("_")]


def load_suite(name: str) -> Suite:
    """A suite of the package by name, or a ``.toml`` file."""
    if not _is_file(name):
        choice("suite", name, packaged_suites())
    return _load(name, Path(), ()).complete()


def load_base(name: str) -> Suite:
    """A suite of the package that is not run as it is, by its name, which begins with _."""
    return _load(name, Path(), ()).suite


def parse_suite(text: str, name: str, file: str = "suite") -> Suite:
    """Read a suite; whatever is wrong is said with its line."""
    return _parse(text, name, file, Path(), ()).complete()


@cache
def _packaged() -> dict[str, Traversable]:
    """All files of the package by name; those whose names begin with _ are there to be extended."""
    files = [item for folder in _FOLDERS for item in folder.iterdir() if item.name.endswith(".toml")]
    return {item.name.removesuffix(".toml"): item for item in sorted(files, key=lambda item: item.name)}


def _is_file(name: str) -> bool:
    """Names of the package are never files: a file that happens to be here must not take their place."""
    return name.endswith(".toml") or (name not in _packaged() and Path(name).is_file())


def _load(name: str, folder: Path, heirs: tuple[str, ...]) -> Reader:
    """A suite by name, or a file beside those of ``folder``; ``heirs`` are the files that extend it."""
    if not _is_file(name):
        known = choice("suite", name, _packaged())
        return _parse(_packaged()[known].read_text(encoding="utf-8"), known, f"{known}.toml", folder, heirs)
    path = folder / name
    if path.is_dir() or not path.exists():
        raise InputError("suite", "a file", f"{path}, which {'is a folder' if path.is_dir() else 'does not exist'}")
    if str(path.resolve()) in heirs:
        raise InputError("extends", "a suite that does not extend this one in turn", repr(name))
    if len(heirs) == LONGEST_CHAIN:
        raise InputError("extends", f"at most {LONGEST_CHAIN} suites that extend each other", "more")
    try:
        text = read_bytes(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path.name, "UTF-8 text", f"byte {error.start} that is not") from None
    return _parse(text, path.stem, path.name, path.parent, (*heirs, str(path.resolve())))


def _parse(text: str, name: str, file: str, folder: Path, heirs: tuple[str, ...]) -> Reader:
    try:
        plain = tomllib.loads(text)
        _check_plain(plain)
    except RecursionError:
        raise InputError(file, "TOML", f"lists or tables more than {DEEPEST} deep") from None
    except ValueError as error:  # TOML that is wrong, or a number that Python does not read
        raise InputError(file, "TOML", str(error)) from None
    lines, base = Lines(text, file), None
    if "extends" in plain:
        with lines.at((), "extends"):
            if not isinstance(plain["extends"], str):
                raise InputError("extends", "the name of a suite, or a .toml file", repr(plain["extends"]))
            base = _load(plain["extends"], folder, heirs).suite
    return Reader(plain, lines, name, base)


def _check_plain(plain: object) -> None:
    """Fail if something is nested so deeply, or a number so long, that it could not even be printed."""
    level = [plain]
    for _ in range(DEEPEST):
        if any(isinstance(value, int) and abs(value) >= LONGEST_NUMBER for value in level):
            raise ValueError("a number of more than 1000 digits")
        parts = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        ]
        level = [value for part in parts for value in part]
    if level:
        raise RecursionError
