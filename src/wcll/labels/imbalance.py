"""Class sizes of imbalanced data (Eq. 6 and its relatives) and the choice of samples that follow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import FloatArray, IntArray, as_array, class_indices, matrix_size, positive
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.encoding import Classes, indexed
from wcll.labels.transition import _few, pick_by_class, round_to_total


def imbalance_counts(
    n: int | None = None, *, n_majority: int | None = None, n_classes: int, minority: Iterable[int], p: float
) -> IntArray:
    r"""Class sizes with one ratio between majority and minority classes (Eq. 6).

    .. math:: \alpha_i = N \frac{1}{|T_{min}| + p |T_{maj}|}\ (i \in T_{min}),\quad
              \alpha_i = N \frac{p}{|T_{min}| + p |T_{maj}|}\ (i \in T_{maj})

    Give either the total ``n`` or the size ``n_majority`` of each majority class. Sizes are rounded: with ``n`` so
    that they sum to it, with ``n_majority`` each to the nearest integer.

    >>> imbalance_counts(19_000, n_classes=10, minority=[0], p=2).tolist()[:3]
    [1000, 2000, 2000]
    >>> imbalance_counts(n_majority=2000, n_classes=3, minority=[1, 2], p=5).tolist()
    [2000, 400, 400]
    """
    parts = np.full(matrix_size(n_classes), positive("p", p))
    parts[minority_classes(minority, n_classes)] = 1.0
    with np.errstate(over="ignore"):
        return _sizes(parts / float(p), n, n_majority)


def long_tailed_counts(*, n_majority: int, n_classes: int, p: float) -> IntArray:
    r"""Exponential profile: class k has a share proportional to :math:`p^{-k/(K-1)}`; the ends differ p times.

    >>> long_tailed_counts(n_majority=100, n_classes=3, p=100).tolist()
    [100, 10, 1]
    """
    steps = np.arange(matrix_size(n_classes)) / max(n_classes - 1, 1)
    with np.errstate(over="ignore"):
        return _sizes(positive("p", p) ** -steps, None, n_majority)


def step_counts(*, n_majority: int, n_classes: int, p: float) -> IntArray:
    """Step profile: the second half of the classes (the larger half, if odd) is p times smaller than the first.

    >>> step_counts(n_majority=100, n_classes=4, p=10).tolist()
    [100, 100, 10, 10]
    """
    minority = range(matrix_size(n_classes) // 2, n_classes)
    return imbalance_counts(n_majority=n_majority, n_classes=n_classes, minority=minority, p=p)


def make_imbalance(y: Any, counts: ArrayLike, *, random_state: RandomState = None, classes: Classes = None) -> IntArray:
    """Sorted indices of a random choice of samples in which class k occurs ``counts[k]`` times.

    Of labels that are names, ``classes`` are all of them, in the order of counts.

    >>> y = np.repeat([0, 1], 50)
    >>> np.bincount(y[make_imbalance(y, [5, 50], random_state=0)]).tolist()
    [5, 50]
    """
    wanted = as_array("counts", counts)
    if wanted.ndim != 1 or not np.issubdtype(wanted.dtype, np.integer) or (wanted < 0).any():
        raise InputError("counts", "one non-negative integer a class", repr(counts))
    labels = class_indices("y", indexed("y", y, classes, len(wanted)), len(wanted))
    return pick_by_class(labels, wanted, stream(random_state, "imbalance"))


def minority_classes(minority: Iterable[int], n_classes: int) -> IntArray:
    """The distinct minority classes, checked."""
    if isinstance(minority, str | bytes | Mapping) or not hasattr(minority, "__iter__") or np.ndim(minority) == 0:  # type: ignore[arg-type]
        raise InputTypeError("minority", "a list of classes", type(minority).__name__)
    classes = list(minority)
    for k in classes:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < n_classes:
            raise InputError("minority", f"classes from 0 to {n_classes - 1}", repr(k), "class ids are 0-based")
    return np.unique(np.asarray(classes, dtype=np.int64))


def _sizes(relative: FloatArray, n: int | None, n_majority: int | None) -> IntArray:
    """Sizes from shares relative to a majority class, given the total or the size of a majority class."""
    if (n is None) == (n_majority is None):
        raise InputError("n", "exactly one of n and n_majority", "both" if n is not None else "neither")
    if n is not None:
        return round_to_total(relative, int(positive("n", n)))
    assert n_majority is not None
    with np.errstate(all="ignore"):
        return np.rint(_few(relative * positive("n_majority", n_majority))).astype(np.int64)
