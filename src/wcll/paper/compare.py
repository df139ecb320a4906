"""Every published number beside ours: by the paper's protocol, and by the fair one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from wcll import evaluation
from wcll.losses import LOSSES
from wcll.paper.published import Published, find
from wcll.paper.results import CURVES, Results
from wcll.paper.summary import METRICS, Look, Summary, chosen
from wcll.report.tables import Cell, compared
from wcll.suites.suite import Axis, Suite
from wcll.suites.trial import Trial

CLOSE = 2.0  #: points, and standard deviations, within which numbers are called close


@dataclass(frozen=True)
class Entry:
    """One method in one setting: what the paper prints, if it does, and what we measured (fractions)."""

    method: str
    column: str
    printed: Published | None
    paper: dict[str, Cell]  #: metric -> figures of the paper's protocol
    fair: dict[str, Cell]  #: metric -> figures of the fair protocol
    rates: dict[float, Cell]  #: rate -> accuracy of the last epoch

    @property
    def difference(self) -> float | None:
        """Ours less theirs, in points, by the paper's protocol."""
        if self.printed is None or not self.paper["accuracy"].values:
            return None
        return 100 * self.paper["accuracy"].mean - self.printed.mean

    @property
    def close(self) -> bool:
        """Within two points."""
        return self.difference is not None and abs(self.difference) <= CLOSE

    @property
    def within_spread(self) -> bool:
        """Within two of the standard deviations that the paper prints."""
        if self.difference is None or self.printed is None or self.printed.std is None:
            return False
        return abs(self.difference) <= CLOSE * self.printed.std


#: The methods that the paper compares, in its order.
METHODS = ("pc", "nn", "free", "log", "exp", "l-w", "l-uw", "ncll", "ml-cll", "wcll")


@dataclass(frozen=True)
class Comparison:
    """One of the paper's tables."""

    results: Results
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """The suite's."""
        return self.results.suite.name

    @property
    def metric(self) -> str:
        """What the paper shows of it."""
        return "minority_recall" if self.name in CURVES else "accuracy"

    @property
    def metric_title(self) -> str:
        """In words."""
        return evaluation.METRICS[self.metric]

    @property
    def columns(self) -> list[str]:
        """The settings, in order."""
        return [column.title for column in self.results.suite.columns]

    @property
    def methods(self) -> list[str]:
        """The rows, in order."""
        return [row.title for row in self.results.suite.rows]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], Entry]:
        return {(entry.method, entry.column): entry for entry in self.entries}

    def at(self, method: str, column: str) -> Entry:
        """One cell."""
        return self._by_place[method, column]

    def of(self, method: str) -> list[Entry]:
        """One method in every setting."""
        return [self.at(method, column) for column in self.columns]

    @property
    def printed(self) -> list[Entry]:
        """Those for which the paper has a number."""
        return [entry for entry in self.entries if entry.difference is not None]


def compare(results: Results) -> Comparison:
    """Every cell of a suite."""
    suite = results.suite
    (paper,) = [spec for spec in suite.tables if spec.title == "paper"]
    entries = [_entry(results, row, column, dict(paper.at)) for column in suite.columns for row in suite.rows]
    return Comparison(results, _marked(suite, entries))


def show_name(method: str) -> str:
    """A method's name as papers write it.

    >>> show_name("l-uw"), show_name("wcll bias=0.05"), show_name("under-sampling")
    ('L-UW', 'WCLL bias=0.05', 'under-sampling')
    """
    if method in LOSSES:
        return LOSSES[method].title
    first, *rest = method.replace(",", " ,").split(" ")
    return " ".join([LOSSES[first].title if first in LOSSES else first, *rest]).replace(" ,", ",")


def rank_agreement(entries: Iterable[Entry], protocol: str) -> float:
    """Kendall's tau-b between the paper's order of methods in a setting and ours: 1 the same, -1 the reverse."""
    from scipy.stats import kendalltau

    pairs = [(entry.printed.mean, getattr(entry, protocol)["accuracy"].mean) for entry in entries if entry.printed]
    return float(kendalltau(*zip(*pairs, strict=True)).statistic) if len(pairs) > 1 else float("nan")


def mean_absolute(entries: Sequence[Entry]) -> float:
    """The mean absolute difference from the paper, in points."""
    differences = [abs(entry.difference) for entry in entries if entry.difference is not None]
    return sum(differences) / len(differences) if differences else float("nan")


def _entry(results: Results, row: Axis, column: Axis, at: dict[str, Any]) -> Entry:
    """One cell; the paper's protocol fixes the values ``at``."""
    suite = results.suite
    looks: dict[str, dict[int, Look]] = {"paper": {}, "fair": {}}
    rates: dict[float, dict[int, float]] = {}
    diverged = False
    at_rate, at_all = suite.candidates(column, row, 0, at), suite.candidates(column, row, 0)
    for seed in results.seeds:
        fixed, tried = _runs(results, at_rate, seed), _runs(results, at_all, seed)
        if fixed:
            looks["paper"][seed] = fixed[0].last
            diverged |= fixed[0].diverged
        if tried:
            looks["fair"][seed] = chosen(tried).chosen
        for trial, run in zip(at_all, tried, strict=False):  # none, if some are missing
            rates.setdefault(trial.lr, {})[seed] = run.last.accuracy
    truth = any(trial.sees_truth for trial in at_all)

    def cells(protocol: str) -> dict[str, Cell]:
        return {
            metric: _cell({seed: getattr(look, metric) for seed, look in looks[protocol].items()}, results, truth,
                          diverged and protocol == "paper")
            for metric in METRICS
        }  # fmt: skip

    return Entry(
        method=row.title,
        column=column.title,
        printed=_printed(suite, row, column),
        paper=cells("paper"),
        fair=cells("fair"),
        rates={lr: _cell(values, results, truth) for lr, values in rates.items()},
    )


def _runs(results: Results, trials: Sequence[Trial], seed: int) -> list[Summary]:
    """The runs of trials with another seed, none unless all are there."""
    runs = [results.runs.get(replace(trial, seed=seed).key) for trial in trials]
    return [run for run in runs if run] if all(runs) else []


def _cell(values: dict[int, float], results: Results, truth: bool, diverged: bool = False) -> Cell:
    missing = tuple(seed for seed in results.seeds if seed not in values)
    return Cell(values, missing, truth, diverged, undefined=any(value != value for value in values.values()))


def _printed(suite: Suite, row: Axis, column: Axis) -> Published | None:
    """Tables are numbered; other suites have no published numbers."""
    number = suite.name.removeprefix("table")
    if not number.isdecimal():
        return None
    trial = suite.candidates(column, row, 0)[0]
    minority = " ".join(map(str, trial.minority or ()))
    return find(int(number), trial.dataset, trial.p or 1.0, minority, row.title)


def _marked(suite: Suite, entries: list[Entry]) -> tuple[Entry, ...]:
    """With the best of every column marked, separately by protocol, and the others tested against it."""
    marked: list[Entry] = []
    for column in suite.columns:
        own = [entry for entry in entries if entry.column == column.title]
        paper, fair = (compared([getattr(entry, how)["accuracy"] for entry in own]) for how in ("paper", "fair"))
        marked += [
            replace(entry, paper={**entry.paper, "accuracy": a}, fair={**entry.fair, "accuracy": b})
            for entry, a, b in zip(own, paper, fair, strict=True)
        ]
    return tuple(marked)
