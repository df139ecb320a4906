"""Diagnostics of complementary labels: their counts, annotators, and how many of them are needed.

Nothing here takes a true label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri, xlogy

from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    class_weights_array,
    inverse_transition,
    share,
    transition_matrix,
)
from wcll.exceptions import InputError
from wcll.labels.counts import Estimate
from wcll.labels.encoding import MOST_ORDERED, LabelRecords, LabelSets, label_records
from wcll.labels.families import FAMILIES
from wcll.labels.family_selection import CostTable, FamilyFit, by_counts, by_sets, costs_if_wrong
from wcll.labels.goodness_of_fit import Check, check_counts
from wcll.labels.label_model import Belief
from wcll.labels.repeated import RepeatedTransition, transition_from_sets
from wcll.labels.transition import normalised, uniform_transition

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


ACCURACIES = (0.6, 0.8, 0.95)  #: of models that may be judged
POINTS = 0.02  #: half the width of the interval that is wanted
INTERVAL_LEVEL = 0.95  #: of that interval
WORST = 1e9  #: condition beyond which nothing is left of an inverse


@dataclass(frozen=True)
class Judging:
    """How many labels tell a model's accuracy, one label a sample."""

    accuracy: float  #: of the model
    deviation: float  #: standard deviation of what one label says of it
    labels: int  #: for the interval that is wanted
    true_labels: int  #: that would do instead


@dataclass(frozen=True)
class LabelWorth:
    """What one label tells of the class of its sample, and what labels tell of a model."""

    basis: str  #: the Q and the class shares that this rests on
    entropy: float  #: of the classes, in bits
    information: float  #: of one label about the class, in bits
    judging: tuple[Judging, ...]
    problem: str = ""  #: why accuracy cannot be told

    @property
    def labels_for_one(self) -> float:
        """How many labels weigh as much as one true label, at least: labels of one sample partly say the same."""
        return self.entropy / self.information if self.information > 1e-12 else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; None for what no number of labels gives."""
        ratio = self.labels_for_one
        return {**asdict(self), "labels_for_one": ratio if np.isfinite(ratio) else None}


def label_worth(transition: ArrayLike, shares: ArrayLike, basis: str = "Q as given") -> LabelWorth:
    r"""The information :math:`I(y; \bar y) = H(\bar p) - \sum_y p_y H(Q_y)`, and labels for an accuracy.

    >>> worth = label_worth([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], [1, 1, 1])
    >>> round(worth.entropy, 3), round(worth.information, 3), round(worth.labels_for_one, 2)
    (1.585, 0.585, 2.71)
    """
    matrix = transition_matrix(transition)
    p = normalised(class_weights_array("shares", shares, len(matrix)))
    information = max(_entropy(p @ matrix) - float(p @ [_entropy(row) for row in matrix]), 0.0)
    judging: list[Judging] = []
    problem = ""
    inverse = _inverse(matrix)
    if inverse is None:
        problem = "Q has no inverse that could be used"
    else:
        judging = [
            _judging(accuracy, accuracy_deviation(matrix, p, accuracy, inverse=inverse)) for accuracy in ACCURACIES
        ]
    return LabelWorth(basis, _entropy(p), information, tuple(judging), problem)


def accuracy_deviation(
    transition: FloatArray, shares: FloatArray, accuracy: float, *, inverse: FloatArray | None = None
) -> float:
    r"""The standard deviation of :math:`Q^{-1}_{\bar y \hat y}`, whose mean over labels estimates accuracy.

    Of a model that is right with the same chance for every class and otherwise takes any other class alike. For uniform
    Q this is :math:`\sqrt{(K - 1) e - e^2}` with the share e of mistakes.

    >>> Q = (1 - np.eye(3)) / 2
    >>> round(accuracy_deviation(Q, np.ones(3) / 3, 0.5), 4) == round(0.75**0.5, 4)
    True
    """
    share("accuracy", accuracy)
    inverse = inverse_transition(transition) if inverse is None else inverse
    k = len(transition)
    predicted = np.where(np.eye(k) == 1, accuracy, (1 - accuracy) / (k - 1))
    second = float(shares @ (predicted * (transition @ inverse**2)).sum(axis=1))
    return float(np.sqrt(max(second - accuracy**2, 0.0)))


def labels_needed(deviation: float, points: float = POINTS) -> int:
    """How many labels bring the half width of a 95 % interval down to ``points``.

    >>> labels_needed(0.4)
    1537
    """
    return ceil(float(-ndtri((1 - INTERVAL_LEVEL) / 2) * deviation / points) ** 2)


def _judging(accuracy: float, deviation: float) -> Judging:
    true = float(np.sqrt(accuracy * (1 - accuracy)))
    return Judging(accuracy, deviation, labels_needed(deviation), labels_needed(true))


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """The inverse, unless rounding would spoil it; quick for a thousand classes, too."""
    try:
        inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    norms = np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    return inverse if norms < WORST else None


def _entropy(shares: Sequence[float] | FloatArray) -> float:
    """In bits."""
    return float(-xlogy(shares, shares).sum() / np.log(2))


MOST_CLASSES = 1000  #: of which matrices are looked at
MOST_ESTIMATED = 20  #: classes whose Q is estimated here
MOST_COSTED = 100  #: classes of which families are held against each other here
WORK = {
    True: 4 * 10**5,
    False: 4 * 10**4,
}  #: groups of samples x classes x what each takes, with and without replacement
MOST_PAIRS = 5  #: pairs of classes that are named
APART = 2.0  #: standard errors by which rows differ if they are told apart


@dataclass(frozen=True)
class Agreement:
    """How often two labels of a sample name the same class."""

    pairs: int
    share: float
    error: float  #: standard error, over samples
    independent: float  #: the share if labels had nothing to do with their sample

    @property
    def deviations(self) -> float:
        """By how many standard errors they agree more than independent labels."""
        return (self.share - self.independent) / max(self.error, 1e-300)


@dataclass(frozen=True)
class ConfusedPair:
    """Two classes whose rows of Q are near to one another."""

    first: str
    second: str
    distance: float  #: total variation
    error: float  #: what the errors of the rows alone would give, about

    @property
    def told_apart(self) -> bool:
        """Whether the rows differ by more than their errors."""
        return self.distance > APART * self.error


@dataclass(frozen=True, eq=False)
class RepeatedHealth:
    """What several labels of a sample tell."""

    found: RepeatedTransition
    samples: int  #: that Q was estimated from
    noise: float  #: the share of labels that name the true class
    noise_error: float | None  #: at most; None if a diagonal of 0 was chosen with what the estimate leans to
    pairs: tuple[ConfusedPair, ...]  #: nearest first


@dataclass(frozen=True, eq=False)
class LabelHealth:
    """What :func:`label_health` finds; an entry is None where labels do not tell it, and a problem says why."""

    classes: tuple[str, ...]
    sizes: tuple[int, float, int]  #: labels a sample: least, mean, most
    samples: int
    labels: int
    replacement: bool  #: whether some sample names a class twice
    counts: IntArray
    shares: Estimate  #: of the labels, every sample weighing the same
    check: Check | None  #: of the counts against uniform Q
    implied: Estimate | None  #: class shares, if Q is uniform and not contradicted
    everything_named: int  #: samples of which every class is named: at least one of their labels is wrong
    families: tuple[FamilyFit, ...]
    agreement: Agreement | None
    repeated: RepeatedHealth | None
    repeated_problem: str
    annotators: tuple[AnnotatorShares, ...] | None
    worth: LabelWorth | None
    costs: CostTable | None  #: of families that are assumed if others are so, or the Q that repeated labels tell

    @property
    def limit(self) -> float:
        """The largest share of the labels that a class may have under uniform Q."""
        return 1 / (len(self.classes) - 1)

    @property
    def never(self) -> tuple[str, ...]:
        """Classes that are never a label."""
        return tuple(name for name, count in zip(self.classes, self.counts, strict=True) if count == 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        least, mean, most = self.sizes
        check = None if self.check is None else {"state": self.check.state, "line": self.check.line}
        return {
            "samples": self.samples,
            "labels": self.labels,
            "labels_a_sample": {"least": least, "mean": mean, "most": most, "replacement": self.replacement},
            "classes": list(self.classes),
            "counts": self.counts.tolist(),
            "shares": self.shares.to_dict(),
            "uniform": {"limit": self.limit, "check": check, "class_shares": self.implied and self.implied.to_dict()},
            "never_a_label": list(self.never),
            "every_class_named": self.everything_named,
            "families": [fit.to_dict() for fit in self.families],
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "repeated": None if self.repeated is None else _repeated_dict(self.repeated),
            "repeated_problem": self.repeated_problem or None,
            "annotators": None if self.annotators is None else [one.to_dict() for one in self.annotators],
            "worth": None if self.worth is None else self.worth.to_dict(),
            "costs_if_wrong": None if self.costs is None else self.costs.to_dict(),
        }


def _repeated_dict(repeated: RepeatedHealth) -> dict[str, Any]:
    found = repeated.found
    assert found.standard_error is not None
    assert found.shares is not None
    assert found.shares_error is not None
    return {
        "samples": repeated.samples,
        "identified": found.identified,
        "reason": found.reason,
        "transition": found.transition.tolist(),
        "standard_error": found.standard_error.tolist(),
        "class_shares": found.shares.tolist(),
        "class_shares_error": found.shares_error.tolist(),
        "noise": repeated.noise,
        "noise_error": repeated.noise_error,
        "nearest_classes": [{**asdict(pair), "told_apart": pair.told_apart} for pair in repeated.pairs],
    }


def label_health(ybar: Any, classes: Any = None, annotators: Any = None) -> LabelHealth:
    """What complementary labels say of themselves: counts, Q, agreement, mistakes, annotators, and their worth.

    Parameters
    ----------
    ybar : labels
        One a sample, shape (n,), several, (n, m), a boolean mask (n, K), or a list of lists of labels, in which a class
        may come twice. Names, or class indices from 0 where ``classes`` is None or text.
    classes : list of names, optional
        Every class. None: the names that occur, or the indices up to the largest.
    annotators : array, optional
        Who gave each label: as ``ybar``, or one a sample.

    Examples
    --------
    >>> health = label_health(["cat", "cat", "dog", "bird"])
    >>> health.classes, health.counts.tolist(), health.repeated_problem
    (('bird', 'cat', 'dog'), [1, 2, 1], 'one label a sample does not tell it')
    """
    return health_of(label_records(ybar, classes, annotators))


def health_of(records: LabelRecords) -> LabelHealth:
    """The same of labels that were read one by one."""
    shares, sizes = Estimate(*records.marginal), records.sizes
    totals, k = shares.value * len(sizes), len(records.classes)
    check, implied = _uniform(totals, shares, records.classes) if k <= MOST_CLASSES else (None, None)
    families = by_counts(totals, records.classes) if k <= MOST_CLASSES else []
    sets, problem = _sets(records)
    repeated = None
    if sets is not None:
        repeated = _repeated(sets, records.classes)
        families = by_sets(families, sets, repeated.found)
    return LabelHealth(
        classes=records.classes,
        sizes=(int(sizes.min()), float(sizes.mean()), int(sizes.max())),
        samples=len(sizes),
        labels=len(records),
        replacement=records.replacement,
        counts=records.counts,
        shares=shares,
        check=check,
        implied=implied,
        everything_named=len(records.everything_named),
        families=tuple(families),
        agreement=_agreement(records),
        repeated=repeated,
        repeated_problem=problem,
        annotators=None if records.annotator is None else compare_annotators(records),
        worth=_worth(repeated, check, implied, totals),
        costs=_costs(repeated, totals) if k <= MOST_COSTED else None,
    )


def _uniform(totals: FloatArray, shares: Estimate, names: tuple[str, ...]) -> tuple[Check, Estimate | None]:
    """Whether counts contradict uniform Q and, if not, the class shares that it implies, 1 - (K - 1) times those."""
    check = check_counts(totals, Belief.of("uniform", totals), names)
    others = len(totals) - 1
    return check, None if check.contradicted else Estimate(1 - others * shares.value, others * shares.standard_error)


def _agreement(records: LabelRecords) -> Agreement | None:
    """Pairs of labels of a sample that agree; None if no sample names a class twice."""
    if not records.replacement:
        return None
    sample, _, times = records.named
    sizes = records.sizes.astype(np.float64)
    same = np.bincount(sample, weights=times * (times - 1), minlength=len(sizes)) / 2
    pairs = sizes * (sizes - 1) / 2
    share = float(same.sum() / pairs.sum())
    error = float(np.sqrt(np.square(same - share * pairs).sum()) / pairs.sum())
    shares = normalised(records.counts.astype(np.float64))
    return Agreement(int(pairs.sum()), share, error, float(shares @ shares))


def _sets(records: LabelRecords) -> tuple[LabelSets | None, str]:
    """Samples to estimate Q from, as many as take seconds; or why there are none."""
    k, most = len(records.classes), int(records.sizes.max())
    if most < 2:
        return None, "one label a sample does not tell it"
    if k > MOST_ESTIMATED:
        long = f"Q of more than {MOST_ESTIMATED} classes takes long"
        return None, f"{long}: wcll.labels.transition_from_repeated estimates it"
    if not records.replacement and most > MOST_ORDERED:
        drawn = f"{most} labels of a sample without any twice are drawn without replacement"
        return None, f"{drawn}: at most {MOST_ORDERED} can be looked at"
    sets = records.sets()
    each = k * (k if sets.replacement else most * factorial(most))
    room = WORK[sets.replacement] // each
    if len(sets.weight) <= room:
        return sets, ""
    if not sets.replacement:
        long = f"{len(sets.weight)} sets of {most} of {k} labels take long"
        return None, f"{long}: wcll.labels.transition_from_repeated estimates it"
    return _thinned(sets, room), ""


def _thinned(sets: LabelSets, groups: int) -> LabelSets:
    """Samples drawn at random until they are no more than so many groups."""
    rng = stream(0, "labels", "health")
    while len(sets.weight) > groups:
        kept = max(0.5, min(0.95, groups / len(sets.weight)))
        sets = sets.weighted(rng.binomial(sets.weight.astype(np.int64), kept).astype(np.float64))
    return sets


def _repeated(sets: LabelSets, names: tuple[str, ...]) -> RepeatedHealth:
    found = transition_from_sets(sets)
    assert found.standard_error is not None
    assert found.shares is not None
    diagonal, errors = np.diag(found.transition), np.diag(found.standard_error)
    told = None if found.noise == 0 else float(found.shares @ errors)  # a sum: errors of rows may go together
    noise = 0.0 if told is None else float(found.shares @ diagonal)
    return RepeatedHealth(found, int(sets.n), noise, told, _nearest(found.transition, found.standard_error, names))


def _nearest(matrix: FloatArray, errors: FloatArray, names: tuple[str, ...]) -> tuple[ConfusedPair, ...]:
    """The pairs of rows with the least total variation."""
    first, second = np.triu_indices(len(matrix), 1)
    distance = np.abs(matrix[first] - matrix[second]).sum(axis=1) / 2
    error = np.sqrt(2 / np.pi) / 2 * np.hypot(errors[first], errors[second]).sum(axis=1)
    order = np.argsort(distance, kind="stable")[:MOST_PAIRS]
    return tuple(ConfusedPair(names[first[i]], names[second[i]], float(distance[i]), float(error[i])) for i in order)


def _costs(repeated: RepeatedHealth | None, totals: FloatArray) -> CostTable:
    """Of families that counts tell and, if repeated labels tell it, of the estimated Q."""
    told = repeated is not None and repeated.found.identified
    return costs_if_wrong(totals, others={"estimated": repeated.found.transition} if repeated and told else None)


def _worth(
    repeated: RepeatedHealth | None, check: Check | None, implied: Estimate | None, totals: FloatArray
) -> LabelWorth | None:
    """By the Q that was estimated, else uniform if counts allow it, else popularity."""
    if repeated is not None and repeated.found.shares is not None:
        how = "estimated from repeated labels" + (
            "" if repeated.found.identified else ", which do not tell it alone: a rough guess"
        )
        return label_worth(repeated.found.transition, repeated.found.shares, f"Q and class shares {how}")
    if check is None:
        return None
    if implied is not None:
        basis = "assumed: uniform Q, which counts do not contradict, and the class shares that it implies"
        return label_worth(uniform_transition(len(totals)), implied.distribution, basis)
    try:
        found = FAMILIES["popularity"].fit(totals)
    except InputError:
        return None
    assert found.shares is not None
    return label_worth(found.transition, found.shares, "assumed: popularity, as counts contradict uniform Q")
