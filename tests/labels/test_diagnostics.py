"""The health of labels: hand calculations, and labels whose Q is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wcll.labels import label_health, make_complementary, noisy_transition, uniform_transition
from wcll.labels.diagnostics import MOST_ESTIMATED, _repeated, _thinned
from wcll.labels.encoding import label_records

STRONG = np.array([np.roll([0, 0.5, 0.3, 0.2], k) for k in range(4)])  # rows far apart


def drawn(matrix, n, seed, labels):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(matrix), n)
    return (rng.random((n, labels, 1)) > matrix.cumsum(axis=1)[y][:, None]).sum(axis=2).clip(max=len(matrix) - 1)


def test_one_label_a_sample_by_hand():
    health = label_health(["cat", "dog", "dog", "bird"] * 25, classes=["bird", "cat", "dog", "fish"])
    assert (health.samples, health.labels, health.sizes) == (100, 100, (1, 1.0, 1))
    assert health.counts.tolist() == [25, 25, 50, 0]
    assert health.limit == pytest.approx(1 / 3)
    assert health.never == ("fish",)
    assert health.check.state == "contradicted"
    assert "'dog' is 50 % of the labels; uniform labels allow at most 33 %" in health.check.line
    assert health.implied is None
    assert (health.agreement, health.repeated) == (None, None)
    assert health.repeated_problem == "one label a sample does not tell it"
    assert "popularity" in health.worth.basis


def test_class_shares_that_uniform_labels_imply():
    health = label_health([0] * 30 + [1] * 30 + [2] * 40)
    np.testing.assert_allclose(health.implied.value, [0.4, 0.4, 0.2])
    np.testing.assert_allclose(health.implied.standard_error, 2 * np.sqrt([0.0021, 0.0021, 0.0024]))
    assert "uniform" in health.worth.basis


def test_agreement_by_hand():
    """Of four pairs of labels one agrees; the counts are a 4, b 2, c 2 of 8."""
    health = label_health([["a", "a"], ["a", "b"], ["a", "c"], ["b", "c"]], classes=["a", "b", "c", "d"])
    assert health.agreement.pairs == 4
    assert health.agreement.share == pytest.approx(1 / 4)
    assert health.agreement.error == pytest.approx(np.sqrt(0.75**2 + 3 * 0.25**2) / 4)
    assert health.agreement.independent == pytest.approx(0.25 + 2 / 16)


def test_labels_drawn_without_replacement_cannot_agree():
    y = np.arange(300) % 4
    health = label_health(make_complementary(y, n_labels=2, random_state=0))
    assert health.agreement is None
    assert not health.replacement
    assert health.repeated is not None


def test_agreement_and_mistakes_of_labels_whose_q_is_known():
    matrix = noisy_transition(STRONG, rate=0.05)
    health = label_health(drawn(matrix, 6000, 0, 4), classes=list("abcd"))
    expected = float((matrix**2).sum(axis=1).mean())
    assert health.agreement.share == pytest.approx(expected, abs=4 * health.agreement.error)
    assert health.agreement.deviations > 10
    repeated = health.repeated
    assert repeated.found.identified
    assert abs(repeated.noise - 0.05) < 3 * repeated.noise_error
    assert repeated.noise_error < 0.03
    errors = np.abs(repeated.found.transition - matrix) / repeated.found.standard_error
    assert errors.max() < 5
    assert health.worth.basis == "Q and class shares estimated from repeated labels"
    json.dumps(health.to_dict(), allow_nan=False)


def test_mistakes_within_their_error_in_most_draws():
    matrix, within = noisy_transition(STRONG, rate=0.05), []
    for seed in range(6):
        sets = label_records(drawn(matrix, 3000, seed, 4)).sets()
        repeated = _repeated(sets, tuple("abcd"))
        within.append(repeated.noise_error is not None and abs(repeated.noise - 0.05) < 3 * repeated.noise_error)
    assert sum(within) >= 5


def test_classes_with_the_same_habits_are_the_nearest_pair():
    rows = np.array([[0, 0.05, 0.8, 0.15], [0.05, 0, 0.8, 0.15], [0.7, 0.2, 0, 0.1], [0.1, 0.3, 0.6, 0]])
    pairs = label_health(drawn(rows, 8000, 0, 4), classes=["ant", "bee", "cow", "dog"]).repeated.pairs
    assert (pairs[0].first, pairs[0].second) == ("ant", "bee")
    assert pairs[0].distance < pairs[1].distance < 1
    assert pairs[-1].told_apart


def test_samples_of_which_every_class_is_named_are_counted():
    health = label_health([["a", "b", "c"], ["a", "a", "b"], ["c", "c", "b"]] * 5)
    assert health.everything_named == 5


def test_parts_are_skipped_with_a_reason():
    rng = np.random.default_rng(0)
    many = label_health(rng.integers(0, MOST_ESTIMATED + 1, (50, 2)))
    assert "takes long" in many.repeated_problem
    sets = np.argsort(rng.random((40, 12)), axis=1)[:, :7]
    assert "at most 5" in label_health(sets, classes=list("abcdefghijkl")).repeated_problem
    most = np.argsort(rng.random((4000, 12)), axis=1)[:, :4]
    assert "take long" in label_health(most, classes=list("abcdefghijkl")).repeated_problem
    huge = label_health(rng.integers(0, 1500, 3000))
    assert (huge.check, huge.families, huge.worth) == (None, (), None)
    assert huge.to_dict()["uniform"]["check"] is None


def test_many_samples_are_thinned():
    sets = label_records(np.random.default_rng(0).integers(0, 8, (3000, 5))).sets()
    kept = _thinned(sets, 100)
    assert 0 < len(kept.weight) <= 100
    np.testing.assert_array_equal(kept.weight, _thinned(sets, 100).weight)


def test_the_same_labels_are_told_the_same():
    ybar = drawn(uniform_transition(4), 500, 0, 2)
    who = np.arange(500) % 7
    assert json.dumps(label_health(ybar, annotators=who).to_dict()) == json.dumps(
        label_health(ybar, annotators=who).to_dict()
    )
