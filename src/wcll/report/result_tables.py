"""Tables of finished runs: which run of a cell is shown, means and spreads, the headline, and formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy.special import stdtr  # scipy.stats has the test, and takes a second to load

from wcll._files import csv_line
from wcll._validation import FloatArray
from wcll.evaluation.metrics import metric_title
from wcll.evaluation.selection import select
from wcll.experiments.row import Row
from wcll.experiments.suite import Axis, Suite, TableSpec
from wcll.experiments.trial import FACTS, Trial
from wcll.report.render import render

SIGNIFICANCE = 0.05
ROUNDING = 1e-12  # figures closer than this are equal
DIVERGED = "§"  #: marks figures of runs whose outputs are not finite
UNDECIDED = "°"  #: marks figures that a paired test cannot tell from the best


@dataclass(frozen=True)
class Cell:
    """The figures of one method in one column: fractions by seed."""

    values: dict[int, float]
    missing: tuple[int, ...]
    limit: bool = False  #: true labels shaped the training: out of competition
    diverged: bool = False  #: some run has no finite outputs
    undefined: bool = False  #: the metric means nothing here, as minority recall without a minority
    best: bool = False
    p_value: float | None = None  #: of the paired test against the best, Holm-adjusted; None for the best itself

    @property
    def mean(self) -> float:
        """NaN without values."""
        return float(np.mean(list(self.values.values()))) if self.values else float("nan")

    @property
    def std(self) -> float:
        """With ddof=1; NaN for a single value."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else float("nan")

    @property
    def undecided(self) -> bool:
        """Not the best, but no test says so."""
        return self.p_value is not None and self.p_value >= SIGNIFICANCE

    @property
    def marks(self) -> str:
        """What stands behind its figures."""
        return (UNDECIDED if self.undecided else "") + (DIVERGED if self.diverged else "")

    def text(self) -> str:
        """``72.3 ± 1.2`` in percent; a cell with missing trials says so."""
        total = len(self.values) + len(self.missing)
        if self.undefined:
            return "-"
        if not self.values:
            return f"- (0 of {total})"
        text = f"{100 * self.mean:.1f}" + (f" ± {100 * self.std:.1f}" if self.std == self.std else "") + self.marks
        return f"{text} ({len(self.values)} of {total})" if self.missing else text


def compared(cells: list[Cell]) -> list[Cell]:
    """Mark the best of a column among those that see no true label, and test the others against it.

    Only cells with as many trials as the fullest compete: fewer would be other seeds.
    """
    rivals = [i for i, cell in enumerate(cells) if cell.values and not cell.limit and not cell.undefined]
    fullest = max((len(cells[i].values) for i in rivals), default=0)
    rivals = [i for i in rivals if len(cells[i].values) == fullest]
    if len(rivals) < 2:
        return cells
    best = max(rivals, key=lambda i: cells[i].mean)
    others = [i for i in rivals if i != best]
    tested = {i: p for i in others if (p := paired_p_value(cells[best].values, cells[i].values)) is not None}
    marked = list(cells)
    marked[best] = replace(cells[best], best=True)
    for i, p_value in zip(tested, holm(list(tested.values())), strict=True):
        marked[i] = replace(cells[i], p_value=p_value)
    return marked


def paired_p_value(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Two-sided paired t-test over the shared seeds; None where there are too few to tell."""
    shared = sorted(set(first) & set(second))
    difference = np.array([first[seed] - second[seed] for seed in shared])
    if len(shared) < 2:
        return None
    if np.ptp(difference) < ROUNDING:  # the same difference each time
        return 1.0 if abs(difference[0]) < ROUNDING else 0.0
    size = difference.mean() / difference.std(ddof=1) * len(difference) ** 0.5
    return float(2 * stdtr(len(difference) - 1, -abs(size)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment: the k-th smallest of m is multiplied by m - k + 1, never falling below the one before.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else []
    return adjusted.tolist()


#: How tables say what their figures are.
SELECTED_BY = {
    "last": "the last epoch of each run",
    "label-free": (
        "rate and epoch chosen without true labels: the lowest held-out -log (pQ)_ybar, averaged over three checkpoints"
    ),
    "oracle": "ORACLE: rate and epoch chosen with the TEST labels, an upper limit that no user can reach",
}


class Run(Protocol):
    """A run as tables see it: a whole row, or the little that a result file keeps of one."""

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""

    @property
    def diverged(self) -> bool:
        """Whether outputs ceased to be numbers."""

    @property
    def checkpoints(self) -> Sequence[int]:
        """The epochs that held-out labels can choose."""

    def held_out_scores(self) -> FloatArray:
        """What selection minimises, one score a checkpoint."""

    def best_epoch(self, metric: str) -> int:
        """The epoch of the highest TEST figure."""

    def value(self, metric: str, epoch: int) -> float:
        """A figure of the test set after an epoch, counted from 1."""


R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Picked(Generic[R]):
    """A run, and the epoch at which it is looked at (counted from 1)."""

    run: R
    epoch: int

    def value(self, metric: str) -> float:
        """A figure of the run at that epoch."""
        return self.run.value(metric, self.epoch)


def choose(candidates: Sequence[R], how: str, metric: str) -> Picked[R]:
    """Pick among the runs of one cell and seed, which differ in their rate or other values of the grid.

    Only here, over finished runs, may test results choose (``how="oracle"``); tables say so wherever they do.
    """
    if how == "last":
        (run,) = candidates
        return Picked(run, run.epochs)
    if how == "label-free":
        found = [lowest_score(run) for run in candidates]
        best = found.index(min(found))  # of equal scores the earlier checkpoint, then the earlier candidate
        return Picked(candidates[best], found[best][1])
    picked = [Picked(run, run.best_epoch(metric)) for run in candidates]
    return max(picked, key=lambda one: one.value(metric))


def lowest_score(run: Run) -> tuple[float, int]:
    """The lowest held-out score of a run, averaged over three checkpoints, and the epoch that has it."""
    found = select([run.held_out_scores()])
    return found.score, run.checkpoints[found.checkpoint]


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


MOST_NAMED = 4  #: columns that a sentence can hold


def finding(suite: Suite, table: Table) -> str:
    """What the default reaches where nothing is told, beside the best of the others; or, without it, who is ahead."""
    autos = [row.title for row in suite.rows if suite.candidates(suite.columns[0], row, 0)[0].auto]
    own = [line for line in table.lines if line.title in autos and line.cells[0].values]
    return _of_default(suite, table, own[0]) if own else _of_best(table)


def _of_default(suite: Suite, table: Table, own: Line) -> str:
    mean, rest = own.cells[0].mean, [line for line in table.lines if line is not own and line.cells[0].values]
    rivals, limits = ([line for line in rest if line.limit == limit] for limit in (False, True))
    parts = []
    if rivals:
        best = max(rivals, key=lambda line: line.cells[0].mean)
        said = _beside(mean, best.cells[0].mean, f"the best of the other methods ({_named(suite, best)})")
        unsure = best.cells[0].undecided or own.cells[0].undecided
        parts.append(said + (", which may be chance," if unsure else ""))
    parts += [_beside(mean, line.cells[0].mean, line.title) for line in limits[:1]]
    told = f"Without a true label, and told nothing but “not this”, {own.title} reaches {100 * mean:.1f} % "
    return told + table.head_texts()[0] + (f": {' and '.join(parts)}." if parts else ".")


def _of_best(table: Table) -> str:
    """Who has the highest figure of the first metric, in how many columns, and how far below the limit it stays."""
    metric = table.heads[0][1]
    places = [i for i, head in enumerate(table.heads) if head[1] == metric]
    rivals = [line for line in table.lines if not line.limit and any(line.cells[i].values for i in places)]
    ahead = Counter(line.title for line in rivals for i in places if line.cells[i].best)
    if len(rivals) < 2 or not ahead:
        return ""
    leaders = [line for line in rivals if ahead[line.title] == max(ahead.values())]
    if len(leaders) > 1:
        return _undecided(table, leaders, places, metric)
    (own,) = leaders
    won = [i for i in places if own.cells[i].best]
    means = [100 * own.cells[i].mean for i in won]
    where = f" in {len(won)} of {len(places)} columns" if len(places) > 1 else ""
    said = f"{own.title} has the highest {metric_title(metric)} of {len(rivals)} methods that learn from complementary "
    said += f"labels{where}, {_span(means)} %"
    if unsure := sum(any(line.cells[i].undecided for line in rivals) for i in won):
        said += ", which may be chance" + (f" in {unsure} of them" if len(won) > 1 else "")
    if limits := [line for line in table.lines if line.limit and line.cells[won[0]].values]:
        points = [100 * (limits[0].cells[i].mean - own.cells[i].mean) for i in won if limits[0].cells[i].values]
        said += f"; {limits[0].title} has {_span(points)} points more"
    return said + "."


def _undecided(table: Table, leaders: Sequence[Line], places: Sequence[int], metric: str) -> str:
    """Several are ahead in equally many columns: which, if they are few."""
    won = [(line, i) for line in leaders for i in places if line.cells[i].best]
    if len(won) > MOST_NAMED:
        names = ", ".join(line.title for line in leaders)
        return f"No one method is ahead: {names} have the highest {metric_title(metric)} in equally many columns."
    each = [f"{line.title} for {table.heads[i][0]} ({100 * line.cells[i].mean:.1f} %)" for line, i in won]
    return f"No one method is ahead: the highest {metric_title(metric)} has {', '.join(each)}."


def _span(values: Sequence[float]) -> str:
    """From the least to the largest, once if they look alike.

    >>> _span([10.21, 9.5]), _span([2.01, 2.0])
    ('9.5 to 10.2', '2.0')
    """
    return " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(values), max(values))))


def _beside(mean: float, other: float, whom: str) -> str:
    points = round(100 * mean, 1) - round(100 * other, 1)  # as they are shown
    if abs(points) < 0.05:
        return f"as much as {whom}"
    return f"{abs(points):.1f} points {'above' if points > 0 else 'below'} {whom}"


def _named(suite: Suite, line: Line) -> str:
    """A method, and what it is told that others must find out."""
    (row,) = (row for row in suite.rows if row.title == line.title)
    told = suite.candidates(suite.columns[0], row, 0)[0].told
    return line.title + (f", told {' and '.join(told)}" if told else "")


_LATEX = {
    **{chr(code): rf"\textbackslash{{}}x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{character: f"{{{character}}}" for character in "[]*"},  # where a line begins they would be options of the last
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
    **{"°": r"$^\circ$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "§": r"\S{}"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_markdown(table: Table) -> str:
    """A pipe table, the best in bold."""
    return render("table.md", table=table, caption=caption(table)) + "\n"


def to_latex(table: Table) -> str:
    """A booktabs table, the best in bold."""
    rule = "l" + "r" * len(table.heads)
    head = " & ".join(["method", *(latex_text(f"{head} %") for head in table.head_texts())])
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(f'{table.title}. {caption(table)}')}}}"]
    lines += [rf"\begin{{tabular}}{{{rule}}}", r"\toprule", head + r" \\", r"\midrule"]
    for line in table.lines:
        cells = [rf"\textbf{{{latex_text(c.text())}}}" if c.best else latex_text(c.text()) for c in line.cells]
        lines.append(" & ".join([latex_text(line.title + line.mark), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def to_csv(tables: Sequence[Table]) -> str:
    """One line a figure, fractions in full."""
    heads = ("table", "select", "method", "column", "metric", "mean", "std", "trials", "missing", "best", "p")
    return csv_line(heads) + "".join(
        csv_line((table.title, table.select, line.title, column, metric, *_figures(cell)))
        for table in tables
        for line in table.lines
        for (column, metric), cell in zip(table.heads, line.cells, strict=True)
    )


def to_dict(table: Table) -> dict[str, Any]:
    """Every figure of a table, for JSON."""
    lines = [
        {
            "method": line.title,
            "limit": line.limit,
            "cells": [_plain(*head, cell) for head, cell in zip(table.heads, line.cells, strict=True)],
        }
        for line in table.lines
    ]
    return {"title": table.title, "heads": table.head_texts(), "caption": caption(table), "lines": lines}


def _plain(column: str, metric: str, cell: Cell) -> dict[str, Any]:
    values = {str(seed): value for seed, value in cell.values.items()}
    figures = {"mean": cell.mean, "std": cell.std, "best": cell.best, "values": values}
    return {"column": column, "metric": metric, **figures}


def caption(table: Table) -> str:
    """How the figures came about."""
    spread = f"mean ± std over {table.trials} trials" if table.trials > 1 else "one trial"
    return ". ".join([f"In percent, {spread}; {table.notes[0]}", *table.notes[1:]]) + "."


def latex_text(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in text)


def _figures(cell: Cell) -> tuple[str, ...]:
    seeds = " ".join(map(str, cell.missing))
    number = tuple("" if x != x else repr(x) for x in (cell.mean, cell.std))
    p_value = "" if cell.p_value is None else repr(cell.p_value)
    return (*number, str(len(cell.values)), seeds, "yes" if cell.best else "", p_value)
