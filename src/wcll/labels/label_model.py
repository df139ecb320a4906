"""The label model: Q, class priors and weights that are assumed or estimated, each with its source."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import (
    FloatArray,
    choice,
    distribution,
    entry,
    finite_array,
    inverse_transition,
    numeric,
    transition_matrix,
)
from wcll.exceptions import InputError
from wcll.labels.families import FAMILIES, EstimatedTransition, label_totals_of, told_by_counts
from wcll.labels.transition import normalised
from wcll.labels.weights import ClassWeights

#: The user's own, of a family that is taken for granted, fitted to the labels, or known because it made them.
Source = Literal["given", "assumed", "estimated", "true"]


def q_in_words(source: Source, family: str | None, basis: str | None = None) -> str:
    """Where a Q comes from, as tables and pages say it."""
    words = {
        "assumed": f"assumed: {family} labels",
        "estimated": f"estimated from {basis}, leaning to the family: {family}"
        if basis
        else f"estimated from label counts, told the family: {family}",
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
    basis: str | None = None  #: what Q was estimated from, if not from label counts alone
    standard_error: FloatArray | None = None  #: of Q's entries, if it was
    shares_error: FloatArray | None = None  #: of the class shares, if they were
    measured: bool = False  #: whether true pairs or repeated labels tell Q by themselves, up to its standard errors

    @property
    def known(self) -> bool:
        """Whether Q is known, or measured with its errors; else it is taken for granted, at least as to its family."""
        return self.transition_source == "true" or self.measured

    @staticmethod
    def of(told: str | ArrayLike | EstimatedTransition | None, totals: ArrayLike) -> Belief:
        """What the label counts ``totals`` and a user tell: the family of Q (uniform if None), or a matrix."""
        counts = label_totals_of(totals)
        shares = normalised(counts)
        if shares.max() > 1 - 1e-12:
            one = f"one class, {int(shares.argmax())}, for every sample"
            raise InputError("y", "labels of at least two classes", one)
        if isinstance(told, EstimatedTransition):
            belief = Belief.estimated(told, counts)
        elif told is None or isinstance(told, str):
            belief = Belief.assuming(choice("transition", told or "uniform", told_by_counts()), counts)
        else:
            belief = Belief.given(_of_complements(transition_matrix(told, len(counts))), counts)
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
        counts = label_totals_of(totals)
        return Belief(transition_matrix(transition, len(counts)), source, None, "estimated", counts, family)

    @staticmethod
    def assuming(family: str, totals: ArrayLike) -> Belief:
        """Q of a family, fitted to label counts."""
        counts = label_totals_of(totals)
        kind = FAMILIES[family]
        found = kind.fit(counts)
        if found.shares is None:
            return Belief.given(found.transition, counts, kind.source, family)
        return Belief(found.transition, kind.source, found.shares, kind.shares_source, counts, family)

    @staticmethod
    def estimated(found: EstimatedTransition, totals: ArrayLike) -> Belief:
        """Q as it was estimated from true pairs or repeated labels, with its standard errors."""
        counts = label_totals_of(totals)
        matrix, error = transition_matrix(found.transition, len(counts)), found.standard_error
        belief = Belief(matrix, "estimated", found.shares, "estimated", counts, found.family, None, found.basis, error)
        return replace(belief, shares_error=found.shares_error, measured=found.measured)

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
        counted = self.transition_source == "estimated" and self.family is not None
        if self.prior is not None and (self.totals is None or not (counted or self.prior_source == "estimated")):
            return self.prior, inverse[None], self.prior[None]
        totals = own if self.totals is None else self.totals
        n, size = totals.sum(), (draws, len(totals))
        if self.prior is not None and counted and (self.basis is None or self.standard_error is not None):
            marginals = normalised(rng.standard_gamma(totals, size).clip(1e-9))
            if self.basis is None:
                return self.prior, *FAMILIES[str(self.family)].redrawn(marginals)
            return self.prior, *self._redrawn_rows(marginals, rng)
        shares = totals / n
        error = (rng.standard_gamma(totals + 1, size) - (totals + 1)) / n
        error -= shares * error.sum(axis=1, keepdims=True)
        prior = shares @ inverse if self.prior is None else self.prior
        return prior, inverse[None], prior + error @ inverse

    def scattered(self, draws: int, rng: np.random.Generator, *, times: float = 1.0) -> FloatArray:
        """Qs whose rows scatter as its standard errors say, or by some times more."""
        assert self.standard_error is not None
        spread = (self.transition * (1 - self.transition)).sum(axis=1)
        sure = spread / np.maximum(((times * self.standard_error) ** 2).sum(axis=1), 1e-12) - 1
        rows = np.maximum(sure, 1.0)[:, None] * self.transition
        return normalised(rng.standard_gamma(rows, (draws, *rows.shape)).clip(1e-12))

    def _redrawn_rows(self, marginals: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Inverses of such Qs, and class shares for each."""
        inverses: FloatArray = np.linalg.inv(self.scattered(len(marginals), rng)).astype(np.float64)
        if self.shares is not None and self.shares_error is not None:
            scatter = self.shares_error * rng.standard_normal(marginals.shape)
            return inverses, normalised((self.shares + scatter).clip(1e-9))
        return inverses, np.einsum("dj,djy->dy", marginals, inverses)

    def __str__(self) -> str:
        shares: str = self.prior_source
        if shares == "estimated":
            shares = (
                "unknown, as Q has no inverse"
                if self.prior is None and self.totals is not None
                else "estimated from label counts"
                if self.shares_error is None
                else "estimated with it"
            )
        return f"{q_in_words(self.transition_source, self.family, self.basis)}; class shares {shares}"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and names, for JSON; weights are not part of it."""
        values = {name: value for name, value in asdict(self).items() if name not in ("weights", "shares")}
        values["prior"] = self.prior
        for name in (
            "basis",
            "standard_error",
            "shares_error",
        ):  # only where there is one: files of others stay as they were
            if values[name] is None:
                del values[name]
        if not self.measured:
            del values["measured"]
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
        counts = None if totals is None else label_totals_of(totals)
        if counts is not None and len(counts) != n_classes:
            raise InputError("totals", f"label counts of {n_classes} classes", len(counts))
        return Belief(
            transition=matrix,
            transition_source=sources[0],
            shares=None if shares is None else _solved_shares(shares, n_classes),
            prior_source=sources[1],
            totals=counts,
            family=None if family is None else choice("family", family, FAMILIES),
            basis=entry({"basis": None, **plain}, "basis", str | None),
            standard_error=_errors(plain, "standard_error", (n_classes, n_classes)),
            shares_error=_errors(plain, "shares_error", (n_classes,)),
            measured=entry({"measured": False, **plain}, "measured", bool) and plain.get("standard_error") is not None,
        )


def _solved_shares(values: ArrayLike, n_classes: int) -> FloatArray:
    """Class shares that may leave [0, 1] by the error of solving for them."""
    shares = finite_array("prior", values, (n_classes,))
    if abs(shares.sum() - 1) > 1e-2:
        raise InputError("prior", "class shares that sum to 1", f"a sum of {shares.sum():g}")
    return shares


def _errors(plain: dict[str, Any], name: str, shape: tuple[int, ...]) -> FloatArray | None:
    """Standard errors, if there are any."""
    values = entry({name: None, **plain}, name, list | None)
    return None if values is None else finite_array(name, values, shape)


def _of_complements(matrix: FloatArray) -> FloatArray:
    """A matrix that is not the identity: of ordinary labels nothing here would be true."""
    if np.allclose(matrix, np.eye(len(matrix))):
        got = "the identity: Q[y, y] is the chance that a label IS the true class"
        raise InputError(
            "transition", "chances of classes that a sample is not", got, "leave it out for uniform labels"
        )
    return matrix
