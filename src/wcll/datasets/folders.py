"""Where data are looked for, and where they are downloaded to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wcll.checks import InputError


def data_folders(data: Path | None) -> list[Path]:
    """The folders that data are looked for in: the given one, the one WCLL_DATA names, the user's cache."""
    named = os.environ.get("WCLL_DATA")
    folders = [data, Path(named) if named else None, user_cache()]
    return list(dict.fromkeys(folder.expanduser() for folder in folders if folder is not None))


def download_folder(data: Path | None) -> Path:
    """The folder that downloads go to: the first of those that data are looked for in."""
    return data_folders(data)[0]


def check_folder(data: Path | None) -> None:
    """A folder that the user names must be there: else a slip of the pen would read other data."""
    if data is not None and not data.expanduser().is_dir():
        raise InputError("data", "a folder", f"{data}, which is {'a file' if data.exists() else 'not there'}")


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
