"""What a label is worth: hand calculations, and the estimate of accuracy itself."""

from __future__ import annotations

import numpy as np
import pytest

from wcll.evaluation import label_free_accuracy
from wcll.labels import biased_transition, make_complementary, uniform_transition
from wcll.labels.diagnostics import accuracy_deviation, label_worth, labels_needed


@pytest.mark.parametrize("k", [2, 3, 10])
def test_uniform_labels_by_hand(k):
    worth = label_worth(uniform_transition(k), np.ones(k))
    assert worth.entropy == pytest.approx(np.log2(k))
    assert worth.information == pytest.approx(np.log2(k) - np.log2(k - 1))
    assert worth.labels_for_one == pytest.approx(np.log2(k) / np.log2(k / (k - 1)))
    for one in worth.judging:
        wrong = 1 - one.accuracy
        assert one.deviation == pytest.approx(np.sqrt((k - 1) * wrong - wrong**2))
        assert one.true_labels == labels_needed(np.sqrt(one.accuracy * wrong))
    if k == 2:  # a label tells the class: as good as a true one
        assert [one.labels for one in worth.judging] == [one.true_labels for one in worth.judging]


def test_labels_that_tell_nothing():
    worth = label_worth(np.full((3, 3), 1 / 3), np.ones(3))
    assert worth.information == pytest.approx(0)
    assert worth.judging == ()
    assert "no inverse" in worth.problem
    assert worth.to_dict()["labels_for_one"] is None


def test_the_deviation_is_that_of_the_estimate():
    k, n, rng = 5, 200_000, np.random.default_rng(0)
    matrix, shares = biased_transition(k, random_state=1), np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    y = rng.choice(k, n, p=shares)
    predicted = np.where(rng.random(n) < 0.8, y, (y + rng.integers(1, k, n)) % k)
    value, error = label_free_accuracy(make_complementary(y, matrix, random_state=2), predicted, matrix)
    assert value == pytest.approx(0.8, abs=4 * error)
    assert error * np.sqrt(n) == pytest.approx(accuracy_deviation(matrix, shares, 0.8), rel=0.02)


def test_information_by_hand():
    """Two classes have the same labels, a coin; the third always has the same."""
    worth = label_worth([[0, 0.5, 0.5], [0, 0.5, 0.5], [1, 0, 0]], [0.5, 0.25, 0.25])
    assert worth.entropy == pytest.approx(1.5)
    labels = 0.25 * 2 + 2 * 0.375 * -np.log2(0.375)
    assert worth.information == pytest.approx(labels - 0.75)  # one bit is left open in three quarters of the samples
