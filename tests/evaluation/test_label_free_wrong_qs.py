"""Three lists of wrong Qs, 20 % off: visible in counts, visible with a model, and invisible; and Qs that are estimated.

Few draws each; ``benchmarks/alarms.py`` and ``benchmarks/estimated.py`` have 200.
"""

from __future__ import annotations

import numpy as np
import pytest

from wcll.evaluation import label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import (
    Belief,
    biased_transition,
    check_counts,
    inverse_size_transition,
    shifted_transition,
    transition_from_pairs,
    transition_from_repeated,
    uniform_transition,
)
from wcll.labels.goodness_of_fit import nearest_mixtures
from wcll.labels.transition import transition_from_pi

TRAIN, HELD_OUT, DRAWS = 4500, 1500, 4


def simulated(k, recall):
    return np.full((k, k), (1 - recall) / (k - 1)) + (recall - (1 - recall) / (k - 1)) * np.eye(k)


def assumed_q(assumed, shares, rng):
    k = len(shares)
    if assumed == "biased":
        return biased_transition(k, random_state=rng)
    return uniform_transition(k) if assumed == "uniform" else inverse_size_transition(shares)


def mixed(matrix):
    """Every row mixed with the next class's, 20 % away if that is possible: every table fits the assumed Q, too."""
    other = np.roll(matrix, 1, axis=0)
    part = min(1.0, 0.2 / (np.abs(other - matrix).sum(axis=1).mean() / 2))
    return (1 - part) * matrix + part * other


def worlds(assumed, kind, k):
    rng = np.random.default_rng([k, *map(ord, assumed + kind)])
    while True:
        shares = rng.dirichlet(np.full(k, 3.0))
        matrix = assumed_q(assumed, shares, rng)
        if kind in ("right", "invisible"):
            yield shares, matrix, matrix if kind == "right" else mixed(matrix)
            continue
        true = shifted_transition(matrix, distance=0.2, random_state=rng)
        away = nearest_mixtures(TRAIN * (shares @ true)[None], matrix).deviance[0]
        if assumed == "inverse-size" or (away >= 30) == (kind == "counts"):
            yield shares, matrix, true


def judged(assumed, kind, k, recall=0.85):
    """Beliefs, training counts and what is found, of DRAWS draws."""
    rng, found = np.random.default_rng(k), []
    for shares, matrix, true in worlds(assumed, kind, k):
        totals = rng.multinomial(TRAIN, shares @ true)
        joint = np.einsum("y,yj,yk->jk", shares, true, simulated(k, recall))
        table = rng.multinomial(HELD_OUT, joint.ravel()).reshape(k, k)
        try:
            belief = Belief.of(matrix if assumed == "biased" else assumed, totals)
        except InputError:  # counts that no inverse-size selector gives
            continue
        found.append((belief, totals, label_free_confusion(table, belief, draws=100)))
        if len(found) == DRAWS:
            return found


every_size = pytest.mark.parametrize("k", [3, 6, 10])
every_q = pytest.mark.parametrize("assumed", ["uniform", "biased", "inverse-size"])


def verdicts(found):
    return {figure.verdict for _, _, one in found for figure in one.figures.values()}


@every_size
@pytest.mark.parametrize("assumed", ["uniform", "biased"])
def test_wrong_qs_that_counts_show(assumed, k):
    found = judged(assumed, "counts", k)
    assert all(check_counts(totals, belief).contradicted for belief, totals, _ in found)
    assert verdicts(found) == {"the assumed Q does not fit"}


@every_size
@every_q
def test_wrong_qs_that_only_a_model_shows(assumed, k):
    """A model of recall .95: with .85 some worlds of three inverse-size classes are beyond every test."""
    found = judged(assumed, "model", k, recall=0.95 if assumed == "inverse-size" else 0.85)
    assert sum(one.check.contradicted for _, _, one in found) >= DRAWS - 1
    assert "ok" not in verdicts(found)


@every_size
@every_q
def test_wrong_qs_that_nothing_shows_and_right_ones(assumed, k):
    """They give the same tables, so they are told the same; a family that is fitted anew may not fit mixed rows."""
    for kind in ("right",) if assumed == "inverse-size" else ("right", "invisible"):
        found = judged(assumed, kind, k)
        assert sum(one.check.contradicted for _, _, one in found) <= 1
        assert {one.check.state for _, _, one in found} <= {"can't be checked", "contradicted"}
        assert "ok" not in verdicts(found)
        if (assumed, k) != ("biased", 10):  # of which the intervals are wide
            assert "can't be checked" in verdicts(found)


@every_size
def test_no_test_shows_what_the_assumed_q_allows(k):
    """With a weak model some tables of wrong Qs are those of the assumed Q and another model, exactly."""
    shares, matrix = np.full(k, 1 / k), uniform_transition(k)
    true = shifted_transition(matrix, distance=0.2, random_state=0)
    recalls = (0.4, 0.95)
    weak, good = (HELD_OUT * np.einsum("y,yj,yk->kj", shares, true, simulated(k, one)) for one in recalls)
    assert nearest_mixtures(weak, matrix).deviance.sum() < nearest_mixtures(good, matrix).deviance.sum() / 4
    if k == 3:
        assert nearest_mixtures(weak, matrix).deviance.sum() < 0.01
        found = label_free_confusion(np.rint(weak.T), Belief.of("uniform", np.rint(weak.sum(axis=0))))
        assert {figure.verdict for figure in found.figures.values()} <= {"can't be checked", "too few labels"}


def labelled(matrix, y, rng):
    return (rng.random(len(y))[:, None] > matrix[y].cumsum(axis=1)).sum(axis=1).clip(0, len(matrix) - 1)


def estimated(way, shares, matrix, rng):
    """A belief from labels of samples of these class shares."""
    k = len(shares)
    y = rng.choice(k, TRAIN, p=shares)
    labels = np.stack([labelled(matrix, y, rng) for _ in range(3 if way == "repeated" else 1)], axis=1)
    totals = np.bincount(labels.ravel(), minlength=k)
    if way == "repeated":
        return Belief.of(transition_from_repeated(labels, k, draws=4), totals)
    if way == "pairs":
        return Belief.of(transition_from_pairs(y[:300], labels[:300, 0], k, totals=totals), totals)
    return Belief.of(way, totals)


@pytest.mark.parametrize(("way", "tables"), [("popularity", 30), ("inverse-size", 30), ("pairs", 30), ("repeated", 12)])
def test_intervals_with_an_estimated_q_hold_the_truth_or_nothing_is_ok(way, tables):
    """95 % are asked for; 86 % allow for the chance of few tables."""
    k, recall, held, said = 3, 0.85, [], set()
    for seed in range(tables):
        rng = np.random.default_rng([seed, *map(ord, way)])
        popularity = rng.dirichlet(np.full(k, 8.0))
        shares = (1 - popularity) / (k - 1)
        matrix = inverse_size_transition(shares) if way == "inverse-size" else transition_from_pi(popularity)
        joint = np.einsum("y,yj,yk->jk", shares, matrix, simulated(k, recall))
        table = rng.multinomial(HELD_OUT, joint.ravel()).reshape(k, k)
        found = label_free_confusion(table, estimated(way, shares, matrix, rng), draws=200)
        held += [one.low <= recall <= one.high for one in (found.accuracy, found.balanced_accuracy)]
        said |= {found.accuracy.verdict}
    assert np.mean(held) >= 0.86
    assert ("ok" in said) == (way in ("pairs", "repeated"))
