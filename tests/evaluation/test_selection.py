"""Label-free estimates and selection: intervals that cover, verdicts, checkpoints, ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcll.evaluation import Figure, checkpoints, complementary_table, label_free_accuracy, label_free_confusion
from wcll.evaluation.metrics import Confusion
from wcll.evaluation.selection import CHECKPOINTS, select, smoothed, zero_one_risk
from wcll.exceptions import InputError
from wcll.labels import Belief, imbalance_counts, make_complementary
from wcll.labels.transition import biased_transition, inverse_size_transition, uniform_transition

K = 10
EVEN = [0, 2, 4, 6, 8]
TABLES = 40  #: of each setting; a fault would show in most of the settings


def simulated(n, p, minority, seed, transition):
    """A held-out table, training counts 9 times as large, and the class shares; recall .85, other errors alike."""
    rng = np.random.default_rng(seed)
    shares = imbalance_counts(10**6, n_classes=K, minority=minority, p=p) / 10**6
    recall = np.full((K, K), 0.15 / (K - 1))
    np.fill_diagonal(recall, 0.85)
    q = inverse_size_transition(shares) if transition == "inverse-size" else uniform_transition(K)
    joint = np.einsum("y,yj,yk->jk", shares, q, recall)
    return rng.multinomial(n, joint.ravel()).reshape(K, K), rng.multinomial(9 * n, shares @ q)


settings = pytest.mark.parametrize(("p", "minority"), [(2, [0]), (5, [0]), (2, EVEN), (5, EVEN)])


@settings
@pytest.mark.parametrize(("n", "widest"), [(2000, 0.25), (6000, 0.15)])
def test_interval_of_balanced_accuracy_covers_and_is_narrow(n, widest, p, minority):
    figures = []
    for seed in range(TABLES):
        table, totals = simulated(n, p, minority, seed, "inverse-size")
        figures.append(label_free_confusion(table, Belief.of("inverse-size", totals), draws=300).balanced_accuracy)
    covered = np.mean([figure.low <= 0.85 <= figure.high for figure in figures])
    assert covered >= 0.88
    assert np.median([figure.high - figure.low for figure in figures]) <= widest
    narrow = sum(figure.verdict == "can't be checked" for figure in figures)
    assert narrow >= 0.95 * TABLES  # a Q that is right is accused at times


@settings
@pytest.mark.parametrize("n", [2000, 6000])
def test_uniform_labels_with_their_own_counts_are_too_few(n, p, minority):
    judge = Belief(uniform_transition(K), "assumed")
    verdicts = []
    for seed in range(TABLES):
        table, _ = simulated(n, p, minority, seed, "uniform")
        verdicts.append(label_free_confusion(table, judge, draws=300).balanced_accuracy.verdict)
    assert verdicts.count("too few labels") >= 0.95 * TABLES


def test_shares_solved_from_training_counts_carry_their_error():
    """Fixed shares would give an interval that misses its target half of the time or more."""
    found = []
    for seed in range(100):
        table, totals = simulated(2000, 5, EVEN, seed, "uniform")
        found.append(label_free_confusion(table, Belief.of("uniform", totals), draws=300).balanced_accuracy)
    usable = [figure for figure in found if figure.verdict == "can't be checked"]
    assert len(usable) <= 50
    accused = [figure for figure in found if figure.verdict == "the assumed Q does not fit"]
    assert len(accused) <= 8  # two tests at a level of 2 %, of label counts and of predictions


def test_a_wrong_q_is_accused():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 20_000)
    ybar = make_complementary(y, biased_transition(K, strength="strong", random_state=0), random_state=1)
    found = label_free_confusion(
        complementary_table(ybar, (y + 1) % K, K), Belief.true(uniform_transition(K), [1 / K] * K)
    )
    assert "the assumed Q does not fit" in {figure.verdict for figure in found.recall}


def test_estimates_meet_the_truth_on_a_large_hold_out():
    rng = np.random.default_rng(0)
    sizes = np.array([20_000, 60_000, 120_000])
    y = np.repeat(np.arange(3), sizes)
    predicted = np.where(rng.random(len(y)) < 0.8, y, rng.integers(0, 3, len(y)))
    q = inverse_size_transition(sizes)
    ybar = make_complementary(y, q, random_state=0)
    found = label_free_confusion(complementary_table(ybar, predicted, 3), Belief.true(q, sizes / sizes.sum()))
    truth = Confusion.of(y, predicted, 3)
    assert found.accuracy.value == pytest.approx(truth.accuracy, abs=0.01)
    assert found.balanced_accuracy.value == pytest.approx(truth.balanced_accuracy, abs=0.01)
    assert found.macro_f1.value == pytest.approx(truth.macro_f1, abs=0.01)
    assert [figure.value for figure in found.recall] == pytest.approx(truth.recall, abs=0.02)
    assert found.joint == pytest.approx(truth.counts / truth.counts.sum(), abs=0.01)
    assert (found.belief.transition_source, found.belief.prior_source, found.n) == ("true", "true", len(y))
    direct, _ = label_free_accuracy(ybar, predicted, q)
    assert found.accuracy.value == pytest.approx(direct)
    assert 1 - zero_one_risk(complementary_table(ybar, predicted, 3), q) == pytest.approx(direct)


def test_verdicts():
    assert Figure(0.5, 0.4, 0.6).verdict == "ok"
    assert Figure(0.5, 0.4, 0.6, known=False).verdict == "can't be checked"
    assert Figure(0.5, 0.3, 0.61, known=False).verdict == "too few labels"
    assert Figure(0.5, 0.4, 0.6, contradicted=True, known=False).verdict == "the assumed Q does not fit"
    assert Figure(0.5, 0.3, 0.61).verdict == "too few labels"
    assert Figure(1.4, 1.1, 1.9).verdict == "the assumed Q does not fit"
    assert Figure(-0.3, -0.5, -0.1).verdict == "the assumed Q does not fit"
    assert Figure(float("nan"), float("nan"), float("nan")).verdict == "too few labels"
    assert Figure(0.5, float("-inf"), float("inf")).verdict == "too few labels"


@pytest.mark.parametrize("table", [np.zeros((3, 3)), np.ones((2, 3)), np.full((3, 3), 0.5), -np.eye(3)])
def test_bad_tables(table):
    with pytest.raises(InputError, match="table: expected counts of shape"):
        label_free_confusion(table, Belief.of("uniform", [1, 1, 1]))


THREE = np.arange(3)
MASKED = np.ma.masked_equal(THREE, 1)
FEW = Belief.of("uniform", [1, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: label_free_confusion(np.diag([np.inf, 1, 1]), FEW), "table: expected counts of shape .* got inf"),
        (lambda: label_free_confusion(np.diag([np.nan, 1, 1]), FEW), "table: expected counts of shape .* got nan"),
        (lambda: label_free_confusion(np.ma.masked_equal(np.eye(3), 1), FEW), "table: expected an array without masked entries"),
        (lambda: label_free_confusion(np.eye(3), uniform_transition(3)), "belief: expected a Belief, got ndarray"),
        (lambda: complementary_table(MASKED, THREE, 3), "ybar: expected an array without masked entries"),
        (lambda: complementary_table(THREE, MASKED, 3), "predicted: expected an array without masked entries"),
        (lambda: complementary_table(THREE, THREE, 3.0), "n_classes: expected a whole number from 1, got 3.0"),
        (lambda: label_free_accuracy(THREE, MASKED, uniform_transition(3)), "predicted: expected an array without masked entries"),
        (lambda: label_free_accuracy(MASKED, THREE, uniform_transition(3)), "ybar: expected an array without masked entries"),
        (lambda: Confusion.of(MASKED, THREE, 3), "y: expected an array without masked entries"),
        (lambda: zero_one_risk(np.zeros((3, 3)), uniform_transition(3)), "tables: expected tables of counts, none all 0"),
        (lambda: zero_one_risk(np.full((3, 3), np.nan), uniform_transition(3)), "tables: expected tables of counts"),
        (lambda: zero_one_risk(np.ones((2, 2)), uniform_transition(3)), r"tables: expected tables of shape \(3, 3\)"),
        (lambda: smoothed([]), "scores: expected one score a checkpoint"),
        (lambda: smoothed([[1, 2], [3, 4]]), "scores: expected one score a checkpoint"),
        (lambda: select([[1, 2], [1, 2, 3]]), r"candidates: expected equally many scores each, got \[2, 3\]"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(call, message):
    with pytest.raises(InputError, match=message):
        call()


@given(st.integers(1, 500))
def test_checkpoints_are_epochs_and_end_at_the_last(epochs):
    found = checkpoints(epochs)
    assert found[0] == -(-epochs // 100)
    assert found[-1] == epochs
    assert list(found) == sorted(set(found))
    assert len(found) <= len(CHECKPOINTS)


def test_smoothing_by_hand():
    assert smoothed([4.0]).tolist() == [4.0]
    assert smoothed([4.0, 0.0]).tolist() == [2.0, 2.0]
    assert smoothed([1.0, 2.0, 6.0]).tolist() == [1.5, 3.0, 4.0]


def test_selection_takes_the_lowest_and_the_earlier_of_equals():
    lonely = [9.0, 9.0, 0.0, 9.0, 9.0]  # a single lucky checkpoint
    steady = [3.0, 2.0, 2.0, 2.0, 2.0]
    assert (select([lonely, steady]).candidate, select([lonely, steady]).checkpoint) == (1, 2)
    flat = [1.0, 1.0, 1.0]
    assert (select([flat, flat]).candidate, select([flat, flat]).checkpoint) == (0, 0)
    late_first, early_second = [3.0, 3.0, 1.0, 1.0], [1.0, 1.0, 3.0, 3.0]
    assert (select([late_first, early_second]).candidate, select([late_first, early_second]).checkpoint) == (1, 0)


def test_selection_avoids_runs_that_diverged():
    broken = [0.1, np.nan, np.nan, np.nan]
    assert select([broken, [5.0, 5.0, 5.0, 5.0]]).candidate == 1
    assert select([[np.nan, np.inf]]).candidate == 0
    with pytest.raises(InputError, match="candidates: expected at least one"):
        select([])


def test_macro_f1_by_hand():
    confusion = Confusion(np.array([[8, 2], [4, 6]]))
    assert confusion.macro_f1 == pytest.approx((16 / 22 + 12 / 18) / 2)
