"""From a user's own data to a model and back: every form of data, through the command line."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys

import pytest

from own_files import QUICK, columns, digits, write_all, write_csv, write_export
from wcll import _auto
from wcll.cli.app import run
from wcll.owndata.folder import FILES, OwnModel
from wcll.owndata.sources import Roles, read_samples


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    return {"train": write_all(folder), "test": write_all(folder, 120, 240, "test")}


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """A model for every form of data."""
    place, found = tmp_path_factory.mktemp("models"), {}
    for kind, path in files["train"].items():
        roles = ["--ignore", "label"] if kind in ("csv", "parquet") else []
        assert run(["train", str(path), *roles, *QUICK, "--out", str(place / kind)]) == 0
        found[kind] = place / kind
    return found


FORMS = ("csv", "parquet", "npz", "images")
TOOLS = ("labelstudio.json", "prodigy.jsonl")


@pytest.fixture(scope="module")
def imported(files, tmp_path_factory):
    """What an export of each tool becomes, for training and test; and a model of images that is trained on it."""
    place, found = tmp_path_factory.mktemp("tools"), {}
    for tool in TOOLS:
        for stem, (n, first) in (("train", (240, 0)), ("test", (120, 240))):
            export, labels = place / f"{stem}-{tool}", place / f"{stem}-{tool}.csv"
            write_export(export, [f"{i}.png" for i in range(n)], digits(n, first)[2])
            assert run(["labels", "import", str(export), "--item", "file", "-o", str(labels)]) == 0
            found[tool, stem] = labels
        words = ["--labels", str(found[tool, "train"]), *QUICK, "--out", str(place / tool)]
        assert run(["train", str(files["train"]["images"]), *words]) == 0
        found[tool] = place / tool
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_from_an_annotation_tool_to_a_model(tool, files, imported, trained, tmp_path, capsys):
    """Both say the same of the images as their manifest, and give the same model."""
    words = ["--item", "item", "--annotator", "annotator"]
    assert run(["labels", "describe", str(imported[tool, "train"]), *words]) == 0
    assert "240 samples, 240 labels (1 a sample), 3 classes." in capsys.readouterr().out
    data, labels = str(files["test"]["images"]), str(imported[tool, "test"])
    assert run(["predict", str(imported[tool]), data, "-o", str(tmp_path / "out.csv")]) == 0
    assert run(["predict", str(trained["images"]), data, "-o", str(tmp_path / "manifest.csv")]) == 0
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "manifest.csv").read_text()
    capsys.readouterr()
    assert run(["evaluate", str(imported[tool]), data, "--labels", labels]) == 0
    assert "From 120 complementary labels" in capsys.readouterr().out
    assert not [path for path in imported[tool].iterdir() if b"ann@" in path.read_bytes()]  # who labelled is not kept


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", FORMS)
def test_train_predict_evaluate(kind, files, trained, tmp_path, capsys):
    folder, data = trained[kind], str(files["test"][kind])
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert [path.name for path in folder.parent.iterdir() if path.name not in FORMS] == []
    out = tmp_path / "out.csv"
    assert run(["predict", str(folder), data, "-o", str(out)]) == 0
    rows = rows_of(out)
    assert len(rows) == 120
    own = OwnModel.load(folder)
    samples = read_samples(files["test"][kind], Roles(), own.reading(labels=False))
    assert [row["predicted"] for row in rows] == own.classifier.predict(own.features(samples)).tolist()
    true = "y" if kind == "npz" else "label"
    capsys.readouterr()
    assert run(["evaluate", str(folder), data, "--true-label", true, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["true"]["accuracy"] > 0.8
    right = [row["predicted"] == name for row, name in zip(rows, digits(120, 240)[1], strict=True)]
    assert found["true"]["accuracy"] == pytest.approx(sum(right) / 120)
    assert found["complementary"] is None
    if kind == "csv":  # a part in which few classes are named is judged by all that the model knows
        part = write_csv(tmp_path / "part.csv", {**columns(digits(6)[0]), "not_label": ["one", "two"] * 3})
        assert run(["evaluate", str(folder), str(part)]) == 0
        assert "From 6 complementary labels" in capsys.readouterr().out
    assert run(["evaluate", str(folder), data]) == 0
    assert "From 120 complementary labels, no true one; 95 % intervals." in capsys.readouterr().out


def test_csv_and_parquet_are_one(files, trained, tmp_path):
    """The same table in both forms gives the same model, and each predicts what the other holds."""
    for kind, other in (("csv", "parquet"), ("parquet", "csv")):
        out = str(tmp_path / f"{kind}.csv")
        assert run(["predict", str(trained[kind]), str(files["test"][other]), "-o", out]) == 0
    assert (tmp_path / "csv.csv").read_text() == (tmp_path / "parquet.csv").read_text()


def test_a_new_process_predicts_the_same(files, trained, imported, tmp_path):
    """Of models of all six forms of data."""
    models = {kind: (trained[kind], files["test"][kind]) for kind in FORMS}
    models |= {tool: (imported[tool], files["test"]["images"]) for tool in TOOLS}

    def commands(where):
        return [
            ["predict", str(model), str(data), "-o", str(tmp_path / f"{where}-{kind}.csv")]
            for kind, (model, data) in models.items()
        ]

    assert [run(words) for words in commands("here")] == [0] * 6
    script = f"from wcll.cli.app import run; raise SystemExit(max(map(run, {commands('there')!r})))"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    for kind in models:
        assert (tmp_path / f"here-{kind}.csv").read_bytes() == (tmp_path / f"there-{kind}.csv").read_bytes()


def test_labels_of_the_same_files_are_described(files, capsys):
    for kind in ("csv", "parquet", "npz"):
        assert run(["labels", "describe", str(files["train"][kind])]) == 0
        assert "240 samples, 240 labels (1 a sample), 3 classes." in capsys.readouterr().out


def test_several_labels_in_every_way(tmp_path, capsys):
    """Two columns, a list in a cell, and several rows an item say the same, and give the same model."""
    images, _, first = digits(80)
    second = ["two" if i % 4 == 0 and one == "one" else one for i, one in enumerate(first)]
    values = columns(images)
    both = ["|".join(dict.fromkeys(pair)) for pair in zip(first, second, strict=True)]
    write_csv(tmp_path / "columns.csv", {**values, "a": first, "b": second})
    write_csv(tmp_path / "lists.csv", {**values, "not_label": both})
    item = [f"i{i}" for i in range(80)]
    long = {name: [one for cell in some for one in (cell, cell)] for name, some in {**values, "item": item}.items()}
    long["not_label"] = [one for pair in zip(first, second, strict=True) for one in pair]
    write_csv(tmp_path / "rows.csv", long)
    options = {"columns": ["--not-label", "a", "--not-label", "b"], "lists": [], "rows": ["--item", "item"]}
    cards = []
    for name, more in options.items():
        words = ["train", str(tmp_path / f"{name}.csv"), *more, *QUICK, "--out", str(tmp_path / name), "--json"]
        capsys.readouterr()
        assert run(words) == 0
        cards.append(json.loads(capsys.readouterr().out))
    assert [card["data"]["samples"] for card in cards] == [80] * 3
    assert cards[0]["made"]["command"].startswith("wcll train columns.csv --not-label a --not-label b")
    assert cards[2]["made"]["command"].endswith("rows.csv --item item --budget 600 --model linear --lr 0.01 --out rows")
    assert cards[0]["data"]["labels"] > 80
    assert cards[0]["training"]["last_loss"] == cards[1]["training"]["last_loss"] == cards[2]["training"]["last_loss"]
    out = tmp_path / "out.csv"
    assert run(["predict", str(tmp_path / "rows"), str(tmp_path / "rows.csv"), "--item", "item", "-o", str(out)]) == 0
    assert [row["item"] for row in rows_of(out)] == item
    capsys.readouterr()
    assert run(["evaluate", str(tmp_path / "rows"), str(tmp_path / "rows.csv")]) == 0  # items are those of training
    shown, said = capsys.readouterr()
    assert "From 80 complementary labels" in shown
    assert "of samples with several labels one is drawn" in said
    assert "trained on these very data" in said


def test_what_is_being_chosen_is_told_from_time_to_time(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_auto, "QUIET", 0.0)
    words = ["--loss", "auto", "--model", "linear", "--budget", "400", "--out", str(tmp_path / "m")]
    assert run(["train", str(files["train"]["npz"]), *words]) == 0
    said = capsys.readouterr().err
    for line in ("estimating Q, round 1", "training linear, epoch 1 of"):
        assert f"wcll: {line}" in said
    assert "Traceback" not in said


def test_groups_and_named_losses(tmp_path, capsys):
    images, _, ruled_out = digits(100)
    values = {**columns(images), "not_label": ruled_out, "who": [f"g{i % 10}" for i in range(100)]}
    data = write_csv(tmp_path / "t.csv", values)
    assert run(["train", str(data), "--group", "who", *QUICK, "--out", str(tmp_path / "g"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["groups"] == 10
    words = ["--ignore", "who", "--loss", "wcll", "--epochs", "2", "--lr", "0.01", "--out", str(tmp_path / "w")]
    assert run(["train", str(data), *words]) == 0
    shown = capsys.readouterr().out
    assert "Trained: wcll, linear, learning rate 0.01, 2 epochs" in shown
    assert "Not estimated" in (tmp_path / "w" / "card.md").read_text()


def test_labels_in_a_table_of_their_own(files, tmp_path, capsys):
    """As an annotation tool gives them: by item, some items several times, some not at all."""
    images, _, ruled_out = digits(80)
    item = [f"i{i}" for i in range(80)]
    data = write_csv(tmp_path / "data.csv", {"tree": item, **columns(images)})
    lines = [
        {"text": name, "label": label, "answer": "reject"}
        for name, label in zip(item[10:], ruled_out[10:], strict=True)
    ]
    lines += [lines[0], {"text": "i99", "label": "two", "answer": "reject"}]
    lines += [{"text": "i3", "label": "zero", "answer": "accept"}]
    (tmp_path / "export.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for ending in ("csv", "parquet"):
        labels = str(tmp_path / f"labels.{ending}")
        assert run(["labels", "import", str(tmp_path / "export.jsonl"), "-o", labels, "--true-labels"]) == 0
        words = ["--item", "tree", "--labels", labels]
        out = str(tmp_path / ending)
        capsys.readouterr()
        assert run(["train", str(data), *words, *QUICK, "--out", out, "--json"]) == 0
        card = json.loads(capsys.readouterr().out)
        assert card["data"]["samples"] == card["data"]["labels"] == 70
        assert card["notes"][0] == f"10 of 80 items have no label in labels.{ending}, and are left out"
        assert card["notes"][1] == f"1 items of labels.{ending} are not in data.csv"
        assert run(["evaluate", out, str(data), *words]) == 0
        assert "From 70 complementary labels" in capsys.readouterr().out
    manifest = {"item": [f"{i}.png" for i in range(50)], "not_label": digits(50)[2]}
    labels = str(write_csv(tmp_path / "images.csv", manifest))
    assert run(["train", str(files["train"]["images"]), "--labels", labels, *QUICK, "--out", str(tmp_path / "m")]) == 0
    assert "190 of 240 items have no label" in capsys.readouterr().err
    bare = tmp_path / "bare"
    shutil.copytree(files["train"]["images"], bare, ignore=shutil.ignore_patterns("manifest.csv"))
    assert run(["train", str(bare), "--labels", labels, *QUICK, "--out", str(tmp_path / "b")]) == 0
    for folder in (files["train"]["images"], bare):  # without a manifest all images are meant
        assert run(["predict", str(tmp_path / "m"), str(folder), "-o", str(tmp_path / f"{folder.name}.csv")]) == 0
    found = [sorted((tmp_path / f"{name}.csv").read_text().split()) for name in ("bare", files["train"]["images"].name)]
    assert found[0] == found[1]
    (tmp_path / "none").mkdir()
    assert run(["predict", str(tmp_path / "b"), str(tmp_path / "none"), "-o", str(tmp_path / "c.csv")]) == 2
    assert "expected images in the folder, or manifest.csv, got" in capsys.readouterr().err
    (bare / "manifest.csv").write_text("path,label\n1.png,zero\n")
    assert run(["evaluate", str(tmp_path / "b"), str(bare)]) == 2
    assert "a row is NOT; --true-label takes true classes instead" in capsys.readouterr().err
    for words, expected in (
        (["--labels", labels], "--item: expected one of the columns 'tree', 'p2'"),
        (
            ["--labels", labels, "--item", "tree"],
            "labels of items such as 'i0' of data.csv, got none of 50, such as '0.png'",
        ),
        (["--labels", str(data), "--item", "tree"], "a column item, got 'tree'"),
        (["--labels", labels, "--item", "tree", "--not-label", "p2"], "--not-label: expected none beside --labels"),
    ):
        assert run(["train", str(data), *words, *QUICK, "--out", str(tmp_path / "n")]) == 2
        assert expected in capsys.readouterr().err


def test_samples_of_a_step_may_be_said(files, tmp_path, capsys):
    """The command that the card repeats says it, where it is not the usual number."""
    found = {}
    for size in ("64", "256"):
        words = ["--loss", "log", "--epochs", "1", "--batch-size", size, "--out", str(tmp_path / size), "--json"]
        assert run(["train", str(files["train"]["npz"]), *words]) == 0
        found[size] = json.loads(capsys.readouterr().out)
    assert "--batch-size 64" in found["64"]["made"]["command"]
    assert "--batch-size" not in found["256"]["made"]["command"]
    assert found["64"]["training"]["last_loss"] != found["256"]["training"]["last_loss"]  # three steps, not one
