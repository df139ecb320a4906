"""What is believed of complementary labels: Q, class shares and weights, each with where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import (
    FloatArray,
    InputError,
    check_sum,
    choice,
    distribution,
    entry,
    finite_array,
    inverse_transition,
    numeric,
    transition_matrix,
)
from wcll.labels.statistics import solve_pi
from wcll.labels.transition import complementary_prior, normalised, transition_from_pi, uniform_transition
from wcll.labels.weights import ClassWeights
from wcll.registry import Functions

#: The user's own, of a family that is taken for granted, fitted to the labels, or known because it made them.
Source = Literal["given", "assumed", "estimated", "true"]


def q_in_words(source: Source, family: str | None) -> str:
    """Where a Q comes from, as tables and pages say it."""
    words = {
        "assumed": f"assumed: {family} labels",
        "estimated": f"estimated from label counts, told the family: {family}",
    }
    return f"Q {words.get(source, source)}"


@dataclass(frozen=True, eq=False)
class Belief:
    """Q and the ordinary class shares, each with its source, and the class weights that are made of them.

    Without shares of its own and without label counts, the shares are those of the held-out labels' own counts.

    >>> print(Belief.of("inverse-size", [50, 30, 20]))
    Q estimated from label counts, told the family: inverse-size; class shares estimated from label counts
    """

    transition: FloatArray  #: ``Q[y, ybar]``
    transition_source: Source
    shares: FloatArray | None = None  #: P(y), where it is told or was recovered together with Q
    prior_source: Source = "estimated"
    totals: FloatArray | None = None  #: the label counts that it was formed from
    family: str | None = None  #: the family of Q: a name of FAMILIES
    weights: ClassWeights | None = None  #: of classes, with the pi that they are made from and its source

    @staticmethod
    def of(told: str | ArrayLike | None, totals: ArrayLike) -> Belief:
        """What the label counts ``totals`` and a user tell: the family of Q (uniform if None), or a matrix."""
        counts = _counts(totals)
        shares = normalised(counts)
        if shares.max() > 1 - 1e-12:
            one = f"one class, {int(shares.argmax())}, for every sample"
            raise InputError("y", "labels of at least two classes", one)
        if told is None or isinstance(told, str):
            belief = FAMILIES[told or "uniform"](counts)
        else:
            belief = Belief.given(transition_matrix(told, len(counts)), counts)
        impossible = np.flatnonzero((shares > 0) & (belief.transition.max(axis=0) == 0))
        if impossible.size:
            k = int(impossible[0])
            raise InputError("transition", f"some chance of the label {k}, which occurs", "0 for every class")
        return belief

    @staticmethod
    def true(transition: ArrayLike, prior: ArrayLike) -> Belief:
        """Both are known, as in a simulation."""
        matrix = transition_matrix(transition)
        return Belief(matrix, "true", distribution("prior", prior, len(matrix)), "true")

    @staticmethod
    def given(transition: ArrayLike, totals: ArrayLike, source: Source = "given", family: str | None = None) -> Belief:
        """Q as it is told; the shares solve prior Q = label shares, where Q has an inverse."""
        counts = _counts(totals)
        return Belief(transition_matrix(transition, len(counts)), source, None, "estimated", counts, family)

    @cached_property
    def prior(self) -> FloatArray | None:
        """P(y), worked out when somebody asks; None without label counts, or if Q has no inverse."""
        if self.shares is not None or self.totals is None:
            return self.shares
        try:
            return self.marginal @ inverse_transition(self.transition)
        except InputError:  # a loss may do without: whoever needs shares is told
            return None

    @property
    def marginal(self) -> FloatArray:
        """The shares of the labels that it was formed from."""
        if self.totals is None:
            raise InputError("totals", "the label counts that a belief was formed from", None)
        return normalised(self.totals)

    def with_weights(self, weights: ClassWeights | None) -> Belief:
        """The same with class weights."""
        return replace(self, weights=weights)

    def redrawn(
        self, own: FloatArray, draws: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The class shares, and stacks of inverses of Q and of class shares as other label counts would give them.

        ``own`` are counts of held-out labels, which stand in where the belief has neither shares nor counts. What was
        told stands alone in its stack; what was solved from counts carries the error of that, which is large: counts
        are redrawn from the gamma distributions that they leave possible, so that a count of 0, too, has an error.
        """
        inverse = inverse_transition(self.transition)
        if self.prior is not None and (self.totals is None or self.prior_source != "estimated"):
            return self.prior, inverse[None], self.prior[None]
        totals = own if self.totals is None else self.totals
        n, size = totals.sum(), (draws, len(totals))
        if self.prior is not None and self.family == "inverse-size":
            return self.prior, *_redrawn_inverse_size(normalised(rng.standard_gamma(totals, size).clip(1e-9)))
        shares = totals / n
        error = (rng.standard_gamma(totals + 1, size) - (totals + 1)) / n
        error -= shares * error.sum(axis=1, keepdims=True)
        prior = shares @ inverse if self.prior is None else self.prior
        return prior, inverse[None], prior + error @ inverse

    def __str__(self) -> str:
        shares: str = self.prior_source
        if shares == "estimated":
            shares = (
                "unknown, as Q has no inverse"
                if self.prior is None and self.totals is not None
                else "estimated from label counts"
            )
        return f"{q_in_words(self.transition_source, self.family)}; class shares {shares}"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and names, for JSON; weights are not part of it."""
        values = {name: value for name, value in asdict(self).items() if name not in ("weights", "shares")}
        values["prior"] = self.prior
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Belief:
        """What :meth:`to_dict` wrote, now or before families were named."""
        matrix = numeric("transition", entry(plain, "transition", list))  # as it is: rescaling may change a last bit
        n_classes = len(transition_matrix(matrix))
        shares, totals = entry(plain, "prior", list | None), entry(plain, "totals", list | None)
        sources = [entry(plain, name, str) for name in ("transition_source", "prior_source")]
        sources = ["true" if source == "known" else choice("source", source, get_args(Source)) for source in sources]
        by_source = {"assumed": "uniform", "estimated": "inverse-size"}
        family = entry({"family": by_source.get(sources[0]), **plain}, "family", str | None)
        counts = None if totals is None else _counts(totals)
        if counts is not None and len(counts) != n_classes:
            raise InputError("totals", f"label counts of {n_classes} classes", len(counts))
        return Belief(
            transition=matrix,
            transition_source=sources[0],
            shares=None if shares is None else _solved_shares(shares, n_classes),
            prior_source=sources[1],
            totals=counts,
            family=None if family is None else choice("family", family, FAMILIES),
        )


def _solved_shares(values: ArrayLike, n_classes: int) -> FloatArray:
    """Class shares that may leave [0, 1] by the error of solving for them."""
    shares = finite_array("prior", values, (n_classes,))
    if abs(shares.sum() - 1) > 1e-2:
        raise InputError("prior", "class shares that sum to 1", f"a sum of {shares.sum():g}")
    return shares


def _counts(totals: ArrayLike) -> FloatArray:
    """Label counts, or sums of sample weights: one a class."""
    counts = numeric("totals", totals)
    if counts.ndim != 1 or len(counts) < 2 or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise InputError("totals", "label counts, one a class, none negative, not all 0", counts.tolist())
    return check_sum("totals", counts)


#: What may be assumed of Q: a function of the label counts. Names that the user's ``transition`` and suites may take.
FAMILIES: Functions[Callable[[FloatArray], Belief]] = Functions("transition")


@FAMILIES.add("uniform")
def uniform_belief(totals: ArrayLike) -> Belief:
    """Every class but the true one is named equally often."""
    return Belief.given(uniform_transition(len(_counts(totals))), totals, "assumed", "uniform")


@FAMILIES.add("inverse-size")
def inverse_size_belief(totals: ArrayLike) -> Belief:
    """Labels of the inverse-size selector: Q and the shares are both recovered from the label counts."""
    counts = _counts(totals)
    pi = solve_pi(normalised(counts))
    return Belief(transition_from_pi(pi), "estimated", complementary_prior(pi), "estimated", counts, "inverse-size")


def _redrawn_inverse_size(marginals: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Inverses of Q, :math:`(1 / (K-1) - [j = k]) (1 - \pi_k) / \pi_j`, and class shares, for a stack of label shares.

    NaN if one has no solution.
    """
    k = marginals.shape[1]
    try:
        pi = solve_pi(marginals, tolerance=1e-9, max_steps=1000)
    except InputError:
        return np.full((1, k, k), np.nan), np.full_like(marginals, np.nan)
    inverses: FloatArray = (1 / (k - 1) - np.eye(k)) * (1 - pi)[:, None, :] / pi[:, :, None]
    return inverses, normalised(1 / pi)
