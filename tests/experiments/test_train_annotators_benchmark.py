"""The benchmark of annotators, on a few made-up images: files as suites read them, and a summary of their results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wcll
from tiny_data import bytes_of
from wcll.datasets import DATASETS, load_dataset

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "annotators.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the benchmarks are not beside the package")

EACH = 8  # images of every class in each of the six files


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import annotators

    monkeypatch.setattr(annotators, "IMAGES_PER_CLASS", 12)
    monkeypatch.setattr(annotators, "TEST_PER_CLASS", 5)
    return annotators


@pytest.fixture
def prepared(script, tmp_path):
    """What was published, made up, and what is made of it: the folder of data, and nine labels of every image."""
    raw, data = tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    y = np.tile(np.arange(10, dtype=np.uint8), EACH)
    (data / "cifar-10-batches-bin").mkdir(parents=True)
    for name in DATASETS["cifar10"].files:
        records = np.column_stack([y, bytes_of(len(y), 3072)])
        (data / "cifar-10-batches-bin" / name).write_bytes(records.tobytes())
    truth = np.tile(y, 5)[:, None].astype(np.int64)
    labels = (truth + np.random.default_rng(0).integers(1, 10, (len(truth), 9))) % 10
    labels[0, :3] = 4, 4, 7
    np.savez(raw / "acl-cifar10.npz", labels=labels.astype(np.uint8))
    np.savez(raw / "human-q.npz", clcifar10=np.eye(10), clmin10=np.eye(10))
    for name in ("birdsong", "lost"):
        np.savez(raw / f"{name}.npz", x=np.ones((3, 2)), candidates=~np.eye(3, dtype=bool), y=np.arange(3))
    script.prepare(raw, data)
    return data, labels


def test_images_keep_the_labels_that_they_were_given(prepared):
    data, labels = prepared
    official = load_dataset("cifar10", data)
    first, tested = slice(0, 120), slice(0, 50)  # classes take turns in the files
    for m in (1, 3, 9):
        found = load_dataset(f"annotators/acl-cifar10-{m}.npz", data)
        assert found.classes == official.classes
        assert found.train.x.dtype == np.uint8
        np.testing.assert_array_equal(found.train.x, official.train.x[first])
        np.testing.assert_array_equal(found.train.y, official.train.y[first])
        np.testing.assert_array_equal(found.test.x, official.test.x[tested])
        np.testing.assert_array_equal(found.test.y, official.test.y[tested])
        named = found.train.ybar if m > 1 else np.eye(10, dtype=bool)[found.train.ybar]
        assert [set(np.flatnonzero(row)) for row in named] == [set(row[:m]) for row in labels[first]]
        assert m != 3 or named[0].sum() == 2  # a class that is named twice counts once


def test_the_first_of_each_class_or_all(script):
    y = np.array([1, 0, 1, 1, 0])
    assert script.first_of_each(y, 2).tolist() == [0, 1, 2, 4]
    assert script.first_of_each(y, None).tolist() == [0, 1, 2, 3, 4]


def test_the_summary_of_labels_that_were_given(script, prepared, tmp_path, monkeypatch, capsys):
    text = (script.FOLDER / "acl.toml").read_text()
    shorter = {"epochs = 25": "epochs = 2", "warm_up = 4": "warm_up = 1", "pairs = 300": "pairs = 30"}
    for old, new in {'"cnn9"': '"linear"', **shorter}.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "acl.toml").write_text(text)
    rows = wcll.run(tmp_path / "acl.toml", store=tmp_path / "S.sqlite", data=prepared[0], device="cpu")
    assert len(rows) == 2 * 5 * 2  # columns, rows, trials
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    script.summary(tmp_path / "S.sqlite", ["acl"])
    lines = capsys.readouterr().out.splitlines()
    for labels in ("one label", "3 labels"):
        assert sum(line.startswith(f"  {labels}: with the model: ") for line in lines) == 2
    assert sum(line.startswith("  300 true pairs") for line in lines) == 2
