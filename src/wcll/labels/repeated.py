"""Q and the class shares from several complementary labels of a sample, without a true label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import FloatArray, distribution, non_negative
from wcll.exceptions import InputError
from wcll.labels.families import EstimatedTransition
from wcll.labels.identification import MOST_OFF, equations_and_unknowns, identification
from wcll.labels.mixture import Lean, Mixture, climb, spectral_start, which_class
from wcll.labels.names import Classes, class_count, indexed_rows
from wcll.labels.sets import LabelSets, label_sets
from wcll.labels.transition import noisy_transition, normalised, transition_from_pi

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
