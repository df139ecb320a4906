"""Where data are looked for, and where they are downloaded to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wcll.exceptions import InputError, InputTypeError


def data_folders(data: str | Path | None) -> list[Path]:
    """The folders that data are looked for in: the given one, the one WCLL_DATA names, the user's cache."""
    named = os.environ.get("WCLL_DATA")
    folders = [expanded("data", data)] if data is not None else []
    folders += [expanded("WCLL_DATA", named)] if named else []
    return list(dict.fromkeys([*folders, user_cache()]))


def expanded(argument: str, path: str | Path, what: str = "a folder") -> Path:
    """A path whose ``~`` or ``~user`` is replaced by a home."""
    if not isinstance(path, str | Path):
        raise InputTypeError(argument, f"the path of {what.removeprefix('the path of ')}", type(path).__name__)
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(argument, what, f"{path} of an unknown user") from None


def download_folder(data: str | Path | None) -> Path:
    """The folder that downloads go to: the first of those that data are looked for in."""
    return data_folders(data)[0]


def check_folder(data: str | Path | None) -> None:
    """A folder that the user names must be there: else a slip of the pen would read other data."""
    if data is not None and not (place := expanded("data", data)).is_dir():
        raise InputError("data", "a folder", f"{data}, which is {'a file' if place.exists() else 'not there'}")


def user_cache() -> Path:
    """The folder where this program may keep what it can get again."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "wcll"
