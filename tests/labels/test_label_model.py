"""What is believed of labels: from which words and counts, and how it is said."""

from __future__ import annotations

import numpy as np
import pytest

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.experiments import Trial
from wcll.labels import FAMILIES, Belief, class_weights, inverse_size_transition, make_complementary, uniform_transition
from wcll.labels.counts import solve_pi
from wcll.labels.transition import transition_from_pi
from wcll.losses import LOSSES

TOTALS = np.array([300.0, 200.0, 100.0])


@pytest.mark.parametrize(
    ("belief", "sources", "words"),
    [
        (Belief.of(None, TOTALS), ("assumed", "estimated"), "Q assumed: uniform labels; class shares estimated from label counts"),
        (Belief.of("uniform", TOTALS), ("assumed", "estimated"), "Q assumed: uniform labels; class shares estimated from label counts"),
        (Belief.of("inverse-size", TOTALS), ("estimated", "estimated"), "Q estimated from label counts, told the family: inverse-size; class shares estimated from label counts"),
        (Belief.of(inverse_size_transition([1, 2, 3]), TOTALS), ("given", "estimated"), "Q given; class shares estimated from label counts"),
        (Belief.true(uniform_transition(3), [0.2, 0.3, 0.5]), ("true", "true"), "Q true; class shares true"),
    ],
)  # fmt: skip
def test_a_belief_says_where_it_comes_from_and_survives_json(belief, sources, words):
    assert (belief.transition_source, belief.prior_source) == sources
    assert str(belief) == words
    again = Belief.from_dict(belief.to_dict())
    assert str(again) == words
    np.testing.assert_array_equal(again.transition, belief.transition)
    np.testing.assert_array_equal(again.prior, belief.prior)


@pytest.mark.parametrize(
    ("stored", "source", "family"),
    [("known", "true", None), ("assumed", "assumed", "uniform"), ("estimated", "estimated", "inverse-size")],
)
def test_beliefs_that_were_stored_before_families_had_names(stored, source, family):
    plain = {
        "transition": [[0, 1], [1, 0]],
        "transition_source": stored,
        "prior": None,
        "prior_source": "estimated",
        "totals": None,
    }
    belief = Belief.from_dict(plain)
    assert (belief.transition_source, belief.family) == (source, family)


def test_families_are_what_they_say():
    assert list(FAMILIES) == ["uniform", "inverse-size", "popularity", "popularity-noise", "offered", "free"]
    np.testing.assert_allclose(Belief.of("uniform", TOTALS).prior @ uniform_transition(3), TOTALS / 600)
    recovered = Belief.of("inverse-size", TOTALS)
    np.testing.assert_array_equal(recovered.transition, transition_from_pi(solve_pi(TOTALS / 600)))
    np.testing.assert_allclose(recovered.prior @ recovered.transition, TOTALS / 600, atol=1e-9)


def test_shares_need_an_inverse_but_a_belief_does_not():
    singular = np.full((3, 3), 1 / 3)
    belief = Belief.of(singular, TOTALS)
    assert belief.prior is None
    assert str(belief) == "Q given; class shares unknown, as Q has no inverse"
    with pytest.raises(InputError, match="transition: expected an invertible matrix"):
        belief.redrawn(TOTALS, 2, np.random.default_rng(0))


def test_what_is_told_has_no_error_and_what_was_counted_has_one():
    rng = np.random.default_rng(0)
    told = Belief.true(uniform_transition(3), [0.5, 0.3, 0.2])
    prior, inverses, priors = told.redrawn(TOTALS, 50, rng)
    assert (inverses.shape, priors.tolist()) == ((1, 3, 3), [prior.tolist()])
    for belief in (Belief.of("uniform", [300, 200, 0]), Belief(uniform_transition(3), "assumed")):
        prior, _, priors = belief.redrawn(np.array([300, 200, 0]), 2000, rng)
        np.testing.assert_allclose(prior, [-0.2, 0.2, 1.0], atol=1e-12)
        np.testing.assert_allclose(priors.mean(axis=0), prior, atol=0.01)
        np.testing.assert_allclose(priors.sum(axis=1), 1)
        assert priors.std(axis=0)[2] == pytest.approx(2 / 500, rel=0.1)  # also of the label that never came
    stored = Belief.from_dict(Belief.of("uniform", TOTALS).to_dict())
    assert len(stored.redrawn(TOTALS, 50, rng)[2]) == 50


def test_q_and_shares_from_counts_are_redrawn_together():
    belief = Belief.of("inverse-size", TOTALS)
    _, inverses, priors = belief.redrawn(TOTALS, 500, np.random.default_rng(0))
    again = np.linalg.inv(inverses)
    assert again.min() > -1e-8
    np.testing.assert_allclose(again.sum(axis=2), 1)
    np.testing.assert_allclose(np.median(again, axis=0), belief.transition, atol=0.02)
    np.testing.assert_allclose(np.median(priors, axis=0), belief.prior, atol=0.02)
    hopeless = Belief.of("inverse-size", TOTALS * 1e-4)  # sums of tiny weights: nearly any counts are possible
    _, inverses, priors = hopeless.redrawn(TOTALS, 500, np.random.default_rng(0))
    assert np.isnan(priors).all() or np.ptp(priors, axis=0).min() > 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Belief.of("unifrom", TOTALS), "transition: expected one of .* did you mean 'uniform'"),
        (lambda: Belief.of(None, [0, 9, 0]), "y: expected labels of at least two classes, got one class, 1, for every sample"),
        (lambda: Belief.of(np.eye(3)[[1, 1, 1]], TOTALS), "transition: expected some chance of the label 0, which occurs"),
        (lambda: Belief.of(None, [0, 0, 0]), "totals: expected label counts, one a class, none negative, not all 0"),
        (lambda: Belief.of(None, [np.nan, 1, 1]), "totals: expected label counts"),
        (lambda: Belief.of(None, [1, -1, 2]), "totals: expected label counts"),
        (lambda: Belief.of("inverse-size", []), "totals: expected label counts"),
        (lambda: Belief.given(np.eye(3)[[1, 2, 0]], [1, 2]), "transition: expected a 2 x 2 matrix, got 3 x 3"),
        (lambda: Belief.true(uniform_transition(2), [0.5, 0.5]).marginal, "the label counts that a belief was formed from"),
        (lambda: Belief.of(np.eye(3), TOTALS), "transition: expected chances of classes that a sample is not, got the identity"),
        (lambda: Belief.of(np.eye(4), TOTALS), "transition: expected a 3 x 3 matrix, got 4 x 4"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_what_a_loss_is_told_follows_from_the_belief():
    weights = class_weights("wcll", np.repeat([0, 1, 2], [3, 2, 1]), 3)
    belief = Belief.of("inverse-size", TOTALS).with_weights(weights)
    context = LOSSES["wcll"].told(belief)
    np.testing.assert_array_equal(context.weight, weights.values)
    np.testing.assert_array_equal(context.pi, weights.pi)
    assert LOSSES["log"].told(Belief.of(None, TOTALS)).weight is None
    np.testing.assert_allclose(LOSSES["wcll"].told(Belief.of(None, TOTALS)).weight, 1.0)  # without weights: FREE
    by_eq13 = {name for name, spec in LOSSES.items() if spec.auto_weights == "wcll"}
    assert by_eq13 == {"wcll", "wcll-penalty", "wcll-adaptive"}
    assert {spec.auto_weights for name, spec in LOSSES.items() if name not in by_eq13} == {None}


def test_the_estimator_keeps_its_belief(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    model = ComplementaryClassifier("forward", transition="inverse-size", max_epochs=1, random_state=0)
    model.fit(rng.normal(size=(90, 2)), make_complementary(y, random_state=0)).save(tmp_path / "m")
    assert str(model.belief_).startswith("Q estimated from label counts, told the family: inverse-size")
    assert str(ComplementaryClassifier.load(tmp_path / "m").belief_) == str(model.belief_)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"loss": "wcll"}, []),
        ({"loss": "wcll", "pi": "declared"}, ["the class sizes"]),
        ({"loss": "wcll", "pi": "declared", "weights": "wcll-random"}, []),
        ({"loss": "log", "pi": "declared"}, []),
        ({"loss": "forward"}, []),
        ({"loss": "forward", "assume": "true"}, ["the true Q"]),
        ({"loss": "forward", "assume": "inverse-size"}, ["the selector's family"]),
        ({"loss": "log", "assume": "inverse-size"}, []),
    ],
)
def test_trials_say_what_they_are_told(settings, told):
    assert Trial.of({"dataset": "digits", "lr": 0.1, "seed": 0, **settings}).told == told
