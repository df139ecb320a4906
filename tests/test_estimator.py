"""The estimator as a user meets it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from cases import CASES
from wcll import ComplementaryClassifier, LabelWarning
from wcll.evaluation import LogLikelihoodScorer, label_free_accuracy, label_free_confusion
from wcll.evaluation.label_free import complementary_log_likelihood
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import (
    Belief,
    class_weights,
    imbalance_counts,
    inverse_size_transition,
    make_complementary,
    uniform_transition,
)
from wcll.labels.encoding import to_mask
from wcll.losses import LOSSES, LossSpec

COMPLEMENTARY = [name for name, spec in LOSSES.items() if spec.labels == "complementary"]


@pytest.fixture(scope="module")
def iris():
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return x[order], y[order], make_complementary(y[order], random_state=0)


def quick(loss="forward", **options):
    return ComplementaryClassifier(loss, **{"lr": 0.05, "random_state": 0, "max_epochs": 60, **options})


@pytest.mark.parametrize("loss", COMPLEMENTARY)
def test_every_loss_learns(loss):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1500)
    x = 3 * np.eye(4)[y] + rng.normal(size=(1500, 4))
    model = quick(loss, max_epochs=60).fit(x, make_complementary(y, random_state=0))
    assert accuracy_score(y, model.predict(x)) > 0.6  # chance is 0.25; gradient ascent swings at this rate


def test_forms_of_features_give_the_same_model(iris):
    x, _, ybar = iris
    expected = quick().fit(x, ybar).predict_proba(x)
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    for form in (x.tolist(), torch.from_numpy(x), frame):
        model = quick().fit(form, ybar)
        np.testing.assert_array_equal(model.predict_proba(form), expected)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    "form", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix", "lil_array"]
)
def test_sparse_features_are_those_of_a_dense_table(iris, form):
    x, _, ybar = iris
    sparse = getattr(scipy.sparse, form)(x)
    dense, model = quick(max_epochs=3).fit(x, ybar), quick(max_epochs=3).fit(sparse, ybar)
    for one in (dense, model):
        one.partial_fit(sparse if one is model else x, ybar)
    assert model.n_features_in_ == 4
    for features in (x, sparse):
        np.testing.assert_array_equal(model.predict_proba(features), dense.predict_proba(x))
        np.testing.assert_array_equal(model.predict(features), dense.predict(x))
        np.testing.assert_array_equal(model.decision_function(features), dense.decision_function(x))
        assert model.score(features, ybar) == dense.score(x, ybar)
        assert str(model.evaluate(features, ybar)) == str(dense.evaluate(x, ybar))
    assert get_tags(model).input_tags.sparse


def test_sparse_features_of_many_kinds(iris):
    x, _, ybar = iris
    counts = scipy.sparse.csr_array((x > 3).astype(np.int64))
    for kind in (np.uint8, np.int64, bool, np.float32):
        dense = quick(max_epochs=2, dtype="float64").fit(counts.toarray().astype(kind), ybar)
        model = quick(max_epochs=2, dtype="float64").fit(counts.astype(kind), ybar)
        np.testing.assert_array_equal(model.predict_proba(counts.astype(kind)), dense.predict_proba(counts.toarray()))
    frame = pd.DataFrame.sparse.from_spmatrix(counts, columns=list("abcd"))
    model = quick(max_epochs=2, dtype="float64").fit(frame, ybar)
    np.testing.assert_array_equal(model.predict_proba(frame), dense.predict_proba(counts.toarray()))
    assert model.feature_names_in_.tolist() == list("abcd")
    chosen = ComplementaryClassifier(budget=200, model="linear", random_state=0).fit(scipy.sparse.csr_array(x), ybar)
    assert chosen.coef_.shape == (3, 4)


def test_sparse_features_that_do_not_fit_are_one_line(iris):
    x, _, ybar = iris
    wide = scipy.sparse.csr_array((150, 10**12))
    remedy = "take fewer features, or some of the rows at a time"
    with pytest.raises(InputError, match="X: expected at most .*, got 150 samples of 1000000000000 .*dense.*" + remedy):
        quick().fit(wide, ybar)
    model = quick(max_epochs=1).fit(x, ybar)
    long = scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(10**12, 4))
    with pytest.raises(InputError, match="X: expected at most .*, got 1000000000000 samples of 4 .*dense.*" + remedy):
        model.predict(long)
    with pytest.raises(InputError, match=r"X: expected .* expecting 4 features"):
        model.predict(scipy.sparse.csr_array((2, 5)))


def test_forms_of_labels_give_the_same_model(iris):
    x, _, ybar = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    expected = quick().fit(x, ybar).predict_proba(x)
    forms = [
        ybar.tolist(),
        torch.from_numpy(ybar),
        pd.Series(names[ybar]),
        names[ybar].tolist(),
        to_mask(ybar, 3),
        to_mask(ybar, 3).astype(int),
        [[label] for label in ybar],
        [[name] for name in names[ybar]],
        ybar - 5,
    ]
    for form in forms:
        np.testing.assert_allclose(quick().fit(x, form).predict_proba(x), expected, atol=1e-5)
    assert set(quick().fit(x, names[ybar]).predict(x)) <= set(names)
    assert quick().fit(x, ybar - 5).classes_.tolist() == [-5, -4, -3]


def test_several_labels_say_more_and_split_into_pairs_where_a_loss_takes_one(iris):
    x, y, _ = iris
    sets = make_complementary(y, n_labels=2, random_state=0)  # of three classes: the label is given away
    for loss in ("log", "pc", "wcll"):
        assert accuracy_score(y, quick(loss, max_epochs=300).fit(x, sets).predict(x)) > 0.9


def test_classes_that_never_occur(iris):
    x, _, ybar = iris
    with pytest.warns(LabelWarning, match="classes: class 7 is never a label, so that nothing speaks against"):
        model = quick("log", classes=[0, 1, 2, 7]).fit(x, ybar)
    assert model.predict_proba(x).shape == (150, 4)
    observed = "class 7 is never a label, so that .* class weights come from the observed shares; leave out"
    with pytest.warns(LabelWarning, match=observed) as caught:
        model = quick("wcll", classes=[0, 1, 2, 7]).fit(x, ybar)
    assert len(caught) == 1
    assert model.weights_.pi_source == "observed"


def test_two_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 50)
    x = rng.normal(size=(100, 2)) + 4 * (y == "yes")[:, None]
    other = np.where(y == "yes", "no", "yes")  # a complementary label is the other class
    model = quick("log").fit(x, other)
    assert accuracy_score(y, model.predict(x)) > 0.95
    assert model.decision_function(x).shape == (100,)


def test_a_linear_model_shows_its_coefficients(iris, tmp_path):
    x, _, ybar = iris
    model = quick(max_epochs=5).fit(x, ybar)
    model.save(tmp_path / "model.safetensors")
    for fitted in (model, ComplementaryClassifier.load(tmp_path / "model.safetensors")):
        assert fitted.coef_.shape == (3, 4)
        assert fitted.intercept_.shape == (3,)
        own = x @ fitted.coef_.T + fitted.intercept_
        np.testing.assert_allclose(own, fitted.decision_function(x), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(fitted.classes_[own.argmax(1)], fitted.predict(x))
    before = model.coef_.copy()
    model.coef_[:] = 0.0  # what is shown is a copy
    np.testing.assert_array_equal(model.coef_, before)
    model.target_prior = [0.2, 0.2, 0.6]
    np.testing.assert_allclose(x @ model.coef_.T + model.intercept_, model.decision_function(x), rtol=1e-5, atol=1e-5)


def test_coefficients_of_two_classes_and_of_images():
    rng = np.random.default_rng(0)
    x, ybar = rng.normal(size=(60, 3)), np.arange(60) % 2
    model = quick(max_epochs=2).fit(x, ybar)
    assert model.coef_.shape == (2, 3)
    own = x @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(own[:, 1] - own[:, 0], model.decision_function(x), rtol=1e-5, atol=1e-5)
    images, ybar = rng.random((60, 1, 6, 6), dtype=np.float32), np.arange(60) % 3
    for training in ("plain", "strong"):  # whose predictions are means over images and their mirror images
        model = quick(model="linear", max_epochs=2, training=training).fit(images, ybar)
        own = images.reshape(60, -1) @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(own, model.decision_function(images), rtol=1e-5, atol=1e-5)


def test_only_fitted_linear_models_have_coefficients(iris):
    x, _, ybar = iris
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match=f"^{name}: the model is not fitted yet$"):
            getattr(quick(), name)
        with pytest.raises(AttributeError, match=f"^{name}: only linear models have one, and this is 'mlp'$"):
            getattr(quick(model="mlp", max_epochs=1).fit(x, ybar), name)
        own = quick(model=torch.nn.Linear(4, 3), max_epochs=1).fit(x, ybar)
        with pytest.raises(AttributeError, match=f"^{name}: only linear models have one, and this is your own$"):
            getattr(own, name)
    assert not hasattr(quick(), "coef_")


def test_wcll_takes_its_weights_from_the_recovered_pi(iris):
    x, _, ybar = iris
    model = quick("wcll").fit(x, ybar)
    assert model.weights_.pi_source == "recovered"
    assert model.weights_.values[ybar].mean() == pytest.approx(1)
    assert quick("log").fit(x, ybar).weights_ is None
    assert quick("log", weights="inverse-frequency").fit(x, ybar).weights_.scheme == "inverse-frequency"
    free = quick("free", dtype="float64").fit(x, ybar)
    eq9 = {"name": "wcll", "reading": "eq9"}
    unweighted = quick(eq9, weights=None, dtype="float64", batch_size=1000).fit(x, ybar)
    same = quick("free", dtype="float64", batch_size=1000).fit(x, ybar)
    np.testing.assert_allclose(unweighted.predict_proba(x), same.predict_proba(x), atol=1e-10)
    assert free.transition_.tolist() == uniform_transition(3).tolist()


def test_options_of_loss_and_model(iris):
    x, _, ybar = iris
    model = quick({"name": "wcll", "reading": "algorithm1"}, model={"name": "mlp", "hidden": 10}, weights="wcll")
    assert model.fit(x, ybar).network_.output.weight.shape == (1, 3, 10)


def test_a_module_and_a_loss_of_ones_own(iris):
    x, y, ybar = iris
    module = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3))

    def own_loss(logits, targets):
        return -torch.log1p(-logits.softmax(-1).gather(-1, targets.index.expand(1, -1).unsqueeze(-1))).mean((-2, -1))

    models = [quick(own_loss, model=module).fit(x, ybar) for _ in range(2)]
    assert accuracy_score(y, models[0].predict(x)) > 0.8
    np.testing.assert_array_equal(models[0].predict_proba(x), models[1].predict_proba(x))


def test_images(iris):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    x = rng.integers(0, 40, (90, 1, 8, 8)).astype(np.uint8)
    x[np.arange(90), 0, :, 2 * y] += 200
    ybar = make_complementary(y, random_state=0)
    model = quick(model={"name": "cnn9", "width": 4}, max_epochs=30, lr=0.01).fit(x, ybar)
    assert accuracy_score(y, model.predict(x)) > 0.8
    assert model.n_features_in_ == 64
    with pytest.raises(InputError, match=r"X: expected images of shape \(1, 8, 8\), got \(1, 9, 9\)"):
        model.predict(np.zeros((2, 1, 9, 9), dtype=np.uint8))


def test_a_warm_up_is_told_popularity_first(iris):
    """And kept from giving up classes; counted over warm starts; and never without a loss that takes Q."""
    x, _, ybar = iris
    told = {"transition": [[0, 0.8, 0.2], [0.5, 0, 0.5], [0.3, 0.7, 0]], "loss": "forward", "random_state": 0}
    whole = quick(**told, max_epochs=6, warm_up=2).fit(x, ybar)
    parts = quick(**told, max_epochs=3, warm_up=2, warm_start=True).fit(x, ybar).fit(x, ybar)
    first = {"loss": {"name": "forward", "balance": 0.3}, "transition": "popularity"}
    early = quick(**{**told, **first}, max_epochs=2, warm_start=True).fit(x, ybar)
    early.set_params(loss="forward", transition=told["transition"], max_epochs=4).fit(x, ybar)
    cold = quick(**told, max_epochs=6).fit(x, ybar)
    for model in (parts, early):
        np.testing.assert_array_equal(model.predict_proba(x), whole.predict_proba(x))
    assert not np.array_equal(cold.predict_proba(x), whole.predict_proba(x))
    np.testing.assert_array_equal(whole.transition_, cold.transition_)
    log = {**told, "loss": "log", "transition": None}
    same = [quick(**log, max_epochs=4, warm_up=w).fit(x, ybar).predict_proba(x) for w in (0, 2)]
    np.testing.assert_array_equal(*same)
    for wrong in (-1, "two", float("nan")):
        with pytest.raises((InputError, InputTypeError), match="warm_up: expected"):
            quick(warm_up=wrong).fit(x, ybar)


def test_fit_starts_anew_and_warm_start_goes_on(iris):
    x, _, ybar = iris
    model = quick(max_epochs=5)
    first = model.fit(x, ybar).predict_proba(x)
    np.testing.assert_array_equal(model.fit(x, ybar).predict_proba(x), first)
    slow = quick(max_epochs=5, warm_start=True).fit(x, ybar)
    still = slow.predict_proba(x)
    np.testing.assert_allclose(slow.set_params(lr=1e-12).fit(x, ybar).predict_proba(x), still, atol=1e-6)
    warm = quick(max_epochs=5, warm_start=True).fit(x, ybar).fit(x, ybar)
    assert warm.n_iter_ == 10
    np.testing.assert_array_equal(warm.predict_proba(x), quick(max_epochs=10).fit(x, ybar).predict_proba(x))


def test_partial_fit_is_one_epoch(iris):
    x, _, ybar = iris
    whole = quick(max_epochs=3).fit(x, ybar)
    parts = quick()
    for _ in range(3):
        parts.partial_fit(x, ybar, classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.predict_proba(x), whole.predict_proba(x))
    stream = quick("wcll", lr=0.01)
    for _ in range(20):
        for start in range(0, 150, 50):
            stream.partial_fit(x[start : start + 50], ybar[start : start + 50], classes=[0, 1, 2])
    assert stream.label_totals_.sum() == 20 * 150


def test_history_callbacks_and_verbose(iris, capsys):
    x, _, ybar = iris
    seen = []
    model = quick(verbose=2, callbacks=[lambda end: seen.append(end.epoch) or end.epoch == 5])
    model.fit(x, ybar)
    assert seen == [1, 2, 3, 4, 5]
    assert model.n_iter_ == 5
    assert [set(row) for row in model.history_] == [{"epoch", "loss", "seconds"}] * 5
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    assert capsys.readouterr().out.count("epoch") == 2
    json.dumps(model.history_)


def test_a_callback_may_look_at_the_classifier_as_it_is(iris, tmp_path):
    x, _, ybar = iris
    seen, models = {}, []

    def look(end):
        now = end.classifier()
        models.append(now)
        seen[end.epoch] = now.predict_proba(x)
        assert now.n_iter_ == len(now.history_) == end.epoch
        if end.epoch == 2:
            now.save(tmp_path / "early")

    model = quick(max_epochs=4, callbacks=[look]).fit(x, ybar)
    for epochs, probabilities in seen.items():
        np.testing.assert_array_equal(probabilities, quick(max_epochs=epochs).fit(x, ybar).predict_proba(x))
    np.testing.assert_array_equal(model.predict_proba(x), seen[4])
    assert [len(one.history_) for one in models] == [1, 2, 3, 4]  # what comes later does not change them
    np.testing.assert_array_equal(models[0].predict_proba(x), seen[1])
    np.testing.assert_array_equal(ComplementaryClassifier.load(tmp_path / "early").predict_proba(x), seen[2])


def test_threads_of_torch_are_as_before(iris):
    x, _, ybar = iris
    used, before = [], torch.get_num_threads()

    def loss(logits, targets):
        used.append(torch.get_num_threads())
        return LOSSES["log"].function(logits, targets)

    try:
        torch.set_num_threads(3)
        quick(loss, max_epochs=2, callbacks=[lambda end: used.append(torch.get_num_threads())]).fit(x, ybar).predict(x)
        assert used == [1, 3, 1, 3]  # a callback may well need them all
        with pytest.raises(KeyError):
            quick(callbacks=[lambda end: {}["stop"]]).fit(x, ybar)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("model", "threads"),
    [("linear", 1), ({"name": "mlp", "hidden": 50}, 1), ({"name": "mlp", "hidden": 500}, 3)],
    ids=["linear", "small mlp", "mlp"],
)
def test_networks_with_long_steps_take_all_threads(model, threads):
    rng = np.random.default_rng(0)
    x, ybar = rng.standard_normal((300, 500), dtype=np.float32), rng.integers(0, 3, 300)
    used, before = [], torch.get_num_threads()

    def loss(logits, targets):
        used.append(torch.get_num_threads())
        return LOSSES["log"].function(logits, targets)

    try:
        torch.set_num_threads(3)
        quick(loss, model=model, max_epochs=1, batch_size=256).fit(x, ybar)
    finally:
        torch.set_num_threads(before)
    assert used == [threads]


class Keeps(torch.nn.Module):
    """Keeps its last output, which cannot be copied, and something that is no tensor."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        self.output = self.layer(x)
        return self.output

    def get_extra_state(self):
        return {"version": 1}

    def set_extra_state(self, state):
        assert state == {"version": 1}


def test_modules_that_cannot_be_copied_after_a_step(iris):
    x, _, ybar = iris
    model = quick("log", model=Keeps(), max_epochs=3).fit(x, ybar)
    plain = quick("log", model=model.model.layer, max_epochs=3).fit(x, ybar)
    np.testing.assert_array_equal(model.predict_proba(x), plain.predict_proba(x))
    assert model.partial_fit(x, ybar).n_iter_ == 4
    with pytest.raises(KeyError, match="mine"):  # not another error on the way out
        quick("log", model=Keeps(), callbacks=[lambda end: {}["mine"]]).fit(x, ybar)


def test_a_loss_of_ones_own_is_called_once_a_step_on_plain_tensors(iris):
    x, _, ybar = iris
    calls = []

    def own(logits, targets):
        calls.append(
            bool(targets.sample_weight.eq(1).all()) and targets.mask.is_contiguous() and logits.is_contiguous()
        )
        return LOSSES["log"].function(logits, targets)

    for model in ("linear", {"name": "mlp", "hidden": 4}):
        calls.clear()
        quick(own, model=model, batch_size=50, max_epochs=2).fit(x, ybar, sample_weight=np.full(150, 3.0))
        assert calls == [True] * 6
    with pytest.raises(InputError, match="weights: expected none or 'auto' for a loss of your own"):
        quick(own, weights="inverse-frequency").fit(x, ybar)


def test_weights_that_were_made_before_keep_their_pi(iris):
    x, _, ybar = iris
    loss = {"name": "wcll", "reading": "algorithm1"}
    made = quick(loss, weights=class_weights("wcll", ybar, 3), max_epochs=5).fit(x, ybar)
    np.testing.assert_array_equal(made.predict_proba(x), quick(loss, max_epochs=5).fit(x, ybar).predict_proba(x))


def test_what_a_callback_sets_stays_and_what_it_takes_is_its_own(iris):
    x, _, ybar = iris
    ends = []

    def look(end):
        model.best_ = end.loss
        taken = end.classifier()
        for name in ("label_totals_", "transition_", "classes_"):
            getattr(taken, name)[:] = 0
        ends.append(end)

    model = quick("log", max_epochs=3)
    model.set_params(callbacks=[look]).fit(x, ybar)
    assert model.best_ == model.history_[-1]["loss"]
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.label_totals_.sum() == 150
    np.testing.assert_array_equal(model.transition_, uniform_transition(3))
    with pytest.raises(RuntimeError, match="training has gone on"):
        ends[0].classifier()


def test_an_interrupted_first_epoch_changes_nothing(iris):
    x, _, ybar = iris

    def dying(logits, targets):
        dying.calls += 1
        if dying.calls > 3:
            raise KeyboardInterrupt
        return LOSSES["log"].function(logits, targets)

    dying.calls = 0
    model = quick("log", batch_size=16, max_epochs=2).fit(x, ybar)
    before, totals = model.predict_proba(x), model.label_totals_.copy()
    with pytest.raises(KeyboardInterrupt):
        model.set_params(loss=dying).partial_fit(x, ybar)
    np.testing.assert_array_equal(model.predict_proba(x), before)
    np.testing.assert_array_equal(model.label_totals_, totals)
    assert model.n_iter_ == 2
    whole = quick("log", batch_size=16, max_epochs=3).fit(x, ybar)
    np.testing.assert_array_equal(
        model.set_params(loss="log").partial_fit(x, ybar).predict_proba(x), whole.predict_proba(x)
    )


def test_divergence_is_told(iris):
    x, _, ybar = iris
    with pytest.warns(RuntimeWarning, match="training diverged: the loss is not finite; lower lr"):
        quick("free", lr=1e30, max_epochs=10, device="cpu").fit(x, ybar)


def test_first_parts_of_a_stream_may_have_one_label():
    model = quick("wcll", transition="inverse-size")
    for start in (0, 3, 6):
        model.partial_fit(X[start : start + 3], Y[:3] * 0 + start // 3, classes=[0, 1, 2])
    assert model.label_totals_.tolist() == [3, 3, 3]


def test_bytes_are_scaled_in_images_only_and_as_in_fit():
    bits = (X > 0).astype(np.uint8)
    np.testing.assert_array_equal(
        quick().fit(bits, Y).predict_proba(bits), quick().fit(bits.astype(float), Y).predict_proba(bits.astype(float))
    )
    images = np.random.default_rng(0).integers(0, 255, (12, 2, 3)).astype(np.uint8)
    model = quick().fit(images, Y)
    with pytest.raises(InputError, match="X: expected unsigned bytes, as in fit, got float64"):
        model.predict(images.astype(float))
    assert model.fit(X, Y).predict(X).shape == (12,)  # a table after images
    with pytest.raises(InputError, match=r"a table of 3 features, as in fit, got shape \(12, 2, 3\)"):
        quick().fit(X, Y).predict(images)


def test_odd_arrays_are_read_as_numbers():
    expected = quick().fit(X[:, ::-1].copy(), Y).predict_proba(X[:, ::-1].copy())
    for odd in (X[:, ::-1], X[:, ::-1].astype(">f8"), X[:, ::-1].astype(np.longdouble)):
        np.testing.assert_allclose(quick().fit(odd, Y).predict_proba(odd), expected, rtol=1e-6)


def test_what_was_fitted_decides_how_to_predict():
    model = quick("pc").fit(X, Y).set_params(loss="log", dtype="float64")
    assert not hasattr(model, "predict_proba")
    assert model.predict(X).shape == (12,)
    with pytest.raises(InputError, match="dtype: expected 'float32', with which training began, got 'float64'"):
        model.set_params(warm_start=True).fit(X, Y)
    with pytest.raises(InputError, match="model: expected 'linear', with which training began, got 'mlp'"):
        model.set_params(dtype="float32", model="mlp").fit(X, Y)
    assert model.set_params(model="linear").fit(X, Y).predict_proba(X).shape == (12, 3)  # now with "log"


def test_an_interrupted_fit_keeps_what_it_learned():
    def stop(end):
        if end.epoch == 3:
            raise KeyboardInterrupt

    model = quick(callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.n_iter_ == len(model.history_) == 3
    assert model.predict(X).shape == (12,)


# Scoring without true labels


def test_score_estimates_accuracy_and_does_not_reward_the_worst_model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 20_000)
    x = 3 * np.eye(4)[y] + rng.normal(size=(20_000, 4))
    ybar = make_complementary(y, random_state=0)
    model = quick(max_epochs=5).fit(x[:5000], ybar[:5000])
    truth = accuracy_score(y[5000:], model.predict(x[5000:]))
    estimate, error = label_free_accuracy(ybar[5000:], model._outputs(x[5000:]).argmax(-1).numpy(), model.transition_)
    assert model.score(x[5000:], ybar[5000:]) == pytest.approx(estimate)
    assert abs(estimate - truth) < 4 * error
    assert estimate > 0.8
    worst = np.array(ybar[5000:])  # predicting the complementary label itself
    assert label_free_accuracy(ybar[5000:], worst, model.transition_)[0] == pytest.approx(-2)


def test_label_free_accuracy_is_unbiased_for_any_matrix():
    """Exact expectation over labels: the estimate for each (y, prediction) is whether they agree."""
    q = inverse_size_transition([5, 1, 3])
    for y in range(3):
        for predicted in range(3):
            expected = sum(q[y, j] * label_free_accuracy(np.array([j]), np.array([predicted]), q)[0] for j in range(3))
            assert expected == pytest.approx(float(y == predicted))


def test_pipelines_and_cross_validation(iris):
    x, y, ybar = iris
    pipeline = make_pipeline(StandardScaler(), quick("wcll"))
    assert accuracy_score(y, pipeline.fit(x, ybar).predict(x)) > 0.7
    assert cross_val_score(pipeline, x, ybar, cv=3).shape == (3,)
    assert cross_val_score(pipeline, x, ybar, cv=3, scoring=LogLikelihoodScorer()).max() < 0
    assert LogLikelihoodScorer()(pipeline, x, np.array([0, 1, 2] * 50)) < 0
    search = GridSearchCV(pipeline, {"complementaryclassifier__lr": [0.01, 0.1]}, cv=2).fit(x, ybar)
    assert LogLikelihoodScorer()(make_pipeline(search), x, ybar) < 0
    believed = LogLikelihoodScorer(transition=uniform_transition(3))(pipeline, x, ybar)
    assert believed == pytest.approx(LogLikelihoodScorer()(pipeline, x, ybar))


def regret(seed, labels):
    """How much true accuracy the choice among rates a factor 10 apart loses, given complementary labels alone."""
    rng, k, rates = np.random.default_rng(seed), 10, [1e-4, 1e-3, 1e-2, 1e-1]
    centres = 0.9 * rng.normal(size=(k, 20))

    def draw(sizes):
        y = rng.permutation(np.repeat(np.arange(k), sizes))
        return centres[y] + rng.normal(size=(len(y), 20)), y

    uniform = labels == "uniform"
    sizes = [200] * k if uniform else imbalance_counts(n_majority=250, n_classes=k, minority=[0, 1], p=5)
    q = None if uniform else inverse_size_transition(sizes)
    (x, y), (x_test, y_test) = draw(sizes), draw([200] * k)
    ybar = make_complementary(y, uniform_transition(k) if uniform else q, random_state=seed)
    model = ComplementaryClassifier("forward", transition=q, max_epochs=20, random_state=seed)
    scoring = None if uniform else LogLikelihoodScorer()
    chosen = GridSearchCV(model, {"lr": rates}, scoring=scoring, cv=3, refit=False).fit(x, ybar).best_params_["lr"]
    accuracy = {
        rate: accuracy_score(y_test, clone(model).set_params(lr=rate).fit(x, ybar).predict(x_test)) for rate in rates
    }
    return max(accuracy.values()) - accuracy[chosen]


@pytest.mark.parametrize("labels", ["uniform", "inverse-size"])
def test_grid_search_with_complementary_labels_alone_has_small_regret(labels):
    """Default scorer for uniform labels; the log-likelihood under Q for inverse-size labels; seeds 0 to 3."""
    assert np.mean([regret(seed, labels) for seed in range(4)]) <= 0.02


# Sample weights


@pytest.mark.parametrize("loss", COMPLEMENTARY)
def test_sample_weight_equals_repetition(loss, iris):
    x, _, ybar = iris
    x = StandardScaler().fit_transform(x)
    times = np.random.default_rng(0).integers(1, 4, len(x))
    options = {"dtype": "float64", "batch_size": 10_000, "max_epochs": 40, "weights": "auto"}
    if loss not in ("wcll", "scarce"):
        options["weights"] = "effective-number"
    weighted = quick(loss, **options).fit(x, ybar, sample_weight=times)
    repeated = quick(loss, **options).fit(np.repeat(x, times, axis=0), np.repeat(ybar, times))
    np.testing.assert_allclose(weighted.decision_function(x), repeated.decision_function(x), rtol=1e-8, atol=1e-8)


def test_the_scale_of_sample_weights_does_not_matter(iris):
    x, _, ybar = iris
    v = np.random.default_rng(0).random(150)
    one, other = (quick("log", dtype="float64").fit(x, ybar, sample_weight=s * v).predict_proba(x) for s in (1, 7.3))
    np.testing.assert_allclose(one, other, rtol=1e-8)


# Labels that contradict what is assumed of them

TREES = np.array(["ash", "beech", "fir", "maple", "oak", "pine"])
TREE_SHARES = np.array([0.32, 0.26, 0.18, 0.12, 0.08, 0.04])


@pytest.fixture(scope="module")
def trees():
    """Features, and labels of the inverse-size selector: a rare tree is what most trees are said not to be."""
    rng = np.random.default_rng(0)
    y = rng.choice(6, 3000, p=TREE_SHARES)
    ybar = make_complementary(y, inverse_size_transition(TREE_SHARES), random_state=0)
    return 3 * np.eye(6)[y] + rng.normal(size=(3000, 6)), TREES[ybar]


CONTRADICTED = (
    r"transition: 'pine' is \d\d % of the labels; uniform labels allow at most 20 %; try transition='popularity'"
)


def test_fit_and_score_say_that_labels_contradict_q(trees):
    x, names = trees
    with pytest.warns(LabelWarning, match=CONTRADICTED) as caught:
        model = quick("log", max_epochs=3).fit(x, names)
    assert [len(str(one.message).splitlines()) for one in caught] == [1]
    assert caught[0].filename == __file__  # where fit was called
    with pytest.warns(LabelWarning, match=CONTRADICTED) as caught:
        model.score(x, names)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    quick("log", max_epochs=3, transition="inverse-size").fit(x, names).score(x, names)
    quick("log", max_epochs=3, transition=inverse_size_transition(TREE_SHARES)).fit(x, names).score(x, names)


def test_score_sees_with_predictions_what_counts_do_not_show():
    rng = np.random.default_rng(0)
    turned = np.array([np.roll([0, 6, 2, 2], i) for i in range(4)]) / 10
    y = rng.integers(0, 4, 4000)
    x = 4 * np.eye(4)[y] + rng.normal(size=(4000, 4))
    ybar = make_complementary(y, turned, random_state=0)
    model = quick(max_epochs=20).fit(x[:2000], ybar[:2000])  # counts are those of uniform labels
    with pytest.warns(LabelWarning, match="transition: labels of samples predicted as class . fit no class shares"):
        model.score(x[2000:], ybar[2000:])
    quick(max_epochs=20, transition=turned).fit(x[:2000], ybar[:2000]).score(x[2000:], ybar[2000:])


def test_weights_and_sets_of_labels_raise_no_false_alarm(iris):
    x, y, ybar = iris
    quick(max_epochs=2).fit(x, ybar, sample_weight=np.full(150, 1e6)).score(x, ybar, sample_weight=np.full(150, 1e6))
    sets = make_complementary(y, n_labels=2, random_state=0)
    for loss in ("log", "pc"):  # "pc" takes pairs
        quick(loss, max_epochs=2).fit(x, sets).score(x, sets)
    stream = quick(max_epochs=2)
    for _ in range(50):  # the same labels again and again are not more labels
        stream.partial_fit(x, ybar, classes=[0, 1, 2])
    stream.score(x, ybar)


def test_tiny_folds_raise_no_false_alarm(iris):
    x, _, ybar = iris
    assert cross_val_score(quick(max_epochs=2), x[:60], ybar[:60], cv=KFold(20)).shape == (20,)


def test_a_q_that_names_the_true_class(iris):
    x, _, ybar = iris
    with pytest.raises(
        InputError, match=r"transition: expected .* got the identity: Q\[y, y\] is the chance that a label IS"
    ):
        quick(transition=np.eye(3)).fit(x, ybar)
    turned = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    named = r"transition: Q\[y, y\] = 0.5 of class 0 is the chance that a label IS the true class"
    with pytest.warns(LabelWarning, match=named) as caught:
        quick(transition=turned, max_epochs=2).fit(x, ybar)
    assert len(caught) == 1
    quick(transition=0.9 * uniform_transition(3) + 0.1 * np.eye(3), max_epochs=2).fit(x, ybar)  # a little is noise


@pytest.mark.parametrize("form", [lambda y: y, lambda y: y.array, lambda y: y.to_frame()])
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_categories_are_declared_classes(iris, form):
    x, _, ybar = iris
    trees = pd.Series(TREES[ybar].astype(object))
    categories = form(trees.astype(pd.CategoricalDtype(["fir", "ash", "beech", "larch"])))
    with pytest.warns(LabelWarning, match="classes: 'larch' is never a label"):
        model = quick(max_epochs=2).fit(x, categories)
    assert model.classes_.tolist() == ["fir", "ash", "beech", "larch"]
    told = quick(max_epochs=2, classes=["ash", "beech", "fir"]).fit(x, categories)  # what is told goes first
    assert told.classes_.tolist() == ["ash", "beech", "fir"]
    assert told.score(x, categories) == told.score(x, TREES[ybar])


# Keeping


def test_clone_and_pickle(iris):
    x, _, ybar = iris
    model = quick("wcll", callbacks=[print], classes=[0, 1, 2])
    assert clone(model).get_params()["loss"] == "wcll"
    fitted = quick("wcll").fit(x, ybar)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))


SAVED = [
    ("wcll", "linear"),
    ({"name": "wcll", "reading": "eq12"}, {"name": "mlp", "hidden": 7, "dropout": 0.2}),
    ("pc", {"name": "cnn9", "width": 2}),
]


LOADS = """
import sys
import numpy as np
from wcll import ComplementaryClassifier, LabelWarning
for name in sys.argv[1:]:
    model, x = ComplementaryClassifier.load(f"{name}.safetensors"), np.load(f"{name}.npy")
    np.savez(f"{name}.npz", logits=model.decision_function(x), classes=model.predict(x))
"""


def test_save_and_load_in_a_new_process(tmp_path):
    expected = {}
    for loss, model in SAVED:
        rng, name = np.random.default_rng(0), model["name"] if isinstance(model, dict) else model
        x = rng.normal(size=(60, 1, 8, 8) if name == "cnn9" else (60, 5)).astype(np.float32)
        fitted = quick(loss, model=model, max_epochs=5).fit(x, np.array(["a", "b", "c"])[rng.integers(0, 3, 60)])
        fitted.save(tmp_path / f"{name}.safetensors")
        np.save(tmp_path / f"{name}.npy", x)
        expected[name] = fitted.decision_function(x), fitted.predict(x)
    assert len(expected) == len(SAVED)
    subprocess.run([sys.executable, "-c", LOADS, *expected], cwd=tmp_path, check=True)
    for name, (logits, classes) in expected.items():
        with np.load(tmp_path / f"{name}.npz") as found:
            assert np.array_equal(found["logits"], logits), name  # bit for bit
            assert np.array_equal(found["classes"], classes), name


def test_a_loaded_model_scores_and_keeps_names(tmp_path, iris):
    x, _, ybar = iris
    frame = pd.DataFrame(x, columns=list("abcd"))
    fitted = quick(transition=0.95 * uniform_transition(3) + 0.05 * np.eye(3)).fit(frame, ybar)
    fitted.save(tmp_path / "m")
    loaded = ComplementaryClassifier.load(tmp_path / "m")
    assert loaded.score(frame, ybar) == fitted.score(frame, ybar)
    assert loaded.feature_names_in_.tolist() == list("abcd")
    assert loaded.history_ == fitted.history_
    assert loaded.get_params()["lr"] == 0.05
    assert loaded.partial_fit(frame, ybar).n_iter_ == fitted.n_iter_ + 1
    weighted = quick("wcll").fit(x, ybar)
    weighted.save(tmp_path / "w")
    assert ComplementaryClassifier.load(tmp_path / "w").weights_.to_dict() == weighted.weights_.to_dict()


def test_settings_of_many_kinds_are_saved(tmp_path):
    model = quick(
        "forward", random_state=np.int64(5), classes=range(3), transition=torch.tensor(uniform_transition(3)),
        model={"name": "mlp", "hidden": np.int64(5)},
    ).fit(X, Y)  # fmt: skip
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    table = quick().fit(np.zeros((12, 1, 2)) + Y[:, None, None], Y).fit(X, Y)
    table.save(tmp_path / "t")
    assert ComplementaryClassifier.load(tmp_path / "t").predict(X).tolist() == table.predict(X).tolist()
    loaded = ComplementaryClassifier.load(tmp_path / "real")
    assert loaded.get_params()["random_state"] == 5
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def damaged(path, tmp_path):
    """Files that must be refused, and what is said of them."""
    whole = path.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    flipped = bytearray(whole)
    flipped[-3] ^= 0xFF
    renamed = whole.replace(b'\\"lr\\": 0.05', b'\\"lr\\": 0.09')
    assert renamed != whole
    foreign = tmp_path / "foreign"
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, foreign)
    return {
        "whole model file": [whole[: len(whole) // 2], whole[:4], b"", whole[: header // 2], b"not a model at all"],
        "do not match their digest": [bytes(flipped), renamed],
        "no wcll header": [foreign.read_bytes()],
    }


def test_damaged_tampered_and_foreign_files_are_refused(tmp_path, iris):
    x, _, ybar = iris
    path = tmp_path / "model"
    quick().fit(x, ybar).save(path)
    for message, contents in damaged(path, tmp_path).items():
        for content in contents:
            (tmp_path / "bad").write_bytes(content)
            with pytest.raises(InputError, match=message) as caught:
                ComplementaryClassifier.load(tmp_path / "bad")
            assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="expected a saved model, got No such file"):
        ComplementaryClassifier.load(tmp_path / "nope")


# Bad input

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 3


def with_value(value):
    x = X.copy()
    x[4, 1] = value
    return x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quick().fit(with_value(np.nan), Y), "X: expected finite numbers, got NaN in column 1, row 4"),
        (lambda: quick().fit(with_value(np.inf), Y), "X: expected finite numbers, got infinity in column 1"),
        (lambda: quick().fit(pd.DataFrame(with_value(np.nan), columns=["u", "v", "w"]), Y), r"NaN in column 1 \('v'\)"),
        (lambda: quick().fit(scipy.sparse.csr_array(with_value(np.nan)), Y), "X: expected finite numbers, got NaN in column 1, row 4"),
        (lambda: quick().fit(scipy.sparse.coo_array(X * 1e300), Y), "X: expected numbers that torch.float32 can hold, got .*; scale X"),
        (lambda: quick().fit(scipy.sparse.csr_array(X + 1j), Y), "X: expected numbers.*Complex data not supported"),
        (lambda: quick().fit(scipy.sparse.coo_array(Y), Y), r"X: expected a matrix of shape \(n, d\), got shape \(12,\)"),
        (lambda: quick().fit(X, Y).predict(X[:, :2]), "X has 2 features, but ComplementaryClassifier is expecting 3"),
        (lambda: quick(classes=[0, 1, 2]).fit(X, np.eye(12, 4, dtype=bool)), r"a mask of shape \(n, 3\), got shape \(12, 4\)"),
        (lambda: quick().fit(X, Y[:5]), "y: expected 12 labels, one for each sample of X, got 5"),
        (lambda: quick(classes=[0, 1]).fit(X, Y), "ybar: expected classes among 0, 1, got 2"),
        (lambda: quick(classes=["a", "b"]).fit(X, ["a", "z"] * 6), "ybar: expected classes among a, b, got 'z'"),
        (lambda: quick(classes=[0, 0]).fit(X, Y), "classes: expected each class once"),
        (lambda: quick(device="cuda").fit(X, Y), "device: expected a device of this machine, got 'cuda'"),
        (lambda: quick(device="gpu0").fit(X, Y), "device: expected 'auto', 'cpu' or 'cuda'"),
        (lambda: quick(classes=[0, 1, 2]).fit(X[:2], [0, 1]), "at least as many samples as classes, 3, got n_samples = 2"),
        (lambda: quick(model=torch.nn.Linear(3, 5)).fit(X, Y), r"model: expected outputs of shape \(n, 3\).*got \(12, 5\)"),
        (lambda: quick("cross-entropy").fit(X, Y), "loss: expected one for complementary labels, got 'cross-entropy'"),
        (lambda: quick("wcl").fit(X, Y), "loss: expected one of .* did you mean 'wcll'"),
        (lambda: quick({"name": "gce", "Q": 1}).fit(X, Y), "option of loss 'gce'"),
        (lambda: quick(3).fit(X, Y), "loss: expected a name, a dict with a name, or a function, got int"),
        (lambda: quick(weights="atuo").fit(X, Y), "weights: expected one of .* did you mean 'auto'"),
        (lambda: quick(weights=[1.0, 2.0]).fit(X, Y), r"weights: expected shape \(3,\)"),
        (lambda: quick("scarce", weights=[1.0, 1.0, 2.0]).fit(X, Y), "weight: expected none for loss 'scarce'"),
        (lambda: quick(target_prior="balance").fit(X, Y), "target_prior: expected one of 'balanced', got 'balance'; did you mean"),
        (lambda: quick(target_prior=[0.5, 0.5]).fit(X, Y), r"target_prior: expected shape \(3,\)"),
        (lambda: quick(target_prior=[0.5, 0.5, 0.5]).fit(X, Y), "target_prior: expected probabilities that sum to 1, got a sum of 1.5"),
        (lambda: quick(target_prior=[0.5, 0.5, 0.0]).fit(X, Y), "target_prior: expected shares above 0, got 0 for class 2"),
        (lambda: quick(target_prior=[1.5, -0.5, 0.0]).fit(X, Y), "target_prior: expected no negative weight"),
        (lambda: quick(target_prior={"a": 1}).fit(X, Y), "target_prior: expected numbers, got dict"),
        (lambda: quick("auto", target_prior=[0.5, 0.5]).fit(np.repeat(X, 9, 0), np.repeat(Y, 9)), "target_prior: expected shape"),
        (lambda: quick("pc", target_prior="balanced").fit(X, Y), "target_prior: expected None for loss 'pc', which learns scores"),
        (lambda: quick("op").fit(X, Y).set_params(target_prior="balanced").predict(X), "target_prior: expected None for a model that learnt no"),
        (lambda: quick().fit(X, Y).set_params(target_prior="even").predict(X), "target_prior: expected one of 'balanced'"),
        (lambda: quick().fit(X, Y).as_trained([[0.5, 0.5]]), r"probabilities: expected shape \(1, 3\)"),
        (lambda: quick(transition="inverse").fit(X, Y), "transition: expected one of .* did you mean 'inverse-size'"),
        (lambda: quick(transition=np.ones((3, 3))).fit(X, Y), "transition: expected rows that sum to 1"),
        (lambda: quick(lr="a").fit(X, Y), "lr: expected a number above 0, got a"),
        (lambda: quick(weight_decay=-1).fit(X, Y), "weight_decay: expected a number from 0, got -1"),
        (lambda: quick(callbacks=print).fit(X, Y), "callbacks: expected a sequence of functions"),
        (lambda: quick(device=None).fit(X, Y), "device: expected 'auto', 'cpu' or 'cuda', got None"),
        (lambda: quick().fit(X * 1e300, Y), "X: expected numbers that torch.float32 can hold, got .*; scale X or use dtype"),
        (lambda: quick().partial_fit(X, Y), "classes: expected every class, in the first call of partial_fit, got None"),
        (lambda: quick(transition=np.roll(np.eye(3), 1, 1)[[0, 0, 1]]).fit(X, Y), "some chance of the label 0, which occurs"),
        (lambda: quick(lambda z, t: z.sum()).fit(X, Y), r"loss: expected a tensor of shape \(1,\), one loss for the one run, got \(\)"),
        (lambda: quick().fit(X, [None, *Y[1:].tolist()]), "ybar: expected a label for every sample, got NaN or none for sample 0"),
        (lambda: quick().fit(X, pd.Series([pd.NA, *Y[1:]], dtype="Int64")), "NaN or none for sample 0"),
        (lambda: quick().fit(X, np.array([np.nan, *Y[1:]])), "NaN or none for sample 0"),
        (lambda: quick().fit(X, (Y + 0.5).tolist()), "Unknown label type: continuous"),
        (lambda: quick().fit(X, ["a", *Y[1:].tolist()]), "labels of one kind, all text or all numbers, got a mixture"),
        (lambda: quick().fit(X, [["a"], *"bcabcabcabc"]), "a list of labels for every sample, got 'b' for sample 1"),
        (lambda: quick().fit(X, np.eye(3, dtype=int)[Y].tolist()), "each label once a sample, got repeated ones for sample 0"),
        (lambda: quick().fit(X, "abcabcabcabc"), "ybar: expected an array or a list of labels, got str"),
        (lambda: quick().fit(X, np.array(["2020-01-01"] * 12, dtype="datetime64[D]")), "class names as text or whole numbers"),
        (lambda: quick(classes=["a", "b", "c"]).fit(X, Y), "ybar: expected text, as the classes are, got numbers"),
        (lambda: quick(classes=["a", "b"]).fit(X, pd.DataFrame({"a": Y == 0, "z": Y != 0})), "columns named as the classes"),
        (lambda: quick().fit(X, Y).score(X, Y, sample_weight=np.zeros(12)), "sample_weight: expected non-negative numbers, not all zero"),
        (lambda: quick(lr=-1).fit(X, Y), "lr: expected a number above 0, got -1"),
        (lambda: quick(lr=1e308).fit(X, Y), "lr, weight_decay: expected numbers that float32 can hold, got lr 1e.308"),
        (lambda: quick(weight_decay=1e308).fit(X, Y), "lr, weight_decay: expected numbers that float32 can hold"),
        (lambda: quick(classes=5).fit(X, Y), "classes: expected a list of class names, got 5"),
        (lambda: quick(classes="abc").fit(X, Y), "classes: expected a list of class names, got 'abc'"),
        (lambda: quick(warm_start=True).fit(X, Y).set_params(classes=[2, 1, 0]).fit(X, Y), "classes: expected those that training began with"),
        (lambda: quick().fit(X, torch.from_numpy(Y).bfloat16()), "y: expected a dense tensor of whole numbers"),
        (lambda: quick().fit(X, torch.from_numpy(Y).to_sparse()), "y: expected a dense tensor of whole numbers"),
        (lambda: quick().fit(X, torch.empty(12, dtype=torch.long, device="meta")), "y: expected a dense tensor .* got no data"),
        (lambda: quick().fit(X, np.ma.masked_equal(Y, 1)), "ybar: expected a label for every sample, got a masked one for sample 1"),
        (lambda: label_free_accuracy(Y, np.full(12, -1), uniform_transition(3)), "predicted: expected class indices from 0, got -1"),
        (lambda: complementary_log_likelihood(Y, np.full((12, 3), 2.0), uniform_transition(3)), "rows of probabilities that sum to 1.*logits need a softmax"),
        (lambda: label_free_confusion(np.eye(3), Belief.of(None, [1, 1, 1]), draws=0), "draws: expected a whole number from 1, got 0"),
        (lambda: quick(model={"name": "mlp", "hidden": 10**12}).fit(X, Y), "model: expected at most .* got 3000000000000 parameters"),
        (lambda: quick(max_epochs=0).fit(X, Y), "max_epochs: expected a whole number from 1, got 0"),
        (lambda: quick(max_epochs=2.5).fit(X, Y), "max_epochs: expected a whole number from 1, got 2.5"),
        (lambda: quick(batch_size=0).fit(X, Y), "batch_size: expected a whole number from 1, got 0"),
        (lambda: quick({"name": "free", "base": torch.square}).fit(X, Y).save("m"), "loss: expected a setting that JSON"),
        (lambda: quick(dtype="float16").fit(X, Y), "dtype: expected one of 'float32', 'float64'"),
        (lambda: quick().fit(X, Y, sample_weight=-np.ones(12)), "sample_weight: expected non-negative numbers"),
        (lambda: quick().fit(X, Y, sample_weight=np.ones(3)), r"sample_weight: expected shape \(12,\)"),
        (lambda: quick().fit(X, np.zeros(12, dtype=int)), "labels of at least two classes"),
        (lambda: quick().fit(X, Y).partial_fit(X, Y, classes=[0, 1]), "classes: expected the classes of the first call"),
        (lambda: quick().fit(X, Y).save("/no/such/folder/m"), "path: expected a folder that can be written"),
        (lambda: quick(model=torch.nn.Linear(3, 3)).fit(X, Y).save("m"), "model: expected a setting that JSON can hold"),
    ],
)  # fmt: skip
def test_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_messages_call_labels_what_the_user_calls_them():
    model = quick(classes=["a", "b", "c"], max_epochs=1)
    names = np.array(["a", "b", "c"])[Y]
    odd = pd.Series(["z", *names[1:]], name="not_species")
    fitted = clone(model).fit(X, names)
    sets = pd.Series([["a", "b"]] * len(X), name="not_species")
    for call, message in (
        (lambda: model.fit(X, odd), "not_species: expected classes among a, b, c, got 'z'"),
        (lambda: model.fit(X, odd.to_frame()), "not_species: expected classes among a, b, c, got 'z'"),
        (
            lambda: model.fit(X, odd.replace("z", None)),
            "not_species: expected a label for every sample, got NaN or none",
        ),
        (lambda: model.fit(X, odd[1:]), "not_species: expected 12 labels, one for each sample of X, got 11"),
        (lambda: model.partial_fit(X, odd), "not_species: expected classes among a, b, c, got 'z'"),
        (lambda: fitted.score(X, odd), "not_species: expected classes among a, b, c, got 'z'"),
        (lambda: fitted.evaluate(X, odd), "not_species: expected classes among a, b, c, got 'z'"),
        (lambda: fitted.evaluate(X, sets), "not_species: expected one label a sample, got a mask"),
        (
            lambda: fitted.evaluate(X[1:], odd.replace("z", "a")),
            "not_species: expected 11 labels, one for each sample of X, got 12",
        ),
        (
            lambda: fitted.score(X[1:], odd.replace("z", "a")),
            "not_species: expected 11 labels, one for each sample of X, got 12",
        ),
        (lambda: model.fit(X, odd.rename(3)), "ybar: expected classes among a, b, c, got 'z'"),
        (lambda: model.fit(X[:, :0], odd), "X: expected"),
    ):
        with pytest.raises(InputError, match=f"^{message}"):
            call()


def test_a_failed_fit_leaves_the_fitted_model_as_it_was():
    model = quick().fit(X, Y)
    before = model.predict_proba(X)
    for bad in ((X[:, :2], Y[:5]), (with_value(np.nan), Y), (X, np.zeros(12, dtype=int)), (X[:, :2], 3)):
        with pytest.raises(ValueError):
            model.fit(*bad)
        with pytest.raises(ValueError):
            model.partial_fit(with_value(np.nan), Y)
        np.testing.assert_array_equal(model.predict_proba(X), before)
    for bad in ({"loss": {"name": "wcll", "reading": "eq99"}}, {"transition": np.full((3, 3), 1 / 3), "loss": "free"}):
        with pytest.raises(InputError):
            model.set_params(**bad).fit(X, Y)
        model.set_params(loss="forward", transition=None)
        np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.label_totals_.tolist() == [4, 4, 4]


def test_masks_as_tables_are_matched_by_name(iris):
    x, _, ybar = iris
    names = np.array(["x", "y", "z"])
    table = pd.DataFrame({name: names[ybar] == name for name in ("z", "x", "y")})
    model = quick(classes=names).fit(x, table)
    np.testing.assert_allclose(model.predict_proba(x), quick().fit(x, ybar).predict_proba(x), atol=1e-5)
    assert quick().fit(x, table).classes_.tolist() == ["z", "x", "y"]
    frozen = quick().fit(x, [frozenset([label]) for label in ybar])
    assert frozen.classes_.tolist() == [0, 1, 2]


def test_not_fitted():
    for method in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(ComplementaryClassifier("log"), method)(X)
    with pytest.raises(NotFittedError):
        ComplementaryClassifier().save("m")


@pytest.mark.parametrize("loss", ["pc", "ml-cll", "scarce", "op"])
def test_scores_are_not_probabilities(loss):
    model = quick(loss).fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "learns scores, not class probabilities" in str(caught.value.__cause__)
    assert model.decision_function(X).shape == (12, 3)


# --- class shares that predictions are for ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rare():
    """Two rare classes of four that overlap: 6000 samples of given class shares, in float64."""

    def draw(shares, seed):
        rng = np.random.default_rng(seed)
        y = rng.choice(4, 6000, p=shares)
        centres = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.6], [0.0, -1.6]])
        return rng.normal(centres[y], 0.9), y

    x, y = draw([0.45, 0.4, 0.1, 0.05], 0)
    return x, y, make_complementary(y, random_state=1), draw


def fitted(x, ybar, **options):
    return quick(lr=0.02, dtype="float64", max_epochs=40, **options).fit(x, ybar)


def test_predictions_for_other_class_shares(rare):
    x, y, ybar, draw = rare
    plain = fitted(x, ybar)
    assert np.abs(plain.prior_ - np.bincount(y) / len(y)).max() < 0.03  # from the model, told no class share
    np.testing.assert_allclose(plain.prior_, plain.predict_proba(x).mean(axis=0), rtol=1e-12)
    target = np.array([0.1, 0.2, 0.3, 0.4])
    moved = fitted(x, ybar, target_prior=target)
    expected = plain.predict_proba(x) * target / plain.prior_
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved.predict_proba(x), expected, rtol=1e-9)
    np.testing.assert_array_equal(moved.predict(x), expected.argmax(axis=1))
    np.testing.assert_array_equal(moved.decision_function(x).argmax(axis=1), expected.argmax(axis=1))
    np.testing.assert_allclose(moved.as_trained(moved.predict_proba(x)), plain.predict_proba(x), rtol=1e-9)
    np.testing.assert_allclose(moved.history_[-1]["loss"], plain.history_[-1]["loss"], rtol=0)  # training is the same
    for shares in (target, np.full(4, 0.25)):
        there, truth = draw(shares, 2)
        plain.set_params(target_prior=None)
        before = (plain.predict(there) == truth).mean()
        plain.set_params(target_prior=shares)  # after fit, too
        assert (plain.predict(there) == truth).mean() > before + 0.03
    assert fitted(x, ybar, target_prior="balanced").score(x, ybar) < fitted(x, ybar).score(x, ybar)


def test_two_classes_for_other_class_shares():
    rng = np.random.default_rng(0)
    y = rng.choice(2, 1000, p=[0.9, 0.1])
    x = rng.normal(y[:, None] * 1.5, 1.0, (1000, 1))
    model = quick(target_prior="balanced").fit(x, 1 - y)
    np.testing.assert_array_equal(model.decision_function(x) > 0, model.predict(x) == 1)
    np.testing.assert_array_equal(model.predict_proba(x)[:, 1] > 0.5, model.predict(x) == 1)
    assert (model.predict(x) == 1).mean() > 2 * (model.set_params(target_prior=None).predict(x) == 1).mean()


def test_class_shares_are_kept(rare, tmp_path):
    x, _, ybar, _ = rare
    model = fitted(x, ybar, target_prior=np.array([0.4, 0.3, 0.2, 0.1]))
    model.save(tmp_path / "m")
    loaded = ComplementaryClassifier.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    np.testing.assert_array_equal(loaded.prior_, model.prior_)
    assert loaded.target_prior == [0.4, 0.3, 0.2, 0.1]
    assert clone(model).get_params()["target_prior"].tolist() == loaded.target_prior
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))
    assert not hasattr(model.set_params(loss="pc", target_prior=None, max_epochs=1).fit(x, ybar), "prior_")
    model.save(tmp_path / "m")
    with pytest.raises(InputError, match="target_prior: expected None for a model that learnt no class probabilities"):
        ComplementaryClassifier.load(tmp_path / "m").set_params(target_prior="balanced").predict(x)


def test_class_shares_of_weights_parts_and_warm_starts(rare):
    x, y, ybar, _ = rare
    weight = np.where(y == 3, 4.0, 1.0)
    heavy = quick(lr=0.02, max_epochs=40).fit(x, ybar, sample_weight=weight)
    np.testing.assert_allclose(heavy.prior_, np.average(heavy.predict_proba(x), axis=0, weights=weight), rtol=1e-6)
    assert heavy.prior_[3] > 0.12
    first, second = slice(0, 4000), slice(4000, 6000)
    parts = quick(lr=0.02).partial_fit(x[first], ybar[first], classes=range(4))
    before = parts.prior_
    parts.partial_fit(x[second], ybar[second])
    expected = before * 2 / 3 + parts.predict_proba(x[second]).mean(axis=0) / 3
    np.testing.assert_allclose(parts.prior_, expected, rtol=1e-6)
    parts.set_params(warm_start=True, max_epochs=2).fit(x, ybar)
    np.testing.assert_allclose(parts.prior_, parts.predict_proba(x).mean(axis=0), rtol=1e-6)


def test_a_callback_sees_the_class_shares_of_its_epoch(rare):
    x, _, ybar, _ = rare
    seen = []
    options = {"lr": 0.02, "max_epochs": 2, "target_prior": "balanced"}
    quick(**options, callbacks=[lambda end: seen.append(end.classifier())]).fit(x, ybar)
    np.testing.assert_array_equal(seen[1].predict_proba(x), quick(**options).fit(x, ybar).predict_proba(x))
    np.testing.assert_allclose(seen[0].as_trained(seen[0].predict_proba(x)).mean(axis=0), seen[0].prior_, rtol=1e-6)


def test_labels_judge_probabilities_for_their_own_class_shares(rare):
    """A target changes what is predicted, and not how likely labels are."""
    x, _, ybar, _ = rare
    model = fitted(x, ybar)
    before = LogLikelihoodScorer()(model, x, ybar)
    model.set_params(target_prior=[0.05, 0.05, 0.3, 0.6])
    np.testing.assert_allclose(LogLikelihoodScorer()(model, x, ybar), before, rtol=1e-9)
    assert complementary_log_likelihood(ybar, model.predict_proba(x), model.transition_)[0] < before - 0.01


# --- evaluate ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wood():
    """Four kinds of trees, 3000 to learn from and 3000 held out, labels uniform."""
    x, y = make_blobs(6000, centers=4, cluster_std=1.2, random_state=2)
    return x.astype(np.float32), np.array(["ash", "elm", "fir", "oak"])[y], y


def test_evaluate_gives_intervals_that_hold_the_truth(wood):
    x, names, y = wood
    ybar = np.array(["ash", "elm", "fir", "oak"])[make_complementary(y, random_state=0)]
    model = ComplementaryClassifier("forward", lr=0.02, max_epochs=10, random_state=0).fit(x[:3000], ybar[:3000])
    found = model.evaluate(x[3000:], ybar[3000:])
    assert list(found.figures) == [
        "accuracy", "balanced accuracy", "macro F1", *(f"recall of {tree}" for tree in ("ash", "elm", "fir", "oak"))
    ]  # fmt: skip
    right = model.predict(x[3000:]) == names[3000:]
    assert found.accuracy.low <= right.mean() <= found.accuracy.high
    for tree, figure in zip(model.classes_, found.recall, strict=True):
        share = right[names[3000:] == tree].mean()
        assert figure.verdict != "ok" or figure.low <= share <= figure.high
    assert found.accuracy.verdict == "can't be checked"  # uniform labels are an assumption
    assert found.accuracy.value == pytest.approx(model.score(x[3000:], ybar[3000:]))
    first, second, *lines = str(found).splitlines()
    assert first == f"From 3000 complementary labels, no true one; 95 % intervals. {model.belief_}."
    assert second.startswith("Q can't be checked: ")
    assert len(lines) == 7
    assert lines[0].endswith("  can't be checked")
    json.dumps(found.to_dict())


def test_evaluate_calls_nothing_ok_that_labels_contradict(wood):
    x, _, y = wood
    biased = np.array([[0, 0.8, 0.1, 0.1], [0.45, 0, 0.45, 0.1], [0.1, 0.8, 0, 0.1], [0.1, 0.8, 0.1, 0]])
    ybar = np.array(["ash", "elm", "fir", "oak"])[make_complementary(y, biased, random_state=0)]
    model = ComplementaryClassifier("forward", lr=0.02, max_epochs=10, random_state=0)
    with pytest.warns(LabelWarning, match="'elm' is .* of the labels; uniform labels allow at most 33"):
        model.fit(x[:3000], ybar[:3000])
    found = model.evaluate(x[3000:], ybar[3000:])
    assert {figure.verdict for figure in found.figures.values()} == {"the assumed Q does not fit"}
    assert str(found).startswith("Warning: labels contradict the assumed Q: 'elm' is")


def test_evaluate_takes_one_label_a_sample(wood):
    x, _, y = wood
    model = ComplementaryClassifier("forward", max_epochs=1, random_state=0).fit(
        x, make_complementary(y, random_state=0)
    )
    with pytest.raises(InputError, match="y: expected one label a sample, got a mask"):
        model.evaluate(x, make_complementary(y, n_labels=2, random_state=0))
    with pytest.raises(NotFittedError):
        ComplementaryClassifier().evaluate(x, y)


SMALL_NETWORK = {"name": "cnn9", "width": 2, "dropout": 0.0}
STRONG = {"name": "strong", "crop": 1}


@pytest.fixture(scope="module")
def stripes():
    """Images of three classes, which differ in how bright their upper and lower halves are, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    x = rng.integers(0, 100, (240, 8, 8), dtype=np.uint8)
    x[y == 1, :4] += 100
    x[y == 2, 4:] += 100
    return x, y, make_complementary(y, random_state=0)


def test_images_may_be_trained_strongly(stripes, tmp_path):
    x, y, ybar = stripes
    how = {"model": SMALL_NETWORK, "training": STRONG, "batch_size": 32, "random_state": 0}
    model = ComplementaryClassifier("forward", max_epochs=15, lr=1e-2, **how).fit(x, ybar)
    assert (model.predict(x) == y).mean() > 0.8
    np.testing.assert_allclose(model.predict_proba(x[:9]), model.predict_proba(x[:9, :, ::-1]), atol=1e-6)
    model.save(tmp_path / "m.safetensors")
    loaded = ComplementaryClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(x[:9]), model.predict_proba(x[:9]))
    again = clone(model).fit(x, ybar)
    np.testing.assert_array_equal(again.predict_proba(x[:9]), model.predict_proba(x[:9]))
    plain = clone(model).set_params(training=None).fit(x, ybar)
    assert not np.allclose(plain.predict_proba(x[:9]), plain.predict_proba(x[:9, :, ::-1]), atol=1e-6)


def test_what_is_usual_of_strong_training_gives_way_to_what_is_given():
    usual = ComplementaryClassifier("forward", training="strong")._resolved()
    found = usual.model, usual.lr, usual.max_epochs, usual.weight_decay
    assert found == ({"name": "cnn9", "dropout": 0.0}, 1e-3, 80, 0.05)
    own = ComplementaryClassifier("forward", training="strong", model="resnet18", lr=0.1, weight_decay=0.0)._resolved()
    assert (own.model, own.lr, own.max_epochs, own.weight_decay) == ("resnet18", 0.1, 80, 0.0)
    plain = ComplementaryClassifier("forward")._resolved()
    assert (plain.training, plain.lr, plain.weight_decay) == ("plain", 5e-4, 1e-4)
    assert ComplementaryClassifier(model="cnn9")._resolved().training == "strong"
    assert ComplementaryClassifier(model="cnn9")._resolved().model == {"name": "cnn9", "dropout": 0.0}
    told = {"name": "cnn9", "dropout": 0.25}
    assert ComplementaryClassifier(model=told)._resolved().model == told
    assert ComplementaryClassifier("forward", model="cnn9")._resolved().model == "cnn9"
    assert ComplementaryClassifier(model="cnn9", training="plain")._resolved().training == "plain"
    assert ComplementaryClassifier("forward", model="cnn9")._resolved().training == "plain"


def test_the_default_trains_networks_strongly(stripes):
    x, _, ybar = stripes
    how = {"training": STRONG, "batch_size": 32, "max_epochs": 2, "budget": 400, "random_state": 0}
    model = ComplementaryClassifier(model=SMALL_NETWORK, **how).fit(x, ybar)
    assert [row["lr"] for row in model.selection_ if row["chosen"]] == [1e-3]
    assert {row["epoch"] for row in model.selection_} == {2}  # models are done at the end of the schedule
    assert model.fitted_.mirrored


def test_strong_training_goes_on(stripes):
    x, _, ybar = stripes
    model = ComplementaryClassifier("forward", model=SMALL_NETWORK, training=STRONG, batch_size=32, random_state=0)
    for _ in range(3):
        before = model.predict_proba(x[:5]) if hasattr(model, "network_") else None
        model.partial_fit(x, ybar, classes=[0, 1, 2])
        assert before is None or not np.allclose(model.predict_proba(x[:5]), before)
    model.set_params(warm_start=True, max_epochs=2).fit(x, ybar)
    assert model.n_iter_ == 5


def test_what_is_wrong_with_training_is_said(iris, stripes):
    x, _, ybar = iris
    with pytest.raises(InputError, match="training: expected none of crop, flip, test_flip for samples that are no im"):
        ComplementaryClassifier("forward", model="mlp", training="strong", max_epochs=1).fit(x, ybar)
    with pytest.raises(InputError, match="X: expected images of shape"):
        ComplementaryClassifier("forward", training="strong", max_epochs=1).fit(x, ybar)
    with pytest.raises(InputError, match="did you mean 'strong'"):
        ComplementaryClassifier("forward", training="stong", max_epochs=1).fit(x, ybar)
    with pytest.raises(InputTypeError, match="training: expected a name, or a dict of options, got int"):
        ComplementaryClassifier("forward", training=3, max_epochs=1).fit(x, ybar)
    with pytest.raises(InputError, match="training, crop: expected fewer pixels than images have, 8"):
        ComplementaryClassifier("forward", model=SMALL_NETWORK, training={"crop": 9}).fit(stripes[0], stripes[2])


# Losses that do not use sample weights


def ignores(logits, targets):
    return targets.named(logits.softmax(-1)).mean(-1)


def noisy(logits, targets):
    return ignores(logits, targets) + 0.1 * torch.rand(1)


def uses(logits, targets):
    return (targets.named(logits.softmax(-1)) * targets.sample_weight).mean(-1)


def uses_a_little(logits, targets):
    return ignores(logits, targets) + 0.01 * uses(logits, targets)


REFUSED = r"sample_weight: expected None for a loss that does not use sample weights, got numbers from 1 to 2; multiply"


@pytest.mark.parametrize("loss", [ignores, noisy])
def test_weights_that_a_loss_does_not_use_are_refused(loss, iris):
    """They would be ignored without a word."""
    x, _, ybar = iris
    weight = np.linspace(1, 2, 150)
    with pytest.raises(InputError, match=REFUSED):
        quick(loss).fit(x, ybar, sample_weight=weight)
    with pytest.raises(InputError, match=REFUSED):
        quick(loss).partial_fit(x, ybar, classes=[0, 1, 2], sample_weight=weight)
    model = quick(loss, max_epochs=2).fit(x, ybar, sample_weight=np.full(150, 7.0))  # which is no weight
    before = model.predict_proba(x)
    with pytest.raises(InputError, match=REFUSED):
        model.fit(x, ybar, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(x), before)


@pytest.mark.parametrize("loss", [uses, uses_a_little])
def test_weights_that_a_loss_uses_are_taken(loss, iris):
    x, _, ybar = iris
    plain = quick(loss, max_epochs=5).fit(x, ybar).predict_proba(x)
    weighted = quick(loss, max_epochs=5).fit(x, ybar, sample_weight=np.where(ybar == 0, 3.0, 1.0)).predict_proba(x)
    assert np.abs(weighted - plain).max() > 1e-4


def test_a_registered_loss_of_a_user_is_asked_too(iris, monkeypatch):
    """Where it takes one label a sample, several are pairs with weights."""
    x, y, ybar = iris

    def ignoring(logits, ybar):
        return ybar.named(logits.softmax(-1)).mean(-1)

    spec = LossSpec("ignoring", ignoring, "", "", "")
    monkeypatch.setitem(LOSSES._items, "ignoring", spec)
    with pytest.raises(InputError, match=REFUSED):
        quick("ignoring").fit(x, ybar, sample_weight=np.linspace(1, 2, 150))
    sets = np.eye(3, dtype=bool)[ybar]
    sets[0] = np.arange(3) != y[0]
    with pytest.raises(
        InputError, match="y: expected one label per sample for a loss that does not use sample weights"
    ):
        quick("ignoring", classes=[0, 1, 2]).fit(x, sets)


@pytest.mark.filterwarnings("ignore::wcll.LabelWarning")  # of 40 classes, some may never be a label
@pytest.mark.parametrize("k", [2, 3, 60])
@pytest.mark.parametrize("case", [case for case in CASES if case.name in COMPLEMENTARY], ids=lambda case: case.id)
def test_no_registered_loss_is_refused_for_weights(case, k):
    """Whatever its options; with few classes and many, one label or several; each kind of labels in one precision."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), np.arange(200) % k
    ybar = make_complementary(y, n_classes=k, random_state=0)
    sets = make_complementary(y, n_classes=k, n_labels="random", random_state=0)
    options = {"max_epochs": 1, "classes": range(k), "weights": "auto" if "weight" in case.context else None}
    if case.name in ("wcll", "wcll-penalty", "wcll-adaptive"):
        options["weights"] = "auto"
    precisions = ("float64", "float32") if k == 3 else ("float32", "float64")
    for labels, dtype in zip((ybar, sets), precisions, strict=True):
        model = quick({"name": case.name, **case.options}, dtype=dtype, **options)
        assert model.fit(x, labels, sample_weight=np.linspace(1, 2, 200)).n_iter_ == 1


def test_a_fit_checks_its_input_once():
    labels = np.asarray(Y)[:, None]  # scikit-learn warns of a column, each time that it is read
    for model in (quick(), ComplementaryClassifier(model="linear", max_epochs=1, device="cpu")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, labels)
        assert [one.category for one in caught].count(DataConversionWarning) == 1


def test_what_a_fit_left_is_not_set_by_others():
    model = quick().fit(X, Y)
    with pytest.raises(AttributeError, match="temperature_: fit alone sets it"):
        model.temperature_ = 2.0
    with pytest.raises(AttributeError, match="belief_: there is none before fit"):
        quick().belief_  # noqa: B018
    with pytest.raises(AttributeError, match="chosen_: there is none after this fit"):
        model.chosen_  # noqa: B018
