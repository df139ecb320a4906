"""What a wrong Q costs: against slow oracles, by hand, whatever the order of classes, and for very many of them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.labels import (
    FAMILIES,
    biased_transition,
    family_selection,
    make_complementary,
    noisy_transition,
    uniform_transition,
)
from wcll.labels.family_selection import cost_if_wrong

FIR = [420, 120, 110, 120, 120, 110]  # one class is 42 % of the labels; uniform ones allow 20 %
HABITS = np.array([np.roll([0.0, 0.8, 0.1, 0.1], y) for y in range(4)])

worlds = given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 5.0]))
few = settings(max_examples=25, deadline=None)


def family_cost(assumed, truth):
    """Of families that are fitted to the same counts."""
    counts = np.array(FIR, float)
    return cost_if_wrong(FAMILIES[assumed].fit(counts).transition, FAMILIES[truth].fit(counts).transition)


def random_q(k, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(k, spread), k).clip(1e-4)
    return rows / rows.sum(axis=1, keepdims=True)


def divergence(row, mixture):
    return sum(s * np.log(s / p) for s, p in zip(row, mixture, strict=True) if s > 0)


def least_divergence(row, wrong):
    """By a general method that knows bounds and the sum of chances."""
    found = minimize(
        lambda p: divergence(row, p @ wrong),
        np.full(len(wrong), 1 / len(wrong)),
        jac=lambda p: -wrong @ (row / (p @ wrong)),
        bounds=[(0, 1)] * len(wrong),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return divergence(row, found.x.clip(0) / found.x.clip(0).sum() @ wrong)


@worlds
@few
def test_no_chances_fit_better(k, seed, spread):
    wrong, right = random_q(k, seed, spread), random_q(k, seed + 1, spread)
    found = cost_if_wrong(wrong, right)
    np.testing.assert_allclose(found.learned.sum(axis=1), 1)
    assert (found.learned >= 0).all()
    by_hand = np.mean([least_divergence(row, wrong) for row in right])
    assert found.likelihood == pytest.approx(np.mean(list(map(divergence, right, found.learned @ wrong))), abs=1e-12)
    assert found.likelihood == pytest.approx(by_hand, abs=1e-7)
    assert found.gap < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_chances_of_three_classes_on_a_grid(seed):
    """Every p in steps of 1/200."""
    wrong, right = random_q(3, seed, 5.0), random_q(3, seed + 100, 1.0)
    steps = np.arange(201) / 200
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-9]).clip(0)
    found = cost_if_wrong(wrong, right)
    for row, chances in zip(right, found.learned, strict=True):
        missed = (row * np.log(row / (grid @ wrong))).sum(axis=1)
        assert divergence(row, chances @ wrong) <= missed.min() + 1e-9
        near = grid[missed <= missed.min() + 1e-12]
        assert np.abs(near - chances).max() < 0.03


@worlds
@few
def test_a_right_q_costs_nothing(k, seed, spread):
    q = 0.5 * random_q(k, seed, spread) + 0.5 * np.roll(np.eye(k), 1, axis=1)
    if np.linalg.cond(q) > 1e6:
        return
    found = cost_if_wrong(q, q)
    assert found.accuracy == pytest.approx(1)
    assert found.confidence == pytest.approx(1)
    assert found.likelihood == pytest.approx(0, abs=1e-12)
    assert found.invisible
    assert found.identified


@worlds
@few
def test_shares_and_the_order_of_classes(k, seed, spread):
    rng = np.random.default_rng(seed)
    wrong, right, prior, order = random_q(k, seed), random_q(k, seed + 1, spread), rng.random(k), rng.permutation(k)
    found = cost_if_wrong(wrong, right, prior)
    assert 0 <= found.accuracy <= 1
    assert 0 <= found.confidence <= 1
    assert found.likelihood >= 0
    assert found.accuracy == pytest.approx(found.per_class @ prior / prior.sum())
    assert found.confidence == pytest.approx(np.diag(found.learned) @ prior / prior.sum())
    square = np.ix_(order, order)
    other = cost_if_wrong(wrong[square], right[square], prior[order])
    np.testing.assert_allclose(other.learned, found.learned[square], atol=1e-3)
    assert other.likelihood == pytest.approx(found.likelihood, abs=1e-9)
    assert other.confidence == pytest.approx(found.confidence, abs=1e-3)


def test_uniform_assumed_where_one_class_is_42_percent_of_the_labels():
    """A class that is never named for its own samples stays the likeliest one under uniform Q."""
    found = family_cost("uniform", "popularity")
    assert found.accuracy == pytest.approx(1)
    assert not found.invisible
    np.testing.assert_allclose(found.learned, np.eye(6), atol=1e-4)
    q = np.array(FIR) / 1000
    rows = q * (1 - np.eye(6)) / (1 - q)[:, None]
    assert found.likelihood == pytest.approx(
        np.mean([divergence(row, np.eye(6)[y] * -0.2 + 0.2) for y, row in enumerate(rows)])
    )


def test_popularity_assumed_where_labels_are_uniform():
    """The popular class takes chances of all others: of uniform labels, too few name it."""
    found = family_cost("popularity", "uniform")
    assert found.learned[0, 0] == pytest.approx(1, abs=1e-4)
    assert (found.learned[1:, 0] > 0.3).all()
    assert found.confidence < 0.7


def test_mistakes_that_popularity_cannot_show_by_hand():
    r"""Labels that name the true class y at rate e are popularity's with :math:`t_j = e / (q_y (K - 1))` for others."""
    found = family_cost("popularity", "popularity-noise")
    assert found.invisible
    rate, q = 0.03, FAMILIES["popularity-noise"].fit(np.array(FIR, float)).parameters["popularity"]
    wrong = noisy_transition(q * (1 - np.eye(6)) / (1 - q)[:, None], rate=0)
    found = cost_if_wrong(wrong, noisy_transition(wrong, rate=rate))
    assert found.invisible
    for y in range(6):
        others = np.arange(6) != y
        np.testing.assert_allclose(found.learned[y, others], (rate / q[y] / 5 * (1 - q))[others], atol=1e-9)


def test_mistakes_cost_everything_where_they_are_more_than_other_labels():
    q = uniform_transition(50)
    found = cost_if_wrong(q, noisy_transition(q, rate=0.03))  # others are named in 1.98 % each
    assert found.accuracy == 0
    assert cost_if_wrong(q, noisy_transition(q, rate=0.01)).accuracy == 1


@pytest.mark.filterwarnings("ignore::wcll.LabelWarning")
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (uniform_transition(4), noisy_transition(uniform_transition(4), rate=0.1)),
        (uniform_transition(4), noisy_transition(HABITS, rate=0.3)),
        (HABITS, uniform_transition(4)),
    ],
    ids=["mistakes nobody sees", "habits and mistakes", "habits that are none"],
)
def test_it_is_what_a_trained_model_learns(wrong, right):
    y = np.arange(20_000) % 4
    options = {"weights": None, "weight_decay": 0.0, "lr": 0.05, "max_epochs": 20, "random_state": 0}
    model = ComplementaryClassifier("forward", transition=wrong, **options)
    model.fit(np.eye(4, dtype=np.float32)[y], make_complementary(y, right, random_state=0))
    chances = model.predict_proba(np.eye(4, dtype=np.float32))
    np.testing.assert_allclose(chances, cost_if_wrong(wrong, right).learned, atol=0.12)


def test_ties_are_fractions():
    """Who assumes that labels tell nothing learns nothing."""
    found = cost_if_wrong(np.full((4, 4), 0.25), uniform_transition(4))
    np.testing.assert_allclose(found.learned, 0.25)
    assert (found.accuracy, found.identified) == (0.25, False)
    np.testing.assert_allclose(found.per_class, 0.25)
    assert found.likelihood == pytest.approx(np.log(4 / 3))


def test_rows_that_are_assumed_alike_share_their_samples():
    wrong = np.array([[0, 0.5, 0.5], [0, 0.5, 0.5], [1, 0, 0]])
    found = cost_if_wrong(wrong, [[0, 0.5, 0.5], [0.2, 0.4, 0.4], [1, 0, 0]])
    assert not found.identified
    np.testing.assert_allclose(found.learned, [[0.5, 0.5, 0], [0.4, 0.4, 0.2], [0, 0, 1]], atol=1e-5)
    np.testing.assert_allclose(found.per_class, [0.5, 0.5, 1])
    assert found.invisible


@pytest.mark.parametrize("seed", range(3))
def test_matrix_products_find_what_newton_steps_find(seed, monkeypatch):
    wrong, right = biased_transition(12, random_state=seed), random_q(12, seed)
    newton = cost_if_wrong(wrong, right)
    monkeypatch.setattr(family_selection, "MOST_NEWTON", 2)
    products = cost_if_wrong(wrong, right)
    assert products.gap < 1e-8
    assert products.likelihood == pytest.approx(newton.likelihood, abs=1e-9)
    np.testing.assert_allclose(products.learned, newton.learned, atol=1e-3)


def test_a_thousand_classes_take_some_matrices(monkeypatch):
    k = 1000
    monkeypatch.setattr(family_selection, "COST_STEPS", (1, 1))
    wrong, right = uniform_transition(k), noisy_transition(uniform_transition(k), rate=0.1)
    tracemalloc.start()
    found = cost_if_wrong(wrong, right)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * 8 * k**2
    assert found.gap > 1e-6  # one step is not enough, which is said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1], [2, 0]], uniform_transition(2)), "assumed: expected rows that sum to 1, got 2 in row 1"),
        ((uniform_transition(2), [[0, 1]]), r"truth: expected a square matrix, got shape \(1, 2\)"),
        ((uniform_transition(3), uniform_transition(2)), "truth: expected a 3 x 3 matrix, got 2 x 2"),
        ((uniform_transition(2), [[np.nan, 1], [1, 0]]), "truth: expected probabilities"),
        ((uniform_transition(2), uniform_transition(2), [1, -1]), "prior: expected no negative weight"),
        ((uniform_transition(2), uniform_transition(2), [1, 1, 1]), "prior: expected"),
        (([[1, 0], [1, 0]], uniform_transition(2)), "assumed: expected some chance of the label 1, which truth has"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    with pytest.raises(InputError, match=f"^{message}") as caught:
        cost_if_wrong(*arguments)
    assert "\n" not in str(caught.value)
