"""Q from labels and a model: EM with predictions of models that have not seen the labels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import make_complementary, noisy_transition, uniform_transition
from wcll.labels.cross_fitting import ModelTransition, Round, cross_fitted, transition_from_predictions
from wcll.labels.encoding import to_mask
from wcll.labels.families import FAMILIES
from wcll.transition_estimation import transition_with_model

K = 4
Q = np.array([[0.02, 0.7, 0.18, 0.1], [0.1, 0.02, 0.7, 0.18], [0.18, 0.1, 0.02, 0.7], [0.7, 0.18, 0.1, 0.02]])
QUICK = ComplementaryClassifier("forward", lr=0.02, max_epochs=8)


def tv(a, b):
    return np.abs(a - b).sum(axis=1).mean() / 2


@pytest.fixture(scope="module")
def blobs():
    x, y = make_blobs(3000, centers=K, cluster_std=1.5, random_state=3)
    return x.astype(np.float32), y


@pytest.fixture
def calls(monkeypatch):
    """Which samples, told by their first feature, models were trained on and then predicted."""
    seen, fit, predict = [], ComplementaryClassifier.fit, ComplementaryClassifier.predict_proba

    def fitted(self, x, y, sample_weight=None):
        seen.append([set(np.asarray(x)[:, 0].tolist()), None])
        return fit(self, x, y, sample_weight)

    def predicted(self, x):
        seen[-1][1] = set(np.asarray(x)[:, 0].tolist())
        return predict(self, x)

    monkeypatch.setattr(ComplementaryClassifier, "fit", fitted)
    monkeypatch.setattr(ComplementaryClassifier, "predict_proba", predicted)
    return seen


def test_sparse_features_give_the_same_q(blobs):
    x, y = blobs[0][:300], blobs[1][:300]
    ybar, quick = make_complementary(y, Q, random_state=0), clone(QUICK).set_params(max_epochs=1)
    dense = transition_with_model(x, ybar, quick, rounds=1, random_state=0)
    sparse = transition_with_model(scipy.sparse.coo_array(x), ybar, quick, rounds=1, random_state=0)
    np.testing.assert_array_equal(sparse.transition, dense.transition)


def slow_step(p, sets, matrix, start):
    """One step of EM, sample by sample."""
    counts = [list(row) for row in start]
    for chances, labels in zip(p, sets, strict=True):
        joint = [chances[y] * math.prod(matrix[y][j] for j in labels) for y in range(K)]
        for y in range(K):
            for j in labels:
                counts[y][j] += joint[y] / sum(joint)
    shares = [[value / sum(row) for value in row] for row in counts]
    for y, row in enumerate(shares):  # labels name the true class at half of chance, or as often as the start says
        noise = min(row[y], max(start[y][y], 0.5 / K))
        rest = sum(row) - row[y]
        shares[y] = [noise if j == y else value / rest * (1 - noise) for j, value in enumerate(row)]
    return shares


def test_em_against_loops():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(K), 60)
    sets = [rng.choice(K, size=rng.integers(1, 4), replace=False).tolist() for _ in range(60)]
    start = noisy_transition(uniform_transition(K), rate=0.1)
    slow = start
    for _ in range(5):
        slow = slow_step(p, sets, slow, start)
    np.testing.assert_allclose(transition_from_predictions(p, sets, start, steps=5), slow, atol=1e-12)


def test_em_finds_q_from_good_predictions():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 20_000)
    p = np.where(np.eye(K)[y] == 1, 0.79, 0.07)  # right in 79 of 100
    guess = np.where(rng.random(len(y)) < 0.79, y, (y + rng.integers(1, K, len(y))) % K)
    p = np.where(np.eye(K)[guess] == 1, 0.79, 0.07)
    found = transition_from_predictions(p, make_complementary(y, Q, random_state=0), uniform_transition(K), steps=200)
    assert tv(found, Q) < 0.03


@pytest.mark.parametrize("labels", [1, 3])
def test_q_comes_from_labels_and_features(blobs, labels):
    """Of sets, drawn without replacement, it is the shares in which classes are in them: what one likelihood needs."""
    x, y = blobs
    ybar = make_complementary(y, Q, n_labels=labels, random_state=0)
    found = transition_with_model(x, ybar, QUICK, random_state=0)
    popularity, *_, last = found.rounds[:4]
    assert (popularity.start, popularity.number, last.number) == ("popularity", 0, 3)
    named = np.eye(K)[y].T @ to_mask(ybar, K)
    named /= named.sum(axis=1, keepdims=True)
    assert tv(popularity.transition, named) > (0.3 if labels == 1 else 0.02)
    assert tv(found.transition, named) < (0.15 if labels == 1 else 0.05)
    assert found.chosen in found.rounds or found.chosen.averaged > 1
    assert found.chosen.score > max(one.score for one in found.rounds) - 0.1
    assert [row["chosen"] for row in found.table()].count(True) == 1
    several = {"free"} if labels == 3 else set()
    assert {one.start for one in found.rounds} == {"popularity", "popularity-noise"} | several
    model = ComplementaryClassifier("forward", transition=found, lr=0.02, max_epochs=20, random_state=0)
    model.fit(x, make_complementary(y, Q, random_state=1))
    assert (model.predict(x) == y).mean() > 0.9
    assert "estimated from labels and models of 3000 samples" in str(model.belief_)


def test_rounds_as_good_as_the_best_are_averaged_from_the_last():
    """Not those of another start, nor those that are behind by more than chance explains; a start is taken as it is."""
    rng = np.random.default_rng(0)

    def made(start, number, behind):
        each = rng.permutation(np.repeat([-0.3, 0.3], 200)) - behind  # a difference of two has an error of about 0.02
        return Round(start, number, float(each.mean()), np.full((2, 2), float(number)), scores=each)

    rounds = [made("a", number, behind) for number, behind in enumerate((1.0, 0.0, 0.01, 0.005, 0.01, 0.5))]
    best = Round.best([*rounds, made("b", 7, 0.001)])
    assert (best.start, best.number, best.averaged) == ("a", 4, 3)
    np.testing.assert_allclose(best.transition, 3.0)
    assert best.score == pytest.approx(-0.025 / 3)
    found = ModelTransition(best.transition, None, None, "", "a", tuple(rounds), best)
    assert [row["chosen"] for row in found.table()] == [False] * 6 + [True]
    assert Round.best([made("a", 0, 0.005), *rounds[1:]]).number == 0
    assert Round.best([rounds[0], rounds[5]]) is rounds[5]


def test_the_start_is_kept_where_nothing_better_is_found(blobs):
    """Features that tell nothing: what EM makes of noise predicts no label that it has not seen."""
    _, y = blobs
    noise = np.random.default_rng(0).normal(size=(len(y), 3)).astype(np.float32)
    right = noisy_transition(uniform_transition(K), rate=0.03)
    found = transition_with_model(noise, make_complementary(y, right, random_state=0), QUICK, random_state=0)
    assert tv(found.transition, right) < 0.05


def test_nobody_predicts_what_it_was_trained_on(blobs, calls):
    x, y = blobs
    x = np.column_stack([np.arange(len(x)), x]).astype(np.float32)
    transition_with_model(x, make_complementary(y, Q, random_state=0), QUICK, folds=3, rounds=2, random_state=0)
    assert len(calls) == 12  # from two starts
    for trained, predicted in calls:
        assert not trained & predicted
        assert trained | predicted == set(range(len(x)))
    assert calls[0] != calls[3]  # another split in the next round


def test_groups_stay_on_one_side(blobs, calls):
    x, y = blobs
    groups = np.arange(len(x)) // 10
    x = np.column_stack([groups, x]).astype(np.float32)
    transition_with_model(x, make_complementary(y, Q, random_state=0), QUICK, rounds=1, groups=groups, random_state=0)
    assert all(not trained & predicted for trained, predicted in calls)


def test_names_tables_and_seeds(blobs):
    x, y = blobs
    ybar = make_complementary(y, Q, random_state=0)
    names = np.array(["ant", "bee", "cat", "dog"])[ybar]
    table = pd.DataFrame(x, columns=["a", "b"])
    one, two = (transition_with_model(table, names, QUICK, rounds=1, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one.transition, two.transition)
    plain = transition_with_model(x, ybar, QUICK, rounds=1, random_state=5)
    np.testing.assert_allclose(one.transition, plain.transition, atol=1e-6)
    assert QUICK.classes is None  # the user's own is left alone
    assert QUICK.transition is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folds": 1}, InputError, "folds: expected at least 2, got 1"),
        ({"rounds": 0}, InputError, "rounds: expected a whole number from 1"),
        ({"estimator": "forward"}, InputTypeError, "estimator: expected a ComplementaryClassifier, got str"),
        ({"estimator": ComplementaryClassifier("pc")}, InputError, "estimator: expected one whose loss takes Q"),
        ({"estimator": ComplementaryClassifier(lambda f, y: f.sum())}, InputError, "whose loss takes Q"),
    ],
)
def test_bad_arguments(blobs, options, error, message):
    x, y = blobs
    with pytest.raises(error, match=message):
        transition_with_model(x, make_complementary(y, random_state=0), **options)


def test_predictions_are_checked():
    with pytest.raises(InputError, match="probabilities: expected shape"):
        transition_from_predictions(np.ones((3, 2)), to_mask([0, 1, 2], K), uniform_transition(K))


def test_large_sets_are_left_to_popularity():
    rng = np.random.default_rng(0)
    mask = rng.random((50, 9)) < 0.8
    mask[:, 0], mask[:, 1], mask[0] = True, False, [True] * 8 + [False]
    found = transition_with_model(rng.random((50, 2)), mask)
    totals = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)  # as a classifier counts them
    np.testing.assert_allclose(found.transition, FAMILIES["popularity"].fit(totals).transition)
    assert found.basis == "label counts, as sets of up to 8 labels tell a model no more"
    assert found.table()[0]["chosen"]


@pytest.mark.parametrize("times", [3, 9])
def test_labels_that_were_said_twice_are_a_start_of_their_own(times):
    """Sets are then smaller than the number of labels that were given."""
    rng = np.random.default_rng(0)
    mask = np.zeros((400, 10), dtype=bool)
    for _ in range(times):
        mask[np.arange(400), rng.integers(0, 9, 400)] = True
    assert mask.sum(axis=1).min() < times
    found = cross_fitted(mask, lambda *_: np.full((200, 10), 0.1), np.random.RandomState(0), rounds=1)
    assert {one.start for one in found.rounds} == {"popularity", "popularity-noise", "free"}


def test_weights_undo_a_selection_by_labels():
    """Samples kept by their label, with weights of 1 / acceptance: the Q of all labels, not of those that were kept."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(K, 0.3), 8000)
    y = (rng.random((8000, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
    ybar, acceptance = make_complementary(y, Q, random_state=0), np.array([0.2, 0.4, 1.0, 1.0])
    kept = rng.random(8000) < acceptance[ybar]
    mask, chances = to_mask(ybar[kept], K), chances[kept]

    def found(**options):
        seeds = np.random.RandomState(0)
        return cross_fitted(mask, lambda q, rest, part, seed: chances[part], seeds, rounds=1, **options).transition

    assert np.abs(found(sample_weight=1 / acceptance[ybar[kept]]) - Q).max() < 0.08
    assert np.abs(found() - Q).max() > 0.2
    np.testing.assert_allclose(found(sample_weight=np.full(kept.sum(), 7.0)), found(), rtol=1e-12)
    counts = rng.integers(1, 4, kept.sum())  # a whole weight is so many samples
    start, again = uniform_transition(K), np.repeat(np.arange(kept.sum()), counts)
    weighted = transition_from_predictions(chances, mask, start, sample_weight=counts)
    np.testing.assert_allclose(weighted, transition_from_predictions(chances[again], mask[again], start), atol=1e-3)


def test_weights_and_target_of_the_model(blobs):
    """Weights are for its trainings, too; what its predictions are for otherwise is of no account here."""
    x, y = (part[:600] for part in blobs)
    ybar = make_complementary(y, Q, random_state=0)

    def found(estimator=QUICK, **options):
        return transition_with_model(x, ybar, estimator, rounds=1, random_state=0, **options).rounds[-1].transition

    moved = clone(QUICK).set_params(target_prior=[0.7, 0.1, 0.1, 0.1])
    np.testing.assert_array_equal(found(moved), found())
    np.testing.assert_allclose(found(sample_weight=np.full(600, 2.0)), found(), rtol=1e-9)
    assert np.abs(found(sample_weight=np.where(ybar == 0, 5.0, 1.0)) - found()).max() > 0.1
    with pytest.raises(InputError, match=r"sample_weight: expected shape \(600,\), got \(3,\)"):
        found(sample_weight=np.ones(3))
