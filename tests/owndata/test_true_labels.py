"""True labels that lie in a table beside complementary ones: columns that are refused, and columns that are doubted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

from own_files import QUICK, write_csv
from wcll.cli.app import run
from wcll.labels import make_complementary

PLACES = ("ash", "beech", "fir", "oak", "pine")


def table(n=1500, k=5, seed=0):
    """Numbers that say something of the class, and complementary labels; and the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = rng.normal(size=(n, 4)) + rng.normal(size=(k, 4))[y]
    not_label = make_complementary(y, n_classes=k, random_state=seed)
    return {f"x{j}": x[:, j].round(3).tolist() for j in range(4)} | {"not_label": [PLACES[j] for j in not_label]}, y


def train(tmp_path, columns, *options):
    data = write_csv(tmp_path / "data.csv", columns)
    return run(["train", str(data), *QUICK, *options, "--json", "--out", str(tmp_path / "model")])


def card_of(tmp_path, capsys, columns, *options):
    assert train(tmp_path, columns, *options) == 0
    return json.loads(capsys.readouterr().out)


def doubted(card):
    return [line for line in card["alarms"] if "does it encode the true label?" in line]


@pytest.mark.parametrize("kind", ["numbers", "text", "numbers, a tenth unknown"])
def test_codes_of_true_labels_are_doubted(kind, tmp_path, capsys):
    columns, y = table()
    code = [17 * k + 3 for k in y] if kind.startswith("numbers") else [f"c{k}" for k in y]
    if "unknown" in kind:
        code = [-1 if i % 10 == 0 else one for i, one in enumerate(code)]
    (line,) = doubted(card_of(tmp_path, capsys, {**columns, "code": code}))
    assert line.startswith("code: each value of this column rules out a class")
    assert "--ignore code" in line
    assert "--feature code" in line


def test_a_column_that_is_named_as_a_feature_is_kept_without_a_word(tmp_path, capsys):
    columns, y = table()
    kept = {"code": y.tolist(), "target": y.tolist(), "verdict": [PLACES[k] for k in y]}
    options = [word for name in kept for word in ("--feature", name)]
    card = card_of(tmp_path, capsys, {**columns, **kept}, *options)
    assert not doubted(card)
    assert {"code", "target", "verdict"} <= {one["name"] for one in card["data"]["columns"]}


USUAL = [
    *("label (true)", "Label_", "__label__", "class label", "ClassLabel", "Actual Label", "actual-class"),
    *("correct_label", "target class", "true y", "GT"),
]


@pytest.mark.parametrize("name", USUAL)
def test_usual_names_of_true_labels_are_refused(name, tmp_path, capsys):
    columns, y = table(60)
    assert train(tmp_path, {**columns, name: y.tolist()}) == 2
    assert f"column {name!r}, a usual name of true labels" in capsys.readouterr().err


def test_a_category_is_no_feature_that_is_kept(tmp_path, capsys):
    """``--category`` says how a column is read; that it may be a feature is said with ``--feature``."""
    columns, y = table()
    for name, cells in (("target", y.tolist()), ("verdict", [PLACES[k] for k in y])):
        assert train(tmp_path, {**columns, name: cells}, "--category", name) == 2
        assert f"--feature {name} keeps it" in capsys.readouterr().err
    coded = {**columns, "code": y.tolist()}
    (line,) = doubted(card_of(tmp_path, capsys, coded, "--category", "code"))
    assert line.startswith("code: ")
    options = ["--category", "code", "--feature", "code", "--force"]
    assert not doubted(card_of(tmp_path, capsys, coded, *options))


def test_a_category_of_a_stream_is_no_feature_that_is_kept(tmp_path, capsys):
    from pyarrow import parquet
    from pyarrow import table as arrow_table

    columns, y = table()
    parquet.write_table(arrow_table({**columns, "target": y.tolist()}), tmp_path / "t.parquet")
    parquet.write_table(arrow_table({**columns, "code": y.tolist()}), tmp_path / "code.parquet")
    words = [*QUICK, "--stream", "--json", "--out", str(tmp_path / "model")]
    assert run(["train", str(tmp_path / "t.parquet"), "--category", "target", *words]) == 2
    assert "column 'target', a usual name of true labels" in capsys.readouterr().err
    assert run(["train", str(tmp_path / "t.parquet"), "--category", "target", "--feature", "target", *words]) == 0
    assert not doubted(json.loads(capsys.readouterr().out))
    assert run(["train", str(tmp_path / "code.parquet"), "--category", "code", *words, "--force"]) == 0
    assert len(doubted(json.loads(capsys.readouterr().out))) == 1


def test_a_constant_column_is_not_refused(tmp_path):
    columns, _ = table(60)
    assert train(tmp_path, {**columns, "plant": ["oak"] * 60}) == 0


def test_groups_of_a_stream_are_kept_together(tmp_path, capsys):
    """Near copies of a sample have its label: a named loss does not take them for true labels."""
    from pyarrow import parquet
    from pyarrow import table as arrow_table

    columns, _ = table(100)
    rows, rng = np.repeat(np.arange(100), 15), np.random.default_rng(0)
    near = {name: np.array(cells)[rows] for name, cells in columns.items()}
    near |= {f"x{j}": near[f"x{j}"] + rng.normal(0, 1e-3, len(rows)) for j in range(4)}
    parquet.write_table(arrow_table({**near, "patient": rows}), tmp_path / "t.parquet")
    words = ["--loss", "forward", "--epochs", "1", "--device", "cpu", "--group", "patient", "--json"]
    for more in ([], ["--stream"]):
        out = str(tmp_path / f"model{len(more)}")
        assert run(["train", str(tmp_path / "t.parquet"), *words, *more, "--out", out]) == 0
        assert "are these true labels?" not in capsys.readouterr().out, more


def test_the_columns_that_are_used_are_listed(tmp_path, capsys):
    columns, _ = table(300)
    data = write_csv(tmp_path / "data.csv", {**columns, "day": ["2024-05-31"] * 300, "id": list(range(300))})
    out = tmp_path / "model"
    assert run(["train", str(data), "--ignore", "id", *QUICK, "--out", str(out)]) == 0
    used = "x0, x1, x2, x3, day"
    assert f"Features: {used}" in capsys.readouterr().out
    for name in ("card.md", "page.html"):
        assert used in (out / name).read_text(), name


def frames():
    """Tables of scikit-learn, whose features are no labels, with classes that are names or numbers."""
    for name, load in (("digits", load_digits), ("iris", load_iris), ("wine", load_wine)):
        x, y = load(return_X_y=True)
        for names in ("names", "numbers"):
            called = y if names == "numbers" else np.array([f"class {k}" for k in y])
            labels = called[[int(np.flatnonzero(y == k)[0]) for k in make_complementary(y, random_state=0)]]
            yield name, {f"c{j}": x[:, j].tolist() for j in range(x.shape[1])} | {"not_label": labels.tolist()}


@pytest.mark.parametrize(("name", "columns"), list(frames()))
def test_tables_without_true_labels_are_not_doubted(name, columns, tmp_path, capsys):
    assert not doubted(card_of(tmp_path, capsys, columns))
