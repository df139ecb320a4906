"""Tiny data in every format, for tests of whatever reads data."""

from __future__ import annotations

import gzip
from importlib.util import find_spec

import numpy as np
import pytest

from wcll.datasets import DATASETS
from wcll.datasets.idx import FILES

Image = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)


def bytes_of(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def write_idx(folder, packed=True, labels=range(10)):
    """Ten images to train and to test with."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = [idx(bytes_of(10, 4, 4)), idx(np.array(labels, np.uint8))] * 2
    for name, content in zip(FILES, contents, strict=True):
        if packed:
            (folder / name).write_bytes(gzip.compress(content))
        else:
            (folder / name.removesuffix(".gz")).write_bytes(content)
    return folder


def records(*labels):
    return b"".join(bytes(np.atleast_1d(label).tolist()) + bytes_of(3072).tobytes() for label in labels)


def write_cifar10(folder):
    folder.mkdir(parents=True)
    for k, name in enumerate(DATASETS["cifar10"].files):
        (folder / name).write_bytes(records(k, 9 - k))
    return folder


def write_cifar100(folder, names=True):
    folder.mkdir(parents=True)
    (folder / "train.bin").write_bytes(records([0, 99], [19, 3], [4, 0]))
    (folder / "test.bin").write_bytes(records([1, 7]))
    if names:
        (folder / "fine_label_names.txt").write_text("".join(f"class_{k}\n" for k in range(100)))
    return folder


def save_image(path, *shape):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(bytes_of(*shape)).save(path)


def write_tiny_imagenet(folder):
    for wnid in ("n02", "n01"):
        for i in range(3):
            save_image(folder / "train" / wnid / "images" / f"{wnid}_{i}.JPEG", 64, 64, *[3] * (i > 0))
    for i in range(2):
        save_image(folder / "val" / "images" / f"val_{i}.JPEG", 64, 64, 3)
    rows = ["val_0.JPEG\tn02\t0\t0\t9\t9", "val_1.JPEG\tn01\t0\t0\t9\t9", "val_2.JPEG\tn09\t0\t0\t9\t9"]
    (folder / "val" / "val_annotations.txt").write_text("\n".join(rows) + "\n")
    (folder / "words.txt").write_text("n01\tnewt, triton\nn02\tgoldfish, Carassius auratus\nn09\tfrog\n")
    return folder


def write_manifest(folder, labels=("normal", "cancer", "benign"), **columns):
    for i, label in enumerate(labels):
        save_image(folder / label / f"{i}.png", 6, 5)
    columns = {"path": [f"{label}/{i}.png" for i, label in enumerate(labels)], "label": labels, **columns}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_npz(path, **arrays):
    np.savez(path, **{"x": bytes_of(4, 3, 3), "y": np.array([0, 1, 2, 1]), **arrays})
    return path


def write_parquet(path, **columns):
    """A table of features and labels; lists and arrays of Arrow alike."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path)
    return path


#: What a user calls the data, and how they come into a folder.
EVERY_READER = {
    "own.npz": lambda data: write_npz(data / "own.npz", classes=np.array(["a", "b", "c"]), groups=np.arange(4)),
    "own": lambda data: write_manifest(data / "own", labels=("a", "b", "c"), case=["p", "q", "q"]),
    "own.parquet": lambda data: write_parquet(
        data / "own.parquet",
        a=[1.5, 2.5, 3.5],
        label=["a", "b", "c"],
        not_label=[["b"], ["c", "a"], ["a"]],
        group=[1, 1, 2],
    ),
    "ddsm": lambda data: write_manifest(data / "ddsm", labels=("normal", "benign", "cancer")),
    "mnist": lambda data: write_idx(data / "mnist"),
    "kmnist": lambda data: write_idx(data / "kmnist", packed=False),
    "cifar10": lambda data: write_cifar10(data / "cifar10"),
    "cifar100": lambda data: write_cifar100(data / "cifar100"),
    "tiny-imagenet": lambda data: write_tiny_imagenet(data / "tiny-imagenet"),
}
if find_spec("pyarrow") is None:
    del EVERY_READER["own.parquet"]
