"""Files that are damaged, hostile or no files at all: one line each, soon, and no memory for what they only claim."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import socket
import sys
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tiny_data import (
    EVERY_READER,
    Image,
    bytes_of,
    idx,
    save_image,
    write_cifar10,
    write_idx,
    write_manifest,
    write_npz,
    write_tiny_imagenet,
)
from wcll.cli.app import run
from wcll.cli.files import read_labels
from wcll.datasets import DATASETS, load_dataset
from wcll.datasets.folders import data_folders
from wcll.datasets.idx import FILES
from wcll.exceptions import InputError

READERS = {name: write for name, write in EVERY_READER.items() if name != "ddsm"}  # which "own" is like
every_reader = pytest.mark.parametrize("name", READERS)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**6)


def error(name, data=None):
    """The one line that is said of data, or nothing if they can be read after all."""
    try:
        load_dataset(str(name), data)
    except InputError as caught:
        return str(caught)
    return ""


# Every reader, in many ways.


def flipped(content, rng):
    spoilt = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if spoilt:
            spoilt[rng.randrange(len(spoilt))] = rng.choice([0, 1, 8, 10, 34, 39, 44, 127, 128, 255])
    return bytes(spoilt)


def head_flipped(content, rng):
    return flipped(content[:40], rng) + content[40:]


def inserted(content, rng):
    place = rng.randint(0, len(content))
    return content[:place] + rng.choice([b"\0", b"\n", b",", b"\xff" * 9, b"9" * 5000, b'"', b"\t"]) + content[place:]


DAMAGES = {
    "cut": lambda content, rng: content[: rng.randrange(len(content) or 1)],
    "empty": lambda content, rng: b"",
    "flipped": flipped,
    "head": head_flipped,
    "inserted": inserted,
    "twice": lambda content, rng: content + content,
    "noise": lambda content, rng: rng.randbytes(rng.randint(1, 300)),
}


@every_reader
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_one_line(name, damage, tmp_path):
    READERS[name](tmp_path)
    rng = random.Random(f"{name} {damage}")
    paths = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for _ in range(12):
        path = rng.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(DAMAGES[damage](whole, rng))
        error(name, tmp_path)
        if name in DATASETS:
            with suppress(InputError):
                DATASETS[name].count(tmp_path / name)
        path.write_bytes(whole)
    assert error(name, tmp_path) == ""


@every_reader
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device", "loop", "dangling"])
def test_what_is_no_file_is_one_line(name, kind, tmp_path, monkeypatch):
    """A pipe would be waited for, and a device may never end."""
    READERS[name](tmp_path)
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        if path.name == "val_2.JPEG":
            continue
        whole = path.read_bytes()
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            monkeypatch.chdir(path.parent)
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(path.name)  # a whole path may be too long
        elif kind == "device":
            path.symlink_to("/dev/urandom")
        else:
            path.symlink_to(path if kind == "loop" else "nowhere")
        message = error(name, tmp_path)
        optional = path.name in ("words.txt", "fine_label_names.txt") and kind in ("loop", "dangling")
        assert message or optional, path
        if name in DATASETS and len(list(path.parent.iterdir())) < 5:
            assert run(["data", "--data", str(tmp_path)]) == 0
        path.rmdir() if kind == "folder" else path.unlink()
        path.write_bytes(whole)
    assert error(name, tmp_path) == ""


def test_a_file_in_place_of_a_folder(tmp_path):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet")
    for place in ("train/n01/images", "train", "val/images", "val"):
        shutil.rmtree(folder / place)
        (folder / place).write_bytes(b"")
        assert error("tiny-imagenet", tmp_path)
    blocked = tmp_path / "mnist"
    blocked.write_bytes(b"")
    assert "dataset 'mnist': expected" in error("mnist", tmp_path)


# Arrays.


def header(descr, shape, fortran="False", extra=""):
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, {extra}}}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text


HEADERS = {
    "elements": header("'<f8'", "(1000000000000,)"),
    "more than fit in a number": header("'<f8'", "(9" + "9" * 40 + ",)"),
    "axes": header("'|u1'", "(" + "2," * 100 + ")"),
    "bytes": header("'S999999999'", "(9,)"),
    "text": header("'<U99999999'", "(9,)"),
    "no characters": header("'<U0'", "(1000000000000,)"),
    "no text": header("'|S0'", "(1000000000000,)"),
    "objects": header("'|O'", "(3,)"),
    "structured": header("[('a', '<f8')]", "(3,)"),
    "subarray": header("('<f8', (100000, 100000))", "(3,)"),
    "void": header("'|V8'", "(3,)"),
    "dates": header("'<M8[D]'", "(3,)"),
    "negative": header("'<f8'", "(-3,)"),
    "truth": header("'<f8'", "(True,)"),
    "numbers": header("'<f8'", "(3.5,)"),
    "no shape": header("'<f8'", "3"),
    "no type": header("'nonsense'", "(3,)"),
    "type of numbers": header("17", "(3,)"),
    "alias": header("'a5'", "(3,)"),
    "fortran": header("'<f8'", "(3,)", fortran="7"),
    "more": header("'<f8'", "(3,)", extra="'more': 1"),
    "unhashable": header("'<f8'", "(3,)", extra="[]: 1"),
    "deep": header("'<f8'", "(" * 3000 + ")" * 3000),
    "digits": header("'<f8'", "(" + "9" * 5000 + ",)"),
    "escape": header(r"'\d'", "(3,)"),
    "python 2": header("'<f8'", "(1000000000000L,)"),
    "length": b"\x93NUMPY\2\0\xff\xff\xff\xff{",
    "version": b"\x93NUMPY\3\0\x10\0\0\0" + b" " * 16,
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00.",
    "zip": b"PK\x03\x04",
    "nothing": b"",
}


def zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def in_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


WHOLE = {"x.npy": in_npy(np.eye(4)), "y.npy": in_npy(np.array([0, 1, 2, 1]))}


@pytest.mark.parametrize("claim", HEADERS)
@pytest.mark.parametrize("member", ["x.npy", "y.npy", "ybar.npy", "classes.npy"])
def test_headers_that_claim_too_much(tmp_path, claim, member):
    path = zipped(tmp_path / "a.npz", {**WHOLE, member: HEADERS[claim] + bytes(100)})
    assert f"{path}: expected " in error(path)


@pytest.mark.parametrize("claim", HEADERS)
def test_labels_that_claim_too_much(tmp_path, claim, capsys):
    path = tmp_path / "y.npy"
    path.write_bytes(HEADERS[claim] + bytes(100))
    with pytest.raises(InputError, match=r"y\.npy: expected "):
        read_labels(path, None)
    np.save(tmp_path / "ok.npy", np.arange(6) % 3)
    out = str(tmp_path / "o.csv")
    assert run(["simulate", str(path), "--out", out]) == 2
    assert run(["simulate", str(tmp_path / "ok.npy"), "--transition", str(path), "--out", out]) == 2
    assert all(line.startswith("wcll: error: ") for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("array", [np.array([0, 1, 2, 1]), np.array(["a", "b", "a", "c"])])
def test_every_byte_of_a_header(tmp_path, array):
    content = in_npy(array)
    text = content.index(b"}") + 2
    for place in (*range(text), *range(len(content) - array.nbytes - 1, len(content), 3)):
        for byte in (0, 39, 44, 57, 255, content[place] ^ 1):
            spoilt = content[:place] + bytes([byte]) + content[place + 1 :]
            (tmp_path / "y.npy").write_bytes(spoilt)
            with suppress(InputError):
                read_labels(tmp_path / "y.npy", None)
            if byte == 57:
                error(zipped(tmp_path / "a.npz", {**WHOLE, "y.npy": spoilt}, zipfile.ZIP_STORED))


def test_arrays_that_do_not_fit_are_not_unpacked(tmp_path, little_memory):
    """They are as long as they say, but small in their archive."""
    for array in (np.zeros((4, 100_000)), np.zeros((4, 300_000), bool)):
        path = zipped(tmp_path / "a.npz", {**WHOLE, "x.npy": in_npy(array)})
        tracemalloc.start()
        assert "expected at most 1 MB, which is free, got " in error(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * 10**6
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["encrypted", "method", "crc", "lzma", "name", "no npy"])
def test_archives_of_odd_kinds(tmp_path, kind):
    path = zipped(tmp_path / "a.npz", WHOLE, zipfile.ZIP_LZMA if kind == "lzma" else zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    first, listed = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    if kind == "encrypted":
        content[first + 6] = content[listed + 8] = 1
    elif kind == "method":
        content[first + 8] = content[listed + 10] = 99
    elif kind == "crc":
        content[first + 14] ^= 1
        content[listed + 16] ^= 1
    elif kind == "name":
        content[listed + 46] ^= 1
    path.write_bytes(content)
    if kind == "no npy":
        zipped(path, {"x.npy": b"text", "y.npy": b"text", "x": b"text"})
    assert f"{path}: expected " in error(path)


@pytest.mark.parametrize(
    "labels", [["a", ""], ["a", " "], ["a", "b\0c"], ["9" * 5000, "8" * 5000], ["a", "b" * 100_000]]
)
def test_odd_labels(tmp_path, labels, capsys):
    fine = "9" in labels[0] or "bb" in labels[1]
    y = np.array(labels * 2)
    assert (error(write_npz(tmp_path / "a.npz", y=y)) == "") == fine
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "y.csv").write_text("label\n" + "\n".join(labels * 2) + "\n")
    for name in ("y.npy", "y.csv"):
        code = run(["simulate", str(tmp_path / name), "--out", str(tmp_path / "o.csv"), "--force"])
        assert code == (0 if fine else 2)
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c", "d"))
    rows = [f"{k}/{i}.png,{label}" for i, (k, label) in enumerate(zip("abcd", labels * 2, strict=True))]
    (folder / "manifest.csv").write_text("path,label\n" + "\n".join(rows) + "\n")
    assert (error(folder) == "") == fine
    assert "Traceback" not in capsys.readouterr().err


def test_characters_that_are_none(tmp_path):
    for point in (0xD800, 0x110000, 0xFFFFFFFF):
        y = np.array([97, point], np.uint32).view("<U1")
        path = zipped(tmp_path / "a.npz", {**WHOLE, "y.npy": in_npy(np.concatenate([y, y]))})
        assert "characters that are none" in error(path)


def test_numbers_that_become_too_large(tmp_path):
    if np.finfo(np.longdouble).max > 1e309:
        x = np.full((4, 2), np.longdouble(10) ** 400)
        assert "expected finite numbers in x" in error(write_npz(tmp_path / "a.npz", x=x))


# Bytes of images.


def test_what_follows_the_images_is_not_unpacked(tmp_path):
    folder = write_idx(tmp_path / "mnist")
    (folder / FILES[0]).write_bytes(gzip.compress(idx(bytes_of(10, 4, 4)) + bytes(3 * 10**7)))
    tracemalloc.start()
    assert "expected 160 bytes after its header, got 161" in error("mnist", tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@pytest.mark.parametrize("shape", [(2**32 - 1,) * 3, (10, 2**31, 2**31), (10, 10**4, 10**3)])
def test_images_that_are_only_claimed(tmp_path, little_memory, shape):
    folder = write_idx(tmp_path / "mnist")
    (folder / FILES[0]).write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + np.array(shape, ">u4").tobytes()))
    assert f"{folder / FILES[0]}: expected at most 1 MB, which is free, got " in error("mnist", tmp_path)


@pytest.mark.parametrize("shape", [(10, 0, 0), (10, 0, 4), (10, 4, 0)])
def test_images_without_pixels(tmp_path, shape):
    folder = write_idx(tmp_path / "mnist")
    for name in (FILES[0], FILES[2]):
        (folder / name).write_bytes(gzip.compress(idx(np.zeros(shape, np.uint8))))
    assert f"{folder / FILES[0]}: expected images of at least one pixel, got " in error("mnist", tmp_path)


def test_records_that_do_not_fit(tmp_path, monkeypatch):
    write_cifar10(tmp_path / "cifar10")
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 5000)
    assert "data_batch_1.bin: expected at most 5 kB, which is free, got " in error("cifar10", tmp_path)


# Folders of images.


def test_images_that_do_not_fit_together(tmp_path, little_memory):
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    for path in folder.glob("*/*.png"):
        save_image(path, 700, 700)
    assert f"{folder / 'a' / '0.png'}: expected at most 1 MB, which is free, got 3 images of its size" in error(folder)


def test_a_large_image_among_small_ones_is_not_decoded(tmp_path, monkeypatch):
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    large = folder / "b" / "1.png"
    Image.new("L", (3000, 3000)).save(large)
    convert = Image.Image.convert
    monkeypatch.setattr(Image.Image, "convert", lambda image, mode: small(image) and convert(image, mode))

    def small(image):
        assert image.size == (5, 6)
        return True

    assert error(folder) == f"{large}: expected an image of 5 x 6 pixels as 0.png, got 3000 x 3000 pixels"


def test_an_image_of_144_megapixels(tmp_path, recwarn):
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    large = folder / "b" / "1.png"
    Image.new("1", (12_000, 12_000)).save(large)
    assert f"{large}: expected an image that can be read, got 12000 x 12000 pixels, more than" in error(folder)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"path,label,label\na/0.png,a,b\n", "expected one column label, got 2"),
        (b"path,path,label\na/0.png,a/0.png,b\n", "expected one column path, got 2"),
        (b"path,label\na/0.png,a\0\n", "row 1"),
        (b"path,label\na/0\0.png,a\n", "row 1"),
        (b"path,label,case\na/0.png,a,\0\n", "row 1"),
        (b"path,label\na/0.png, \n", "expected a label in every row, got an empty one in row 1"),
        (b"path,label\na/0.png," + b"x" * 200_000 + b"\n", "field larger than field limit"),
        (b"path,label\n" + b"a/" * 4000 + b"0.png,a\n", "expected a file for every row"),
        (b"path,label\na/0.png,\xff\n", "expected a CSV file with a header line"),
        (b"\xff\xfep\0a\0t\0h\0", "expected a CSV file with a header line"),
        (b"\0" * 1000, "expected columns path and label"),
    ],
)
def test_odd_manifests(tmp_path, table, message):
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    (folder / "manifest.csv").write_bytes(table)
    assert message in error(folder)


def test_a_table_that_does_not_fit(tmp_path, little_memory):
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    (folder / "manifest.csv").write_text("path,label\n" + "a/0.png,a\n" * 10_000)
    assert "manifest.csv: expected at most 1 MB, which is free, got " in error(folder)
    (tmp_path / "y.csv").write_text("y\n" + "1\n2\n" * 10_000)
    with pytest.raises(InputError, match="expected at most 1 MB, which is free, got "):
        read_labels(tmp_path / "y.csv", None)


def test_one_long_name_among_many(tmp_path, little_memory):
    """An array of text gives every name the room of the longest."""
    (tmp_path / "y.csv").write_text("y\n" + "a\n" * 100 + "b" * 5000 + "\n")
    with pytest.raises(InputError, match="expected at most 1 MB, which is free, got "):
        read_labels(tmp_path / "y.csv", None)
    folder = write_manifest(tmp_path / "own", labels=("a", "b", "c"))
    rows = ["a/0.png,a,p"] * 100 + ["b/1.png,b," + "q" * 5000]
    (folder / "manifest.csv").write_text("path,label,case\n" + "\n".join(rows) + "\n")
    assert "expected at most 1 MB, which is free, got " in error(folder)


@pytest.mark.parametrize("name", ["../images/val_0.JPEG", "/etc/hostname", "a/../val_0.JPEG", ".."])
def test_a_list_of_images_leads_nowhere_else(tmp_path, name):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet")
    (folder / "val" / "val_annotations.txt").write_text(f"{name}\tn01\n")
    assert "expected names of files, got " in error("tiny-imagenet", tmp_path)


# Names.


def test_homes_of_nobody(tmp_path, capsys):
    name = "~nosuchuser/x.npz"
    assert "~nosuchuser/x.npz" in error(name)
    assert "~nosuchuser" in error("mnist", Path("~nosuchuser"))
    with pytest.raises(InputError, match="~nosuchuser"):
        data_folders(Path("~nosuchuser/x"))
    for arguments in (["data"], ["data", "download", "mnist"]):
        assert run([*arguments, "--data", "~nosuchuser"]) == 2
        assert "~nosuchuser" in capsys.readouterr().err


def test_a_home_of_nobody_in_the_environment(monkeypatch):
    monkeypatch.setenv("WCLL_DATA", "~nosuchuser/x")
    assert "WCLL_DATA: expected a folder, got ~nosuchuser/x" in error("mnist")


@pytest.mark.parametrize(
    "name", ["x" * 5000, "a/" + "x" * 5000 + ".npz", "a\0b", "a/\0.npz", "\udcff/x.npz", "a/\n.npz"]
)
def test_odd_names_of_data(name, tmp_path):
    assert error(name)
    assert error(name, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes on Linux alone")
def test_folders_whose_names_are_no_text(tmp_path, capsys):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet")
    (folder / "train" / "n01").rename(folder / "train" / "n\udcff")
    assert "expected names of classes that are text" in error("tiny-imagenet", tmp_path)
    (folder / "train" / "n\udcff").rename(folder / "train" / "n01")
    odd = tmp_path / "\udcff"
    odd.mkdir()
    folder.rename(odd / "tiny-imagenet")
    assert run(["data", "--data", str(odd)]) == 0
    assert run(["data", "--data", str(odd), "--json"]) == 0
    assert "Traceback" not in capsys.readouterr().err
