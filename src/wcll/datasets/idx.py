"""MNIST and the sets that share its format: idx files, compressed or not."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from wcll._files import check_file
from wcll._memory import check_memory
from wcll.datasets.base import Content, Split, label_indices
from wcll.datasets.entries import DATASETS, Counts, DatasetSpec, Download, located
from wcll.datasets.npy import read_raw
from wcll.exceptions import InputError

Names = tuple[str, ...]
IMAGES, LABELS = 3, 1  # numbers of axes, which the magic number states

FILES = tuple(f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """An array of bytes with this many axes; no more is unpacked than its header says, and one byte to see the end."""
    with _opened(path) as file:
        shape = _shape(path, file.read(4 + 4 * n_axes), n_axes)
        size = math.prod(shape)
        check_memory(str(path), f"an array of shape {shape}", size)
        array = read_raw(file, size)
        found = len(array) + len(file.read(1))
    if found != size:
        raise InputError(str(path), f"{size} bytes after its header", f"{found}{' or more' * (found > size)}")
    return array.reshape(shape)


def read_folder(folder: Path, classes: Names) -> Content:
    """The four files of one set."""
    train_x, train_y, test_x, test_y = (_path(folder, name) for name in FILES)
    return Content(classes, _split(train_x, train_y, len(classes)), _split(test_x, test_y, len(classes)))


def count(folder: Path) -> Counts:
    """Numbers of labels, from the headers."""
    train, test = (_count(_path(folder, FILES[i])) for i in (1, 3))
    return train, test


def _split(images: Path, labels: Path, n_classes: int) -> Split:
    x, y = read_idx(images, IMAGES), read_idx(labels, LABELS)
    if 0 in x.shape[1:]:
        raise InputError(str(images), "images of at least one pixel", f"shape {x.shape}")
    if len(x) != len(y):
        raise InputError(str(images), f"{len(y)} images, as many as labels in {labels.name}", len(x))
    return Split(x, label_indices(labels, y, n_classes))


def _path(folder: Path, name: str) -> Path:
    path = located(folder, name)
    if path is None:
        raise InputError(str(folder), f"the file {name}", "none")
    return path


def _count(labels: Path) -> int:
    with _opened(labels) as file:
        return _shape(labels, file.read(8), LABELS)[0]


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file, unpacked while it is read if it is packed."""
    check_file(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(str(path), "a whole gzip file", str(error)) from None


def _shape(path: Path, content: bytes, n_axes: int) -> tuple[int, ...]:
    """The header: two zero bytes, 8 for bytes, the number of axes, then the length of each."""
    magic, header = content[:4], content[4 : 4 + 4 * n_axes]
    if magic != bytes([0, 0, 8, n_axes]):
        raise InputError(str(path), f"an idx file that starts with 0x{0x800 + n_axes:08x}", f"0x{magic.hex()}")
    if len(header) < 4 * n_axes:
        raise InputError(str(path), f"a header of {4 + 4 * n_axes} bytes", f"{len(content)} bytes")
    return tuple(int(length) for length in np.frombuffer(header, ">u4"))


def _register(name: str, folders: Names, classes: Names, urls: Names, packed: Names, unpacked: Names = ()) -> None:
    """``packed`` and ``unpacked``: MD5 of the four files with and without compression, in the order of FILES."""
    digests = dict(zip(FILES, packed, strict=True))
    plain = dict(zip((file.removesuffix(".gz") for file in FILES), unpacked, strict=False))
    DATASETS.register(
        DatasetSpec(
            name=name,
            read=partial(read_folder, classes=classes),
            count=count,
            folders=folders,
            files=FILES,
            checksums=digests | plain,
            downloads=tuple(Download.of(file, digest, *urls) for file, digest in digests.items()),
        )
    )


_register(
    "mnist",
    ("mnist", "MNIST/raw", "MNIST"),
    tuple("0123456789"),
    ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    (
        *("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
        *("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    (
        *("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
        *("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
    ),
)
_register(
    "fashion-mnist",
    ("fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "fashion_mnist"),
    ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    (
        *("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"),
        *("bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
)
_register(
    "kmnist",
    ("kmnist", "KMNIST/raw", "KMNIST"),
    ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
    (
        *("bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344"),
        *("5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134"),
    ),
)
