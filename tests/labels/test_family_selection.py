"""Families that labels contradict: by counts, and by sets of labels that were not fitted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import check_grad

from wcll.labels import FAMILIES, biased_transition, make_complementary, uniform_transition
from wcll.labels.encoding import label_records
from wcll.labels.families import told_by_counts
from wcll.labels.family_selection import _model, _value_and_slope, by_counts, by_sets, fitted
from wcll.labels.repeated import Lean, posterior, transition_from_sets
from wcll.labels.transition import transition_from_pi

Q = np.array([0.4, 0.3, 0.12, 0.1, 0.08])
TRUTHS = {
    "uniform": uniform_transition(5),
    "popularity": FAMILIES["popularity"].matrix(popularity=Q),
    "popularity-noise": FAMILIES["popularity-noise"].matrix(popularity=Q, rate=0.15),
    "habits": biased_transition(5, strength="strong", random_state=1),
}


def drawn(matrix, n, seed, labels=3, shares=None):
    """Independent labels, (n, labels)."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(matrix), n, p=shares)
    return (rng.random((n, labels, 1)) > matrix.cumsum(axis=1)[y][:, None]).sum(axis=2).clip(max=len(matrix) - 1)


@cache
def states(truth, seed, n=3000):
    sets = label_records(drawn(TRUTHS[truth], n, seed), list("abcde")).sets()
    found = by_sets(by_counts(sets.totals), sets, transition_from_sets(sets, draws=0))
    return {fit.name: fit.state for fit in found}


def test_counts_contradict_uniform_labels_alone():
    fits = by_counts(np.array([70.0, 10, 10, 10]), ["fir", "oak", "elm", "ash"])
    assert [fit.name for fit in fits] == list(told_by_counts())
    assert (fits[0].state, fits[0].line) == (
        "contradicted",
        "'fir' is 70 % of the labels; uniform labels allow at most 33 %",
    )
    assert {fit.state for fit in fits[1:4]} == {"can't be checked"}
    assert all(fit.line == "counts fit it by construction" for fit in fits[1:4])


def test_a_family_that_cannot_give_the_counts_says_so():
    by_name = {fit.name: fit for fit in by_counts(np.array([50.0, 50, 50, 0]))}
    assert by_name["inverse-size"].state == "can't be fitted"
    assert "every class to occur" in by_name["inverse-size"].line
    many = {fit.name: fit.state for fit in by_counts(np.full(60, 10.0))}
    assert many["offered"] == "can't be fitted"


@pytest.mark.parametrize("truth", ["uniform", "popularity", "popularity-noise"])
def test_the_family_that_made_the_labels_is_not_contradicted(truth):
    assert {states(truth, seed)[truth] for seed in range(2)} == {"not contradicted"}


def test_three_labels_a_sample_tell_families_apart():
    assert states("popularity", 0)["uniform"] == "contradicted"
    assert states("popularity-noise", 0)["uniform"] == "contradicted"
    assert states("popularity-noise", 0)["popularity"] == "contradicted"
    assert set(states("habits", 0).values()) == {"contradicted"}


def test_inverse_size_ties_the_class_shares():
    """Its Q is one of popularity; class shares that are not one over it contradict it."""
    sets = label_records(drawn(TRUTHS["popularity"], 8000, 0), list("abcde")).sets()
    found = by_sets(by_counts(sets.totals), sets, transition_from_sets(sets, draws=0))
    assert {fit.name: fit.state for fit in found}["inverse-size"] == "contradicted"
    own = FAMILIES["inverse-size"].matrix(pi=Q)
    sets = label_records(drawn(own, 8000, 0, shares=(1 / Q) / (1 / Q).sum()), list("abcde")).sets()
    found = by_sets(by_counts(sets.totals), sets, transition_from_sets(sets, draws=0))
    assert {fit.name: fit.state for fit in found}["inverse-size"] == "not contradicted"


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("name", told_by_counts())
def test_slopes_are_those_of_the_likelihood(name, replacement):
    matrix = TRUTHS["popularity"]
    y = np.random.default_rng(0).integers(0, 5, 60)
    ybar = drawn(matrix, 60, 0) if replacement else make_complementary(y, matrix, n_labels=2, random_state=0)
    sets = label_records(ybar, list("abcde")).sets()
    totals = sets.totals / sets.totals.sum()
    lean = Lean(transition_from_pi(totals), 5.0, np.full(5, 0.2), 7.0)
    model, first = _model(name, np.log(totals), totals)
    at = first + 0.1 * np.random.default_rng(1).standard_normal(len(first))
    assert check_grad(*(lambda x, i=i: _value_and_slope(x, sets, model, lean)[i] for i in (0, 1)), at) < 1e-4


@pytest.mark.parametrize("name", ["popularity", "popularity-noise", "inverse-size"])
def test_models_are_members_of_their_families(name):
    q, more = np.log(Q), {"rate": 0.5 / (1 + np.exp(3))} if name == "popularity-noise" else {}
    model, first = _model(name, q, Q)
    key = "pi" if name == "inverse-size" else "popularity"
    np.testing.assert_allclose(model(first).transition, FAMILIES[name].matrix(**{key: Q}, **more))


def test_fits_are_no_worse_than_the_truth():
    sets = label_records(drawn(TRUTHS["popularity"], 4000, 3), list("abcde")).sets()
    own = fitted("popularity", sets)
    truth = type(own)(TRUTHS["popularity"], np.full(5, 0.2))
    value = [float(sets.weight @ posterior(sets, at)[1]) for at in (own, truth)]
    assert 0 <= value[0] - value[1] < 20
    np.testing.assert_allclose(own.transition, truth.transition, atol=0.06)


def test_too_few_samples_are_not_split():
    sets = label_records([["a", "b"], ["c", "c"]]).sets()
    fits = by_counts(sets.totals)
    assert by_sets(fits, sets, transition_from_sets(sets, draws=0)) == fits


@pytest.mark.filterwarnings("error")
def test_few_labels_send_nothing_to_infinity():
    sets = label_records([[1, 1, 0], [0, 0, 0], [3, 2, 3], [2, 2, 3]]).sets()
    for name in told_by_counts():
        found = fitted(name, sets)
        np.testing.assert_allclose(found.transition.sum(axis=1), 1)
        assert np.isfinite(found.prior).all()
