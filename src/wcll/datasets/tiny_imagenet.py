"""Tiny ImageNet in its official layout: a folder of images a class to train with, one list of images to test with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from wcll._files import read_bytes
from wcll.datasets.base import Content, Split, check_names
from wcll.datasets.entries import DATASETS, Counts, DatasetSpec, Download
from wcll.datasets.images import read_images
from wcll.exceptions import InputError

SITE = "http://cs231n.stanford.edu/"
ANNOTATIONS = "val/val_annotations.txt"
WORDS = "words.txt"
MOST_LIST = 2**26  #: bytes of a list


def read_tiny_imagenet(folder: Path) -> Content:
    """The classes that have a folder under ``train``, sorted; the official validation images are the test split."""
    wnids = _wnids(folder)
    train = [(path, k) for k, wnid in enumerate(wnids) for path in _train_images(folder, wnid)]
    return Content(_names(folder, wnids), _split(train), _split(_validation(folder, wnids)))


def files(folder: Path) -> list[Path]:
    """Every image and list that is read."""
    wnids = _wnids(folder)
    images = [path for wnid in wnids for path in _train_images(folder, wnid)]
    images += [path for path, _ in _validation(folder, wnids)]
    return [*images, folder / ANNOTATIONS, *([folder / WORDS] if (folder / WORDS).exists() else [])]


def count(folder: Path) -> Counts:
    """From names of files and lines of the list."""
    wnids = _wnids(folder)
    return sum(len(_train_images(folder, wnid)) for wnid in wnids), len(_validation(folder, wnids))


def _split(samples: list[tuple[Path, int]]) -> Split:
    x = read_images([path for path, _ in samples], colour=True)
    if x.shape[1:] != (3, 64, 64):
        raise InputError(str(samples[0][0]), "an image of 64 x 64 pixels", f"{x.shape[3]} x {x.shape[2]}")
    return Split(x, np.array([k for _, k in samples], np.int64))


def _wnids(folder: Path) -> list[str]:
    train = folder / "train"
    wnids = sorted(entry.name for entry in train.iterdir() if entry.is_dir()) if train.is_dir() else []
    if not wnids:
        raise InputError(str(train), "a folder for each class", "none")
    check_names(train, wnids)
    return wnids


def _train_images(folder: Path, wnid: str) -> list[Path]:
    images = folder / "train" / wnid / "images"
    paths = sorted(images.glob("*.JPEG"))
    if not paths:
        raise InputError(str(images), "images named *.JPEG", "none")
    return paths


def _validation(folder: Path, wnids: list[str]) -> list[tuple[Path, int]]:
    """Images of the classes at hand: a selection of classes may come with the whole list."""
    number = {wnid: k for k, wnid in enumerate(wnids)}
    lines = _lines(folder / ANNOTATIONS)
    for i, line in enumerate(lines):
        if len(line) < 2:
            raise InputError(str(folder / ANNOTATIONS), "a file and a class in every line", f"{line} in line {i + 1}")
    if odd := [line[0] for line in lines if line[0] in ("..", "") or "\0" in line[0] or Path(line[0]).name != line[0]]:
        raise InputError(str(folder / ANNOTATIONS), "names of files", repr(odd[0]))
    samples = [(folder / "val" / "images" / line[0], number[line[1]]) for line in lines if line[1] in number]
    if not samples:
        raise InputError(str(folder / ANNOTATIONS), "images of the classes in train", "none")
    return samples


def _names(folder: Path, wnids: list[str]) -> tuple[str, ...]:
    """The first name of each class in words.txt, with its number where two share it; numbers if there is no file."""
    path = folder / WORDS
    words = {line[0]: line[1].split(",")[0] for line in _lines(path) if len(line) > 1} if path.exists() else {}
    names = [words.get(wnid, "").strip() or wnid for wnid in wnids]
    check_names(path, names)
    repeats = Counter(names)
    return tuple(name if repeats[name] == 1 else f"{name} ({wnid})" for name, wnid in zip(names, wnids, strict=True))


def _lines(path: Path) -> list[list[str]]:
    text = read_bytes(path, MOST_LIST).decode("utf-8", "replace")
    return [line.split("\t") for line in text.splitlines() if line.strip()]


DATASETS.register(
    DatasetSpec(
        name="tiny-imagenet",
        read=read_tiny_imagenet,
        count=count,
        folders=("tiny-imagenet-200", "tiny-imagenet"),
        files=("train", ANNOTATIONS),
        opens=files,
        downloads=(Download.of("tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de", SITE),),
    )
)
