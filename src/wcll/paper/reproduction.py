"""All that was measured of the paper, read from result files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wcll.checks import InputError
from wcll.paper.part import Beside, Part
from wcll.paper.published import Published, published
from wcll.paper.result_files import read_part
from wcll.paper.search import NAME, Search, read_search
from wcll.report.cells import Cell
from wcll.suites import load_suite

MAIN = ("table2", "table3", "table4")  #: the ten methods in 11 settings
TABLES = (*MAIN, "table5", "table6")
SUITES = (*TABLES, "figure3", "steady", "bases", "sizes")  #: those of ``wcll paper all``


@dataclass(frozen=True)
class Reproduction:
    """Every suite of the paper, and the search for its protocol."""

    parts: dict[str, Part]
    search: Search | None  #: many runs, which not everybody makes

    @property
    def tables(self) -> list[Part]:
        """The paper's tables, in order."""
        return [self.parts[name] for name in TABLES]

    @property
    def beside(self) -> list[Beside]:
        """Every published number that was measured."""
        return [one for table in self.tables for one in table.beside.values()]

    @property
    def missing(self) -> list[Published]:
        """Published numbers that were not: data sets that no suite has yet."""
        measured = {one.printed for one in self.beside}
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

    @property
    def wcll(self) -> list[Beside]:
        """WCLL's own 12 settings: tables 2, 3, 4, and p = 5 of table 6, whose others are table 2's."""
        return [*self.main_beside("wcll"), self.parts["table6"].of("wcll")[-1]]


def read_reproduction(folder: Path) -> Reproduction:
    """The results of every suite in a folder; those of another version are refused."""
    if not folder.is_dir():
        remedy = f"make it with: wcll paper all --results {folder}"
        raise InputError("--results", "a folder of result files", f"{folder}, which does not exist", remedy)
    parts = {name: read_part(folder / f"{name}.json", load_suite(name)) for name in SUITES}
    search = folder / f"{NAME}.json"
    return Reproduction(parts, read_search(search) if search.exists() else None)
