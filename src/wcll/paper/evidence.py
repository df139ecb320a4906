"""What claims and findings are argued with: means, ranges, tests, changes and slopes, and how they are said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import fdtr, stdtrit

from wcll.paper.part import Part
from wcll.paper.published import Published, published, show_name
from wcll.report.render import phrase
from wcll.report.result_tables import SIGNIFICANCE, Cell, holm, paired_p_value

PROTOCOL_NAMES = {"paper": "the paper's protocol", "fair": "the fair protocol"}


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


def leads(pairs: Sequence[tuple[Cell, Cell]]) -> list[int | None]:
    """Of each pair whether the first is significantly above (1) or below (-1) the second, or neither (0).

    Paired t-tests over shared seeds, adjusted over all pairs by Holm; None where there are too few seeds.
    """
    p_values = [paired_p_value(first.values, second.values) for first, second in pairs]
    adjusted = iter(holm([value for value in p_values if value is not None]))
    found: list[int | None] = []
    for (first, second), value in zip(pairs, p_values, strict=True):
        sure = value is not None and next(adjusted) < SIGNIFICANCE
        found.append(None if value is None else int(np.sign(first.mean - second.mean)) if sure else 0)
    return found


def ahead_everywhere(pairs: Sequence[tuple[Cell, Cell]]) -> bool | None:
    """Whether the first is above the second in all pairs: not if it is below in one, open if a test cannot tell."""
    signs = leads(pairs)
    return False if -1 in signs else None if None in signs or 0 in signs else True


def pooled_spreads(cells: Mapping[str, Sequence[Cell]], own: str) -> tuple[dict[str, float], bool | None]:
    """Each method's standard deviation over trials, in points, pooled over settings; is ``own`` the smallest?

    By F-tests of the pooled variances (two-sided): yes if it is significantly below all others, no if it is above one.
    """
    spread = {name: 100 * math.sqrt(fmean(cell.std**2 for cell in some)) for name, some in cells.items()}
    freedom = {name: sum(len(cell.values) - 1 for cell in some) for name, some in cells.items()}
    answers = []
    for name in cells:
        if name != own:
            ratio = (spread[own] / max(spread[name], 1e-12)) ** 2
            below = fdtr(freedom[own], freedom[name], ratio)
            answers.append(True if below < SIGNIFICANCE / 2 else False if below > 1 - SIGNIFICANCE / 2 else None)
    return spread, False if False in answers else None if None in answers else True


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

    def text(self) -> str:
        """The mean and its interval."""
        return f"{self.mean:+.1f} ({self.low:+.1f} to {self.high:+.1f})"


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
    "protocols": PROTOCOL_NAMES,
    "name": show_name,
    "percent": means,
    **{one.__name__: one for one in (all_of, fmean, in_words, log_slope, measured_range, printed_range, range_of)},
}


def say(template: str, what: str, *figures: Any) -> str:
    """A sentence of a template (one of its macros) with its figures."""
    return phrase(f"{template}.txt", what, *figures, package="wcll.paper", words=WORDS)
