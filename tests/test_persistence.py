"""Model files of others: what is wrong with one is one line, before memory is taken; nothing in it is ever run."""

from __future__ import annotations

import copy
import json
import os
import resource
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = np.arange(12) % 3

WEIGHT = {
    "layer.weight": torch.tensor([[[0.1, 0.2, 0.3], [0.4, -0.5, 0.6], [0.7, 0.8, -0.9]]]),
    "layer.bias": torch.tensor([[0.01, 0.02, 0.03]]),
}
THIRD = 1 / 3

#: The header of a linear model, as the first versions wrote it.
HEADER: dict[str, Any] = {
    "version": "0.1.0",
    "settings": {
        **{"batch_size": 256, "callbacks": [], "classes": None, "device": "cpu", "dtype": "float32", "loss": "wcll"},
        **{"lr": 0.05, "max_epochs": 1, "model": "linear", "random_state": 0, "transition": None, "verbose": 0},
        **{"warm_start": False, "weight_decay": 0.0001, "weights": "auto"},
    },
    "classes": ["a", "b", "c"],
    "classes_dtype": "<U7",
    "input_shape": [3],
    "image_bytes": False,
    "fitted": {"dtype": "float32", "link": "softmax", "model": "linear"},
    "feature_names": [],
    "belief": {
        "family": "uniform",
        "prior": [THIRD, THIRD, THIRD],
        "prior_source": "estimated",
        "totals": [4.0, 4.0, 4.0],
        "transition": [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]],
        "transition_source": "assumed",
    },
    "weights": {"pi": [THIRD, THIRD, THIRD], "pi_source": "recovered", "scheme": "wcll", "values": [1.0, 1.0, 1.0]},
    "label_totals": [4.0, 4.0, 4.0],
    "history": [{"epoch": 1, "loss": 0.97, "seconds": 0.01}],
}


#: And what was added since to predict by.
NEWER = {
    **HEADER,
    "settings": {**HEADER["settings"], "target_prior": [0.2, 0.3, 0.5]},
    "prior": [0.5, 0.3, 0.2],
    "temperature": 1.5,
    "scaling": None,
}


def write(path, header=HEADER, tensors=WEIGHT):
    """A model file with a digest that is right, whatever it holds."""
    text = header if isinstance(header, str) else json.dumps(header, sort_keys=True)
    hasher = blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        hasher.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        raw = tensors[name] if tensors[name].dtype != torch.bfloat16 else tensors[name].view(torch.int16)
        hasher.update(raw.numpy().tobytes())
    save_file(tensors, path, metadata={"format": "wcll-model-1", "header": text, "digest": hasher.hexdigest()})
    return path


def changed(path: tuple[Any, ...], change: Any, header: dict[str, Any] = HEADER) -> dict[str, Any]:
    """The header with one entry changed, or removed (``...``)."""
    header = copy.deepcopy(header)
    place: Any = header
    for key in path[:-1]:
        place = place[key]
    if change is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = change
    return header


def entries(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of everything in a header; of a list, the first item."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in items:
        yield from entries(item, (*path, key))


SILLY = [..., None, -1, 0, 10**9, 10**400, 1e308, 0.5, "x", "mlp", "<U99999999", "x" * 10**5, [], {}, float("nan")]
SILLY += [True, [[1]], [0, 0], {"name": "mlp", "hidden": 10**12}, {"name": "mlp", "layers": 10**9}, {"name": []}]


def refused(path, match="expected"):
    with pytest.raises(InputError, match=match) as caught:
        ComplementaryClassifier.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 5000


@pytest.mark.parametrize("place", list(entries(NEWER)), ids=lambda place: ".".join(map(str, place)))
def test_any_header_loads_and_predicts_or_is_one_line(place, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for change in SILLY:
        path = write(tmp_path / "m", changed(place, change, NEWER))
        try:
            model = ComplementaryClassifier.load(path)
        except InputError:
            continue
        assert np.isfinite(model.decision_function(X)).all()
        assert set(model.predict(X)) <= set(model.classes_)
        assert np.isfinite(model.transition_).all()
        assert len(set(model.classes_.tolist())) == 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes: nothing large was made


@pytest.mark.parametrize(
    "header", ["", "x", "[]", "3", "{}", "null", "NaN", "[" * 100_000, '{"classes":' * 5000, "9" * 5000]
)
def test_headers_that_are_something_else(header, tmp_path):
    refused(write(tmp_path / "m", header), "path: expected a model that can be used, got .*: (header|settings)")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "'layer.bias' missing"),
        ({"layer.bias": WEIGHT["layer.bias"]}, "'layer.weight' missing"),
        ({**WEIGHT, "more": torch.zeros(3)}, "'more' more"),
        ({**WEIGHT, "layer.bias": torch.zeros(1, 4)}, r"torch.float32 of shape \(1, 3\), got F32 of shape \(1, 4\)"),
        ({**WEIGHT, "layer.bias": torch.zeros(3)}, r"got F32 of shape \(3,\)"),
        ({**WEIGHT, "layer.bias": torch.zeros(0)}, r"got F32 of shape \(0,\)"),
        ({**WEIGHT, "layer.bias": torch.zeros(1, 3).double()}, "got F64"),
        ({**WEIGHT, "layer.bias": torch.zeros(1, 3).bfloat16()}, "got BF16"),
        ({**WEIGHT, "layer.bias": torch.zeros(1, 3).long()}, "got I64"),
        ({**WEIGHT, "layer.bias": torch.tensor([[0.0, float("nan"), 0.0]])}, "finite parameters, got NaN or infinity in 'layer.bias'"),
        ({**WEIGHT, "layer.bias": torch.tensor([[0.0, float("inf"), 0.0]])}, "finite parameters, got NaN or infinity in 'layer.bias'"),
    ],
)  # fmt: skip
def test_tensors_that_are_not_the_models(tensors, message, tmp_path):
    refused(write(tmp_path / "m", tensors=tensors), message)


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (("classes",), ["a", "b", "a"], "classes: expected each class once"),
        (("classes",), [["a"], "b", "c"], "classes"),
        (("classes",), ["a", "b"], "transition: expected a 2 x 2 matrix"),
        (("belief", "transition", 0), [0.0, float("nan"), 0.5], "transition: expected probabilities"),
        (("belief", "prior", 0), float("inf"), "prior: expected finite numbers"),
        (("belief", "totals"), [0, 0, 0], "totals: expected label counts"),
        (("weights", "values", 0), -1, "values: expected no negative weight"),
        (("label_totals",), [1.0, float("nan"), 1.0], "label_totals: expected finite numbers"),
        (("input_shape",), [4], "tensor 'layer.weight': expected torch.float32 of shape"),
        (("input_shape",), [10**12], "model: expected at most .* which is free"),
        (("fitted", "model"), {"name": "mlp", "hidden": 10**12}, "model: expected at most .* which is free"),
        (("feature_names",), ["u"], "feature_names: expected names of 3 columns, or none, got 1 entries"),
        (("prior",), [0.5, 0.5], r"prior: expected shape \(3,\)"),
        (("prior", 0), 1.5, "prior: expected probabilities that sum to 1"),
        (("prior",), None, "target_prior: expected None for a model that learnt no class probabilities, or was saved"),
        (("scaling",), [[0.0], [1.0]], r"scaling: expected shape \(2, 3\)"),
        (("scaling",), [[0.0] * 3, [1.0, 2.0, 0.0]], "scaling: expected standard deviations above 0, got 0"),
        (("settings", "target_prior"), "even", "target_prior: expected one of 'balanced'"),
        (("settings", "lrr"), 1, "settings: expected one of .* did you mean 'lr'"),
        (("settings", "random_state"), "x", "random_state: expected an integer"),
    ],
)
def test_what_is_wrong_is_said(place, change, message, tmp_path):
    refused(
        write(tmp_path / "m", changed(place, change, NEWER)),
        f"path: expected a model that can be used, got .*{message}",
    )


def test_files_of_the_first_versions_load(tmp_path):
    model = ComplementaryClassifier.load(write(tmp_path / "m"))
    expected = X.astype(float) @ WEIGHT["layer.weight"][0].double().numpy().T + WEIGHT["layer.bias"][0].double().numpy()
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.weights_.to_dict() == HEADER["weights"]
    assert model.belief_.to_dict() == HEADER["belief"]
    assert model.partial_fit(X, np.array(["a", "b", "c"])[Y]).n_iter_ == 2
    older = changed(("belief",), ...) | {"transition": HEADER["belief"]["transition"]}  # before sources were kept
    assert ComplementaryClassifier.load(write(tmp_path / "m", older)).belief_.transition_source == "given"


def test_the_preset_of_earlier_files_is_the_loss_that_it_named(tmp_path):
    for preset, loss in ((None, "auto"), ("paper", "wcll")):
        settings = {**HEADER["settings"], "loss": "auto", "preset": preset}
        assert ComplementaryClassifier.load(write(tmp_path / "m", {**HEADER, "settings": settings})).loss == loss


def test_what_was_fitted_is_kept_whatever_the_settings_say_since(tmp_path):
    model = ComplementaryClassifier("log", random_state=0, max_epochs=2).fit(X, Y)
    model.set_params(model="mlp", dtype="float64").save(tmp_path / "m")
    loaded = ComplementaryClassifier.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.model == "mlp"


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = ComplementaryClassifier("log", random_state=0, max_epochs=2).fit(X, Y)
    with torch.no_grad():
        model.network_.layer.weight[0, 1, 2] = float("nan")
    with pytest.raises(InputError, match=r"model: expected finite parameters, got NaN or infinity in 'layer.weight'"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_only_plain_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), (tmp_path, "a folder"), (tmp_path / "none", "No such file")):
        with pytest.raises(InputError, match=f"expected a saved model, got {kind}"):
            ComplementaryClassifier.load(path)
    for path in (None, 5, [], "a\0b"):
        refused(path)
