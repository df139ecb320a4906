"""CIFAR-10 and CIFAR-100, binary versions: records of one or two label bytes and 3072 pixels in planes R, G, B."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from wcll._files import check_file, read_bytes
from wcll._memory import check_memory
from wcll.datasets.base import Content, Split, check_names, label_indices
from wcll.datasets.entries import DATASETS, Counts, DatasetSpec, Download
from wcll.exceptions import InputError

SITE = "https://www.cs.toronto.edu/~kriz/"
PIXELS = 3 * 32 * 32
MOST_NAMES = 2**16  #: bytes of a list of names

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

CIFAR10_FILES = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
CIFAR100_FILES = ("train.bin", "test.bin")
CIFAR100_NAMES = "fine_label_names.txt"


def read_records(path: Path, n_classes: tuple[int, ...]) -> Split:
    """One file, whose records start with as many labels as there are ``n_classes``; the last one is the finest."""
    n_labels = len(n_classes)
    n = _n_records(path, n_labels)
    check_memory(str(path), f"{n} records", 2 * n * (n_labels + PIXELS))
    records = np.fromfile(path, np.uint8, n * (n_labels + PIXELS)).reshape(-1, n_labels + PIXELS)
    for column, k in enumerate(n_classes):
        y = label_indices(path, records[:, column], k)
    return Split(np.ascontiguousarray(records[:, n_labels:]).reshape(-1, 3, 32, 32), y)


def read_cifar10(folder: Path) -> Content:
    """Five files to train with, joined, and one to test with."""
    *train, test = (read_records(folder / name, (10,)) for name in CIFAR10_FILES)
    x, y = (np.concatenate([getattr(split, array) for split in train]) for array in ("x", "y"))
    return Content(CIFAR10_CLASSES, Split(x, y), test)


def read_cifar100(folder: Path) -> Content:
    """One file each to train and to test with; the fine labels."""
    train, test = (read_records(folder / name, (20, 100)) for name in CIFAR100_FILES)
    return Content(_cifar100_classes(folder / CIFAR100_NAMES), train, test)


def cifar100_files(folder: Path) -> list[Path]:
    """The records, and the names of classes if they are there."""
    names = folder / CIFAR100_NAMES
    return [*(folder / name for name in CIFAR100_FILES), *([names] if names.exists() else [])]


def count_records(folder: Path, files: Iterable[str], n_labels: int) -> Counts:
    """From the sizes of the files, of which the last is to test with."""
    *train, test = (_n_records(folder / name, n_labels) for name in files)
    return sum(train), test


def _n_records(path: Path, n_labels: int) -> int:
    check_file(path)
    n, rest = divmod(path.stat().st_size, n_labels + PIXELS)
    if rest:
        raise InputError(str(path), f"whole records of {n_labels + PIXELS} bytes", f"{n} and {rest} bytes more")
    return n


def _cifar100_classes(path: Path) -> tuple[str, ...]:
    """The names that come with the data; numbers if the file was left out."""
    if not path.exists():
        return tuple(map(str, range(100)))
    names = tuple(read_bytes(path, MOST_NAMES).decode("utf-8", "replace").split())
    if len(names) != 100:
        raise InputError(str(path), "100 names, one a line", len(names))
    check_names(path, names)
    return names


DATASETS.register(
    DatasetSpec(
        name="cifar10",
        read=read_cifar10,
        count=partial(count_records, files=CIFAR10_FILES, n_labels=1),
        folders=("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin", "cifar10"),
        files=tuple(CIFAR10_FILES),
        checksums=CIFAR10_FILES,
        downloads=(Download.of("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", SITE),),
    )
)
DATASETS.register(
    DatasetSpec(
        name="cifar100",
        read=read_cifar100,
        count=partial(count_records, files=CIFAR100_FILES, n_labels=2),
        folders=("cifar-100-binary", "cifar100/cifar-100-binary", "cifar100"),
        files=CIFAR100_FILES,
        opens=cifar100_files,
        downloads=(Download.of("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", SITE),),
    )
)
