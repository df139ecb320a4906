"""Labels as users have them: names or numbers, one or several a sample, or a mask; and as classes' indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._validation import BoolArray, IntArray, as_array, has_masked
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.masks import check_mask, fill_mask

Classes = Sequence[Any] | NDArray[Any] | None  #: names of all classes, in the order of outputs
COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


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


def encode_labels(ybar: Any, classes: Classes = None) -> NamedLabels:
    """Read labels in any of their forms.

    ``classes`` lists every class, in the order of outputs; without it the classes are those that occur, sorted (or, for
    a mask, the names of its columns if it is a table, else their numbers; or, for a categorical column of pandas, its
    categories in their order, which declare classes just as well).

    >>> encode_labels(["cat", "dog", "cat"]).index
    array([0, 1, 0])
    >>> encode_labels([["cat"], ["dog", "bird"]]).mask
    array([[False,  True, False],
           [ True, False,  True]])
    >>> encode_labels([-1, 1], classes=[-1, 0, 1]).index
    array([0, 2])
    """
    classes = declared_categories(ybar) if classes is None else classes
    if isinstance(ybar, np.ma.MaskedArray) and np.ma.is_masked(ybar):
        row = int(np.ma.getmaskarray(ybar).reshape(len(ybar), -1).any(axis=1).argmax())
        raise InputError("ybar", "a label for every sample", f"a masked one for sample {row}", "drop such samples")
    if (hasattr(ybar, "__array__") and not hasattr(ybar, "columns")) or hasattr(ybar, "toarray"):
        ybar = as_array("ybar", ybar)
    if has_masked(ybar):
        raise InputError("ybar", "a label for every sample", "masked ones", "drop such samples")
    if isinstance(ybar, str | bytes | Mapping | Set) or not hasattr(ybar, "__len__"):
        raise InputTypeError("ybar", "an array or a list of labels", type(ybar).__name__)
    known = None if classes is None else class_names(classes)
    if hasattr(ybar, "columns") and np.ndim(ybar) == 2 and ybar.shape[1] > 1:
        return _from_table(ybar, known)
    values = ybar if isinstance(ybar, np.ndarray) and ybar.dtype != object else list(ybar)
    if isinstance(values, list) and any(isinstance(row, COLLECTIONS) for row in values):
        return _from_lists(values, known)
    array = np.asarray(values) if not isinstance(values, list) else _one_kind("ybar", values)
    if array.ndim == 2 and array.shape[1] > 1:
        mask = check_mask(array, array.shape[1] if known is None else len(known))
        return NamedLabels(np.arange(mask.shape[1]) if known is None else known, None, mask)
    array = _clean("ybar", array.reshape(-1) if array.ndim == 2 else array)
    if array.ndim != 1 or len(array) == 0:
        raise InputError("ybar", "one label a sample, lists of labels, or a mask (n, K)", f"shape {array.shape}")
    if known is None:
        found, index = np.unique(array, return_inverse=True)
        return NamedLabels(found, index, None)
    return NamedLabels(known, _positions(array, known), None)


def class_count(n_classes: int | None, classes: Classes = None) -> int:
    """How many classes there are: as many as are said, or named; one of both tells it."""
    if classes is None:
        if n_classes is None:
            raise InputError("n_classes", "the number of classes, or their names as classes", None)
        return n_classes
    named = len(class_names(classes))
    if n_classes not in (None, named):
        raise InputError("classes", f"the names of {n_classes} classes", f"{named} names")
    return named


def indexed(argument: str, labels: Any, classes: Classes, n_classes: int | None = None) -> Any:
    """Labels for functions that count classes by index: as they are; or, where classes are named, their places.

    >>> indexed("ybar", ["dog", "cat"], ["bird", "cat", "dog"])
    array([2, 1])
    """
    if classes is None:
        return labels
    class_count(n_classes, classes)
    with said_of(argument, "ybar"):
        return encode_labels(labels, classes).values


def indexed_rows(ybar: Any, classes: Classes) -> Any:
    """The same of several labels a sample, which may name a class twice: an array (n, labels), lists, or a mask."""
    if classes is None or getattr(ybar, "dtype", None) == np.bool_ or hasattr(ybar, "columns"):
        return ybar if classes is None else encode_labels(ybar, classes).values
    known = class_names(classes)
    rows = [np.atleast_1d(_clean("ybar", _one_kind("ybar", list(row)))) for row in ybar]
    return [_positions(row, known).tolist() for row in rows]


@contextmanager
def said_of(name: str | None, *arguments: str) -> Iterator[None]:
    """What is wrong with one of these arguments is said of ``name``, if there is one: as the user calls it."""
    try:
        yield
    except InputError as error:
        if name is None or error.argument not in arguments:
            raise
        raise type(error)(name, error.expected, error.got, error.remedy) from None


def declared_categories(labels: Any) -> Any:
    """The categories of a categorical column of pandas, or of a table that is one; None of anything else."""
    if hasattr(labels, "columns") and np.shape(labels)[1:] == (1,):
        labels = labels.iloc[:, 0]
    return getattr(getattr(labels, "dtype", None), "categories", None)


def _one_kind(argument: str, values: Sequence[Any]) -> NDArray[Any]:
    """An array of plain values, none missing, all numbers or all text."""
    for row, value in enumerate(values):
        missing = value is None or type(value).__name__ in ("NAType", "NaTType")
        if missing or (isinstance(value, float | np.floating) and np.isnan(value)):
            raise InputError(argument, "a label for every sample", f"NaN or none for sample {row}", "drop such samples")
    text = [isinstance(value, str) for value in values]
    if any(text) and not all(text):
        raise InputError(argument, "labels of one kind, all text or all numbers", "a mixture")
    return as_array(argument, values)


def _clean(argument: str, array: NDArray[Any]) -> NDArray[Any]:
    """Numbers or text without missing values."""
    if array.dtype.kind not in "iubfU":
        raise InputTypeError(argument, "class names as text or whole numbers", array.dtype)
    if array.dtype.kind == "f":
        whole = _one_kind(argument, array)  # type: ignore[arg-type]
        if not (np.abs(whole) < 2**53).all():
            raise InputError(
                argument, "class names as text or whole numbers", "infinity, or numbers that are too large"
            )
        return whole
    return array


def class_names(classes: Any) -> NDArray[Any]:
    """At least two names of classes, all different, as text or numbers."""
    if isinstance(classes, str | bytes | Set | Mapping) or not hasattr(classes, "__iter__"):
        raise InputTypeError("classes", "a list of class names", repr(classes) if isinstance(classes, str) else classes)
    arrays = hasattr(classes, "__array__") or hasattr(classes, "toarray")
    listed = list(np.atleast_1d(as_array("classes", classes)) if arrays else classes)
    names = _clean("classes", _one_kind("classes", listed))
    if names.ndim != 1 or len(names) < 2:
        raise InputError("classes", "at least two class names", f"shape {names.shape}")
    if len(np.unique(names)) != len(names):
        raise InputError("classes", "each class once", "repeated names")
    return names


def _positions(array: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Where each label stands among the classes."""
    if (array.dtype.kind == "U") != (classes.dtype.kind == "U"):
        kinds = ["numbers" if a.dtype.kind != "U" else "text" for a in (classes, array)]
        raise InputError("ybar", f"{kinds[0]}, as the classes are", kinds[1])
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes[order], array).clip(max=len(classes) - 1)
    index: IntArray = order[place]
    unknown = classes[index] != array
    if np.any(unknown):
        name = array[np.flatnonzero(unknown)[0]]
        shown = ", ".join(map(str, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise InputError("ybar", f"classes among {shown}", repr(name.item()), "list every class in `classes`")
    return index


def _from_lists(rows: list[Any], known: NDArray[Any] | None) -> NamedLabels:
    """A mask from lists of labels."""
    for sample, row in enumerate(rows):
        if not isinstance(row, COLLECTIONS):
            raise InputError("ybar", "a list of labels for every sample", f"{row!r} for sample {sample}")
        if len(row) == 0:
            raise InputError("ybar", "at least one label a sample", f"none for sample {sample}")
    lengths = np.array([len(row) for row in rows])
    flat = _clean("ybar", _one_kind("ybar", [label for row in rows for label in row]))
    classes = np.unique(flat) if known is None else known
    return NamedLabels(classes, None, fill_mask(lengths, _positions(flat, classes), len(classes)))


def _from_table(table: Any, known: NDArray[Any] | None) -> NamedLabels:
    """A mask from a table with one column a class, matched by name if the columns have names."""
    columns = list(table.columns)
    if all(isinstance(column, str) for column in columns):
        if known is None:
            known = np.asarray(columns)
        elif set(columns) != set(known.tolist()):
            raise InputError("ybar", f"columns named as the classes, {known.tolist()}", columns)
        table = table[known.tolist()]
    mask = check_mask(np.asarray(table), len(columns) if known is None else len(known))
    return NamedLabels(np.arange(mask.shape[1]) if known is None else known, None, mask)
