"""Downloads that go on where they stopped, and whose final name appears only on a file with the right checksum."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from wcll._files import check_file
from wcll._memory import in_words
from wcll.datasets.archives import unpack
from wcll.datasets.checksums import md5
from wcll.datasets.entries import DATASETS, DatasetSpec, Download
from wcll.datasets.folders import download_folder
from wcll.exceptions import InputError

TIMEOUT = 30  # seconds without an answer
LIMIT = 3600.0  # seconds for one file, however it comes
BLOCK = 1 << 16
WAITING = 16  # blocks that are received before they are written

Progress = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


class TransferError(Exception):
    """An address that did not serve the file, and why."""


class Piece(NamedTuple):
    """Some of the bytes that come: they begin at ``start`` of the file, and are ``total`` in all, if that is known."""

    start: int
    total: int | None
    content: bytes


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
    unpack(archive, download, spec)
    if not was_there:
        archive.unlink(missing_ok=True)
    return place


def fetch(download: Download, folder: Path, progress: Progress = silent) -> Path:
    """One file, from the first address that serves it whole; what came of it stays in ``<name>.part`` until then."""
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / download.file, folder / f"{download.file}.part"
    if target.exists():
        if md5(target) != download.md5:
            raise InputError(str(target), "the official file", "another one", "move it away")
        return target
    with _alone(part, target) as file:
        try:
            _complete(download, file, progress)
        except TransferError as failure:
            remedy = "the same command goes on where it stopped" if _size(file) else "try again later"
            raise InputError(str(target), "a whole download", failure, remedy) from None
        finally:
            if not _size(file):
                with suppress(OSError):
                    part.unlink()
    try:
        os.replace(part, target)
    except FileNotFoundError:
        if not target.exists():  # else another process has seen that it is whole, and given it its name
            raise
    return target


@contextmanager
def _alone(part: Path, target: Path) -> Iterator[IO[bytes]]:
    """The part, open for reading and for writing at its end, while no other process writes to it."""
    if part.exists():
        check_file(part)
    with part.open("a+b") as file:
        if not _locked(file) or not _is_still(part, file):
            raise InputError(str(target), "to be alone in downloading it", "another process that does", "wait for it")
        yield file


def _is_still(part: Path, file: IO[bytes]) -> bool:
    """Whether an open file still has its name: whoever had it before may have given it another."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), part.stat())
    return False


def _locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; false if another has it."""
    if sys.platform == "win32":
        return True  # it renames no file that others have open
    import fcntl  # there is none on Windows

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks
    return True


def _complete(download: Download, file: IO[bytes], progress: Progress) -> None:
    """Leave a whole file, or an empty one if its checksum is wrong, or what came before the connection broke."""
    if _md5(file) == download.md5:
        return  # it was stopped just before it got its name
    deadline, failures = time.monotonic() + LIMIT, []
    for url in download.urls:
        try:
            with progress(download.file) as step:
                _transfer(_in_time(_pieces(url, _size(file)), deadline), file, download.most, step)
            if (found := _md5(file)) == download.md5:
                return
            file.truncate(0)
            failures.append(f"a file with MD5 {found}, not {download.md5}, from {url}")
        except TransferError as failure:
            failures.append(f"{failure} from {url}")
    raise TransferError(", and ".join(failures))


def _transfer(pieces: Iterator[Piece], file: IO[bytes], most: int, step: Callable[[int, int], None]) -> None:
    received, total, start = 0, None, 0
    for start, total, content in pieces:
        if start + max(received + len(content), total or 0) > most:
            file.truncate(0)
            raise TransferError(f"more than {in_words(most)}")
        if not received:
            file.truncate(start)  # to nothing if all of it comes, whatever was asked for
        if total:
            step(received, total)  # also before the first block: the clock starts there
        file.write(content)
        received += len(content)
    file.flush()
    if total:
        step(received, total)
    if total is not None and received != total:
        raise TransferError(f"only {start + received} of {start + total} bytes")


def _in_time(pieces: Iterator[Piece], deadline: float) -> Iterator[Piece]:
    """What another thread receives, until the deadline: a server that sends a byte now and then is not waited for."""
    queue: Queue[Piece | Exception | None] = Queue(WAITING)
    over = Event()

    def receive() -> None:
        try:
            with closing(pieces):  # type: ignore[type-var]
                for piece in pieces:
                    queue.put(piece)
                    if over.is_set():
                        return
            queue.put(None)
        except Exception as error:  # it is raised where it is waited for
            queue.put(error)

    Thread(target=receive, daemon=True).start()
    try:
        while (left := deadline - time.monotonic()) > 0:
            with suppress(Empty):
                got = queue.get(timeout=left)
                if got is None:
                    return
                if isinstance(got, Exception):
                    raise got
                yield got
        raise TransferError(f"no end after {LIMIT:g} seconds")
    finally:
        over.set()
        with suppress(Empty):
            while True:  # room for what the thread holds: it sees then that it is over
                queue.get_nowait()


def _pieces(url: str, start: int) -> Iterator[Piece]:
    try:
        with _ask(url, start) as response:
            if response.status != 206:
                start = 0
            elif not (response.headers["Content-Range"] or "").startswith(f"bytes {start}-"):
                raise TransferError("another range than was asked for")
            length = response.headers["Content-Length"] or ""
            total = int(length) if length.isdecimal() and len(length) < 19 else None
            yield Piece(start, total, b"")
            while block := response.read1(BLOCK):
                yield Piece(start, total, block)
    except HTTPError as error:
        error.close()
        raise TransferError(f"HTTP status {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:  # ValueError: an address or a header that is none
        raise TransferError(_reason(error)) from None


class _Redirects(HTTPRedirectHandler):
    """Follows addresses of the web alone."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The next request."""
        if not newurl.lower().startswith(("http://", "https://")):
            raise URLError(f"a redirect to {newurl!r}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> Any:
        """Go there, or close the connection."""
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (URLError, ValueError):
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _ask(url: str, start: int) -> HTTPResponse:
    """The answer to a request for the bytes from ``start``; for all of them if there are none from there."""
    headers = {"User-Agent": "wcll", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        answer: HTTPResponse = build_opener(_Redirects).open(Request(url, headers=headers), timeout=TIMEOUT)
        return answer
    except HTTPError as error:
        if error.code != 416 or not start:
            raise
        error.close()
        return _ask(url, 0)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def _size(file: IO[bytes]) -> int:
    return file.seek(0, os.SEEK_END)


def _md5(file: IO[bytes]) -> str:
    """Of all that the open file holds, whatever its name is by now."""
    file.seek(0)
    hasher = hashlib.md5(usedforsecurity=False)
    while block := file.read(BLOCK):
        hasher.update(block)
    return hasher.hexdigest()
