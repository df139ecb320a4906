"""``wcll export``: from a folder to a file that predicts the same, or one line."""

from __future__ import annotations

import csv
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import wcll
from own_files import QUICK, columns, digits, write_all, write_csv
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


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the package")
def test_the_page_s_example_treats_missing_values_as_the_command_does(tmp_path, monkeypatch, capsys):
    """Every way to write that a value is missing, spaces, and dates with times and zones."""
    monkeypatch.chdir(tmp_path)
    images, _, ruled_out = digits(60)
    made = {**columns(images), "not_label": ruled_out}
    made["ink"] = ["" if i % 5 == 0 else cell for i, cell in enumerate(made["ink"])]
    write_csv(tmp_path / "train.csv", made)
    assert run(["train", "train.csv", *QUICK, "--out", "trees"]) == 0
    assert run(["export", "trees", "--onnx", "trees.onnx"]) == 0
    missing = ["", " ", "NA", "na", " NA ", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null"]
    new = {name: values[: len(missing) + 3] for name, values in made.items() if name != "not_label"}
    new["p2"] = [*missing, " 3.5", "1_0", "1e1 "]
    new["ink"] = [*missing, " much", "little ", "unheard of"]
    new["day"] = [*missing, " 2024-05-31T18:30:00.25", "2024-05-31 23:00:00+02:00", "2024-05-01"]
    write_csv(tmp_path / "new.csv", new)
    text = (tmp_path / "new.csv").read_text()
    (tmp_path / "new.csv").write_text(text, encoding="utf-8-sig")  # as Excel writes it
    (code,) = [part.split("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    found: dict[str, object] = {}
    exec(code, found)
    assert run(["predict", "trees", "new.csv", "-o", "out.csv", "--unknown-category", "ignore"]) == 0
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(missing) + 3
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
