"""The mixture of given distributions that is nearest to counts: maximum likelihood of the shares, by Newton steps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from wcll._validation import FloatArray
from wcll.labels.transition import normalised

STEPS = 60  #: a dozen are enough for most counts
CLOSE = 1e-3  #: deviances are found up to this
NUMBERS_AT_ONCE = 2 * 10**6  #: numbers of one array
SMALL = 40 * 40  #: numbers of Q from which a matrix library would start threads, which wait for each other


@dataclass(frozen=True)
class Fit:
    """Of each row of counts, the nearest mixture."""

    shares: FloatArray  #: of the distributions that it is of
    mixture: FloatArray  #: its distribution over cells
    deviance: FloatArray  #: twice the log-likelihood that it lacks
    gap: FloatArray  #: by how much, at most, another mixture would be nearer


def nearest_mixtures(counts: FloatArray, rows: FloatArray) -> Fit:
    r"""For each of m rows of counts (m, g) the nearest mixture of the distributions ``rows`` (k, g), or (m, k, g).

    With :math:`p = a^\top Q` and observed shares s, :math:`\sum_k a_k - \sum_j s_j \log p_j` is least over
    :math:`a \ge 0` where :math:`\sum_j s_j \log p_j` is greatest among shares that sum to 1. It is convex. A
    primal-dual interior-point method finds it in about a dozen steps, whatever the condition of Q; EM would take
    thousands, as the rows of Q are alike. Where no gradient :math:`Q s / p` exceeds 1 by more than e, at most
    :math:`2 n \log (1 + e)` is missing.

    >>> fit = nearest_mixtures(np.array([[60.0, 20.0, 20.0]]), (1 - np.eye(3)) / 2)
    >>> fit.mixture.round(3), fit.deviance.round(2)
    (array([[0.5 , 0.25, 0.25]]), array([4.03]))
    """
    numbers = rows.shape[-2] * rows.shape[-1]
    size = max(1, NUMBERS_AT_ONCE // numbers)
    with _one_thread(numbers), np.errstate(all="ignore"):  # what is no number is not close to anything
        parts = [
            _nearest(counts[i : i + size], rows if rows.ndim == 2 else rows[i : i + size])
            for i in range(0, len(counts), size)
        ]
    return Fit(*map(np.concatenate, zip(*parts, strict=True)))


@cache
def _libraries() -> Any:
    return ThreadpoolController()


def _one_thread(size: int) -> AbstractContextManager[Any]:
    """Many matrices of this size are multiplied: on a busy machine threads make that a hundred times slower."""
    if size < SMALL:
        return nullcontext()
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


def _nearest(counts: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    n = counts.sum(axis=1, keepdims=True)
    seen = counts > 0
    observed = counts / np.maximum(n, 1e-300)
    shares = np.full((len(counts), rows.shape[-2]), 1 / rows.shape[-2])
    slack = np.full_like(shares, 0.1)
    for step in range(STEPS):
        mixture = _times(shares, rows)
        ratio = np.where(seen, observed / np.where(seen, mixture, 1.0), 0.0)
        slope = 1 - _times(ratio, np.swapaxes(rows, -1, -2))
        total = shares.sum(axis=1, keepdims=True)
        gap = 2 * n[:, 0] * np.log(np.maximum((1 - slope).max(axis=1) * total[:, 0], 1.0))
        found = gap <= CLOSE
        if found.all():
            break
        if step == 0:
            slack = np.maximum(slope, slack)
        root = rows * (ratio / np.sqrt(np.where(seen, observed, 1.0)))[:, None, :]
        try:
            moved = _step(shares, slack, slope, root)
        except np.linalg.LinAlgError:  # no number is fine enough for another step
            break
        shares, slack = (np.where(found[:, None], at, to) for at, to in zip((shares, slack), moved, strict=True))
    logs = np.log(np.where(seen, ratio * total, 1.0))
    return normalised(shares), normalised(mixture), 2 * (counts * logs).sum(axis=1), gap


def _times(vectors: FloatArray, matrices: FloatArray) -> FloatArray:
    """Each vector times the one matrix, or times its own."""
    products: FloatArray = vectors @ matrices if matrices.ndim == 2 else (vectors[:, None] @ matrices)[:, 0]
    return products


def _step(shares: FloatArray, slack: FloatArray, slope: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One Newton step towards shares x slack = a tenth of what it is, never over the border of either.

    ``root`` times its transpose is the curvature; only a matrix of cells x cells is solved for (Woodbury).
    """
    aim = 0.1 * (shares * slack).mean(axis=1, keepdims=True)
    scale = shares / slack
    scaled = np.swapaxes(root, 1, 2) * scale[:, None, :]
    inner = scaled @ root + np.eye(root.shape[2])
    wanted = aim / shares - slope
    solved = np.linalg.solve(inner, scaled @ wanted[:, :, None])
    move = scale * wanted - (solved[:, None, :, 0] @ scaled)[:, 0]
    push = (aim - slack * move) / shares - slack
    return shares + move * _most(shares, move), slack + push * _most(slack, push)


def _most(at: FloatArray, by: FloatArray) -> FloatArray:
    """How much of a step, at most all, leaves every number above 0."""
    part = np.divide(-at, by, out=np.full_like(at, np.inf), where=by < 0)
    most: FloatArray = np.minimum(1.0, 0.98 * part.min(axis=1, keepdims=True))
    return most
