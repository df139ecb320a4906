"""What the paper leaves open on images, one thing at a time in one setting, and what of it is nearest to print."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from statistics import fmean

from wcll.paper.part import Part
from wcll.paper.published import FORMULAS, Published, find

#: By the epoch that they show, the tables of the suite and their rates.
LOOKS = {
    "after the last epoch": {"paper": "5e-5", "last epoch at 5e-6": "5e-6"},
    "at the best epoch by TEST": {"best epoch by TEST at 5e-5": "5e-5", "best epoch by TEST at 5e-6": "5e-6"},
}


@dataclass(frozen=True)
class Nearest:
    """What comes nearest to the printed numbers."""

    column: str
    lr: str
    figures: dict[str, float]  #: in percent, by method
    distance: float  #: the mean of the absolute differences, in points


def factors_printed() -> dict[str, Published]:
    """The two numbers that the paper prints in that setting, by method."""
    found = {method: find(2, "cifar10", 5.0, "0", method) for method in ("log", "wcll")}
    return {method: one for method, one in found.items() if one is not None}


def nearest(part: Part) -> dict[str, Nearest]:
    """By the epoch that is shown, the column, rate and formula that are nearest to both."""
    log, wcll = (one.mean for one in factors_printed().values())
    found = {}
    for when, tables in LOOKS.items():
        tried = []
        for table, column, own in product(tables, part.columns, FORMULAS):
            cells = {method: part.cell(table, method, column) for method in ("log", own)}
            if all(cell.values for cell in cells.values()):
                figures = {method: 100 * cell.mean for method, cell in cells.items()}
                distance = fmean((abs(figures["log"] - log), abs(figures[own] - wcll)))
                tried.append(Nearest(column, tables[table], figures, distance))
        if tried:
            found[when] = min(tried, key=lambda one: one.distance)
    return found
