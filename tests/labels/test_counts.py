"""What complementary labels alone tell, class weights, and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from wcll.exceptions import InputError
from wcll.labels import (
    class_weights,
    imbalance_counts,
    inverse_size_transition,
    make_complementary,
    observed_marginal,
    resample,
)
from wcll.labels.counts import describe_labels, ordinary_prior, recover_inverse_size, solve_pi
from wcll.labels.encoding import to_mask
from wcll.labels.transition import complementary_prior
from wcll.labels.weights import WEIGHTINGS, eq13

SETTINGS = [(10, [0], 2), (10, [0, 1], 2.5), (10, [0, 2, 4, 6, 8], 5), (5, [0, 1, 2, 3], 10), (3, [2], 3), (2, [1], 4)]


def draw(k, minority, p, seed, transition="inverse-size", n_majority=2000):
    sizes = imbalance_counts(n_majority=n_majority, n_classes=k, minority=minority, p=p)
    y = np.repeat(np.arange(k), sizes)
    return sizes, make_complementary(y, transition, random_state=seed)


@given(st.integers(2, 12), st.floats(1, 100), st.integers(0, 10**6))
def test_exact_marginals_give_back_pi(k, p, seed):
    sizes = np.random.default_rng(seed).uniform(1, p, k)
    marginal = sizes / sizes.sum() @ inverse_size_transition(sizes)
    np.testing.assert_allclose(solve_pi(marginal), complementary_prior(sizes), rtol=1e-8)


@given(st.sampled_from([2, 3, 5, 10, 50]), st.sampled_from([0.2, 1.0, 10.0]), st.integers(0, 10**6))
def test_any_marginal_has_a_pi(k, spread, seed):
    """However unevenly labels fall, the fixed point is found and gives the marginal back."""
    marginal = np.random.default_rng(seed).dirichlet(np.full(k, spread)).clip(1e-6)
    marginal /= marginal.sum()
    sizes = 1 / solve_pi(marginal)
    np.testing.assert_allclose(sizes / sizes.sum() @ inverse_size_transition(sizes), marginal, atol=1e-10)


@pytest.mark.parametrize(("k", "minority", "p"), SETTINGS)
def test_recovery_is_within_its_standard_errors(k, minority, p):
    """Over 60 draws the recovered class shares and pi are centred, and scatter as their standard errors say."""
    sizes, _ = draw(k, minority, p, 0)
    recovered = [recover_inverse_size(draw(k, minority, p, seed)[1], k) for seed in range(60)]
    for name, truth in (("prior", sizes / sizes.sum()), ("pi", complementary_prior(sizes))):
        values = np.array([getattr(one, name).value for one in recovered])
        claimed = np.array([getattr(one, name).standard_error for one in recovered]).mean(axis=0)
        z = (values - truth) / claimed
        assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(60) + 0.25  # the fixed point has a small bias of its own
        if k > 2:  # with two classes the label gives the class away: no scatter given the sizes
            assert 0.5 < z.std() < 1.3  # labels are drawn with fixed class sizes: less scatter than i.i.d.


@pytest.mark.parametrize(("k", "minority", "p"), SETTINGS)
def test_the_prior_under_a_known_matrix_is_unbiased(k, minority, p):
    sizes, _ = draw(k, minority, p, 0)
    q = inverse_size_transition(sizes)
    estimates = [ordinary_prior(draw(k, minority, p, seed)[1], q) for seed in range(60)]
    z = np.array([(e.value - sizes / sizes.sum()) / e.standard_error for e in estimates])
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(60)
    assert all(np.isclose(e.value.sum(), 1) for e in estimates)
    assert all((e.distribution >= 0).all() for e in estimates)


def test_the_prior_under_uniform_labels_is_one_minus_k_minus_one_times_the_share():
    _, ybar = draw(10, [0], 2, 0, transition="uniform")
    marginal = observed_marginal(ybar, 10)
    prior = ordinary_prior(ybar, (np.ones((10, 10)) - np.eye(10)) / 9)
    np.testing.assert_allclose(prior.value, 1 - 9 * marginal.value, atol=1e-12)
    np.testing.assert_allclose(prior.standard_error, 9 * marginal.standard_error, rtol=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_statistics_of_masks_lists_indices_and_weights_agree(seed):
    rng = np.random.default_rng(seed)
    ybar, times = np.concatenate([np.arange(4), rng.integers(0, 4, 50)]), rng.integers(1, 4, 54)
    repeated = np.repeat(ybar, times)
    by_index = observed_marginal(ybar, 4)
    for other in (ybar.tolist(), [[label] for label in ybar], to_mask(ybar, 4)):
        again = observed_marginal(other, 4)
        np.testing.assert_allclose(again.value, by_index.value)
        np.testing.assert_allclose(again.standard_error, by_index.standard_error)
    for labels in (ybar, to_mask(ybar, 4)):
        weighted = observed_marginal(labels, 4, sample_weight=times)
        np.testing.assert_allclose(weighted.value, observed_marginal(repeated, 4).value, rtol=1e-10)
    assert describe_labels(ybar, 4).counts.value.tolist() == np.bincount(ybar).tolist()


def test_binomial_standard_errors():
    ybar = np.repeat([0, 1, 2], [50, 30, 20])
    expected = np.sqrt(np.array([0.5 * 0.5, 0.3 * 0.7, 0.2 * 0.8]) / 100)
    np.testing.assert_allclose(observed_marginal(ybar, 3).standard_error, expected)


def test_summary_says_why_recovery_is_missing():
    summary = describe_labels(np.array([0, 0, 1]), 3)
    assert summary.inverse_size is None
    assert "none of class 2" in summary.to_dict()["inverse_size_problem"]


# Weights


@pytest.mark.parametrize("scheme", list(WEIGHTINGS))
@pytest.mark.parametrize("pi", ["declared", "observed", "recovered"])
def test_weights_have_mean_one_over_the_training_set(scheme, pi):
    sizes, ybar = draw(10, [0, 1], 5, 0)
    weights = class_weights(scheme, ybar, 10, pi=pi, sizes=sizes, bias=0.05, random_state=3)
    assert np.asarray(weights)[ybar].mean() == pytest.approx(1)
    assert weights.scheme == scheme
    assert weights.pi_source == (pi if scheme in ("wcll", "wcll-bias") else None)


def test_eq13():
    sizes, ybar = draw(10, [0], 2, 0)
    declared = class_weights("wcll", ybar, 10, pi="declared", sizes=sizes)
    pi = oracles.complementary_prior(sizes.tolist())
    expected = np.array(oracles.eq13(pi))
    np.testing.assert_allclose(eq13(pi), expected, rtol=1e-12)
    np.testing.assert_allclose(declared.values / declared.values.sum(), expected, rtol=1e-12)
    np.testing.assert_allclose(expected, sizes / sizes.sum(), rtol=1e-12)  # the weight is the ordinary class size
    recovered = class_weights("wcll", ybar, 10, pi="recovered")
    np.testing.assert_allclose(recovered.values, declared.values, rtol=0.15)


def test_table5_weights():
    sizes, ybar = draw(10, [0], 2, 0)
    pi = complementary_prior(sizes)
    biased = class_weights("wcll-bias", ybar, 10, pi="declared", sizes=sizes, bias=0.05).values
    np.testing.assert_allclose(biased / biased.sum(), oracles.eq13((pi + 0.05).tolist()), rtol=1e-12)
    ratio = biased * pi
    assert ratio[0] / ratio[1] == pytest.approx(1.22, abs=0.005)
    one, same, other = (class_weights("wcll-random", ybar, 10, random_state=s).values for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_effective_number_and_inverse_frequency():
    ybar = np.repeat([0, 1, 2], [500, 30, 20])
    effective = class_weights("effective-number", ybar, 3).values
    expected = np.array(oracles.effective_number([500, 30, 20]))
    np.testing.assert_allclose(effective / effective[0], expected / expected[0], rtol=1e-12)
    inverse = class_weights("inverse-frequency", ybar, 3).values
    np.testing.assert_allclose(inverse, 550 / (3 * np.array([500, 30, 20])))


def test_a_class_that_never_occurs_has_weight_zero_under_observed_shares():
    for scheme in ("inverse-frequency", "effective-number"):
        assert class_weights(scheme, np.array([0, 1, 1]), 3).values[2] == 0


# Resampling


def test_over_and_under_sampling_balance():
    ybar = np.repeat([0, 1, 2], [50, 30, 20])
    x = np.arange(100)
    over_x, over = resample(x, ybar, strategy="over", random_state=0)
    assert np.bincount(over).tolist() == [50, 50, 50]
    assert set(over_x) == set(x)
    assert np.array_equal(ybar[over_x], over)
    under_x, under = resample(x, ybar, strategy="under", random_state=0)
    assert np.bincount(under).tolist() == [20, 20, 20]
    assert len(set(under_x)) == 60


def test_resampling_by_another_label():
    y, ybar = np.repeat([0, 1], [90, 10]), to_mask(np.tile([1, 0], 50), 2)
    x, mask = resample(np.arange(100), ybar, by=y, random_state=0)
    assert np.bincount(y[x]).tolist() == [90, 90]
    assert np.array_equal(mask, ybar[x])


ONE = np.array([0, 1, 1, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: observed_marginal(np.zeros(5, dtype=int), 3), "labels of at least two classes, got one class, 0, for every"),
        (lambda: observed_marginal([[0, 1], [0], [2, 0]], 3), "labels of at least two classes, got one class, 0, for every"),
        (lambda: observed_marginal(np.array([0, 5]), 3), "ybar: expected class indices below 3, got 5"),
        (lambda: observed_marginal(ONE, 3, sample_weight=[1, 2]), r"sample_weight: expected shape \(4,\), got \(2,\)"),
        (lambda: ordinary_prior(ONE, np.full((3, 3), 1 / 3)), "transition: expected an invertible matrix, got rank 1"),
        (lambda: ordinary_prior(ONE, np.full((2, 2), 1 / 2)), "transition: expected an invertible matrix"),
        (lambda: recover_inverse_size(np.array([0, 1]), 3), "every class to occur .*, got none of class 2"),
        (lambda: class_weights("wcl", ONE, 3), "weights: expected one of .* did you mean 'wcll'"),
        (lambda: class_weights([1.0, 1.0], ONE, 3), r"weights: expected shape \(3,\), got \(2,\)"),
        (lambda: class_weights([1.0, -1.0, 1.0], ONE, 3), "weights: expected no negative weight, got -1 for class 1"),
        (lambda: class_weights([0.0, 0.0, 0.0], ONE, 3), "weights: expected at least one positive weight, got all zero"),
        (lambda: class_weights(["a", "b", "c"], ONE, 3), "weights: expected numbers, got list"),
        (lambda: class_weights("wcll", ONE, 3, pi="declared"), "sizes: expected ordinary class sizes for pi='declared'"),
        (lambda: class_weights("wcll", ONE, 3, pi="declraed"), "pi: expected one of .* did you mean 'declared'"),
        (lambda: class_weights("wcll", ONE, 3, pi="declared", sizes=[1, 2]), "sizes: expected 3 class sizes, got 2"),
        (lambda: class_weights("wcll-bias", ONE, 3, bias=-1), "bias: expected one that leaves every pi positive, got -1"),
        (lambda: class_weights("effective-number", ONE, 3, beta=1.0), "beta: expected a share from 0 to below 1"),
        (lambda: resample(np.zeros((3, 2)), ONE), "ybar: expected 3 samples as in X, got 4"),
        (lambda: resample(ONE, ONE, by=[0, 1]), "by: expected 4 samples as in ybar, got 2"),
        (lambda: resample(ONE, ONE, strategy="ovr"), "strategy: expected one of 'over', 'under', got 'ovr'"),
        (lambda: resample(ONE, to_mask(ONE, 3)), "by: expected one label a sample"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
