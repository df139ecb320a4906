"""Figures from complementary labels alone: sets of labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wcll.evaluation.label_free import complementary_log_likelihood
from wcll.labels import uniform_transition
from wcll.labels.encoding import to_mask

Q = np.array([[0.0, 0.7, 0.2, 0.1], [0.3, 0.05, 0.35, 0.3], [0.1, 0.6, 0.0, 0.3], [0.2, 0.2, 0.6, 0.0]])
P = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])


def likelihood(p, labels):
    return math.log(sum(p[y] * math.prod(Q[y, j] for j in labels) for y in range(4)))


def test_the_labels_of_a_sample_are_one_observation():
    sets = [[1], [0, 2], [0, 1, 3]]
    mean, error = complementary_log_likelihood(to_mask(sets, 4), P, Q)
    each = [likelihood(p, labels) for p, labels in zip(P, sets, strict=True)]
    assert mean == pytest.approx(np.mean(each))
    assert error == pytest.approx(np.std(each) / math.sqrt(3))
    single = complementary_log_likelihood(np.array([1, 0, 3]), P, Q)[0]
    assert single == pytest.approx(np.log((P @ Q)[[0, 1, 2], [1, 0, 3]]).mean())


def test_what_is_impossible_is_finite_and_worst():
    never = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    sure = np.array([[1.0, 0.0, 0.0]])
    assert complementary_log_likelihood(np.array([0]), sure, never)[0] == pytest.approx(math.log(np.finfo(float).tiny))
    assert complementary_log_likelihood(np.array([2]), sure, never)[0] < -700


def test_many_classes_take_no_cube_of_memory():
    k, n = 2000, 50
    p = np.full((n, k), 1 / k)
    mask = np.zeros((n, k), dtype=bool)
    mask[:, :3] = True
    mean, _ = complementary_log_likelihood(mask, p, uniform_transition(k))
    assert mean == pytest.approx(math.log((k - 3) / k) - 3 * math.log(k - 1))
