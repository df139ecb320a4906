"""``wcll export``: from a folder to a file that predicts the same, or one line."""

from __future__ import annotations

import csv
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import wcll
from own_files import QUICK, write_all
from wcll.cli.app import run

PAGE = Path(wcll.__file__).parents[2] / "docs" / "own-data.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data, and a model of them."""
    folder = tmp_path_factory.mktemp("own")
    files = write_all(folder, 60)
    assert run(["train", str(files["csv"]), "--ignore", "label", *QUICK, "--out", str(folder / "trees")]) == 0
    return folder


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the package")
def test_the_page_s_example_predicts_as_the_command_does(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(place / "train.csv", "new.csv")
    assert run(["export", str(place / "trees"), "--onnx", "trees.onnx"]) == 0
    assert "from torch on 16 samples, made up (--check DATA takes yours)" in capsys.readouterr().out
    (code,) = [part.split("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    found: dict[str, object] = {}
    exec(code, found)
    assert run(["predict", str(place / "trees"), "new.csv", "-o", "out.csv"]) == 0
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert found["label"].tolist() == [row["predicted"] for row in rows]
    wanted = np.array([[float(row[f"p({name})"]) for name in ("one", "two", "zero")] for row in rows])
    assert np.abs(found["probabilities"] - wanted).max() < 1e-5


def line_of(words, capsys):
    """The one line that a command fails with."""
    capsys.readouterr()
    assert run([str(word) for word in words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_exported_is_one_line(place, tmp_path, monkeypatch, capsys):
    out, trees = tmp_path / "out.onnx", place / "trees"
    assert "a .onnx file, got out.bin" in line_of(["export", trees, "--onnx", tmp_path / "out.bin"], capsys)
    assert "the columns of training" in line_of(
        ["export", trees, "--onnx", out, "--check", place / "train/manifest.csv"], capsys
    )
    plain = importlib.import_module

    def refuse(name, package=None):
        if name == "onnxruntime":
            raise ImportError(name)
        return plain(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    assert "pip install 'wcll[onnx]'" in line_of(["export", trees, "--onnx", out], capsys)
    assert not list(tmp_path.iterdir())
