"""Which families of Q labels contradict: by their counts, and by how likely sets of labels are that nobody fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import comb
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from wcll._random import stream
from wcll._validation import FloatArray
from wcll.exceptions import InputError
from wcll.labels.alarms import Check, Names, check_counts
from wcll.labels.beliefs import Belief
from wcll.labels.families import FAMILIES, USUAL_OPTIONS, told_by_counts
from wcll.labels.mixture import Lean, Mixture, posterior
from wcll.labels.repeated import SHARES_RATIO, SHARES_STRENGTH, RepeatedTransition, transition_from_sets
from wcll.labels.sets import FLOOR, LabelSets
from wcll.labels.transition import noisy_transition, normalised, transition_from_pi

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
