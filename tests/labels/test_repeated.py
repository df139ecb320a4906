"""Q from several labels of a sample: against slow EM, on labels whose Q is known, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from wcll.exceptions import InputError
from wcll.labels import Belief, make_complementary, noisy_transition, uniform_transition
from wcll.labels.encoding import label_sets
from wcll.labels.repeated import (
    Lean,
    Mixture,
    climb,
    em_step,
    equations_and_unknowns,
    free_covariance,
    spectral_start,
    transition_from_repeated,
    which_class,
)

STRONG = np.array([np.roll([0, 0.6, 0.3, 0.1], k) for k in range(4)])  # rows far apart


def draw(q, n, labels, seed, prior=None):
    """Labels with replacement, (n, labels)."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(q), n, p=prior)
    chances = rng.random((labels, n, 1)) > q[y].cumsum(axis=1)
    return chances.sum(axis=2).clip(0, len(q) - 1).T, y


def near_popularity(k, rng):
    """Some classes are named more often, by some classes even more."""
    q = rng.uniform(1, 2, k) * rng.uniform(0.8, 1.2, (k, k)) * (1 - np.eye(k))
    return q / q.sum(axis=1, keepdims=True)


def distance(a, b):
    return 0.5 * np.abs(a - b).sum(axis=1).mean()


# Reading labels


def test_masks_lists_and_indices_are_the_same_sets():
    lists = [[0, 1], [2], [1, 0], [1, 2]]
    mask = np.zeros((4, 3), dtype=bool)
    for row, labels in zip(mask, lists, strict=True):
        row[labels] = True
    one, other = label_sets(lists, 3), label_sets(mask, 3)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.weight.tolist() == other.weight.tolist() == [1, 1, 2]
    assert (one.replacement, other.replacement, one.n) == (False, False, 4)
    twice = label_sets(np.array([[0, 0, 1], [1, 0, 0]]), 3)
    assert (twice.counts.tolist(), twice.weight.tolist(), twice.replacement) == ([[2, 1, 0]], [2], True)


def test_integers_are_labels_never_a_mask():
    assert label_sets(np.array([[0, 1, 1], [1, 0, 1]]), 3).totals.tolist() == [2, 4, 0]


@given(st.integers(3, 5), st.integers(1, 3), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_likelihoods_are_those_of_the_oracle(k, size, replacement, seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), k)
    samples = [rng.choice(k, size, replace=replacement).tolist() for _ in range(6)]
    sets = label_sets(np.array(samples), k, replacement=replacement)
    slow = sorted(
        [oracles.chance_of_labels(labels, row.tolist(), replacement=replacement) for row in q]
        for labels in {tuple(sorted(labels)) for labels in samples}
    )
    np.testing.assert_allclose(sorted(np.exp(sets.likelihood(q)[0]).tolist()), slow, rtol=1e-9)


@given(st.integers(3, 5), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_sets_without_replacement_have_chances_that_sum_to_one(k, seed):
    q = np.random.default_rng(seed).dirichlet(np.ones(k), k)
    sets = label_sets([list(chosen) for chosen in combinations(range(k), 2)], k, replacement=False)
    np.testing.assert_allclose(np.exp(sets.likelihood(q)[0]).sum(axis=0), 1)


# EM


@given(st.integers(2, 4), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_grouped_em_is_plain_em(k, seed):
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, k, (12, 3))
    q, target = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(k), k)
    prior, shares = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    step = em_step(label_sets(samples, k, replacement=True), Mixture(q, prior), Lean(target, 2.5, shares, 1.5))
    slow_q, slow_prior, slow_value = oracles.repeated_em_step(
        samples.tolist(), q.tolist(), prior.tolist(), target.tolist(), 2.5, shares.tolist(), 1.5
    )
    np.testing.assert_allclose(step.transition, slow_q, rtol=1e-10)
    np.testing.assert_allclose(step.prior, slow_prior, rtol=1e-10)
    assert step.log_likelihood == pytest.approx(slow_value)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_grouped_em_without_replacement_is_plain_em(seed):
    rng = np.random.default_rng(seed)
    samples = [rng.choice(4, rng.integers(1, 4), replace=False).tolist() for _ in range(8)] + [[0, 1], [2, 3]]
    q, prior = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4))
    step = em_step(label_sets(samples, 4, replacement=False), Mixture(q, prior), Lean(q, 0.0, prior, 0.0))
    slow_q, slow_prior = oracles.left_over_em_step(samples, q.tolist(), prior.tolist())
    np.testing.assert_allclose(step.transition, slow_q, rtol=1e-9)
    np.testing.assert_allclose(step.prior, slow_prior, rtol=1e-9)


@given(st.booleans(), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_em_never_goes_down_and_rows_sum_to_one(replacement, seed):
    rng = np.random.default_rng(seed)
    samples = [rng.choice(4, 3, replace=replacement).tolist() for _ in range(30)]
    sets = label_sets(np.array(samples), 4, replacement=replacement)
    lean = Lean(uniform_transition(4), 0.0 if replacement else 1.0, np.full(4, 0.25), 3.0)
    at, values = Mixture(rng.dirichlet(np.ones(4), 4), np.full(4, 0.25)), []
    for _ in range(8):
        at = em_step(sets, at, lean)
        np.testing.assert_allclose([*at.transition.sum(axis=1), at.prior.sum()], 1)
        values.append(at.value if replacement else at.log_likelihood)
    if replacement:
        assert (np.diff(values) > -1e-9).all()


def test_moments_of_three_labels_give_the_rows_of_q():
    ybar, _ = draw(STRONG, 200_000, 3, 0)
    sets = label_sets(ybar, 4)
    start = spectral_start(sets, np.random.default_rng(1))
    order = which_class(start, sets.totals / sets.totals.sum())
    assert distance(start[order], STRONG) < 0.05
    assert spectral_start(label_sets(ybar[:100, :2], 4, replacement=True), np.random.default_rng(1)) is None


# The whole of it


def test_labels_tell_q_and_the_shares():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    ybar, _ = draw(STRONG, 8000, 5, 3, prior)
    found = transition_from_repeated(ybar, 4)
    assert found.identified, found.reason
    assert distance(found.transition, STRONG) < 0.02
    assert np.abs(found.shares - prior).max() < 0.06  # they lean towards equal ones
    told = transition_from_repeated(ybar, 4, prior=prior, draws=0)
    assert distance(told.transition, STRONG) < 0.02
    assert (told.standard_error, told.shares_error) == (None, None)
    np.testing.assert_allclose(told.shares, prior)
    assert found.basis == "5 labels of 8000 samples"
    np.testing.assert_array_equal(np.asarray(found), found.transition)


def test_noise_on_the_diagonal_is_found():
    true = noisy_transition(STRONG, rate=0.05)
    found = transition_from_repeated(draw(true, 10_000, 6, 0)[0], 4, draws=0)
    assert distance(found.transition, true) < 0.02
    assert np.diag(found.transition).mean() == pytest.approx(0.05, abs=0.02)


def test_labels_without_replacement():
    """Labels that are drawn one after another from what is left of Q spread more evenly than Q: that is seen to."""
    true = np.array([np.roll([0, 0.7, 0.15, 0.1, 0.05], k) for k in range(5)])
    y = np.random.default_rng(0).integers(0, 5, 20_000)
    mask, prior = make_complementary(y, true, n_labels=3, random_state=0), np.full(5, 0.2)
    lean = Lean(true, 0.0, prior, np.inf)
    off = {}
    for replacement in (False, True):
        at = climb(label_sets(mask, 5, replacement=replacement), true, lean, steps=100)
        off[replacement] = distance(at.transition, true)
    assert off[False] < 0.02
    assert off[True] > 0.2
    found = transition_from_repeated(mask, 5, prior=prior, draws=0)
    assert not found.identified
    assert "3 labels a sample give 9 equations for the 20 unknowns of 5 classes" in found.reason


def test_standard_errors_cover():
    inside = []
    for seed in range(6):
        found = transition_from_repeated(draw(STRONG, 3000, 4, seed)[0], 4, draws=12, prior=np.full(4, 0.25))
        wrong = ~np.eye(4, dtype=bool)
        inside.append((np.abs(found.transition - STRONG) < 2 * found.standard_error)[wrong])
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("seed", [0, 1])
def test_permuted_classes_permute_the_estimate(seed):
    ybar, _ = draw(STRONG, 4000, 5, seed)
    order = np.random.default_rng(seed).permutation(4)  # class k becomes order[k]
    one, other = (transition_from_repeated(labels, 4, draws=0) for labels in (ybar, order[ybar]))
    np.testing.assert_allclose(other.transition[np.ix_(order, order)], one.transition, atol=0.02)


def test_errors_of_the_class_shares_cover():
    prior, z = np.array([0.4, 0.3, 0.2, 0.1]), []
    for seed in range(6):
        found = transition_from_repeated(draw(STRONG, 3000, 5, seed, prior)[0], 4, draws=4)
        z.append((found.shares - prior) / found.shares_error)
    assert np.mean(np.abs(z) < 4) > 0.9  # they lean towards equal ones


def test_the_belief_says_where_it_comes_from():
    ybar, _ = draw(STRONG, 3000, 5, 0)
    found = transition_from_repeated(ybar, 4)
    belief = Belief.of(found, np.bincount(ybar.ravel()))
    assert str(belief) == (
        "Q estimated from 5 labels of 3000 samples, leaning to the family: popularity; class shares estimated with it"
    )
    again = Belief.from_dict(belief.to_dict())
    assert str(again) == str(belief)
    np.testing.assert_array_equal(again.shares_error, found.shares_error)
    prior, inverses, priors = belief.redrawn(np.bincount(ybar.ravel()), 500, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.inv(inverses).mean(axis=0), found.transition, atol=0.01)
    np.testing.assert_allclose(priors.std(axis=0), found.shares_error, rtol=0.3)
    np.testing.assert_array_equal(prior, found.shares)


def test_popularity_is_mended_where_labels_do_not_tell_everything():
    rng = np.random.default_rng(4)
    q = np.array([5.0, 4, 3, 2, 2, 1]) * rng.uniform(0.6, 1.4, (6, 6)) * (1 - np.eye(6))
    q = noisy_transition(q / q.sum(axis=1, keepdims=True), rate=0.02)
    ybar, _ = draw(q, 5000, 3, 0)
    found = transition_from_repeated(ybar, 6)
    shares = np.bincount(ybar.ravel()) / ybar.size
    popularity = shares * (1 - np.eye(6))
    popularity /= popularity.sum(axis=1, keepdims=True)
    assert distance(found.transition, q) < distance(popularity, q)
    assert not found.identified
    assert (np.abs(found.transition - q) < 2 * found.standard_error).mean() > 0.8


# What is said of it


@pytest.mark.parametrize(
    ("k", "labels", "counts"), [(2, 2, (2, 3)), (3, 2, (5, 8)), (4, 2, (9, 15)), (10, 2, (54, 99)), (10, 3, (219, 99))]
)
def test_equations_and_unknowns(k, labels, counts):
    assert equations_and_unknowns(k, labels, replacement=True, told=False) == counts
    assert equations_and_unknowns(k, labels, replacement=True, told=True) == (counts[0], k * (k - 1))


def test_two_labels_do_not_identify():
    found = transition_from_repeated(draw(STRONG, 3000, 2, 0)[0], 4)
    assert not found.identified
    assert "2 labels a sample give 9 equations for the 15 unknowns of 4 classes" in found.reason
    assert np.isinf(found.row_error)
    assert found.strength >= 0.1
    assert found.standard_error.max() > 0.05  # what is open has an error


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_agree_may_be_swapped(seed):
    """EM splits equal rows by chance: that is not taken for knowledge."""
    q = noisy_transition(STRONG, rate=0.03)
    q[0] = q[1] = [0.03, 0.03, 0.54, 0.4]
    found = transition_from_repeated(draw(q, 3000, 5, seed)[0], 4, draws=0)
    assert not found.identified
    assert "classes 0 and 1" in found.reason
    assert "may be swapped" in found.reason
    assert found.basis.endswith("samples, which do not tell it by themselves")


def test_uniform_labels_of_few_samples_are_not_told():
    found = transition_from_repeated(draw(uniform_transition(6), 300, 3, 0)[0], 6, draws=0)
    assert not found.identified
    assert distance(found.transition, uniform_transition(6)) < 0.1


def test_many_classes_and_few_labels_are_not_worse_than_popularity():
    rng = np.random.default_rng(0)
    q = noisy_transition(near_popularity(16, rng), rate=0.03)
    for labels in (2, 3):
        ybar, _ = draw(q, 1500, labels, labels)
        shares = np.bincount(ybar.ravel(), minlength=16) / ybar.size
        popularity = shares * (1 - np.eye(16))
        popularity /= popularity.sum(axis=1, keepdims=True)
        found = transition_from_repeated(ybar, 16, draws=0)
        assert distance(found.transition, q) < distance(popularity, q) + 0.01


def test_information_is_the_inverse_of_the_scatter():
    """Errors without anything to lean on are those of many draws, fitted without leaning."""
    lean = Lean(STRONG, 0.0, np.full(4, 0.25), np.inf)
    sets = [label_sets(draw(STRONG, 4000, 5, seed)[0], 4) for seed in range(40)]
    fits = np.stack([climb(one, STRONG, lean, steps=100).transition for one in sets])
    errors = np.sqrt(np.diag(free_covariance(sets[0], Mixture(STRONG, lean.shares), told=True))).reshape(4, 4)
    some = STRONG > 0.02
    np.testing.assert_allclose(errors[some], fits.std(axis=0)[some], rtol=0.5)


def test_many_classes_are_not_checked():
    found = transition_from_repeated(draw(uniform_transition(40), 500, 3, 0)[0], 40, draws=0, strength=1.0)
    assert (found.identified, found.reason) == (False, "not checked for more than 32 classes")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: transition_from_repeated(np.array([0, 1, 2]), 3), r"ybar: expected several labels a sample, shape \(n, labels\), or a mask, got shape \(3,\)"),
        (lambda: transition_from_repeated([[0], [1]], 3), "ybar: expected samples with several labels, got one each"),
        (lambda: transition_from_repeated([[0, 1], []], 3), "ybar: expected a list of labels for every sample"),
        (lambda: transition_from_repeated([[0, 3], [1, 2]], 3), "ybar: expected class indices below 3, got 3"),
        (lambda: transition_from_repeated(np.array([[0.5, 1]]), 3), "ybar: expected class indices, or a boolean mask"),
        (lambda: transition_from_repeated([[0, 0]], 3, replacement=False), "each label once a sample, drawn without replacement"),
        (lambda: transition_from_repeated([[0, 0], [0, 0]], 3), "ybar: expected labels of at least two classes, got one class, 0"),
        (lambda: transition_from_repeated([list(range(6))] * 2, 8), "at most 5 labels a sample that are drawn without replacement, got 6"),
        (lambda: transition_from_repeated([[0, 1, 1]] * 9, 3, strength=-1), "strength: expected a number from 0"),
        (lambda: transition_from_repeated([[0, 1, 1]] * 9, 3, prior=[1, 2, 3]), "prior: expected probabilities that sum to 1"),
        (lambda: transition_from_repeated(np.ones((3, 3), dtype=bool), 3), "ybar: expected at least one class left a sample"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_q_is_measured_where_its_rows_are_well_known():
    rng = np.random.default_rng(0)
    matrix, y = np.array([[0, 0.7, 0.3], [0.2, 0, 0.8], [0.6, 0.4, 0]]), rng.integers(0, 3, 4000)
    ybar = np.stack([(rng.random(4000)[:, None] > matrix[y].cumsum(axis=1)).sum(axis=1) for _ in range(3)], axis=1)
    found = transition_from_repeated(ybar, 3, draws=2)
    assert found.identified
    assert found.measured
    assert not replace(found, row_error=0.05).measured  # told, but not well enough for a figure to be ok
    assert not replace(found, identified=False).measured
    assert not replace(found, standard_error=None).measured
