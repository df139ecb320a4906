"""Reliability from complementary labels, against simulations whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from wcll import ComplementaryClassifier
from wcll.evaluation import label_free_reliability
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import make_complementary, uniform_transition
from wcll.labels.encoding import to_mask

K = 4
Q = np.array([[0.0, 0.5, 0.3, 0.2], [0.4, 0.0, 0.3, 0.3], [0.2, 0.5, 0.0, 0.3], [0.3, 0.3, 0.4, 0.0]])


def draw(n, seed):
    """Logits, true classes that these tell the chances of, and labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, K)) * 1.5
    y = (rng.random((n, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
    return logits, y, make_complementary(y, Q, random_state=seed)


def test_intervals_of_bins_hold_the_truth():
    """95 % of them, where probabilities are right: the mean confidence is then the accuracy to be expected."""
    held = []
    for seed in range(100):
        logits, _, ybar = draw(800, seed)
        found = label_free_reliability(softmax(logits, axis=1), ybar, Q, bins=5)
        held.append(np.abs(found.accuracy - found.confidence) < 1.96 * found.standard_error)
    assert 0.92 < np.mean(held) < 0.98


def test_the_truth_of_probabilities_that_are_wrong():
    logits, y, ybar = draw(60_000, 0)
    for temperature, sign in ((1.0, 0), (0.4, 1), (3.0, -1)):  # right, too sure, too timid
        chances = softmax(logits / temperature, axis=1)
        found = label_free_reliability(chances, ybar, Q)
        assert found.samples.tolist() == [6000] * 10
        order, right = np.argsort(chances.max(axis=1)), chances.argmax(axis=1) == y
        truth = right[order].reshape(10, -1).mean(axis=1)
        assert (np.abs(found.accuracy - truth) < 3.5 * found.standard_error).all()
        gap, error = found.gap
        np.testing.assert_allclose(gap, chances.max(axis=1).mean() - right.mean(), atol=3 * error)
        assert sign * gap > 10 * error if sign else abs(gap) < 3 * error


def test_bins_weights_and_sets():
    logits, _, ybar = draw(500, 0)
    chances = softmax(logits, axis=1)
    one = label_free_reliability(chances, ybar, Q, bins=1)
    np.testing.assert_allclose(one.confidence, chances.max(axis=1).mean())
    many = label_free_reliability(chances, ybar, Q, bins=10**12)  # a sample a bin
    assert len(many.samples) == 500
    np.testing.assert_allclose(many.gap[0], one.gap[0])
    same = label_free_reliability(np.tile([0.7, 0.1, 0.1, 0.1], (500, 1)), ybar, Q)
    assert same.samples.tolist() == [500]  # like confidences stay together
    weight = np.random.default_rng(0).integers(0, 3, 500)
    again = np.repeat(np.arange(500), weight)
    weighted = label_free_reliability(chances, ybar, Q, bins=1, sample_weight=weight)
    repeated = label_free_reliability(chances[again], ybar[again], Q, bins=1)
    np.testing.assert_allclose(weighted.accuracy, repeated.accuracy)
    np.testing.assert_allclose(weighted.confidence, repeated.confidence)
    np.testing.assert_allclose(label_free_reliability(chances, to_mask(ybar, K), Q, bins=1).accuracy, one.accuracy)


def test_a_classifier_is_judged_for_the_class_shares_of_labels():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 8000, p=[0.7, 0.2, 0.1])
    x = rng.normal(np.eye(3)[y] * 1.5)
    ybar, learnt, held = make_complementary(y, random_state=0), slice(0, 4000), slice(4000, 8000)
    model = ComplementaryClassifier("forward", lr=0.02, max_epochs=30, target_prior=[0.05, 0.05, 0.9], random_state=0)
    proba = model.fit(x[learnt], ybar[learnt]).predict_proba(x[held])
    gap, error = label_free_reliability(model.as_trained(proba), ybar[held], uniform_transition(3)).gap
    assert abs(gap) < 3 * error
    gap, error = label_free_reliability(proba, ybar[held], uniform_transition(3)).gap
    assert gap > 10 * error


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"probabilities": np.ones((6, 3))}, InputError, "rows of probabilities that sum to 1.*logits need a softmax"),
        ({"probabilities": np.ones((5, 3)) / 3}, InputError, r"probabilities: expected shape \(6, 3\), got \(5, 3\)"),
        ({"probabilities": "x"}, InputTypeError, "probabilities: expected numbers, got str"),
        ({"transition": np.full((3, 3), 1 / 3)}, InputError, "transition: expected an invertible matrix"),
        ({"transition": np.ones((3, 3))}, InputError, "transition: expected rows that sum to 1"),
        ({"ybar": [0, 1, 2, 0, 1, 3]}, InputError, "ybar: expected"),
        ({"bins": 0}, InputError, "bins: expected a whole number from 1, got 0"),
        ({"bins": 2.5}, InputError, "bins: expected a whole number from 1, got 2.5"),
        ({"sample_weight": np.zeros(6)}, InputError, "sample_weight: expected non-negative numbers, not all zero"),
    ],
)
def test_bad_arguments_are_one_line(change, error, message):
    good = {"probabilities": np.ones((6, 3)) / 3, "ybar": [0, 1, 2, 0, 1, 2], "transition": uniform_transition(3)}
    with pytest.raises(error, match=message) as caught:
        label_free_reliability(**{**good, **change})
    assert "\n" not in str(caught.value)
