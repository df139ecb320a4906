"""Tables as pure functions of finished runs, with what a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import TypeVar

from wcll.evaluation.metrics import metric_title
from wcll.report.cells import DIVERGED, SIGNIFICANCE, UNDECIDED, Cell, compared
from wcll.report.choose import SELECTED_BY, Picked, R, Run, choose
from wcll.results.row import Row
from wcll.suites.suite import Axis, Suite, TableSpec
from wcll.suites.trial import FACTS, Trial

T = TypeVar("T")
BY_RISK = "†"  #: marks methods without class probabilities, which are selected by the 0-1 risk
TRUTH = "‡"  #: marks methods whose training sees true labels


@dataclass(frozen=True)
class Line:
    """One method's figures in every column."""

    title: str
    mark: str
    cells: tuple[Cell, ...]

    @property
    def limit(self) -> bool:
        """Whether it is out of competition everywhere."""
        return all(cell.limit for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """What a table says, in no format yet."""

    title: str
    select: str
    heads: tuple[tuple[str, str], ...]  #: column title and metric
    lines: tuple[Line, ...]
    trials: int
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no cell misses a trial."""
        return not any(cell.missing for line in self.lines for cell in line.cells)

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Cell]:
        return {
            (line.title, *head): cell for line in self.lines for head, cell in zip(self.heads, line.cells, strict=True)
        }

    def cell(self, method: str, column: str, metric: str) -> Cell:
        """The cell of a line, under the heading of a column and metric."""
        return self._by_place[method, column, metric]

    def head_texts(self) -> list[str]:
        """Headings without what all columns share."""
        columns, metrics = ({head[i] for head in self.heads} for i in (0, 1))
        many_columns, many_metrics = len(columns) > 1, len(metrics) > 1 or len(columns) == 1
        return [
            ", ".join(([column] if many_columns else []) + ([metric_title(metric)] if many_metrics else []))
            for column, metric in self.heads
        ]

    def split(self, most: int) -> list[Table]:
        """The same as tables of at most so many columns of figures: one a metric, and of many columns one part each."""
        if len(self.heads) <= most:
            return [self]
        parts = []
        for metric in dict.fromkeys(metric for _, metric in self.heads):
            places = [i for i, head in enumerate(self.heads) if head[1] == metric]
            groups = in_parts(places, most)
            for number, group in enumerate(groups, 1):
                part = f" ({number} of {len(groups)})" if len(groups) > 1 else ""
                parts.append(self._part(group, f"{self.title}: {metric_title(metric)}{part}"))
        return parts

    def _part(self, places: Sequence[int], title: str) -> Table:
        """Some of its columns."""
        lines = (replace(line, cells=tuple(line.cells[i] for i in places)) for line in self.lines)
        heads = tuple(self.heads[i] for i in places)
        return replace(self, title=title, heads=heads, lines=tuple(lines))


def in_parts(values: Sequence[T], most: int) -> list[Sequence[T]]:
    """Values in order, in as few parts of at most so many as it takes, these about alike.

    >>> in_parts("abcdefghi", 7)
    ['abcde', 'fghi']
    """
    each = ceil(len(values) / ceil(len(values) / most)) if values else 1
    return [values[i : i + each] for i in range(0, len(values), each)]


Picks = dict[tuple[str, str], dict[int, Picked[R]]]  #: (row title, column title) -> seed -> what is shown


def pick_all(suite: Suite, spec: TableSpec, runs: Mapping[str, R], seeds: Sequence[int]) -> Picks[R]:
    """For every cell the seeds of which all candidates are there, what the table shows."""
    picks: Picks[R] = {}
    for column in suite.columns:
        for row in suite.rows:
            cell = picks.setdefault((row.title, column.title), {})
            for seed in seeds:
                keys = [trial.key for trial in suite.candidates(column, row, seed, dict(spec.at))]
                if all(key in runs for key in keys):
                    cell[seed] = choose([runs[key] for key in keys], spec.select, spec.metrics[0])
    return picks


def build_table(suite: Suite, spec: TableSpec, runs: Mapping[str, R], seeds: Sequence[int]) -> Table:
    """The table that ``spec`` asks for, from runs by key: rows of a store, or what a result file keeps of them."""
    picks = pick_all(suite, spec, runs, seeds)
    heads = tuple((column.title, metric) for column in suite.columns for metric in spec.metrics)
    lines = tuple(_line(suite, row, spec, picks, seeds) for row in suite.rows)
    columns = [compared([line.cells[i] for line in lines]) for i in range(len(heads))]
    lines = tuple(replace(line, cells=tuple(column[j] for column in columns)) for j, line in enumerate(lines))
    return Table(spec.title, spec.select, heads, lines, len(seeds), _notes(suite, spec, lines, picks))


def _line(suite: Suite, row: Axis, spec: TableSpec, picks: Picks[R], seeds: Sequence[int]) -> Line:
    cells: list[Cell] = []
    mark = ""
    for column in suite.columns:
        trials, shown = suite.candidates(column, row, 0), picks[row.title, column.title]
        truth = any(trial.sees_truth for trial in trials)
        by_risk = spec.select == "label-free" and shown and trials[0].spec.link != "softmax"
        mark += (BY_RISK if by_risk else "") + (TRUTH if truth else "")
        cells += [_cell(shown, metric, seeds, truth) for metric in spec.metrics]
    return Line(row.title, "".join(sorted(set(mark))), tuple(cells))


def _cell(shown: Mapping[int, Picked[R]], metric: str, seeds: Sequence[int], limit: bool) -> Cell:
    values = {seed: picked.value(metric) for seed, picked in shown.items()}
    undefined = any(value != value for value in values.values())
    diverged = any(picked.run.diverged for picked in shown.values())
    return Cell(values, tuple(seed for seed in seeds if seed not in values), limit, diverged, undefined)


def _notes(suite: Suite, spec: TableSpec, lines: Sequence[Line], picks: Picks[R]) -> tuple[str, ...]:
    """What a reader must know; whole rows also tell which data they saw."""
    shown: list[Run] = [picked.run for cell in picks.values() for picked in cell.values()]
    rows = [run for run in shown if isinstance(run, Row)]
    cells = [cell for line in lines for cell in line.cells]
    notes = [SELECTED_BY[spec.select] + "".join(f", {key} = {value}" for key, value in spec.at)]
    if spec.select == "label-free":
        notes[0] += f"; {' or '.join(sorted({trial.selection_belief for trial in suite.all_trials([0])}))}"
    if spec.select == "oracle" and any(trial.evaluate for trial in suite.all_trials([0])):
        notes[0] += "; only the epochs at which models are compared were looked at"
    test = f"paired t-test over shared seeds, Holm, {100 * SIGNIFICANCE:.0f} %"
    marks = {
        BY_RISK: "no class probabilities: chosen by the 0-1 risk",
        TRUTH: "sees true labels in training: out of competition",
        UNDECIDED: f"not significantly below the best ({test})",
        DIVERGED: "a run diverged: its figures mean nothing",
    }
    used = "".join(line.mark for line in lines) + "".join(cell.marks for cell in cells)
    notes += [f"{mark} {text}" for mark, text in marks.items() if mark in used]
    return (*notes, *(note[0].upper() + note[1:] for note in told_notes(suite)), *_data_notes(rows))


def told_notes(suite: Suite, *, choice: bool = False) -> list[str]:
    """Which methods are told what others must find out, and what the choice of rates and epochs is told."""
    told: dict[str, list[str]] = {fact: [] for fact in FACTS}
    for row in suite.rows:
        for fact in {fact for trial in _first_trials(suite, row) for fact in trial.told}:
            told[fact].append(row.title)
    for fact in {fact for trial in suite.all_trials([0]) for fact in trial.selection_told if choice}:
        told[fact].append("the choice of rates and epochs")
    lines = [f"told {fact}: {'; '.join(whom)}" for fact, whom in told.items() if whom]
    if nothing := [row.title for row in suite.rows if any(trial.auto for trial in _first_trials(suite, row))]:
        selected = "Q, neighbours and epoch are selected by the complementary labels"
        lines.append(f"told nothing; {selected}: {'; '.join(nothing)}")
    return lines


def _first_trials(suite: Suite, row: Axis) -> list[Trial]:
    """Those of a row with the first seed."""
    return [trial for column in suite.columns for trial in suite.candidates(column, row, 0)]


def _data_notes(rows: Sequence[Row]) -> list[str]:
    """Data that are not what their name says, or not the same everywhere."""
    asked = ("dataset", "classes", "pixels")  # each of which is another part or another form of the data
    seen = {(*(str(row.config.get(name)) for name in asked), row.provenance["data"]["fingerprint"]) for row in rows}
    unofficial = {row.config["dataset"] for row in rows if not row.provenance["data"]["official"]}
    notes = [f"{name}: not the official file" for name in sorted(unofficial)]
    if len(seen) > len({one[:-1] for one in seen}):
        notes.append("runs saw DIFFERENT data under one name: do not compare them")
    return notes
