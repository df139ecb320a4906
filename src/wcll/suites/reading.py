"""From the plain tables of a TOML file to a suite; whatever is wrong is said with its line, before any training."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

from wcll._validation import choice
from wcll.evaluation.metrics import check_metric
from wcll.exceptions import InputError
from wcll.suites.settings import whole
from wcll.suites.suite import MOST_RUNS, Axis, Settings, Suite, TableSpec
from wcll.suites.toml_lines import Lines, Section
from wcll.suites.trial import LEFT_OPEN, SETTINGS, TUNABLE, is_auto, read_setting

PARTS = ("extends", "keep", "title", "about", "trials", "settings", "grid", "columns", "rows", "tables")
SELECTIONS = ("last", "label-free", "oracle")


class Reader:
    """One file, and the suite that it extends: settings and grid take the place of that one's, lists go on from it."""

    def __init__(self, plain: dict[str, Any], lines: Lines, name: str, base: Suite | None = None) -> None:
        self.plain, self.lines, self.name = plain, lines, name
        self.whole_base = base or Suite("", "", "", 1, {}, {}, (), (), ())

    @cached_property
    def base(self) -> Suite:
        """The suite that is extended, with those of its rows that ``keep`` names."""
        base = self.whole_base
        with self.lines.at((), "keep"):
            names = self.plain.get("keep")
            if names is None:
                return base
            if not isinstance(names, list) or not names or not self.plain.get("extends"):
                raise InputError("keep", "titles of rows of the suite that is extended", repr(names))
            for name in names:
                choice("keep", name, [row.title for row in base.rows])
            return replace(base, rows=tuple(row for row in base.rows if row.title in names))

    @cached_property
    def suite(self) -> Suite:
        """The suite that the file describes, perhaps one that others complete."""
        with self.lines.at(()):
            for part in self.plain:
                choice("key", part, PARTS)
        base, settings, grid = self.base, self._settings(("settings",), self._table("settings")), self._grid()
        suite = Suite(
            name=self.name,
            title=self._text((), "title", self.plain, base.title or self.name),
            about=self._text((), "about", self.plain, base.about),
            trials=self._trials(),
            settings={key: value for key, value in base.settings.items() if key not in grid} | settings,
            grid={key: values for key, values in base.grid.items() if key not in settings} | grid,
            columns=(*base.columns, *self._axes("columns", base.columns)),
            rows=(*base.rows, *self._axes("rows", base.rows)),
            tables=base.tables,
        )
        return replace(suite, tables=(*base.tables, *self._tables(suite)))

    def complete(self) -> Suite:
        """A suite that can be run: it has rows, one column without settings if it names none, and a table."""
        suite = self.suite
        if not suite.rows:
            raise InputError(self.lines.file, 'at least one [[rows]] table, such as loss = "wcll"', "none")
        usual = TableSpec("accuracy", select="label-free" if suite.grid else "last")
        suite = replace(suite, columns=suite.columns or (Axis("", {}),), tables=suite.tables or (usual,))
        with self.lines.somewhere(((), ("grid",), ("rows", 0), ("columns", 0))):
            suite.check_size(suite.trials)
        self._try_all(suite)
        return suite

    def _try_all(self, suite: Suite) -> None:
        """Settings must fit together in every cell; if not, say where one of them stands."""
        for spec in self.base.tables:
            self._check_inherited(spec, suite)
        columns = enumerate(suite.columns, -len(self.base.columns))  # below 0: stands in the file that is extended
        rows = enumerate(suite.rows, -len(self.base.rows))
        for (i, column), (j, row) in product(columns, rows):
            with self.lines.somewhere((("rows", j), ("columns", i), ("grid",), ("settings",))):
                trials = suite.candidates(column, row, 0)
                if trials[0].validation == 0 and any(spec.select == "label-free" for spec in suite.tables):
                    remedy = "set validation, or select = 'last' in [[tables]]"
                    raise InputError("validation", "held-out labels for select = 'label-free'", 0, remedy)

    def _check_inherited(self, spec: TableSpec, suite: Suite) -> None:
        """A table of the suite that is extended must mean what it says with this file's grid and settings."""
        for key, value in spec.at:
            with self.lines.somewhere((("grid",), ("settings",))):
                if key in suite.settings and suite.settings[key] != value:
                    about = f"{value}, which the table {spec.title!r} is about"
                    raise InputError(key, about, suite.settings[key], "extend a suite without that table")
                if key in suite.grid and value not in suite.grid[key]:
                    raise InputError(key, f"{value} among the values, for the table {spec.title!r}", suite.grid[key])
        with self.lines.at(("grid",)):
            _check_open(suite.grid, dict(spec.at), spec.select)

    def _table(self, part: str) -> Settings:
        value = self.plain.get(part, {})
        with self.lines.at((part,)):
            if not isinstance(value, dict):
                raise InputError(part, f"a table, [{part}]", repr(value))
        return value

    def _list(self, part: str) -> list[Settings]:
        values = self.plain.get(part, [])
        with self.lines.at((part,)):
            if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
                raise InputError(part, f"tables, [[{part}]]", repr(values))
        return values

    def _text(self, section: Section, key: str, values: Settings, default: str) -> str:
        """Text on one line."""
        value = values.get(key, default)
        with self.lines.at(section, key):
            if not isinstance(value, str):
                raise InputError(key, "text", repr(value))
        return " ".join(value.split())

    def _trials(self) -> int:
        with self.lines.at((), "trials"):
            return whole("trials", self.plain.get("trials", self.base.trials), most=MOST_RUNS)

    def _settings(self, section: Section, values: Settings) -> Settings:
        """Check every setting where it stands; its value stays as written."""
        for key, value in values.items():
            with self.lines.at(section, key):
                _check_setting(key, value)
        return values

    def _grid(self) -> dict[str, list[Any]]:
        grid, settings = self._table("grid"), self._table("settings")
        for key, values in grid.items():
            with self.lines.at(("grid",), key):
                if key in SETTINGS and key not in TUNABLE:
                    remedy = "what decides the data or the method belongs to [settings], rows or columns"
                    raise InputError("grid", "one of " + ", ".join(TUNABLE), key, remedy)
                if not isinstance(values, list) or not values:
                    raise InputError(key, "a list of values in [grid]", repr(values), "one value goes to [settings]")
                for value in values:
                    _check_setting(key, value)
                if key in settings:
                    raise InputError(key, "values in [grid] or one in [settings]", "both")
        return grid

    def _axes(self, part: str, before: tuple[Axis, ...]) -> tuple[Axis, ...]:
        axes: list[Axis] = []
        for i, values in enumerate(self._list(part)):
            settings = {key: value for key, value in values.items() if key != "title"}
            self._settings((part, i), settings)
            for key in LEFT_OPEN if is_auto(settings) else ():
                with self.lines.at((part, i), key):
                    if key in settings:
                        raise InputError(key, "none for loss 'auto', which chooses for itself", settings[key])
            title = self._text((part, i), "title", values, _title(settings))
            self._new((part, i), title, [axis.title for axis in (*before, *axes)])
            axes.append(Axis(title, settings))
        return tuple(axes)

    def _new(self, section: Section, title: str, others: list[str]) -> None:
        with self.lines.at(section, "title"):
            if title in others:
                raise InputError("title", f"a different one for each of [[{section[0]}]]", repr(title), "set title")

    def _tables(self, suite: Suite) -> tuple[TableSpec, ...]:
        specs: list[TableSpec] = []
        for i, values in enumerate(self._list("tables")):
            specs.append(self._table_spec(i, values, suite.grid))
            self._new(("tables", i), specs[-1].title, [spec.title for spec in (*suite.tables, *specs[:-1])])
        return tuple(specs)

    def _table_spec(self, i: int, values: Settings, grid: dict[str, list[Any]]) -> TableSpec:
        section = ("tables", i)
        for key in values:
            with self.lines.at(section, key):
                choice("key", key, ("title", "metrics", "select", "at"))
        with self.lines.at(section, "metrics"):
            metrics = values.get("metrics", ["accuracy"])
            if not isinstance(metrics, list) or not metrics:
                raise InputError("metrics", "a list of metrics", repr(metrics))
            for metric in metrics:
                check_metric("metric", metric)
        with self.lines.at(section, "select"):
            select = choice("select", values.get("select", "last"), SELECTIONS)
        at = values.get("at", {})
        with self.lines.at(section, "at"):
            _check_at(grid, at, select)
        title = self._text(section, "title", values, f"table {i + 1}")
        return TableSpec(title, tuple(dict.fromkeys(metrics)), select, tuple(at.items()))


def _check_at(grid: dict[str, list[Any]], at: Any, select: str) -> None:
    """What a table fixes must be of the grid."""
    if not isinstance(at, dict):
        raise InputError("at", "values of the grid, such as { lr = 5e-4 }", repr(at))
    for key, value in at.items():
        choice("at", key, grid)
        if value not in [one for one in grid[key] if isinstance(one, bool) == isinstance(value, bool)]:
            raise InputError(f"at {key}", f"one of the grid's values {grid[key]}", repr(value))
    _check_open(grid, at, select)


def _check_open(grid: dict[str, list[Any]], at: dict[str, Any], select: str) -> None:
    """A table of last epochs has one run a cell."""
    open_keys = [key for key, values in grid.items() if key not in at and len(values) > 1]
    if select == "last" and open_keys:
        value = f"a value of {open_keys[0]} for select = 'last'"
        raise InputError("at", value, "none", "fix it, or choose with select = 'label-free'")


def _check_setting(key: str, value: Any) -> None:
    choice("setting", key, [k for k in SETTINGS if k != "seed"])
    read_setting(key, value)


def _title(settings: Settings) -> str:
    """A title for an axis without one: names as they are, other settings with theirs."""
    parts = []
    for key, value in settings.items():
        text = str(value.get("name", value) if isinstance(value, dict) else value)
        parts.append(text if key in ("loss", "model", "dataset") else f"{key} = {text}")
    return ", ".join(parts)
