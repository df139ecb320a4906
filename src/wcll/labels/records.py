"""Complementary labels one by one: which sample each belongs to, which class it names and, if known, who gave it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._memory import check_memory
from wcll._validation import FloatArray, IntArray, as_array, class_indices, same_length
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.masks import check_mask
from wcll.labels.names import COLLECTIONS, class_names, encode_labels
from wcll.labels.sets import LabelSets

MOST_CLASSES = 10_000  #: more are rather numbers of samples than classes


@dataclass(frozen=True, eq=False)
class LabelRecords:
    """Labels of samples, each with its sample, its class and perhaps its annotator, all as indices."""

    classes: tuple[str, ...]
    label: IntArray
    sample: IntArray
    annotator: IntArray | None = None
    annotators: tuple[str, ...] = ()  #: their names

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def sizes(self) -> IntArray:
        """How many labels each sample has."""
        return np.bincount(self.sample)

    @property
    def counts(self) -> IntArray:
        """How many labels name each class."""
        return np.bincount(self.label, minlength=len(self.classes))

    @cached_property
    def named(self) -> tuple[IntArray, IntArray, IntArray]:
        """Every class that a sample names: the sample, the class, and how often."""
        k = len(self.classes)
        cells, times = np.unique(self.sample * k + self.label, return_counts=True)
        return cells // k, cells % k, times

    @property
    def replacement(self) -> bool:
        """Whether a sample may name a class twice, as independent labels do: some sample does."""
        return bool((self.named[2] > 1).any())

    @cached_property
    def marginal(self) -> tuple[FloatArray, FloatArray]:
        """The share of each class, every sample weighing the same, and its standard error over samples."""
        k, n = len(self.classes), len(self.sizes)
        sample, label, times = self.named
        part = times / self.sizes[sample]
        mean = np.bincount(label, weights=part, minlength=k) / n
        square = np.bincount(label, weights=part**2, minlength=k) / n
        error: FloatArray = np.sqrt(np.maximum(square - mean**2, 0) / n)
        return mean, error

    @property
    def everything_named(self) -> IntArray:
        """Samples of which every class is named."""
        return np.flatnonzero(np.bincount(self.named[0], minlength=len(self.sizes)) == len(self.classes))

    def sets(self) -> LabelSets:
        """Samples with the same labels counted together."""
        k, n = len(self.classes), len(self.sizes)
        sample, label, times = self.named
        kind = np.min_scalar_type(int(times.max()))
        check_memory("ybar", f"counts of {n} samples and {k} classes", 3 * n * k * kind.itemsize)
        counts = np.zeros((n, k), dtype=kind)
        counts[sample, label] = times
        rows = counts.view(np.dtype((np.void, k * kind.itemsize))).ravel()  # sorted as bytes, which is fast
        _, first, weight = np.unique(rows, return_index=True, return_counts=True)
        return LabelSets(counts[first].astype(np.float64), weight.astype(np.float64), self.replacement)


def label_records(ybar: Any, classes: Any = None, annotators: Any = None) -> LabelRecords:
    """Labels in any of their forms, one by one.

    ``ybar`` is one label a sample, shape (n,), several, (n, m), a boolean mask (n, K), or a list of lists of labels;
    labels are names, or class indices where ``classes`` is None or text. ``annotators`` has the shape of ``ybar``, or
    one entry a sample; a mask has one a sample.

    >>> records = label_records([["cat"], ["dog", "dog"]], classes=["bird", "cat", "dog"])
    >>> records.label.tolist(), records.sample.tolist(), records.replacement
    ([1, 2, 2], [0, 1, 1], True)
    """
    known = None if classes is None else class_names(classes)
    lengths, flat = _flat(ybar, None if known is None else len(known))
    index, names = _encoded(flat, known)
    sample = np.repeat(np.arange(len(lengths)), lengths)
    if annotators is None:
        return checked(LabelRecords(names, index, sample))
    who, number = np.unique(_of_annotators(annotators, lengths), return_inverse=True)
    return checked(LabelRecords(names, index, sample, number, tuple(map(str, who))))


def _is_nested(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(row, COLLECTIONS) for row in values)


def _flat(ybar: Any, n_classes: int | None) -> tuple[IntArray, NDArray[Any]]:
    """How many labels each sample has, and all labels one after another, or the mask."""
    if _is_nested(ybar):
        parts = [as_array("ybar", list(row) if isinstance(row, set | frozenset) else row) for row in ybar]
        if any(part.ndim != 1 or not part.size for part in parts):
            raise InputError("ybar", "a list of labels for every sample", "an empty one, or something else")
        if any(part.dtype == np.bool_ for part in parts):
            raise InputTypeError("ybar", "labels, or a mask as an array", "truth values in lists")
        return np.array([len(part) for part in parts]), np.concatenate(parts)
    array = as_array("ybar", ybar)
    if array.ndim not in (1, 2) or not array.size:
        raise InputError("ybar", "one label a sample, several, (n, m), or a mask (n, K)", f"shape {array.shape}")
    if array.dtype != np.bool_:
        return np.full(len(array), array.shape[1] if array.ndim == 2 else 1), array.ravel()
    if array.ndim != 2:
        raise InputError("ybar", "a mask of shape (n, K)", f"shape {array.shape}")
    mask = check_mask(array, array.shape[1])
    if n_classes not in (None, array.shape[1]):
        raise InputError("classes", f"{array.shape[1]} names, one a column of the mask", n_classes)
    return mask.sum(axis=1), mask


def _encoded(flat: NDArray[Any], known: NDArray[Any] | None) -> tuple[IntArray, tuple[str, ...]]:
    """Labels as indices of classes, and the names of these."""
    if flat.dtype == np.bool_:
        names = np.arange(flat.shape[1]) if known is None else known
        return np.nonzero(flat)[1], tuple(map(str, names))
    if flat.dtype.kind in "iu" and (known is None or known.dtype.kind == "U"):
        index = class_indices("ybar", flat, None if known is None else len(known))
        if known is None:
            _check_number(int(index.max()) + 1)
            known = np.arange(int(index.max()) + 1)
        return index, tuple(map(str, known))
    found = encode_labels(flat.tolist() if flat.dtype == object else flat, known)
    assert found.index is not None
    return found.index, tuple(map(str, found.classes))


def _of_annotators(annotators: Any, lengths: IntArray) -> NDArray[Any]:
    """The annotator of every label."""
    if _is_nested(annotators):
        given = np.concatenate([as_array("annotators", row).ravel() for row in annotators])
    else:
        given = as_array("annotators", annotators).ravel()
    if given.dtype == object and all(isinstance(one, str | int) for one in given):
        given = given.astype(str)
    if given.dtype.kind not in "iuU":
        raise InputTypeError("annotators", "names as text or whole numbers", given.dtype)
    if len(given) == len(lengths):
        given = np.repeat(given, lengths)
    same_length("ybar", int(lengths.sum()), "annotators", len(given))
    return given


def _check_number(classes: int) -> None:
    if classes > MOST_CLASSES:
        raise InputError("ybar", f"at most {MOST_CLASSES} classes", classes, "are these labels?")


def checked(records: LabelRecords) -> LabelRecords:
    """The same, if there are labels of at least two classes and none of a sample names all."""
    k = len(records.classes)
    if not len(records):
        raise InputError("ybar", "at least one label", "none")
    if k < 2 or len(np.unique(records.label)) < 2:
        one = f"one class, {records.classes[records.label[0]]!r}, for every sample"
        raise InputError("ybar", "labels of at least two classes", one)
    _check_number(k)
    full = records.everything_named
    if full.size and not records.replacement:
        remedy = "list every class in `classes` if there are more"
        raise InputError("ybar", "at least one class left a sample", f"every class for sample {full[0]}", remedy)
    return records
