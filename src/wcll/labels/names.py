"""Labels as users have them: names or numbers, one or several a sample, or a mask; and as classes' indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.checks import BoolArray, InputError, IntArray
from wcll.labels.draw import check_mask


@dataclass(frozen=True)
class NamedLabels:
    """Complementary labels and the classes they speak of."""

    classes: NDArray[Any]  #: class names; their position is the class index
    index: IntArray | None  #: (n,) where every sample has one label
    mask: BoolArray | None  #: (n, K) otherwise

    @property
    def values(self) -> IntArray | BoolArray:
        """Indices or mask, whichever there is."""
        if self.index is not None:
            return self.index
        assert self.mask is not None
        return self.mask

    def __len__(self) -> int:
        return len(self.values)


def encode_labels(ybar: Any, classes: Sequence[Any] | NDArray[Any] | None = None) -> NamedLabels:
    """Read labels in any of their forms.

    ``classes`` lists every class, in the order of outputs; without it the classes are those that occur, sorted (or, for
    a mask, the numbers of its columns).

    >>> encode_labels(["cat", "dog", "cat"]).index
    array([0, 1, 0])
    >>> encode_labels([["cat"], ["dog", "bird"]]).mask
    array([[False,  True, False],
           [ True, False,  True]])
    >>> encode_labels([-1, 1], classes=[-1, 0, 1]).index
    array([0, 2])
    """
    known = None if classes is None else _class_names(classes)
    values = ybar if hasattr(ybar, "__array__") else list(ybar)
    if isinstance(values, list) and values and not isinstance(values[0], str) and np.ndim(values[0]) > 0:
        return _from_lists(values, known)
    array = np.asarray(values)
    if (
        array.dtype == object
        and array.ndim == 1
        and len(array)
        and isinstance(array[0], list | tuple | set | np.ndarray)
    ):
        return _from_lists([list(row) for row in array], known)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        width = array.shape[1] if known is None else len(known)
        mask = check_mask(array, width)
        return NamedLabels(np.arange(width) if known is None else known, None, mask)
    if array.ndim != 1 or len(array) == 0:
        raise InputError("ybar", "one label a sample, lists of labels, or a mask (n, K)", f"shape {array.shape}")
    if known is None:
        found, index = np.unique(array, return_inverse=True)
        return NamedLabels(found, index, None)
    return NamedLabels(known, _positions(array, known), None)


def _class_names(classes: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    names = np.asarray(classes)
    if names.ndim != 1 or len(names) < 2:
        raise InputError("classes", "at least two class names", f"shape {names.shape}")
    if len(np.unique(names)) != len(names):
        raise InputError("classes", "each class once", "repeated names")
    return names


def _positions(array: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Where each label stands among the classes."""
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes[order], array).clip(max=len(classes) - 1)
    index: IntArray = order[place]
    unknown = classes[index] != array
    if np.any(unknown):
        name = array[np.flatnonzero(unknown)[0]]
        shown = ", ".join(map(str, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise InputError("ybar", f"classes among {shown}", repr(getattr(name, "item", lambda: name)()),
                         "list every class in `classes`")  # fmt: skip
    return index


def _from_lists(rows: list[Any], known: NDArray[Any] | None) -> NamedLabels:
    """A mask from lists of labels."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    if not lengths.all():
        raise InputError("ybar", "at least one label a sample", f"none for sample {int(lengths.argmin())}")
    flat = np.concatenate([np.asarray(list(row)) for row in rows])
    classes = np.unique(flat) if known is None else known
    mask = np.zeros((len(rows), len(classes)), dtype=np.bool_)
    mask[np.repeat(np.arange(len(rows)), lengths), _positions(flat, classes)] = True
    return NamedLabels(classes, None, check_mask(mask, len(classes)))
