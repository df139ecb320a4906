"""Choosing rate and epoch by held-out complementary labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import FloatArray, inverse_transition, numeric, whole
from wcll.exceptions import InputError, InputTypeError

#: Where, in percent of all epochs, models are compared: often while they learn fast, rarely afterwards.
CHECKPOINTS = (1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 56, 66, 77, 88, 100)


def checkpoints(epochs: int) -> tuple[int, ...]:
    """The epochs (1-based, each once) at which models are compared.

    >>> checkpoints(10)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    >>> checkpoints(100) == CHECKPOINTS
    True
    """
    whole("epochs", epochs)
    return tuple(sorted({-(-percent * epochs // 100) for percent in CHECKPOINTS}))


def zero_one_risk(tables: ArrayLike, transition: ArrayLike) -> FloatArray:
    r"""Unbiased 0-1 risk of tables N[ybar, prediction] under Q: :math:`1 - \frac1n \sum_{jk} Q^{-1}_{jk} N_{jk}`."""
    counts, inverse = numeric("tables", tables), inverse_transition(transition)
    if counts.shape[-2:] != inverse.shape:
        raise InputError("tables", f"tables of shape {inverse.shape}", f"shape {counts.shape}")
    with np.errstate(over="ignore"):
        n = counts.sum(axis=(-2, -1))
    if not np.isfinite(n).all() or (counts < 0).any() or (n == 0).any():
        raise InputError("tables", "tables of counts, none all 0", "NaN, negative numbers or an empty table")
    risk: FloatArray = 1 - (inverse * counts).sum(axis=(-2, -1)) / n
    return risk


def smoothed(scores: ArrayLike) -> FloatArray:
    """Each score averaged with its two neighbours (its one neighbour at the ends).

    Held-out labels are few, so that single checkpoints win by luck; neighbours share the luck less than the skill.

    >>> smoothed([3.0, 0.0, 3.0, 6.0]).tolist()
    [1.5, 2.0, 3.0, 4.5]
    """
    values = numeric("scores", scores)
    if values.ndim != 1 or not values.size:
        raise InputError("scores", "one score a checkpoint, shape (n,)", f"shape {values.shape}")
    padded = np.pad(values, 1)
    averaged = np.full(len(values), 3)
    averaged[[0, -1]] = 2 if len(values) > 1 else 1
    with np.errstate(all="ignore"):  # scores may be infinite
        mean: FloatArray = (padded[:-2] + values + padded[2:]) / averaged
    return mean


@dataclass(frozen=True)
class Choice:
    """A candidate and one of its checkpoints."""

    candidate: int
    checkpoint: int
    score: float


def select(candidates: Sequence[ArrayLike]) -> Choice:
    """The candidate and checkpoint of the lowest smoothed score; exact ties take the earlier checkpoint.

    ``candidates`` have one score a checkpoint each, lower is better. NaN and infinity (a run that diverged) lose
    against every number, also for the neighbours that they touch.
    """
    if isinstance(candidates, str | bytes | Mapping) or not np.iterable(candidates):
        raise InputTypeError("candidates", "a list of scores", type(candidates).__name__)
    found = [smoothed(scores) for scores in candidates]
    if not found:
        raise InputError("candidates", "at least one", "none")
    if len({len(scores) for scores in found}) > 1:
        raise InputError("candidates", "equally many scores each", sorted({len(scores) for scores in found}))
    scores = np.stack(found, axis=1)
    scores = np.where(np.isfinite(scores), scores, np.inf)
    checkpoint, candidate = divmod(int(scores.argmin()), scores.shape[1])  # argmin takes the first of equals
    return Choice(candidate, checkpoint, float(scores[checkpoint, candidate]))
