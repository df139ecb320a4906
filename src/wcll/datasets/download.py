"""Downloads that go on where they stopped, and whose final name appears only on a file with the right checksum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from wcll.checks import InputError
from wcll.datasets.archives import unpack
from wcll.datasets.checksums import hash_file, md5
from wcll.datasets.entries import DATASETS, DatasetSpec, Download
from wcll.datasets.folders import download_folder

TIMEOUT = 30  # seconds without an answer
BLOCK = 1 << 16

Progress = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


class TransferError(Exception):
    """An address that did not serve the file, and why."""


def silent(what: str) -> AbstractContextManager[Callable[[int, int], None]]:
    """Progress that nobody sees."""
    return nullcontext(lambda done, total: None)


def download_dataset(name: str, data: Path | None = None, progress: Progress = silent) -> Path:
    """Download a data set into ``data``, or the folder of WCLL_DATA, or the user's cache; return where it lies.

    What is already there is left as it is. ``progress(what)`` is a context whose value is called with a number of
    steps and their total.
    """
    spec, folder = DATASETS[name], download_folder(data)
    if spec.installed:
        return Path(spec.installed)
    if folder.is_file():
        raise InputError("data", "a folder", f"{folder}, which is a file")
    if (place := spec.find([folder])) is not None:
        return place
    if not spec.downloads:
        raise InputError(f"dataset {name!r}", "one that can be downloaded", "one that cannot", spec.remedy)
    return _archive(spec, folder, progress) if spec.downloads[0].is_archive else _files(spec, folder, progress)


def _files(spec: DatasetSpec, folder: Path, progress: Progress) -> Path:
    place = folder / spec.folders[0]
    for download in spec.downloads:
        fetch(download, place, progress)
    return place


def _archive(spec: DatasetSpec, folder: Path, progress: Progress) -> Path:
    """An archive that was there before stays; one that was downloaded goes when it is unpacked."""
    (download,) = spec.downloads
    place = folder / spec.folders[0]
    if place.exists():
        got = f"one without {', '.join(spec.missing(place))}"
        raise InputError(str(place), "a whole data set or no such folder", got, "move it away")
    archive = folder / download.file
    was_there = archive.exists()
    fetch(download, folder, progress)
    unpack(archive, download.md5, spec)
    if not was_there:
        archive.unlink()
    return place


def fetch(download: Download, folder: Path, progress: Progress = silent) -> Path:
    """One file, from the first address that serves it whole; what came of it stays in ``<name>.part`` until then."""
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / download.file, folder / f"{download.file}.part"
    if target.exists():
        if md5(target) != download.md5:
            raise InputError(str(target), "the official file", "another one", "move it away")
        return target
    failures = []
    for url in download.urls:
        try:
            _complete(url, part, download.md5, progress)
        except TransferError as failure:
            failures.append(f"{failure} from {url}")
            continue
        os.replace(part, target)
        return target
    remedy = "the same command goes on where it stopped" if part.exists() else "try again later"
    raise InputError(str(target), "a whole download", ", and ".join(failures), remedy)


def _complete(url: str, part: Path, digest: str, progress: Progress) -> None:
    """Leave a whole file in ``part``, or none if its checksum is wrong, or what came before the connection broke."""
    if part.exists() and hash_file(part) == digest:
        return  # it was stopped just before it got its name
    with progress(part.stem) as step:
        _transfer(url, part, step)
    if (found := hash_file(part)) != digest:
        part.unlink()
        raise TransferError(f"a file with MD5 {found}, not {digest},")


def _transfer(url: str, part: Path, step: Callable[[int, int], None]) -> None:
    start = part.stat().st_size if part.exists() else 0
    with _ask(url, start) as response:
        if response.status != 206:
            start = 0  # all of it comes, whatever was asked for
        elif not (response.headers["Content-Range"] or "").startswith(f"bytes {start}-"):
            raise TransferError("another range than was asked for")
        length = response.headers["Content-Length"]
        total = int(length) if length and length.isdecimal() else None
        received = 0
        with part.open("ab" if start else "wb") as file:
            for block in _blocks(response):
                if total:
                    step(received, total)  # also before the first block: the clock starts there
                file.write(block)
                received += len(block)
            if total:
                step(received, total)
    if total is not None and received != total:
        raise TransferError(f"only {start + received} of {start + total} bytes")


def _ask(url: str, start: int) -> HTTPResponse:
    """The answer to a request for the bytes from ``start``; for all of them if there are none from there."""
    headers = {"User-Agent": "wcll", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        answer: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
        return answer
    except HTTPError as error:
        error.close()
        if error.code == 416 and start:
            return _ask(url, 0)
        raise TransferError(f"HTTP status {error.code}") from None
    except (OSError, HTTPException) as error:
        raise TransferError(_reason(error)) from None


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read1(BLOCK):
            yield block
    except (OSError, HTTPException) as error:
        raise TransferError(_reason(error)) from None


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
