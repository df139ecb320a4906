r"""Goodness of fit: do labels contradict the assumed Q, or look like true labels? Everybody who uses a Q asks here.

Labels can contradict a Q, but they can never confirm one. All that predictions and held-out labels show is the table
:math:`N = Q^\top J`, where the joint law J of class and prediction is unknown. For every matrix M with rows that sum to
1, :math:`M Q \ge 0` and :math:`M^{-\top} J \ge 0`, :math:`N = (M Q)^\top (M^{-\top} J)`: MQ with another model makes
the same table, label for label, and another accuracy. (Rows that are exchanged are one such M: of six classes or more,
uniform labels are then at most 20 % away in total variation.) As right and wrong give the same table, no rule can tell
them apart. So a Q that is assumed, given, or of a family that was fitted to label counts is "contradicted", or else it
"can't be checked". "Not contradicted" is said only of a Q that something else tells: it is known because it made the
labels, or it was measured, with its errors, from true pairs or repeated labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaincinv
from threadpoolctl import ThreadpoolController

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.exceptions import InputError
from wcll.labels.counts import label_totals
from wcll.labels.families import FAMILIES
from wcll.labels.label_model import Belief
from wcll.labels.transition import biased_transition, normalised, uniform_transition

STEPS = 60  #: a dozen are enough for most counts
CLOSE = 1e-3  #: deviances are found up to this
NUMBERS_AT_ONCE = 2 * 10**6  #: numbers of one array
SMALL = 40 * 40  #: numbers of Q from which a matrix library would start threads, which wait for each other


@dataclass(frozen=True)
class Fit:
    """Of each row of counts, the nearest mixture."""

    shares: FloatArray  #: of the distributions that it is of
    mixture: FloatArray  #: its distribution over cells
    deviance: FloatArray  #: twice the log-likelihood that it lacks
    gap: FloatArray  #: by how much, at most, another mixture would be nearer


def nearest_mixtures(counts: FloatArray, rows: FloatArray) -> Fit:
    r"""For each of m rows of counts (m, g) the nearest mixture of the distributions ``rows`` (k, g), or (m, k, g).

    With :math:`p = a^\top Q` and observed shares s, :math:`\sum_k a_k - \sum_j s_j \log p_j` is least over
    :math:`a \ge 0` where :math:`\sum_j s_j \log p_j` is greatest among shares that sum to 1. It is convex. A
    primal-dual interior-point method finds it in about a dozen steps, whatever the condition of Q; EM would take
    thousands, as the rows of Q are alike. Where no gradient :math:`Q s / p` exceeds 1 by more than e, at most
    :math:`2 n \log (1 + e)` is missing.

    >>> fit = nearest_mixtures(np.array([[60.0, 20.0, 20.0]]), (1 - np.eye(3)) / 2)
    >>> fit.mixture.round(3), fit.deviance.round(2)
    (array([[0.5 , 0.25, 0.25]]), array([4.03]))
    """
    numbers = rows.shape[-2] * rows.shape[-1]
    size = max(1, NUMBERS_AT_ONCE // numbers)
    with _one_thread(numbers), np.errstate(all="ignore"):  # what is no number is not close to anything
        parts = [
            _nearest(counts[i : i + size], rows if rows.ndim == 2 else rows[i : i + size])
            for i in range(0, len(counts), size)
        ]
    return Fit(*map(np.concatenate, zip(*parts, strict=True)))


@cache
def _libraries() -> Any:
    return ThreadpoolController()


def _one_thread(size: int) -> AbstractContextManager[Any]:
    """Many matrices of this size are multiplied: on a busy machine threads make that a hundred times slower."""
    if size < SMALL:
        return nullcontext()
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


def _nearest(counts: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    n = counts.sum(axis=1, keepdims=True)
    seen = counts > 0
    observed = counts / np.maximum(n, 1e-300)
    shares = np.full((len(counts), rows.shape[-2]), 1 / rows.shape[-2])
    slack = np.full_like(shares, 0.1)
    for step in range(STEPS):
        mixture = _times(shares, rows)
        ratio = np.where(seen, observed / np.where(seen, mixture, 1.0), 0.0)
        slope = 1 - _times(ratio, np.swapaxes(rows, -1, -2))
        total = shares.sum(axis=1, keepdims=True)
        gap = 2 * n[:, 0] * np.log(np.maximum((1 - slope).max(axis=1) * total[:, 0], 1.0))
        found = gap <= CLOSE
        if found.all():
            break
        if step == 0:
            slack = np.maximum(slope, slack)
        root = rows * (ratio / np.sqrt(np.where(seen, observed, 1.0)))[:, None, :]
        try:
            moved = _step(shares, slack, slope, root)
        except np.linalg.LinAlgError:  # no number is fine enough for another step
            break
        shares, slack = (np.where(found[:, None], at, to) for at, to in zip((shares, slack), moved, strict=True))
    logs = np.log(np.where(seen, ratio * total, 1.0))
    return normalised(shares), normalised(mixture), 2 * (counts * logs).sum(axis=1), gap


def _times(vectors: FloatArray, matrices: FloatArray) -> FloatArray:
    """Each vector times the one matrix, or times its own."""
    products: FloatArray = vectors @ matrices if matrices.ndim == 2 else (vectors[:, None] @ matrices)[:, 0]
    return products


def _step(shares: FloatArray, slack: FloatArray, slope: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One Newton step towards shares x slack = a tenth of what it is, never over the border of either.

    ``root`` times its transpose is the curvature; only a matrix of cells x cells is solved for (Woodbury).
    """
    aim = 0.1 * (shares * slack).mean(axis=1, keepdims=True)
    scale = shares / slack
    scaled = np.swapaxes(root, 1, 2) * scale[:, None, :]
    inner = scaled @ root + np.eye(root.shape[2])
    wanted = aim / shares - slope
    solved = np.linalg.solve(inner, scaled @ wanted[:, :, None])
    move = scale * wanted - (solved[:, None, :, 0] @ scaled)[:, 0]
    push = (aim - slack * move) / shares - slack
    return shares + move * _most(shares, move), slack + push * _most(slack, push)


def _most(at: FloatArray, by: FloatArray) -> FloatArray:
    """How much of a step, at most all, leaves every number above 0."""
    part = np.divide(-at, by, out=np.full_like(at, np.inf), where=by < 0)
    most: FloatArray = np.minimum(1.0, 0.98 * part.min(axis=1, keepdims=True))
    return most


Names = Sequence[Any] | NDArray[Any] | None  #: of classes; without any, their indices
State = Literal["contradicted", "not contradicted", "can't be checked"]

LEVEL = 0.02  #: how often, at most, a test accuses a Q that is right
DRAWS = 99  #: labels drawn anew
AS_FAR = 2  #: of them, at most, may be as far from Q as those that accuse it
DRAWS_AT_ONCE = 9  #: of them that are drawn together: the first tell in most cases
DOUBT = 2.0  #: standard errors of a measured Q to which its rows may scatter: what it leans to may be wrong
FAR = 10.0  #: standard deviations beyond those first ones that make more draws needless
LABELS = 100  #: at most so many groups of labels are told apart: beyond, neighbours are counted together
MOST = 1e7  #: labels: more are taken for so many, as no Q is known so exactly
MOSTLY = 0.5  #: the share of labels that name the predicted class beyond which they may be true labels
SURE = 0.025  #: chance of as many hits, if a share is no larger than a line, below which it is larger
NEIGHBORS = 10  #: whose labels predict a label
MIN_ASKED, MAX_ASKED = 30, 3000  #: samples, or groups, by which labels are asked whether they are true ones
MAX_ASKED_FEATURES = 100  #: of more, random combinations, which keep distances within about a tenth
WORK = 2 * 10**7  #: at most so much, as predictions x classes x groups of labels squared, for one table


@dataclass(frozen=True)
class Check:
    """What labels say of a Q: that it is wrong, or nothing against it; that it is right they never say.

    "Not contradicted" is a Q that is known or measured (:attr:`Belief.known`); of any other "can't be checked" is said.
    """

    state: State
    line: str  #: the reason, with the names of classes
    by: Literal["counts", "predictions"] = "counts"  #: what was looked at last
    remedy: str = ""

    @property
    def contradicted(self) -> bool:
        """Whether Q is wrong, as far as LEVEL goes."""
        return self.state == "contradicted"

    @property
    def warning(self) -> str:
        """The line of a warning: the argument, what is wrong, what to do."""
        return f"transition: {self.line}; {self.remedy}"

    def __str__(self) -> str:
        return f"{self.state}: {self.line}"


def check_counts(counts: ArrayLike, belief: Belief, names: Names = None) -> Check:
    r"""Whether label counts contradict Q.

    Labels have shares :math:`\alpha^\top Q` for SOME class shares :math:`\alpha`. So the share of a label is at most
    the greatest and at least the least entry of its column of Q, which an exact test tells (Clopper and Pearson,
    Bonferroni over classes); and all shares together are near a mixture of rows of Q, which the deviance from the
    nearest one tells: it is an alarm if it is beyond the 98 % quantile of the deviances of labels that are drawn from
    that mixture ``DRAWS`` times, of which ``AS_FAR`` at most may be as far. Each test is at level ``LEVEL``; for few
    labels, of which the quantile is uncertain, at most at 3 %.

    >>> print(check_counts([420, 120, 110, 120, 120, 110], Belief.of("uniform", [1] * 6), ["fir", *"abcde"]))
    contradicted: 'fir' is 42 % of the labels; uniform labels allow at most 20 %
    >>> print(check_counts([30, 20, 20], Belief.of("inverse-size", [30, 20, 20])))
    can't be checked: label counts cannot contradict a Q that was estimated from them
    """
    totals = _at_most(counts)
    if belief.transition_source == "estimated":
        basis = "them" if belief.basis is None else belief.basis
        return _not_seen(f"label counts cannot contradict a Q that was estimated from {basis}", belief)
    line = _beyond_its_column(totals, belief, names)
    if line is None and _accuses(totals[None], belief)[0]:
        line = f"label counts fit no class shares under {_words(belief)}"
    if line is None:
        return _not_seen(f"some class shares give these label counts under {_words(belief)}{_others(belief)}", belief)
    return _contradicted(line, belief)


def check_table(table: ArrayLike, belief: Belief, names: Names = None, *, counts: FloatArray | None = None) -> Check:
    r"""Whether a table ``N[ybar, prediction]`` of held-out labels contradicts Q.

    Given y, label and prediction are independent, so that the labels of samples with one prediction, too, have shares
    :math:`\alpha^\top Q`: a prediction that is mostly right leaves little choice of :math:`\alpha`, which makes wrong
    Qs visible that counts do not show. Label counts are looked at first (``counts`` if they are more than the table
    has); then, in the same way, the sum of deviances over predictions. Where Q was estimated from label counts, it is
    estimated anew, from counts drawn anew, in every draw; where it was measured, labels are drawn from Qs that
    scatter around it by its errors.

    >>> print(check_table([[0, 90, 10], [50, 0, 90], [50, 10, 0]], Belief(uniform_transition(3), "assumed")))
    contradicted: labels of samples predicted as class 1 fit no class shares under this Q
    """
    cells = _at_most(table)
    own = cells.sum(axis=1)
    ruled_out = bool(own[belief.transition.max(axis=0) == 0].any())
    found = check_counts(own if counts is None or counts.sum() < own.sum() or ruled_out else counts, belief, names)
    by_counts = belief.basis is None and belief.totals is not None and belief.family is not None
    unknown = belief.transition_source == "estimated" and not (by_counts or belief.measured)
    if found.contradicted or unknown:  # what cannot be drawn anew accuses nothing
        return found
    groups, which = _predictions(cells)
    accused, worst = _accuses(groups, belief)
    if accused:
        said = f"predicted as {_called(names, which[worst])}" if worst < len(which) else "of rarer predictions"
        return _contradicted(
            f"labels of samples {said} fit no class shares under {_words(belief)}", belief, "predictions"
        )
    line = f"some class shares give the labels of each prediction under {_words(belief)}{_others(belief)}"
    return _not_seen(line, belief, "predictions")


def check_samples(
    labels: IntArray | BoolArray,
    belief: Belief,
    names: Names = None,
    *,
    weight: FloatArray | None = None,
    predicted: IntArray | None = None,
) -> Check:
    """The same of labels as samples have them, as indices or a mask, alone or with predictions of their samples.

    Weights make as many labels as have the same error. Of several labels a sample each counts its share, as one label
    would: sets that are drawn without replacement follow the uniform Q label by label, and no other.
    """
    k = len(belief.transition)
    if labels.ndim == 2 and labels.sum(axis=1).max() > 1 and not np.allclose(belief.transition, uniform_transition(k)):
        return Check("can't be checked", "several labels a sample do not follow this Q label by label")
    weight = np.ones(len(labels)) if weight is None else weight
    weight = weight * (weight.sum() / np.square(weight).sum())
    if predicted is None:
        return check_counts(label_totals(labels, k, weight), belief, names)
    by_prediction = [label_totals(labels[predicted == one], k, weight[predicted == one]) for one in range(k)]
    return check_table(np.stack(by_prediction, axis=1), belief, names)


def doubts(counts: FloatArray, belief: Belief, names: NDArray[Any]) -> Iterator[str]:
    """What else is to be said of classes and Q before labels are learnt from, each in one line."""
    absent = [_called(names, int(k)) for k in np.flatnonzero(counts == 0)]
    if absent:
        never = (
            f"{absent[0]} and {len(absent) - 1} more are never labels"
            if absent[1:]
            else f"{absent[0]} is never a label"
        )
        observed = belief.weights is not None and belief.weights.pi_source == "observed"
        weights = "; class weights come from the observed shares" if observed else ""
        danger = "nothing speaks against predicting it, and score believes such predictions"
        yield f"classes: {never}, so that {danger}{weights}; leave out classes that no sample has"
    matrix = belief.transition
    named = np.flatnonzero(np.diag(matrix) > np.where(np.eye(len(matrix)) == 1, 0.0, matrix).max(axis=1))
    if named.size:
        k = int(named[0])
        chance = f"Q[y, y] = {matrix[k, k]:.3g} of {_called(names, k)} is the chance that a label IS the true class"
        yield f"transition: {chance}, and the largest of its row; complementary labels name another class"


def corrected_twice(belief: Belief) -> Iterator[str]:
    """What Q and class weights correct both, for a loss that takes both: a line, or none."""
    if belief.weights is None:
        return
    if belief.weights.scheme not in ("array", "wcll-random"):
        if not np.allclose(belief.transition, uniform_transition(len(belief.transition))):
            yield "weights: class weights by label counts and Q correct the choice of labels twice; take weights=None"
    elif belief.transition_source == "estimated" and belief.basis is None:
        unweighted = "Q is recovered from label counts that class weights do not change, so that both correct for them"
        yield f"weights: {unweighted}; give weights against a selection of samples as sample_weight"


def asked_by_predictions(table: FloatArray | IntArray) -> str | None:
    """Ask whether labels are true ones, if most of them name the class that is predicted for their sample.

    Complementary labels do so only where a model is wrong. ``table`` counts labels (rows) by prediction (columns). If
    one label has more than half of them, its share is the line: a constant prediction would reach it.
    """
    named, n = float(np.trace(table)), float(table.sum())
    if not _surely_above(named, n, max(MOSTLY, float(table.sum(axis=1).max()) / n)):
        return None
    remedy = "If so, count how often they agree: accuracy_score(y, model.predict(X)), or wcll evaluate --true-label"
    return f"y: {named / n:.0%} of these labels name the predicted class: are these true labels? {remedy}"


def asked_by_features(
    features: NDArray[Any], labels: IntArray | BoolArray, matrix: FloatArray, groups: NDArray[Any] | None = None
) -> str | None:
    r"""Ask whether labels are true ones, if nearest neighbours predict them far better than complementary labels allow.

    Who knows the class predicts a complementary label right in :math:`\sum_y \pi_y \max_j Q_{yj}` of the samples at
    most. The line is half way between certainty and the largest of three numbers: this sum for a strong bias
    (``"biased-strong"``), the same for the Q that is assumed, and the share of the commonest label. It is a question:
    annotators who nearly always name the same wrong class are predictable as well. With two classes a complementary
    label is as good as a true one, so nothing is asked. Of sets of labels, those of one label are asked about.

    Each third of the groups is held out once. Labels of a group may be alike, so that it counts as one sample.
    """
    k = len(matrix)
    if k == 2:
        return None
    from sklearn.model_selection import GroupKFold, cross_val_predict  # slow to import
    from sklearn.neighbors import KNeighborsClassifier

    groups = np.arange(len(labels)) if groups is None else groups
    if labels.ndim == 2:
        single = np.flatnonzero(labels.sum(axis=1) == 1)
        features, labels, groups = features[single], labels[single].argmax(axis=1), groups[single]
    if len(labels) < MIN_ASKED:
        return None
    x, y, group = _distinct_rows(features, labels.astype(np.int64), groups)
    names, part = np.unique(group, return_inverse=True)
    n = len(names)
    if n < MIN_ASKED:
        return None
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    x = (x - mean) / np.where(deviation > 0, deviation, 1.0)
    if x.shape[1] > MAX_ASKED_FEATURES:
        x = x @ stream(0, "labels", "question", "projection").normal(size=(x.shape[1], MAX_ASKED_FEATURES))
    folds = GroupKFold(3, shuffle=True, random_state=0)
    model = KNeighborsClassifier(min(NEIGHBORS, n // 2))
    hits = float((cross_val_predict(model, x, y, groups=part, cv=folds) == y).mean())
    strong = biased_transition(k, strength="strong", random_state=0)
    commonest = np.bincount(y).max() / len(y)
    line = (1 + max(strong.max(axis=1).mean(), matrix.max(axis=1).mean(), commonest)) / 2
    if not _surely_above(hits * n, n, line):
        return None
    found = f"nearest neighbours predict {hits:.0%} of these labels, where {line:.0%} is much for"
    remedy = "Ordinary classifiers learn those; ignore this if annotators nearly always name the same wrong class"
    return f"y: {found} complementary labels: are these true labels? {remedy}"


def _surely_above(hits: float, n: float, line: float) -> bool:
    """Whether so many hits are more than chance makes of a share that is no larger than ``line``."""
    return hits > line * n and float(betainc(hits, n - hits + 1, line)) < SURE


def _distinct_rows(
    features: NDArray[Any], labels: IntArray, groups: NDArray[Any]
) -> tuple[FloatArray, IntArray, NDArray[Any]]:
    """Return some samples with labels and groups, no row twice: copies would predict each other's labels."""
    some = stream(0, "labels", "question").permutation(len(features))[:MAX_ASKED]
    x = features[some].reshape(len(some), -1)
    kept = np.array(sorted({row.tobytes(): i for i, row in reversed(list(enumerate(x)))}.values()), np.int64)
    return x[kept].astype(np.float64), labels[some[kept]], groups[some[kept]]


def remedy_of(belief: Belief, by: Literal["counts", "predictions"] = "counts") -> str:
    """What to do about a Q that labels contradict."""
    others = [f"transition={name!r}" for name in ("popularity", "inverse-size") if name != belief.family]
    seen = "; labels that were trained on cannot tell" if by == "predictions" else ""
    return f"try {' or '.join([*others, 'a matrix of your own'])}{seen}"


def _contradicted(line: str, belief: Belief, by: Literal["counts", "predictions"] = "counts") -> Check:
    """Also what to do about it."""
    return Check("contradicted", line, by, remedy_of(belief, by))


def _others(belief: Belief) -> str:
    return "" if belief.known else ", but so they do under other Qs"


def _not_seen(line: str, belief: Belief, by: Literal["counts", "predictions"] = "counts") -> Check:
    """Nothing speaks against Q, which says nothing for it."""
    if belief.known:
        return Check("not contradicted", line, by)
    return Check(
        "can't be checked",
        line,
        by,
        "true pairs measure Q (wcll.labels.transition_from_pairs), as repeated labels of few classes do",
    )


def _at_most(counts: ArrayLike | None) -> FloatArray:
    labels = np.asarray(counts, dtype=np.float64)
    return labels * min(1.0, MOST / float(labels.sum()))


def _words(belief: Belief) -> str:
    return f"{belief.family} labels" if belief.family and belief.basis is None else "this Q"


def _called(names: Names, k: int) -> str:
    """A class as users know it."""
    name = k if names is None else names[k]
    return repr(str(name)) if isinstance(name, str) else f"class {name}"


def _beyond_its_column(counts: FloatArray, belief: Belief, names: Names) -> str | None:
    """The class whose share is farthest above the maximum or below the minimum of its column of Q, if noise is not."""
    n, most, least = counts.sum(), belief.transition.max(axis=0), belief.transition.min(axis=0)
    chance_above = np.where(counts > 0, betainc(np.maximum(counts, 1e-9), n - counts + 1, most), 1.0)
    chance_below = np.where(counts < n, betainc(np.maximum(n - counts, 1e-9), counts + 1, 1 - least), 1.0)
    chances = np.stack([chance_above, chance_below])
    distance = np.stack([counts / n - most, least - counts / n]) / np.sqrt(np.stack([most, least]) + 1 / n)
    distance[chances > LEVEL / chances.size] = -np.inf
    side, k = np.unravel_index(distance.argmax(), distance.shape)
    if distance[side, k] == -np.inf:
        return None
    limit = (most, least)[side][k]
    share, bound = _percent(counts[k] / n, limit)
    allows = f"{_words(belief)} {'allow' if belief.family else 'allows'} at {('most', 'least')[side]} {bound}"
    return f"{_called(names, int(k))} is {share} of the labels; {allows}"


def _percent(*shares: float) -> list[str]:
    """Shares with as few digits as tell them apart, and those that are not 0 from 0."""
    for digits in range(9):
        texts = [f"{100 * share:.{digits}f}" for share in shares]
        if len({*texts, f"{0:.{digits}f}"}) == len({*shares, 0.0}):
            break
    return [f"{text} %" for text in texts]


def _predictions(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Labels of each prediction, in rows; the rarest predictions together, last, where there are too many."""
    k = len(table)
    most = max(1, WORK // (k * min(k, LABELS) ** 2))
    often = np.argsort(-table.sum(axis=0), kind="stable")[: np.count_nonzero(table.any(axis=0))]
    kept, rest = (often, often[:0]) if len(often) <= most else np.split(often, [most - 1])
    rows = [table[:, kept].T, table[:, rest].sum(axis=1)[None]] if len(rest) else [table[:, kept].T]
    return np.concatenate(rows), kept


def _accuses(counts: FloatArray, belief: Belief) -> tuple[bool, int]:
    """Whether rows of label counts are farther from mixtures of Q's rows than chance makes them; which is farthest."""
    groups = _label_groups(belief.transition)
    observed = counts @ groups
    fit = nearest_mixtures(observed, belief.transition @ groups)
    found, worst = float((fit.deviance - fit.gap).sum()), int(fit.deviance.argmax())  # no more than is proved
    if not found > 0:  # NaN is not
        return False, worst
    rng = stream(0, "labels", "alarms", crc32(observed.tobytes()))  # the same labels are told the same
    sizes = np.ceil(observed.sum(axis=1)).astype(np.int64)  # sums of weights may be less than a label
    chance = np.empty(0)
    while len(chance) < DRAWS:
        law = fit.mixture
        if belief.measured:  # the labels may be those of any Q that its errors allow
            law = normalised(fit.shares @ (belief.scattered(DRAWS_AT_ONCE, rng, times=DOUBT) @ groups))
        drawn = rng.multinomial(sizes, law, (DRAWS_AT_ONCE, len(sizes))).astype(np.float64)
        chance = np.append(chance, _deviances(drawn, belief, groups, rng))
        if np.count_nonzero(~(chance < found)) > AS_FAR:
            return False, worst
        if len(chance) == DRAWS_AT_ONCE and found > chance.mean() + FAR * max(chance.std(), 1.0):
            return True, worst
    return found > _quantile(chance), worst


def _quantile(chance: FloatArray) -> float:
    """What all but LEVEL are below, as a gamma distribution with their mean and deviation says: the largest of
    DRAWS is itself so much a matter of chance that many wrong Qs would stay below it."""
    mean, variance = float(chance.mean()), max(float(chance.var()), 1e-9)
    return float(gammaincinv(mean**2 / variance, 1 - LEVEL)) * variance / max(mean, 1e-9)


def _deviances(drawn: FloatArray, belief: Belief, groups: FloatArray, rng: np.random.Generator) -> FloatArray:
    """How far labels drawn anew are from Q, or from the Qs that would have been estimated."""
    if belief.transition_source != "estimated" or belief.measured:
        fit = nearest_mixtures(drawn.reshape(-1, drawn.shape[2]), belief.transition @ groups)
        sums: FloatArray = fit.deviance.reshape(drawn.shape[:2]).sum(axis=1)
        return sums
    totals = rng.multinomial(int(np.ceil(_at_most(belief.totals).sum())), belief.marginal, len(drawn))
    again = np.stack([_fitted_anew(belief, np.maximum(counts, 0.5)) @ groups for counts in totals])
    each = np.repeat(again, drawn.shape[1], axis=0)
    fit = nearest_mixtures(drawn.reshape(-1, drawn.shape[2]), each)
    return np.asarray(fit.deviance.reshape(drawn.shape[:2]).sum(axis=1))


def _fitted_anew(belief: Belief, counts: FloatArray) -> FloatArray:
    """The Q of the family that other label counts tell; the same Q if they tell none."""
    try:
        return FAMILIES[str(belief.family)].fit(counts).transition
    except InputError:
        return belief.transition


def _label_groups(matrix: FloatArray) -> FloatArray:
    """Which label belongs to which group, (k, groups) of ones and zeros; neighbours by the most that Q allows."""
    k = len(matrix)
    group = np.empty(k, dtype=np.int64)
    group[np.argsort(matrix.max(axis=0), kind="stable")] = np.arange(k) * min(k, LABELS) // k
    return np.eye(min(k, LABELS))[group]
