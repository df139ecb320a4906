"""Annotators whose labels are unlike the others': a test for each, and none accused for being one of many."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.labels.records import LabelRecords

ANNOTATOR_LEVEL = 0.01  #: how often, at most, any annotator is accused if all are alike
LEAST = 5  #: labels below which nobody is tested
MOST = 500  #: annotators, of whom those with the most labels are tested
EXPECTED = 5.0  #: labels in every cell that make the chi-square distribution good enough
DRAWS = 100_000  #: at most, for one annotator
ENOUGH = 10  #: draws as far off as the labels that end the drawing: the chance is known well enough then
ROUNDS = 20  #: at most so many are taken away one by one
CLASSES = 100  #: at most so many are told apart: the rarest are counted together


@dataclass(frozen=True)
class AnnotatorShares:
    """One annotator against all others."""

    annotator: str
    labels: int
    distance: float  #: total variation between its label shares and the others'
    most: str  #: the class that it names more often than others do, by the largest difference of shares
    p_value: float | None  #: that chance makes them differ so much; None: too few labels, or nobody else
    adjusted: float | None  #: by Holm, over all that are tested

    @property
    def differs(self) -> bool:
        """Whether chance does not explain it."""
        return self.adjusted is not None and self.adjusted <= ANNOTATOR_LEVEL

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "differs": self.differs}


def compare_annotators(records: LabelRecords) -> tuple[AnnotatorShares, ...]:
    r"""Every annotator's label counts against those of the others, most different first.

    The statistic is chi-square of a table of two rows. Its chance is that of the chi-square distribution where every
    cell expects ``EXPECTED`` labels or more, else from tables with the same margins that are drawn until ``ENOUGH`` are
    as far off (Besag and Clifford). Holm's method adjusts for their number. Whoever differs most is taken away before
    the rest are compared with each other: one who is odd does not make all others look odd.
    """
    assert records.annotator is not None
    k, who = len(records.classes), len(records.annotators)
    check_memory("annotators", f"counts of {who} annotators and {k} classes", 3 * 8 * who * k)
    table = np.bincount(records.annotator * k + records.label, minlength=who * k).reshape(who, k)
    own = table.sum(axis=1)
    order = np.lexsort((np.arange(who), -own))
    tested = [int(a) for a in order[:MOST] if own[a] >= LEAST and own[a] < own.sum()]
    chances, adjusted, pool = _tested(_pooled(table), tested)
    usual, total = table[pool].sum(axis=0), table.sum(axis=0)
    found = []
    for a in range(who):
        others = usual - table[a] if pool[a] else usual
        others = others if others.any() else total - table[a]
        found.append(_one(records, a, table[a], others, chances.get(a), adjusted.get(a)))
    return tuple(sorted(found, key=lambda one: (_last(one.adjusted), _last(one.p_value), -one.distance, one.annotator)))


def _tested(cells: IntArray, tested: list[int]) -> tuple[dict[int, float], dict[int, float], BoolArray]:
    """Chances, adjusted ones, and who is left to compare with."""
    pool, left, largest = np.ones(len(cells), dtype=np.bool_), list(tested), 0.0
    chances: dict[int, float] = {}
    adjusted: dict[int, float] = {}
    for _ in range(ROUNDS):
        total = cells[pool].sum(axis=0)
        if not any(cells[a].sum() < total.sum() for a in left):
            break
        chances |= {a: _chance(cells[a], total, len(tested)) for a in left}
        far = {a: float(_statistic(cells[a], total, int(cells[a].sum()), int(total.sum()))) for a in left}
        odd = min(left, key=lambda a: (chances[a], -far[a], a))
        largest = max(largest, min(1.0, chances[odd] * len(left)))
        if largest > ANNOTATOR_LEVEL:
            break
        adjusted[odd], pool[odd] = largest, False
        left.remove(odd)
    rest = _holm({a: chances[a] for a in left if a in chances})
    return chances, adjusted | {a: max(chance, largest) for a, chance in rest.items()}, pool


def _pooled(table: IntArray) -> IntArray:
    """The counts with the rarest classes as one, where there are many."""
    if table.shape[1] <= CLASSES:
        return table
    often = np.argsort(-table.sum(axis=0), kind="stable")
    rare: IntArray = table[:, often[CLASSES - 1 :]].sum(axis=1, keepdims=True)
    return np.hstack([table[:, often[: CLASSES - 1]], rare])


def _last(value: float | None) -> float:
    return 2.0 if value is None else value


def _one(
    records: LabelRecords, a: int, own: IntArray, others: IntArray, chance: float | None, adjusted: float | None
) -> AnnotatorShares:
    gap = own / own.sum() - (others / others.sum() if others.any() else own / own.sum())
    most = records.classes[int(gap.argmax())]
    return AnnotatorShares(records.annotators[a], int(own.sum()), float(np.abs(gap).sum() / 2), most, chance, adjusted)


def _chance(own: IntArray, total: IntArray, tests: int) -> float:
    """The chance that labels dealt out at random are as far off as an annotator's."""
    some = total > 0
    own, total = own[some], total[some]
    n, whole = int(own.sum()), int(total.sum())
    found = float(_statistic(own, total, n, whole))
    expected = total * (min(n, whole - n) / whole)
    if expected.min() >= EXPECTED:
        return float(chdtrc(len(total) - 1, found))
    rng = stream(0, "labels", "annotators", n, int(found * 1e6))
    most = min(DRAWS, max(999, 4 * int(tests / ANNOTATOR_LEVEL)))
    drawn = far = 0
    while drawn < most and far < ENOUGH:
        some_more = min(max(199, drawn), most - drawn, 5000)
        tables = _dealt(rng, total, n, some_more)
        far += int((_statistic(tables, total, n, whole) >= found * (1 - 1e-9)).sum())
        drawn += some_more
    return (far + 1) / (drawn + 1)


def _dealt(rng: np.random.Generator, total: IntArray, n: int, draws: int) -> IntArray:
    """Tables of an annotator with n labels out of all."""
    if total.sum() < 10**9:
        return rng.multivariate_hypergeometric(total, n, size=draws, method="marginals")
    return rng.multinomial(n, total / total.sum(), size=draws)


def _statistic(own: IntArray, total: IntArray, n: int, whole: int) -> FloatArray:
    """Chi-square of the table of an annotator and all others; ``own`` may be many."""
    expected = total * (n / whole)
    square = np.divide((own - expected) ** 2, expected, out=np.zeros(np.shape(own)), where=expected > 0)
    sums: FloatArray = square.sum(axis=-1) * (whole / (whole - n))
    return sums


def _holm(chances: dict[int, float]) -> dict[int, float]:
    """Chances adjusted for how many there are."""
    adjusted, largest = {}, 0.0
    for rank, (a, chance) in enumerate(sorted(chances.items(), key=lambda pair: (pair[1], pair[0]))):
        largest = max(largest, min(1.0, chance * (len(chances) - rank)))
        adjusted[a] = largest
    return adjusted
