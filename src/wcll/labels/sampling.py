"""Drawing complementary labels from ordinary ones, vectorised over samples."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wcll._random import RandomState, stream
from wcll._validation import BoolArray, FloatArray, IntArray, class_indices, matrix_size, transition_matrix
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.encoding import Classes, class_count, class_names, indexed
from wcll.labels.transition import make_transition

CHUNK = 1 << 18  # numbers drawn at a time: temporaries stay in the cache


def make_complementary(
    y: Any,
    transition: str | ArrayLike = "uniform",
    *,
    n_labels: int | str = 1,
    n_classes: int | None = None,
    random_state: RandomState = None,
    classes: Classes = None,
) -> NDArray[Any]:
    r"""Draw complementary labels for ordinary labels ``y``.

    Parameters
    ----------
    y : array of shape (n,)
        Ordinary class indices, 0-based; or names among ``classes``.
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
    classes : sequence, optional
        The names of all classes, in the order of rows of Q, if ``y`` are names.

    Returns
    -------
    array
        Class indices, or names, of shape (n,) for one label a sample, else a boolean mask of shape (n, K).

    Examples
    --------
    >>> make_complementary([0, 1, 2, 2], random_state=0)
    array([1, 0, 1, 0])
    >>> make_complementary([0, 1, 2, 2], n_labels=2, random_state=0).sum(axis=1)
    array([2, 2, 2, 2])
    >>> make_complementary(["cat", "dog"], classes=["cat", "dog"], random_state=0)
    array(['dog', 'cat'], dtype='<U3')
    """
    if classes is not None:
        names, n_classes = class_names(classes), class_count(n_classes, classes)
        drawn = make_complementary(
            indexed("y", y, classes), transition, n_labels=n_labels, n_classes=n_classes, random_state=random_state
        )
        return names[drawn] if drawn.ndim == 1 else drawn
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
