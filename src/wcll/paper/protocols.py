"""Protocols of the paper: the search for what it leaves open, which of them fit, and the order of its suites.

The paper says neither how many images it uses, nor how its complementary labels are drawn, nor which of its formulas is
trained, nor whether the last or the best epoch is shown. Each combination is run in every MNIST setting of tables 2, 3,
4 and 6 and compared with what is printed. Closeness to print chooses the protocol, never a rate for a single method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from wcll._validation import is_number
from wcll.exceptions import InputError
from wcll.experiments import Row, Suite, Trial
from wcll.experiments.suite import Axis, load_base
from wcll.paper.comparison import (
    CLOSE,
    Beside,
    Part,
    check_version,
    find,
    grown,
    made_of,
    read_file,
    read_made,
    read_part,
    reading,
    trials_of,
    version,
    write_lines,
)

if TYPE_CHECKING:
    from wcll.paper.reproduction import Reproduction


LEAST = 3  #: trials of every cell below which there is no verdict
FACTORS = "factors-cifar10"  #: what the paper leaves open
IMAGES = ("table2-cifar10", "table3-cifar10", "table4-cifar10", "table2-tiny-imagenet", "table7")


@dataclass(frozen=True)
class Stage:
    """Runs that come before all later ones: of each suite one trial of every cell with one combination of its grid."""

    title: str
    trials: Mapping[str, Sequence[Trial]]  #: by the name of the suite


def stages(suites: Sequence[Suite]) -> Iterator[Stage]:
    """Yield one trial of every cell at one learning rate, then at the next, before any cell gets a second trial.

    All trials of settings with published numbers come before settings that the paper announces, but does not print.
    """
    for printed, seed in product((True, False), range(max((suite.trials for suite in suites), default=0))):
        cells = {
            suite.name: [suite.candidates(*cell, seed) for cell in product(_columns(suite, printed), suite.rows)]
            for suite in suites
            if seed < suite.trials
        }
        for i in range(max((len(runs) for some in cells.values() for runs in some), default=0)):
            chosen = {name: [runs[i] for runs in some if i < len(runs)] for name, some in cells.items()}
            rates = sorted({trial.lr for some in chosen.values() for trial in some if trial.lr is not None})
            at = ", ".join(f"{lr:g}" for lr in rates)
            yield Stage(f"Images, trial {seed + 1} at {at}{'' if printed else ', what is not printed'}", chosen)


def _columns(suite: Suite, printed: bool) -> list[Axis]:
    """The settings of which the paper prints something, or the others."""
    known = Part(suite, 0, {}, {}).printed_columns
    return [column for column in suite.columns if (column.title in known) is printed]


class Growing:
    """Results of suites that are run in many parts: what result files have is not run again, what is new is added."""

    def __init__(self, suites: Sequence[Suite], folder: Path | None) -> None:
        self.suites = suites
        self.parts: dict[str, Part] = {}
        for suite in suites:
            if folder is not None and (path := folder / f"{suite.name}.json").exists():
                self.parts[suite.name] = read_part(path, suite, partial=True)

    def missing(self, stage: Stage, also: Collection[str] = ()) -> list[Trial]:
        """Return the runs of a stage that some suite lacks, and those with the keys ``also``, each once."""
        lacking = [
            trial
            for name, trials in stage.trials.items()
            for trial in trials
            if name not in self.parts or trial.key not in self.parts[name].runs or trial.key in also
        ]
        return list(dict.fromkeys(lacking))

    def add(self, rows: Mapping[str, Row], command: str) -> list[Part]:
        """Take in finished runs; returns the parts that have got some."""
        found = []
        for suite in self.suites:
            known = self.parts.get(suite.name)
            part = grown(known, suite, rows, command)
            if part is not None and part is not known:
                self.parts[suite.name] = part
                found.append(part)
        return found


NAME = "search"
EPOCHS = ("last", "best")  #: the best by TEST accuracy, as papers without a validation set may show it
SIZES = (1000, 1500, 2000, 3000)  #: images of a majority class
#: How imbalance may come into complementary labels.
GENERATORS: dict[str, dict[str, str]] = {
    "uniform labels of imbalanced classes": {"labels": "uniform"},
    "inverse-size labels of balanced classes": {"labels": "inverse-size", "imbalance_of": "selector"},
    "inverse-size labels of imbalanced classes": {"labels": "inverse-size"},
    "uniform labels, rare classes named less": {"labels": "uniform", "imbalance_of": "ybar"},
    "uniform labels, rare classes named more": {"labels": "uniform", "imbalance_of": "ybar-inverse"},
}
INVERSE_SIZE = "inverse-size labels of imbalanced classes"
TABLES = (2, 3, 4, 6)  #: that print numbers of MNIST in these settings
MAIN = (2, 3, 4)  #: those of them that compare all methods
MOST = 10  #: protocols that are listed
SMALLEST = 5421  #: images of the rarest digit in MNIST: uniform labels name every digit about as often


@dataclass(frozen=True)
class Protocol:
    """One reading of what the paper leaves open: labels, size, formula, rate and epoch."""

    generator: str
    size: int
    loss: str  #: a row of the suite
    lr: float
    epoch: str

    def with_loss(self, loss: str) -> Protocol:
        """The same data, rate and epoch for another method."""
        return Protocol(self.generator, self.size, loss, self.lr, self.epoch)


#: The one that tables call the paper's protocol.
CHOSEN = Protocol(INVERSE_SIZE, 2000, "wcll eq9, declared pi", 5e-4, "last")


@dataclass(frozen=True)
class Fit:
    """How far a protocol is from the published numbers, in points."""

    protocol: Protocol
    distance: float
    cells: int  #: settings that could be compared


@dataclass(frozen=True)
class Search:
    """Measured accuracies, in percent, by protocol and setting."""

    base: Suite
    trials: int
    figures: Mapping[tuple[Protocol, str], float]
    made: Mapping[str, Any]

    def distance(self, protocol: Protocol, columns: Sequence[Axis] | None = None) -> Fit:
        """The mean absolute difference over the settings (of ``columns``) that the paper prints and the data allow."""
        apart = self._apart(protocol, columns)
        return Fit(protocol, fmean(apart) if apart else float("nan"), len(apart))

    def rival_distance(self, protocol: Protocol, columns: Sequence[Axis] | None = None) -> float:
        """The same over all numbers that are printed for the rivals, under the same data, rate and epoch."""
        apart = [one for loss in self.rivals for one in self._apart(protocol.with_loss(loss), columns)]
        return fmean(apart) if apart else float("nan")

    def distance_of_all(self, protocol: Protocol) -> float:
        """The same over all printed numbers: WCLL's by the protocol's formula, and the rivals'."""
        apart = [one for loss in (protocol.loss, *self.rivals) for one in self._apart(protocol.with_loss(loss), None)]
        return fmean(apart)

    def _apart(self, protocol: Protocol, columns: Sequence[Axis] | None) -> list[float]:
        wanted = self.base.columns if columns is None else columns
        pairs = [(self._printed[protocol.loss, c.title], self.figures.get((protocol, c.title))) for c in wanted]
        return [abs(ours - printed) for printed, ours in pairs if printed is not None and ours is not None]

    @cached_property
    def _printed(self) -> dict[tuple[str, str], float | None]:
        return {(r.title, c.title): printed_mean(r.title, c) for r, c in product(self.base.rows, self.base.columns)}

    def varied(self, **changes: Any) -> float:
        """The distance of the chosen protocol with something changed."""
        return self.distance(replace(CHOSEN, **changes)).distance

    @cached_property
    def ranked(self) -> list[Fit]:
        """Protocols for WCLL, the closest first."""
        protocols = dict.fromkeys(protocol for protocol, _ in self.figures if protocol.loss in self.readings)
        return sorted(map(self.distance, protocols), key=lambda fit: fit.distance)

    @cached_property
    def whole(self) -> list[Fit]:
        """Those that could be run in every setting."""
        return [fit for fit in self.ranked if fit.cells == len(self.base.columns)]

    @property
    def rank(self) -> int:
        """The place of the chosen protocol among them."""
        return 1 + [fit.protocol for fit in self.whole].index(CHOSEN)

    @property
    def listed(self) -> list[Fit]:
        """The first of them, and the chosen one."""
        return [fit for i, fit in enumerate(self.whole) if i < MOST or fit.protocol == CHOSEN]

    @property
    def close(self) -> list[Fit]:
        """Those that are near the printed numbers."""
        return [fit for fit in self.whole if fit.distance <= CLOSE]

    @cached_property
    def nearest(self) -> Protocol | None:
        """The one of these under which the rivals are nearest to theirs."""
        return min((fit.protocol for fit in self.close), key=self.rival_distance, default=None)

    @property
    def nearest_is_used(self) -> bool:
        """Whether that is the chosen protocol, whatever its formula."""
        return self.nearest is not None and replace(self.nearest, loss=CHOSEN.loss) == CHOSEN

    @property
    def by_generator(self) -> dict[str, Fit]:
        """The closest for each way to draw labels."""
        best = {fit.protocol.generator: fit for fit in reversed(self.ranked)}
        return {fit.protocol.generator: best[fit.protocol.generator] for fit in self.ranked}

    def together(self, loss: str) -> list[tuple[Protocol, float]]:
        """One protocol for a loss of WCLL and all rivals, the closest first: the mean over all printed numbers.

        Only those that could be run in every setting are compared.
        """
        protocols = [fit.protocol for fit in self.whole if fit.protocol.loss == loss]
        return sorted(((one, self.distance_of_all(one)) for one in protocols), key=lambda pair: pair[1])

    def settings(self, protocol: Protocol) -> list[Axis]:
        """Those in which a protocol could be run."""
        return [column for column in self.base.columns if (protocol, column.title) in self.figures]

    @property
    def readings(self) -> list[str]:
        """The rows of WCLL."""
        return [row.title for row in self.base.rows if row.title.startswith("wcll")]

    @property
    def rivals(self) -> list[str]:
        """The rows of other methods."""
        return [row.title for row in self.base.rows if not row.title.startswith("wcll")]


def printed_mean(loss: str, column: Axis, tables: Sequence[int] = TABLES) -> float | None:
    """What the paper prints for a row in a setting; table 2 before table 6, which repeats it."""
    minority = " ".join(map(str, column.settings["minority"]))
    found = (find(table, "mnist", column.settings["p"], minority, loss.split(" ")[0]) for table in tables)
    return next((one.mean for one in found if one is not None), None)


def main_columns(base: Suite) -> tuple[Axis, ...]:
    """The settings of tables 2, 3 and 4, in which the paper compares all methods."""
    return tuple(column for column in base.columns if printed_mean("wcll", column, MAIN) is not None)


def base_suite() -> Suite:
    """Every setting and every loss."""
    return replace(load_base("_search"), name=NAME)


def variants(base: Suite) -> Iterator[tuple[str, int, Suite]]:
    """A suite for every generator and size, with the settings that MNIST has images for."""
    for (generator, settings), size in product(GENERATORS.items(), SIZES):
        suite = replace(base, settings={**base.settings, **settings, "n_majority": size})
        columns = tuple(column for column in base.columns if _possible(suite.candidates(column, base.rows[0], 0)[0]))
        yield generator, size, replace(suite, columns=columns)


def _possible(trial: Trial) -> bool:
    """Whether uniform labels name the rare classes often enough to be kept as often as asked."""
    if trial.imbalance_of != "ybar-inverse":
        return True
    p, rare, size = trial.p or 1.0, len(trial.minority or ()), trial.n_majority or 0
    n = size * (10 - rare + rare / p)
    return n * p / (rare * p + 10 - rare) < 0.97 * SMALLEST


def search_trials(base: Suite, trials: int) -> list[Trial]:
    """Every run of the search, each once."""
    return [trial for _, _, suite in variants(base) for trial in suite.all_trials(range(trials))]


def measure(base: Suite, trials: int, rows: Mapping[str, Row]) -> Search:
    """Mean accuracies over trials from finished runs; settings with runs missing are left out."""
    figures: dict[tuple[Protocol, str], float] = {}
    for generator, size, suite in variants(base):
        for column, row in product(suite.columns, suite.rows):
            for lr in suite.grid["lr"]:
                keys = [suite.candidates(column, row, seed, {"lr": lr})[0].key for seed in range(trials)]
                if not all(key in rows for key in keys):
                    continue
                curves = [100 * rows[key].curve("accuracy") for key in keys]
                shown = fmean(curve[-1] for curve in curves), fmean(np.nanmax(curve) for curve in curves)
                for epoch, value in zip(EPOCHS, shown, strict=True):
                    figures[Protocol(generator, size, row.title, lr, epoch), column.title] = round(float(value), 2)
    return Search(base, trials, figures, made_of(list(rows.values())))


def write_search(search: Search, command: str, path: Path) -> None:
    """One line for every generator, size, setting and loss: last epochs by rate, then best epochs by rate."""
    keys = [trial.key for trial in search_trials(search.base, search.trials)]
    lines: dict[tuple[str, int, str, str], list[float]] = {}
    for protocol, column in _places(search.base):
        if (protocol, column) not in search.figures:
            raise InputError("--results", f"all {len(keys)} runs of the search", "some missing")
        line = lines.setdefault((protocol.generator, protocol.size, column, protocol.loss), [])
        line.append(search.figures[protocol, column])
    made = {"command": command, **search.made}
    head = {"suite": NAME, "version": version(keys), "trials": search.trials, "made": made}
    write_lines(path, head, "figures", [[*place, *values] for place, values in lines.items()])


def read_search(path: Path) -> Search:
    """What :func:`write_search` wrote; of this version, and whole."""
    base, plain = base_suite(), read_file(path, NAME)
    with reading(path):
        trials, lines, made = trials_of(path, plain), plain["figures"], read_made(plain)
        check_version(path, NAME, None, plain, [trial.key for trial in search_trials(base, trials)])
        rates = base.grid["lr"]
        figures = {
            (Protocol(generator, size, loss, lr, epoch), column): value
            for generator, size, column, loss, *values in lines
            for (epoch, lr), value in zip(product(EPOCHS, rates), values, strict=True)
        }
        if list(figures) != list(_places(base)):
            raise ValueError("settings that are missing or not asked for")
        if not all(is_number(value) and 0 <= value <= 100 for value in figures.values()):
            raise ValueError("a figure that is not from 0 to 100")
    return Search(base, trials, figures, made)


def _places(base: Suite) -> Iterator[tuple[Protocol, str]]:
    """Every protocol in every setting, in the order of the file."""
    for generator, size, suite in variants(base):
        for column, row, epoch, lr in product(suite.columns, suite.rows, EPOCHS, suite.grid["lr"]):
            yield Protocol(generator, size, row.title, lr, epoch), column.title


MARGIN = 2.0  #: standard errors
#: What the paper leaves open, as sentences call it.
OPEN_POINTS = {
    "generator": "how labels are drawn",
    "size": "the number of images",
    "loss": "the formula",
    "lr": "the rate",
    "epoch": "the epoch",
}

Means = Mapping[str, Sequence[float]]  #: accuracies in percent by method, in the settings of tables 2, 3 and 4
Question = Callable[[Means], bool | None]  #: whether a claim holds, None if it is within noise


@dataclass(frozen=True)
class Fitting:
    """The protocols that fit, by WCLL's numbers and by all, with the noise of both distances."""

    search: Search
    by_wcll: tuple[Protocol, ...]
    by_all: tuple[Protocol, ...]
    noise: tuple[float, float]

    @property
    def protocols(self) -> list[Protocol]:
        """All of them, each once."""
        return list(dict.fromkeys((*self.by_wcll, *self.by_all)))

    @cached_property
    def _means(self) -> dict[Protocol, Means]:
        """The figures under every protocol that was run everywhere."""
        columns = [column.title for column in main_columns(self.search.base)]
        found: dict[Protocol, Means] = {}
        for fit in self.search.whole:
            one = fit.protocol
            losses = {"wcll": one.loss, **{rival: rival for rival in self.search.rivals}}
            found[one] = {
                name: [self.search.figures[one.with_loss(loss), column] for column in columns]
                for name, loss in losses.items()
            }
        return found

    def ask(self, question: Question) -> Count:
        """A claim, asked of every protocol that was run everywhere."""
        answers = {protocol: question(means) for protocol, means in self._means.items()}
        return Count({one: answers[one] for one in self.protocols}, list(answers.values()))


@dataclass(frozen=True)
class Count:
    """The answers of the protocols that fit, and of all that were searched."""

    fitting: Mapping[Protocol, bool | None]
    searched: Sequence[bool | None]

    @property
    def holds(self) -> int:
        """In how many that fit it holds."""
        return sum(answer is True for answer in self.fitting.values())

    @property
    def fails(self) -> int:
        """In how many that fit it does not."""
        return sum(answer is False for answer in self.fitting.values())

    @property
    def holds_anywhere(self) -> int:
        """In how many of all it holds."""
        return sum(answer is True for answer in self.searched)

    @cached_property
    def deciding(self) -> tuple[str, dict[object, tuple[int, int]]]:
        """The open point that tells best whether it holds: its name, and by value how often it does, of how many."""
        told = {one: answer for one, answer in self.fitting.items() if answer is not None}
        by_point: dict[str, dict[object, tuple[int, int]]] = {}
        for field in fields(Protocol):
            values = by_point.setdefault(field.name, {})
            for one, answer in told.items():
                held, of = values.get(getattr(one, field.name), (0, 0))
                values[getattr(one, field.name)] = held + bool(answer), of + 1
        mistakes = {
            point: (sum(min(held, of - held) for held, of in values.values()), len(values))
            for point, values in by_point.items()
        }
        best = min(mistakes, key=lambda point: mistakes[point])  # of equals the one with fewer values
        return OPEN_POINTS[best], by_point[best]


def fitting(found: Reproduction) -> Fitting | None:
    """By the rule above; None without a search."""
    search = found.search
    if search is None:
        return None
    rivals = [one for method in search.rivals for one in found.main_beside(method)]
    noise = (_seed_noise(found.wcll, search.trials), _seed_noise([*found.wcll, *rivals], search.trials))
    whole = [fit.protocol for fit in search.whole]
    by_wcll = _nearest({fit.protocol: fit.distance for fit in search.whole}, noise[0])
    by_all = _nearest({protocol: search.distance_of_all(protocol) for protocol in whole}, noise[1])
    return Fitting(search, by_wcll, by_all, noise)


def _nearest(distances: Mapping[Protocol, float], noise: float) -> tuple[Protocol, ...]:
    """Those within the margin of the smallest."""
    limit = min(distances.values()) + MARGIN * noise
    return tuple(one for one, distance in distances.items() if distance <= limit)


def noise_of_leads(found: Reproduction, trials: int) -> float:
    """The standard error of a difference of two methods' means over so many trials, in points: all cells pooled."""
    squares = []
    for method in found.search.rivals if found.search else ():
        for own, rival in zip(found.main("paper", "wcll"), found.main("paper", method), strict=True):
            apart = [100 * (own.values[seed] - rival.values[seed]) for seed in own.values if seed in rival.values]
            squares += [stdev(apart) ** 2] if len(apart) > 1 else []
    return math.sqrt(fmean(squares) / trials) if squares else math.inf


def _seed_noise(some: Sequence[Beside], trials: int) -> float:
    """The standard error over ``trials`` of the mean absolute difference from print; without spread, unknown."""
    seeds = set.intersection(*(set(one.ours.values) for one in some))
    signs = [math.copysign(1.0, one.difference) for one in some]
    by_seed = [
        fmean(sign * 100 * one.ours.values[seed] for sign, one in zip(signs, some, strict=True)) for seed in seeds
    ]
    return stdev(by_seed) / math.sqrt(trials) if len(by_seed) > 1 else math.inf


#: By the name of their suites; the protocol of the tables has suites of its own.
NAMED = {
    "protocol-uniform": Protocol(
        "uniform labels of imbalanced classes", 2000, "wcll algorithm1, declared pi", 5e-4, "last"
    ),
    "protocol-selector": Protocol(
        "inverse-size labels of balanced classes", 2000, "wcll eq9, declared pi", 5e-4, "last"
    ),
    "protocol-less": Protocol("uniform labels, rare classes named less", 3000, "wcll eq9, observed pi", 5e-6, "last"),
    "protocol-more": Protocol("uniform labels, rare classes named more", 1500, "wcll eq9, declared pi", 5e-4, "last"),
}
N_PROTOCOLS = len(NAMED) + 1  #: how many there are with that of the tables, CHOSEN
assert CHOSEN.generator not in {protocol.generator for protocol in NAMED.values()}


def named_suite(name: str) -> Suite:
    """The settings of tables 2, 3 and 4 under a named protocol, at its rate; WCLL's rows by its formula."""
    protocol, base = NAMED[name], load_base("_protocols")
    formula = next(row for row in load_base("_search").rows if row.title == protocol.loss).settings
    own = {**GENERATORS[protocol.generator], "n_majority": protocol.size, "lr": protocol.lr}
    return replace(
        base,
        name=name,
        title=f"{base.title}: {protocol.generator}, {protocol.size} images, {protocol.lr:g}",
        settings={**base.settings, **own},
        grid={},
        columns=main_columns(base),
        rows=tuple(_by_formula(row, formula) for row in base.rows),
        tables=(replace(base.tables[0], at=()),),
    )


def _by_formula(row: Axis, formula: dict[str, object]) -> Axis:
    """A row of WCLL trains the formula, with its pi; others are as they are."""
    return Axis(row.title, {**row.settings, **formula}) if row.settings["loss"] == "wcll" else row
