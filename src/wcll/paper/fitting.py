r"""Which protocols the printed numbers do not exclude, and in how many of them a claim on mean accuracies holds.

The margin was set after seeing how many protocols one and two standard errors leave, before claims were asked.
A protocol of the search that could be run in every setting
*fits* if its mean absolute distance from the numbers printed for WCLL, or from all printed numbers, is at most
:data:`MARGIN` standard errors above the smallest. With s_c the sign of a difference, a distance is
:math:`d = \mathrm{mean}_c\, s_c (m_c - \mathrm{printed}_c)`, so its standard error over n trials is

.. math:: \mathrm{std}_t\bigl(\mathrm{mean}_c\, s_c\, a_{ct}\bigr) / \sqrt n ,

measured on the protocol of the tables, which has the most trials. A claim is asked of every protocol that fits; its
answer may be open where differences are within noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from wcll.paper.part import Beside
from wcll.paper.search import Protocol, Search, main_columns

if TYPE_CHECKING:
    from wcll.paper.reproduction import Reproduction

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
