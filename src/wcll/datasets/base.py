"""What a data set is once it has been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._validation import BoolArray, IntArray
from wcll.exceptions import InputError

MOST_DIGITS = 640  #: of a label that is taken for a number; Python may refuse more


@dataclass(frozen=True, eq=False)
class Split:
    """Samples and their labels, straight from files.

    Where complementary labels are given, they are what is learned from: true labels are for evaluation only, and need
    not be known.
    """

    x: NDArray[Any]  #: uint8 images (n, h, w) or (n, c, h, w), or float features (n, d)
    y: IntArray  #: (n,) true labels as class indices; -1: not known
    groups: NDArray[Any] | None = None  #: (n,) samples of one group must stay on one side of a split
    #: complementary labels that are given: (n,) class indices if every sample has exactly one, else a mask (n, k) of
    #: the classes that are ruled out, at least one and not all a row; None: there are none
    ybar: IntArray | BoolArray | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def known(self) -> bool:
        """Whether every true label is."""
        return bool((self.y >= 0).all())

    def take(self, which: IntArray | BoolArray) -> Split:
        """Some of the samples."""
        groups = None if self.groups is None else self.groups[which]
        return Split(self.x[which], self.y[which], groups, None if self.ybar is None else self.ybar[which])


@dataclass(frozen=True, eq=False)
class Content:
    """What a reader finds in files; :class:`Dataset` adds where they came from."""

    classes: tuple[str, ...]
    train: Split
    test: Split | None
    scale: float = 255.0


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images or features with their labels, and where they came from."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split | None  #: None: there is no official test split
    scale: float  #: ``x / scale`` lies in [0, 1]; 1 for features, which are taken as they are
    official: bool  #: every file was found to be the official one
    fingerprint: str  #: of x, y and ybar (if given) of both splits: results say with it which data they saw
    place: str  #: the folder or file, or the package that brings the data
    stamp: str = ""  #: of what the files hold that were read: they may change under the same name

    def only(self, classes: Sequence[int]) -> Dataset:
        """Some of the classes, renumbered in the given order; samples are chosen by their true labels."""
        self._check_choice(classes)
        wanted = np.asarray(classes)
        known = wanted.ndim == 1 and wanted.dtype.kind in "iu" and np.isin(wanted, np.arange(len(self.classes))).all()
        if not known or len(wanted) == 0 or len(np.unique(wanted)) != len(wanted):
            raise InputError("classes", f"different class indices from 0 to {len(self.classes) - 1}", list(classes))
        number = np.full(len(self.classes), -1)
        number[wanted] = np.arange(len(wanted))
        train = _renumbered(self.train, number)
        test = None if self.test is None else _renumbered(self.test, number)
        names = tuple(self.classes[k] for k in wanted)
        return replace(self, classes=names, train=train, test=test, fingerprint=fingerprint(train, test))

    def _check_choice(self, classes: Sequence[int]) -> None:
        """Fail where samples cannot be chosen by their true labels, or their given labels would be lost."""
        splits = [split for split in (self.train, self.test) if split is not None]
        if any(split.ybar is not None for split in splits):
            expected = f"all classes of dataset {self.name!r}, whose complementary labels are given"
            lost = "labels of classes that are left out would lose their meaning"
            raise InputError("classes", expected, list(classes), lost)
        if unknown := sum(int((split.y < 0).sum()) for split in splits):
            raise InputError("classes", f"true labels of every sample in dataset {self.name!r}", f"{unknown} without")

    def reduced(self, pixels: int) -> Dataset:
        """Square images with so many pixels a side, each the mean of a block of pixels."""
        train = replace(self.train, x=_reduced(self.name, self.train.x, pixels))
        test = None if self.test is None else replace(self.test, x=_reduced(self.name, self.test.x, pixels))
        return replace(self, train=train, test=test, fingerprint=fingerprint(train, test))


def dataset(name: str, content: Content, official: bool, place: str) -> Dataset:
    """What was read, with its origin and its fingerprint."""
    train, test = content.train, content.test
    return Dataset(name, content.classes, train, test, content.scale, official, fingerprint(train, test), place)


def fingerprint(train: Split, test: Split | None) -> str:
    """A short digest of samples and labels, true and given: the same for the same arrays, wherever they lie."""
    hasher = blake2b(digest_size=8)
    for split in (train, test):
        arrays = () if split is None else (split.x, split.y, split.ybar)
        for array in (array for array in arrays if array is not None):
            hasher.update(f"{array.dtype.str} {array.shape};".encode())
            hasher.update(np.ascontiguousarray(array).data)
        hasher.update(b"|")
    return hasher.hexdigest()


def label_indices(path: Path, y: NDArray[Any], n_classes: int) -> IntArray:
    """Labels of a file as class indices, if there are any and all are in range."""
    if len(y) == 0:
        raise InputError(str(path), "at least one sample", "none")
    if y.max() >= n_classes:
        raise InputError(str(path), f"labels from 0 to {n_classes - 1}", f"{y.max()} in sample {y.argmax()}")
    return y.astype(np.int64)


def check_names(path: Path, names: Sequence[str]) -> None:
    """Fail unless every name of a class can be shown and told from the others."""
    for name in names:
        if not name.strip() or "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(str(path), "names of classes that are text, none of them blank", repr(name))


def some_names(names: Sequence[str]) -> str:
    """Names in a sentence: the first ones, if there are many.

    >>> some_names(["a", "b"]), some_names(list("abcdefghijklmn"))
    ('a, b', 'a, b, c, d, e, f, g, h, i, j and 4 more')
    """
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Different labels, sorted: as numbers if all are whole numbers, else as text."""
    names = sorted(set(labels))
    if all(name.removeprefix("-").isdecimal() and len(name) <= MOST_DIGITS for name in names):
        names.sort(key=int)
    return tuple(names)


def _reduced(name: str, x: NDArray[Any], pixels: int) -> NDArray[Any]:
    """Images (..., side, side) with another side; bytes stay bytes, rounded (halves up)."""
    *others, height, width = x.shape
    if x.ndim < 3 or height != width:
        raise InputError("pixels", f"square images in dataset {name!r}", f"samples of shape {x.shape[1:]}")
    if pixels < 1 or height % pixels:
        raise InputError("pixels", f"a divisor of {height}, the side of the images in dataset {name!r}", pixels)
    block = height // pixels
    blocks = x.reshape(*others, pixels, block, pixels, block)
    if x.dtype.kind == "f":
        means: NDArray[Any] = blocks.mean(axis=(-3, -1), dtype=x.dtype)
        return means
    rounded: NDArray[Any] = (blocks.sum(axis=(-3, -1), dtype=np.uint32) + block**2 // 2) // block**2
    return rounded.astype(x.dtype)


def _renumbered(split: Split, number: IntArray) -> Split:
    kept = split.take(number[split.y] >= 0)
    return replace(kept, y=number[kept.y])
