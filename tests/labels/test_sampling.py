"""Imbalance, transition matrices and drawing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from wcll._random import STAGES, stream
from wcll.exceptions import InputError
from wcll.labels import (
    biased_transition,
    imbalance_counts,
    inverse_size_transition,
    make_complementary,
    make_imbalance,
    noisy_transition,
    shifted_transition,
    to_pairs,
    uniform_transition,
)
from wcll.labels.encoding import check_mask, to_mask
from wcll.labels.imbalance import long_tailed_counts, step_counts
from wcll.labels.transition import TRANSITIONS, complementary_prior, make_transition, select_by_marginal, selected_joint

classes = st.integers(2, 12)
seeds = st.integers(0, 2**31)


@st.composite
def settings_of_eq6(draw):
    k = draw(classes)
    minority = draw(st.sets(st.integers(0, k - 1), min_size=1, max_size=k - 1))
    return k, sorted(minority), draw(st.floats(0.5, 100)), draw(st.integers(100, 10**6))


@given(settings_of_eq6())
def test_eq6_to_rounding(setting):
    k, minority, p, n = setting
    counts = imbalance_counts(n, n_classes=k, minority=minority, p=p)
    exact = np.array(oracles.imbalance_sizes(n, k, minority, p))
    assert counts.sum() == n
    assert np.abs(counts - exact).max() < 1


def test_eq6_from_the_size_of_a_majority_class():
    counts = imbalance_counts(n_majority=2000, n_classes=10, minority=[0, 1], p=2.5)
    assert counts.tolist() == [800, 800, *[2000] * 8]


@given(settings_of_eq6())
def test_eq7_to_rounding(setting):
    k, minority, p, n = setting
    sizes = oracles.imbalance_sizes(n, k, minority, p)
    np.testing.assert_allclose(complementary_prior(sizes), oracles.complementary_prior(sizes), rtol=1e-12)


def test_profiles():
    assert long_tailed_counts(n_majority=1000, n_classes=3, p=100).tolist() == [1000, 100, 10]
    assert step_counts(n_majority=50, n_classes=5, p=5).tolist() == [50, 50, 10, 10, 10]


@given(classes, seeds)
def test_make_imbalance_takes_what_was_asked_for(k, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, 500)
    have = np.bincount(y, minlength=k)
    wanted = rng.integers(0, have + 1)
    kept = make_imbalance(y, wanted, random_state=seed)
    assert np.array_equal(np.bincount(y[kept], minlength=k), wanted)
    assert (np.diff(kept) > 0).all()


@given(classes, seeds, st.floats(1, 50))
def test_transitions_are_stochastic_and_never_name_the_true_class(k, seed, p):
    sizes = imbalance_counts(n_majority=1000, n_classes=k, minority=[0], p=p)
    for name in TRANSITIONS:
        matrix = make_transition(name, sizes, random_state=seed)
        np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
        assert (np.diag(matrix) == 0).all()
        assert (matrix >= 0).all()


@given(st.integers(3, 8), seeds, st.floats(0, 0.6))
def test_a_shifted_matrix_is_as_far_off_as_asked(k, seed, distance):
    matrix = inverse_size_transition(imbalance_counts(n_majority=1000, n_classes=k, minority=[0], p=3))
    moved = shifted_transition(matrix, distance=distance, random_state=seed)
    np.testing.assert_allclose(moved.sum(axis=1), 1, rtol=1e-12)
    assert (moved >= 0).all()
    assert (np.diag(moved) == 0).all()
    apart = np.abs(moved - matrix).sum(axis=1) / 2
    asked = np.isclose(apart, distance)
    assert (asked | np.isclose(apart, 0)).all()  # a row whose last class would have to give stays as it is
    assert asked.all() or distance > 0.2


def test_a_shift_of_two_classes_or_of_everything():
    assert np.array_equal(shifted_transition(uniform_transition(2), distance=0.2), uniform_transition(2))
    with pytest.raises(InputError, match="distance: expected a share from 0 to below 1, got 1"):
        shifted_transition(uniform_transition(3), distance=1)


def test_inverse_size_is_the_oracles():
    sizes = [100, 300, 50, 70]
    np.testing.assert_allclose(inverse_size_transition(sizes), oracles.inverse_size_transition(sizes), rtol=1e-12)
    pi = complementary_prior(sizes)
    k = len(sizes)
    inverse = np.diag(1 / pi) @ (np.ones((k, k)) / (k - 1) - np.eye(k)) @ np.diag(1 - pi)
    np.testing.assert_allclose(np.linalg.inv(inverse_size_transition(sizes)), inverse, atol=1e-12)


@pytest.mark.parametrize(
    ("k", "minority", "p", "ratio"),
    [(10, [0], 2, 2.104), (10, [0, 2, 4, 6, 8], 5, 5.74), (5, [0, 1, 2, 3], 10, 26.9)],
)
def test_the_inverse_size_marginal_is_not_eq7(k, minority, p, ratio):
    sizes = imbalance_counts(n_majority=1000, n_classes=k, minority=minority, p=p)
    marginal = sizes / sizes.sum() @ inverse_size_transition(sizes)
    majority = next(j for j in range(k) if j not in minority)
    declared = complementary_prior(sizes)
    assert declared[minority[0]] / declared[majority] == pytest.approx(p)
    assert marginal[minority[0]] / marginal[majority] == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize(("strength", "masses"), [("weak", (0.45, 0.30, 0.25)), ("strong", (0.75, 0.24, 0.01))])
@pytest.mark.parametrize("k", [2, 3, 4, 10, 11])
def test_biased_groups_share_the_mass(k, strength, masses):
    matrix = biased_transition(k, strength=strength, random_state=0)
    groups = min(3, k - 1)
    expected = np.array(masses[:groups]) / sum(masses[:groups])
    for row in matrix:
        values, counts = np.unique(row[row > 0].round(12), return_counts=True)
        assert np.allclose(np.sort(values * counts), np.sort(expected))
        assert counts.max() - counts.min() <= 1


def test_noise_names_the_true_class():
    matrix = noisy_transition(uniform_transition(4), rate=0.1)
    assert np.allclose(np.diag(matrix), 0.1)
    assert np.allclose(matrix.sum(axis=1), 1)


def chi_square(y, ybar, matrix):
    """The statistic of labels against Q, and its degrees of freedom."""
    k = len(matrix)
    table = np.bincount(y * k + ybar, minlength=k * k).reshape(k, k)
    expected = np.bincount(y, minlength=k)[:, None] * matrix
    possible = expected > 0
    assert table[~possible].sum() == 0
    return ((table - expected)[possible] ** 2 / expected[possible]).sum(), possible.sum() - k


@pytest.mark.parametrize("name", [*TRANSITIONS, "noisy"])
def test_drawn_labels_follow_the_matrix(name):
    sizes = imbalance_counts(n_majority=2000, n_classes=6, minority=[1, 4], p=5)
    y = np.repeat(np.arange(6), sizes)
    matrix = make_transition("biased-weak" if name == "noisy" else name, sizes, random_state=0)
    if name == "noisy":
        matrix = noisy_transition(matrix, rate=0.2)
    statistics = [chi_square(y, make_complementary(y, matrix, random_state=seed), matrix) for seed in range(20)]
    total, freedom = map(sum, zip(*statistics, strict=True))
    assert abs(total - freedom) < 4 * np.sqrt(2 * freedom)  # 20 seeds together: four standard deviations


@pytest.mark.parametrize("k", [2, 3, 10])
def test_marginal_selection_hits_eq7(k):
    sizes = imbalance_counts(n_majority=1000, n_classes=k, minority=[0], p=3)
    target = complementary_prior(sizes)
    ybar = make_complementary(np.arange(20_000) % k, random_state=0)
    kept = select_by_marginal(ybar, target, random_state=0)
    counts = np.bincount(ybar[kept], minlength=k)
    assert np.abs(counts - len(kept) * target).max() < 1
    assert len(kept) > 0.9 * (np.bincount(ybar) / target).min()
    few = select_by_marginal(ybar, target, n=100, random_state=0)
    assert len(few) == 100


@given(classes, seeds)
def test_what_is_kept_tends_to_the_selected_joint(k, seed):
    rng = np.random.default_rng(seed)
    matrix, target, prior = biased_transition(k, random_state=seed), rng.dirichlet([5] * k), rng.dirichlet([5] * k)
    joint = selected_joint(matrix, target, prior)
    np.testing.assert_allclose(joint.sum(axis=0), target, rtol=1e-12)
    np.testing.assert_allclose(selected_joint(matrix, prior @ matrix, prior), prior[:, None] * matrix, rtol=1e-12)
    y = rng.choice(k, size=20_000, p=prior)
    ybar = make_complementary(y, matrix, random_state=seed)
    kept = select_by_marginal(ybar, target, random_state=seed)
    found = np.bincount(y[kept] * k + ybar[kept], minlength=k * k).reshape(k, k) / len(kept)
    assert np.abs(found - joint).max() < 6 * np.sqrt(0.25 / len(kept))


@given(classes.filter(lambda k: k > 2), seeds)
@settings(max_examples=30)
def test_several_labels(k, seed):
    y = np.random.default_rng(seed).integers(0, k, 200)
    for n_labels in range(2, k):
        mask = make_complementary(y, n_labels=n_labels, n_classes=k, random_state=seed)
        assert (mask.sum(axis=1) == n_labels).all()
        assert not mask[np.arange(200), y].any()


def test_random_set_sizes_follow_their_law():
    k, n = 5, 40_000
    mask = make_complementary(np.zeros(n, dtype=int), n_labels="random", n_classes=k, random_state=0)
    observed = np.bincount(mask.sum(axis=1), minlength=k)[1:] / n
    np.testing.assert_allclose(observed, np.array([4, 6, 4, 1]) / 15, atol=0.01)


def test_several_labels_are_drawn_without_replacement_in_proportion():
    """P(first two of three in either order) by hand: q_a q_b / (1 - q_a) + q_b q_a / (1 - q_b)."""
    q = np.array([0.0, 0.6, 0.3, 0.1])
    matrix = np.vstack([q, uniform_transition(4)[1:]])
    mask = make_complementary(np.zeros(50_000, dtype=int), matrix, n_labels=2, random_state=0)
    for a, b in ((1, 2), (1, 3), (2, 3)):
        chance = q[a] * q[b] / (1 - q[a]) + q[b] * q[a] / (1 - q[b])
        assert (mask[:, a] & mask[:, b]).mean() == pytest.approx(chance, abs=0.01)


def test_to_mask_and_pairs():
    mask = to_mask([[0], [1, 2], [2]], 4)
    assert mask.sum() == 4
    assert np.array_equal(to_mask(np.array([0, 3]), 4), [[1, 0, 0, 0], [0, 0, 0, 1]])
    assert np.array_equal(to_mask([0, 3], 4), to_mask([[0], [3]], 4))
    assert np.array_equal(to_mask(mask, 4), mask)
    sample, label, weight = to_pairs(mask)
    assert sample.tolist() == [0, 1, 1, 2]
    assert label.tolist() == [0, 1, 2, 2]
    assert weight.tolist() == [1, 0.5, 0.5, 1]


@given(seeds, st.sampled_from(STAGES), st.sampled_from(STAGES))
def test_streams_are_named(seed, one, other):
    assert (stream(seed, one).random() == stream(seed, other).random()) == (one == other)


def test_one_more_draw_in_one_stage_moves_nothing_elsewhere():
    y = np.arange(1000) % 4
    before = make_complementary(y, random_state=7)
    make_imbalance(y, [10, 10, 10, 10], random_state=7)
    biased_transition(4, random_state=7)
    assert np.array_equal(before, make_complementary(y, random_state=7))
    generator = np.random.default_rng(0)
    first, second = (make_complementary(y, random_state=generator) for _ in range(2))
    assert not np.array_equal(first, second)


Y = np.array([0, 1, 2, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: imbalance_counts(n_classes=3, minority=[0], p=2), "n: expected exactly one of n and n_majority, got neither"),
        (lambda: imbalance_counts(9, n_majority=3, n_classes=3, minority=[0], p=2), "exactly one .* got both"),
        (lambda: imbalance_counts(9, n_classes=3, minority=[0], p=0), "p: expected a number above 0, got 0"),
        (lambda: imbalance_counts(9, n_classes=3, minority=[0], p=-1), "p: expected a number above 0, got -1"),
        (lambda: imbalance_counts(9, n_classes=3, minority=[3], p=2), "minority: expected classes from 0 to 2, got 3"),
        (lambda: imbalance_counts(-9, n_classes=3, minority=[0], p=2), "n: expected a number above 0, got -9"),
        (lambda: make_imbalance(Y, [1, 5, 1]), "counts: expected at most 2 samples of class 1, got 5"),
        (lambda: make_imbalance(Y, [1, -1, 1]), "counts: expected one non-negative integer a class"),
        (lambda: make_imbalance(Y, [1, 1]), "y: expected class indices below 2, got 2"),
        (lambda: make_complementary(Y.astype(float)), "y: expected integer class indices, got float64"),
        (lambda: make_complementary(Y - 1), "y: expected class indices from 0, got -1"),
        (lambda: make_complementary([]), "y: expected at least one sample, got none"),
        (lambda: make_complementary(Y, "unifrom"), "transition: expected one of .* did you mean 'uniform'"),
        (lambda: make_complementary(Y, np.ones((3, 3))), "transition: expected rows that sum to 1, got 3 in row 0"),
        (lambda: make_complementary(Y, np.ones((3, 2))), r"transition: expected a square matrix, got shape \(3, 2\)"),
        (lambda: make_complementary(Y, n_labels=3), r"n_labels: expected from 1 to 2 \(one class must remain\), got 3"),
        (lambda: make_complementary(Y, n_labels=0), "n_labels: expected from 1 to 2"),
        (lambda: make_complementary(Y, n_labels="all"), "n_labels: expected a whole number or 'random', got 'all'"),
        (lambda: make_complementary(Y, n_labels=1.5), "n_labels: expected a whole number or 'random', got 1.5"),
        (lambda: make_complementary(Y, np.roll(np.eye(3), 1, 0), n_labels=2), "at most 1 labels for class 0"),
        (lambda: make_complementary([0, 2], "inverse-size"), "y: expected samples of every class, got none of class 1"),
        (lambda: make_complementary(Y, random_state="x"), "random_state: expected an integer"),
        (lambda: complementary_prior([1, 0]), "sizes: expected one positive class size a class"),
        (lambda: biased_transition(4, strength="medium"), "strength: expected one of 'weak', 'strong'"),
        (lambda: noisy_transition(np.eye(2), rate=1.0), "rate: expected a share from 0 to below 1"),
        (lambda: uniform_transition(1), "n_classes: expected at least 2, got 1"),
        (lambda: select_by_marginal(Y, [0.5, 0.5, 0.5]), "target: expected probabilities that sum to 1, got a sum of 1.5"),
        (lambda: selected_joint(np.eye(3), [0.2, 0.4, 0.4], [0.5, 0.5, 0]), "target: expected no share of the label 2, which is never drawn, got 0.4"),
        (lambda: select_by_marginal(Y, [0.25, 0.5, 0.25], n=8), "counts: expected at most 1 samples of class 0, got 2"),
        (lambda: to_mask([[0], []], 3), "ybar: expected at least one label a sample, got none for sample 1"),
        (lambda: to_mask([[0], [3]], 3), "ybar: expected class indices below 3, got 3"),
        (lambda: to_mask([[0, 1, 2], [1]], 3), "at least one class left a sample, got a full mask row for sample 0"),
        (lambda: check_mask(np.zeros((2, 3)), 3), "an empty mask row for sample 0"),
        (lambda: check_mask(np.full((2, 3), 0.5), 3), "ybar: expected a mask of 0 and 1"),
        (lambda: check_mask(np.ones((2, 4)), 3), r"ybar: expected a mask of shape \(n, 3\), got shape \(2, 4\)"),
        (lambda: stream(0, "label"), "stage: expected one of .* did you mean 'labels'"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
