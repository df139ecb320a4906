"""Several complementary labels a sample, samples with the same labels counted together, and how likely Q makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._memory import check_memory
from wcll._validation import FloatArray, IntArray, as_array, class_indices, matrix_size, transition_matrix, whole
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.masks import check_mask

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
