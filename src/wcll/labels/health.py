"""The health of complementary labels: what they say of themselves, of those who gave them, and of what they are worth.

Nothing here takes a true label.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import factorial
from typing import Any

import numpy as np

from wcll._random import stream
from wcll._validation import FloatArray, IntArray
from wcll.exceptions import InputError
from wcll.labels.alarms import Check, check_counts
from wcll.labels.annotator_shares import AnnotatorShares, compare_annotators
from wcll.labels.beliefs import Belief
from wcll.labels.cost_table import CostTable, costs_if_wrong
from wcll.labels.families import FAMILIES
from wcll.labels.family_fits import FamilyFit, by_counts, by_sets
from wcll.labels.records import LabelRecords, label_records
from wcll.labels.repeated import RepeatedTransition, transition_from_sets
from wcll.labels.sets import MOST_ORDERED, LabelSets
from wcll.labels.statistics import Estimate
from wcll.labels.transition import normalised, uniform_transition
from wcll.labels.worth import LabelWorth, label_worth

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
