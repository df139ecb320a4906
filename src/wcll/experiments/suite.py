"""A suite: the trials behind a table or figure, read from a TOML file; errors name their line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from wcll._files import read_bytes
from wcll._validation import choice
from wcll.evaluation.metrics import check_metric
from wcll.exceptions import InputError
from wcll.experiments.trial import LEFT_OPEN, SETTINGS, TUNABLE, Trial, is_auto, read_setting, whole

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


Section = tuple[str | int, ...]  #: ("settings",), or ("rows", 2) for the third of several

_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|\#""")  # what may hide quotes, or is hidden by them
_ENDS = {'"""': re.compile(r'(?:\\.|[^\\])*?"{3,5}'), "'''": re.compile(r".*?'{3,5}")}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.\-\"]+)\s*\]\]?")
_KEY = re.compile(r"\s*[\"']?([\w\-]+)[\"']?\s*[.=]")


class Lines:
    """The lines of a file's sections and keys."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._places: dict[tuple[Section, str], int] = {}
        section: Section = ()
        seen: dict[str, int] = {}
        inside = ""  # of a text over several lines: the quotes that end it
        for number, line in enumerate(text.split("\n"), 1):  # TOML knows no other ends of lines
            was_inside, inside = inside, _inside_after(line, inside)
            if was_inside:
                continue
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                name = header[2].strip('"')
                section = (name,)
                if header[1] == "[[":
                    seen[name] = seen.get(name, -1) + 1
                    section = (name, seen[name])
                self._places[section, ""] = number
            elif key:
                self._places.setdefault((section, key[1]), number)

    def find(self, section: Section, key: str = "") -> int | None:
        """The line of a key in a section, of the section itself without one, None if it is not there."""
        return self._places.get((section, key))

    @contextmanager
    def at(self, section: Section, key: str = "") -> Iterator[None]:
        """Errors in this block are about a key of a section, or about the key that they name."""
        try:
            yield
        except InputError as error:
            named = str(error.got).strip("'")
            places = [
                (section, key),
                (section, named),
                ((named,), ""),
                ((named, 0), ""),
                (section, ""),
                ((*section, 0), ""),
            ]
            self._raise(error, next((line for place in places if (line := self.find(*place))), None))

    @contextmanager
    def somewhere(self, sections: tuple[Section, ...]) -> Iterator[None]:
        """Errors in this block are about the setting that they name, in the first section that has it."""
        try:
            yield
        except InputError as error:
            keys = (error.argument, "")  # the setting; or else a section
            found = [line for key in keys for section in sections if (line := self.find(section, key))]
            self._raise(error, found[0] if found else None)

    def _raise(self, error: InputError, line: int | None) -> None:
        place = f"{self.file}, line {line}" if line else self.file
        raise InputError(f"{place}: {error.argument}", error.expected, error.got, error.remedy) from None


def _inside_after(line: str, inside: str) -> str:
    """The quotes of a text over several lines that goes on after a line, "" if there is none."""
    place = 0
    while True:
        if inside:
            end = _ENDS[inside].match(line, place)
            if end is None:
                return inside
            place, inside = end.end(), ""
        token = _TOKEN.search(line, place)
        if token is None or token[0] == "#":
            return ""
        place, inside = token.end(), token[0] if token[0] in _ENDS else ""


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


LARGEST = 2**20  #: bytes of a suite's file
LONGEST_CHAIN = 20  #: of suites each of which extends the next
DEEPEST = 20  #: lists and tables within each other
LONGEST_NUMBER = 10**1000

#: Where suites lie: in every package that has any.
_FOLDERS = [folder / "suites" for folder in resources.files("wcll").iterdir() if (folder / "suites").is_dir()]


def packaged_suites() -> list[str]:
    """The suites that come with the package."""
    return [name for name in _packaged() if not name.startswith("_")]


def load_suite(name: str) -> Suite:
    """A suite of the package by name, or a ``.toml`` file."""
    if not _is_file(name):
        choice("suite", name, packaged_suites())
    return _load(name, Path(), ()).complete()


def load_base(name: str) -> Suite:
    """A suite of the package that is not run as it is, by its name, which begins with _."""
    return _load(name, Path(), ()).suite


def parse_suite(text: str, name: str, file: str = "suite") -> Suite:
    """Read a suite; whatever is wrong is said with its line."""
    return _parse(text, name, file, Path(), ()).complete()


@cache
def _packaged() -> dict[str, Traversable]:
    """All files of the package by name; those whose names begin with _ are there to be extended."""
    files = [item for folder in _FOLDERS for item in folder.iterdir() if item.name.endswith(".toml")]
    return {item.name.removesuffix(".toml"): item for item in sorted(files, key=lambda item: item.name)}


def _is_file(name: str) -> bool:
    """Names of the package are never files: a file that happens to be here must not take their place."""
    return name.endswith(".toml") or (name not in _packaged() and Path(name).is_file())


def _load(name: str, folder: Path, heirs: tuple[str, ...]) -> Reader:
    """A suite by name, or a file beside those of ``folder``; ``heirs`` are the files that extend it."""
    if not _is_file(name):
        known = choice("suite", name, _packaged())
        return _parse(_packaged()[known].read_text(encoding="utf-8"), known, f"{known}.toml", folder, heirs)
    path = folder / name
    if path.is_dir() or not path.exists():
        raise InputError("suite", "a file", f"{path}, which {'is a folder' if path.is_dir() else 'does not exist'}")
    if str(path.resolve()) in heirs:
        raise InputError("extends", "a suite that does not extend this one in turn", repr(name))
    if len(heirs) == LONGEST_CHAIN:
        raise InputError("extends", f"at most {LONGEST_CHAIN} suites that extend each other", "more")
    try:
        text = read_bytes(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path.name, "UTF-8 text", f"byte {error.start} that is not") from None
    return _parse(text, path.stem, path.name, path.parent, (*heirs, str(path.resolve())))


def _parse(text: str, name: str, file: str, folder: Path, heirs: tuple[str, ...]) -> Reader:
    try:
        plain = tomllib.loads(text)
        _check_plain(plain)
    except RecursionError:
        raise InputError(file, "TOML", f"lists or tables more than {DEEPEST} deep") from None
    except ValueError as error:  # TOML that is wrong, or a number that Python does not read
        raise InputError(file, "TOML", str(error)) from None
    lines, base = Lines(text, file), None
    if "extends" in plain:
        with lines.at((), "extends"):
            if not isinstance(plain["extends"], str):
                raise InputError("extends", "the name of a suite, or a .toml file", repr(plain["extends"]))
            base = _load(plain["extends"], folder, heirs).suite
    return Reader(plain, lines, name, base)


def _check_plain(plain: object) -> None:
    """Fail if something is nested so deeply, or a number so long, that it could not even be printed."""
    level = [plain]
    for _ in range(DEEPEST):
        if any(isinstance(value, int) and abs(value) >= LONGEST_NUMBER for value in level):
            raise ValueError("a number of more than 1000 digits")
        parts = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        ]
        level = [value for part in parts for value in part]
    if level:
        raise RecursionError
