r"""Families of Q: what may be assumed of those who label, and what label counts then tell.

Counts of labels are K - 1 numbers, so a family has no more free ones; class shares are part of what it assumes. Every
family makes its Q from parameters, fits them to label counts if these tell them, and says what it means in a line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import (
    FloatArray,
    Registry,
    check_sum,
    class_weights_array,
    distribution,
    numeric,
    share,
    transition_matrix,
    whole,
)
from wcll.exceptions import InputError
from wcll.labels.counts import solve_pi
from wcll.labels.transition import (
    complementary_prior,
    noisy_transition,
    normalised,
    transition_from_pi,
    uniform_transition,
)

MOST_OPTIONS = 200_000  #: sets of options that are gone through one by one
USUAL_RATE = 0.03  #: how often people name the true class by mistake, where nothing tells: 3 to 5 in a hundred labels
EARLY = "popularity"  #: what a loss is told of Q while a training warms up: it mixes up no classes
USUAL_OPTIONS = 4  #: how many classes people are usually shown


@dataclass(frozen=True, eq=False)
class EstimatedTransition:
    """A Q that was estimated, its standard errors, and where it comes from."""

    transition: FloatArray  #: ``Q[y, ybar]``
    standard_error: FloatArray | None  #: of its entries; None if nobody asked
    shares: FloatArray | None  #: P(y), if they were found or assumed together with Q
    basis: str  #: what it was estimated from, in words
    family: str  #: the family that it is of, or leans to
    shares_error: FloatArray | None = field(default=None, kw_only=True)  #: standard errors of the class shares

    @property
    def measured(self) -> bool:
        """Whether something else than a family tells it, up to its standard errors."""
        return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.transition, dtype=dtype)


@dataclass(frozen=True, eq=False)
class FamilyTransition(EstimatedTransition):
    """A member of a family, as label counts tell it."""

    parameters: dict[str, Any] = field(default_factory=dict)  #: what :meth:`Family.matrix` makes this Q of


class Family(ABC):
    """What may be assumed of Q."""

    name: ClassVar[str]
    words: ClassVar[str]  #: what it means, in a line
    source: ClassVar[Literal["assumed", "estimated"]] = "estimated"  #: whether Q depends on the labels
    shares_source: ClassVar[Literal["assumed", "estimated"]] = "assumed"  #: likewise the class shares
    counts_tell: ClassVar[bool] = True  #: whether label counts are enough to fit it

    @abstractmethod
    def matrix(self, **parameters: Any) -> FloatArray:
        """Q from its parameters."""

    @abstractmethod
    def fit(self, totals: FloatArray, *, pairs: FloatArray | None = None) -> FamilyTransition:
        """Its member that label counts tell, without errors.

        ``pairs[y, j]`` are counts of a few true pairs, for what label counts leave open.
        """

    def estimate(self, totals: ArrayLike, *, draws: int = 200, random_state: RandomState = 0) -> FamilyTransition:
        """The same with standard errors: the scatter of what counts that are drawn again would give."""
        counts = label_totals_of(totals)
        found = self.fit(counts)
        rng = stream(random_state, "labels", "family")
        n = round(float(counts.sum()))
        again = rng.multinomial(n, normalised(counts), size=draws).astype(np.float64)
        again[:, counts > 0] = again[:, counts > 0].clip(0.5)  # a class that was named has some chance
        matrices = np.stack([self.fit(drawn).transition for drawn in again])
        return replace(found, standard_error=matrices.std(axis=0, ddof=1))

    def redrawn(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Inverses of Q and class shares for a stack of label shares; NaN where there are none."""
        k = marginals.shape[1]
        inverses, shares = np.full((len(marginals), k, k), np.nan), np.full_like(marginals, np.nan)
        for i, marginal in enumerate(marginals):
            try:
                found = self.fit(marginal)
                inverses[i] = np.linalg.inv(found.transition)
            except (InputError, np.linalg.LinAlgError):
                continue
            shares[i] = marginal @ inverses[i] if found.shares is None else found.shares
        return inverses, shares

    def _found(self, transition: FloatArray, shares: FloatArray | None, **parameters: Any) -> FamilyTransition:
        return FamilyTransition(transition, None, shares, "label counts", self.name, parameters)


#: Every family by its name. Those that label counts tell are names that ``transition`` and suites may take.
FAMILIES: Registry[Family] = Registry("transition")


def _register(family: type[Family]) -> type[Family]:
    FAMILIES.put(family.name, family())
    return family


def label_totals_of(totals: ArrayLike) -> FloatArray:
    """Label counts, or sums of sample weights: one a class."""
    counts = numeric("totals", totals)
    if counts.ndim != 1 or len(counts) < 2 or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise InputError("totals", "label counts, one a class, none negative, not all 0", counts.tolist())
    return check_sum("totals", counts)


@_register
class Uniform(Family):
    """Every class but the true one is named equally often, whatever the counts say."""

    name, words = "uniform", "every wrong class is named equally often"
    source, shares_source = "assumed", "estimated"

    def matrix(self, **parameters: Any) -> FloatArray:
        """``n_classes``."""
        return uniform_transition(parameters["n_classes"])

    def fit(self, totals: FloatArray, *, pairs: FloatArray | None = None) -> FamilyTransition:
        """Nothing is fitted; class shares are what solves ``prior Q = label shares``."""
        return self._found(uniform_transition(len(totals)), None, n_classes=len(totals))


@_register
class InverseSize(Family):
    r""":math:`Q_{yj} \propto \pi_j` over the wrong classes j, and class shares proportional to :math:`1 / \pi`."""

    name, shares_source = "inverse-size", "estimated"
    words = "a wrong class is named the more often the rarer it is, in proportion to one over its size"

    def matrix(self, **parameters: Any) -> FloatArray:
        """``pi`` of Eq. 7."""
        return transition_from_pi(parameters["pi"])

    def fit(self, totals: FloatArray, *, pairs: FloatArray | None = None) -> FamilyTransition:
        """Q and class shares from the fixed point of :func:`recover_inverse_size`."""
        pi = solve_pi(normalised(totals))
        return self._found(transition_from_pi(pi), complementary_prior(pi), pi=pi)

    def redrawn(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """In closed form, all at once; NaN if one has no solution."""
        try:
            pi = solve_pi(marginals, tolerance=1e-9, max_steps=1000)
        except InputError:
            k = marginals.shape[1]
            return np.full((1, k, k), np.nan), np.full_like(marginals, np.nan)
        return popularity_inverses(pi), normalised(1 / pi)


def popularity_inverses(popularity: FloatArray) -> FloatArray:
    r"""Of a stack: the inverses of :math:`q_j / (1 - q_y)`: :math:`(1 / (K-1) - [j = k]) (1 - q_k) / q_j`."""
    k = popularity.shape[1]
    inverses: FloatArray = (1 / (k - 1) - np.eye(k)) * (1 - popularity)[:, None, :] / popularity[:, :, None]
    return inverses


def popularity_of(marginal: FloatArray, rate: float = 0.0) -> FloatArray:
    r"""q of popularity with noise, where P(y given the label) is the same for all y but the label.

    Then classes have shares :math:`(1 - q_y) / (K - 1)` and labels :math:`(1 - e) q_j + e (1 - q_j) / (K - 1)`, which
    is solved for q. Without noise q is the label shares themselves.
    """
    others = rate / (len(marginal) - 1)
    return normalised(np.maximum(marginal - others, 1e-9 * marginal) / (1 - rate - others)) if rate else marginal


@_register
class Popularity(Family):
    r"""Some classes come to mind more easily: :math:`Q_{yj} = q_j / (1 - q_y)` for :math:`j \ne y`.

    Counts tell q if class shares are told, too. Untold, they are taken as :math:`(1 - q_y) / (K - 1)`: given its label,
    a sample is of any other class with the same chance. That is close to equal shares, gives the counts back for
    whatever counts there are, and makes q the label shares themselves.
    """

    name, words = "popularity", "a wrong class is named in proportion to how popular it is, whatever the true one is"

    def matrix(self, **parameters: Any) -> FloatArray:
        """``popularity``, one weight a class."""
        return transition_from_pi(parameters["popularity"])

    def fit(
        self, totals: FloatArray, *, pairs: FloatArray | None = None, prior: ArrayLike | None = None
    ) -> FamilyTransition:
        """q from the label shares, or from these and the class shares ``prior`` if they are told."""
        q = normalised(totals)
        if prior is None:
            return self._found(transition_from_pi(q), (1 - q) / (len(q) - 1), popularity=q)
        shares = normalised(distribution("prior", prior, len(q)))
        room = (1 - shares) - q
        if (room <= 0).any():
            k = int(room.argmin())
            got = f"{shares[k]:.1%} for class {k}, which is {q[k]:.1%} of the labels"
            raise InputError("prior", "class shares that leave room for every label", got)
        q = solve_pi(q, prior=shares)
        return self._found(transition_from_pi(q), shares, popularity=q)

    def redrawn(self, marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """In closed form, all at once."""
        return popularity_inverses(marginals), (1 - marginals) / (marginals.shape[1] - 1)


@_register
class PopularityNoise(Family):
    r"""Popularity, and a share e of the labels names the true class: :math:`(1 - e) q_j / (1 - q_y) + e [j = y]`.

    Label counts do not tell e: it is ``USUAL_RATE``, or, with true pairs, what these say.
    """

    name = "popularity-noise"
    words = "as popularity, and a few labels name the true class by mistake"

    def matrix(self, **parameters: Any) -> FloatArray:
        """``popularity``, one weight a class, and the ``rate`` of mistakes."""
        rate = parameters.get("rate", USUAL_RATE)
        return noisy_transition(transition_from_pi(parameters["popularity"]), rate=rate)

    def fit(
        self, totals: FloatArray, *, pairs: FloatArray | None = None, rate: float | None = None
    ) -> FamilyTransition:
        """q from the label shares, given the rate of mistakes."""
        if rate is None:
            rate = USUAL_RATE if pairs is None else (np.trace(pairs) + 0.5) / (pairs.sum() + 1)
        q = popularity_of(normalised(totals), share("rate", rate))
        return self._found(self.matrix(popularity=q, rate=rate), (1 - q) / (len(q) - 1), popularity=q, rate=rate)


@_register
class Offered(Family):
    r"""k of the K classes are shown, and one of them that is wrong is named.

    The protocol: for every label a new set S of k classes, each as likely as any other, the true one y perhaps among
    them; one of those in S other than y is named, in proportion to its popularity w:

    .. math:: Q_{yj} = \binom{K}{k}^{-1} \sum_{S \ni j} \frac{w_j}{\sum_{i \in S, i \ne y} w_i}

    No class can be named more often than it is shown, so rows are flatter than under popularity, which this is for
    k = K; with equal w it is uniform. Class shares are taken as equal.
    """

    name = "offered"
    words = "of a few classes shown at random a wrong one is named, in proportion to how popular it is"

    def matrix(self, **parameters: Any) -> FloatArray:
        """``popularity``, one weight a class, and how many classes are ``offered``."""
        weight = numeric("popularity", parameters["popularity"])
        class_weights_array("popularity", weight, len(weight))
        return _offered_matrix(normalised(weight), _options(len(weight), parameters.get("offered", USUAL_OPTIONS)))

    def fit(
        self, totals: FloatArray, *, pairs: FloatArray | None = None, offered: int = USUAL_OPTIONS
    ) -> FamilyTransition:
        r"""w by :math:`w_j \leftarrow w_j \bar p_j / \bar p_j(w)` from the label shares, sets not being logged."""
        marginal, offered = normalised(totals), min(offered, len(totals))
        options = _options(len(marginal), offered)
        weight = marginal
        for _ in range(2000):
            matrix = _offered_matrix(weight, options)
            update = normalised(weight * marginal / np.maximum(matrix.mean(axis=0), 1e-300))
            if np.abs(matrix.mean(axis=0) - marginal).max() < 1e-9:
                equal = np.full(len(marginal), 1 / len(marginal))
                return self._found(_offered_matrix(update, options), equal, popularity=update, offered=offered)
            weight = update
        most = offered / len(marginal) * (1 - 1 / len(marginal))
        expected = f"no class with more than {most:.1%} of the labels, {offered} of {len(marginal)} classes being shown"
        raise InputError("totals", expected, f"{marginal.max():.1%} for class {int(marginal.argmax())}")


@lru_cache(maxsize=4)
def _options(n_classes: int, offered: int) -> FloatArray:
    """Every set of options, as a mask of shape (sets, K)."""
    if not 2 <= whole("offered", offered) <= n_classes:
        raise InputError("offered", f"from 2 to {n_classes} classes", offered)
    if comb(n_classes, offered) > MOST_OPTIONS:
        sets = f"{comb(n_classes, offered)} sets of {offered} of {n_classes} classes"
        raise InputError("offered", f"at most {MOST_OPTIONS} sets of options", sets)
    chosen = np.array(list(combinations(range(n_classes), offered)))
    mask = np.zeros((len(chosen), n_classes))
    mask[np.arange(len(chosen))[:, None], chosen] = 1.0
    return mask


def _offered_matrix(weight: FloatArray, options: FloatArray) -> FloatArray:
    positive = np.maximum(weight, 1e-12)
    left = (options @ positive)[:, None] - options * positive  # (sets, y)
    matrix: FloatArray = ((1 / left).T @ options) * positive
    np.fill_diagonal(matrix, 0.0)
    return normalised(matrix)


@_register
class Free(Family):
    """Any Q: label counts do not determine it; true pairs do, and repeated labels if there are few classes."""

    name, words, counts_tell = "free", "any matrix", False

    def matrix(self, **parameters: Any) -> FloatArray:
        """The ``transition`` itself."""
        return transition_matrix(parameters["transition"])

    def fit(self, totals: FloatArray, *, pairs: FloatArray | None = None) -> FamilyTransition:
        """What is known without a pair is nothing: every label is as likely as it is for all."""
        if pairs is None:
            remedy = "assume another family, or count true pairs (transition_from_pairs)"
            raise InputError("transition", "a family that label counts tell", "'free'", remedy)
        shares = normalised(totals)
        matrix = np.tile(shares, (len(shares), 1))
        return FamilyTransition(matrix, None, None, "label counts", self.name, {"transition": matrix})


def told_by_counts() -> tuple[str, ...]:
    """Names of the families that label counts tell."""
    return tuple(name for name, family in FAMILIES.items() if family.counts_tell)
