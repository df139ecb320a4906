"""The nearest mixture of rows: against scipy, at the border, for many classes, and what is missing at most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from wcll.labels import biased_transition, noisy_transition, uniform_transition
from wcll.labels.goodness_of_fit import CLOSE, nearest_mixtures


def slow_deviance(counts, rows):
    """By a general method, over logits of the shares."""
    s, seen = counts / counts.sum(), counts > 0

    def lacks(z):
        a = np.exp(z - z.max())
        p = a / a.sum() @ rows
        return 2 * counts.sum() * (s[seen] * np.log(s[seen] / p[seen])).sum()

    return minimize(lacks, np.zeros(len(rows)), tol=1e-12).fun


@settings(max_examples=10)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from([5, 200, 10_000]))
def test_no_mixture_is_nearer(k, seed, n):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(k, 0.7), k).clip(1e-6)
    rows /= rows.sum(axis=1, keepdims=True)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(k)), 2).astype(float)
    fit = nearest_mixtures(counts, rows)
    assert (fit.gap <= CLOSE).all()
    np.testing.assert_allclose(fit.mixture.sum(axis=1), 1)
    for found, row in zip(fit.deviance, counts, strict=True):
        assert found <= slow_deviance(row, rows) + 2 * CLOSE


def test_shares_within_the_simplex_fit_exactly():
    rows = noisy_transition(biased_transition(6, random_state=0), rate=0.04)
    shares = np.array([[0.3, 0.3, 0.2, 0.1, 0.05, 0.05], [0.5, 0.5, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]])
    fit = nearest_mixtures(1000 * shares @ rows, rows)
    np.testing.assert_allclose(fit.mixture, shares @ rows, atol=1e-3)
    assert (fit.deviance <= 2 * CLOSE).all()


def test_every_row_of_counts_may_have_its_own_distributions():
    rng = np.random.default_rng(0)
    counts, rows = rng.multinomial(500, np.ones(4) / 4, 5).astype(float), rng.dirichlet(np.ones(4), (5, 4))
    together = nearest_mixtures(counts, rows)
    alone = [nearest_mixtures(counts[i : i + 1], rows[i]) for i in range(5)]
    np.testing.assert_allclose(together.deviance, [one.deviance[0] for one in alone], atol=2 * CLOSE)
    np.testing.assert_allclose(together.mixture, [one.mixture[0] for one in alone], atol=1e-3)
    np.testing.assert_allclose(np.einsum("mk,mkg->mg", together.shares, rows), together.mixture, atol=1e-9)


@pytest.mark.parametrize("rows", [np.full((3, 3), 1 / 3), np.array([[0, 0.5, 0.5], [0, 0.5, 0.5], [0, 1, 0]])])
def test_rows_may_be_equal_and_cells_never_occur(rows):
    fit = nearest_mixtures(np.array([[0.0, 30, 10], [0, 0, 0], [0, 1, 0]]), rows)
    assert np.isfinite(fit.mixture).all()
    assert (fit.gap <= CLOSE).all()
    assert fit.deviance[1] == 0


def test_many_classes_and_few_cells():
    """As when labels of a thousand classes are counted in groups."""
    k = 1000
    groups = np.repeat(np.eye(20), k // 20, axis=0)
    counts = np.random.default_rng(0).multinomial(6000, np.full(k, 1 / k)) @ groups
    fit = nearest_mixtures(counts[None], uniform_transition(k) @ groups)
    assert fit.gap[0] <= CLOSE
    assert fit.deviance[0] < 40
