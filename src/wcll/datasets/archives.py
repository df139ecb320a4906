"""Archives, unpacked whole or not at all."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from wcll.checks import InputError
from wcll.datasets.checksums import seal
from wcll.datasets.entries import DatasetSpec


def unpack(archive: Path, archive_md5: str, spec: DatasetSpec) -> Path:
    """Unpack an archive beside itself; the data set's folder appears when all of it is there."""
    target = archive.parent / spec.folders[0]
    draft = Path(tempfile.mkdtemp(dir=archive.parent, prefix=f".{target.name}."))
    try:
        _extract(archive, draft)
        folder = draft / target.name
        if missing := spec.missing(folder):
            raise InputError(str(archive), f"{', '.join(spec.files)} in {target.name}", f"no {', '.join(missing)}")
        if not spec.checksums:
            seal(folder, archive_md5)
        folder.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _extract(archive: Path, folder: Path) -> None:
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped:
                _check_names(archive, zipped.namelist())
                zipped.extractall(folder)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(str(archive), "a whole archive", str(error)) from None


def _check_names(archive: Path, names: list[str]) -> None:
    """Every file must land inside the folder that it is unpacked into."""
    for name in names:
        posix, windows = PurePosixPath(name), PureWindowsPath(name)
        if posix.is_absolute() or windows.anchor or ".." in posix.parts + windows.parts:
            raise InputError(str(archive), "names inside the archive's own folder", repr(name))
