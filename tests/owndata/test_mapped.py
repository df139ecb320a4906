"""Images that are mapped from a file: the very models of images in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from own_files import CLASSES, digits, killed_after, write_all, write_csv
from wcll.cli.app import run
from wcll.datasets import images as decoding
from wcll.owndata.unfinished import Unfinished
from wcll.persistence import read_model


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(decoding, "PART", 8 * 8 * 7)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    write_all(folder, 150)
    several = folder / "several"
    several.mkdir()
    for i, image in enumerate(digits(90)[0]):
        Image.fromarray(image).convert("RGB").save(several / f"{i}.png")
    names = [CLASSES[i % 3] if i % 2 else f"{CLASSES[i % 3]}|{CLASSES[(i + 1) % 3]}" for i in range(90)]
    write_csv(several / "manifest.csv", {"path": [f"{i}.png" for i in range(90)], "not_label": names})
    return folder


def weights(folder) -> dict:
    return {name: tensor.tolist() for name, tensor in read_model(folder / "model.safetensors")[1].items()}


TRAININGS = {
    "linear": ("train", ["--loss", "forward", "--model", "linear", "--epochs", "4"]),
    "views": ("train", ["--loss", "forward", "--training", "strong", "--model", "mlp", "--epochs", "3"]),
    "pairs": ("several", ["--loss", "wcll", "--model", "mlp", "--epochs", "3"]),
    "auto": ("train", ["--budget", "500", "--model", "linear", "--lr", "0.01"]),
}


@pytest.mark.parametrize("case", TRAININGS)
def test_the_same_model_bit_for_bit(case, photos, tmp_path):
    stem, words = TRAININGS[case]
    for name, more in (("memory", []), ("stream", ["--stream", "--buffer", "70"])):
        out = str(tmp_path / name)
        assert run(["train", str(photos / stem), *words, *more, "--device", "cpu", "--out", out]) == 0
    assert weights(tmp_path / "memory") == weights(tmp_path / "stream")
    cards = [json.loads((tmp_path / name / "card.json").read_text()) for name in ("memory", "stream")]
    for part in ("classes", "estimate", "least_sure", "belief"):
        assert cards[0][part] == cards[1][part]
    assert cards[0]["data"] | {"sampled": cards[1]["data"]["sampled"]} == cards[1]["data"]
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_some_stand_for_all(photos, tmp_path):
    words = ["--loss", "forward", "--model", "linear", "--epochs", "4", "--device", "cpu"]
    assert run(["train", str(photos / "train"), *words, "--out", str(tmp_path / "all")]) == 0
    words += ["--stream", "--sample", "100"]
    assert run(["train", str(photos / "train"), *words, "--out", str(tmp_path / "some")]) == 0
    assert weights(tmp_path / "all") == weights(tmp_path / "some")
    card = json.loads((tmp_path / "some" / "card.json").read_text())
    assert (card["data"]["samples"], card["data"]["sampled"], card["data"]["labels"]) == (150, 100, 150)
    assert "data:image/png" in (tmp_path / "some" / "page.html").read_text()


def test_an_image_that_cannot_be_used_leaves_nothing(photos, tmp_path, capsys):
    place = tmp_path / "photos"
    place.mkdir()
    for i, image in enumerate(digits(30)[0]):
        Image.fromarray(image).resize((8, 9) if i == 25 else (8, 8)).save(place / f"{i}.png")
    write_csv(place / "manifest.csv", {"path": [f"{i}.png" for i in range(30)], "not_label": digits(30)[2]})
    words = ["train", str(place), "--loss", "log", "--epochs", "1", "--stream", "--out", str(tmp_path / "m")]
    assert run(words) == 2
    assert "25.png: expected an image of 8 x 8 pixels as 0.png, got 8 x 9 pixels" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
    assert run([*words, "--category", "path"]) == 2
    assert "--category" in capsys.readouterr().err


def test_killed_for_real(photos, tmp_path, monkeypatch):
    """What was decoded is not decoded again, and the weights are those of a training that nobody stopped."""
    words = ["train", str(photos / "train"), "--loss", "log", "--epochs", "5", "--device", "cpu"]
    out = tmp_path / "model"
    killed_after(2, [*words, "--stream", "--out", str(out)])
    (kept,) = Unfinished.beside(out).glob("images-*.npy")
    assert np.load(kept).shape == (150, 1, 8, 8)
    with monkeypatch.context() as patched:
        patched.setattr(decoding.Decoding, "read", None)
        assert run([*words, "--stream", "--out", str(out), "--resume"]) == 0
    assert not Unfinished.beside(out).exists()
    assert run([*words, "--out", str(tmp_path / "memory")]) == 0
    assert weights(out) == weights(tmp_path / "memory")


def test_images_are_predicted_some_at_a_time(photos, tmp_path, capsys):
    """As many files as there are; one that cannot be decoded is left out if that is asked for."""
    place = tmp_path / "new"
    place.mkdir()
    for i, image in enumerate(digits(30, 200)[0]):
        Image.fromarray(image).save(place / f"{i}.png")
    (place / "20.png").write_bytes(b"no image")
    words = ["--loss", "log", "--epochs", "2", "--device", "cpu", "--out", str(tmp_path / "m")]
    assert run(["train", str(photos / "train"), *words]) == 0
    out = tmp_path / "p.csv"
    assert run(["predict", str(tmp_path / "m"), str(place), "-o", str(out)]) == 2
    assert not out.exists()
    capsys.readouterr()
    assert run(["predict", str(tmp_path / "m"), str(place), "-o", str(out), "--skip-bad"]) == 0
    assert "1 of 30 images cannot be decoded and are left out, first 20.png" in capsys.readouterr().err
    lines = out.read_text().splitlines()
    assert len(lines) == 30
    assert sum(line.startswith("path,") for line in lines) == 1
