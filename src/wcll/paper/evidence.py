"""What claims and findings are argued with: means, ranges, tests, changes and slopes, and how they are said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import stdtrit

from wcll.paper.part import Part
from wcll.paper.published import Published, published, show_name
from wcll.report.cells import SIGNIFICANCE, Cell, paired_p_value
from wcll.report.render import phrase

PROTOCOLS = {"paper": "the paper's protocol", "fair": "the fair protocol"}


def means(cells: Sequence[Cell]) -> list[float]:
    """Of each cell, in percent."""
    return [100 * cell.mean for cell in cells]


def in_words(cells: Sequence[Cell]) -> str:
    """The means, one after the other."""
    return all_of([f"{mean:.1f}" for mean in means(cells)])


def range_of(values: Sequence[float]) -> str:
    """From the smallest to the largest; a single value as it is."""
    return f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


def measured_range(part: Part, protocol: str, *methods: str) -> str:
    """The range of what we measure."""
    return range_of(means([cell for method in methods for cell in part.cells(protocol, method)]))


def printed_range(part: Part, *methods: str) -> str:
    """The range of what the paper prints."""
    return range_of([one.printed.mean for method in methods for one in part.of(method)])


def printed_settings(dataset: str, tables: Sequence[int]) -> list[list[Published]]:
    """What the paper prints, column by column; table 7 has three."""
    columns: dict[object, list[Published]] = {}
    for one in published():
        if one.dataset == dataset and one.table in tables:
            place = (one.table, one.p, one.minority, one.method.partition(" / ")[2])
            columns.setdefault(place, []).append(one)
    return list(columns.values())


def less(cell: Cell, than: Cell) -> bool | None:
    """Significantly smaller, over shared seeds; None where there are too few."""
    p_value = paired_p_value(than.values, cell.values)
    return None if p_value is None else cell.mean < than.mean and p_value < SIGNIFICANCE


def all_or_open(answers: Sequence[bool | None]) -> bool | None:
    """Whether all are so; None if some cannot be told."""
    return None if None in answers else all(answers)


@dataclass(frozen=True)
class Change:
    """How much a figure changes, in points: the mean over trials, and its 95 % interval."""

    mean: float
    low: float
    high: float
    trials: int

    @property
    def fell(self) -> bool | None:
        """Whether it certainly fell, or rose; None if that is open."""
        return True if self.high < 0 else False if self.low > 0 else None

    def within(self, points: float) -> bool:
        """Whether it is certainly small."""
        return -points < self.low and self.high < points


def change_between(before: Sequence[Cell], after: Sequence[Cell]) -> Change:
    """From some settings to others, each trial averaged over the settings: its runs share most of their images."""

    def by_seed(cells: Sequence[Cell]) -> dict[int, float]:
        return {seed: fmean(cell.values[seed] for cell in cells) for seed in cells[0].values}

    first, second = by_seed(before), by_seed(after)
    changes = 100 * np.array([second[seed] - first[seed] for seed in first])
    if len(changes) < 2:
        return Change(float(changes.mean()), -math.inf, math.inf, len(changes))
    half = stdtrit(len(changes) - 1, 0.975) * changes.std(ddof=1) / math.sqrt(len(changes))
    return Change(float(changes.mean()), float(changes.mean() - half), float(changes.mean() + half), len(changes))


def log_slope(sizes: Part, protocol: str, limit: float) -> float:
    """The log-log slope of the gap to a limit over the number of images, from means over trials."""
    n = np.log([column.settings["n_majority"] for column in sizes.suite.columns])
    gap = np.log([limit - mean for mean in means(sizes.cells(protocol, "wcll"))])
    return float(np.polyfit(n, gap, 1)[0])


def all_of(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


#: What sentences are made with.
WORDS = {
    "protocols": PROTOCOLS,
    "name": show_name,
    **{one.__name__: one for one in (all_of, fmean, in_words, log_slope, measured_range, printed_range, range_of)},
}


def say(template: str, what: str, *figures: Any) -> str:
    """A sentence of a template (one of its macros) with its figures."""
    return phrase(f"{template}.txt", what, *figures, package="wcll.paper", words=WORDS)
