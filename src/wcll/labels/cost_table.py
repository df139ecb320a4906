"""What each family of Q costs if another is so: a table for label counts, which do not tell families apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import FloatArray, transition_matrix
from wcll.exceptions import InputError
from wcll.labels.cost import CostIfWrong, cost_if_wrong
from wcll.labels.families import FAMILIES, label_totals_of, told_by_counts
from wcll.labels.family_fits import takes_long

SAME = 1e-9  #: families whose entries differ by no more are one and the same for these counts


@dataclass(frozen=True, eq=False)
class CostTable:
    """Rows are what is assumed, columns what is so."""

    names: tuple[str, ...]  #: of families, and of what else was given
    costs: tuple[tuple[CostIfWrong | None, ...], ...]  #: None where labels occur that are assumed to be impossible
    same: frozenset[tuple[str, str]]  #: pairs of names that are no mistake: both have the same Q

    @property
    def accuracy(self) -> FloatArray:
        """Accuracies; NaN where there are none."""
        return np.array([[np.nan if cost is None else cost.accuracy for cost in row] for row in self.costs])

    @property
    def invisible(self) -> tuple[tuple[str, str], ...]:
        """Mistakes that no number of labels, one a sample, can show: what is assumed, and what is so."""
        return tuple(
            (assumed, truth)
            for assumed, row in zip(self.names, self.costs, strict=True)
            for truth, cost in zip(self.names, row, strict=True)
            if cost is not None and cost.invisible and (assumed, truth) not in self.same
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: by what is assumed, then by what is so."""
        return {
            assumed: {
                truth: None if cost is None else cost.to_dict() for truth, cost in zip(self.names, row, strict=True)
            }
            for assumed, row in zip(self.names, self.costs, strict=True)
        }


def costs_if_wrong(
    totals: ArrayLike, *, prior: ArrayLike | None = None, others: Mapping[str, ArrayLike] | None = None
) -> CostTable:
    """What every family that label counts tell costs if another of them is so; see :func:`cost_if_wrong`.

    ``totals`` are label counts, one a class, to which all are fitted (families that they do not fit are left out);
    ``others`` are more matrices by name, such as an estimated Q; ``prior`` are class shares, equal ones if None.

    >>> table = costs_if_wrong([420, 20, 10, 120, 120, 110])
    >>> dict(zip(table.names, table.accuracy[0].round(2).tolist()))
    {'uniform': 1.0, 'inverse-size': 1.0, 'popularity': 1.0, 'popularity-noise': 0.0, 'offered': 1.0}
    """
    counts = label_totals_of(totals)
    matrices = _fitted(counts)
    for name, matrix in (others or {}).items():
        matrices[name] = transition_matrix(matrix, len(counts), argument=f"others[{name!r}]")
    pairs = [(a, b) for a in matrices for b in matrices]
    same = frozenset((a, b) for a, b in pairs if np.abs(matrices[a] - matrices[b]).max() <= SAME)
    costs = tuple(tuple(_cost(assumed, truth, prior) for truth in matrices.values()) for assumed in matrices.values())
    return CostTable(tuple(matrices), costs, same)


def _fitted(counts: FloatArray) -> dict[str, FloatArray]:
    found = {}
    for name in told_by_counts():
        try:
            if not takes_long(name, len(counts)):
                found[name] = FAMILIES[name].fit(counts).transition
        except InputError:  # counts that this family cannot have
            continue
    return found


def _cost(assumed: FloatArray, truth: FloatArray, prior: ArrayLike | None) -> CostIfWrong | None:
    if ((assumed.max(axis=0) == 0) & (truth.max(axis=0) > 0)).any():
        return None
    return cost_if_wrong(assumed, truth, prior)
