"""Archives, unpacked whole or not at all."""

from __future__ import annotations

import gzip
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from wcll._memory import in_words
from wcll.datasets.checksums import seal
from wcll.datasets.entries import DatasetSpec, Download
from wcll.exceptions import InputError

#: What damaged archives raise beside errors of their formats: bad names and numbers, encryption, unknown methods.
ODD = (ValueError, KeyError, IndexError, RuntimeError, struct.error)


UNPACKED = 8  #: times what a download may have: the most that may be unpacked of it
MOST_HEADER = 2**22  #: bytes of one, with all names that it has
BLOCK = 4096  #: bytes that an entry counts for at least: many small ones fill a disk too


def unpack(archive: Path, download: Download, spec: DatasetSpec) -> Path:
    """Unpack an archive beside itself; the data set's folder appears when all of it is there."""
    target = archive.parent / spec.folders[0]
    draft = Path(tempfile.mkdtemp(dir=archive.parent, prefix=f".{target.name}."))
    try:
        _extract(archive, draft, min(UNPACKED * download.most, shutil.disk_usage(draft).free))
        folder = draft / target.name
        if missing := spec.missing(folder):
            raise InputError(str(archive), f"{', '.join(spec.files)} in {target.name}", f"no {', '.join(missing)}")
        if not spec.checksums:
            seal(folder, download.md5)
        try:
            folder.rename(target)
        except OSError:
            if spec.missing(target):  # else another process has unpacked it meanwhile
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _extract(archive: Path, folder: Path, most: int) -> None:
    try:
        if archive.suffix == ".zip":
            _extract_zip(archive, folder, most)
        else:
            _extract_tar(archive, folder, most)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, *ODD) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(archive), "a whole archive", str(error) or type(error).__name__) from None


def _extract_zip(archive: Path, folder: Path, most: int) -> None:
    """No more comes out of an entry than its header says."""
    with zipfile.ZipFile(archive) as zipped:
        if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in zipped.infolist()):
            raise ValueError("files packed in another way")  # which may take any memory
        _check_names(archive, zipped.namelist())
        _check_size(archive, sum(max(entry.file_size, BLOCK) for entry in zipped.infolist()), most)
        zipped.extractall(folder)


def _extract_tar(archive: Path, folder: Path, most: int) -> None:
    """Entry by entry: how many there are shows at the end only."""
    size = 0
    with _Unpacked(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        for entry in tar:
            size += max(entry.size, BLOCK)
            _check_size(archive, size, most)
            tar.extract(entry, folder, filter="data")


class _Unpacked(gzip.GzipFile):
    """An unpacked archive; files are read from it in small parts, and a header that is not small is refused."""

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes."""
        if size is None or not 0 <= size <= MOST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return super().read(size)


def _check_size(archive: Path, size: int, most: int) -> None:
    if size > most:
        raise InputError(str(archive), f"at most {in_words(most)} when it is unpacked", f"{in_words(size)} or more")


def _check_names(archive: Path, names: list[str]) -> None:
    """Every file must land inside the folder that it is unpacked into."""
    for name in names:
        posix, windows = PurePosixPath(name), PureWindowsPath(name)
        if posix.is_absolute() or windows.anchor or ".." in posix.parts + windows.parts:
            raise InputError(str(archive), "names inside the archive's own folder", repr(name))
