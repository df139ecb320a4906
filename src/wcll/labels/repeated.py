"""The transition matrix and class priors from several complementary labels per sample, by EM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import FloatArray, IntArray, distribution, non_negative
from wcll.exceptions import InputError
from wcll.labels.encoding import FLOOR, Classes, LabelSets, class_count, indexed_rows, label_sets
from wcll.labels.families import EstimatedTransition
from wcll.labels.transition import noisy_transition, normalised, transition_from_pi

TOLERANCE = 1e-8  #: gain in the mean log-likelihood of a sample below which steps end


@dataclass(frozen=True, eq=False)
class Lean:
    """What an estimate leans towards, and how much: as if so many labels and samples had been seen besides."""

    target: FloatArray  #: a Q
    strength: float  #: labels of every class that follow the target
    shares: FloatArray  #: class shares
    samples: float  #: that follow them; infinite if the shares are told

    def value(self, transition: FloatArray, prior: FloatArray) -> float:
        r"""What it adds to the likelihood: :math:`s \sum_{yj} T_{yj} \log (Q_{yj} / T_{yj})`, likewise of shares."""
        value = self.strength * _log_ratio(self.target, transition)
        return value + (self.samples * _log_ratio(self.shares, prior) if np.isfinite(self.samples) else 0.0)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Q, the class shares, and the log-likelihood of samples that they give, with and without what it leans to."""

    transition: FloatArray
    prior: FloatArray
    log_likelihood: float = -np.inf
    value: float = -np.inf


def _log_ratio(target: FloatArray, values: FloatArray) -> float:
    some = target > 0
    return float(target[some] @ (np.log(np.maximum(values[some], FLOOR)) - np.log(target[some])))


def posterior(sets: LabelSets, at: Mixture) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""P(y given the labels) of every group, log P(labels), and the exposures of :meth:`LabelSets.likelihood`.

    .. math:: P(y \mid c) \propto p_y \prod_j Q_{yj}^{c_j}
    """
    joint, exposure = sets.likelihood(at.transition)
    joint = joint + np.log(np.maximum(at.prior, FLOOR))
    top = joint.max(axis=1, keepdims=True)
    np.exp(np.subtract(joint, top, out=joint), out=joint)
    whole = joint.sum(axis=1, keepdims=True)
    joint /= whole
    return joint, (top + np.log(whole))[:, 0], exposure


def em_step(sets: LabelSets, at: Mixture, lean: Lean) -> Mixture:
    r"""One step; the values that come back are those *before* it.

    .. math:: Q_{yj} \propto \frac{\sum_g w_g P(y \mid g)\, c_{gj} + s T_{yj}}{\sum_g w_g P(y \mid g)\, e_{gyj} + s}
              , \qquad p_y \propto \sum_g w_g P(y \mid g) + m t_y

    with exposures e, which are the same for all j if labels are drawn with replacement (then this is Dawid and Skene's
    step with one Q for all annotators), and otherwise Hunter's minorisation for choices of what is left.
    """
    share, log_chance, exposure = posterior(sets, at)
    log_likelihood = float(sets.weight @ log_chance)
    share *= sets.weight[:, None]
    named = share.T @ sets.counts + lean.strength * lean.target
    if not sets.replacement:
        named = named / np.maximum(np.einsum("gy,gyj->yj", share, exposure) + lean.strength, FLOOR)
    sums = named.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, named / np.maximum(sums, 1e-300), at.transition)
    told = np.isinf(lean.samples)
    prior = lean.shares if told else normalised(share.sum(axis=0) + lean.samples * lean.shares)
    value = log_likelihood + lean.value(at.transition, at.prior)
    return Mixture(transition, prior, log_likelihood, value)


def climb(sets: LabelSets, start: FloatArray, lean: Lean, *, steps: int, prior: FloatArray | None = None) -> Mixture:
    """EM from a start until hardly anything is gained, or for so many steps."""
    at = Mixture(start, lean.shares if prior is None else prior)
    last = -np.inf
    for _ in range(steps):
        following = em_step(sets, at, lean)
        if following.value - last < TOLERANCE * sets.n:
            break
        last, at = following.value, following
    log_likelihood = float(sets.weight @ posterior(sets, at)[1])
    value = log_likelihood + lean.value(at.transition, at.prior)
    return Mixture(at.transition, at.prior, log_likelihood, value)


def spectral_start(sets: LabelSets, rng: np.random.Generator) -> FloatArray | None:
    r"""Rows of Q, in any order, from the moments of three labels; None if fewer were drawn, or without replacement.

    For labels a, b, c of a sample, as unit vectors, :math:`M_2 = E[a b^\top] = Q^\top D Q` and
    :math:`M_3(v) = E[a b^\top (c^\top v)] = Q^\top D\, \mathrm{diag}(Qv)\, Q` with class shares D: where the first is
    the identity, the second has the rows of Q as its eigenvectors.
    """
    three = sets.sizes >= 3
    if not (sets.replacement and three.any()):
        return None
    counts, weight, n = sets.counts[three], sets.weight[three], sets.sizes[three].astype(np.float64)
    direction: FloatArray = rng.standard_normal(size=(counts.shape[1],))
    pairs: FloatArray = weight / (n * (n - 1))
    second = (counts * pairs[:, None]).T @ counts - np.diag(pairs @ counts)
    triples: FloatArray = pairs / (n - 2)
    along: FloatArray = counts @ direction
    crossed = (counts * triples[:, None]).T @ counts
    third = (counts * (triples * along)[:, None]).T @ counts - np.diag((triples * along) @ counts)
    third += 2 * np.diag((triples @ counts) * direction) - crossed * direction - crossed * direction[:, None]
    roots, axes = np.linalg.eigh(second / weight.sum())
    scale = np.sqrt(np.maximum(roots, 1e-6))
    white = axes / scale
    vectors = np.linalg.eigh(white.T @ (third / weight.sum()) @ white)[1]
    rows = ((axes * scale) @ vectors).T
    rows = rows * np.where(rows.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    return normalised(np.maximum(rows, 1e-4))


def which_class(transition: FloatArray, shares: FloatArray) -> IntArray:
    r"""Which row is which class: that which its own samples name least, by :math:`\sum_k Q_{r_k k} / \bar p_k`."""
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    order: IntArray = linear_sum_assignment((transition / np.maximum(shares, FLOOR)).T)[1]
    return order


MOST_CLASSES = 32  #: of more, the information has too many entries
MOST_OFF = 0.1  #: total variation to which every row has to be known
APART = 2.0  #: standard errors by which one reading of the classes has to beat every other
CLEAR = 0.05  #: and by how much: the sum of Q[k, k] over k's share of the labels
DISTINCT = 5.0  #: standard errors by which two rows have to differ; equal ones come out a few apart, split by chance
OPEN = 10.0  #: labels of every class that are taken as seen where the labels tell nothing: what is open has an error
CHUNK = 1 << 22  # numbers of a piece of the scores


@dataclass(frozen=True)
class Identification:
    """Whether the labels tell Q by themselves, why, and how far a row of it may be off (total variation)."""

    identified: bool
    reason: str
    row_error: float  #: the largest standard error of a row, if nothing is leant on; infinite if nobody looked
    standard_error: FloatArray | None  #: of Q's entries, if nothing is leant on; None if nobody looked
    shares_error: FloatArray | None  #: likewise of the class shares; 0 if they are told


def equations_and_unknowns(n_classes: int, labels: int, *, replacement: bool, told: bool) -> tuple[int, int]:
    """How many numbers the law of ``labels`` labels a sample has, and how many Q and untold class shares have.

    >>> equations_and_unknowns(10, 2, replacement=True, told=False)
    (54, 99)
    """
    ways = comb(n_classes + labels - 1, labels) if replacement else comb(n_classes, labels)
    return ways - 1, n_classes * (n_classes - 1) + (0 if told else n_classes - 1)


def identification(sets: LabelSets, at: Mixture, *, told: bool) -> Identification:
    r"""Count equations, then look at the Fisher information of Q (and shares) at the estimate.

    Its inverse says how well the labels tell each row, and by how many standard errors the reading of latent classes as
    classes (which rests on the diagonal, the sum of :math:`Q_{kk} / \bar p_k`) is better than the next.
    """
    k, most = len(at.transition), int(sets.sizes.max())
    have, need = equations_and_unknowns(k, most, replacement=sets.replacement, told=told)
    several = f"{most} label{'s' if most > 1 else ''} a sample"
    if have < need:
        few = f"{several} give {have} equations for the {need} unknowns of {k} classes"
        few = f"{few}: what they leave open follows popularity"
    if k > MOST_CLASSES:
        unseen = f"not checked for more than {MOST_CLASSES} classes"
        return Identification(False, few if have < need else unseen, np.inf, None, None)
    covariance = free_covariance(sets, at, told=told)
    every = np.sqrt(np.maximum(np.diag(covariance), 0))
    errors = every[: k * k].reshape(k, k), np.zeros(k) if told else every[k * k :]
    if have < need:
        return Identification(False, few, np.inf, *errors)
    rows = (
        np.sqrt(2 / np.pi) / 2 * errors[0].sum(axis=1)
    )  # the mean of |error| is sqrt(2 / pi) of its standard deviation
    worst, off = int(rows.argmax()), float(rows.max())
    other = nearest_reading(at.transition, covariance[: k * k, : k * k], sets.totals / sets.totals.sum())
    if other.margin < max(APART * other.error, CLEAR):
        swapped = f"classes {other.first} and {other.second} may be swapped"
        better = f"{max(other.margin, 0):.2g} +- {other.error:.2g}"
        reason = f"{swapped}: on the diagonal, the next reading of the rows is worse by {better} only"
        return Identification(False, reason, off, *errors)
    near = nearest_rows(at.transition, covariance)
    if near.margin < DISTINCT:
        agree = (
            f"the rows of classes {near.first} and {near.second} nearly agree, {near.margin:.1f} standard errors apart"
        )
        return Identification(False, f"{agree}: these classes may be swapped", off, *errors)
    if off > MOST_OFF:
        known = f"of themselves, the labels tell the row of class {worst} to {off:.0%} total variation only"
        return Identification(False, f"{known}: the rest follows popularity", off, *errors)
    reason = f"{several}: the labels tell every row to {off:.1%} total variation or better"
    return Identification(True, reason, off, *errors)


@dataclass(frozen=True)
class Reading:
    """Another reading of which row is which class: two that it confuses, and how much worse it is."""

    first: int
    second: int
    margin: float
    error: float


def free_covariance(sets: LabelSets, at: Mixture, *, told: bool) -> FloatArray:
    """The covariance of Q's entries and, after them, of untold class shares, by the information that samples give.

    Scores are those of log Q and log p with each row's sum free, which adds one direction a row without effect. So that
    what nothing is known of has a large error rather than an infinite one, ``OPEN`` labels of every class are added.
    """
    k = len(at.transition)
    information = np.zeros((k * k + (0 if told else k),) * 2)
    chunk = max(1, CHUNK // (k * k))
    for start in range(0, len(sets.counts), chunk):
        part = LabelSets(sets.counts[start : start + chunk], sets.weight[start : start + chunk], sets.replacement)
        share, _, exposure = posterior(part, at)
        scores = share[:, :, None] * (part.counts[:, None, :] - exposure * at.transition)
        flat = scores.reshape(len(share), -1)
        if not told:
            flat = np.hstack([flat, share - at.prior])
        information += (flat * part.weight[:, None]).T @ flat
    slope, without_effect = np.zeros_like(information), np.zeros_like(information)
    for y, row in enumerate(at.transition if told else [*at.transition, at.prior]):
        block = slice(y * k, (y + 1) * k)
        slope[block, block] = np.diag(row) - np.outer(row, row)
        without_effect[block, block] = 1.0
    scale = information.trace() / len(information)
    inverse = np.linalg.inv(information + OPEN * slope + scale * without_effect + 1e-9 * np.eye(len(information)))
    covariance: FloatArray = slope @ inverse @ slope.T
    return covariance


def nearest_reading(transition: FloatArray, covariance: FloatArray, shares: FloatArray) -> Reading:
    """The next best reading of the rows, by the fewest standard errors."""
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    k = len(transition)
    cost = transition / np.maximum(shares, FLOOR)
    found = []
    for forbidden in range(k):
        other = cost.copy()
        other[forbidden, forbidden] = 1e9
        reading = linear_sum_assignment(other)[1]
        weight = np.zeros((k, k))
        np.add.at(weight, (np.arange(k), reading), 1 / np.maximum(shares[reading], FLOOR))
        weight -= np.diag(1 / np.maximum(shares, FLOOR))
        error = np.sqrt(max(float(weight.ravel() @ covariance @ weight.ravel()), 1e-300))
        found.append(Reading(forbidden, int(reading[forbidden]), float((weight * transition).sum()), float(error)))
    return min(found, key=lambda one: one.margin - APART * one.error)


def nearest_rows(transition: FloatArray, covariance: FloatArray) -> Reading:
    r"""The two rows that differ least, in standard errors: the root of :math:`d^\top C^+ d / (K - 1)` with C of d."""
    k = len(transition)
    found = []
    for a, b in combinations(range(k), 2):
        one, other = slice(a * k, (a + 1) * k), slice(b * k, (b + 1) * k)
        cross = covariance[one, other]
        spread = covariance[one, one] + covariance[other, other] - cross - cross.T
        gap = transition[a] - transition[b]
        apart = float(gap @ np.linalg.pinv(spread, rcond=1e-8, hermitian=True) @ gap)
        found.append(Reading(a, b, float(np.sqrt(max(apart, 0.0) / (k - 1))), 1.0))
    return min(found, key=lambda one: one.margin)


NOISES = (0.0, 0.1, 0.3, 0.6)  #: how often the true class is named, over chance, 1 / K; tried for what is leant on
STRENGTHS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.005, 0.001)  #: of the labels of a class; tried, if none is told
FIRST_STRENGTH = 0.05  #: with which starts are compared, and the least where labels do not tell Q by themselves
LEAST_OF_TWO = 0.1  #: the least where there are fewer equations than unknowns: likelihood cannot see what is left open
SHARES_STRENGTH = 0.2  #: of the samples: how much class shares lean towards equal ones, at most
SHARES_RATIO = 10  #: and by how many times more than Q leans: what tells Q tells shares
WELL_KNOWN = 0.03  #: the error of a row with which Q is measured: rows 20 % off are then six errors away
FEW = 5000  #: groups of samples that starts are compared on
STEPS = {"start": 60, "path": 40, "last": 300, "again": 40}  #: of EM, at most


@dataclass(frozen=True, eq=False)
class RepeatedTransition(EstimatedTransition):
    """Q from repeated labels, and whether they tell it by themselves."""

    identified: bool  #: whether the labels tell Q, rather than the family that it leans to
    reason: str  #: why, or why not, in words
    row_error: float  #: how far a row may be off without anything to lean on: total variation, one standard error
    strength: float  #: how much it leans to popularity, as a share of the labels of a class
    noise: float  #: the share of labels naming the true class in what it leans to
    log_likelihood: float  #: mean of a sample

    @property
    def measured(self) -> bool:
        """Whether the labels tell it so well that figures may rest on it.

        Of Qs that are told less well, some are read wrongly, class for class, by far more than their errors.
        """
        return self.identified and self.standard_error is not None and self.row_error <= WELL_KNOWN


def transition_from_repeated(
    ybar: Any,
    n_classes: int | None = None,
    *,
    replacement: bool | None = None,
    prior: ArrayLike | None = None,
    strength: float | None = None,
    draws: int = 10,
    random_state: RandomState = 0,
    classes: Classes = None,
) -> RepeatedTransition:
    r"""Q and the class shares p from samples with several labels: the largest

    .. math:: \sum_i \log \sum_y p_y \prod_{j \in \bar Y_i} Q_{yj} + s \sum_{yj} T_{yj} \log Q_{yj}

    by EM, the model of Dawid and Skene with one Q for all who label. It leans to T, popularity with a small diagonal:
    ``T[y, j]`` proportional to j's share of the labels for j other than y, as if s more labels of each class had been
    seen. Which latent class is which follows from the diagonal, as a sample's own class is hardly ever named.

    Three or more labels a sample identify Q in principle (two give 54 equations for 99 unknowns if K = 10); how well
    depends on how far rows of Q differ, and is measured: see ``identified``, ``reason`` and ``row_error``. If the
    labels do not tell it, the estimate is popularity, mended where they do: often still much nearer than that.

    Parameters
    ----------
    ybar : boolean mask (n, K), integer array (n, L), or list of lists of labels
        Labels of a sample are taken as independent given its class. (Samples that are hard in their own way make
        labels more alike than that; Q is then off by more than its standard error.) Labels are indices, of
        ``n_classes``; or names among ``classes``.
    n_classes : int, optional
    replacement : bool, optional
        Whether a label may be drawn twice. None: it may if any sample has one twice. Without replacement labels are
        drawn one after another from what is left of ``Q[y]``, as :func:`make_complementary` does; at most 5 a sample.
    prior : array of shape (K,), optional
        The class shares, if they are known. Otherwise they are estimated, leaning towards equal shares by up to a fifth
        of the samples: labels tell them poorly, and then Q is off as well where classes are far from equal.
    strength : float, optional
        s as a share of the labels of a class. None: the one of 0.001 to 1 with the best likelihood of samples that it
        did not see (two folds); at least 0.05, or 0.1 with too few equations, where the labels do not tell Q.
    draws : int
        Bootstrap samples for the standard errors; 0 for none. As they hold for an estimate given what it leans to,
        errors are those of labels with nothing to lean on where these are larger (up to 32 classes). A diagonal of
        0 is chosen with the family, and has no error.
    random_state : int, Generator or None
        For folds, random starts and the bootstrap.

    Examples
    --------
    >>> true, rng = np.array([np.roll([0, 0.6, 0.3, 0.1], k) for k in range(4)]), np.random.default_rng(0)
    >>> y = rng.integers(0, 4, 4000)
    >>> ybar = np.stack([(rng.random(4000)[:, None] > true[y].cumsum(axis=1)).sum(axis=1) for _ in range(4)], axis=1)
    >>> found = transition_from_repeated(ybar, 4)
    >>> found.identified, bool(np.abs(found.transition - true).max() < 0.05)
    (True, True)
    """
    sets = label_sets(indexed_rows(ybar, classes), class_count(n_classes, classes), replacement=replacement)
    return transition_from_sets(sets, prior=prior, strength=strength, draws=draws, random_state=random_state)


def transition_from_sets(
    sets: LabelSets,
    *,
    prior: ArrayLike | None = None,
    strength: float | None = None,
    draws: int = 10,
    random_state: RandomState = 0,
) -> RepeatedTransition:
    """The same of samples that are counted by their labels already."""
    search = _Search(sets, _checked(sets, prior), prior is not None, stream(random_state, "labels", "repeated"))
    chosen = search.strength_by_folds() if strength is None else non_negative("strength", strength)
    best = search.best(chosen)
    found = identification(sets, best, told=search.told)
    if strength is None and found.row_error > MOST_OFF and chosen < FIRST_STRENGTH:
        chosen = FIRST_STRENGTH
        best = search.best(chosen)
        found = identification(sets, best, told=search.told)
    errors = search.bootstrap(best, chosen, draws)
    if errors is not None and found.standard_error is not None and found.shares_error is not None:
        errors = np.maximum(errors, np.vstack([found.standard_error, found.shares_error]))
    known = "" if found.identified else ", which do not tell it by themselves"
    return RepeatedTransition(
        transition=best.transition,
        standard_error=None if errors is None else errors[:-1],
        shares=best.prior,
        basis=f"{_labels_a_sample(sets)} of {sets.n:.0f} samples{known}",
        family="popularity-noise" if search.noise else "popularity",
        shares_error=None if errors is None else errors[-1],
        identified=found.identified,
        reason=found.reason,
        row_error=found.row_error,
        strength=chosen,
        noise=search.noise,
        log_likelihood=best.log_likelihood / sets.n,
    )


def _checked(sets: LabelSets, prior: ArrayLike | None) -> FloatArray:
    """The class shares to lean on, if there is anything to learn from the labels."""
    k = sets.counts.shape[1]
    if sets.sizes.max() < 2:
        remedy = "with one label a sample, tell a family, such as transition='popularity'"
        raise InputError("ybar", "samples with several labels", "one each", remedy)
    if np.count_nonzero(sets.totals) < 2:
        raise InputError("ybar", "labels of at least two classes", f"one class, {int(sets.totals.argmax())}")
    return np.full(k, 1 / k) if prior is None else normalised(distribution("prior", prior, k))


def _labels_a_sample(sets: LabelSets) -> str:
    low, high = int(sets.sizes.min()), int(sets.sizes.max())
    return f"{high} labels" if low == high else f"{low} to {high} labels"


@dataclass(frozen=True, eq=False)
class _Search:
    """The starts, the strengths and the draws that are tried for some labels."""

    sets: LabelSets
    shares: FloatArray  #: of classes: told, or what is leant to
    told: bool
    rng: np.random.Generator

    def lean(self, sets: LabelSets, noise: float, strength: float) -> Lean:
        """Popularity with noise, at a share ``strength`` of the labels of a class."""
        popularity = transition_from_pi(normalised(self.sets.totals))
        labels = strength * float(sets.totals.sum()) / len(popularity)
        samples = np.inf if self.told else min(SHARES_STRENGTH, SHARES_RATIO * strength) * sets.n
        return Lean(noisy_transition(popularity, rate=noise), labels, self.shares, samples)

    @cached_property
    def some(self) -> LabelSets:
        """Samples enough to compare starts on."""
        kept = FEW / len(self.sets.weight)
        if kept >= 1:
            return self.sets
        return self.sets.weighted(self.rng.binomial(self.sets.weight.astype(np.int64), kept).astype(np.float64))

    @cached_property
    def tried(self) -> list[tuple[float, Mixture]]:
        """What EM makes of popularity with some noise, for every amount of it."""
        k = len(self.shares)
        leans = [(float(noise), self.lean(self.some, noise, FIRST_STRENGTH)) for noise in np.array(NOISES) / k]
        return [(noise, climb(self.some, lean.target, lean, steps=STEPS["start"])) for noise, lean in leans]

    @cached_property
    def noise(self) -> float:
        """The likeliest amount."""
        return max(self.tried, key=lambda pair: pair[1].value)[0]

    def strength_by_folds(self) -> float:
        """The strength under which each half of the samples is likeliest to one who saw the other half."""
        weight = self.sets.weight
        half = self.rng.binomial(weight.astype(np.int64), 0.5).astype(np.float64)
        k, most = len(self.shares), int(self.sets.sizes.max())
        have, need = equations_and_unknowns(k, most, replacement=self.sets.replacement, told=self.told)
        allowed = [strength for strength in STRENGTHS if have >= need or strength >= LEAST_OF_TWO]
        value = dict.fromkeys(allowed, 0.0)
        for seen, other in ((half, weight - half), (weight - half, half)):
            if not (seen.any() and other.any()):
                return allowed[0]
            known, unseen = self.sets.weighted(seen), self.sets.weighted(other)
            at: Mixture | None = None
            for strength in allowed:  # from popularity, a step at a time further away from it
                lean = self.lean(known, self.noise, strength)
                at = Mixture(lean.target, self.shares) if at is None else at
                at = climb(known, at.transition, lean, steps=STEPS["path"], prior=at.prior)
                value[strength] += climb(unseen, at.transition, lean, steps=0, prior=at.prior).log_likelihood
        return max(allowed, key=value.__getitem__)

    def best(self, strength: float) -> Mixture:
        """The likeliest of several starts: popularity, what was tried before, perturbed ones, and moments."""
        sets, lean = self.sets, self.lean(self.sets, self.noise, strength)
        short = self.lean(self.some, self.noise, strength)
        shares = normalised(sets.totals)
        starts = [lean.target, max((one for _, one in self.tried), key=lambda one: one.value).transition]
        some = np.maximum(lean.target, 0.01 * shares)
        starts += [normalised(some * self.rng.gamma(1.0, size=some.shape)) for _ in range(2)]
        starts += [start for start in (spectral_start(sets, self.rng) for _ in range(2)) if start is not None]
        starts = [start[which_class(start, shares)] for start in starts]
        best = max((climb(self.some, one, short, steps=STEPS["start"]) for one in starts), key=lambda one: one.value)
        for _ in range(3):  # what it leans to knows which class is which: after a change of mind it has to climb again
            best = climb(sets, best.transition, lean, steps=STEPS["last"], prior=best.prior)
            order = which_class(best.transition, shares)
            if (order == np.arange(len(order))).all():
                break
            best = Mixture(best.transition[order], best.prior[order], best.log_likelihood, best.value)
        return best

    def bootstrap(self, best: Mixture, strength: float, draws: int) -> FloatArray | None:
        """Standard deviations of Q and, below it, of shares over samples drawn again, fitted from the estimate on."""
        if draws < 2:
            return None
        lean, sets, again = self.lean(self.sets, self.noise, strength), self.sets, []
        for _ in range(draws):
            drawn = sets.weighted(self.rng.multinomial(int(sets.n), sets.weight / sets.n).astype(np.float64))
            one = climb(drawn, best.transition, lean, steps=STEPS["again"], prior=best.prior)
            again.append(np.vstack([one.transition, one.prior]))
        errors: FloatArray = np.stack(again).std(axis=0, ddof=1)
        return errors
