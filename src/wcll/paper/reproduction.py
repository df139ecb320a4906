"""All that was measured of the paper, read from result files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean

from wcll.exceptions import InputError
from wcll.paper.bound_study import BoundResults, read_bounds
from wcll.paper.fitting import Fitting, fitting
from wcll.paper.images import FACTORS, IMAGES
from wcll.paper.named import NAMED, named_suite
from wcll.paper.part import Beside, Part
from wcll.paper.published import FORMULAS, METHODS, Published, published
from wcll.paper.result_files import read_part
from wcll.paper.search import NAME, Search, read_search
from wcll.paper.worlds import World
from wcll.report.result_tables import Cell
from wcll.suites import load_suite
from wcll.suites.suite import TableSpec

MAIN = ("table2", "table3", "table4")  #: the ten methods in 11 settings
TABLES = (*MAIN, "table5", "table6")
SUITES = (*TABLES, "figure3", "steady", "bases", "sizes", "family")  #: those of ``wcll paper run all``
LATER = ("family",)  #: those of them that a report may do without


@dataclass(frozen=True)
class Reproduction:
    """Every suite of the paper, the search for its protocol, and other protocols that were run in full."""

    parts: dict[str, Part]
    search: Search | None  #: many runs, which not everybody makes
    named: dict[str, Part] = field(default_factory=dict)  #: by the names of wcll.paper.named
    bounds: BoundResults | None = None  #: what was measured of the lemma and the theorem
    images: dict[str, Part] = field(default_factory=dict)  #: suites on images, of which some runs may be missing

    @property
    def on_images(self) -> list[Part]:
        """The tables on images, without the search for what the paper leaves open."""
        return [part for name, part in self.images.items() if name != FACTORS]

    @property
    def tables(self) -> list[Part]:
        """The paper's tables, in order."""
        return [self.parts[name] for name in TABLES]

    @property
    def beside(self) -> list[Beside]:
        """Every published number on MNIST, all of which are measured."""
        return [one for table in self.tables for one in table.beside.values()]

    @property
    def missing(self) -> list[Published]:
        """Published numbers that were not measured yet."""
        parts = (*self.tables, *self.images.values())
        measured = {one.printed for part in parts for some in part.all_beside.values() for one in some.values()}
        return [one for one in published() if one not in measured]

    @property
    def columns(self) -> list[str]:
        """The settings of tables 2, 3 and 4."""
        return [column for name in MAIN for column in self.parts[name].columns]

    def main(self, protocol: str, method: str, metric: str = "accuracy") -> list[Cell]:
        """A method in those settings."""
        return [cell for name in MAIN for cell in self.parts[name].cells(protocol, method, metric)]

    def main_beside(self, method: str) -> list[Beside]:
        """The printed numbers of a method in those settings."""
        return [one for name in MAIN for one in self.parts[name].of(method)]

    @cached_property
    def fits(self) -> Fitting | None:
        """The protocols that the printed numbers do not exclude; None without a search."""
        return fitting(self)

    @property
    def formulas(self) -> list[str]:
        """WCLL's rows that stand for the paper's method: Eq. 9, and Algorithm 1 where it was run."""
        there = set.intersection(*(set(self.parts[name].methods) for name in MAIN))
        return [row for row in FORMULAS if row in there]

    @property
    def first_at_rates(self) -> dict[float, list[bool]]:
        """By rate, whether WCLL is first of the ten methods at the last epoch, setting by setting."""
        rates: dict[float, list[bool]] = {}
        for name in MAIN:
            for lr, table in self.parts[name].rates.items():
                for column in self.parts[name].columns:
                    figures = {method: table.cell(method, column, "accuracy").mean for method in METHODS}
                    rates.setdefault(lr, []).append(figures["wcll"] == max(figures.values()))
        return rates

    @property
    def selection_costs(self) -> dict[str, float]:
        """By method, how much better rate and epoch could be chosen with the TEST labels, in points: a mean."""
        lost: dict[str, list[float]] = {}
        for name in MAIN:
            part = self.parts[name]
            oracle = part.table(TableSpec("oracle", select="oracle"))
            for method, column in product(part.methods, part.columns):
                gap = oracle.cell(method, column, "accuracy").mean - part.cell("fair", method, column).mean
                lost.setdefault(method, []).append(100 * gap)
        return {method: fmean(gaps) for method, gaps in lost.items()}

    @property
    def worlds(self) -> list[World]:
        """The protocol of the tables, and the others that were run in full."""
        parts = self.parts
        own = World(
            "the protocol of the tables",
            tuple(parts[name] for name in MAIN),
            parts["steady"],
            parts["table5"],
            parts["table6"],
        )
        return [own, *(World(NAMED[name].generator, (part,), part, part, part) for name, part in self.named.items())]

    @property
    def wcll(self) -> list[Beside]:
        """WCLL's own 12 settings: tables 2, 3, 4, and p = 5 of table 6, whose others are table 2's."""
        return [*self.main_beside("wcll"), self.parts["table6"].of("wcll")[-1]]


def read_reproduction(folder: Path) -> Reproduction:
    """The results of every suite in a folder; those of another version are refused."""
    if not folder.is_dir():
        remedy = f"make it with: wcll paper run all --results {folder}"
        raise InputError("--results", "a folder of result files", f"{folder}, which does not exist", remedy)

    def there(name: str) -> bool:
        return (folder / f"{name}.json").exists()

    wanted = [name for name in SUITES if name not in LATER or there(name)]
    parts = {name: read_part(folder / f"{name}.json", load_suite(name)) for name in wanted}
    named = {name: read_part(folder / f"{name}.json", named_suite(name)) for name in NAMED if there(name)}
    search = read_search(folder / f"{NAME}.json") if there(NAME) else None
    images = {
        name: read_part(folder / f"{name}.json", load_suite(name), partial=True).begun
        for name in (FACTORS, *IMAGES)
        if there(name)
    }
    bounds = read_bounds(folder.parent) if (folder.parent / "bounds.json").exists() else None
    return Reproduction(parts, search, named, bounds, images)
