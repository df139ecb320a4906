"""Label sets as masks "not these": from indices, from lists, and back to pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._memory import check_memory
from wcll._validation import BoolArray, FloatArray, IntArray, as_array, class_indices, whole
from wcll.exceptions import InputError, InputTypeError


def to_mask(labels: Iterable[Sequence[int]] | ArrayLike, n_classes: int) -> BoolArray:
    """A mask of shape (n, K) from class indices, from lists of them (ragged or not), or from a 0/1 mask.

    >>> to_mask([[0], [1, 2]], 3)
    array([[ True, False, False],
           [False,  True,  True]])
    """
    whole("n_classes", n_classes)
    listed = hasattr(labels, "__iter__") and not isinstance(labels, str | bytes | Mapping | Set)
    if not listed or hasattr(labels, "__array__") or hasattr(labels, "toarray"):
        array = as_array("ybar", labels)
        if array.ndim == 0:
            raise InputTypeError("ybar", "labels, one or several a sample", type(labels).__name__)
        if array.dtype != object:
            return check_mask(array, n_classes) if array.ndim == 2 else _one_each(array, n_classes)
    rows: list[Any] = list(labels)  # type: ignore[arg-type]
    if rows and np.ndim(rows[0]) == 0:
        return _one_each(as_array("ybar", rows), n_classes)
    parts = [as_array("ybar", row) for row in rows]
    if any(part.ndim != 1 for part in parts):
        raise InputError("ybar", "one label a sample, or a list of labels for every sample", "something else")
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    if not lengths.all():
        raise InputError("ybar", "at least one label a sample", f"none for sample {int(lengths.argmin())}")
    flat = class_indices("ybar", np.concatenate(parts) if parts else [], n_classes)
    return fill_mask(lengths, flat, n_classes)


def _one_each(labels: ArrayLike, n_classes: int) -> BoolArray:
    """A mask with one label in every row."""
    index = class_indices("ybar", labels, n_classes)
    check_memory("n_classes", f"a mask of {len(index)} samples and {n_classes} classes", len(index) * n_classes)
    mask = np.zeros((len(index), n_classes), dtype=np.bool_)
    mask[np.arange(len(index)), index] = True
    return mask


def fill_mask(lengths: IntArray, flat: IntArray, n_classes: int) -> BoolArray:
    """A mask from the labels of all samples one after another, ``lengths[i]`` of them for sample i."""
    mask = np.zeros((len(lengths), n_classes), dtype=np.bool_)
    mask[np.repeat(np.arange(len(lengths)), lengths), flat] = True
    twice = np.flatnonzero(mask.sum(axis=1) < lengths)
    if twice.size:
        repeated, remedy = f"repeated ones for sample {twice[0]}", "pass a mask of 0 and 1 as an array"
        raise InputError("ybar", "each label once a sample", repeated, remedy)
    return check_mask(mask, n_classes)


def check_mask(mask: ArrayLike, n_classes: int) -> BoolArray:
    """A mask of "not these": one column a class, in each row at least one class named and one left."""
    array = as_array("ybar", mask)
    if array.ndim != 2 or array.shape[1] != whole("n_classes", n_classes):
        raise InputError("ybar", f"a mask of shape (n, {n_classes})", f"shape {array.shape}")
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError("ybar", "a mask of 0 and 1", "other values")
    named = array.astype(np.bool_)
    size = named.sum(axis=1)
    if (size == 0).any():
        raise InputError("ybar", "at least one label a sample", f"an empty mask row for sample {int(size.argmin())}")
    if (size == n_classes).any():
        raise InputError("ybar", "at least one class left a sample", f"a full mask row for sample {int(size.argmax())}")
    return named


def to_pairs(mask: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Split label sets into (sample, label) pairs: sample indices, labels, and weights 1/s that sum to 1 a sample.

    This lets a loss that is defined for one label a sample learn from several.
    """
    array = as_array("mask", mask)
    named = check_mask(array, array.shape[1] if array.ndim == 2 and array.shape[1] else 1)
    sample, label = np.nonzero(named)
    return sample, label, 1.0 / named.sum(axis=1)[sample]
