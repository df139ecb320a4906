"""All that was measured of the paper, the evidence for claims, and verdicts over protocols.

A claim is asked of several protocols, as the paper does not say which one is its own. Where all agree that it holds, it
holds; where some say yes and others no, it depends on what the paper does not say. Answers that noise leaves open are
heeded: a verdict needs :data:`AGREEMENT` of all answers, and none against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import fdtr, stdtr, stdtrit

from wcll._validation import FloatArray
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.experiments.suite import TableSpec
from wcll.paper.bound_study import BoundResults, read_bounds
from wcll.paper.comparison import FORMULAS, METHODS, Beside, Part, Published, published, read_part, show_name
from wcll.paper.protocols import (
    FACTORS,
    IMAGES,
    N_PROTOCOLS,
    NAME,
    NAMED,
    Fitting,
    Question,
    Search,
    fitting,
    named_suite,
    read_search,
)
from wcll.report.render import phrase
from wcll.report.result_tables import ROUNDING, SIGNIFICANCE, Cell, Table, holm, paired_p_value

PROTOCOL_NAMES = {"paper": "the paper's protocol", "fair": "the fair protocol"}


def means(cells: Sequence[Cell]) -> list[float]:
    """Of each cell, in percent."""
    return [100 * cell.mean for cell in cells]


def in_words(cells: Sequence[Cell]) -> str:
    """The means, one after the other."""
    return all_of([f"{mean:.1f}" for mean in means(cells)])


def range_of(values: Sequence[float]) -> str:
    """From the smallest to the largest; a single value as it is."""
    return f"{min(values):.1f} to {max(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


def measured_range(part: Part, protocol: str, *methods: str) -> str:
    """The range of what we measure."""
    return range_of(means([cell for method in methods for cell in part.cells(protocol, method)]))


def printed_range(part: Part, *methods: str) -> str:
    """The range of what the paper prints."""
    return range_of([one.printed.mean for method in methods for one in part.of(method)])


def printed_settings(dataset: str, tables: Sequence[int]) -> list[list[Published]]:
    """What the paper prints, column by column; table 7 has three."""
    columns: dict[object, list[Published]] = {}
    for one in published():
        if one.dataset == dataset and one.table in tables:
            place = (one.table, one.p, one.minority, one.method.partition(" / ")[2])
            columns.setdefault(place, []).append(one)
    return list(columns.values())


def leads(pairs: Sequence[tuple[Cell, Cell]]) -> list[int | None]:
    """Of each pair whether the first is significantly above (1) or below (-1) the second, or neither (0).

    Paired t-tests over shared seeds, adjusted over all pairs by Holm; None where there are too few seeds.
    """
    p_values = [paired_p_value(first.values, second.values) for first, second in pairs]
    adjusted = iter(holm([value for value in p_values if value is not None]))
    found: list[int | None] = []
    for (first, second), value in zip(pairs, p_values, strict=True):
        sure = value is not None and next(adjusted) < SIGNIFICANCE
        found.append(None if value is None else int(np.sign(first.mean - second.mean)) if sure else 0)
    return found


def ahead_everywhere(pairs: Sequence[tuple[Cell, Cell]]) -> bool | None:
    """Whether the first is above the second in all pairs: not if it is below in one, open if a test cannot tell."""
    signs = leads(pairs)
    return False if -1 in signs else None if None in signs or 0 in signs else True


def pooled_spreads(cells: Mapping[str, Sequence[Cell]], own: str) -> tuple[dict[str, float], bool | None]:
    """Each method's standard deviation over trials, in points, pooled over settings; is ``own`` the smallest?

    By F-tests of the pooled variances (two-sided): yes if it is significantly below all others, no if it is above one.
    """
    spread = {name: 100 * math.sqrt(fmean(cell.std**2 for cell in some)) for name, some in cells.items()}
    freedom = {name: sum(len(cell.values) - 1 for cell in some) for name, some in cells.items()}
    answers = []
    for name in cells:
        if name != own:
            ratio = (spread[own] / max(spread[name], 1e-12)) ** 2
            below = fdtr(freedom[own], freedom[name], ratio)
            answers.append(True if below < SIGNIFICANCE / 2 else False if below > 1 - SIGNIFICANCE / 2 else None)
    return spread, False if False in answers else None if None in answers else True


@dataclass(frozen=True)
class Change:
    """How much a figure changes, in points: the mean over trials, and its 95 % interval."""

    mean: float
    low: float
    high: float
    trials: int

    @property
    def fell(self) -> bool | None:
        """Whether it certainly fell, or rose; None if that is open."""
        return True if self.high < 0 else False if self.low > 0 else None

    def text(self) -> str:
        """The mean and its interval."""
        return f"{self.mean:+.1f} ({self.low:+.1f} to {self.high:+.1f})"


def change_between(before: Sequence[Cell], after: Sequence[Cell]) -> Change:
    """From some settings to others, each trial averaged over the settings: its runs share most of their images."""

    def by_seed(cells: Sequence[Cell]) -> dict[int, float]:
        return {seed: fmean(cell.values[seed] for cell in cells) for seed in cells[0].values}

    first, second = by_seed(before), by_seed(after)
    changes = 100 * np.array([second[seed] - first[seed] for seed in first])
    if len(changes) < 2:
        return Change(float(changes.mean()), -math.inf, math.inf, len(changes))
    half = stdtrit(len(changes) - 1, 0.975) * changes.std(ddof=1) / math.sqrt(len(changes))
    return Change(float(changes.mean()), float(changes.mean() - half), float(changes.mean() + half), len(changes))


def log_slope(sizes: Part, protocol: str, limit: float) -> float:
    """The log-log slope of the gap to a limit over the number of images, from means over trials."""
    n = np.log([column.settings["n_majority"] for column in sizes.suite.columns])
    gap = np.log([limit - mean for mean in means(sizes.cells(protocol, "wcll"))])
    return float(np.polyfit(n, gap, 1)[0])


def all_of(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


#: What sentences are made with.
WORDS = {
    "protocols": PROTOCOL_NAMES,
    "name": show_name,
    "percent": means,
    **{one.__name__: one for one in (all_of, fmean, in_words, log_slope, measured_range, printed_range, range_of)},
}


def say(template: str, what: str, *figures: Any) -> str:
    """A sentence of a template (one of its macros) with its figures."""
    return phrase(f"{template}.txt", what, *figures, package="wcll.paper", words=WORDS)


@dataclass(frozen=True)
class Gap:
    """How far a share is above another, or above a number; fractions."""

    mean: float
    error: float  #: its standard error
    freedom: float  #: degrees of freedom of the error

    @property
    def p_value(self) -> float:
        """Two-sided: how often equal shares would be as far apart."""
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        half = float(stdtrit(self.freedom, 1 - SIGNIFICANCE / 2)) * self.error
        return self.mean - half, self.mean + half

    def text(self) -> str:
        """In points, with the interval."""
        low, high = self.interval
        return f"{100 * self.mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def gap(first: Cell, second: Cell | float, n: int) -> Gap:
    r"""Between the shares of two methods, or of one and a number, in trials that test ``n`` images each.

    With differences :math:`d_t` of T trials the squared standard error of their mean is
    :math:`s_d^2 / T + a (1 - a) / n + b (1 - b) / n`: errors on one test set do not average out over trials (that both
    methods see the same images would make the last parts smaller; it is not relied on). Degrees of freedom by Welch and
    Satterthwaite: only the first part has few.
    """
    values = [np.array(list(first.values.values()))]
    if isinstance(second, Cell):
        shared = [seed for seed in first.values if seed in second.values]
        values = [np.array([cell.values[seed] for seed in shared]) for cell in (first, second)]
        difference = values[0] - values[1]
    else:
        difference = values[0] - second
    trials = len(difference)
    between, tested = float(difference.var(ddof=1)) / trials, sum(_of_a_share(some, n) for some in values)
    freedom = (trials - 1) * (between + tested) ** 2 / max(between, ROUNDING) ** 2
    return Gap(float(difference.mean()), math.sqrt(between + tested), min(freedom, 1e6))


def _of_a_share(values: FloatArray, n: int) -> float:
    """The variance of a share among ``n`` images; one more on either side keeps 0 and 1 from being certain."""
    share = (values.mean() * n + 1) / (n + 2)
    return float(share * (1 - share) / n)


def signs(gaps: Sequence[Gap]) -> list[int]:
    """Of each gap whether it is significantly above (1) or below (-1) 0, or neither (0); adjusted by Holm."""
    adjusted = holm([one.p_value for one in gaps])
    return [int(np.sign(one.mean)) if p < SIGNIFICANCE else 0 for one, p in zip(gaps, adjusted, strict=True)]


RARE = "minority_recall"


@dataclass(frozen=True)
class World:
    """Methods in the settings of tables 2, 3 and 4; where the tables have parts of their own, those."""

    title: str
    parts: tuple[Part, ...]  #: whose columns, one after the other, are those settings
    steady: Part  #: p = 2 and p = 2.5 with one imbalanced class
    weights: Part  #: wrong weights with p = 2 and class 0
    sampling: Part  #: resampling

    @property
    def columns(self) -> list[str]:
        """The settings, in order."""
        return [column for part in self.parts for column in part.columns]

    @property
    def methods(self) -> set[str]:
        """That were run in all of them."""
        return set.intersection(*(set(part.methods) for part in self.parts))

    def cells(self, method: str, metric: str = "accuracy") -> list[Cell]:
        """A method in every setting, at the last epoch."""
        return [cell for part in self.parts for cell in part.cells("paper", method, metric)]

    @property
    def panels(self) -> list[str]:
        """Table 2's settings, one imbalanced class each, which figure 3 shows."""
        return list(filter(_single, self.columns))

    def recalls(self, method: str) -> list[Cell]:
        """A method on the imbalanced class in these."""
        return [cell for column, cell in zip(self.columns, self.cells(method, RARE), strict=True) if _single(column)]

    def wrong_weights(self, formula: str) -> list[str]:
        """The rows of a formula of WCLL with weights that do not match pi."""
        begin = f"{formula}, " if "," in formula else f"{formula} "
        return [m for m in self.weights.methods if m.startswith(begin) and ("bias" in m or "random" in m)]

    def peaks(self, method: str) -> list[Cell]:
        """Accuracy at the epoch of the highest TEST accuracy, in every setting."""
        return [table.cell(method, column, "accuracy") for table, part in self._peaks for column in part.columns]

    @cached_property
    def _peaks(self) -> list[tuple[Table, Part]]:
        return [(part.table(_peak(part.suite.tables[0])), part) for part in self.parts]

    def step(self, method: str) -> tuple[list[Cell], list[Cell]]:
        """The imbalanced class before and after p goes from 2 to 2.5, class by class."""
        columns = [column for column in self.steady.columns if _single(column)]
        before, after = ([c for c in columns if c.startswith(f"p = {p},")] for p in ("2", "2.5"))
        return self._cells(self.steady, method, before), self._cells(self.steady, method, after)

    @staticmethod
    def _cells(part: Part, method: str, columns: Sequence[str]) -> list[Cell]:
        return [part.cell("paper", method, column, RARE) for column in columns]


def _single(column: str) -> bool:
    """Whether a setting of table 2: one imbalanced class, and p below 5."""
    return ", class " in column and not column.startswith("p = 5")


def _peak(spec: TableSpec) -> TableSpec:
    """The same runs at their best epoch by TEST accuracy: to see what is lost afterwards, never to choose."""
    return TableSpec("peak", select="oracle", at=spec.at)


MAIN = ("table2", "table3", "table4")  #: the ten methods in 11 settings
TABLES = (*MAIN, "table5", "table6")
SUITES = (*TABLES, "figure3", "steady", "bases", "sizes", "family")  #: those of ``wcll paper run all``
LATER = ("family",)  #: those of them that a report may do without


@dataclass(frozen=True)
class Reproduction:
    """Every suite of the paper, the search for its protocol, and other protocols that were run in full."""

    parts: dict[str, Part]
    search: Search | None  #: many runs, which not everybody makes
    named: dict[str, Part] = field(default_factory=dict)  #: by the names of wcll.paper.protocols
    bounds: BoundResults | None = None  #: what was measured of the lemma and the theorem
    images: dict[str, Part] = field(default_factory=dict)  #: suites on images, of which some runs may be missing

    @property
    def on_images(self) -> list[Part]:
        """The tables on images, without the search for what the paper leaves open."""
        return [part for name, part in self.images.items() if name != FACTORS]

    @property
    def tables(self) -> list[Part]:
        """The paper's tables, in order."""
        return [self.parts[name] for name in TABLES]

    @property
    def beside(self) -> list[Beside]:
        """Every published number on MNIST, all of which are measured."""
        return [one for table in self.tables for one in table.beside.values()]

    @property
    def missing(self) -> list[Published]:
        """Published numbers that were not measured yet."""
        parts = (*self.tables, *self.images.values())
        measured = {one.printed for part in parts for some in part.all_beside.values() for one in some.values()}
        return [one for one in published() if one not in measured]

    @property
    def columns(self) -> list[str]:
        """The settings of tables 2, 3 and 4."""
        return [column for name in MAIN for column in self.parts[name].columns]

    def main(self, protocol: str, method: str, metric: str = "accuracy") -> list[Cell]:
        """A method in those settings."""
        return [cell for name in MAIN for cell in self.parts[name].cells(protocol, method, metric)]

    def main_beside(self, method: str) -> list[Beside]:
        """The printed numbers of a method in those settings."""
        return [one for name in MAIN for one in self.parts[name].of(method)]

    @cached_property
    def fits(self) -> Fitting | None:
        """The protocols that the printed numbers do not exclude; None without a search."""
        return fitting(self)

    @property
    def formulas(self) -> list[str]:
        """WCLL's rows that stand for the paper's method: Eq. 9, and Algorithm 1 where it was run."""
        there = set.intersection(*(set(self.parts[name].methods) for name in MAIN))
        return [row for row in FORMULAS if row in there]

    @property
    def first_at_rates(self) -> dict[float, list[bool]]:
        """By rate, whether WCLL is first of the ten methods at the last epoch, setting by setting."""
        rates: dict[float, list[bool]] = {}
        for name in MAIN:
            for lr, table in self.parts[name].rates.items():
                for column in self.parts[name].columns:
                    figures = {method: table.cell(method, column, "accuracy").mean for method in METHODS}
                    rates.setdefault(lr, []).append(figures["wcll"] == max(figures.values()))
        return rates

    @property
    def selection_costs(self) -> dict[str, float]:
        """By method, how much better rate and epoch could be chosen with the TEST labels, in points: a mean."""
        lost: dict[str, list[float]] = {}
        for name in MAIN:
            part = self.parts[name]
            oracle = part.table(TableSpec("oracle", select="oracle"))
            for method, column in product(part.methods, part.columns):
                gap = oracle.cell(method, column, "accuracy").mean - part.cell("fair", method, column).mean
                lost.setdefault(method, []).append(100 * gap)
        return {method: fmean(gaps) for method, gaps in lost.items()}

    @property
    def worlds(self) -> list[World]:
        """The protocol of the tables, and the others that were run in full."""
        parts = self.parts
        own = World(
            "the protocol of the tables",
            tuple(parts[name] for name in MAIN),
            parts["steady"],
            parts["table5"],
            parts["table6"],
        )
        return [own, *(World(NAMED[name].generator, (part,), part, part, part) for name, part in self.named.items())]

    @property
    def wcll(self) -> list[Beside]:
        """WCLL's own 12 settings: tables 2, 3, 4, and p = 5 of table 6, whose others are table 2's."""
        return [*self.main_beside("wcll"), self.parts["table6"].of("wcll")[-1]]


def read_reproduction(folder: Path) -> Reproduction:
    """The results of every suite in a folder; those of another version are refused."""
    if not folder.is_dir():
        remedy = f"make it with: wcll paper run all --results {folder}"
        raise InputError("--results", "a folder of result files", f"{folder}, which does not exist", remedy)

    def there(name: str) -> bool:
        return (folder / f"{name}.json").exists()

    wanted = [name for name in SUITES if name not in LATER or there(name)]
    parts = {name: read_part(folder / f"{name}.json", load_suite(name)) for name in wanted}
    named = {name: read_part(folder / f"{name}.json", named_suite(name)) for name in NAMED if there(name)}
    search = read_search(folder / f"{NAME}.json") if there(NAME) else None
    images = {
        name: read_part(folder / f"{name}.json", load_suite(name), partial=True).begun
        for name in (FACTORS, *IMAGES)
        if there(name)
    }
    bounds = read_bounds(folder.parent) if (folder.parent / "bounds.json").exists() else None
    return Reproduction(parts, search, named, bounds, images)


HOLDS, FAILS = "holds", "does not hold"
DEPENDS, UNTOLD = "depends on what the paper does not say", "can't be told"
AGREEMENT = 0.9  #: the share of answers that makes a verdict, if no answer is to the contrary
ENOUGH = 3  #: protocols run in full without which none of their answers is a verdict

Answer = bool | None


@dataclass(frozen=True)
class Claim:
    """One claim, our verdict, and why."""

    statement: str
    verdict: str
    evidence: str


Judged = tuple[str, str]  #: a verdict, and why
CLAIMS: dict[str, Callable[[Reproduction], Judged]] = {}


def verdict_of(answers: Sequence[Answer]) -> str:
    """What several answers to one question make.

    >>> verdict_of([True] * 9 + [None]), verdict_of([True, None]), verdict_of([True, False, None])
    ('holds', "can't be told", 'depends on what the paper does not say')
    """
    yes, no = (sum(answer is wanted for answer in answers) for wanted in (True, False))
    if yes and no:
        return DEPENDS
    if yes + no < AGREEMENT * len(answers) or not answers:
        return UNTOLD
    return HOLDS if yes else FAILS


def verdict_over_worlds(answers: Mapping[str, Answer], worlds: int) -> str:
    """The same of protocols that were run in full: too few of them may contradict each other, but not agree.

    >>> verdict_over_worlds({"the protocol of the tables": True}, 1)
    "can't be told"
    """
    verdict = verdict_of(list(answers.values()))
    return verdict if worlds >= ENOUGH or verdict == DEPENDS else UNTOLD


def claim(statement: str) -> Callable[[Callable[[Reproduction], Judged]], None]:
    """Decorator: the function judges a claim of the paper from all that was found."""

    def register(judge: Callable[[Reproduction], Judged]) -> None:
        CLAIMS[statement] = judge

    return register


#: From what was found to the question for each protocol that fits, and what our own runs say of it.
OnMeans = Callable[[Reproduction], tuple[Question, str]]


def claim_on_means(statement: str) -> Callable[[OnMeans], None]:
    """Decorator: a claim on mean accuracies, asked of every protocol that fits the printed numbers."""

    def register(asked: OnMeans) -> None:
        def judge(found: Reproduction) -> Judged:
            question, evidence = asked(found)
            fits = found.fits
            if fits is None:
                return UNTOLD, f"{evidence} {say('claims', 'no_search')}"
            count = fits.ask(question)
            return verdict_of(list(count.fitting.values())), f"{evidence} {say('claims', 'over_protocols', count)}"

        CLAIMS[statement] = judge

    return register


OnWorld = Callable[[World], tuple[Answer, str]]


def claim_on_worlds(statement: str) -> Callable[[OnWorld], None]:
    """Decorator: a claim on recalls, spreads or epochs, asked of every protocol that was run in full."""

    def register(asked: OnWorld) -> None:
        def judge(found: Reproduction) -> Judged:
            judged = {world.title: asked(world) for world in found.worlds}
            answers = {title: answer for title, (answer, _) in judged.items()}
            own = judged[found.worlds[0].title][1]
            tail = say("claims", "over_worlds", answers, len(answers), N_PROTOCOLS, ENOUGH)
            return verdict_over_worlds(answers, len(answers)), f"{own} {tail}"

        CLAIMS[statement] = judge

    return register
