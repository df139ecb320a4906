"""``wcll data``: the list, and downloads from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from small import PATIENCE
from wcll.cli.app import run
from wcll.datasets import DATASETS, archives, load_dataset
from wcll.datasets.download import download_dataset, fetch
from wcll.datasets.entries import Download
from wcll.datasets.folders import user_cache
from wcll.datasets.idx import FILES
from wcll.exceptions import InputError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_data_of_the_user(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(home))
    for name in ("WCLL_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Server(ThreadingHTTPServer):
    """Serves ``files`` and can misbehave."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.ranges = True  #: whether it knows ranges
        self.cut = None  #: bytes after which it closes the connection, once
        self.stall = None  #: an event that it waits for after half of a file
        self.pause = None  #: the same, and then the other half follows
        self.over = threading.Event()
        self.drip = None  #: seconds between bytes
        self.answer = None  #: what it sends instead, whole
        self.slow_answer = None  #: the same, byte by byte
        self.asked: list[tuple[str, str | None]] = []

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        name, wanted = self.path.lstrip("/"), self.headers["Range"]
        self.server.asked.append((name, wanted))
        content = self.server.files.get(name)
        if self.server.slow_answer is not None:
            self.send_slowly(self.server.slow_answer)
            return
        if self.server.answer is not None:
            self.wfile.write(self.server.answer)
            return
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.send_body(content[start:])

    def send_body(self, body):
        cut, self.server.cut = self.server.cut, None
        if self.server.stall:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.server.stall.wait(PATIENCE)
            return
        if self.server.pause:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.server.pause.wait(PATIENCE)
            body = body[len(body) // 2 :]
        if self.server.drip:
            self.send_slowly(body)
            return
        self.wfile.write(body[:cut])

    def send_slowly(self, content):
        with suppress(OSError):
            for k in range(len(content)):
                self.wfile.write(content[k : k + 1])
                if self.server.over.wait(self.server.drip):
                    return

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        if server.stall:
            server.stall.set()
        server.over.set()
        server.shutdown()
        thread.join()


def idx(array):
    return gzip.compress(
        bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes(), mtime=0
    )


def digest(content):
    return hashlib.md5(content).hexdigest()


@pytest.fixture
def mnist(server, monkeypatch):
    """Ten images behind the first and only address of MNIST; returns the contents by name."""
    images, labels = RNG.integers(0, 256, (10, 28, 28), dtype=np.uint8), np.arange(10, dtype=np.uint8)
    files = dict(zip(FILES, [idx(images), idx(labels)] * 2, strict=True))
    server.files = dict(files)
    downloads = tuple(Download(name, digest(content), (server.url(name),)) for name, content in files.items())
    checksums = {download.file: download.md5 for download in downloads}
    spec = replace(DATASETS["mnist"], downloads=downloads, checksums=checksums)
    monkeypatch.setitem(DATASETS._items, "mnist", spec)
    return files


def in_tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def in_zip(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return buffer.getvalue()


def serve_archive(server, monkeypatch, name, content):
    (download,) = DATASETS[name].downloads
    server.files[download.file] = content
    download = replace(download, md5=digest(content), urls=(server.url(download.file),))
    monkeypatch.setitem(DATASETS._items, name, replace(DATASETS[name], downloads=(download,)))
    return download


CIFAR100 = {f"cifar-100-binary/{name}.bin": bytes([3, 30]) + bytes(3072) for name in ("train", "test")}


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def fails(arguments, capsys):
    """The one line of an error."""
    assert run(arguments) == 2
    *progress, message = capsys.readouterr().err.splitlines(keepends=True)
    assert all(line.endswith((" left\n", ": 100 %\n")) for line in progress)
    assert message.startswith("wcll: error: ")
    return message


# Downloads.


def test_a_whole_download(server, mnist, tmp_path, capsys):
    target = tmp_path / "new" / "folder"
    assert run(["data", "download", "mnist", "--data", str(target)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"mnist: downloaded to {target / 'mnist'}, official\n"
    assert "train-images-idx3-ubyte.gz: 100 %" in captured.err
    assert {path.name: path.read_bytes() for path in (target / "mnist").iterdir()} == mnist
    assert load_dataset("mnist", target).official
    server.asked.clear()
    assert run(["data", "--data", str(target), "download", "mnist"]) == 0
    assert capsys.readouterr().out == f"mnist: already in {target / 'mnist'}, official\n"
    assert download_dataset("mnist", target) == target / "mnist"
    assert server.asked == []


def test_where_downloads_go(mnist, tmp_path, monkeypatch):
    assert download_dataset("mnist") == user_cache() / "mnist"
    monkeypatch.setenv("WCLL_DATA", str(tmp_path))
    assert download_dataset("mnist") == tmp_path / "mnist"


def test_a_broken_connection_is_resumed(server, mnist, tmp_path, capsys):
    server.cut = 100
    command = ["data", "download", "mnist", "--data", str(tmp_path)]
    total = len(mnist[FILES[0]])
    message = fails(command, capsys)
    assert f"expected a whole download, got only 100 of {total} bytes from {server.url(FILES[0])}; " in message
    assert message.endswith("the same command goes on where it stopped\n")
    assert names(tmp_path) == ["mnist", f"mnist/{FILES[0]}.part"]
    assert (tmp_path / "mnist" / f"{FILES[0]}.part").stat().st_size == 100
    assert run(command) == 0
    assert (FILES[0], "bytes=100-") in server.asked
    assert load_dataset("mnist", tmp_path).official


def test_a_server_without_ranges_starts_again(server, mnist, tmp_path):
    server.ranges = False
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / f"{FILES[0]}.part").write_bytes(mnist[FILES[0]][:50])
    download_dataset("mnist", tmp_path)
    assert server.asked[0] == (FILES[0], "bytes=50-")
    assert (tmp_path / "mnist" / FILES[0]).read_bytes() == mnist[FILES[0]]


def test_a_part_that_is_complete_gets_its_name(server, mnist, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / f"{FILES[0]}.part").write_bytes(mnist[FILES[0]])
    download_dataset("mnist", tmp_path)
    assert FILES[0] not in [name for name, _ in server.asked]
    assert names(tmp_path / "mnist") == sorted(FILES)


def test_a_part_that_is_too_long_starts_again(server, mnist, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / f"{FILES[0]}.part").write_bytes(mnist[FILES[0]] + b"more")
    download_dataset("mnist", tmp_path)
    assert [wanted is None for name, wanted in server.asked if name == FILES[0]] == [False, True]
    assert load_dataset("mnist", tmp_path).official


def test_a_wrong_checksum_leaves_nothing(server, mnist, tmp_path, capsys):
    server.files[FILES[0]] = wrong = b"<html>please log in</html>"
    message = fails(["data", "download", "mnist", "--data", str(tmp_path)], capsys)
    assert f"got a file with MD5 {digest(wrong)}, not {digest(mnist[FILES[0]])}, from {server.url(FILES[0])}" in message
    assert names(tmp_path) == ["mnist"]


def test_mirrors_are_tried_in_turn(server, mnist, tmp_path, monkeypatch, capsys):
    spec = DATASETS["mnist"]
    dead = "http://127.0.0.1:9/"  # nothing listens there
    downloads = tuple(replace(d, urls=(dead, server.url("no"), *d.urls)) for d in spec.downloads)
    monkeypatch.setitem(DATASETS._items, "mnist", replace(spec, downloads=downloads))
    download_dataset("mnist", tmp_path / "a")
    assert load_dataset("mnist", tmp_path / "a").official
    del server.files[FILES[0]]
    message = fails(["data", "download", "mnist", "--data", str(tmp_path / "b")], capsys)
    assert f"got Connection refused from {dead}, and HTTP status 404 from {server.url('no')}, and HTTP" in message
    assert message.endswith("; try again later\n")


def test_a_server_that_falls_silent(server, mnist, tmp_path, monkeypatch):
    server.stall = threading.Event()
    for seconds in (0.2, 2.0, 20.0):  # a slow machine may need that long for the first half
        monkeypatch.setattr("wcll.datasets.download.TIMEOUT", seconds)
        with pytest.raises(InputError, match=r"got timed out from http://") as caught:
            download_dataset("mnist", tmp_path)
        if names(tmp_path) != ["mnist"]:
            break
    assert str(caught.value).endswith("; the same command goes on where it stopped")
    assert names(tmp_path) == ["mnist", f"mnist/{FILES[0]}.part"]


def test_a_file_of_ones_own_is_not_overwritten(server, mnist, tmp_path, capsys):
    mine = tmp_path / "mnist" / FILES[1]
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    message = fails(["data", "download", "mnist", "--data", str(tmp_path)], capsys)
    assert f"{mine}: expected the official file, got another one; move it away" in message
    assert mine.read_bytes() == b"mine"


def test_killed_in_between_leaves_a_part(server, mnist, tmp_path):
    server.stall = threading.Event()
    code = (
        "import sys; from pathlib import Path; from wcll.datasets.entries import Download; "
        "from wcll.datasets.download import fetch; fetch(Download(*sys.argv[1:3], (sys.argv[3],)), Path(sys.argv[4]))"
    )
    name, part = FILES[0], tmp_path / f"{FILES[0]}.part"
    command = [sys.executable, "-c", code, name, digest(mnist[name]), server.url(name), str(tmp_path)]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + PATIENCE
        while not (part.exists() or process.poll() is not None) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        process.kill()
    assert names(tmp_path) == [part.name]
    server.stall.set()
    server.stall = None
    (tmp_path / "mnist").mkdir()
    part.rename(tmp_path / "mnist" / part.name)
    download_dataset("mnist", tmp_path)
    assert load_dataset("mnist", tmp_path).official


def test_two_downloads_of_one_file_at_once(server, mnist, tmp_path):
    """The second one is told; the first one's file is whole."""
    server.pause = threading.Event()
    (first,) = (d for d in DATASETS["mnist"].downloads if d.file == FILES[0])
    part = tmp_path / f"{FILES[0]}.part"
    thread = threading.Thread(target=fetch, args=(first, tmp_path))
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not (part.exists() and server.asked) and time.monotonic() < deadline:
        time.sleep(0.01)
    pause, server.pause = server.pause, None
    try:
        with pytest.raises(InputError, match="got another process that does; wait for it"):
            fetch(first, tmp_path)
    finally:
        pause.set()
        thread.join()
    assert (tmp_path / FILES[0]).read_bytes() == mnist[FILES[0]]
    assert names(tmp_path) == [FILES[0]]


def test_an_archive_that_another_process_has_unpacked_meanwhile(server, tmp_path, monkeypatch):
    serve_archive(server, monkeypatch, "cifar100", in_tar(CIFAR100))
    extract = archives._extract

    def slow(archive, folder, most):
        extract(archive, folder, most)
        monkeypatch.setattr(archives, "_extract", extract)
        download_dataset("cifar100", tmp_path)

    monkeypatch.setattr(archives, "_extract", slow)
    assert download_dataset("cifar100", tmp_path) == tmp_path / "cifar-100-binary"
    assert load_dataset("cifar100", tmp_path).official
    assert [name for name in names(tmp_path) if "/" not in name] == ["cifar-100-binary"]


@pytest.mark.parametrize("headers", [b"Content-Length: 500\r\n", b""])
def test_more_than_a_download_may_have(server, mnist, tmp_path, headers):
    server.answer = b"HTTP/1.0 200 OK\r\n" + headers + b"\r\n" + bytes(500)
    small = replace(DATASETS["mnist"].downloads[0], most=499)
    with pytest.raises(InputError, match=r"got more than 499 B from http://.*; try again later"):
        fetch(small, tmp_path)
    assert names(tmp_path) == []
    assert replace(small, most=500).most < DATASETS["mnist"].downloads[0].most == 2**30


@pytest.mark.parametrize("where", ["body", "headers"])
def test_a_download_that_does_not_end(server, mnist, tmp_path, monkeypatch, where):
    monkeypatch.setattr("wcll.datasets.download.LIMIT", 0.3)
    server.drip = 0.02
    if where == "headers":
        server.slow_answer = b"HTTP/1.0 200 OK\r\nX: " + b"x" * 5000
    with pytest.raises(InputError, match=r"got no end after 0\.3 seconds from http://"):
        fetch(DATASETS["mnist"].downloads[0], tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://[::1",
            "http://[::1]x/",
            "http://127.0.0.1:abc/",
            "http://127.0.0.1:99999/",
            "http://",
            "//",
            "http:x",
        ),
        *("ftp://127.0.0.1:9/x", "file:///etc/hostname", "gopher://x", "data:,x", "mailto:x", "http://a..b/"),
        *(f"http://{'a' * 70}/", "http://127.0.0.1:9/\xff", "http://\x01/", "http://user@/"),
    ],
)
def test_broken_redirects(server, mnist, tmp_path, capsys, address):
    server.answer = b"HTTP/1.0 302 Found\r\nLocation: " + address.encode("latin-1") + b"\r\n\r\n"
    message = fails(["data", "download", "mnist", "--data", str(tmp_path)], capsys)
    assert f"{FILES[0]}: expected a whole download, got " in message
    assert names(tmp_path) == ["mnist"]


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"\0" * 100, b"nonsense\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 -1 x\r\n\r\n", OK + b"\r\n"),
        *(
            OK + b"Content-Length: " + length + b"\r\n\r\nx"
            for length in (b"9" * 5000, b"-5", b"x", b"\xb2", b"1e3", b"")
        ),
        *(OK + b"X: y\r\n" * 200 + b"\r\n", OK + b"x" * 70_000 + b"\r\n\r\n", OK + b"no colon\r\n\r\nx"),
        *(
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunk
            for chunk in (b"", b"zz\r\n", b"-5\r\nabc", b"f" * 5000, b"5\r\nab", b"2\r\nabXX", b"0" * 70_000)
        ),
        b"HTTP/1.1 302 Found\r\n\r\n",
        b"HTTP/1.1 206 Partial\r\n\r\nx",
        b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 7-8/9\r\n\r\nx",
    ],
)
def test_broken_answers(server, mnist, tmp_path, capsys, answer):
    server.answer = answer
    message = fails(["data", "download", "mnist", "--data", str(tmp_path)], capsys)
    assert f"{FILES[0]}: expected a whole download, got " in message


@pytest.mark.parametrize("cut", [None, 40])
def test_an_archive_is_unpacked(server, tmp_path, monkeypatch, cut):
    content = in_tar(CIFAR100)
    serve_archive(server, monkeypatch, "cifar100", content)
    server.cut = cut
    if cut:
        with pytest.raises(InputError, match="only 40 of"):
            download_dataset("cifar100", tmp_path)
        assert names(tmp_path) == ["cifar-100-binary.tar.gz.part"]
    assert download_dataset("cifar100", tmp_path) == tmp_path / "cifar-100-binary"
    assert names(tmp_path) == [f"cifar-100-binary{n}" for n in ("", "/.wcll-seal.json", "/test.bin", "/train.bin")]
    data = load_dataset("cifar100", tmp_path)
    assert data.official  # by the checksum of the archive
    assert data.train.y.tolist() == [30]


def test_an_archive_that_is_there_already_needs_no_network_and_stays(server, tmp_path, monkeypatch):
    download = serve_archive(server, monkeypatch, "cifar100", in_tar(CIFAR100))
    (tmp_path / download.file).write_bytes(server.files[download.file])
    download_dataset("cifar100", tmp_path)
    assert server.asked == []
    assert (tmp_path / download.file).exists()


def test_a_zip_is_unpacked(server, tmp_path, monkeypatch):
    files = {
        "train/n01/images/n01_0.JPEG": b"a",
        "val/val_annotations.txt": b"val_0.JPEG\tn01\n",
        "val/images/val_0.JPEG": b"b",
    }
    zipped = in_zip({f"tiny-imagenet-200/{name}": content for name, content in files.items()})
    serve_archive(server, monkeypatch, "tiny-imagenet", zipped)
    place = download_dataset("tiny-imagenet", tmp_path)
    assert all((place / name).read_bytes() == content for name, content in files.items())
    assert names(tmp_path)[0] == "tiny-imagenet-200"
    assert DATASETS["tiny-imagenet"].is_official(place)
    (place / "train" / "n01" / "images" / "n01_0.JPEG").write_bytes(b"aa")
    assert not DATASETS["tiny-imagenet"].is_official(place)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tiny-imagenet", in_zip({"../evil": b""}), "expected names inside the archive's own folder, got '../evil'"),
        ("tiny-imagenet", in_zip({"/evil": b""}), "expected names inside the archive's own folder, got '/evil'"),
        ("tiny-imagenet", b"no zip", "expected a whole archive, got File is not a zip file"),
        ("cifar100", in_tar({"../evil": b""}), "expected a whole archive, got '../evil' would be extracted"),
        ("cifar100", b"no tar", "expected a whole archive, got "),
        ("cifar100", in_tar({"cifar-100-binary/train.bin": b""}), "in cifar-100-binary, got no test.bin"),
    ],
    ids=["zip upwards", "zip absolute", "no zip", "tar upwards", "no tar", "file missing"],
)
def test_bad_archives_leave_no_folder(server, tmp_path, monkeypatch, name, content, message):
    download = serve_archive(server, monkeypatch, name, content)
    with pytest.raises(InputError) as caught:
        download_dataset(name, tmp_path / "data")
    assert message in str(caught.value)
    assert names(tmp_path) == ["data", f"data/{download.file}"]


def test_archives_that_unpack_to_too_much(server, tmp_path, monkeypatch):
    """What their headers say is added up before anything is unpacked."""
    folder = {"tiny-imagenet": "tiny-imagenet-200/", "cifar100": "cifar-100-binary/"}
    for name, pack in (("tiny-imagenet", in_zip), ("cifar100", in_tar)):
        for files in ({"a": bytes(10**6)}, {f"{k}": b"" for k in range(30)}):
            data = tmp_path / f"{name}-{len(files)}"
            download = serve_archive(server, monkeypatch, name, pack({folder[name] + k: v for k, v in files.items()}))
            download = replace(download, most=10_000)
            monkeypatch.setitem(DATASETS._items, name, replace(DATASETS[name], downloads=(download,)))
            with pytest.raises(InputError, match=r"expected at most 80 kB when it is unpacked, got .* or more"):
                download_dataset(name, data)
            assert names(data) == [download.file]


def test_a_header_inside_an_archive_takes_no_memory(server, tmp_path, monkeypatch):
    """Long names and the like are headers of any length."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2**26
    content = gzip.compress(header.tobuf(tarfile.PAX_FORMAT) + bytes(header.size), 1)
    serve_archive(server, monkeypatch, "cifar100", content)
    tracemalloc.start()
    with pytest.raises(InputError, match="expected a whole archive, got "):
        download_dataset("cifar100", tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


@pytest.mark.parametrize("damage", ["encrypted", "method", "lzma", "crc", "cut"])
def test_damaged_archives_are_one_line(server, tmp_path, monkeypatch, damage):
    tar, zipped = bytearray(in_tar(CIFAR100)), bytearray(in_zip({"tiny-imagenet-200/a": b"abc"}))
    first, listed = zipped.index(b"PK\x03\x04"), zipped.index(b"PK\x01\x02")
    if damage == "encrypted":
        zipped[first + 6] = zipped[listed + 8] = 1
    elif damage == "lzma":  # it may ask for any memory
        zipped[first + 8] = zipped[listed + 10] = zipfile.ZIP_LZMA
    elif damage == "method":
        zipped[first + 8] = zipped[listed + 10] = 99
    elif damage == "crc":
        zipped[first + 14] ^= 1
        zipped[listed + 16] ^= 1
    else:
        del tar[-20:]
    name, content = ("cifar100", tar) if damage == "cut" else ("tiny-imagenet", zipped)
    serve_archive(server, monkeypatch, name, bytes(content))
    with pytest.raises(InputError, match="expected a whole archive, got "):
        download_dataset(name, tmp_path)


def test_half_a_folder_is_said_before_the_download(server, tmp_path, monkeypatch, capsys):
    serve_archive(server, monkeypatch, "cifar100", in_tar(CIFAR100))
    (tmp_path / "cifar-100-binary").mkdir()
    (tmp_path / "cifar-100-binary" / "train.bin").write_bytes(b"mine")
    message = fails(["data", "download", "cifar100", "--data", str(tmp_path)], capsys)
    assert "expected a whole data set or no such folder, got one without test.bin; move it away" in message
    assert server.asked == []


def test_what_cannot_be_downloaded(tmp_path, capsys):
    message = fails(["data", "download", "ddsm", "--data", str(tmp_path)], capsys)
    assert "there is no official file to download: make a folder ddsm-thumbs of images and a manifest.csv" in message
    assert run(["data", "download", "digits"]) == 0
    assert capsys.readouterr().out == "digits: comes with scikit-learn, nothing to download\n"
    assert "did you mean 'mnist'?" in fails(["data", "download", "minst"], capsys)
    assert "--json: expected no command beside it, got download" in fails(
        ["data", "--json", "download", "mnist"], capsys
    )
    (tmp_path / "file").write_text("")
    assert "data: expected a folder, got" in fails(
        ["data", "download", "mnist", "--data", str(tmp_path / "file")], capsys
    )


# The list.


def listed(capsys, *arguments):
    assert run(["data", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found["folders"], {row.pop("name"): row for row in found["datasets"]}


def test_the_list(mnist, tmp_path, capsys):
    download_dataset("mnist", tmp_path)
    folders, rows = listed(capsys, "--data", str(tmp_path))
    assert folders == [str(tmp_path), str(user_cache())]
    assert set(rows) == set(DATASETS)
    found = {"found": True, "official": True, "train": 10, "test": 10, "place": str(tmp_path / "mnist")}
    assert rows["mnist"] == found
    assert rows["digits"] == {"found": True, "official": True, "train": 1797, "test": None, "place": "scikit-learn"}
    assert rows["cifar10"] == {"found": False, "official": None, "train": None, "test": None, "place": None}
    assert run(["data", "--data", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DATASETS)
    assert f"looked in: {tmp_path}, {user_cache()}" in shown
    assert "get one with: wcll data download NAME" in shown


def test_the_list_says_what_is_wrong(mnist, tmp_path, capsys):
    download_dataset("mnist", tmp_path)
    labels = tmp_path / "mnist" / FILES[1]
    labels.write_bytes(idx(np.arange(7, dtype=np.uint8)))
    _, rows = listed(capsys, "--data", str(tmp_path))
    assert (rows["mnist"]["official"], rows["mnist"]["train"]) == (False, 7)
    assert run(["data", "--data", str(tmp_path)]) == 0
    assert "not the official file" in capsys.readouterr().out
    labels.write_bytes(b"broken")
    _, rows = listed(capsys, "--data", str(tmp_path))
    assert rows["mnist"]["problem"].startswith(f"{labels}: expected a whole gzip file")
    assert run(["data", "--data", str(tmp_path)]) == 0
    assert "expected a whole gzip file" in capsys.readouterr().out


def test_the_list_decodes_nothing(tmp_path, capsys):
    place = tmp_path / "ddsm-thumbs"
    place.mkdir()
    (place / "manifest.csv").write_text("path,label\na.png,normal\nb.png,benign\n")  # images that are not there
    _, rows = listed(capsys, "--data", str(tmp_path))
    assert rows["ddsm"]["train"] == 2


def test_a_folder_that_is_not_there(tmp_path, capsys):
    assert "data: expected a folder, got" in fails(["data", "--data", str(tmp_path / "no")], capsys)
    assert os.listdir(tmp_path) == []
