"""Every number that the paper prints in tables 2 to 7."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from wcll.losses import LOSSES

#: The methods that the paper compares, in its order.
METHODS = ("pc", "nn", "free", "log", "exp", "l-w", "l-uw", "ncll", "ml-cll", "wcll")
RIVALS = METHODS[:-1]  #: those that its own is compared with
FORMULAS = ("wcll", "wcll, Algorithm 1")  #: rows that may stand for its own: Eq. 9, and the algorithm as printed


@dataclass(frozen=True)
class Published:
    """One printed number, in percent; classes are counted from 0, where the paper counts from 1."""

    table: int
    dataset: str
    classes: int
    p: float | None
    minority: str  #: the imbalanced classes, separated by spaces
    method: str
    mean: float
    std: float | None
    trials: int

    def text(self) -> str:
        """``72.30 ± 1.23``, as printed."""
        return f"{self.mean:.2f}" + (f" ± {self.std:.2f}" if self.std is not None else "")


@cache
def published() -> tuple[Published, ...]:
    """All of them, in the paper's order.

    >>> len(published())
    232
    """
    text = (resources.files("wcll.paper") / "published.csv").read_text(encoding="utf-8")
    return tuple(_number(row) for row in csv.DictReader(text.splitlines()))


@cache
def _by_place() -> dict[tuple[int, str, float | None, str, str], Published]:
    return {(one.table, one.dataset, one.p, one.minority, one.method): one for one in published()}


def find(table: int, dataset: str, p: float | None, minority: str, method: str) -> Published | None:
    """The number that a table prints for a method in a setting, None where it prints none.

    >>> find(2, "mnist", 2.0, "0", "wcll").mean
    72.3
    """
    return _by_place().get((table, dataset, p, minority, method))


def show_name(method: str) -> str:
    """A method's name as papers write it.

    >>> show_name("l-uw"), show_name("wcll bias=0.05"), show_name("under-sampling")
    ('L-UW', 'WCLL bias=0.05', 'under-sampling')
    """
    if method in LOSSES:
        return LOSSES[method].title
    first, *rest = method.replace(",", " ,").split(" ")
    return " ".join([LOSSES[first].title if first in LOSSES else first, *rest]).replace(" ,", ",")


def _number(row: dict[str, str]) -> Published:
    p, std = (float(row[name]) if row[name] else None for name in ("p", "std"))
    place = int(row["table"]), row["dataset"], int(row["classes"]), p, row["minority"], row["method"]
    return Published(*place, mean=float(row["mean"]), std=std, trials=int(row["trials"]))
