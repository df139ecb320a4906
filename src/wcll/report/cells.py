"""Cells of tables: means, spreads, what is missing, what is best in a column and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr  # scipy.stats has the test, and takes a second to load

SIGNIFICANCE = 0.05
ROUNDING = 1e-12  # figures closer than this are equal
DIVERGED = "§"  #: marks figures of runs whose outputs are not finite
UNDECIDED = "°"  #: marks figures that a paired test cannot tell from the best


@dataclass(frozen=True)
class Cell:
    """The figures of one method in one column: fractions by seed."""

    values: dict[int, float]
    missing: tuple[int, ...]
    limit: bool = False  #: true labels shaped the training: out of competition
    diverged: bool = False  #: some run has no finite outputs
    undefined: bool = False  #: the metric means nothing here, as minority recall without a minority
    best: bool = False
    p_value: float | None = None  #: of the paired test against the best, Holm-adjusted; None for the best itself

    @property
    def mean(self) -> float:
        """NaN without values."""
        return float(np.mean(list(self.values.values()))) if self.values else float("nan")

    @property
    def std(self) -> float:
        """With ddof=1; NaN for a single value."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else float("nan")

    @property
    def undecided(self) -> bool:
        """Not the best, but no test says so."""
        return self.p_value is not None and self.p_value >= SIGNIFICANCE

    @property
    def marks(self) -> str:
        """What stands behind its figures."""
        return (UNDECIDED if self.undecided else "") + (DIVERGED if self.diverged else "")

    def text(self) -> str:
        """``72.3 ± 1.2`` in percent; a cell with missing trials says so."""
        total = len(self.values) + len(self.missing)
        if self.undefined:
            return "-"
        if not self.values:
            return f"- (0 of {total})"
        text = f"{100 * self.mean:.1f}" + (f" ± {100 * self.std:.1f}" if self.std == self.std else "") + self.marks
        return f"{text} ({len(self.values)} of {total})" if self.missing else text


def compared(cells: list[Cell]) -> list[Cell]:
    """Mark the best of a column among those that see no true label, and test the others against it.

    Only cells with as many trials as the fullest compete: fewer would be other seeds.
    """
    rivals = [i for i, cell in enumerate(cells) if cell.values and not cell.limit and not cell.undefined]
    fullest = max((len(cells[i].values) for i in rivals), default=0)
    rivals = [i for i in rivals if len(cells[i].values) == fullest]
    if len(rivals) < 2:
        return cells
    best = max(rivals, key=lambda i: cells[i].mean)
    others = [i for i in rivals if i != best]
    tested = {i: p for i in others if (p := paired_p_value(cells[best].values, cells[i].values)) is not None}
    marked = list(cells)
    marked[best] = replace(cells[best], best=True)
    for i, p_value in zip(tested, holm(list(tested.values())), strict=True):
        marked[i] = replace(cells[i], p_value=p_value)
    return marked


def paired_p_value(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Two-sided paired t-test over the shared seeds; None where there are too few to tell."""
    shared = sorted(set(first) & set(second))
    difference = np.array([first[seed] - second[seed] for seed in shared])
    if len(shared) < 2:
        return None
    if np.ptp(difference) < ROUNDING:  # the same difference each time
        return 1.0 if abs(difference[0]) < ROUNDING else 0.0
    size = difference.mean() / difference.std(ddof=1) * len(difference) ** 0.5
    return float(2 * stdtr(len(difference) - 1, -abs(size)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment: the k-th smallest of m is multiplied by m - k + 1, never falling below the one before.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else []
    return adjusted.tolist()
