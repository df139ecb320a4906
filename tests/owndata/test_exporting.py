"""A model and its preprocessing in one ONNX file: from a user's own values to what the model in the folder says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from own_files import digits, write_csv
from wcll.owndata.columns import Column
from wcll.owndata.examples import MADE_UP, made_up
from wcll.owndata.exporting import feeds_of, to_onnx
from wcll.owndata.learning import Settings, learn
from wcll.owndata.sources import Reading, Roles, read_samples

N = 60


def learnt_from(folder, values):
    samples = read_samples(write_csv(folder / "data.csv", values), Roles(), Reading())
    return samples, learn(samples, Roles(), Settings("forward", model="mlp", epochs=3, lr=0.01, device="cpu")).own


def table():
    """Numbers of all sizes, dates to the second and texts of any letters; of each some are missing."""
    images, _, ruled_out = digits(N)
    ink = images.reshape(N, -1).mean(1)
    return {
        "logits": [None if i % 7 == 3 else 1e6 + value for i, value in enumerate(ink)],
        "small": (1e-6 * ink).tolist(),
        "when": [None if i % 5 == 2 else f"2024-05-{1 + i % 28:02d}T10:{i:02d}:07" for i in range(N)],
        "a text": [None if i % 9 == 4 else "größer" if value > 78 else "a, b" for i, value in enumerate(ink)],
        "other": ["x" if i % 3 else "y" for i in range(N)],
        "not_label": ruled_out,
    }


def test_columns_of_all_kinds(tmp_path):
    from onnxruntime import InferenceSession

    samples, own = learnt_from(tmp_path, table())
    path = tmp_path / "model.onnx"
    assert to_onnx(own, path, samples.features).difference < 1e-5
    session = InferenceSession(path)
    inputs = json.loads(session.get_modelmeta().custom_metadata_map["inputs"])
    assert {name: one["columns"] for name, one in inputs.items()} == {
        "numbers": ["logits", "small", "when"],
        "texts": ["a text", "other"],
    }
    assert inputs["numbers"]["dates"] == ["when"]
    assert json.loads(session.get_modelmeta().custom_metadata_map["preprocessing"]) == own.preprocessing.to_dict()
    unknown = {**samples.features, "other": Column(samples.path, "other", ["z"] * N)}
    for features in (samples.features, unknown):
        wanted = own.classifier.predict_proba(own.preprocessing.transform(features, ignore_unknown=True))
        label, _, probabilities = session.run(None, feeds_of(own, features))
        assert np.abs(probabilities - wanted).max() < 1e-5
        assert set(label) <= {"zero", "one", "two"}
    assert np.ptp(probabilities) > 0.01
    some = made_up(own)
    assert list(some) == list(own.preprocessing.kinds)
    assert to_onnx(own, path, some).samples == MADE_UP
    own_rows, new_rows = (own.preprocessing.columns(features)[0] for features in (samples.features, some))
    assert np.isnan(new_rows).any()
    spread = np.nanstd(own_rows, axis=0)
    assert (np.abs(np.nanmean(new_rows, axis=0) - np.nanmean(own_rows, axis=0)) < spread).all()
    assert set(some["a text"].values) == {"größer", "a, b", ""}


def test_texts_alone(tmp_path):
    samples, own = learnt_from(tmp_path, {name: table()[name] for name in ("a text", "other", "not_label")})
    assert to_onnx(own, tmp_path / "model.onnx", samples.features).difference < 1e-5


@pytest.mark.parametrize("dtype", ["uint8", ">f4", "float16"])
def test_samples_are_made_up_for_arrays_of_any_kind(dtype, tmp_path):
    """For a table and for images."""
    images, _, ruled_out = digits(N)
    for x in (images, images.reshape(N, -1)):
        np.savez(
            tmp_path / "data.npz", x=x.astype(dtype), ybar=[("zero", "one", "two").index(name) for name in ruled_out]
        )
        samples = read_samples(tmp_path / "data.npz", Roles(), Reading())
        own = learn(samples, Roles(), Settings("forward", model="linear", epochs=1, lr=0.01, device="cpu")).own
        assert to_onnx(own, tmp_path / "model.onnx", made_up(own)).samples == MADE_UP
