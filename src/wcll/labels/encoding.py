"""Complementary labels as users have them, and as indices, masks, records or counted sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wcll._memory import check_memory
from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    class_indices,
    has_masked,
    matrix_size,
    same_length,
    transition_matrix,
    whole,
)
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


FLOOR = 1e-12  #: what counts as no chance at all
NODES = 400  #: moments at which times are looked at
MOST_ORDERED = 5  #: labels a sample whose orders, 120 of them, are still gone through one by one


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Label counts of samples, equal ones once: ``counts[g, j]`` says how often samples of group g name class j.

    Labels of a sample are independent given its class y, each drawn from ``Q[y]``; without replacement, one after
    another, each from what is left of ``Q[y]`` and rescaled.
    """

    counts: FloatArray  #: (groups, K)
    weight: FloatArray  #: how many samples each group has
    replacement: bool

    @cached_property
    def sizes(self) -> IntArray:
        """How many labels a sample of each group has."""
        sizes: IntArray = self.counts.sum(axis=1).astype(np.int64)
        return sizes

    @property
    def n(self) -> float:
        """How many samples there are."""
        return float(self.weight.sum())

    @property
    def totals(self) -> FloatArray:
        """How often each class is named."""
        totals: FloatArray = self.weight @ self.counts
        return totals

    def weighted(self, weight: FloatArray) -> LabelSets:
        """The same groups with other numbers of samples; groups without any are left out."""
        some = weight > 0
        return replace(self, counts=self.counts[some], weight=weight[some])

    def likelihood(self, transition: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""log P(labels of g given y), shape (groups, K), and how often y's samples could have named each class j.

        With replacement :math:`\sum_j c_{gj} \log Q_{yj}`, and every class was at choice for each label: (groups, 1,
        1). Without, the sum over all orders of the labels of :math:`\prod_i Q_{y j_i} / (1 - \sum_{m < i} Q_{y j_m})`;
        a draw counts for those classes that were still left, over the chance that was left: (groups, K, K).
        """
        if self.replacement:
            logs: FloatArray = (np.log(np.maximum(transition, FLOOR)) @ self.counts.T).T  # so that sums over y are fast
            return logs, self.sizes[:, None, None].astype(np.float64)
        k = self.counts.shape[1]
        logs, exposure = np.empty_like(self.counts), np.empty((len(self.counts), k, k))
        for rows, ordered in self._ordered:
            for y, row in enumerate(transition):
                logs[rows, y], exposure[rows, y] = _by_order(row, ordered)
        return logs, exposure

    @cached_property
    def _ordered(self) -> list[tuple[IntArray, IntArray]]:
        """For every number of labels: its groups, and their labels in all orders, shape (groups, orders, labels)."""
        groups = []
        for size in np.unique(self.sizes):
            rows = np.flatnonzero(self.sizes == size)
            labels = np.nonzero(self.counts[rows])[1].reshape(len(rows), size)
            groups.append((rows, labels[:, list(permutations(range(size)))]))
        return groups


def _by_order(row: FloatArray, ordered: IntArray) -> tuple[FloatArray, FloatArray]:
    """log P(set) for a class whose labels follow ``row``, and every class's exposure, expected over the orders."""
    chance = row[ordered]
    left = np.maximum(1 - np.cumsum(chance, axis=2) + chance, FLOOR)
    orders = np.maximum((chance / left).prod(axis=2), FLOOR ** ordered.shape[2])
    whole = orders.sum(axis=1)
    draws = (orders / whole[:, None])[:, :, None] / left
    exposure = np.repeat(draws.sum(axis=(1, 2))[:, None], len(row), axis=1)
    later = np.cumsum(draws[:, :, ::-1], axis=2)[:, :, ::-1] - draws  # once it is drawn, a label is not at choice
    groups = np.broadcast_to(np.arange(len(ordered))[:, None, None], ordered.shape)
    np.subtract.at(exposure, (groups, ordered), later)
    return np.log(whole), exposure


def label_sets(ybar: Any, n_classes: int, *, replacement: bool | None = None) -> LabelSets:
    """Labels of samples as counts: from a boolean mask (n, K), an integer array (n, L), or a list of lists of labels.

    Integers are always labels, never a mask of 0 and 1. ``replacement=None``: with replacement if any sample repeats a
    label, as in thousands of samples one would; otherwise without.

    >>> label_sets([[0, 1], [1, 0], [2, 2]], 3).counts
    array([[0., 0., 2.],
           [1., 1., 0.]])
    """
    matrix_size(n_classes)
    counts, times = np.unique(_counts(ybar, n_classes), axis=0, return_counts=True)
    repeats = bool((counts > 1).any())
    if replacement is None:
        replacement = repeats
    if not replacement and repeats:
        raise InputError("ybar", "each label once a sample, drawn without replacement", "a label twice")
    sets = LabelSets(counts.astype(np.float64), times.astype(np.float64), replacement)
    if not replacement and sets.sizes.max() > MOST_ORDERED:
        most = f"at most {MOST_ORDERED} labels a sample that are drawn without replacement"
        raise InputError("ybar", most, int(sets.sizes.max()), "give fewer of them, or replacement=True")
    if not replacement:
        orders = 8 * 24 * 5 * len(counts) + 8 * 3 * len(counts) * n_classes**2
        check_memory("ybar", f"the orders of {len(counts)} sets of labels", orders)
    return sets


def inclusion_shares(transition: ArrayLike, n_labels: int) -> FloatArray:
    r"""How often each class is among m labels that are drawn without replacement, over m: rows that sum to 1.

    The m labels of a draw in proportion to ``Q[y]`` are those of the m shortest of exponential times with rates
    ``Q[y, j]``, so

    .. math:: \frac1m \int_0^\infty Q_{yj} e^{-Q_{yj} t} P(\text{fewer than } m \text{ others before } t)\, dt .

    This is what a likelihood that multiplies chances of single labels should be told of such labels. Classes are more
    alike in it than in Q.

    >>> inclusion_shares([[0, 0.8, 0.2], [0.5, 0, 0.5], [0.5, 0.5, 0]], 2)
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    matrix = transition_matrix(transition)
    k, m = len(matrix), whole("n_labels", n_labels)
    if m > (matrix > 0).sum(axis=1).min():
        raise InputError("n_labels", f"at most {(matrix > 0).sum(axis=1).min()}, as every class can be named", m)
    if m == 1:
        return matrix
    check_memory("n_labels", f"sets of {m} of {k} classes", 8 * 3 * NODES * k * (k + m))
    slowest, fastest = matrix[matrix > 0].min(), matrix.max()
    node, weight = np.polynomial.legendre.leggauss(NODES)
    span = np.log(50 / slowest) - np.log(1e-9 / fastest)
    time = np.exp(np.log(1e-9 / fastest) + span * (node + 1) / 2)[:, None]  # evenly on the scale of logarithms
    before = -np.expm1(-time[:, :, None] * matrix)  # (times, y, j): whether j was drawn by then
    shares = np.empty_like(matrix)
    for j in range(k):
        fewer = np.zeros((NODES, k, m))  # P(so many others were drawn)
        fewer[..., 0] = 1.0
        for other in np.delete(np.arange(k), j):
            chance = before[:, :, other, None]
            moved = np.concatenate([np.zeros((NODES, k, 1)), fewer[..., :-1]], axis=-1)
            fewer = fewer * (1 - chance) + moved * chance
        density = matrix[:, j] * time * np.exp(-matrix[:, j] * time)
        shares[:, j] = span / 2 * weight @ (density * fewer.sum(axis=-1))
    rows: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return rows


def _counts(ybar: Any, n_classes: int) -> IntArray:
    """How often each sample names each class."""
    if isinstance(ybar, list | tuple) and len({np.size(row) for row in ybar}) > 1:
        parts = [as_array("ybar", row) for row in ybar]
        if any(part.ndim != 1 or not part.size for part in parts):
            raise InputError("ybar", "a list of labels for every sample", "an empty one, or something else")
        lengths = np.array([len(part) for part in parts])
        return _tally(np.repeat(np.arange(len(parts)), lengths), np.concatenate(parts), len(parts), n_classes)
    array = as_array("ybar", ybar)
    if array.dtype == np.bool_:
        return check_mask(array, n_classes).astype(np.int64)
    if array.ndim != 2 or not array.size:
        remedy = "with one label a sample, tell a family, such as transition='popularity'"
        raise InputError(
            "ybar", "several labels a sample, shape (n, labels), or a mask", f"shape {array.shape}", remedy
        )
    if array.dtype.kind not in "iu":
        raise InputTypeError("ybar", "class indices, or a boolean mask", array.dtype)
    samples = np.repeat(np.arange(len(array)), array.shape[1])
    return _tally(samples, array.ravel(), len(array), n_classes)


def _tally(samples: IntArray, labels: ArrayLike, n: int, n_classes: int) -> IntArray:
    """Counts of labels by sample and class."""
    named = class_indices("ybar", labels, n_classes)
    check_memory("ybar", f"counts of {n} samples and {n_classes} classes", 3 * 8 * n * n_classes)
    return np.bincount(samples * n_classes + named, minlength=n * n_classes).reshape(n, n_classes)


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
