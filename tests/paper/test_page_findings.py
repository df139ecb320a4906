"""What the report says that the paper contradicts, computed where it can be computed."""

from __future__ import annotations

import numpy as np

from wcll.labels import imbalance_counts, uniform_transition
from wcll.labels.transition import complementary_prior
from wcll.labels.weights import eq13
from wcll.paper.comparison import find
from wcll.paper.page import contradictions

SIZES = imbalance_counts(n_majority=2000, n_classes=10, minority=[0], p=2)


def said(words):
    (one,) = [text for text in contradictions() if words in text]
    return one


def test_weights_are_class_sizes_and_cancel_pi():
    pi = complementary_prior(SIZES)
    weights = eq13(pi)
    np.testing.assert_allclose(weights / weights.sum(), SIZES / SIZES.sum())
    assert weights[0] < weights[1]
    np.testing.assert_allclose(weights * pi, (weights * pi)[0])
    assert "smaller weight" in said("its own share of the ordinary samples")
    assert "cancel" in said("The product of weight and pi")


def test_uniform_labels_do_not_follow_eq7():
    shares = SIZES / SIZES.sum() @ uniform_transition(10)
    assert f"{shares[0] / shares[1]:.2f} times" in said("draws the label uniformly")


def test_a_bias_in_both_places_changes_nothing():
    wrong = complementary_prior(SIZES) + 0.5
    np.testing.assert_allclose(eq13(wrong) * wrong, (eq13(wrong) * wrong)[0])
    assert "nothing changes" in said("Table 5 adds a bias")


def test_table_6_is_as_far_apart_as_said():
    apart = [
        find(6, "mnist", p, "0", "wcll").mean - find(6, "mnist", p, "0", "over-sampling").mean for p in (2.0, 2.5, 5.0)
    ]
    assert f"{min(apart):.0f} to {max(apart):.0f} points" in said("table 6 prints"), apart
