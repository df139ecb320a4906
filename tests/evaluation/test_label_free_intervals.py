"""Intervals of label-free figures: they hold for few labels, too, and what they cannot tell is never ok."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest

from wcll.evaluation import Figure, complementary_table, label_free_accuracy, label_free_confusion
from wcll.evaluation.label_free import WIDEST, _cut
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.labels.transition import biased_transition, inverse_size_transition, noisy_transition, uniform_transition


def all_figures(found):
    return [found.accuracy, found.balanced_accuracy, found.macro_f1, *found.recall]


def balanced(k):
    return Belief.true(uniform_transition(k), np.full(k, 1 / k))


def table_of(k, n, hits):
    """n labels of which some meet their prediction."""
    table = np.zeros((k, k), dtype=int)
    table[0, 0], table[1, 0] = hits, n - hits
    return table


def test_one_label_tells_nothing():
    found = label_free_confusion([[0, 1], [0, 0]], Belief.of("uniform", [50, 50]))
    assert {figure.verdict for figure in all_figures(found)} == {"too few labels"}
    assert (found.accuracy.value, found.accuracy.high) == (1, 1)
    assert found.accuracy.low == pytest.approx(0.025)
    assert all(0 <= figure.low <= figure.high <= 1 for figure in all_figures(found))


@pytest.mark.parametrize(("k", "n"), [(2, 1), (10, 5), (10, 10), (100, 100)])
def test_labels_that_meet_no_prediction_do_not_certify_a_guesser(k, n):
    spread = np.zeros((k, k), dtype=int)
    for i in range(n):
        spread[i % k, (i + 1) % k] += 1
    found = label_free_confusion(spread, balanced(k), draws=200)
    assert found.accuracy.value == pytest.approx(1)
    assert found.accuracy.low <= 1 / k
    assert not {"ok"} & {figure.verdict for figure in all_figures(found)}


@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize(("n", "hits"), [(1, 0), (1, 1), (20, 0), (20, 1), (500, 7), (500, 0)])
def test_accuracy_under_uniform_labels_has_the_exact_interval(k, n, hits):
    found = label_free_confusion(table_of(k, n, hits), balanced(k), draws=100).accuracy
    exact = binomtest(hits, n).proportion_ci(0.95, method="exact")
    low, high = 1 - (k - 1) * exact.high, 1 - (k - 1) * exact.low
    if high < 0:  # of one label that meets its prediction: this may be chance
        value = 1 - (k - 1) * hits / n
        low, high = low - value, high - value
        assert found.verdict == "too few labels"
    low, high = max(low, 0), min(high, 1)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_more_hits_never_raise_the_interval():
    found = [label_free_confusion(table_of(3, 40, hits), balanced(3), draws=100).accuracy for hits in range(20)]
    assert all(left.low >= right.low and left.high >= right.high for left, right in pairwise(found))


def transition_of(kind, k):
    """Q and class shares."""
    shares = np.where(np.arange(k) % 2, 1.0, 0.4 if kind == "inverse-size" else 1.0)
    shares /= shares.sum()
    if kind == "biased":
        return biased_transition(k, strength="weak", random_state=0), shares
    return inverse_size_transition(shares) if kind == "inverse-size" else uniform_transition(k), shares


TABLES = 60


@pytest.mark.parametrize("n", [5, 200])
@pytest.mark.parametrize("recall", [None, 0.85], ids=["guesses", "good"])
@pytest.mark.parametrize("knows", ["all", "counts"])
@pytest.mark.parametrize("kind", ["uniform", "biased", "inverse-size"])
def test_intervals_hold_the_truth(kind, knows, recall, n):
    """95 % are asked for; 90 % allow for the chance of few tables."""
    k = 4
    matrix, shares = transition_of(kind, k)
    recall = recall or 1 / k
    predicts = np.full((k, k), (1 - recall) / (k - 1))
    np.fill_diagonal(predicts, recall)
    joint = np.einsum("y,yj,yk->jk", shares, matrix, predicts)
    f1 = np.mean(2 * recall * shares / (shares + shares @ predicts))
    truth = np.array([recall, recall, f1, *[recall] * k])
    rng = np.random.default_rng(0)
    told = "inverse-size" if kind == "inverse-size" else matrix
    held = np.zeros(len(truth))
    for seed in range(TABLES):
        table = rng.multinomial(n, joint.ravel()).reshape(k, k)
        totals = rng.multinomial(max(10 * n, 200), shares @ matrix)
        belief = Belief.true(matrix, shares) if knows == "all" else Belief.of(told, totals)
        found = all_figures(label_free_confusion(table, belief, draws=200, seed=seed))
        held += [figure.low - 1e-9 <= one <= figure.high + 1e-9 for figure, one in zip(found, truth, strict=True)]
    assert (held[:3] >= 0.9 * TABLES).all(), held
    assert held[3:].mean() >= 0.92 * TABLES, held


def test_few_training_labels_make_shares_that_are_not_divided_by():
    """A large table does not help where sixty labels told how rare a class is."""
    matrix, shares = uniform_transition(2), np.array([1 / 6, 5 / 6])
    joint = np.einsum("y,yj,yk->jk", shares, matrix, [[0.85, 0.15], [0.15, 0.85]])
    rng, found = np.random.default_rng(0), []
    for seed in range(40):
        table, totals = rng.multinomial(2000, joint.ravel()).reshape(2, 2), rng.multinomial(60, shares @ matrix)
        found.append(
            label_free_confusion(table, Belief.of("inverse-size", totals + (totals == 0)), draws=200, seed=seed)
        )
    assert np.mean([one.balanced_accuracy.low <= 0.85 <= one.balanced_accuracy.high for one in found]) >= 0.92
    few = label_free_confusion(1000 * (1 - np.eye(4)), Belief.of("uniform", [5, 5, 5, 5]))
    assert few.accuracy.verdict == "can't be checked"
    assert [(one.low, one.high, one.verdict) for one in few.recall] == [(0, 1, "too few labels")] * 4
    assert (few.balanced_accuracy.low, few.balanced_accuracy.high) == (0, 1)
    assert few.macro_f1.verdict == few.balanced_accuracy.verdict == "too few labels"


def beliefs(k, totals):
    """Every kind of belief that these counts allow."""
    yield balanced(k)
    yield Belief.true(noisy_transition(uniform_transition(k), rate=0.05), np.arange(1, k + 1) / (k * (k + 1) / 2))
    yield Belief(uniform_transition(k), "assumed")
    yield Belief.of("uniform", totals)
    if (totals > 0).all():
        yield Belief.of("inverse-size", totals)


def counts_of(shape):
    return arrays(np.int64, shape, elements=st.sampled_from([0, 0, 0, 1, 2, 7, 400]))


@settings(max_examples=20, deadline=None)
@given(st.data(), st.integers(2, 5))
def test_any_table_gives_figures_that_are_shares_or_an_accusation(data, k):
    table, totals = data.draw(counts_of((k, k))), data.draw(counts_of(k))
    assume(table.any() and (totals > 0).sum() > 1)
    for belief in beliefs(k, totals):
        for figure in all_figures(label_free_confusion(table, belief, draws=100)):
            assert figure.low <= figure.value <= figure.high
            if figure.verdict != "the assumed Q does not fit":
                assert 0 <= figure.low <= figure.high <= 1
            assert figure.high - figure.low <= figure.uncut + 1e-12
            assert figure.verdict != "ok" or figure.uncut <= WIDEST


@settings(max_examples=15, deadline=None)
@given(st.data(), st.integers(2, 4))
def test_more_labels_of_the_same_shares_do_not_widen(data, k):
    table = data.draw(counts_of((k, k)))
    assume(table.any())
    few, many = (label_free_confusion(times * table, balanced(k), draws=500) for times in (1, 4))
    assert many.accuracy.uncut <= few.accuracy.uncut + 1e-9
    assert many.balanced_accuracy.uncut <= 1.1 * few.balanced_accuracy.uncut
    assert all(late.uncut <= 1.1 * early.uncut for early, late in zip(few.recall, many.recall, strict=True))


def test_a_cut_interval_is_not_ok_for_being_cut():
    assert Figure(0.0, 0.0, 0.02, uncut=4.1).verdict == "too few labels"
    assert Figure(0.1, 0.0, 0.2, uncut=0.25).verdict == "ok"
    assert Figure(0.0, 0.0, 0.2, uncut=float("inf")).verdict == "too few labels"
    i = np.arange(20)
    labels = np.where(i < 5, i, (i + 1 + i % 7) % 10)  # 5 of 20 meet their prediction, the others nothing in particular
    found = label_free_confusion(complementary_table(labels, i % 10, 10), balanced(10)).accuracy
    assert (found.value, found.low) == (0, 0)
    assert found.high < 0.3 < found.uncut
    assert found.verdict == "too few labels"


def test_an_interval_just_outside_accuses_nothing():
    """Of many figures of a nearly perfect model one in forty intervals is above 1, though Q is right."""
    near = _cut(1.06, 1.01, 1.11, contradicted=False)
    assert (near.value, near.low, near.high) == pytest.approx((1, 0.95, 1))
    assert near.verdict == "ok"
    below = _cut(-0.06, -0.11, -0.01, contradicted=False)
    assert (below.value, below.low, below.high) == pytest.approx((0, 0, 0.05))
    for far in ((1.5, 1.4, 1.6), (-0.5, -0.6, -0.4)):
        found = _cut(*far, contradicted=False)
        assert (found.value, found.low, found.high) == far
        assert found.verdict == "the assumed Q does not fit"
    k, recall, accused = 6, 0.99, 0
    predicts = np.full((k, k), (1 - recall) / (k - 1)) + (recall - (1 - recall) / (k - 1)) * np.eye(k)
    shares, matrix, rng = np.array([4, 4, 4, 2, 1, 1]) / 16, uniform_transition(k), np.random.default_rng(0)
    for _ in range(60):
        table = rng.multinomial(1500, np.einsum("y,yj,yk->jk", shares, matrix, predicts).ravel()).reshape(k, k)
        found = label_free_confusion(table, Belief.of("uniform", rng.multinomial(4500, shares @ matrix)), draws=100)
        accused += "the assumed Q does not fit" in {figure.verdict for figure in all_figures(found)}
    assert accused <= 3


def test_a_class_that_is_told_to_be_absent_has_no_recall_and_is_no_part_of_means():
    belief = Belief.true(uniform_transition(3), [0.5, 0.5, 0])
    found = label_free_confusion(300 * np.array([[0, 1, 0], [1, 0, 0], [1, 1, 0]]), belief)
    assert np.isnan(found.recall[2].value)
    assert found.recall[2].verdict == "too few labels"
    assert found.balanced_accuracy.value == pytest.approx(1)


def test_intervals_are_the_same_again():
    table, belief = np.array([[1, 5, 3], [4, 0, 6], [7, 2, 1]]), Belief.of("inverse-size", [50, 30, 20])
    assert all_figures(label_free_confusion(table, belief)) == all_figures(label_free_confusion(table, belief))


def test_an_interval_needs_draws():
    with pytest.raises(InputError, match="draws: expected at least 100, as intervals are made of them, got 99"):
        label_free_confusion(np.eye(3), balanced(3), draws=99)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 10**12}, "draws: expected at most"),  # before they are drawn
        ({"seed": -1}, "seed: expected a whole number from 0, got -1"),
        ({"seed": "x"}, "seed: expected a whole number from 0, got 'x'"),
        ({"table": np.full((3, 3), 1e250)}, "table: expected numbers whose sum"),  # squares would be infinite
        ({"table": np.full((3, 3), 1e308)}, "table: expected numbers whose sum"),
    ],
)
def test_what_no_interval_can_be_made_of_is_one_line(options, message):
    table = options.pop("table", np.full((3, 3), 5))
    with pytest.raises(InputError, match=message):
        label_free_confusion(table, Belief.of("uniform", [5, 5, 5]), **options)


def test_a_standard_error_of_labels_that_agree_is_not_0():
    assert label_free_accuracy([0], [1], uniform_transition(2)) == pytest.approx((1, 1))
    value, error = label_free_accuracy([0] * 1000, [1] * 1000, uniform_transition(10))
    assert (value, error) == pytest.approx((1, 0.009))
