"""A suite: the runs behind a table or figure, as a TOML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from wcll.exceptions import InputError
from wcll.suites.trial import LEFT_OPEN, Trial, is_auto

Settings = dict[str, Any]
MOST_RUNS = 200_000  #: of a suite: more of them would not fit into memory as a plan, nor into anybody's patience


@dataclass(frozen=True)
class Axis:
    """A row or a column of the tables: a title, and the settings that make it."""

    title: str
    settings: Settings


@dataclass(frozen=True)
class TableSpec:
    """How runs become figures."""

    title: str
    metrics: tuple[str, ...] = ("accuracy",)
    select: str = "last"  #: the epoch and the grid's values: "last" (with ``at``), "label-free", or "oracle"
    at: tuple[tuple[str, Any], ...] = ()  #: values of the grid that are fixed


@dataclass(frozen=True)
class Suite:
    """Rows x columns x grid x seeds."""

    name: str
    title: str
    about: str
    trials: int
    settings: Settings
    grid: dict[str, list[Any]]
    columns: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    tables: tuple[TableSpec, ...]

    def candidates(self, column: Axis, row: Axis, seed: int, at: Mapping[str, Any] | None = None) -> list[Trial]:
        """The trials of one cell and seed, one for each combination of the grid; a setting of ``at`` is fixed.

        A row's or column's own setting takes the place of the grid's values.
        """
        return [
            trial
            for values, trial in self._cell(column, row, seed)
            if not at or all(values.get(key, value) == value for key, value in at.items())
        ]

    def _cell(self, column: Axis, row: Axis, seed: int = 0) -> list[tuple[Settings, Trial]]:
        """The trials of a cell and seed, each with its values of the grid; kept, as many tables ask for the same.

        Settings are parsed once, for the first seed.
        """
        place = column.title, row.title, seed
        if place not in self._made:
            self._made[place] = (
                [(values, replace(trial, seed=seed)) for values, trial in self._cell(column, row)]
                if seed
                else self._parsed(column, row)
            )
        return self._made[place]

    @cached_property
    def _made(self) -> dict[tuple[str, str, int], list[tuple[Settings, Trial]]]:
        return {}

    def _parsed(self, column: Axis, row: Axis) -> list[tuple[Settings, Trial]]:
        """The first seed's trials of a cell, each with its values of the grid."""
        own = {**self.settings, **column.settings, **row.settings, "seed": 0}
        grid = self._grid(column, row)
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [(values, Trial.of({**own, **values})) for values in combinations]

    def check_size(self, trials: int = 1) -> None:
        """Fail if so many trials are more runs than anybody can ask for; they are counted, not made."""
        cells = len(self.columns) * len(self.rows)
        if cells <= MOST_RUNS:
            grids = (self._grid(*cell) for cell in product(self.columns, self.rows))
            cells = sum(prod(map(len, grid.values())) for grid in grids)
        if cells > MOST_RUNS:
            raise InputError("grid", f"at most {MOST_RUNS} runs", f"{cells} in every trial")
        if cells * trials > MOST_RUNS:
            raise InputError("trials", f"at most {MOST_RUNS} runs", f"{cells * trials}")

    def _grid(self, column: Axis, row: Axis) -> dict[str, list[Any]]:
        """What of the grid is varied in a cell."""
        own = {**self.settings, **column.settings, **row.settings}
        settled = {*column.settings, *row.settings, *(LEFT_OPEN if is_auto(own) else ())}
        return {key: values for key, values in self.grid.items() if key not in settled}

    def all_trials(self, seeds: Sequence[int] | None = None) -> Iterator[Trial]:
        """Every trial, seeds outermost, so that an unfinished suite has whole trials first."""
        wanted = range(self.trials) if seeds is None else seeds
        self.check_size(len(wanted[: MOST_RUNS + 1]))  # a range may be longer than any list
        cells = list(product(self.columns, self.rows))
        for cell in cells:
            self._cell(*cell)  # what is wrong with any is said at once
        return (trial for seed in wanted for cell in cells for _, trial in self._cell(*cell, seed))
