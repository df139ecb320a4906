"""Made-up results of the paper's suites: every figure is what a function says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from wcll.experiments import Suite, load_suite
from wcll.paper.comparison import METRICS, Kept, Part
from wcll.paper.protocols import NAMED, Protocol, Search, base_suite, named_suite, printed_mean, variants
from wcll.paper.reproduction import SUITES, Reproduction

EPOCHS, TRIALS = 100, 5
#: How runs were made, as result files say it.
MADE = dict.fromkeys(("command", "device", "wcll", "torch", "numpy", "python", "commit"), "x") | {"seconds": 1.0}


@dataclass(frozen=True)
class Figures:
    """Of one run, in percent."""

    accuracy: float = 50.0
    recall: float = 50.0  #: of the imbalanced classes
    peak: float | None = None  #: the highest accuracy of any epoch; None: the last


Say = Callable[[str, str, int], Figures]  #: method, setting and seed -> figures


@cache
def keys(name: str) -> tuple[Suite, dict[tuple[str, str, int], str]]:
    """A suite with one rate and few trials, which is quick, and the key of the run of each of its cells and seeds."""
    suite = named_suite(name) if name in NAMED else load_suite(name)
    suite = replace(suite, trials=TRIALS, grid={"lr": [5e-4]} if suite.grid else {})
    cells = {
        (row.title, column.title, seed): suite.candidates(column, row, seed)[0].key
        for row in suite.rows
        for column in suite.columns
        for seed in range(suite.trials)
    }
    return suite, cells


@lru_cache(maxsize=64)
def part(name: str, say: Say, without: tuple[str, ...] = ()) -> Part:
    """A suite whose runs have the figures that ``say`` gives; rows ``without`` were not run. Tests share its tables."""
    suite, cells = keys(name)
    runs = {key: kept(key, say(*place)) for place, key in cells.items() if place[0] not in without}
    there = replace(suite, rows=tuple(row for row in suite.rows if row.title not in without)) if without else suite
    return Part(there, suite.trials, runs, {}, tuple(without))


def kept(key: str, figures: Figures) -> Kept:
    """A run that is chosen at its last epoch and best at the tenth."""
    last = dict(zip(METRICS, (figures.accuracy / 100, figures.accuracy / 100, figures.recall / 100), strict=True))
    peak = figures.accuracy if figures.peak is None else figures.peak
    by_epoch = {10: {**last, "accuracy": peak / 100}, EPOCHS: last}
    recalls = (figures.recall / 100,) * EPOCHS
    return Kept(key, False, 1.0, EPOCHS, EPOCHS, 10, by_epoch, recalls)


def search(say: Callable[[Protocol, str], float]) -> Search:
    """A search whose figures are those of ``say``, by protocol (with any method as its loss) and setting."""
    base, places = searched()
    return Search(base, 3, {place: say(*place) for place in places}, {})


@cache
def searched() -> tuple[Suite, list[tuple[Protocol, str]]]:
    """What a search has figures of."""
    base = base_suite()
    return base, [
        (Protocol(generator, size, row.title, lr, epoch), column.title)
        for generator, size, suite in variants(base)
        for column in suite.columns
        for row in suite.rows
        for epoch in ("last", "best")
        for lr in suite.grid["lr"]
    ]


@cache
def printed(column: str) -> float:
    """What the paper prints for WCLL in a setting."""
    (axis,) = [axis for axis in base_suite().columns if axis.title == column]
    found = printed_mean("wcll", axis)
    assert found is not None
    return found


@cache
def noise(method: str, column: str, seed: int, size: float = 1.0) -> float:
    """The same small number for the same place, each time."""
    return size * float(np.random.default_rng([len(method), sum(map(ord, method + column)), seed]).normal())


def noisy(say: Callable[[str, str], Figures], size: float = 0.5) -> Say:
    """Figures with noise of this size, in points."""

    def with_noise(method: str, column: str, seed: int) -> Figures:
        one, off = say(method, column), noise(method, column, seed, size)
        peak = None if one.peak is None else one.peak + off
        return Figures(one.accuracy + off, max(one.recall + off, 0.0), peak)

    return with_noise


ALIKE = noisy(lambda method, column: Figures())  #: all methods in all settings


def everything(
    say: Say = ALIKE,
    worlds: int = 3,
    by_protocol: Callable[[Protocol, str], float] | None = None,
    elsewhere: Say | None = None,
    without: tuple[str, ...] = (),
) -> Reproduction:
    """All suites with figures of ``say`` (under the other named protocols: of ``elsewhere``), and a search."""
    lacking = {name: tuple(row.title for row in keys(name)[0].rows if row.title in without) for name in SUITES}
    parts = {name: part(name, say, lacking[name]) for name in SUITES}
    named = {name: part(name, elsewhere or say) for name in list(NAMED)[: worlds - 1]}
    found = search(by_protocol) if by_protocol else None
    return Reproduction(parts, found, named)
