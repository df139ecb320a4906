"""Alarms: labels that contradict Q are found, those that do not are left alone, and what cannot be told is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wcll.exceptions import InputError
from wcll.labels import (
    FAMILIES,
    Belief,
    biased_transition,
    inverse_size_transition,
    make_complementary,
    uniform_transition,
)
from wcll.labels.encoding import to_mask
from wcll.labels.goodness_of_fit import check_counts, check_samples, check_table, doubts

TREES = ["ash", "beech", "fir", "maple", "oak", "pine"]
STATES = ("contradicted", "not contradicted", "can't be checked")
SHARES = np.array([0.32, 0.26, 0.18, 0.12, 0.08, 0.04])


def uniform(k):
    return Belief(uniform_transition(k), "assumed", family="uniform")


def predicts(k, recall):
    """P(prediction | y) of a classifier whose errors are spread alike."""
    table = np.full((k, k), (1 - recall) / (k - 1))
    np.fill_diagonal(table, recall)
    return table


def table_of(matrix, shares, recall, n, rng):
    joint = np.einsum("y,yj,yk->jk", shares, matrix, predicts(len(shares), recall))
    return rng.multinomial(n, joint.ravel()).reshape(joint.shape)


def test_a_class_that_is_named_too_often_is_said_by_name():
    counts = np.array([120, 110, 420, 120, 120, 110])
    found = check_counts(counts, uniform(6), TREES)
    assert found.contradicted
    assert found.line == "'fir' is 42 % of the labels; uniform labels allow at most 20 %"
    remedy = "try transition='popularity' or transition='inverse-size' or a matrix of your own"
    assert found.warning == f"transition: {found.line}; {remedy}"
    assert check_counts(counts, uniform(6)).line.startswith("class 2 is 42 % of the labels")
    assert check_counts(counts, uniform(6), np.arange(10, 16)).line.startswith("class 12 is 42 % of the labels")


def test_a_class_that_is_named_too_rarely_is_said_by_name():
    matrix = np.array([[0.1, 0.5, 0.4], [0.4, 0.2, 0.4], [0.5, 0.3, 0.2]])
    found = check_counts([20, 500, 480], Belief(matrix, "given"), list("abc"))
    assert found.line == "'a' is 2 % of the labels; this Q allows at least 10 %"


def test_shares_that_are_close_have_as_many_digits_as_tell_them_apart():
    found = check_counts([52_000, 24_000, 24_000], uniform(3), list("abc"))
    assert found.line == "'a' is 52 % of the labels; uniform labels allow at most 50 %"
    found = check_counts([503_000, 250_000, 247_000], uniform(3), list("abc"))
    assert found.line == "'a' is 50.3 % of the labels; uniform labels allow at most 50.0 %"


def test_counts_that_no_single_class_betrays():
    """Each share is within its column's range, but not all of them together."""
    matrix = np.array([[0, 0.9, 0.1, 0], [0.9, 0, 0, 0.1], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]])
    found = check_counts([300, 300, 60, 60], Belief(matrix, "given"))
    assert found.contradicted
    assert found.line == "label counts fit no class shares under this Q"
    assert not check_counts([320, 320, 36, 34], Belief(matrix, "given")).contradicted


def test_a_label_that_q_rules_out_is_named():
    found = check_counts([10, 10, 1], Belief(np.array([[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]]), "given"), list("abc"))
    assert found.line == "'c' is 5 % of the labels; this Q allows at most 0 %"


@pytest.mark.parametrize("n", [1, 3, 10, 30])
def test_few_labels_contradict_nothing(n):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = table_of(uniform_transition(10), np.full(10, 0.1), 0.9, n, rng)
        assert not check_table(table, uniform(10)).contradicted


@pytest.mark.parametrize("source", ["estimated", "given", "true"])
def test_what_was_estimated_from_counts_cannot_be_checked_by_them(source):
    counts = np.array([100, 300, 900])
    belief = Belief.of("inverse-size", counts)
    if source == "given":  # the same matrix, told: now they could have contradicted it
        belief = Belief.given(belief.transition, counts)
    if source == "true":
        belief = Belief.true(belief.transition, belief.prior)
    found = check_counts(counts, belief)
    assert found.state == ("not contradicted" if source == "true" else "can't be checked")
    assert "ok" not in str(found)


def test_several_labels_a_sample_are_checked_where_they_are_uniform():
    y = np.random.default_rng(0).choice(6, 3000, p=SHARES)
    sets = to_mask(make_complementary(y, n_labels=2, random_state=0), 6)
    assert check_samples(sets, uniform(6)).state == "can't be checked"
    many = sets.copy()
    many[:, 2] = True
    found = check_samples(many, uniform(6), TREES)
    assert found.line.startswith("'fir' is 3")
    given = Belief(inverse_size_transition(SHARES), "given")
    assert check_samples(sets, given).state == "can't be checked"
    assert check_samples(to_mask(make_complementary(y, random_state=0), 6), given).state == "contradicted"


def test_weights_count_as_so_many_labels_as_have_their_error():
    labels = np.repeat([0, 1, 2], [14, 3, 3])
    few = check_samples(labels, uniform(3))
    assert not few.contradicted  # 70 % of 20 labels may be chance
    assert not check_samples(labels, uniform(3), weight=np.full(20, 1000.0)).contradicted  # their scale does not matter
    labels = np.tile(labels, 20)
    assert check_samples(labels, uniform(3)).contradicted
    one_counts = np.where(np.arange(400) < 3, 1e6, 1.0)
    assert not check_samples(labels, uniform(3), weight=one_counts).contradicted


def test_with_a_model_a_wrong_q_is_seen_that_counts_do_not_show():
    shares = np.full(4, 0.25)
    turned = np.array([[0, 0.6, 0.2, 0.2], [0.2, 0, 0.6, 0.2], [0.2, 0.2, 0, 0.6], [0.6, 0.2, 0.2, 0]])
    table = table_of(turned, shares, 0.9, 1500, np.random.default_rng(0))
    assert check_counts(table.sum(axis=1), uniform(4)).state == "can't be checked"
    found = check_table(table, uniform(4), list("abcd"))
    assert (found.state, found.by) == ("contradicted", "predictions")
    assert found.line.startswith("labels of samples predicted as '")
    assert found.line.endswith("fit no class shares under uniform labels")
    assert found.warning.endswith("or a matrix of your own; labels that were trained on cannot tell")
    assert check_table(table, Belief(turned, "given")).state == "can't be checked"


def test_counts_of_more_labels_than_the_table_has_are_looked_at():
    table = np.diag([2, 2, 2])[[1, 2, 0]]
    assert not check_table(table, uniform(3)).contradicted
    assert check_table(table, uniform(3), counts=np.array([700.0, 150, 150])).by == "counts"
    assert not check_table(table, uniform(3), counts=np.array([5.0, 0, 0])).contradicted


def test_an_estimated_q_is_heeded_to_be_estimated():
    """A hundred labels make a poor Q, of which many held-out labels must not say that the family is wrong."""
    shares = np.array([0.05, 0.2, 0.3, 0.45])
    matrix, rng = inverse_size_transition(shares), np.random.default_rng(0)
    right = wrong = 0
    for _ in range(20):
        belief = Belief.of("inverse-size", rng.multinomial(100, shares @ matrix) + 1)
        table = table_of(matrix, shares, 0.95, 5000, rng)
        right += check_table(table, belief).contradicted
        wrong += check_table(table, Belief.given(belief.transition, belief.totals)).contradicted
    assert right <= 2
    assert wrong >= 15
    unknown = Belief(matrix, "estimated")  # nobody knows how
    assert check_table(table, unknown).state == "can't be checked"


def test_counts_drawn_anew_may_be_of_no_member_of_the_family(monkeypatch):
    """As at the border of what "offered" labels allow, where looking for one takes long."""
    totals = np.array([150, 100, 80, 70])
    belief = Belief.of("inverse-size", totals)
    table = np.random.default_rng(0).multinomial(100, belief.transition).T  # a model that is always right

    def none(self, totals, **_):
        raise InputError("totals", "counts that the family allows", "others")

    monkeypatch.setattr(type(FAMILIES["inverse-size"]), "fit", none)
    assert check_table(table, belief).state in STATES


def test_an_estimated_q_of_the_wrong_family_is_seen_with_a_model():
    shares = np.full(5, 0.2)
    matrix, rng = biased_transition(5, strength="strong", random_state=1), np.random.default_rng(0)
    belief = Belief.of("inverse-size", rng.multinomial(5000, shares @ matrix))
    assert check_table(table_of(matrix, shares, 0.9, 1500, rng), belief).contradicted


@pytest.mark.parametrize("shares", ["balanced", "one is absent", "one is nearly all"])
@pytest.mark.parametrize("kind", ["uniform", "biased"])
@pytest.mark.parametrize("recall", [0.8, 1.0])
def test_a_q_that_is_right_is_rarely_accused(shares, kind, recall):
    """Also at the border, where tests are hardest; 5 % allow for the chance of few tables."""
    k, tables = 5, 60
    prior = {"balanced": [1] * 5, "one is absent": [0, 1, 1, 1, 1], "one is nearly all": [200, 1, 1, 1, 1]}[shares]
    prior = np.array(prior) / sum(prior)
    matrix = uniform_transition(k) if kind == "uniform" else biased_transition(k, strength="strong", random_state=0)
    rng = np.random.default_rng(0)
    alarms = [check_table(table_of(matrix, prior, recall, 300, rng), Belief(matrix, "given")) for _ in range(tables)]
    assert sum(one.contradicted for one in alarms) <= 0.1 * tables


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 20, 3000]))
def test_any_table_gets_an_answer_and_the_same_again(k, seed, n):
    rng = np.random.default_rng(seed)
    table = rng.multinomial(n, rng.dirichlet(np.full(k * k, 0.2))).reshape(k, k)
    matrix = rng.dirichlet(np.full(k, 0.3), k)
    found = check_table(table, Belief(matrix, "given"))
    assert found == check_table(table, Belief(matrix, "given"))
    assert "\n" not in found.warning


@settings(max_examples=40)
@given(st.data(), st.integers(2, 5))
def test_matrices_of_extreme_numbers_get_an_answer(data, k):
    extreme = st.sampled_from([0.0, 0.0, 1e-300, 1e-160, 1e-12, 0.1, 1.0, 1.0])
    matrix = np.array(data.draw(st.lists(st.lists(extreme, min_size=k, max_size=k), min_size=k, max_size=k)))
    matrix[matrix.sum(axis=1) == 0] = 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    cells = st.sampled_from([0, 0, 1, 5, 1000])
    table = np.array(data.draw(st.lists(cells, min_size=k * k, max_size=k * k))).reshape(k, k)
    table[0, 0] += 1
    assert check_table(table, Belief(matrix, "given"), counts=1e3 * table.sum(axis=1)).state in STATES


def test_a_held_out_label_that_q_rules_out_is_named():
    matrix = np.array([[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]])
    table = np.array([[0, 9, 0], [9, 0, 0], [1, 0, 0]])
    found = check_table(table, Belief(matrix, "given"), list("abc"), counts=np.array([90.0, 90, 0]))
    assert found.line == "'c' is 5 % of the labels; this Q allows at most 0 %"


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1e12, 1e100])
@pytest.mark.parametrize("told", ["uniform", "inverse-size"])
def test_counts_of_any_scale_get_an_answer(scale, told):
    """Counts may be sums of weights: those of less than a label tell nothing."""
    table = scale * (30 * (1 - np.eye(3)) + np.arange(9).reshape(3, 3))
    belief = Belief.of(told, table.sum(axis=1))
    assert check_table(table, belief, counts=belief.totals).contradicted == (scale > 1)
    assert check_counts([scale, scale, scale], Belief.of(told, [1, 1, 1])).state != "contradicted"


def test_thousands_of_classes_take_seconds():
    k = 2000
    counts = np.random.default_rng(0).multinomial(20_000, np.full(k, 1 / k))
    belief = Belief.of("uniform", counts)
    assert check_counts(counts, belief).state == "can't be checked"
    counts[7] += 100
    assert check_counts(counts, belief).line.startswith("class 7 is 0.")


def test_many_predictions_are_taken_together():
    k = 300
    rng = np.random.default_rng(0)
    labels, guesses = rng.integers(0, k, (2, 3000))
    table = np.zeros((k, k))
    np.add.at(table, (labels, guesses), 1)
    assert check_table(table, Belief.of("uniform", table.sum(axis=1))).state == "can't be checked"


def test_doubts_before_anything_is_learnt():
    names = np.array(["ash", "fir", "oak"])
    assert list(doubts(np.ones(3), uniform(3), names)) == []
    (line,) = doubts(np.array([5, 0, 5]), uniform(3), names)
    assert line.startswith("classes: 'fir' is never a label, so that ")
    (line,) = doubts(np.array([5, 0, 0]), uniform(3), names)
    assert line.startswith("classes: 'fir' and 1 more are never labels, so that ")
    noisy = np.array([[0.6, 0.2, 0.2], [0.3, 0.3, 0.4], [0.5, 0.5, 0]])
    (line,) = doubts(np.ones(3), Belief(noisy, "given"), names)
    assert line.startswith("transition: Q[y, y] = 0.6 of 'ash' is the chance that a label IS the true class")
