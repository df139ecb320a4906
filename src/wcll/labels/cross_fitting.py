"""The transition matrix from features: EM in which models are fitted across folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax
from sklearn.model_selection import GroupKFold, KFold

from wcll._validation import BoolArray, FloatArray, IntArray, finite_array, sample_weights, transition_matrix, whole
from wcll.labels import transition_from_repeated
from wcll.labels.counts import label_totals
from wcll.labels.encoding import MOST_ORDERED, Classes, indexed, to_mask
from wcll.labels.families import FAMILIES, EstimatedTransition
from wcll.labels.transition import normalised

STEPS = 300  #: of EM
STRENGTH = 0.05  #: how much it leans to popularity, as a share of the samples of a class
OWN = 0.05  #: how often a class is taken to be in sets of its own samples at first, over how often it is in any
EQUAL = 0.2  #: of the samples: how much class shares lean towards equal ones
LEAST = 1e-6  #: nothing is quite impossible, or sure


def transition_from_large_sets(mask: BoolArray, weight: FloatArray) -> FloatArray:
    r"""How often each class is in the sets of samples of class y, over all that is in them: rows that sum to 1.

    EM for a mixture in which the classes of a set S are in it or not independently of each other, given y,

    .. math:: P(S \mid y) = \prod_{j \in S} s_{yj} \prod_{j \notin S} (1 - s_{yj}) ,

    leaning to popularity. Labels that were drawn one by one are not independent so: of few labels a sample, this finds
    classes that are not there, and :func:`wcll.labels.transition_from_repeated` is for them. Of many, each of which
    may have been drawn several times, it is close.

    >>> rng = np.random.default_rng(0)
    >>> true = np.where(np.eye(4), 0.02, [[0.9, 0.3, 0.6, 0.4]])
    >>> true[0], y = [0.02, 0.8, 0.2, 0.9], rng.integers(0, 4, 4000)
    >>> found = transition_from_large_sets(rng.random((4000, 4)) < true[y], np.ones(4000))
    >>> bool(np.abs(found - normalised(true)).sum(axis=1).max() / 2 < 0.1)
    True
    """
    k, sets, total = mask.shape[1], mask.astype(np.float64), weight.sum()
    popular = weight @ sets / total
    lean = np.where(np.eye(k, dtype=bool), OWN * popular, popular)
    chance, prior, seen = lean, np.full(k, 1 / k), STRENGTH * total / k
    for _ in range(STEPS):
        inside = np.clip(chance, LEAST, 1 - LEAST)
        outside = np.log1p(-inside)
        joint = sets @ (np.log(inside) - outside).T + outside.sum(axis=1) + np.log(prior)
        share = softmax(joint, axis=1) * weight[:, None]
        members = share.sum(axis=0)
        chance = (share.T @ sets + seen * lean) / (members + seen)[:, None]
        prior = normalised(members + EQUAL * total / k)
    return normalised(chance)


TINY = np.finfo(np.float64).tiny
LEAN = 1.0  #: labels of each class that are taken as seen as the start has them, so that nothing becomes impossible
SEVERAL = 3  #: labels a sample from which on these alone are a start
FEW_EPOCHS = 12  #: of a cross-fitted model: what it learns late is noise of its own labels
WARM_UP = 4  #: epochs with popularity's Q before a better one, which told at once may mix up similar classes
ROUNDS = 8  #: of estimates, each with models that were told the one before
IMAGE_EPOCHS, IMAGE_ROUNDS = 20, 2  #: of networks for images, which learn more and cost more: one round finds Q
MOST_NAMED = 2 / 3  #: of the classes that labels rule out on average, above which they decide nearly all by themselves
SETTLED = 3  #: the last of those that are as good as the best, which are averaged: a single round is noisy

#: Class probabilities of the samples of a part by a model that was trained on the rest, told a Q, from a seed.
Predict = Callable[[FloatArray, IntArray, IntArray, int], FloatArray]


@dataclass(frozen=True, eq=False)
class Round:
    """An estimate: Q, and how likely it makes labels that it has not seen."""

    start: str  #: the family, or what labels alone tell
    number: int  #: how often models were trained for it; 0 is the start itself
    score: float  #: mean log-likelihood of a sample's labels, by models and Qs that did not see them
    transition: FloatArray
    averaged: int = 1  #: the estimates of so many rounds, this one the last, that it is the mean of
    scores: FloatArray | None = field(default=None, repr=False)  #: of each sample, times its weight

    @staticmethod
    def best(rounds: Sequence[Round]) -> Round:
        """The first start that is as good as the best round, or else the mean of the last few that are, from its start.

        Those are as good that are at most one standard error of the difference, sample by sample, behind it. Q still
        comes nearer to the truth where the likelihood of labels hardly changes any more; but where nothing is better
        than a start, what came of it is noise.
        """
        first = max(rounds, key=lambda one: one.score)
        good = [one for one in rounds if _as_good(one, first)]
        if starts := [one for one in good if one.number == 0]:
            return starts[0]
        alike = [one for one in good if one.start == first.start][-SETTLED:]
        if len(alike) == 1:
            return alike[0]
        last, score = alike[-1], float(np.mean([one.score for one in alike]))
        return Round(last.start, last.number, score, np.mean([one.transition for one in alike], axis=0), len(alike))


@dataclass(frozen=True, eq=False)
class ModelTransition(EstimatedTransition):
    """Q from labels and a model."""

    rounds: tuple[Round, ...]  #: every estimate on the way
    chosen: Round  #: what is taken: one of them, or the mean of some

    def table(self) -> list[dict[str, Any]]:
        """A row each: start, round, over how many it is averaged, score, and whether it is the one that is taken."""
        rows = self.rounds if self.chosen in self.rounds else (*self.rounds, self.chosen)
        return [
            {
                "start": one.start,
                "round": one.number,
                "averaged": one.averaged,
                "score": one.score,
                "chosen": one is self.chosen,
            }
            for one in rows
        ]


def transition_from_predictions(
    probabilities: ArrayLike,
    ybar: Any,
    start: ArrayLike,
    *,
    steps: int = 20,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> FloatArray:
    r"""The Q that makes labels likely, given class probabilities of samples by a model that has not seen their labels.

    EM from ``start``: with the posterior :math:`r_{iy} \propto p_{iy} \prod_{j \in \bar Y_i} Q_{yj}`,

    .. math:: Q_{yj} \propto \sum_i w_i r_{iy} [j \in \bar Y_i] + \text{start}_{yj} ,

    with sample weights w of mean 1, and with at most half of chance, or what the start has, on the diagonal: else
    classes change their names.
    Labels of a sample that were drawn without replacement give the shares in which classes are in its sets, as the
    likelihood of :func:`wcll.functional.forward` wants them. A model's predictions for its own training samples will
    not do: they agree with their labels under any Q. Labels are class indices, or names among ``classes``.

    >>> p = np.repeat([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]], 100, axis=0)
    >>> ybar = np.repeat([1, 2, 0], 100)
    >>> transition_from_predictions(p, ybar, [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]).round(1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    matrix = lean = transition_matrix(start)
    whole("steps", steps)
    mask = to_mask(indexed("ybar", ybar, classes, len(matrix)), len(matrix))
    chances = finite_array("probabilities", probabilities, mask.shape)
    named = mask.astype(np.float64)
    counted = named * _mean_one(sample_weight, len(mask))[:, None]
    for _ in range(steps):
        posterior, _ = _posterior(chances, named, matrix)
        matrix = _complementary(posterior.T @ counted + LEAN * lean, np.diag(lean))
    return matrix


def _mean_one(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Sample weights, scaled to a mean of 1."""
    weight = sample_weights(sample_weight, n)
    scaled: FloatArray = weight / weight.mean()
    return scaled


def _complementary(counts: FloatArray, given: FloatArray) -> FloatArray:
    """Rows of shares whose diagonal is half of chance at most, unless more was given: or classes change their names."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    noise = np.minimum(np.diag(shares), np.maximum(given, 0.5 / len(shares)))
    others = shares - np.diag(np.diag(shares))
    matrix: FloatArray = others * ((1 - noise) / np.maximum(others.sum(axis=1), TINY))[:, None] + np.diag(noise)
    return matrix


def cross_fitted(
    mask: BoolArray,
    predict: Predict,
    seeds: np.random.RandomState,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: int = 2,
    rounds: int = ROUNDS,
    steps: int = 20,
) -> ModelTransition:
    """What :func:`wcll.transition_estimation.transition_with_model` says, with models that ``predict`` trains."""
    weight = _mean_one(sample_weight, len(mask))
    if (largest := int(mask.sum(axis=1).max())) > MOST_ORDERED and mask.mean() > MOST_NAMED:
        return _popularity(mask, largest, weight)
    training = _Rounds(predict, mask, weight, groups, folds, seeds)
    tried = [one for name, start in _starts(mask, weight, seeds) for one in training.all(name, start, rounds, steps)]
    best = Round.best(tried)
    return ModelTransition(
        transition=best.transition,
        standard_error=_least_error(best.transition, mask),
        shares=None,
        basis=f"labels and models of {len(mask)} samples ({folds} folds, {best.number} rounds)",
        family=best.start,
        rounds=tuple(tried),
        chosen=best,
    )


def _popularity(mask: BoolArray, largest: int, weight: FloatArray) -> ModelTransition:
    """For sets so large that a product of chances is no likelihood, and that say nearly all without Q."""
    found = FAMILIES["popularity"].fit(label_totals(mask, mask.shape[1], weight))
    start = Round("popularity", 0, float("nan"), found.transition)
    basis = f"label counts, as sets of up to {largest} labels tell a model no more"
    return ModelTransition(found.transition, None, None, basis, "popularity", (start,), start)


def _starts(mask: BoolArray, weight: FloatArray, seeds: np.random.RandomState) -> Iterator[tuple[str, FloatArray]]:
    """Qs to begin with, by the family or by what they are from."""
    for family in ("popularity", "popularity-noise"):  # what is impossible at first stays so: labels may be no mistakes
        yield family, FAMILIES[family].fit(weight @ mask).transition
    sizes = mask.sum(axis=1)
    if sizes.max() > MOST_ORDERED:
        yield "free", transition_from_large_sets(mask, weight)
    elif sizes.max() >= SEVERAL and sizes.mean() > SEVERAL - 1:  # what was said twice is in a set once
        seed = int(seeds.randint(2**31))
        yield "free", transition_from_repeated(mask, mask.shape[1], draws=0, random_state=seed).transition


@dataclass(frozen=True)
class _Rounds:
    """Models that predict the samples of folds that they were not trained on."""

    predict: Predict
    mask: BoolArray
    weight: FloatArray
    groups: ArrayLike | None
    folds: int
    seeds: np.random.RandomState

    def all(self, start: str, transition: FloatArray, rounds: int, steps: int) -> Iterator[Round]:
        """The start, and one estimate after the other."""
        matrix = transition
        for number in range(1, rounds + 1):
            parts = list(self._split())
            chances = self._predictions(matrix, parts)
            if number == 1:
                scores = self._scores(chances, matrix, slice(None))
                yield Round(start, 0, float(scores.mean()), matrix, scores=scores)
            scores = np.empty(len(self.mask))
            for _, part in parts:
                others = np.setdiff1d(np.arange(len(self.mask)), part)
                own = self._estimate(chances, matrix, others, steps)
                scores[part] = self._scores(chances, own, part)
            matrix = self._estimate(chances, matrix, slice(None), steps)
            yield Round(start, number, float(scores.mean()), matrix, scores=scores)

    def _split(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Other parts every round, so that no split is learnt by heart."""
        seed = int(self.seeds.randint(2**31))
        kind = KFold if self.groups is None else GroupKFold
        yield from kind(self.folds, shuffle=True, random_state=seed).split(self.mask, groups=self.groups)

    def _predictions(self, matrix: FloatArray, parts: list[tuple[IntArray, IntArray]]) -> FloatArray:
        chances = np.empty(self.mask.shape)
        for rest, part in parts:
            chances[part] = self.predict(matrix, rest, part, int(self.seeds.randint(2**31)))
        return chances

    def _estimate(self, chances: FloatArray, matrix: FloatArray, part: Any, steps: int) -> FloatArray:
        """Q from the labels of some samples."""
        weight = self.weight[part]
        return transition_from_predictions(chances[part], self.mask[part], matrix, steps=steps, sample_weight=weight)

    def _scores(self, chances: FloatArray, matrix: FloatArray, part: Any) -> FloatArray:
        """The log-likelihood of the labels of some samples, times their weights."""
        each: FloatArray = _posterior(chances[part], self.mask[part].astype(np.float64), matrix)[1] * self.weight[part]
        return each


def _as_good(one: Round, best: Round) -> bool:
    """Whether a round is at most one standard error behind the best."""
    assert one.scores is not None
    assert best.scores is not None
    behind = best.scores - one.scores
    return bool(behind.mean() <= behind.std() / np.sqrt(len(behind)))


def _posterior(chances: FloatArray, named: FloatArray, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P(y given x and labels), and log P(labels given x); nothing is quite impossible."""
    joint = np.log(np.maximum(chances, TINY)) + named @ np.log(np.maximum(matrix, TINY)).T
    return softmax(joint, axis=1), logsumexp(joint, axis=1)


def _least_error(matrix: FloatArray, mask: BoolArray) -> FloatArray:
    """Of shares of so many labels a class, were classes of equal size and known."""
    error: FloatArray = np.sqrt(matrix * (1 - matrix) * len(matrix) / mask.sum())
    return error
