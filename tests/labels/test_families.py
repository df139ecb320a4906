"""Families of Q: what each is, what counts tell of it, its errors, and that it is one place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.experiments.trial import BELIEFS
from wcll.labels import FAMILIES, Belief, Family, make_complementary, noisy_transition, uniform_transition
from wcll.labels.families import told_by_counts
from wcll.labels.transition import transition_from_pi

COUNTED = told_by_counts()
FITTED = [name for name in COUNTED if name != "uniform"]  # those whose Q depends on the counts


def popularity(k, seed):
    """Weights that no family finds impossible."""
    return np.random.default_rng(seed).uniform(1, 3, k)


def parameters(name, k, seed):
    q = popularity(k, seed)
    q = q / q.sum()
    return {
        "uniform": {"n_classes": k},
        "inverse-size": {"pi": q},
        "popularity": {"popularity": q},
        "popularity-noise": {"popularity": q, "rate": 0.03},
        "offered": {"popularity": q, "offered": min(4, k)},
        "free": {"transition": noisy_transition(transition_from_pi(q), rate=0.1)},
    }[name]


def exact_counts(name, given, q):
    """Label shares of a family, with the class shares that it assumes."""
    k = len(q)
    if name == "inverse-size":
        shares = 1 / given["pi"] / (1 / given["pi"]).sum()
    elif name == "offered":
        shares = np.full(k, 1 / k)
    else:
        pop = given.get("popularity", np.full(k, 1 / k))
        shares = (1 - pop) / (k - 1)
    return shares @ q, shares


many = given(st.integers(3, 8), st.integers(0, 10**6))
few = settings(max_examples=20, deadline=None)


def test_every_family_says_what_it_is():
    assert set(COUNTED) == set(FAMILIES) - {"free"}
    assert set(BELIEFS) == {*COUNTED, "true"}
    for name, family in FAMILIES.items():
        assert family.name == name
        assert "\n" not in family.words
        assert family.words == family.words.strip()


@pytest.mark.parametrize("name", list(FAMILIES))
@many
@few
def test_rows_sum_to_one(name, k, seed):
    q = FAMILIES[name].matrix(**parameters(name, k, seed))
    assert (q >= 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1)
    if name not in ("free", "popularity-noise"):
        assert not np.diag(q).any()


@pytest.mark.parametrize("name", COUNTED)
@many
@few
def test_counts_at_exact_shares_give_the_parameters_back(name, k, seed):
    told = parameters(name, k, seed)
    q = FAMILIES[name].matrix(**told)
    counts, shares = exact_counts(name, told, q)
    found = FAMILIES[name].fit(1000 * counts)
    np.testing.assert_allclose(found.transition, q, atol=1e-6)
    for key, value in told.items():
        np.testing.assert_allclose(found.parameters[key], value, atol=1e-6)
    if found.shares is not None:
        np.testing.assert_allclose(found.shares, shares, atol=1e-6)
        np.testing.assert_allclose(found.shares @ found.transition, counts, atol=1e-7)
    np.testing.assert_allclose(FAMILIES[name].matrix(**found.parameters), found.transition, atol=1e-9)


@pytest.mark.parametrize("name", COUNTED)
@many
@few
def test_permuted_classes_permute_the_estimate(name, k, seed):
    rng = np.random.default_rng(seed)
    counts, order = rng.integers(100, 200, k).astype(float), rng.permutation(k)
    one, other = FAMILIES[name].fit(counts), FAMILIES[name].fit(counts[order])
    np.testing.assert_allclose(other.transition, one.transition[np.ix_(order, order)], atol=1e-7)


@pytest.mark.parametrize("name", FITTED)
def test_the_standard_error_covers(name):
    told = parameters(name, 5, 3)
    q = FAMILIES[name].matrix(**told)
    counts, _ = exact_counts(name, told, q)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(2000, counts / counts.sum(), size=30)
    found = [FAMILIES[name].estimate(one, draws=30, random_state=i) for i, one in enumerate(drawn)]
    wrong = ~np.eye(5, dtype=bool)
    inside = [np.abs(one.transition - q)[wrong] <= 2 * one.standard_error[wrong] for one in found]
    assert 0.85 < np.mean(inside) < 0.995
    assert not FAMILIES["uniform"].estimate(drawn[0], draws=5).standard_error.any()


@pytest.mark.parametrize("name", FITTED)
def test_redrawn_inverses_are_those_of_what_counts_would_tell(name):
    marginals = np.random.default_rng(0).dirichlet(np.full(4, 200.0), 5)
    inverses, shares = FAMILIES[name].redrawn(marginals)
    slow = [FAMILIES[name].fit(one) for one in marginals]
    np.testing.assert_allclose(inverses, [np.linalg.inv(one.transition) for one in slow], rtol=1e-6)
    np.testing.assert_allclose(shares, [one.shares for one in slow], rtol=1e-6)


def test_popularity_is_label_shares_without_the_true_class():
    found = FAMILIES["popularity"].fit(np.array([500.0, 300.0, 200.0]))
    np.testing.assert_allclose(found.transition, [[0, 0.6, 0.4], [5 / 7, 0, 2 / 7], [0.625, 0.375, 0]])
    np.testing.assert_allclose(found.shares, [0.25, 0.35, 0.4])


def test_popularity_where_class_shares_are_told():
    q, prior = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    counts = prior @ transition_from_pi(q)
    found = FAMILIES["popularity"].fit(counts, prior=prior)
    np.testing.assert_allclose(found.parameters["popularity"], q, atol=1e-9)
    with pytest.raises(InputError, match="prior: expected class shares that leave room for every label"):
        FAMILIES["popularity"].fit(np.array([0.9, 0.06, 0.04]), prior=[0.5, 0.3, 0.2])


def test_a_class_that_is_never_named():
    belief = Belief.of("popularity", [5, 3, 0])
    assert belief.transition[:, 2].tolist() == [0, 0, 0]
    np.testing.assert_allclose(belief.prior, [3 / 16, 5 / 16, 1 / 2])


# Options


def test_offered_options_are_as_the_protocol_says():
    """Against a simulation: 3 of 5 shown at random, one of the wrong ones named in proportion to w."""
    w, rng, n = np.array([5.0, 3, 2, 1, 1]), np.random.default_rng(0), 40_000
    y = rng.integers(0, 5, n)
    shown = np.argsort(rng.random((n, 5)), axis=1)[:, :3]
    chance = w[shown] * (shown != y[:, None])
    place = (rng.random((n, 1)) > (chance / chance.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    ybar = shown[np.arange(n), place]
    q = FAMILIES["offered"].matrix(popularity=w, offered=3)
    table = np.zeros((5, 5))
    np.add.at(table, (y, ybar), 1)
    np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), q, atol=0.02)
    unlogged = FAMILIES["offered"].fit(np.bincount(ybar, minlength=5).astype(float), offered=3)
    np.testing.assert_allclose(unlogged.transition, q, atol=0.03)


@many
@few
def test_all_options_are_popularity_and_equal_ones_uniform(k, seed):
    w, offered = popularity(k, seed), FAMILIES["offered"].matrix
    np.testing.assert_allclose(offered(popularity=w, offered=k), transition_from_pi(w), atol=1e-12)
    np.testing.assert_allclose(offered(popularity=np.ones(k), offered=2), uniform_transition(k), atol=1e-12)


# Users


def test_the_estimator_takes_every_family_that_counts_tell(tmp_path):
    rng = np.random.default_rng(0)
    X, ybar = rng.normal(size=(90, 2)), make_complementary(rng.integers(0, 3, 90), random_state=0)
    for name in COUNTED:
        model = ComplementaryClassifier("forward", transition=name, max_epochs=1, random_state=0).fit(X, ybar)
        np.testing.assert_array_equal(model.transition_, Belief.of(name, np.bincount(ybar)).transition)
        assert name in str(model.belief_)
    again = Belief.from_dict(model.belief_.to_dict())
    assert str(again) == str(model.belief_)


def test_what_is_assumed_of_shares_is_said():
    assert str(Belief.of("popularity", [3, 2, 1])) == (
        "Q estimated from label counts, told the family: popularity; class shares assumed"
    )
    belief = Belief.of("popularity", [300, 200, 100])
    prior, inverses, priors = belief.redrawn(np.array([3.0, 2, 1]), 400, np.random.default_rng(0))
    np.testing.assert_allclose(np.median(np.linalg.inv(inverses), axis=0), belief.transition, atol=0.02)
    np.testing.assert_allclose(priors.mean(axis=0), prior, atol=0.01)
    assert priors.std(axis=0).max() > 0.005


def test_a_new_family_is_one_place(monkeypatch):
    class Next(Family):
        name, words = "next", "the class after the true one"

        def matrix(self, **parameters):
            return np.roll(np.eye(parameters["n_classes"]), 1, axis=1)

        def fit(self, totals, *, pairs=None):
            return self._found(self.matrix(n_classes=len(totals)), np.roll(totals / totals.sum(), -1))

    monkeypatch.setitem(FAMILIES._items, "next", Next())
    assert "next" in told_by_counts()
    belief = Belief.of("next", [5, 3, 2])
    np.testing.assert_allclose(belief.prior @ belief.transition, [0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Belief.of("free", [1, 2, 3]), "transition: expected one of 'uniform', .*, got 'free'"),
        (lambda: FAMILIES["free"].fit(np.array([1.0, 2])), "transition: expected a family that label counts tell, got 'free'"),
        (lambda: FAMILIES["popularity-noise"].fit(np.array([1.0, 2]), rate=1.0), "rate: expected a share from 0 to below 1"),
        (lambda: FAMILIES["offered"].fit(np.array([8.0, 1, 1, 1]), offered=2), "totals: expected no class with more than 37.5% of the labels, 2 of 4"),
        (lambda: FAMILIES["offered"].matrix(popularity=np.ones(4), offered=5), "offered: expected from 2 to 4 classes, got 5"),
        (lambda: FAMILIES["offered"].matrix(popularity=np.ones(100), offered=4), "offered: expected at most 200000 sets of options, got 3921225 sets"),
        (lambda: FAMILIES["popularity"].estimate([0, 0]), "totals: expected label counts"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
