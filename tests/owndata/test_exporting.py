"""A model and its preprocessing in one ONNX file: from a user's own values to what the model in the folder says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from own_files import digits, write_csv
from wcll.checks import InputError
from wcll.owndata.columns import Column
from wcll.owndata.examples import KEPT, read_examples, write_examples
from wcll.owndata.exporting import feeds_of, to_onnx
from wcll.owndata.folder import EXAMPLES
from wcll.owndata.learning import Settings, learn
from wcll.owndata.sources import Reading, Roles, read_samples
from wcll.persistence import write_model

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
    write_examples(tmp_path, own, samples.features)
    kept = read_examples(tmp_path, own)
    assert list(kept) == list(own.preprocessing.kinds)
    wanted = own.preprocessing.transform(samples.features)
    assert np.array_equal(own.preprocessing.transform(kept), wanted[np.linspace(0, N - 1, KEPT).astype(int)])


def test_texts_alone(tmp_path):
    samples, own = learnt_from(tmp_path, {name: table()[name] for name in ("a text", "other", "not_label")})
    assert to_onnx(own, tmp_path / "model.onnx", samples.features).difference < 1e-5


@pytest.mark.parametrize("dtype", ["uint8", ">f4", "float16"])
def test_examples_of_arrays_of_any_kind(dtype, tmp_path):
    """For a table and for images; as numbers they are the same."""
    images, _, ruled_out = digits(N)
    for x in (images, images.reshape(N, -1)):
        np.savez(
            tmp_path / "data.npz", x=x.astype(dtype), ybar=[("zero", "one", "two").index(name) for name in ruled_out]
        )
        samples = read_samples(tmp_path / "data.npz", Roles(), Reading())
        own = learn(samples, Roles(), Settings("forward", model="linear", epochs=1, lr=0.01, device="cpu")).own
        write_examples(tmp_path, own, samples.features)
        kept = read_examples(tmp_path, own)
        wanted = own.classifier.predict_proba(own.features(samples))[np.linspace(0, N - 1, KEPT).astype(int)]
        assert np.array_equal(own.classifier.predict_proba(own.preprocessing.transform(kept)), wanted)


def test_examples_that_do_not_fit_are_refused(tmp_path):
    own = learnt_from(tmp_path, table())[1]
    x, texts = torch.zeros(2, 3, dtype=torch.float64), [["a, b", "x"]] * 2
    write_model(tmp_path / EXAMPLES, {"x": x}, {"texts": texts})
    assert len(read_examples(tmp_path, own)["when"]) == 2
    bad = [(x[:, 1:], texts), (x.float(), texts), (x, texts[1:]), (x, [["a", 1]] * 2), (x, [["a"], []]), (x[:0], [])]
    for numbers, words in bad:
        write_model(tmp_path / EXAMPLES, {"x": numbers}, {"texts": words})
        with pytest.raises(InputError, match=EXAMPLES):
            read_examples(tmp_path, own)
