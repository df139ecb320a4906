"""All that was measured of the paper, read from result files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wcll.checks import InputError
from wcll.paper.compare import Comparison, Entry, compare
from wcll.paper.published import Published, published
from wcll.paper.results import read_results
from wcll.paper.search import NAME, Search, read_search
from wcll.suites import load_suite

TABLES = ("table2", "table3", "table4", "table5", "table6")
SUITES = (*TABLES, "figure3", "steady", "bases", "sizes")  #: those of ``wcll paper all``


@dataclass(frozen=True)
class Reproduction:
    """Every suite of the paper, compared."""

    parts: dict[str, Comparison]
    search: Search | None  #: many runs, which not everybody makes

    @property
    def tables(self) -> list[Comparison]:
        """The paper's tables, in order."""
        return [self.parts[name] for name in TABLES]

    @property
    def entries(self) -> list[Entry]:
        """Every published number that was measured."""
        return [entry for table in self.tables for entry in table.printed]

    @property
    def missing(self) -> list[Published]:
        """Published numbers that were not: data sets that no suite has yet."""
        measured = {entry.printed for entry in self.entries}
        return [one for one in published() if one not in measured]

    def main(self, method: str) -> list[Entry]:
        """A method in the 11 settings of tables 2, 3 and 4."""
        return [entry for name in TABLES[:3] for entry in self.parts[name].of(method)]

    @property
    def wcll(self) -> list[Entry]:
        """WCLL's own 12 settings: tables 2, 3, 4, and p = 5 of table 6, whose others are table 2's."""
        return [*self.main("wcll"), self.parts["table6"].of("wcll")[-1]]


def read_reproduction(folder: Path) -> Reproduction:
    """The results of every suite in a folder; those of another version are refused."""
    if not folder.is_dir():
        raise InputError("--results", "a folder of result files", f"{folder}, which does not exist",
                         f"make it with: wcll paper all --results {folder}")  # fmt: skip
    parts = {name: compare(read_results(folder / f"{name}.json", load_suite(name))) for name in SUITES}
    search = folder / f"{NAME}.json"
    return Reproduction(parts, read_search(search) if search.exists() else None)
