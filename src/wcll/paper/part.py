"""A part of the paper: a suite's tables, with the published numbers beside their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from wcll.paper.kept import Kept, metrics_of
from wcll.paper.published import Published, find
from wcll.report.result_tables import Cell, Table, build_table
from wcll.suites import Suite
from wcll.suites.suite import TableSpec

CLOSE = 2.0  #: points, and standard deviations, within which numbers are called close
#: Suites whose runs are shown epoch by epoch: by the recall of the imbalanced classes, and (2) by accuracy, too.
CURVES = {"figure3": 1, "table2-cifar10": 2, "beyond-cifar10": 2}
ACCURACY = {"accuracy": "accuracy"}
#: What the paper shows of a suite's runs where that is not their accuracy: metrics, and how it calls them.
FIGURES = {
    "figure3": {"minority_recall": "minority recall"},
    "table7": {"accuracy": "total", "recall_1": "benign", "recall_2": "cancer"},
}
BY_SHARES = (None, "benign cancer")  #: p and the imbalanced classes of published numbers, for declared shares

Place = tuple[str, str]  #: a method and a setting


@dataclass(frozen=True)
class Beside:
    """A published number, and our cell of the same method and setting by the paper's protocol."""

    column: str
    printed: Published
    ours: Cell

    @property
    def difference(self) -> float:
        """Ours less theirs, in points."""
        return 100 * self.ours.mean - self.printed.mean

    @property
    def close(self) -> bool:
        """Within two points."""
        return abs(self.difference) <= CLOSE

    @property
    def within_spread(self) -> bool:
        """Within two of the standard deviations that the paper prints."""
        return self.printed.std is not None and abs(self.difference) <= CLOSE * self.printed.std


@dataclass(frozen=True)
class Part:
    """The runs of one suite, and the tables that it asks for: "paper" and "fair", the two protocols."""

    suite: Suite
    trials: int
    runs: Mapping[str, Kept]
    made: Mapping[str, Any]  #: the command, and where it ran
    lacking: tuple[str, ...] = ()  #: rows that the suite has got since, and that were not run yet
    left: tuple[str, ...] = ()  #: settings that were not begun yet, and are left out

    @property
    def columns(self) -> list[str]:
        """The settings, in order."""
        return [column.title for column in self.suite.columns]

    @property
    def begun(self) -> Part:
        """The same without the settings of which nothing was run yet."""
        known = {
            column.title
            for column, row in product(self.suite.columns, self.suite.rows)
            if any(trial.key in self.runs for trial in self.suite.candidates(column, row, 0))
        }
        columns = tuple(column for column in self.suite.columns if column.title in known)
        left = tuple(column.title for column in self.suite.columns if column.title not in known)
        return replace(self, suite=replace(self.suite, columns=columns), left=left) if columns and left else self

    @property
    def methods(self) -> list[str]:
        """The titles of the rows, in order."""
        return [row.title for row in self.suite.rows]

    @property
    def figures(self) -> dict[str, str]:
        """What the paper shows of it: metrics, and how it calls them."""
        return FIGURES.get(self.suite.name, ACCURACY)

    @property
    def metric(self) -> str:
        """The first of them."""
        return next(iter(self.figures))

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The suite's tables, by protocol, each with all that some of them shows."""
        every = metrics_of(self.suite)
        whole = [replace(spec, metrics=tuple(dict.fromkeys((*spec.metrics, *every)))) for spec in self.suite.tables]
        return {spec.title: self.table(spec) for spec in whole}

    @cached_property
    def rates(self) -> dict[float, Table]:
        """Accuracy after the last epoch, at each rate of the grid."""
        return self._by_rate("last")

    @cached_property
    def best_rates(self) -> dict[float, Table]:
        """At each rate, accuracy at the best epoch by TEST: an oracle, for comparison only."""
        return self._by_rate("oracle")

    def _by_rate(self, select: str) -> dict[float, Table]:
        specs = {lr: TableSpec(f"{lr:g}", select=select, at=(("lr", lr),)) for lr in self.suite.grid.get("lr", ())}
        return {lr: self.table(spec) for lr, spec in specs.items()}

    def table(self, spec: TableSpec) -> Table:
        """Its runs, read as ``spec`` asks for."""
        return build_table(self.suite, spec, self.runs, range(self.trials))

    def cell(self, protocol: str, method: str, column: str, metric: str = "accuracy") -> Cell:
        """One method in one setting."""
        return self.tables[protocol].cell(method, column, metric)

    def cells(self, protocol: str, method: str, metric: str = "accuracy") -> list[Cell]:
        """One method in every setting."""
        return [self.cell(protocol, method, column, metric) for column in self.columns]

    @cached_property
    def all_printed(self) -> dict[str, dict[Place, Published]]:
        """What the paper prints, by metric; tables are numbered, other suites have no printed numbers."""
        number = re.match(r"table(\d+)", self.suite.name)
        if number is None:
            return {metric: {} for metric in self.figures}
        return {metric: dict(self._printed_of(int(number[1]), name)) for metric, name in self.figures.items()}

    def _printed_of(self, table: int, figure: str) -> Iterator[tuple[Place, Published]]:
        for column, row in product(self.suite.columns, self.suite.rows):
            trial = self.suite.candidates(column, row, 0)[0]
            by_ratio = trial.p or 1.0, " ".join(map(str, trial.minority or ()))
            p, minority = BY_SHARES if trial.imbalance == "shares" else by_ratio
            method = row.title if len(self.figures) == 1 else f"{row.title} / {figure}"
            if one := find(table, trial.dataset, p, minority, method):
                yield (row.title, column.title), one

    @property
    def printed(self) -> dict[Place, Published]:
        """What the paper prints of the first of its figures."""
        return self.all_printed[self.metric]

    @property
    def printed_columns(self) -> list[str]:
        """The settings of which the paper prints something, in order."""
        return list(dict.fromkeys(column for _, column in self.printed))

    @cached_property
    def all_beside(self) -> dict[str, dict[Place, Beside]]:
        """Every printed number that was measured, by metric."""
        return {
            metric: {
                place: Beside(place[1], one, cell)
                for place, one in printed.items()
                if (cell := self.cell("paper", *place, metric)).values
            }
            for metric, printed in self.all_printed.items()
        }

    @property
    def beside(self) -> dict[Place, Beside]:
        """Those of the first figure."""
        return self.all_beside[self.metric]

    def of(self, method: str) -> list[Beside]:
        """The printed numbers of one method, of all figures."""
        found = (some.items() for some in self.all_beside.values())
        return [one for items in found for place, one in items if place[0] == method]

    def rank_agreement(self, protocol: str, column: str) -> float:
        """Kendall's tau-b between the paper's order of methods in a setting and ours: 1 the same, -1 the reverse."""
        printed = {method: one.mean for (method, place), one in self.printed.items() if place == column}
        ours = [self.cell(protocol, method, column).mean for method in printed]
        a, b = (np.sign(np.subtract.outer(means, means)) for means in (list(printed.values()), ours))
        return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())) if len(printed) > 1 else float("nan")


def mean_absolute(some: Sequence[Beside]) -> float:
    """The mean absolute difference from the paper, in points."""
    return fmean(abs(one.difference) for one in some) if some else float("nan")
