"""Complementary labels that come with the data, one or several a sample: lists and masks in one form, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wcll._memory import check_memory
from wcll._validation import BoolArray, IntArray
from wcll.datasets.base import check_names, some_names
from wcll.exceptions import InputError

PAIR = 48  #: bytes in memory for one label of one sample: both, and copies that are sorted


@dataclass(frozen=True)
class Source:
    """Where labels were found, for the line that says what is wrong with them."""

    path: Path
    name: str  #: of the array or column
    sample: Callable[[int], str] = "sample {}".format  #: a sample, as people find it in this kind of file
    remedy: str = ""  #: where labels leave no class


def from_pairs(source: Source, shape: tuple[int, int], rows: IntArray, labels: IntArray) -> IntArray | BoolArray:
    """What :attr:`wcll.datasets.Split.ybar` holds, of pairs of a sample and a class that is ruled out.

    Pairs may come in any order and more than once; ``shape`` is the number of samples and of classes.
    """
    n, k = shape
    check_memory(str(source.path), f"{len(rows)} labels in {source.name}", PAIR * len(rows))
    pairs = np.unique(rows * k + labels)
    rows, labels = np.divmod(pairs, k)
    counts = np.bincount(rows, minlength=n)
    _check_counts(source, counts, k)
    if (counts == 1).all():
        return labels
    check_memory(str(source.path), f"a mask of {n} samples and {k} classes", n * k)
    mask = np.zeros(shape, dtype=bool)
    mask[rows, labels] = True
    return mask


def from_mask(source: Source, mask: BoolArray) -> IntArray | BoolArray:
    """What :attr:`wcll.datasets.Split.ybar` holds, of a mask of the classes that are ruled out."""
    counts = mask.sum(axis=1)
    _check_counts(source, counts, mask.shape[1])
    return mask.argmax(axis=1) if (counts == 1).all() else mask


def check_classes(path: Path, classes: Sequence[str]) -> None:
    """Fail unless there are classes to tell apart, each with a name."""
    check_names(path, classes)
    if len(classes) < 2:
        raise InputError(str(path), "labels of at least two classes", some_names(classes) or "none")


def check_kinds(path: Path, numbers: Sequence[str], texts: Mapping[str, Sequence[str]]) -> None:
    """Fail where some labels are numbers and others names: whether they mean the same classes cannot be known.

    ``numbers`` are the arrays or columns that hold numbers, ``texts`` the labels of those that hold text.
    """
    for name, labels in texts.items() if numbers else ():
        if odd := [label for label in labels if not label.removeprefix("-").isdecimal() and label.strip()]:
            raise InputError(
                str(path), "names or numbers as labels", f"numbers in {numbers[0]} and {odd[0]!r} in {name}"
            )


def _check_counts(source: Source, counts: IntArray, k: int) -> None:
    """Fail unless every sample has a label, and a class that is left."""
    if not counts.all():
        first = source.sample(int(counts.argmin()))
        raise InputError(str(source.path), f"at least one label of every sample in {source.name}", f"none of {first}")
    if (counts == k).any():
        first = source.sample(int((counts == k).argmax()))
        expected, got = f"a class that {source.name} does not rule out", f"all {k} ruled out of {first}"
        raise InputError(str(source.path), expected, got, source.remedy)
