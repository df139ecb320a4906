"""Q from a few true pairs, smoothed towards a family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.labels import FAMILIES, Belief, noisy_transition, transition_from_pairs
from wcll.labels.pairs import left_out
from wcll.labels.transition import transition_from_pi

POPULAR = transition_from_pi(np.array([0.3, 0.25, 0.2, 0.15, 0.1]))


def near(q, sure, seed):
    """A Q whose rows scatter around q."""
    rows = np.random.default_rng(seed).gamma(sure * q + 1e-12)
    return rows / rows.sum(axis=1, keepdims=True)


def draw(q, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(q), n)
    return y, (rng.random((n, 1)) > q[y].cumsum(axis=1)).sum(axis=1).clip(0, len(q) - 1)


def distance(a, b):
    return 0.5 * np.abs(a - b).sum(axis=1).mean()


@pytest.mark.parametrize("family", list(FAMILIES))
def test_rows_sum_to_one_and_many_pairs_are_their_counts(family):
    q = noisy_transition(near(POPULAR, 20, 0), rate=0.03)
    y, ybar = draw(q, 20_000, 0)
    found = transition_from_pairs(y, ybar, 5, family=family)
    np.testing.assert_allclose(found.transition.sum(axis=1), 1)
    assert distance(found.transition, q) < 0.03
    assert (found.basis, found.family) == ("20000 true pairs", family)
    none = transition_from_pairs(y, ybar, 5, family=family, strength=0)
    table = np.zeros((5, 5))
    np.add.at(table, (y, ybar), 1)
    np.testing.assert_allclose(none.transition, table / table.sum(axis=1, keepdims=True))


def test_few_pairs_are_better_than_none_and_than_their_counts_alone():
    off = {"smoothed": [], "counted": [], "none": []}
    for seed in range(10):
        q = noisy_transition(near(POPULAR, 15, seed), rate=0.03)
        totals = np.bincount(draw(q, 5000, seed)[1], minlength=5)
        y, ybar = draw(q, 150, 100 + seed)
        off["smoothed"].append(distance(transition_from_pairs(y, ybar, 5, totals=totals).transition, q))
        off["counted"].append(distance(transition_from_pairs(y, ybar, 5, totals=totals, strength=0).transition, q))
        off["none"].append(distance(Belief.of("popularity-noise", totals).transition, q))
    assert np.mean(off["smoothed"]) < 0.9 * min(np.mean(off["counted"]), np.mean(off["none"]))


def test_pairs_of_the_family_itself_lean_to_it():
    totals = np.bincount(draw(POPULAR, 50_000, 1)[1], minlength=5)
    found = [
        transition_from_pairs(*draw(POPULAR, 300, seed), 5, family="popularity", totals=totals) for seed in range(9)
    ]
    assert np.median([one.strength for one in found]) > 100
    assert np.mean([distance(one.transition, POPULAR) for one in found]) < 0.05


@given(st.integers(2, 4), st.floats(0.1, 100), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_leave_one_out_is_what_it_says(k, strength, seed):
    rng = np.random.default_rng(seed)
    y, ybar, target = rng.integers(0, k, 9), rng.integers(0, k, 9), rng.dirichlet(np.ones(k), k)
    slow = 0.0
    for i in range(9):
        others = [(a, b) for n, (a, b) in enumerate(zip(y, ybar, strict=True)) if n != i]
        same = sum(a == y[i] and b == ybar[i] for a, b in others)
        slow += math.log((same + strength * target[y[i], ybar[i]]) / (sum(a == y[i] for a, _ in others) + strength))
    table = np.zeros((k, k))
    np.add.at(table, (y, ybar), 1)
    assert left_out(table, target, strength) @ table[table > 0] == pytest.approx(slow)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_permuted_classes_permute_the_estimate(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(5)
    y, ybar = draw(noisy_transition(POPULAR, rate=0.05), 60, seed)
    one, other = transition_from_pairs(y, ybar, 5), transition_from_pairs(order[y], order[ybar], 5)
    np.testing.assert_allclose(other.transition[np.ix_(order, order)], one.transition, atol=1e-9)


def test_the_standard_error_covers():
    """Over Qs that scatter around popularity: errors are those of the scatter that is left."""
    inside = []
    for seed in range(60):
        q = noisy_transition(near(POPULAR, 15, seed), rate=0.03)
        totals = np.bincount(draw(q, 5000, seed)[1], minlength=5)
        found = transition_from_pairs(*draw(q, 300, 1000 + seed), 5, totals=totals)
        inside.append(np.abs(found.transition - q) < 2 * found.standard_error)
    assert 0.87 < np.mean(inside) < 0.99


def test_a_class_without_a_pair_is_the_family():
    found = transition_from_pairs([0, 1, 1], [1, 0, 2], 3, totals=[400, 300, 300], strength=0)
    np.testing.assert_allclose(found.transition[2], found.target[2])
    assert found.counts.tolist() == [1, 2, 0]


def test_the_belief_and_the_estimator_say_where_it_comes_from(tmp_path):
    rng = np.random.default_rng(0)
    y, ybar = draw(noisy_transition(near(POPULAR, 20, 1), rate=0.03), 400, 0)
    found = transition_from_pairs(y[:300], ybar[:300], 5, totals=np.bincount(ybar, minlength=5))
    model = ComplementaryClassifier("forward", transition=found, max_epochs=1, random_state=0)
    X = rng.normal(size=(400, 2))
    model.fit(X, ybar)
    words = "Q estimated from 300 true pairs, leaning to the family: popularity-noise; class shares estimated from label counts"
    assert str(model.belief_) == words
    np.testing.assert_allclose(model.transition_, found.transition)
    model.save(tmp_path / "m")
    again = ComplementaryClassifier.load(tmp_path / "m")
    assert str(again.belief_) == words
    np.testing.assert_array_equal(again.belief_.standard_error, found.standard_error)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_was_estimated_from_pairs_is_redrawn_with_its_errors():
    y, ybar = draw(noisy_transition(POPULAR, rate=0.03), 3000, 0)
    found = transition_from_pairs(y, ybar, 5, family="free", strength=1.0)
    belief = Belief.of(found, np.bincount(ybar))
    prior, inverses, priors = belief.redrawn(np.bincount(ybar).astype(float), 800, np.random.default_rng(0))
    drawn = np.linalg.inv(inverses)
    np.testing.assert_allclose(drawn.mean(axis=0), found.transition, atol=0.003)
    some = found.transition > 0.05
    np.testing.assert_allclose(drawn.std(axis=0)[some], found.standard_error[some], rtol=0.2)
    np.testing.assert_allclose(np.median(priors, axis=0), prior, atol=0.05)
    plain = belief.to_dict()
    assert plain["basis"] == "3000 true pairs"
    assert "basis" not in Belief.of("uniform", [1, 2]).to_dict()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: transition_from_pairs([0, 1], [1], 3), "ybar: expected 2 samples as in y, got 1"),
        (lambda: transition_from_pairs([0, 3], [1, 0], 3), "y: expected class indices below 3, got 3"),
        (lambda: transition_from_pairs([], [], 3), "y: expected at least one sample"),
        (lambda: transition_from_pairs([0], [1], 3, family="populrity"), "transition: expected one of .* did you mean 'popularity'"),
        (lambda: transition_from_pairs([0], [1], 3, strength=-1), "strength: expected a number from 0"),
        (lambda: transition_from_pairs([0], [1], 3, totals=[1, 2]), "totals: expected label counts of 3 classes, got 2"),
        (lambda: Belief.of(transition_from_pairs([0, 1], [1, 0], 3, totals=[1, 1, 1]), [1, 2]), "transition: expected a 2 x 2 matrix, got 3 x 3"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_fifty_pairs_do_not_lead_away_from_the_family_by_chance():
    q = noisy_transition(near(POPULAR, 400, 3), rate=0.03)
    totals = np.bincount(draw(q, 20_000, 0)[1], minlength=5)
    found = [transition_from_pairs(*draw(q, 50, seed), 5, totals=totals) for seed in range(40)]
    further = [distance(one.transition, q) > distance(one.target, q) + 0.02 for one in found]
    assert np.mean(further) <= 0.15


@pytest.mark.parametrize(("n", "told"), [(100, False), (190, True), (400, True)])
def test_a_belief_of_enough_pairs_is_measured_and_survives_json(n, told):
    y = np.arange(n) % 5
    found = transition_from_pairs(y, (y + 1 + np.arange(n) // 5 % 4) % 5, 5)
    belief = Belief.of(found, [100, 90, 80, 70, 60])
    again = Belief.from_dict(belief.to_dict())
    assert found.measured == belief.known == again.known == told
    assert ("measured" in belief.to_dict()) == told
    without = {**belief.to_dict(), "measured": True, "standard_error": None}
    assert not Belief.from_dict(without).known


def test_pairs_without_some_of_every_class_do_not_measure_q():
    y = np.minimum(np.arange(1000) % 9, 4)
    ybar = (y + 1) % 5
    assert transition_from_pairs(y, ybar, 5).measured
    few = y != 3
    few[np.flatnonzero(y == 3)[:4]] = True
    assert not transition_from_pairs(y[few], ybar[few], 5).measured
