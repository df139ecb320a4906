"""``wcll labels describe``: text, JSON, the page, and one line for whatever is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wcll.cli.app import run


@pytest.fixture
def table(tmp_path):
    """Labels of three annotators, the first of whom has a favourite."""
    rng = np.random.default_rng(0)
    lines = ["item,not_label,who"]
    for item in range(150):
        y = rng.integers(4)
        for who in "xyz":
            wrong = [name for k, name in enumerate(["ant", "bee", "cow", "[red]dog[/red]\x1b"]) if k != y]
            label = wrong[0] if who == "x" and rng.random() < 0.8 else rng.choice(wrong)
            lines.append(f"{item},{label},{who}")
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_text(table, capsys):
    assert (
        run(["labels", "describe", str(table), "--not-label", "not_label", "--item", "item", "--annotator", "who"]) == 0
    )
    shown = capsys.readouterr().out
    assert "150 samples, 450 labels (3 a sample), 4 classes." in shown
    assert r"[red]dog[/red]\x1b" in shown
    for title in (
        "Counts",
        "Which labels these may be",
        "What it costs if this is wrong",
        "Agreement",
        "Mistakes",
        "Annotators",
        "What a label is worth",
    ):
        assert title in shown
    assert "1 of 3 differ from the others" in shown


def test_json_and_page(table, tmp_path, capsys):
    out = tmp_path / "page.html"
    arguments = ["labels", "describe", str(table), "--item", "item", "--json", "--out", str(out)]
    assert run(arguments) == 0
    first = capsys.readouterr().out
    found = json.loads(first)
    assert found["samples"] == 150
    assert sum(found["counts"]) == 450
    assert {fit["name"] for fit in found["families"]} >= {"uniform", "popularity"}
    assert found["annotators"] is None
    cost = found["costs_if_wrong"]["uniform"]["popularity"]
    assert 0 <= cost["accuracy"] <= 1
    assert len(cost["per_class"]) == 4
    page = out.read_text()
    assert "</html>" in page
    assert "wcll labels describe labels.csv --item item" in page
    assert str(tmp_path) not in page
    assert run([*arguments, "--force"]) == 0
    assert capsys.readouterr().out == first
    assert out.read_text() == page


def test_arrays_and_several_columns(tmp_path, capsys):
    path = tmp_path / "labels.npz"
    np.savez(path, ybar=np.random.default_rng(0).integers(0, 4, 200))
    assert run(["labels", "describe", str(path), "--classes", "a, b,c,d"]) == 0
    assert "200 samples, 200 labels (1 a sample), 4 classes." in capsys.readouterr().out
    table = tmp_path / "two.csv"
    table.write_text("first,second\n" + "a,b\nb,c\nc,a\nd,d\n" * 20)
    assert run(["labels", "describe", str(table), "--not-label", "first", "--not-label", "second"]) == 0
    assert "80 samples, 160 labels (2 a sample), 4 classes." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--not-label", "label"], "--not-label: expected one of the columns 'item', 'not_label', 'who', got 'label'"),
        (["--classes", "ant"], "--classes: expected at least two names"),
        (["--classes", "ant,ant"], "--classes: expected at least two names"),
        (["--classes", "ant,,bee"], "--classes: expected at least two names"),
        (["--classes", "ant,bee"], "labels among ant, bee"),
        (["--true-label", "y"], "--true-label"),
        (["--out", "page.txt"], "--out: expected an .html file, got page.txt"),
        (["--out", "/no/such/folder/x.html"], "--out: expected a folder that can be written"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(arguments, message, table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in arguments else ["--out", "page.html"]
    assert run(["labels", "describe", str(table), *arguments, *out]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_the_labels_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "labels.html").write_text("x")
    assert run(["labels", "describe", str(tmp_path / "labels.html"), "--out", str(tmp_path / "labels.html")]) == 2
    assert "another file than those that are read" in capsys.readouterr().err
    assert (tmp_path / "labels.html").read_text() == "x"
