"""Sets of labels: how often each class is among labels that are drawn without replacement."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcll.exceptions import InputError
from wcll.labels import make_complementary, uniform_transition
from wcll.labels.encoding import inclusion_shares


def one_by_one(row, n_labels):
    """The shares of one class, over all orders."""
    shares = np.zeros(len(row))
    for order in permutations(np.flatnonzero(row), n_labels):
        chance = left = 1.0
        for j in order:
            chance, left = chance * row[j] / left, left - row[j]
        shares[list(order)] += chance / n_labels
    return shares


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 6), st.integers(1, 3), st.integers(0, 10**6), st.floats(0.3, 5))
def test_inclusion_shares_are_sums_over_all_orders(k, n_labels, seed, even):
    matrix = np.random.default_rng(seed).dirichlet(np.full(k, even), k)
    found = inclusion_shares(matrix, n_labels)
    np.testing.assert_allclose(found, [one_by_one(row / row.sum(), n_labels) for row in matrix], atol=1e-6)


def test_labels_that_are_drawn_have_these_shares():
    matrix = np.array([[0, 0.7, 0.2, 0.1], [0.1, 0, 0.3, 0.6], [0.4, 0.4, 0.1, 0.1], [0.25, 0.25, 0.5, 0]])
    y = np.repeat(np.arange(4), 20_000)
    mask = make_complementary(y, matrix, n_labels=2, random_state=0)
    drawn = np.stack([mask[y == k].mean(axis=0) / 2 for k in range(4)])
    np.testing.assert_allclose(inclusion_shares(matrix, 2), drawn, atol=0.01)


def test_uniform_labels_stay_uniform_and_too_many_are_refused():
    np.testing.assert_allclose(inclusion_shares(uniform_transition(10), 4), uniform_transition(10), atol=1e-9)
    with pytest.raises(InputError, match="n_labels: expected at most 2, as every class can be named, got 3"):
        inclusion_shares(uniform_transition(3), 3)
