"""Which family of Q to assume: which fits the labels, and what a wrong one costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import ndtri, rel_entr

from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import FloatArray, class_weights_array, transition_matrix
from wcll.exceptions import InputError
from wcll.labels.encoding import FLOOR, LabelSets
from wcll.labels.families import FAMILIES, USUAL_OPTIONS, label_totals_of, told_by_counts
from wcll.labels.goodness_of_fit import CLOSE, Check, Names, check_counts, nearest_mixtures
from wcll.labels.label_model import Belief
from wcll.labels.repeated import (
    SHARES_RATIO,
    SHARES_STRENGTH,
    Lean,
    Mixture,
    RepeatedTransition,
    posterior,
    transition_from_sets,
)
from wcll.labels.transition import noisy_transition, normalised, transition_from_pi

LABELS = 1e8  #: "very many": Newton steps go on until the fit of so many labels could not be better
FEWER = 1e6  #: or of so many, if that cannot be had
INVISIBLE = 1e-9  #: nats a label below which a billion labels show nothing
EQUAL = 1e-4  #: chances that differ by less are a tie: no model learns them so exactly
WORST = 1e12  #: condition beyond which a Q counts as having no inverse
MOST_NEWTON = 100  #: classes of which every row is solved by Newton steps; of more, by matrix products alone
COST_STEPS = (300, 20_000)  #: of these, and of those for a Q without an inverse: least and most
WORK = 10**9  #: in between, as many as take so many multiplications
LEFT = 1e-11  #: nats, at most, that the latter leave, unless steps run out


@dataclass(frozen=True, eq=False)
class CostIfWrong:
    """What a perfect model learns from labels of one Q if it is told another; means are over class shares."""

    learned: FloatArray  #: (K, K): the chances of every class that it learns for samples of each class
    per_class: FloatArray  #: (K,): the share of the samples of each class that is predicted right; a tie is a part
    accuracy: float  #: the mean of that
    confidence: float  #: the mean chance of the right class
    likelihood: float  #: nats a label by which even the best model misses the labels; 0: nothing ever shows it
    identified: bool  #: whether the assumed Q has rank K; if not, other models fit as well, and predict otherwise
    gap: float  #: by how much, at most, the likelihood may be less

    @property
    def invisible(self) -> bool:
        """Whether no number of labels, one a sample, can show that the assumed Q is wrong."""
        return self.likelihood < INVISIBLE

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON, without the chances."""
        names = ("accuracy", "confidence", "likelihood", "invisible", "identified")
        return {**{name: getattr(self, name) for name in names}, "per_class": self.per_class.tolist()}


def cost_if_wrong(assumed: ArrayLike, truth: ArrayLike, prior: ArrayLike | None = None) -> CostIfWrong:
    r"""What it costs to assume a Q' where labels really follow Q.

    A model that is trained with forward correction under Q' gives samples that are surely of class y the chances

    .. math:: p' = \arg\min_p \mathrm{KL}(Q_y \,\|\, p^\top Q')

    if there are so many labels that nothing but Q' is wrong, and predicts the greatest of them. That is a limit, not a
    forecast for a data set: where classes overlap, or labels are few, it may cost more, also where nothing is lost
    here. Where Q' has no inverse, many p' are as good (``identified`` is False); the one that is taken is what
    multiplicative steps of EM from equal chances lead to. Of more than ``MOST_NEWTON`` classes p' is always found by
    such steps, as near as ``gap`` says; a thousand take a minute or so.

    Parameters
    ----------
    assumed, truth : array of shape (K, K), or an estimated Q
        Q' and Q, rows by true class.
    prior : array of shape (K,), optional
        Class shares, for the means; equal ones if None.

    Examples
    --------
    >>> uniform = (1 - np.eye(4)) / 3
    >>> habits = np.array([np.roll([0.0, 0.8, 0.1, 0.1], y) for y in range(4)])
    >>> cost = cost_if_wrong(habits, uniform)
    >>> cost.accuracy, round(cost.confidence, 2), cost.invisible
    (1.0, 0.39, False)
    """
    wrong = transition_matrix(assumed, argument="assumed")
    right = transition_matrix(truth, len(wrong), argument="truth")
    k = len(wrong)
    check_memory("assumed", f"matrices of {k} classes", 12 * 8 * k**2)
    shares = normalised(np.ones(k) if prior is None else class_weights_array("prior", prior, k))
    never = np.flatnonzero((wrong.max(axis=0) == 0) & (right.max(axis=0) > 0))
    if never.size:
        raise InputError("assumed", f"some chance of the label {never[0]}, which truth has", "0 for every class")
    identified = bool(np.linalg.cond(wrong, 1) < WORST)
    learned = _learned(right, wrong, identified)
    mixture = learned @ wrong
    missed = rel_entr(right, mixture).sum(axis=1)
    gap = np.log(np.maximum(_slopes(right, mixture, wrong).max(axis=1), 1.0))
    per_class = _predicted_right(learned)
    return CostIfWrong(
        learned=learned,
        per_class=per_class,
        accuracy=min(float(shares @ per_class), 1.0),
        confidence=min(float(shares @ np.diag(learned)), 1.0),
        likelihood=float(max(shares @ missed, 0.0)),
        identified=identified,
        gap=float(shares @ gap),
    )


def _predicted_right(learned: FloatArray) -> FloatArray:
    tied = learned > learned.max(axis=1, keepdims=True) - EQUAL
    right: FloatArray = np.diag(tied) / tied.sum(axis=1)
    return right


def _learned(right: FloatArray, wrong: FloatArray, identified: bool) -> FloatArray:
    """The nearest mixtures of wrong rows: those that are right rows by linear algebra, the others by steps."""
    if not identified:
        return _by_products(right, wrong)
    solved = np.linalg.solve(wrong.T, right.T).T
    learned = normalised(solved.clip(0.0))
    far = np.flatnonzero(np.abs(learned @ wrong - right).max(axis=1) > 1e-12)
    if far.size:
        nearest = _by_newton if len(wrong) <= MOST_NEWTON else _by_products
        learned[far] = nearest(right[far], wrong)
    return learned


def _by_newton(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """The finer the aim, the more often rounding ends the steps too early: such rows are tried with a coarser one."""
    fine = nearest_mixtures(LABELS * right, wrong)
    learned = fine.shares
    for row in np.flatnonzero(fine.gap > CLOSE):
        coarse = nearest_mixtures(FEWER * right[row : row + 1], wrong)
        if coarse.gap[0] / FEWER < fine.gap[row] / LABELS:
            learned[row] = coarse.shares[0]
    return learned


def _by_products(right: FloatArray, wrong: FloatArray) -> FloatArray:
    r"""By steps :math:`p_k \leftarrow p_k (\sum_j Q_{yj} Q'_{kj} / (p Q')_j)^s`, of all rows at once.

    With s = 1 it is EM, which never gets worse but takes very many steps as rows of Q' are alike; s grows as long as a
    row does not get worse. No array is larger than Q.
    """
    learned = np.full((len(right), len(wrong)), 1 / len(wrong))
    mixture = learned @ wrong
    missed = rel_entr(right, mixture).sum(axis=1, keepdims=True)
    power = np.ones_like(missed)
    for _ in range(int(np.clip(WORK / (len(right) * wrong.size), *COST_STEPS))):
        slopes = _slopes(right, mixture, wrong)
        if slopes.max() < 1 + LEFT:
            break
        logs = np.log(np.maximum(learned, 1e-300)) + power * np.log(np.maximum(slopes, 1e-300))
        tried = normalised(np.exp(logs - logs.max(axis=1, keepdims=True)))
        found = tried @ wrong
        misses = rel_entr(right, found).sum(axis=1, keepdims=True)
        kept = (misses <= missed) | (power == 1)
        learned, mixture, missed = (
            np.where(kept, to, at) for at, to in ((learned, tried), (mixture, found), (missed, misses))
        )
        power = np.where(kept, 1.3 * power, power / 2).clip(1.0, 1e6)
    return learned


def _slopes(right: FloatArray, mixture: FloatArray, wrong: FloatArray) -> FloatArray:
    """How much likelier labels get by more of each class: 1 at the best where a class has a chance, else at most 1."""
    ratio = np.divide(right, mixture, out=np.zeros_like(right), where=right > 0)
    slopes: FloatArray = ratio @ wrong.T
    return slopes


LEVEL = 0.01  #: how often, at most, a family that is right is accused, over all families
MOST_SETS = 5000  #: sets of options that a fit to counts goes through in every step
MOST_SETS_AGAIN = 500  #: and a fit to sets of labels, again and again
FIT_STEPS = 200  #: of a fit
FARTHEST = 20.0  #: to which a free number, the logarithm of a share, may go: few labels would send it further
SMALL = 1e-6  #: by which parameters are moved for a slope

Model = Callable[[FloatArray], Mixture]  #: Q and class shares from free numbers


@dataclass(frozen=True)
class FamilyFit:
    """What labels say of a family: by counts, or by sets of labels if samples have several."""

    name: str
    words: str
    state: str  #: contradicted, not contradicted, can't be checked, or can't be fitted
    line: str  #: why
    gain: float | None = None  #: of a free Q over it: log-likelihood of a sample that neither has seen, in nats
    error: float | None = None  #: its standard error

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def by_counts(totals: FloatArray, names: Names = None) -> list[FamilyFit]:
    """Of every family that counts tell, whether they contradict it.

    >>> [fit.state for fit in by_counts(np.array([70.0, 10.0, 10.0, 10.0]))][:3]
    ['contradicted', "can't be checked", "can't be checked"]
    """
    return [_by_counts(name, totals, names) for name in told_by_counts()]


def takes_long(name: str, n_classes: int) -> bool:
    """Whether a fit of a family to counts goes through too many sets of options."""
    return name == "offered" and comb(n_classes, USUAL_OPTIONS) > MOST_SETS


def _by_counts(name: str, totals: FloatArray, names: Names) -> FamilyFit:
    words = FAMILIES[name].words
    if takes_long(name, len(totals)):
        return FamilyFit(name, words, "can't be fitted", "takes too long with so many classes")
    try:
        belief = Belief.assuming(name, totals)
        if belief.transition_source == "estimated":
            return FamilyFit(name, words, "can't be checked", "counts fit it by construction")
        check: Check = check_counts(totals, belief, names)
        return FamilyFit(name, words, check.state, check.line)
    except InputError as error:
        return FamilyFit(name, words, "can't be fitted", f"needs {error.expected}; here: {error.got}")


def by_sets(fits: list[FamilyFit], sets: LabelSets, free: RepeatedTransition) -> list[FamilyFit]:
    r"""The same with what sets of labels say: how much likelier a free Q makes samples that were not fitted.

    Samples are split in two; Q and class shares of each family, and a free Q, are fitted to one half and judged by

    .. math:: \log \sum_y p_y P(\text{labels} \mid Q_y)

    of the other half, and the other way round. A family is contradicted if the free Q is better by more standard
    errors than chance allows at ``LEVEL`` (Bonferroni over families). All lean to popularity and to equal class shares
    alike, and the free Q pays for its many entries, so it is hardly ever better than a family that is right.
    """
    rng = stream(0, "labels", "family-fits")
    half = rng.binomial(sets.weight.astype(np.int64), 0.5).astype(np.float64)
    sides = [(half, sets.weight - half), (sets.weight - half, half)]
    if not all(seen.sum() >= 2 and unseen.sum() >= 2 for seen, unseen in sides):
        return fits
    many = comb(sets.counts.shape[1], USUAL_OPTIONS) > MOST_SETS_AGAIN
    tried = [fit for fit in fits if fit.state != "can't be fitted" and not (many and fit.name == "offered")]
    gains: dict[str, list[FloatArray]] = {fit.name: [] for fit in tried}
    for seen, unseen in sides:
        known, judged = sets.weighted(seen), sets.weighted(unseen)
        found = transition_from_sets(known, strength=free.strength, draws=0)
        assert found.shares is not None
        best = posterior(judged, Mixture(found.transition, found.shares))[1]
        for fit in tried:
            own = posterior(judged, fitted(fit.name, known, free.strength, free.noise))[1]
            gains[fit.name].append(np.stack([best - own, judged.weight]))
    judged_fits = {fit.name: _judged(fit, np.hstack(gains[fit.name]), len(tried)) for fit in tried}
    return [judged_fits.get(fit.name, fit) for fit in fits]


def _judged(fit: FamilyFit, gains: FloatArray, families: int) -> FamilyFit:
    """A family with what it loses against a free Q; ``gains`` are those of groups of samples, and their weights."""
    gain, weight = gains
    n = weight.sum()
    mean = float(gain @ weight / n)
    error = float(np.sqrt(np.square(gain - mean) @ weight / n / n))
    judged = replace(fit, gain=mean, error=error)
    far = mean / max(error, 1e-300)
    if fit.state == "contradicted":
        return judged
    if far > -ndtri(LEVEL / families):
        line = f"an unrestricted Q makes samples that it has not seen likelier, by {far:.1f} standard errors"
        return replace(judged, state="contradicted", line=line)
    line = "an unrestricted Q is not clearly better for samples that it has not seen"
    return replace(judged, state="not contradicted", line=line)


def fitted(name: str, sets: LabelSets, strength: float = 0.0, noise: float = 0.0) -> Mixture:
    """The likeliest Q of a family and class shares (those that the family ties to Q, else any), by quasi-Newton.

    It leans to popularity with some ``noise``, with the ``strength`` that
    :func:`wcll.labels.transition_from_repeated` has; where a family ties class shares to Q nothing is open.
    """
    totals = normalised(np.maximum(sets.totals, 0.5))
    k, samples = len(totals), min(SHARES_STRENGTH, SHARES_RATIO * strength) * sets.n
    labels = strength * float(sets.totals.sum()) / k
    tied = FAMILIES[name].shares_source == "estimated" and FAMILIES[name].source == "estimated"
    target = noisy_transition(transition_from_pi(totals), rate=noise)
    lean = Lean(target, 0.0 if tied else labels, np.full(k, 1 / k), 0.0 if tied else samples)
    model, first = _model(name, np.log(totals), totals)
    objective = partial(_value_and_slope, sets=sets, model=model, lean=lean)
    bounds = [(-FARTHEST, FARTHEST)] * len(first)
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": FIT_STEPS})
    return model(found.x)


def _model(name: str, log_shares: FloatArray, totals: FloatArray) -> tuple[Model, FloatArray]:
    """How a family makes Q and class shares from free numbers, and where to begin.

    Called again and again, so what is popularity here is without the checks of :meth:`Family.matrix`.
    """
    k, family = len(totals), FAMILIES[name]
    equal, both = np.zeros(k), np.concatenate([log_shares, np.zeros(k)])
    if name == "inverse-size":
        return lambda free: Mixture(_popularity(_softmax(free)), _softmax(-free)), log_shares
    if name == "popularity":
        return lambda free: Mixture(_popularity(_softmax(free[:k])), _softmax(free[k:])), both
    if name == "popularity-noise":
        return (
            lambda free: Mixture(_popularity(_softmax(free[:k]), _rate(free[-1])), _softmax(free[k:-1])),
            np.concatenate([both, [-3.0]]),
        )
    if name == "offered":
        offered = min(USUAL_OPTIONS, k)
        return (
            lambda free: Mixture(family.matrix(popularity=_softmax(free[:k]), offered=offered), _softmax(free[k:])),
            both,
        )
    told = family.fit(totals).transition  # nothing of it is free but the class shares
    return lambda free: Mixture(told, _softmax(free)), equal


def _softmax(free: FloatArray) -> FloatArray:
    return normalised(np.exp(free - free.max()))


def _rate(free: float) -> float:
    """A share of mistakes below a half."""
    return float(0.5 / (1 + np.exp(-free)))


def _popularity(q: FloatArray, rate: float = 0.0) -> FloatArray:
    others = np.broadcast_to(q, (len(q), len(q))) * (1.0 - np.eye(len(q)))
    return (1 - rate) * normalised(others) + rate * np.eye(len(q))


def _value_and_slope(free: FloatArray, sets: LabelSets, model: Model, lean: Lean) -> tuple[float, FloatArray]:
    r"""Minus the mean log-likelihood of a sample, with what it leans to, and its slope.

    In an entry of Q it is :math:`\sum_g w_g P(y \mid g) (c_{gj} / Q_{yj} - e_{gyj})` up to a constant of the row, which
    has no effect as rows sum to 1; in a class share :math:`\sum_g w_g P(y \mid g) / p_y`.
    """
    at = model(free)
    share, log_chance, exposure = posterior(sets, at)
    share *= sets.weight[:, None]
    named = share.T @ sets.counts + lean.strength * lean.target
    by_entry = np.where(at.transition > FLOOR, named / np.maximum(at.transition, FLOOR), 0.0)
    if not sets.replacement:
        by_entry -= np.einsum("gy,gyj->yj", share, exposure)
    by_share = (share.sum(axis=0) + lean.samples * lean.shares) / np.maximum(at.prior, FLOOR)
    slope = np.empty_like(free)
    for i in range(len(free)):
        moved = free.copy()
        moved[i] += SMALL
        near = model(moved)
        change = (by_entry * (near.transition - at.transition)).sum() + by_share @ (near.prior - at.prior)
        slope[i] = change / SMALL
    value = float(sets.weight @ log_chance) + lean.value(at.transition, at.prior)
    return -value / sets.n, -slope / sets.n


SAME = 1e-9  #: families whose entries differ by no more are one and the same for these counts


@dataclass(frozen=True, eq=False)
class CostTable:
    """Rows are what is assumed, columns what is so."""

    names: tuple[str, ...]  #: of families, and of what else was given
    costs: tuple[tuple[CostIfWrong | None, ...], ...]  #: None where labels occur that are assumed to be impossible
    same: frozenset[tuple[str, str]]  #: pairs of names that are no mistake: both have the same Q

    @property
    def accuracy(self) -> FloatArray:
        """Accuracies; NaN where there are none."""
        return np.array([[np.nan if cost is None else cost.accuracy for cost in row] for row in self.costs])

    @property
    def invisible(self) -> tuple[tuple[str, str], ...]:
        """Mistakes that no number of labels, one a sample, can show: what is assumed, and what is so."""
        return tuple(
            (assumed, truth)
            for assumed, row in zip(self.names, self.costs, strict=True)
            for truth, cost in zip(self.names, row, strict=True)
            if cost is not None and cost.invisible and (assumed, truth) not in self.same
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: by what is assumed, then by what is so."""
        return {
            assumed: {
                truth: None if cost is None else cost.to_dict() for truth, cost in zip(self.names, row, strict=True)
            }
            for assumed, row in zip(self.names, self.costs, strict=True)
        }


def costs_if_wrong(
    totals: ArrayLike, *, prior: ArrayLike | None = None, others: Mapping[str, ArrayLike] | None = None
) -> CostTable:
    """What every family that label counts tell costs if another of them is so; see :func:`cost_if_wrong`.

    ``totals`` are label counts, one a class, to which all are fitted (families that they do not fit are left out);
    ``others`` are more matrices by name, such as an estimated Q; ``prior`` are class shares, equal ones if None.

    >>> table = costs_if_wrong([420, 20, 10, 120, 120, 110])
    >>> dict(zip(table.names, table.accuracy[0].round(2).tolist()))
    {'uniform': 1.0, 'inverse-size': 1.0, 'popularity': 1.0, 'popularity-noise': 0.0, 'offered': 1.0}
    """
    counts = label_totals_of(totals)
    matrices = _fitted(counts)
    for name, matrix in (others or {}).items():
        matrices[name] = transition_matrix(matrix, len(counts), argument=f"others[{name!r}]")
    pairs = [(a, b) for a in matrices for b in matrices]
    same = frozenset((a, b) for a, b in pairs if np.abs(matrices[a] - matrices[b]).max() <= SAME)
    costs = tuple(tuple(_cost(assumed, truth, prior) for truth in matrices.values()) for assumed in matrices.values())
    return CostTable(tuple(matrices), costs, same)


def _fitted(counts: FloatArray) -> dict[str, FloatArray]:
    found = {}
    for name in told_by_counts():
        try:
            if not takes_long(name, len(counts)):
                found[name] = FAMILIES[name].fit(counts).transition
        except InputError:  # counts that this family cannot have
            continue
    return found


def _cost(assumed: FloatArray, truth: FloatArray, prior: ArrayLike | None) -> CostIfWrong | None:
    if ((assumed.max(axis=0) == 0) & (truth.max(axis=0) > 0)).any():
        return None
    return cost_if_wrong(assumed, truth, prior)
