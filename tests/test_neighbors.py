"""Labels of near samples, and features of different scales."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

from wcll import ComplementaryClassifier
from wcll._neighbors import MAX_COMPONENTS, column_scaling, components, label_shares, nearest_neighbors
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import make_complementary
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training, train
from wcll.training.autograd import PlainLoop
from wcll.training.linear import LinearRuns

K = 4
Q = np.array([[0, 0.7, 0.2, 0.1], [0.1, 0, 0.7, 0.2], [0.2, 0.1, 0, 0.7], [0.7, 0.2, 0.1, 0]])


def blobs(n=600):
    x, y = make_blobs(n, centers=K, cluster_std=1.5, random_state=3)
    return x.astype(np.float32), y, make_complementary(y, Q, random_state=0)


def shares(n=12, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(K), n))


def test_neighbors_against_loops():
    x = np.random.default_rng(0).normal(size=(40, 3))
    found = nearest_neighbors(x, 5)
    for i, row in enumerate(x):
        order = sorted((j for j in range(40) if j != i), key=lambda j: math.dist(row, x[j]))
        assert found[i].tolist() == [i, *order[:4]]


def test_copies_are_neighbors_and_come_after_the_sample_itself():
    x = np.repeat(np.arange(5.0), 3)[:, None]
    found = nearest_neighbors(x, 3)
    assert found[:, 0].tolist() == list(range(15))
    assert [sorted(row) for row in found.tolist()] == [[i - i % 3 + j for j in range(3)] for i in range(15)]


def test_of_many_samples_a_part_may_be_neighbors(monkeypatch):
    monkeypatch.setattr("wcll._neighbors.MAX_REFERENCES", 20)
    x = np.random.default_rng(0).normal(size=(60, 2))
    found = nearest_neighbors(x, 4)
    assert found[:, 0].tolist() == list(range(60))
    assert len(np.unique(found[:, 1:])) <= 20
    assert all(len(set(row)) == 4 for row in found.tolist())


def test_shares_of_several_labels_and_weights():
    mask = np.array([[True, True, False], [False, False, True], [True, False, False]])
    found = label_shares(mask, 3, np.array([[0, 1], [1, 2], [2, 0]]), np.array([1.0, 3.0, 0.0]))
    np.testing.assert_allclose(found, [[0.125, 0.125, 0.75], [0, 0, 1], [0.5, 0.5, 0]])


def test_distances_of_many_features_are_those_of_their_components():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 200))
    found = components(x)
    assert found.shape == (300, MAX_COMPONENTS)
    np.testing.assert_array_equal(nearest_neighbors(found, 4), nearest_neighbors(x, 4))


def test_forward_with_labels_of_near_samples_is_its_formula():
    f, near = 2 * torch.randn(12, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), shares()
    targets = Targets(torch.zeros(12, K, dtype=torch.bool), None, near=near)
    slow = 0.0
    for row, share in zip(f.tolist(), near.tolist(), strict=True):
        total = sum(map(math.exp, row))
        chances = [sum(math.exp(row[y]) / total * Q[y, j] for y in range(K)) for j in range(K)]
        slow -= sum(c * math.log(chance) for c, chance in zip(share, chances, strict=True)) / 12
    spec, leaf = LOSSES["forward"], f.clone().requires_grad_()
    context = Context(transition=Q).to(f)
    loss = spec.bind(context)(leaf, targets)
    assert float(loss.detach()) == pytest.approx(slow, rel=1e-12)
    (expected,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(spec.bind_gradient(context)(f, f.softmax(-1), targets), expected, rtol=1e-10, atol=1e-12)
    alone = Targets.of(torch.arange(12) % K, K)
    own = Targets(alone.mask, None, near=torch.eye(K, dtype=torch.float64)[torch.arange(12) % K])
    torch.testing.assert_close(spec.bind(context)(f, own), spec.bind(context)(f, alone))


def test_engines_agree_and_runs_may_learn_from_own_labels_alone():
    x, _, ybar = blobs(64)
    labels = Targets.of(torch.from_numpy(ybar), K)
    near = Targets(labels.mask, labels.index, near=shares(64))
    spec, told = LOSSES["forward"], Context(transition=Q)
    training = Training("linear", K, 1.0, 16, 0.0, torch.float64, torch.device("cpu"))

    def weights(engine, targets, own):
        losses = [RunLoss(spec, (), told, 0, 1, own_labels=own)]
        trained = engine([RunGroup(torch.from_numpy(x), targets, 0, [0.01], losses)], training)
        train(trained, 3, [])
        return trained.parameters(0)["layer.weight"]

    torch.testing.assert_close(weights(LinearRuns, near, False), weights(PlainLoop, near, False), rtol=1e-9, atol=1e-10)
    for engine in (LinearRuns, PlainLoop):
        assert torch.equal(weights(engine, near, True), weights(engine, labels, False))
        assert not torch.equal(weights(engine, near, True), weights(engine, near, False))


def test_near_labels_help_where_labels_are_few():
    x, y = load_digits(return_X_y=True)
    x, ybar = (x / 16).astype(np.float32), make_complementary(y, random_state=0)
    options = {"transition": "uniform", "lr": 0.01, "max_epochs": 300, "random_state": 0}
    own, near = (
        ComplementaryClassifier("forward", neighbors=n, **options).fit(x[:800], ybar[:800]) for n in (None, 10)
    )
    right = [(model.predict(x[800:]) == y[800:]).mean() for model in (own, near)]
    assert right[1] > right[0] + 0.05
    assert near.neighbor_purity_ is None  # 800 uniform labels of ten classes say too little for that
    assert not hasattr(own, "neighbor_purity_")


def test_distances_in_given_features():
    x, y, ybar = blobs()
    noise = np.random.default_rng(0).normal(size=(len(x), 3))
    options = {"transition": Q, "neighbors": 10, "lr": 0.05, "max_epochs": 10, "random_state": 0}
    as_x, given, by_noise = (
        ComplementaryClassifier("forward", **options).fit(x, ybar, neighbor_features=features)
        for features in (None, x, noise)
    )
    np.testing.assert_array_equal(as_x.decision_function(x), given.decision_function(x))
    assert (by_noise.predict(x) == y).mean() < (as_x.predict(x) == y).mean() - 0.1


def test_neighbors_that_do_not_help_are_not_used():
    x, y = make_blobs(1500, centers=K, cluster_std=1.0, random_state=3)
    noise = np.random.default_rng(0).normal(size=(1500, 2))
    x = x.astype(np.float32)
    model = ComplementaryClassifier(model="linear", random_state=0, budget=9000)
    model.fit(x, make_complementary(y, random_state=0), neighbor_features=noise)
    assert model.chosen_["neighbors"] == 1


@pytest.mark.parametrize(
    ("options", "fit", "error", "message"),
    [
        ({"neighbors": 0}, {}, InputError, "neighbors: expected a whole number from 1"),
        ({"loss": "wcll", "neighbors": 5}, {}, InputError, "neighbors: expected 1 for loss 'wcll', which learns from"),
        ({}, {"neighbor_features": np.ones(3)}, InputError, r"neighbor_features: expected numbers of shape \(600, m\)"),
        (
            {},
            {"neighbor_features": np.full((600, 2), np.nan)},
            InputError,
            "neighbor_features: expected finite numbers",
        ),
        ({}, {"neighbor_features": [["a"]] * 600}, InputTypeError, "neighbor_features: expected numbers"),
        ({"standardize": "yes"}, {}, InputTypeError, "standardize: expected True, False or None"),
    ],
)
def test_bad_arguments_are_one_line(options, fit, error, message):
    x, _, ybar = blobs()
    with pytest.raises(error, match=message) as raised:
        ComplementaryClassifier(**{"loss": "forward", "max_epochs": 1, **options}).fit(x, ybar, **fit)
    assert "\n" not in str(raised.value)


def test_scales_of_columns():
    rng = np.random.default_rng(0)
    x, _ = load_digits(return_X_y=True)
    assert column_scaling(x) is None  # rarely used pixels have the same range as others
    assert column_scaling(rng.normal(size=(100, 5))) is None
    _, deviation = column_scaling(rng.normal(size=(100, 5)) * [1, 1, 1, 1, 1000])
    assert deviation[4] == pytest.approx(1000, rel=0.3)
    assert column_scaling(np.hstack([x, np.zeros((len(x), 3))])) is None


@pytest.mark.parametrize("model", ["linear", {"name": "mlp", "hidden": 20}])
def test_scaling_is_part_of_the_first_layer(model, tmp_path):
    x, _, ybar = blobs()
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    options = {"model": model, "lr": 0.02, "max_epochs": 8, "random_state": 0, "dtype": "float64"}
    inside = ComplementaryClassifier("forward", standardize=True, **options).fit(x.astype(np.float64), ybar)
    outside = ComplementaryClassifier("forward", **options).fit(scaled.astype(np.float64), ybar)
    expected = outside.decision_function(scaled.astype(np.float64))
    np.testing.assert_allclose(inside.decision_function(x.astype(np.float64)), expected, rtol=1e-5, atol=1e-5)
    inside.save(tmp_path / "m.safetensors")
    loaded = ComplementaryClassifier.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(x), inside.decision_function(x))
    if model == "linear":
        np.testing.assert_allclose(x @ inside.coef_.T + inside.intercept_, expected, rtol=1e-4, atol=1e-4)
    twice = ComplementaryClassifier("forward", standardize=True, warm_start=True, **options)
    for _ in range(2):
        twice.set_params(max_epochs=4).fit(x.astype(np.float64), ybar)
    np.testing.assert_allclose(twice.decision_function(x.astype(np.float64)), expected, rtol=1e-5, atol=1e-5)


def test_the_default_scales_columns_that_differ_much():
    x, y = load_digits(return_X_y=True)
    x = (x * 10 ** np.random.default_rng(0).uniform(-1, 3, 64)).astype(np.float32)
    ybar = make_complementary(y, random_state=0)
    model = ComplementaryClassifier(model="linear", random_state=0).fit(x[:1200], ybar[:1200])
    assert model.chosen_["standardize"] is True
    assert (model.predict(x[1200:]) == y[1200:]).mean() > 0.8


def different_scales(n=1200):
    """Four columns of four scales, which a linear model separates once they are standardised."""
    x, y = make_blobs(n, centers=K, n_features=4, cluster_std=1.2, random_state=3)
    x = (x - x.mean(axis=0)) / x.std(axis=0) * [0.1, 1, 100, 1000] + [0, 5, 100, 0]
    return x, y, make_complementary(y, random_state=0)


def scaled(loss="forward", **options):
    settings = {"model": "linear", "lr": 0.02, "max_epochs": 20, "random_state": 0, "standardize": True}
    return ComplementaryClassifier(loss, **settings | options)


@pytest.mark.parametrize("constant", [0.1, 123456.789, 1e9, 1e30])
def test_a_constant_column_does_not_matter(constant):
    x, y, ybar = different_scales()
    x = np.column_stack([x, np.full(len(x), constant)])
    assert column_scaling(x, always=True)[1][4] >= 1
    assert (scaled().fit(x, ybar).predict(x) == y).mean() > 0.99


def test_a_column_that_differs_by_rounding_errors_is_constant():
    x = np.random.default_rng(0).normal(size=(1000, 2))
    x = np.column_stack([x, np.where(x[:, 0] > 0, 0.3, 0.1 + 0.2)])
    assert np.ptp(x[:, 2]) > 0
    assert column_scaling(x) is None
    assert column_scaling(x, always=True)[1][2] == 1


def test_two_columns_of_different_scales_are_standardised():
    assert column_scaling(np.random.default_rng(0).normal(size=(100, 2)) * [1, 1e6]) is not None
    x, y = make_blobs(1000, centers=4, cluster_std=1.0, random_state=3)
    x *= [1, 1e4]
    model = ComplementaryClassifier(model="linear", random_state=0, budget=6000)
    model.fit(x, make_complementary(y, random_state=0))
    assert model.chosen_["standardize"] is True
    assert (model.predict(x) == y).mean() > 0.95


def continued_after_auto(x, ybar):
    model = ComplementaryClassifier(model="linear", random_state=0, budget=6000).fit(x, ybar)
    assert model.chosen_["standardize"] is True
    return model.set_params(loss="forward").partial_fit(x, ybar)


def continued_without(x, ybar):
    model = scaled().fit(x, ybar)
    return model.set_params(standardize=False, warm_start=True, max_epochs=1).fit(x, ybar)


def continued_from_file(x, ybar, path):
    scaled().fit(x, ybar).save(path)
    return ComplementaryClassifier.load(path).partial_fit(x[:1], ybar[:1])


@pytest.mark.parametrize("continued", [continued_after_auto, continued_without, continued_from_file])
def test_training_that_continues_keeps_its_scaling(continued, tmp_path):
    x, y, ybar = different_scales()
    model = continued(x, ybar, *[tmp_path / "m"] * (continued is continued_from_file))
    assert (model.predict(x) == y).mean() > 0.98


def test_training_that_began_without_scaling_continues_without():
    x, _, ybar = different_scales()
    plain, later = (scaled(standardize=None, warm_start=True, max_epochs=2).fit(x, ybar) for _ in range(2))
    later.set_params(standardize=True)
    np.testing.assert_array_equal(plain.fit(x, ybar).coef_, later.fit(x, ybar).coef_)


def test_a_scale_is_not_estimated_from_few_samples():
    x, y, ybar = different_scales()
    model = scaled(classes=range(K))
    with pytest.raises(InputError, match=r"X: expected at least 30 samples .*, got 1; ") as raised:
        model.partial_fit(x[:1], ybar[:1])
    assert "\n" not in str(raised.value)
    model.partial_fit(x[:30], ybar[:30])
    for start in range(30, len(x), 15):
        model.partial_fit(x[start : start + 15], ybar[start : start + 15])
    assert (model.predict(x) == y).mean() > 0.9


def test_other_models_and_streams_are_not_standardised(monkeypatch):
    x, _, ybar = different_scales()
    images = np.zeros((len(x), 1, 4, 4), np.float32)
    own = [torch.nn.Linear(4, K), lambda shape, k: torch.nn.Linear(4, k, bias=False)]
    for loss, model, features in [
        ("auto", own[0], x),
        *(("forward", model, x) for model in own),
        ("log", "cnn9", images),
    ]:
        with pytest.raises(InputError, match="standardize: expected False for a model other than 'linear' and 'mlp'"):
            scaled(loss, model=model).fit(features, ybar)
    monkeypatch.setattr("wcll._auto.training_for", lambda *_: "strong")  # as on a GPU, where networks are trained
    with pytest.raises(InputError, match="standardize: expected False for a model other"):
        ComplementaryClassifier(standardize=True).fit(images, ybar)
    later = scaled(max_epochs=1, warm_start=True).fit(x, ybar).set_params(standardize=None)
    for model in (scaled(), scaled("auto"), later):
        with pytest.raises(InputError, match="standardize: expected None or False, also in an earlier fit, for data"):
            model.fit_stream(None)


@pytest.mark.parametrize("model", ["linear", {"name": "mlp", "hidden": 20}])
def test_pixels_of_images_are_standardised_as_columns(model):
    x, _, ybar = different_scales()
    images = x.reshape(-1, 1, 2, 2)
    of_images, of_columns = (scaled(model=model).fit(features, ybar) for features in (images, x))
    np.testing.assert_allclose(of_images.decision_function(images), of_columns.decision_function(x), rtol=1e-6)


def test_differences_that_float32_cannot_hold_are_warned_of():
    x, y, ybar = different_scales()
    x[:, 0] = 1.7e9 + 3000 * x[:, 0]
    with pytest.warns(RuntimeWarning, match=r"mean of column 0 is 5\.7e\+06 times its standard deviation") as caught:
        scaled().fit(x, ybar)
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        precise = scaled(dtype="float64", max_epochs=100).fit(x, ybar)
        x[:, 0] -= 1.7e9
        shifted = scaled(max_epochs=100).fit(x, ybar)
    assert (shifted.predict(x) == y).mean() > 0.99
    x[:, 0] += 1.7e9
    assert (precise.predict(x) == y).mean() > 0.99
