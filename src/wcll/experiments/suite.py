"""A suite: the runs behind a table or figure, as a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from wcll.checks import InputError, choice, whole
from wcll.experiments.lines import Lines
from wcll.experiments.outcomes import METRICS
from wcll.experiments.trial import NULLABLE, SETTINGS, Trial

PARTS = ("title", "about", "trials", "settings", "grid", "columns", "rows", "tables")
SELECTIONS = ("last", "label-free", "oracle")
Settings = dict[str, Any]


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
        own = {**self.settings, **column.settings, **row.settings, "seed": seed}
        grid = {k: v for k, v in self.grid.items() if k not in column.settings and k not in row.settings}
        grid = {k: [at[k]] if at and k in at else v for k, v in grid.items()}
        return [Trial.of({**own, **dict(zip(grid, values, strict=True))}) for values in product(*grid.values())]

    def all_trials(self, seeds: Sequence[int] | None = None) -> Iterator[Trial]:
        """Every trial, seeds outermost, so that an unfinished suite has whole trials first."""
        for seed in seeds if seeds is not None else range(self.trials):
            for column, row in product(self.columns, self.rows):
                yield from self.candidates(column, row, seed)


def packaged_suites() -> list[str]:
    """The suites that come with the package."""
    folder = resources.files("wcll.experiments") / "suites"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def load_suite(name: str) -> Suite:
    """A suite of the package by name, or a ``.toml`` file."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise InputError("suite", "a file", f"{path}, which does not exist")
        try:
            return parse_suite(path.read_text(encoding="utf-8"), path.stem, path.name)
        except UnicodeDecodeError as error:
            raise InputError(path.name, "UTF-8 text", f"byte {error.start} that is not") from None
    known = choice("suite", name, packaged_suites())
    text = (resources.files("wcll.experiments") / "suites" / f"{known}.toml").read_text(encoding="utf-8")
    return parse_suite(text, known, f"{known}.toml")


def parse_suite(text: str, name: str, file: str = "suite") -> Suite:
    """Read a suite; whatever is wrong is said with its line."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, "TOML", str(error)) from None
    return _Reader(plain, Lines(text, file)).suite(name)


class _Reader:
    """Turns the plain tables of a TOML file into a suite."""

    def __init__(self, plain: dict[str, Any], lines: Lines) -> None:
        self.plain, self.lines = plain, lines

    def suite(self, name: str) -> Suite:
        with self.lines.at(()):
            for part in self.plain:
                choice("key", part, PARTS)
        settings = self._settings("settings", self._table("settings"))
        suite = Suite(
            name=name,
            title=self._text("title", name),
            about=self._text("about", ""),
            trials=self._whole("trials", 1),
            settings=settings,
            grid=self._grid(),
            columns=self._axes("columns") or (Axis("", {}),),
            rows=self._axes("rows"),
            tables=self._tables(),
        )
        if not suite.rows:
            raise InputError(self.lines.file, 'at least one [[rows]] table, such as loss = "wcll"', "none")
        self._try_all(suite)
        return suite

    def _try_all(self, suite: Suite) -> None:
        """Settings must fit together in every cell; if not, say where one of them stands."""
        for (i, column), (j, row) in product(enumerate(suite.columns), enumerate(suite.rows)):
            with self.lines.somewhere((("rows", j), ("columns", i), ("grid",), ("settings",))):
                suite.candidates(column, row, 0)

    def _table(self, part: str) -> Settings:
        value = self.plain.get(part, {})
        with self.lines.at((part,)):
            if not isinstance(value, dict):
                raise InputError(part, f"a table, [{part}]", repr(value))
        return value

    def _text(self, key: str, default: str) -> str:
        value = self.plain.get(key, default)
        with self.lines.at((), key):
            if not isinstance(value, str):
                raise InputError(key, "text", repr(value))
        return value

    def _whole(self, key: str, default: int) -> int:
        with self.lines.at((), key):
            return whole(key, self.plain.get(key, default))

    def _settings(self, part: str | tuple[str, int], values: Settings) -> Settings:
        """Check every setting where it stands; its value stays as written."""
        section = part if isinstance(part, tuple) else (part,)
        for key, value in values.items():
            with self.lines.at(section, key):
                _check_setting(key, value)
        return values

    def _grid(self) -> dict[str, list[Any]]:
        grid = self._table("grid")
        for key, values in grid.items():
            with self.lines.at(("grid",), key):
                if not isinstance(values, list) or not values:
                    raise InputError(key, "a list of values in [grid]", repr(values), "one value goes to [settings]")
                for value in values:
                    _check_setting(key, value)
        return grid

    def _axes(self, part: str) -> tuple[Axis, ...]:
        axes: list[Axis] = []
        for i, values in enumerate(self._list(part)):
            settings = {key: value for key, value in values.items() if key != "title"}
            self._settings((part, i), settings)
            title = values.get("title", _title(settings))
            with self.lines.at((part, i), "title"):
                if not isinstance(title, str):
                    raise InputError("title", "text", repr(title))
                if title in [axis.title for axis in axes]:
                    raise InputError("title", f"a different one for each of [[{part}]]", repr(title), "set title")
            axes.append(Axis(title, settings))
        return tuple(axes)

    def _list(self, part: str) -> list[Settings]:
        values = self.plain.get(part, [])
        with self.lines.at((part,)):
            if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
                raise InputError(part, f"tables, [[{part}]]", repr(values))
        return values

    def _tables(self) -> tuple[TableSpec, ...]:
        specs = tuple(self._table_spec(i, values) for i, values in enumerate(self._list("tables")))
        return specs or (TableSpec("accuracy", select="label-free" if self.plain.get("grid") else "last"),)

    def _table_spec(self, i: int, values: Settings) -> TableSpec:
        for key in values:
            with self.lines.at(("tables", i), key):
                choice("key", key, ("title", "metrics", "select", "at"))
        with self.lines.at(("tables", i), "metrics"):
            metrics = values.get("metrics", ["accuracy"])
            if not isinstance(metrics, list) or not metrics:
                raise InputError("metrics", "a list of metrics", repr(metrics))
            for metric in metrics:
                choice("metric", metric, METRICS)
        with self.lines.at(("tables", i), "select"):
            select = choice("select", values.get("select", "last"), SELECTIONS)
        at = values.get("at", {})
        with self.lines.at(("tables", i), "at"):
            self._check_at(at, select)
        return TableSpec(values.get("title", f"table {i + 1}"), tuple(metrics), select, tuple(at.items()))

    def _check_at(self, at: Any, select: str) -> None:
        grid = self.plain.get("grid", {})
        if not isinstance(at, dict):
            raise InputError("at", "values of the grid, such as { lr = 5e-4 }", repr(at))
        for key, value in at.items():
            choice("at", key, grid)
            if value not in grid[key]:
                raise InputError(f"at {key}", f"one of the grid's values {grid[key]}", repr(value))
        open_keys = [key for key, values in grid.items() if key not in at and len(values) > 1]
        if select == "last" and open_keys:
            raise InputError("at", f"a value of {open_keys[0]} for select = 'last'", "none",
                             "fix it, or choose with select = 'label-free'")  # fmt: skip


def _check_setting(key: str, value: Any) -> None:
    choice("setting", key, [k for k in SETTINGS if k != "seed"])
    if not (value == "none" and key in NULLABLE):
        SETTINGS[key](key, value)


def _title(settings: Settings) -> str:
    """A title for an axis without one: its values."""
    return ", ".join(str(v.get("name", v) if isinstance(v, dict) else v) for v in settings.values())
