"""ONNX files give what the classifier gives, for any number of samples, or are not written."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from wcll import ComplementaryClassifier
from wcll.exceptions import InputError, MissingExtraError
from wcll.onnx import OPSETS, to_onnx

RNG = np.random.default_rng(0)
N = 40
Y = np.array(["ash", "fir", "öak"])[np.arange(N) % 3]
NUMBERS = RNG.normal(size=(N, 5))
IMAGES = RNG.integers(0, 256, (N, 3, 8, 9)).astype(np.uint8)
CNN9 = {"name": "cnn9", "width": 4, "dropout": 0.25}


def fitted(x, loss="forward", **settings):
    settings = {"model": "linear", "max_epochs": 2, "lr": 0.05, "random_state": 0, "device": "cpu", **settings}
    return ComplementaryClassifier(loss, **settings).fit(x, Y)


def session_of(path):
    from onnxruntime import InferenceSession

    return InferenceSession(path, providers=["CPUExecutionProvider"])


MODELS = {
    "linear, mirror images": (IMAGES / 255, {"training": {"name": "strong", "mixup": 0.0}}),
    "mlp, other class shares": (NUMBERS, {"model": "mlp", "target_prior": [0.1, 0.3, 0.6]}),
    "cnn9": (IMAGES, {"model": CNN9}),
    "cnn9, strong": (IMAGES, {"model": {**CNN9, "dropout": 0.0}, "training": "strong"}),
    "own": (NUMBERS, {"model": nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Dropout(), nn.Linear(4, 3))}),
}


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_torch(name, tmp_path, capfd):
    x, settings = MODELS[name]
    model = fitted(x, **settings)
    model.fitted_ = replace(model.fitted_, temperature=0.7)
    capfd.readouterr()
    checked = to_onnx(model, tmp_path / "model.onnx", x)
    assert capfd.readouterr() == ("", "")
    assert checked.samples == N
    assert checked.difference < 1e-5
    session = session_of(tmp_path / "model.onnx")
    (taken,) = session.get_inputs()
    assert taken.name == ("images" if x.ndim > 2 else "numbers")
    assert taken.shape == ["n", *x.shape[1:]]
    for some in (x, x[:1], np.concatenate([x, x])):
        fed = some if some.dtype == np.uint8 else some.astype(model.fitted_.dtype)
        label, logits, probabilities = session.run(None, {taken.name: fed})
        assert np.abs(probabilities - model.predict_proba(some)).max() < 1e-5
        assert np.allclose(logits, model.decision_function(some), atol=1e-4)
        assert label.tolist() == model.predict(some).tolist()
    if "strong" in name or "mirror" in name:
        assert model.fitted_.mirrored


@pytest.mark.parametrize("opset", [OPSETS[0], OPSETS[-1]])
def test_scores_by_name_in_other_versions_of_onnx(opset, tmp_path):
    """A loss that learns no probabilities has none in its file; what the file says of itself is of no machine."""
    x = pd.DataFrame(NUMBERS, columns=list("abcde"))
    model, path = fitted(x, "pc"), tmp_path / "model.onnx"
    path.write_text("an older file, which is replaced")
    to_onnx(model, path, x, opset=opset)
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]
    session = session_of(path)
    label, logits = session.run(None, {"numbers": NUMBERS.astype(np.float32)})
    assert np.allclose(logits, model.decision_function(x), atol=1e-6)
    assert label.tolist() == model.predict(x).tolist()
    said = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert said["classes"] == ["ash", "fir", "öak"]
    assert said["inputs"]["numbers"]["columns"] == list("abcde")
    assert set(said["outputs"]) == {"label", "logits"}
    assert not [word for word in (b".py", b"/home", b"wcll.models") if word in path.read_bytes()]


class Asks(nn.Linear):
    def forward(self, x):
        return super().forward(x) if float(x.sum()) > 0 else super().forward(-x)


class Counts(nn.Linear):
    def forward(self, x):
        return super().forward(x).view(len(x), 3)


@pytest.mark.parametrize("module", [Asks, Counts])
def test_a_module_that_torch_cannot_export_is_one_line(module, tmp_path, capfd):
    model = fitted(NUMBERS, model=module(5, 3))
    capfd.readouterr()
    with pytest.raises(InputError, match=r"^model: expected a module that torch can export to ONNX.*x\.shape"):
        to_onnx(model, tmp_path / "model.onnx", NUMBERS)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_file_that_differs_is_not_written(tmp_path):
    """A module whose outputs depend on the other samples gives something else for one alone."""

    class Centred(nn.Linear):
        def forward(self, x):
            return super().forward(x - x.mean(0))

    path = tmp_path / "model.onnx"
    path.write_text("stays")
    model = fitted(NUMBERS, model=Centred(5, 3))
    with pytest.raises(InputError, match=r"outputs within .* of torch's, got .* away; nothing was written"):
        to_onnx(model, path, NUMBERS)
    assert path.read_text() == "stays"
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


def test_bad_arguments(tmp_path):
    model = fitted(NUMBERS)
    bad = {
        "path": {"path": 3},
        "opset": {"opset": 3},
        "tolerance": {"tolerance": -1.0},
        "X": {"example": NUMBERS[:, 1:]},
    }
    for name, values in bad.items():
        with pytest.raises(InputError, match=f"^{name}: "):
            to_onnx(**{"classifier": model, "path": tmp_path / "model.onnx", "example": NUMBERS, **values})
    with pytest.raises(InputError, match=r"^classifier: .* got Pipeline; of a Pipeline, its last step"):
        to_onnx(make_pipeline(StandardScaler(), model), tmp_path / "model.onnx", NUMBERS)
    with pytest.raises(InputError, match="which is a folder"):
        to_onnx(model, tmp_path, NUMBERS)


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_without_the_extra_one_line_names_it(missing, tmp_path, monkeypatch):
    plain = importlib.import_module

    def refuse(name, package=None):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return plain(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=rf"^{missing}: .*pip install 'wcll\[onnx\]'"):
        to_onnx(fitted(NUMBERS), tmp_path / "model.onnx", NUMBERS)
