"""Everything chosen without a true label."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors

from wcll import ComplementaryClassifier, LabelWarning, _auto
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import biased_transition, make_complementary, uniform_transition
from wcll.training import recipe

K = 4
Q = np.array([[0, 0.7, 0.2, 0.1], [0.1, 0, 0.7, 0.2], [0.2, 0.1, 0, 0.7], [0.7, 0.2, 0.1, 0]])
QUICK = 1500  #: run-steps


def quick(**options):
    return ComplementaryClassifier("auto", **{"random_state": 0, "budget": QUICK, "model": "linear", **options})


@pytest.fixture(scope="module")
def blobs():
    x, y = make_blobs(1500, centers=K, cluster_std=1.2, random_state=3)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return x.astype(np.float32), y, make_complementary(y, Q, random_state=0)


@pytest.fixture(scope="module")
def chosen(blobs):
    x, _, ybar = blobs
    return ComplementaryClassifier("auto", random_state=0).fit(x, ybar)


def test_it_finds_q_and_is_better_than_uniform_labels(blobs, chosen):
    x, y, ybar = blobs
    plain = ComplementaryClassifier("forward", lr=chosen.chosen_["lr"], max_epochs=chosen.n_iter_, random_state=0)
    assert (chosen.predict(x) == y).mean() > 0.93
    assert (chosen.predict(x) == y).mean() >= (plain.fit(x, ybar).predict(x) == y).mean()
    assert np.abs(chosen.transition_ - Q).max() < 0.15
    assert chosen.belief_.transition_source == "estimated"


def test_what_was_compared_is_told(chosen):
    rows = chosen.selection_
    assert [row["chosen"] for row in rows].count(True) == 1
    whole = [row["score"] for row in rows if row["samples"] == rows[0]["samples"]]
    assert whole == sorted(whole, reverse=True)
    assert {row["model"] for row in rows} == {"linear", "mlp"}
    assert {row["lr"] for row in rows} == {_auto.LINEAR_LR, _auto.NETWORK_LR}
    assert {row["neighbors"] for row in rows} == {1, _auto.N_NEIGHBORS}
    (row,) = [row for row in rows if row["chosen"]]
    assert row["lr"] == chosen.chosen_["lr"]
    assert row["epoch"] == chosen.n_iter_ == chosen.chosen_["max_epochs"]
    assert chosen.lr is None  # settings stay as they were given
    assert chosen.loss == "auto"
    report = chosen.report()
    for words in (
        f"Selected: {row['model']}, learning rate {row['lr']:g}",
        "Assumed: Q estimated from labels and models",
        "held-out",
        "is trained with its own label and those of its 9 nearest samples",
    ):
        assert words in report
    assert f"{100 * chosen.estimate_.accuracy.value:.1f} %" in report
    assert chosen.estimate_.accuracy.verdict in report


def test_the_chosen_settings_give_the_same_model(blobs, chosen):
    """Fitted to all samples, as if they had been named."""
    x, _, ybar = blobs
    named = ComplementaryClassifier(**chosen.chosen_, random_state=0).fit(x, ybar)
    np.testing.assert_array_equal(named.decision_function(x), chosen.decision_function(x))
    cool = named.decision_function(x) / chosen.temperature_
    expected = np.exp(cool) / np.exp(cool).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chosen.predict_proba(x), expected, atol=1e-6)


def test_results_repeat(blobs):
    x, _, ybar = blobs
    one, two = (quick().fit(x, ybar) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(x), two.predict_proba(x))
    again = clone(one).fit(x, ybar).fit(x, ybar)  # nothing of an earlier choice is left
    np.testing.assert_array_equal(one.predict_proba(x), again.predict_proba(x))


@pytest.mark.parametrize(
    "given",
    [{"lr": 0.03}, {"model": "mlp"}, {"transition": Q}, {"transition": "uniform"}, {"max_epochs": 5}],
    ids=lambda given: next(iter(given)),
)
def test_what_is_given_is_taken(blobs, given):
    x, _, ybar = blobs
    model = quick(**given).fit(x, ybar)
    if "lr" in given:
        assert {row["lr"] for row in model.selection_} == {0.03}
    if "model" in given:
        assert model.chosen_["model"] == "mlp"
    if "transition" in given:
        expected = Q if given["transition"] is Q else uniform_transition(K)
        np.testing.assert_allclose(model.transition_, expected)
        assert len(model.selection_) == 2  # with labels of near samples, and with own labels
    if "max_epochs" in given:
        assert model.n_iter_ <= 5


def test_a_module_of_ones_own(blobs):
    x, y, ybar = blobs
    with torch.random.fork_rng():
        torch.manual_seed(0)  # from some beginnings it ends in a poor optimum
        module = torch.nn.Linear(2, K)
    model = quick(model=module, budget=6000).fit(x, ybar)
    (chosen,) = [row for row in model.selection_ if row["chosen"]]
    assert chosen["model"] == "own"
    assert {row["lr"] for row in model.selection_ if row["model"] == "own"} == set(_auto.OWN_LRS)
    assert (model.predict(x) == y).mean() > 0.8


def test_counts_are_kept_where_nothing_is_better():
    """Labels of popularity: what models make of them is noise."""
    x, y = make_blobs(1500, centers=K, cluster_std=1.2, random_state=3)
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    model = quick(budget=8000).fit(x, make_complementary(y, random_state=0))
    assert np.abs(model.transition_ - uniform_transition(K)).max() < 0.06
    assert (model.predict(x) == y).mean() > 0.93


def test_popularity_is_not_kept_where_labels_contradict_it():
    """Uneven counts may come from rare classes: then Q is another, and its figures are not accused."""
    family = "uniform"
    x, y = make_blobs([2400, 1200, 300, 300], cluster_std=0.9, random_state=3)
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    ybar = make_complementary(y, family, random_state=1)
    told = quick(transition="popularity").fit(x, ybar)
    model = quick().fit(x, ybar)
    assert told.estimate_.check.contradicted  # what is given is taken as it is, and accused
    assert model.chosen_["transition"] == family
    assert model.estimate_.accuracy.verdict == "can't be checked"
    assert model.estimate_.accuracy.low <= (model.predict(x) == y).mean() <= model.estimate_.accuracy.high


def test_several_labels(blobs):
    x, y, _ = blobs
    model = quick(budget=9000).fit(x, make_complementary(y, Q, n_labels=2, random_state=0))
    assert (model.predict(x) == y).mean() > 0.9
    assert model.estimate_ is None
    assert "Estimated accuracy" not in model.report()


def test_other_class_shares_at_the_temperature(blobs, chosen):
    """Temperature first, then the shift: its prior is the mean of the probabilities that it gives."""
    x, _, _ = blobs
    before, scores = chosen.predict_proba(x), chosen.decision_function(x)
    np.testing.assert_allclose(chosen.prior_, before.mean(axis=0), rtol=1e-5)
    target = np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum()
    moved = copy.copy(chosen).set_params(target_prior=target)
    expected = before * target / chosen.prior_
    np.testing.assert_allclose(
        moved.predict_proba(x), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-300
    )
    shift = np.log(target) - np.log(chosen.prior_)
    np.testing.assert_allclose(moved.decision_function(x), scores + chosen.temperature_ * shift, rtol=1e-9, atol=1e-9)
    assert (
        "Predictions are for given class shares; the estimate is for those of the training samples." in moved.report()
    )
    assert "Predictions are for" not in chosen.report()


def test_q_is_estimated_with_sample_weights(blobs):
    """Else samples that weights make up for would be made up for once more, by the Q of those that were kept."""
    x, _, ybar = blobs
    kept = np.flatnonzero((ybar != 0) | (np.arange(len(x)) % 3 == 0))
    weight = np.where(ybar[kept] == 0, 3.0, 1.0)
    model = quick(budget=None).fit(x[kept], ybar[kept], sample_weight=weight)
    assert model.estimate_ is None  # counts of those that were kept say nothing of all; score takes weights
    assert "accuracy" not in model.report()
    assert np.abs(model.transition_ - Q).max() < 0.15


def test_saved_and_loaded(blobs, chosen, tmp_path):
    x, _, ybar = blobs
    chosen.save(tmp_path / "model.safetensors")
    loaded = ComplementaryClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(x), chosen.predict_proba(x))
    assert loaded.selection_ == chosen.selection_
    assert {**loaded.chosen_, "transition": None} == {**chosen.chosen_, "transition": None}
    np.testing.assert_allclose(loaded.chosen_["transition"], chosen.transition_)
    assert loaded.report().splitlines()[0] == chosen.report().splitlines()[0]
    before = loaded.n_iter_
    assert loaded.set_params(warm_start=True).fit(x, ybar).n_iter_ == 2 * before  # goes on with what was chosen


def test_streams_and_named_losses(blobs):
    x, _, ybar = blobs
    stream = quick(classes=list(range(K)))
    for _ in range(40):
        stream.partial_fit(x, ybar)
    assert stream.n_iter_ == 40
    assert stream.belief_.family == "popularity"
    model = quick().fit(x, ybar)
    model.set_params(loss="log", lr=0.01, max_epochs=20).fit(x, ybar)
    assert not hasattr(model, "selection_")
    assert model.temperature_ == 1.0
    assert model.report().startswith("Trained: log, linear, learning rate 0.01, 20 epochs; nothing was selected.")


def test_a_fit_that_fails_changes_nothing(blobs):
    x, _, ybar = blobs
    model = quick().fit(x, ybar)
    before = model.predict_proba(x)
    with pytest.raises(InputError):
        model.fit(x[:-1], ybar)
    np.testing.assert_array_equal(model.predict_proba(x), before)
    assert model.selection_


def folds_of(x, ybar, groups=None):
    config = _auto.SearchConfig(K, 0.0, 256, torch.float32, torch.device("cpu"), 0)
    return _auto.make_folds(_auto.Pool(torch.as_tensor(x), ybar, np.ones(len(x)), groups).grouped(), config)


def test_copies_of_a_row_stay_on_one_side(blobs):
    x, _, ybar = blobs
    for fold in folds_of(np.repeat(x[:200], 5, axis=0), np.repeat(ybar[:200], 5)):
        train, held_out = (set(map(tuple, part.x.tolist())) for part in (fold.train, fold.held_out))
        assert not train & held_out
    pairs = np.repeat(np.arange(200), 2)
    groups = np.where(pairs % 2, pairs // 2, pairs // 2 + 1000 * (np.arange(400) % 2))  # some copies lie in two groups
    for fold in folds_of(x[pairs], ybar[pairs], groups):
        assert not set(map(tuple, fold.train.x.tolist())) & set(map(tuple, fold.held_out.x.tolist()))
        assert not set(fold.train.groups) & set(fold.held_out.groups)


def test_tables_with_few_different_rows_are_split_as_they_are(blobs):
    _, _, ybar = blobs
    x = np.random.default_rng(0).integers(0, 2, (400, 2)).astype(np.float32)
    assert len(folds_of(x, ybar[:400])) == _auto.FOLDS
    assert quick(budget=300).fit(x, ybar[:400]).selection_


def test_groups_stay_on_one_side(blobs):
    x, _, ybar = blobs
    groups = np.arange(len(x)) // 5
    folds = folds_of(x, ybar, groups)
    for fold in folds:
        assert not set(fold.train.groups) & set(fold.held_out.groups)
        assert abs(len(fold.held_out) - 0.2 * len(x)) < 10
    assert sum(len(fold.held_out) for fold in folds) == len(x)
    names = np.array([f"patient {g}" for g in groups])
    one, two = quick().fit(x, ybar, groups=names), quick().fit(x, ybar, groups=groups)
    assert one.n_iter_ >= 1
    assert two.n_iter_ >= 1


def scorer(labels, weight=None):
    return _auto.HeldOutScorer(_auto.Pool(torch.zeros(len(labels), 1), labels, np.ones(len(labels))), K)


def test_likelihoods_against_loops():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(20, K)), rng.integers(0, K, 20)
    for temperature in (1.0, 2.5):
        slow = []
        for row, label in zip(logits, labels, strict=True):
            chances = [math.exp(value / temperature) for value in row]
            slow.append(-math.log(sum(c * Q[y, label] for y, c in enumerate(chances)) / sum(chances)))
        np.testing.assert_allclose(scorer(labels).losses(logits[None], Q, [temperature])[0, 0], slow, rtol=1e-12)
    mask = rng.random((20, K)) < 0.4
    mask[:, 0] = True
    several = scorer(mask).losses(logits[None], Q, [1.0])[0, 0]
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    noisy = np.maximum(Q, np.finfo(float).tiny)
    slow = [
        -math.log(sum(p[y] * math.prod(noisy[y][row]) for y in range(K))) for p, row in zip(softmax, mask, strict=True)
    ]
    np.testing.assert_allclose(several, slow, rtol=1e-9)


def test_the_temperature_undoes_what_was_scaled():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40_000, K)) * 2
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1)
    labels = make_complementary(y, Q, random_state=0)
    for scale in (0.5, 3.0):
        assert scorer(labels).temperature(logits * scale, Q) == pytest.approx(scale, rel=0.1)


@pytest.mark.parametrize("n", [25, 60, 300, 1500])
def test_no_training_ends_within_its_warm_up(blobs, n):
    x, _, ybar = blobs
    for options in ({}, {"max_epochs": 2}, {"max_epochs": 3, "warm_up": 9}):
        model = ComplementaryClassifier(model="linear", random_state=0, budget=400, **options).fit(x[:n], ybar[:n])
        assert model.chosen_["max_epochs"] > model.chosen_["warm_up"], options


def test_a_smaller_budget_makes_shorter_trainings(blobs):
    x, _, ybar = blobs
    long, short = (quick(budget=budget).fit(x, ybar) for budget in (6000, 300))
    assert max(row["epoch"] for row in short.selection_) < max(row["epoch"] for row in long.selection_)


@pytest.mark.parametrize(
    ("options", "fit", "error", "message"),
    [
        ({"budget": 0}, {}, InputError, "budget: expected a whole number from 1"),
        ({"max_epochs": 0}, {}, InputError, "max_epochs: expected a whole number from 1"),
        ({"weights": "wcll"}, {}, InputError, "weights: expected none or 'auto' for loss='auto'"),
        ({"model": "conv"}, {}, InputError, "model: expected"),
        ({"lr": -1.0}, {}, InputError, "lr: expected"),
        ({}, {"groups": [1, 2]}, InputError, "groups: expected 1500 groups, one for each sample of X"),
        ({}, {"groups": [0, 1, 2] * 500}, InputError, "groups: expected at least 4 groups, for splits, got 3"),
        ({}, {"groups": np.array([0, "a"] * 750, dtype=object)}, InputTypeError, "groups: expected names or numbers"),
    ],
)
def test_bad_arguments_are_one_line(blobs, options, fit, error, message):
    x, _, ybar = blobs
    with pytest.raises(error) as raised:
        quick(**options).fit(x, ybar, **fit)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_too_few_samples_choose_nothing():
    x = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.warns(
        LabelWarning, match="12 samples are too few to select by: forward with popularity's Q is trained"
    ):
        model = quick().fit(x, np.arange(12) % 3)
    assert model.belief_.family == "popularity"
    assert not hasattr(model, "selection_")
    large = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(LabelWarning, match="too few to select by"):
        again = quick(transition=uniform_transition(3)).fit(large, np.arange(60) % 3).fit(x, np.arange(12) % 3)
    assert not hasattr(again, "chosen_")  # nor is anything of an earlier choice
    assert model.report().startswith("Trained: forward, linear, ")


def test_a_rare_label_that_is_held_out():
    """What is trained on may lack a class that some held-out sample is labelled with."""
    rng = np.random.default_rng(0)
    x, ybar = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(0, 3, 60)
    for place in range(0, 60, 20):
        rare = ybar.copy()
        rare[place] = 3
        assert np.isfinite(quick(classes=range(4)).fit(x, rare).predict_proba(x)).all()


@pytest.mark.parametrize("seconds", [1e-9, 0.3])
def test_a_choice_that_time_cuts_short_says_so(blobs, seconds):
    x, y, ybar = blobs
    model = ComplementaryClassifier(model="linear", max_time=seconds, random_state=0).fit(x, ybar)
    assert "max_time ended the search early" in model.report()
    assert (model.predict(x) == y).mean() > 0.4
    whole = ComplementaryClassifier(model="linear", max_time=1e6, budget=300, random_state=0).fit(x, ybar)
    assert "max_time" not in whole.report()


def test_a_time_is_a_positive_number(blobs):
    with pytest.raises(InputError, match="max_time: expected a number above 0, got 0"):
        ComplementaryClassifier(max_time=0).fit(blobs[0], blobs[2])


def test_of_many_samples_a_limited_number_is_held_out():
    n = 30_000
    x = np.random.default_rng(0).normal(size=(n, 1)).astype(np.float32)
    folds = folds_of(x, np.arange(n) % K)
    assert len(folds) == _auto.FOLDS_OF_LARGE
    assert all(len(fold.held_out) <= _auto.MAX_HELD_OUT for fold in folds)
    assert len({len(fold.train) for fold in folds}) == 1


@pytest.mark.parametrize(
    ("shape", "device", "expected"),
    [
        ((3, 32, 32), "cuda", "strong"),
        ((1, 32, 32), "cuda", {"name": "strong", "flip": False, "test_flip": False}),
        ((28, 28), "cuda", {"name": "strong", "flip": False, "test_flip": False}),
        ((3, 32, 32), "cpu", None),
        ((8, 8), "cuda", None),
        ((784,), "cuda", None),
    ],
)
def test_images_on_a_gpu_are_for_networks(shape, device, expected):
    assert _auto.training_for(shape, torch.device(device)) == expected


def test_a_network_that_was_chosen_for_images_is_kept(monkeypatch, tmp_path):
    small = {"name": "strong", "crop": 1, "flip": False, "test_flip": False}
    monkeypatch.setattr(_auto, "training_for", lambda shape, device: small)
    monkeypatch.setitem(recipe.USUAL["strong"], "model", {"name": "cnn9", "width": 2, "dropout": 0.0})
    rng = np.random.default_rng(0)
    x, ybar = rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), rng.integers(0, 3, 60)
    model = ComplementaryClassifier(budget=100, max_epochs=2, batch_size=32, random_state=0).fit(x, ybar)
    assert (model.training, model.model) == (None, None)  # as they were given
    assert model.chosen_["training"] == small
    assert model.chosen_["model"]["name"] == "cnn9"
    model.save(tmp_path / "m.safetensors")
    loaded = ComplementaryClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    again = ComplementaryClassifier(**model.chosen_, batch_size=32, random_state=0).fit(x, ybar)
    np.testing.assert_array_equal(again.decision_function(x), model.decision_function(x))


def test_neighbors_that_say_little_do_not_spoil_an_estimated_q():
    """Forty columns of noise hide the ten that say something from the search for neighbours."""
    rng, k, n = np.random.default_rng(1), 6, 2000
    means, y = 1.1 * rng.normal(size=(k, 10)), rng.integers(0, k, 2 * n)
    x = np.hstack([means[y] + rng.normal(size=(2 * n, 10)), 3 * rng.normal(size=(2 * n, 40))]).astype(np.float32)
    ybar = make_complementary(y[:n], biased_transition(k, strength="strong", random_state=1), random_state=1)
    model = quick(budget=12_000).fit(x[:n], ybar)
    assert (model.predict(x[n:]) == y[n:]).mean() > 0.6


def test_a_frequent_row_does_not_take_the_training_samples():
    rng = np.random.default_rng(0)
    x = np.where(rng.random((1000, 1)) < 0.9, 0.0, rng.normal(size=(1000, 3))).astype(np.float32)
    assert min(len(fold.train) for fold in folds_of(x, rng.integers(0, 3, 1000))) > 750


def test_samples_of_weight_zero_are_not_searched_with(blobs):
    x, _, ybar = blobs
    weight = (np.arange(len(x)) % 3 == 0).astype(float)
    model = quick().fit(x, ybar, sample_weight=weight)
    alone = quick().fit(x[weight > 0], ybar[weight > 0])
    assert [row["score"] for row in model.selection_] == [row["score"] for row in alone.selection_]
    with pytest.warns(LabelWarning, match="12 samples are too few to select by"):
        quick().fit(x, ybar, sample_weight=(np.arange(len(x)) < 12).astype(float))


@pytest.mark.parametrize("seed", [2**40, -1])
def test_any_whole_number_is_a_seed(seed, blobs):
    x, _, ybar = blobs
    assert quick(random_state=seed, budget=300).fit(x[:300], ybar[:300]).selection_


def test_the_length_is_that_of_the_samples_that_were_searched_with(blobs, monkeypatch):
    """Three times as many samples take a third of the epochs."""
    x, _, ybar = blobs
    monkeypatch.setattr(_auto, "MAX_SEARCHED", 500)
    model = quick(budget=6000).fit(x, ybar)
    searched = next(row["epoch"] for row in model.selection_ if row["chosen"])
    assert model.n_iter_ == model.chosen_["max_epochs"] == math.ceil(searched / 3)
    assert model.chosen_["warm_up"] < model.chosen_["max_epochs"]


def test_time_that_is_over_ends_an_estimate_of_q(blobs, monkeypatch):
    """It would be thrown away: no epoch of it is trained to its end."""
    x, _, ybar = blobs
    epochs, trained = [], _auto.train
    monkeypatch.setattr(
        _auto, "train", lambda engine, n, watch: (trained(engine, n, watch), epochs.append(engine.epoch))
    )
    quick(max_time=1e-6, budget=None).fit(x, ybar)
    assert epochs[0] == 1


def test_max_epochs_does_not_lengthen_the_estimate_of_q(blobs, monkeypatch):
    x, _, ybar = blobs
    epochs, trained = [], _auto.train
    monkeypatch.setattr(
        _auto, "train", lambda engine, n, watch: (trained(engine, n, watch), epochs.append(engine.epoch))
    )
    quick(max_epochs=2000, budget=QUICK).fit(x[:400], ybar[:400])
    assert epochs[0] < 2000


def test_purity_is_estimated_from_labels():
    """Where neighbours are of any class, it is the chance of that."""
    x, y = make_blobs(2000, centers=K, cluster_std=1.2, random_state=3)
    ybar, noise = make_complementary(y, Q, random_state=0), np.random.default_rng(0).normal(size=(len(x), 3))
    options = {"transition": Q, "neighbors": 10, "lr": 0.05, "max_epochs": 30, "random_state": 0}
    for features in (x, noise):
        model = ComplementaryClassifier("forward", **options).fit(x, ybar, neighbor_features=features)
        index = NearestNeighbors(n_neighbors=10).fit(features).kneighbors(features, return_distance=False)
        assert model.neighbor_purity_ == pytest.approx((y[index[:, 1:]] == y[:, None]).mean(), abs=0.06)


def test_one_weight_that_differs(blobs):
    """It lies in one half of one fold, whose samples train in step with those of the others."""
    x, _, ybar = blobs
    weight = np.ones(len(x))
    weight[0] = 2.0
    model = quick(budget=300).fit(x, ybar, sample_weight=weight)
    assert model.estimate_ is None or model.estimate_.n


def test_time_that_ends_between_modules_of_ones_own(monkeypatch):
    """Those that trained for longer are compared at the checkpoints that all have."""
    x = np.random.default_rng(0).normal(size=(400, 1, 4, 4)).astype(np.float32)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    calls = iter([False] * 500 + [True] * 10**6)
    monkeypatch.setattr(_auto.Deadline, "stops", lambda self: next(calls))
    model = ComplementaryClassifier(model=module, random_state=0, budget=3000, max_time=1e6, transition="uniform")
    model.fit(x, np.arange(400) % 3)
    assert model.chosen_["max_epochs"] > model.chosen_["warm_up"]


def test_a_warm_start_takes_features_of_neighbors(blobs):
    x, _, ybar = blobs
    model = quick(warm_start=True, budget=6000).fit(x, ybar, neighbor_features=x)
    before = model.n_iter_
    assert model.chosen_["neighbors"] == 10
    assert model.fit(x, ybar, neighbor_features=x).n_iter_ == 2 * before
    model.set_params(neighbors=1)
    with pytest.raises(InputError, match="neighbor_features: expected None where neighbors is 1"):
        quick(neighbors=1).fit(x, ybar, neighbor_features=x)


def test_groups_do_not_straddle_the_halves_of_an_estimate(blobs):
    x, _, ybar = blobs
    groups = np.arange(len(x)) // 100
    pool = _auto.Pool(torch.as_tensor(x), ybar, np.ones(len(x)), groups)
    order, lower, upper = _auto._split_in_half(pool, np.random.default_rng(0))
    assert lower == upper
    assert not set(groups[order[:lower]]) & set(groups[order[upper:]])
    assert abs(lower - len(x) // 2) <= 50


def test_a_report_compares_candidates_on_the_same_samples(blobs, chosen):
    other = next((row for row in chosen.selection_ if row["samples"] != chosen.selection_[0]["samples"]), None)
    assert other is not None  # the network, on the first fold alone
    compared = [line for line in chosen.report().splitlines() if line.startswith(("  next best", "  likelier"))]
    selected = next(row for row in chosen.selection_ if row["chosen"])
    same = [row for row in chosen.selection_ if row["samples"] == selected["samples"] and not row["chosen"]]
    assert len(compared) == bool(same)
    assert all(f"{same[0]['score']:.4f}" in line for line in compared)
    rows = [{name: value for name, value in row.items() if name != "neighbors"} for row in chosen.selection_]
    assert "own labels only" in _auto.in_words(rows, chosen.belief_, None, 1.0)  # of a model saved earlier
