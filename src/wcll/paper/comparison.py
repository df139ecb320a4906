"""Published numbers, result files of our runs, and tables that compare them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import blake2b
from importlib import resources
from itertools import product
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from wcll._files import read_bytes, replacing
from wcll._validation import FloatArray, choice, is_number
from wcll.exceptions import InputError
from wcll.experiments import Row, Suite, Trial
from wcll.experiments.suite import MOST_RUNS, Axis, TableSpec
from wcll.losses import LOSSES
from wcll.report.result_tables import Cell, Table, build_table, lowest_score

METRICS = ("accuracy", "balanced_accuracy", "minority_recall")  #: of most suites
MOST_CURVES = 2  #: of the imbalanced classes' recall, and of accuracy
LOOKS = ("last", "chosen", "best")  #: when a run is looked at


def metrics_of(suite: Suite) -> tuple[str, ...]:
    """What is kept of a suite's runs: all that its tables show."""
    return tuple(dict.fromkeys(metric for spec in suite.tables for metric in spec.metrics))


def fields_of(metrics: Sequence[str], curves: int = 1) -> tuple[str, ...]:
    """The values of a run's line, in order; curves only where a figure shows them."""
    looks = (f"{look} {name}" for look in LOOKS for name in ("epoch", *metrics))
    return ("key", "diverged", "score", *looks, "curve", *(["accuracy curve"] if curves == MOST_CURVES else []))


@dataclass(frozen=True)
class Kept:
    """A run as tables see it (:class:`wcll.report.result_tables.Run`), looked at after three of its epochs."""

    key: str
    diverged: bool
    score: float  #: the lowest held-out score, averaged over three checkpoints; infinite if lost, or nothing held out
    epochs: int
    chosen: int  #: the epoch of that score: no true label is used
    best: int  #: the epoch of the highest TEST accuracy: an oracle, for comparison only
    figures: dict[int, dict[str, float]]  #: by epoch and metric (fractions)
    recalls: tuple[float, ...] = ()  #: minority recall after every epoch (NaN: not looked at), where a figure shows it
    accuracies: tuple[float, ...] = ()  #: likewise

    @property
    def checkpoints(self) -> tuple[int]:
        """The one that held-out labels choose among all."""
        return (self.chosen,)

    def held_out_scores(self) -> FloatArray:
        """The score at that checkpoint."""
        return np.array([self.score])

    def best_epoch(self, metric: str) -> int:
        """The oracle's, which goes by accuracy."""
        choice("metric", metric, ("accuracy",))
        return self.best

    def value(self, metric: str, epoch: int) -> float:
        """A figure after an epoch that is kept."""
        return self.figures[epoch][metric]

    def to_list(self) -> list[Any]:
        """Plain values in the order of :func:`fields_of`; JSON has no infinity."""
        score = self.score if isfinite(self.score) else None
        epochs = (self.epochs, self.chosen, self.best)
        looks = [value for epoch in epochs for value in (epoch, *self.figures[epoch].values())]
        curves = [[value if isfinite(value) else None for value in curve] for curve in (self.recalls, self.accuracies)]
        return [self.key, int(self.diverged), score, *looks, *(curve for curve in curves if curve)]

    @staticmethod
    def from_list(values: Sequence[Any], metrics: Sequence[str] = METRICS) -> Kept:
        """What :meth:`to_list` wrote of these metrics; anything else is a ValueError."""
        key, diverged, score, *rest = values
        size = 1 + len(metrics)
        looks, curves = [rest[i * size : (i + 1) * size] for i in range(len(LOOKS))], rest[len(LOOKS) * size :]
        if len(looks[-1]) < size:
            raise ValueError("a run without all of its figures")
        epochs = (looks[0][0], looks[1][0], looks[2][0])
        shares = [share for _, *some in looks for share in some]
        shares += [value for curve in curves for value in curve if value is not None]
        if not (isinstance(key, str) and diverged in (0, 1) and (score is None or is_number(score))):
            raise ValueError("a run without a key, or whose score is no number")
        if not all(type(epoch) is int and 1 <= epoch <= epochs[0] for epoch in epochs):
            raise ValueError("an epoch that is none of the run's")
        if not all(is_number(value) and 0 <= value <= 1 for value in shares) or len(curves) > MOST_CURVES:
            raise ValueError("a share that is not from 0 to 1")
        if any(len(curve) != epochs[0] or curve[-1] is None for curve in curves):
            raise ValueError("a curve that does not tell its end")
        figures = {epoch: dict(zip(metrics, some, strict=True)) for epoch, *some in looks}
        told = (tuple(nan if value is None else value for value in curve) for curve in curves)
        return Kept(key, bool(diverged), inf if score is None else score, *epochs, figures, *told)


def keep(row: Row, metrics: Sequence[str] = METRICS, *, curves: int = 0) -> Kept:
    """Of a whole run, with none, the first or both of its curves.

    Five digits are more than 10,000 test images can tell apart. Nothing held out chooses the end.
    """
    score, chosen = lowest_score(row) if row.history["held_out"] is not None else (inf, row.epochs)
    best = row.best_epoch("accuracy")
    figures = {
        epoch: {metric: round(row.value(metric, epoch), 5) for metric in metrics}
        for epoch in (row.epochs, chosen, best)
    }
    shown = [tuple(round(float(v), 5) for v in row.curve(name)) for name in ("minority_recall", "accuracy")[:curves]]
    score = round(score, 9) if isfinite(score) else inf
    return Kept(row.key, row.diverged, score, row.epochs, chosen, best, figures, *shown)


#: The methods that the paper compares, in its order.
METHODS = ("pc", "nn", "free", "log", "exp", "l-w", "l-uw", "ncll", "ml-cll", "wcll")
RIVALS = METHODS[:-1]  #: those that its own is compared with
FORMULAS = ("wcll", "wcll, Algorithm 1")  #: rows that may stand for its own: Eq. 9, and the algorithm as printed


@dataclass(frozen=True)
class Published:
    """One printed number, in percent; classes are counted from 0, where the paper counts from 1."""

    table: int
    dataset: str
    classes: int
    p: float | None
    minority: str  #: the imbalanced classes, separated by spaces
    method: str
    mean: float
    std: float | None
    trials: int

    def text(self) -> str:
        """``72.30 ± 1.23``, as printed."""
        return f"{self.mean:.2f}" + (f" ± {self.std:.2f}" if self.std is not None else "")


@cache
def published() -> tuple[Published, ...]:
    """All of them, in the paper's order.

    >>> len(published())
    232
    """
    text = (resources.files("wcll.paper") / "published.csv").read_text(encoding="utf-8")
    return tuple(_number(row) for row in csv.DictReader(text.splitlines()))


@cache
def _by_place() -> dict[tuple[int, str, float | None, str, str], Published]:
    return {(one.table, one.dataset, one.p, one.minority, one.method): one for one in published()}


def find(table: int, dataset: str, p: float | None, minority: str, method: str) -> Published | None:
    """The number that a table prints for a method in a setting, None where it prints none.

    >>> find(2, "mnist", 2.0, "0", "wcll").mean
    72.3
    """
    return _by_place().get((table, dataset, p, minority, method))


def show_name(method: str) -> str:
    """A method's name as papers write it.

    >>> show_name("l-uw"), show_name("wcll bias=0.05"), show_name("under-sampling")
    ('L-UW', 'WCLL bias=0.05', 'under-sampling')
    """
    if method in LOSSES:
        return LOSSES[method].title
    first, *rest = method.replace(",", " ,").split(" ")
    return " ".join([LOSSES[first].title if first in LOSSES else first, *rest]).replace(" ,", ",")


def _number(row: dict[str, str]) -> Published:
    p, std = (float(row[name]) if row[name] else None for name in ("p", "std"))
    place = int(row["table"]), row["dataset"], int(row["classes"]), p, row["minority"], row["method"]
    return Published(*place, mean=float(row["mean"]), std=std, trials=int(row["trials"]))


CLOSE = 2.0  #: points, and standard deviations, within which numbers are called close
#: Suites whose runs are shown epoch by epoch: by the recall of the imbalanced classes, and (2) by accuracy, too.
CURVES = {"figure3": 1, "table2-cifar10": 2, "beyond-cifar10": 2}
ACCURACY = {"accuracy": "accuracy"}
#: What the paper shows of a suite's runs where that is not their accuracy: metrics, and how it calls them.
FIGURES = {
    "figure3": {"minority_recall": "minority recall"},
    "table7": {"accuracy": "total", "recall_1": "benign", "recall_2": "cancer"},
}
BY_SHARES = (None, "benign cancer")  #: p and the imbalanced classes of published numbers, for declared shares

Place = tuple[str, str]  #: a method and a setting


@dataclass(frozen=True)
class Beside:
    """A published number, and our cell of the same method and setting by the paper's protocol."""

    column: str
    printed: Published
    ours: Cell

    @property
    def difference(self) -> float:
        """Ours less theirs, in points."""
        return 100 * self.ours.mean - self.printed.mean

    @property
    def close(self) -> bool:
        """Within two points."""
        return abs(self.difference) <= CLOSE

    @property
    def within_spread(self) -> bool:
        """Within two of the standard deviations that the paper prints."""
        return self.printed.std is not None and abs(self.difference) <= CLOSE * self.printed.std


@dataclass(frozen=True)
class Part:
    """The runs of one suite, and the tables that it asks for: "paper" and "fair", the two protocols."""

    suite: Suite
    trials: int
    runs: Mapping[str, Kept]
    made: Mapping[str, Any]  #: the command, and where it ran
    lacking: tuple[str, ...] = ()  #: rows that the suite has got since, and that were not run yet
    left: tuple[str, ...] = ()  #: settings that were not begun yet, and are left out

    @property
    def columns(self) -> list[str]:
        """The settings, in order."""
        return [column.title for column in self.suite.columns]

    @property
    def begun(self) -> Part:
        """The same without the settings of which nothing was run yet."""
        known = {
            column.title
            for column, row in product(self.suite.columns, self.suite.rows)
            if any(trial.key in self.runs for trial in self.suite.candidates(column, row, 0))
        }
        columns = tuple(column for column in self.suite.columns if column.title in known)
        left = tuple(column.title for column in self.suite.columns if column.title not in known)
        return replace(self, suite=replace(self.suite, columns=columns), left=left) if columns and left else self

    @property
    def methods(self) -> list[str]:
        """The titles of the rows, in order."""
        return [row.title for row in self.suite.rows]

    @property
    def figures(self) -> dict[str, str]:
        """What the paper shows of it: metrics, and how it calls them."""
        return FIGURES.get(self.suite.name, ACCURACY)

    @property
    def metric(self) -> str:
        """The first of them."""
        return next(iter(self.figures))

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The suite's tables, by protocol, each with all that some of them shows."""
        every = metrics_of(self.suite)
        whole = [replace(spec, metrics=tuple(dict.fromkeys((*spec.metrics, *every)))) for spec in self.suite.tables]
        return {spec.title: self.table(spec) for spec in whole}

    @cached_property
    def rates(self) -> dict[float, Table]:
        """Accuracy after the last epoch, at each rate of the grid."""
        return self._by_rate("last")

    @cached_property
    def best_rates(self) -> dict[float, Table]:
        """At each rate, accuracy at the best epoch by TEST: an oracle, for comparison only."""
        return self._by_rate("oracle")

    def _by_rate(self, select: str) -> dict[float, Table]:
        specs = {lr: TableSpec(f"{lr:g}", select=select, at=(("lr", lr),)) for lr in self.suite.grid.get("lr", ())}
        return {lr: self.table(spec) for lr, spec in specs.items()}

    def table(self, spec: TableSpec) -> Table:
        """Its runs, read as ``spec`` asks for."""
        return build_table(self.suite, spec, self.runs, range(self.trials))

    def cell(self, protocol: str, method: str, column: str, metric: str = "accuracy") -> Cell:
        """One method in one setting."""
        return self.tables[protocol].cell(method, column, metric)

    def cells(self, protocol: str, method: str, metric: str = "accuracy") -> list[Cell]:
        """One method in every setting."""
        return [self.cell(protocol, method, column, metric) for column in self.columns]

    @cached_property
    def all_printed(self) -> dict[str, dict[Place, Published]]:
        """What the paper prints, by metric; tables are numbered, other suites have no printed numbers."""
        number = re.match(r"table(\d+)", self.suite.name)
        if number is None:
            return {metric: {} for metric in self.figures}
        return {metric: dict(self._printed_of(int(number[1]), name)) for metric, name in self.figures.items()}

    def _printed_of(self, table: int, figure: str) -> Iterator[tuple[Place, Published]]:
        for column, row in product(self.suite.columns, self.suite.rows):
            trial = self.suite.candidates(column, row, 0)[0]
            by_ratio = trial.p or 1.0, " ".join(map(str, trial.minority or ()))
            p, minority = BY_SHARES if trial.imbalance == "shares" else by_ratio
            method = row.title if len(self.figures) == 1 else f"{row.title} / {figure}"
            if one := find(table, trial.dataset, p, minority, method):
                yield (row.title, column.title), one

    @property
    def printed(self) -> dict[Place, Published]:
        """What the paper prints of the first of its figures."""
        return self.all_printed[self.metric]

    @property
    def printed_columns(self) -> list[str]:
        """The settings of which the paper prints something, in order."""
        return list(dict.fromkeys(column for _, column in self.printed))

    @cached_property
    def all_beside(self) -> dict[str, dict[Place, Beside]]:
        """Every printed number that was measured, by metric."""
        return {
            metric: {
                place: Beside(place[1], one, cell)
                for place, one in printed.items()
                if (cell := self.cell("paper", *place, metric)).values
            }
            for metric, printed in self.all_printed.items()
        }

    @property
    def beside(self) -> dict[Place, Beside]:
        """Those of the first figure."""
        return self.all_beside[self.metric]

    def of(self, method: str) -> list[Beside]:
        """The printed numbers of one method, of all figures."""
        found = (some.items() for some in self.all_beside.values())
        return [one for items in found for place, one in items if place[0] == method]

    def rank_agreement(self, protocol: str, column: str) -> float:
        """Kendall's tau-b between the paper's order of methods in a setting and ours: 1 the same, -1 the reverse."""
        printed = {method: one.mean for (method, place), one in self.printed.items() if place == column}
        ours = [self.cell(protocol, method, column).mean for method in printed]
        a, b = (np.sign(np.subtract.outer(means, means)) for means in (list(printed.values()), ours))
        return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())) if len(printed) > 1 else float("nan")


def mean_absolute(some: Sequence[Beside]) -> float:
    """The mean absolute difference from the paper, in points."""
    return fmean(abs(one.difference) for one in some) if some else float("nan")


MADE = ("device", "wcll", "torch", "numpy", "python", "commit")  #: what files say of their runs


def version(keys: Iterable[str]) -> str:
    """A hash of runs: another setting, grid, row, column or revision of a loss gives another."""
    return blake2b("".join(keys).encode(), digest_size=12).hexdigest()


def keys_of(suite: Suite, trials: int) -> list[str]:
    """The keys of all runs of a suite, each once."""
    return list(dict.fromkeys(trial.key for trial in suite.all_trials(range(trials))))


def make_part(suite: Suite, trials: int, rows: Sequence[Row], command: str) -> Part:
    """A part of the paper from the finished runs of its suite."""
    runs = {row.key: keep(row, metrics_of(suite), curves=CURVES.get(suite.name, 0)) for row in rows}
    return Part(suite, trials, runs, {"command": command, **made_of(rows)})


def made_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Where runs were made: every value that occurs, the training time, and the data."""
    made = {name: sorted({str(row.provenance.get(name, "")) for row in rows} - {""}) for name in MADE}
    data = {(row.config["dataset"], row.provenance["data"]["official"]) for row in rows}
    return {
        **{name: ", ".join(values) for name, values in made.items()},
        "seconds": round(sum(row.provenance["seconds"] for row in rows), 1),
        "data": [f"{name}{'' if official else ' (not the official file)'}" for name, official in sorted(data)],
    }


def grown(known: Part | None, suite: Suite, rows: Mapping[str, Row], command: str) -> Part | None:
    """What is known of a suite and what is new of it among ``rows``; ``known`` itself if nothing is."""
    runs = {} if known is None else dict(known.runs)
    wanted = keys_of(suite, suite.trials)
    new = [rows[key] for key in wanted if key in rows and key not in runs]
    if not new:
        return known
    runs |= {row.key: keep(row, metrics_of(suite), curves=CURVES.get(suite.name, 0)) for row in new}
    trials = 1 + max(trial.seed for trial in suite.all_trials() if trial.key in rows)
    made = {"command": command, **made_of(new)}
    if known is None:
        return Part(suite, trials, runs, made)
    return Part(suite, max(trials, known.trials), runs, _joined(known.made, made))


def _joined(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """How runs were made that were made in several parts."""
    texts = {name: ", ".join(sorted({*before[name].split(", "), *now[name].split(", ")} - {""})) for name in MADE}
    return {
        "command": now["command"],
        **texts,
        "seconds": round(before["seconds"] + now["seconds"], 1),
        "data": sorted({*before["data"], *now["data"]}),
    }


def write_part(part: Part, path: Path, *, partial: bool = False) -> None:
    """One run a line; all of them, unless a part will do."""
    name, keys = part.suite.name, keys_of(part.suite, part.trials)
    if (lacking := [key for key in keys if key not in part.runs]) and not partial:
        raise InputError("--results", f"all {len(keys)} runs of {name}", f"{len(lacking)} missing")
    keys = [key for key in keys if key in part.runs]
    fields = fields_of(metrics_of(part.suite), CURVES.get(name, 1))
    head = {"suite": name, "version": version(keys), "trials": part.trials, "made": part.made, "fields": fields}
    write_lines(path, head, "runs", [part.runs[key].to_list() for key in keys])


def write_lines(path: Path, head: Mapping[str, Any], name: str, lines: Iterable[Sequence[Any]]) -> None:
    """A JSON file whose last item is a list with one entry a line, so that versions of it can be compared.

    Results of more trials are not replaced.
    """
    trials = head["trials"]
    more = trials_of(path, read_file(path, head["suite"])) if path.exists() else 0
    if more > trials:
        expected = f"a file of at most {trials} trials to replace"
        raise InputError("--results", expected, f"{path} of {more}", "name another folder, or remove the file")
    entries = ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    text = f'{json.dumps(head, indent=1)[:-2]},\n "{name}": [\n{entries}\n]\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "--results") as draft:
        draft.write_text(text, encoding="utf-8")


def read_part(path: Path, suite: Suite, *, partial: bool = False) -> Part:
    """The results of a suite; runs of another version of it are refused, and so is a part of them unless it will do.

    Rows that were added to the suite since, of which there is no run at all, are named and left out.
    """
    plain = read_file(path, suite.name)
    with reading(path):
        trials, made = trials_of(path, plain), read_made(plain)
        runs = [Kept.from_list(run, metrics_of(suite)) for run in plain["runs"]]
    keys = [run.key for run in runs]
    known = set(keys)
    if partial:
        wanted = keys_of(suite, trials)
        check_version(path, suite.name, keys, plain, [key for key in wanted if key in known])
        return Part(suite, trials, dict(zip(keys, runs, strict=True)), made)
    new = [row for row in suite.rows if not any(trial.key in known for trial in _first_trials(suite, row))]
    there = replace(suite, rows=tuple(row for row in suite.rows if row not in new))
    check_version(path, suite.name, keys, plain, keys_of(there, trials))
    return Part(there, trials, dict(zip(keys, runs, strict=True)), made, lacking=tuple(row.title for row in new))


def _first_trials(suite: Suite, row: Axis) -> Iterator[Trial]:
    """Those of a row with the first seed."""
    for column in suite.columns:
        yield from suite.candidates(column, row, 0)


def trials_of(path: Path, plain: dict[str, Any]) -> int:
    """How many trials a file is of."""
    trials = plain.get("trials")
    if type(trials) is not int or not 1 <= trials <= MOST_RUNS:
        raise InputError(str(path), "a file that 'wcll paper' wrote", "a number of trials that is none")
    return trials


def read_made(plain: dict[str, Any]) -> dict[str, Any]:
    """How the runs of a file were made: text, but for the seconds and the list of data."""
    made = {name: plain["made"][name] for name in ("command", *MADE, "seconds", "data")}
    texts = [*(made[name] for name in ("command", *MADE)), *made["data"]]
    if not all(isinstance(text, str) for text in texts) or not isinstance(made["data"], list):
        raise ValueError("something else than text of how runs were made")
    if not is_number(made["seconds"]) or made["seconds"] < 0:
        raise ValueError("seconds that are no number")
    return made


def command_today(command: str) -> str:
    """Spell the command that made a result file as it is spelled now.

    >>> command_today("wcll paper table2 --trials 1"), command_today("wcll paper run images")
    ('wcll paper run table2 --trials 1', 'wcll paper run images')
    """
    return re.sub(r"^wcll paper (?!run )", "wcll paper run ", command)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of which file it is that something in it is missing or wrong."""
    try:
        yield
    except InputError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(str(path), "a file that 'wcll paper' wrote", f"{type(error).__name__}: {error}") from None


def read_file(path: Path, name: str) -> dict[str, Any]:
    """The JSON of a result file."""
    command = f"wcll paper run {name} --results {path.parent}"
    if not path.is_file():
        raise InputError(str(path), f"the results of {name}", "no such file", f"make it with: {command}")
    try:
        plain = json.loads(read_bytes(path).decode("utf-8"), parse_constant=_refuse)
    except InputError:
        raise
    except (RecursionError, ValueError) as error:
        raise InputError(str(path), "a file that 'wcll paper' wrote", str(error)) from None
    if not isinstance(plain, dict) or plain.get("suite") != name:
        raise InputError(str(path), f"the results of {name}", "those of something else", f"make them with: {command}")
    return plain


def _refuse(constant: str) -> None:
    """NaN and infinities are not JSON, whatever Python thinks."""
    raise ValueError(f"{constant}, which is no number")


def check_version(path: Path, name: str, keys: list[str] | None, plain: dict[str, Any], wanted: list[str]) -> None:
    """Fail unless the file's runs are those of the suite as it is now."""
    if plain.get("version") != version(wanted) or (keys is not None and keys != wanted):
        expected, again = f"runs of the suite {name} as it is now", f"wcll paper run {name} --results {path.parent}"
        raise InputError(str(path), expected, "those of another version", f"make them again with: {again}")
