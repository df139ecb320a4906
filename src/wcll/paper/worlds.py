"""A protocol that was run in full, as claims on recalls, spreads and epochs see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wcll.paper.part import Part
from wcll.report.result_tables import Cell, Table
from wcll.suites.suite import TableSpec

RARE = "minority_recall"


@dataclass(frozen=True)
class World:
    """Methods in the settings of tables 2, 3 and 4; where the tables have parts of their own, those."""

    title: str
    parts: tuple[Part, ...]  #: whose columns, one after the other, are those settings
    steady: Part  #: p = 2 and p = 2.5 with one imbalanced class
    weights: Part  #: wrong weights with p = 2 and class 0
    sampling: Part  #: resampling

    @property
    def columns(self) -> list[str]:
        """The settings, in order."""
        return [column for part in self.parts for column in part.columns]

    @property
    def methods(self) -> set[str]:
        """That were run in all of them."""
        return set.intersection(*(set(part.methods) for part in self.parts))

    def cells(self, method: str, metric: str = "accuracy") -> list[Cell]:
        """A method in every setting, at the last epoch."""
        return [cell for part in self.parts for cell in part.cells("paper", method, metric)]

    @property
    def panels(self) -> list[str]:
        """Table 2's settings, one imbalanced class each, which figure 3 shows."""
        return list(filter(_single, self.columns))

    def recalls(self, method: str) -> list[Cell]:
        """A method on the imbalanced class in these."""
        return [cell for column, cell in zip(self.columns, self.cells(method, RARE), strict=True) if _single(column)]

    def wrong_weights(self, formula: str) -> list[str]:
        """The rows of a formula of WCLL with weights that do not match pi."""
        begin = f"{formula}, " if "," in formula else f"{formula} "
        return [m for m in self.weights.methods if m.startswith(begin) and ("bias" in m or "random" in m)]

    def peaks(self, method: str) -> list[Cell]:
        """Accuracy at the epoch of the highest TEST accuracy, in every setting."""
        return [table.cell(method, column, "accuracy") for table, part in self._peaks for column in part.columns]

    @cached_property
    def _peaks(self) -> list[tuple[Table, Part]]:
        return [(part.table(_peak(part.suite.tables[0])), part) for part in self.parts]

    def step(self, method: str) -> tuple[list[Cell], list[Cell]]:
        """The imbalanced class before and after p goes from 2 to 2.5, class by class."""
        columns = [column for column in self.steady.columns if _single(column)]
        before, after = ([c for c in columns if c.startswith(f"p = {p},")] for p in ("2", "2.5"))
        return self._cells(self.steady, method, before), self._cells(self.steady, method, after)

    @staticmethod
    def _cells(part: Part, method: str, columns: Sequence[str]) -> list[Cell]:
        return [part.cell("paper", method, column, RARE) for column in columns]


def _single(column: str) -> bool:
    """Whether a setting of table 2: one imbalanced class, and p below 5."""
    return ", class " in column and not column.startswith("p = 5")


def _peak(spec: TableSpec) -> TableSpec:
    """The same runs at their best epoch by TEST accuracy: to see what is lost afterwards, never to choose."""
    return TableSpec("peak", select="oracle", at=spec.at)
