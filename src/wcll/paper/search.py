"""Which reading of the paper fits its numbers: generators, sizes, losses, rates and epochs, ranked by their distance.

The paper says neither how many images it uses, nor how its complementary labels are drawn, nor which of its formulas is
trained, nor whether the last or the best epoch is shown. Each combination is run in every MNIST setting of tables 2, 3,
4 and 6 and compared with what is printed. Closeness to print chooses the protocol, never a rate for a single method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from wcll._validation import is_number
from wcll.exceptions import InputError
from wcll.paper.part import CLOSE
from wcll.paper.published import find
from wcll.paper.result_files import (
    check_version,
    made_of,
    read_file,
    read_made,
    reading,
    trials_of,
    version,
    write_lines,
)
from wcll.results import Row
from wcll.suites import Suite, Trial
from wcll.suites.loading import load_base
from wcll.suites.suite import Axis

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
