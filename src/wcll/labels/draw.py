"""Drawing complementary labels from ordinary ones, vectorised over samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import (
    BoolArray,
    FloatArray,
    InputError,
    InputTypeError,
    IntArray,
    as_array,
    class_indices,
    matrix_size,
    transition_matrix,
    whole,
)
from wcll.labels.transition import make_transition
from wcll.memory import check_memory
from wcll.streams import RandomState, stream

CHUNK = 1 << 18  # numbers drawn at a time: temporaries stay in the cache


def make_complementary(
    y: ArrayLike,
    transition: str | ArrayLike = "uniform",
    *,
    n_labels: int | str = 1,
    n_classes: int | None = None,
    random_state: RandomState = None,
) -> IntArray | BoolArray:
    r"""Draw complementary labels for ordinary labels ``y``.

    Parameters
    ----------
    y : array of shape (n,)
        Ordinary class indices, 0-based.
    transition : str or array of shape (K, K)
        ``"uniform"``, ``"inverse-size"`` (from the class sizes of ``y``), ``"biased-weak"``, ``"biased-strong"``, or
        a matrix ``Q[y, ybar]``.
    n_labels : int or "random"
        Labels a sample, drawn without replacement in proportion to ``Q[y]``; ``"random"`` draws the number s from
        :math:`P(s) = \binom{K-1}{s} / (2^{K-1} - 1)`.
    n_classes : int, optional
        K, if not every class occurs in ``y`` and ``transition`` is a name.
    random_state : int, Generator or None
        Draws come from the stream ``labels`` of this seed.

    Returns
    -------
    array
        Class indices of shape (n,) for one label a sample, else a boolean mask of shape (n, K).

    Examples
    --------
    >>> make_complementary([0, 1, 2, 2], random_state=0)
    array([1, 0, 1, 0])
    >>> make_complementary([0, 1, 2, 2], n_labels=2, random_state=0).sum(axis=1)
    array([2, 2, 2, 2])
    """
    if n_classes is None:
        own = None if isinstance(transition, str) else transition_matrix(transition)
        n_classes = int(class_indices("y", y).max()) + 1 if own is None else len(own)
    matrix_size(n_classes)
    labels = class_indices("y", y, n_classes)
    sizes = np.bincount(labels, minlength=n_classes)
    if isinstance(transition, str) and transition == "inverse-size" and not sizes.all():
        absent = f"none of class {sizes.argmin()}"
        raise InputError("y", "samples of every class", absent, "inverse-size needs sizes")
    matrix = make_transition(transition, sizes, random_state=random_state)
    rng = stream(random_state, "labels")
    if isinstance(n_labels, str):
        if n_labels != "random":
            raise InputError("n_labels", "a whole number or 'random'", repr(n_labels))
        return _draw_several(labels, matrix, random_set_sizes(len(labels), n_classes, rng), rng)
    if isinstance(n_labels, bool) or not isinstance(n_labels, int | np.integer):
        raise InputTypeError("n_labels", "a whole number or 'random'", repr(n_labels))
    if not 1 <= n_labels < n_classes:
        raise InputError("n_labels", f"from 1 to {n_classes - 1} (one class must remain)", n_labels)
    if n_labels == 1:
        return _draw_one(labels, matrix, rng)
    return _draw_several(labels, matrix, np.full(len(labels), n_labels), rng)


def random_set_sizes(n: int, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Set sizes s = 1 ... K-1 with probability proportional to the number of sets of that size."""
    ways = np.array([comb(n_classes - 1, s) / 2 ** (n_classes - 1) for s in range(1, n_classes)])
    return rng.choice(np.arange(1, n_classes), size=n, p=ways / ways.sum())


def _draw_one(labels: IntArray, matrix: FloatArray, rng: np.random.Generator) -> IntArray:
    """One draw a sample by Walker's alias tables: two look-ups a label, whatever K is."""
    keep, alias = _alias_tables(matrix)
    n_classes = len(matrix)
    drawn = np.empty(len(labels), dtype=np.int64)
    for start in range(0, len(labels), CHUNK):
        part = labels[start : start + CHUNK]
        position = rng.random(len(part)) * n_classes
        column = position.astype(np.int64)
        cell = part * n_classes + column
        drawn[start : start + CHUNK] = np.where(position - column < keep.take(cell), column, alias.take(cell))
    return drawn


def _alias_tables(matrix: FloatArray) -> tuple[FloatArray, IntArray]:
    """For every row: column j is kept with probability ``keep[j]``, else replaced by ``alias[j]``."""
    n_classes = len(matrix)
    keep, alias = np.ones_like(matrix), np.tile(np.arange(n_classes), (n_classes, 1))
    for row, scaled in enumerate(matrix * n_classes):
        small, large = list(np.flatnonzero(scaled < 1)), list(np.flatnonzero(scaled >= 1))
        while small and large:
            low, high = small.pop(), large[-1]
            keep[row, low], alias[row, low] = scaled[low], high
            scaled[high] -= 1 - scaled[low]
            if scaled[high] < 1:
                small.append(large.pop())
        for left in small:  # 1 up to rounding; a class of probability 0 must never be kept
            if matrix[row, left] == 0:
                keep[row, left], alias[row, left] = 0.0, matrix[row].argmax()
    return keep, alias


def _draw_several(labels: IntArray, matrix: FloatArray, sizes: IntArray, rng: np.random.Generator) -> BoolArray:
    """Draws without replacement: the s smallest of exponential times over their rates are such a draw."""
    possible = (matrix > 0).sum(axis=1)
    short = np.flatnonzero(sizes > possible[labels])
    if short.size:
        y = int(labels[short[0]])
        most = f"at most {possible[y]} labels for class {y} under this transition"
        raise InputError("n_labels", most, int(sizes[short[0]]))
    mask = np.empty((len(labels), len(matrix)), dtype=np.bool_)
    with np.errstate(divide="ignore"):
        slowness = 1.0 / matrix  # probability 0: an infinite time
    chunk = max(1, CHUNK // len(matrix))
    for start in range(0, len(labels), chunk):
        part = slice(start, start + chunk)
        times = rng.standard_exponential((len(labels[part]), len(matrix))) * slowness[labels[part]]
        last = np.take_along_axis(np.sort(times, axis=1), sizes[part, None] - 1, axis=1)
        mask[part] = times <= last
    return mask


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
