"""The demonstration, and the page of a suite in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
import torch

from browser import look_at, needs_browser
from small import finished, run_suite
from wcll.cli.app import run
from wcll.experiments import load_suite
from wcll.report.result_tables import build_table, finding
from wcll.report.suite_report import NEXT, Example, demo_page, suite_page

PAPER = ["PC", "NN", "FREE", "LOG", "EXP", "L-W", "L-UW", "NCLL", "ML-CLL", "WCLL"]


def shortened(name="demo"):
    suite = load_suite(name)
    auto, *others = suite.rows
    rows = (dataclasses.replace(auto, settings={**auto.settings, "budget": 300}), *others)
    return dataclasses.replace(suite, settings={**suite.settings, "epochs": 3}, rows=rows)


EXAMPLES = [Example(np.eye(8) * k / 9, str(k)) for k in range(10)]


@pytest.fixture(scope="module")
def rows():
    return run_suite(shortened(), range(2), torch.device("cpu"))


@pytest.fixture(scope="module")
def page(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "page.html"
    path.write_text(demo_page(shortened(), rows, range(2), "wcll demo --trials 2", EXAMPLES))
    return path


def test_the_default_ten_methods_of_the_paper_one_more_and_the_limit(rows):
    suite = shortened()
    table = build_table(suite, suite.tables[0], rows, range(2))
    assert table.lines[0].title == "auto (the default)"
    assert [line.title for line in table.lines[1:11]] == PAPER
    assert len(table.lines) == 13
    assert [line.limit for line in table.lines] == [False] * 12 + [True]
    assert table.complete
    accuracy = [line.cells[0].mean for line in table.lines]
    assert max(accuracy) == accuracy[-1]


def test_the_demo_is_a_function_of_its_seed(rows):
    again = run_suite(shortened(), range(1), torch.device("cpu"))
    assert all(row.history["correct"] == rows[key].history["correct"] for key, row in again.items())


def test_command_writes_the_page_and_prints_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.experiments.load_suite", shortened)
    out = tmp_path / "report.html"
    assert run(["demo", "--json", "--trials", "1", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["made"]["seeds"] == [0]
    assert len(data["lines"]) == 13
    assert "s left" in captured.err
    text = out.read_text()
    assert "</html>" in text
    assert text.count("data:image/png") == 12
    assert run(["demo", "--trials", "1", "--out", str(out), "--force"]) == 0
    shown = capsys.readouterr().out
    assert "minority recall %" in shown
    assert str(out) in shown.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "--trials"),
        (["--out", "/no/such/folder/x.html"], "--out: expected a folder that can be written, got /no/such/folder"),
        (["--out", "/"], "--out: expected a file, got /, which is a folder"),
    ],
)
def test_bad_input_fails_before_any_training(arguments, message, capsys):
    assert run(["demo", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desktop"])
def test_page_in_a_browser(page, width, dark, tmp_path):
    """Nothing sticks out sideways, text is readable against its background, every figure is drawn."""
    seen = look_at(page, width, dark, tmp_path)
    assert seen["inner"] == width
    assert seen["overflow"] <= 0
    assert seen["cells"] <= seen["inner"]
    assert seen["drawn"] == 3 * 13 - 1  # the default has no curve: it is one result
    assert seen["images"] == len(EXAMPLES)
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150


# What the page says


def test_what_is_found_comes_from_the_numbers(rows):
    suite = shortened()
    table = build_table(suite, suite.tables[0], rows, range(2))
    own, *others, limit = (line.cells[0].mean for line in table.lines)
    said = finding(suite, table)
    assert f"auto (the default) reaches {100 * own:.1f} % accuracy" in said
    points = [float(points) for points in re.findall(r"([\d.]+) points", said)]
    assert points == pytest.approx([100 * abs(max(others) - own), 100 * (limit - own)], abs=0.11)
    assert said.count(".") - len(re.findall(r"\d\.\d", said)) == 1  # one sentence
    assert f"{'above' if own > max(others) else 'below'} the best of the other methods" in said


@pytest.mark.parametrize(
    ("correct", "said"),
    [
        (
            [8, 6, 9],
            ": 20.0 points above the best of the other methods (PC) and 10.0 points below Ordinary labels (limit).",
        ),
        ([5, 6, 9], ": 10.0 points below the best of the other methods (PC) and 40.0 points below"),
        ([6, 6, 9], ": as much as the best of the other methods (PC) and 30.0 points below"),
    ],
)
def test_what_is_found_may_be_good_or_bad(correct, said):
    full = shortened()
    suite = dataclasses.replace(full, rows=tuple(full.rows[i] for i in (0, 1, -1)))
    runs = {
        trial.key: finished(trial, correct[i])
        for i, row in enumerate(suite.rows)
        for seed in range(3)
        for trial in suite.candidates(suite.columns[0], row, seed)
    }
    table = build_table(suite, suite.tables[0], runs, range(3))
    assert said in finding(suite, table).replace(", which may be chance,", "")


def test_what_others_are_told_is_said(rows):
    full = shortened()
    forward = next(row for row in full.rows if "Forward" in row.title)
    suite = dataclasses.replace(full, rows=(full.rows[0], forward))
    said = finding(suite, build_table(suite, suite.tables[0], rows, range(2)))
    assert "(Forward, Q from counts, told the selector's family)" in said
    others = dataclasses.replace(full, rows=full.rows[1:])
    assert "has the highest accuracy of 11 methods" in finding(
        others, build_table(others, full.tables[0], rows, range(2))
    )


def test_page_says_what_is_found_shows_labels_and_ends_with_your_data(page, rows):
    text = page.read_text()
    said = finding(shortened(), build_table(shortened(), shortened().tables[0], rows, range(2)))
    plain = text.replace("&#39;", "'")
    assert said in plain
    assert all(f"not {k}</li>" in text for k in range(10))
    heads = re.findall(r"<h2>(.*?)</h2>", text)
    assert heads[0] == "What is learnt from"
    assert heads[-1] == "Now with your data"
    assert "Now with your data" not in suite_page(shortened(), rows, range(2), "x")


def test_the_lines_for_your_data_work(capsys):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(k, 0.3, (40, 2)) for k in (0, 2, 4)])
    y = np.repeat(np.arange(3), 40)
    given = {"X": X, "not_y": np.array(["a", "b", "c"])[(y + rng.integers(1, 3, 120)) % 3], "X_new": X}
    exec(NEXT.replace("ComplementaryClassifier()", "ComplementaryClassifier(model='linear', budget=2000)"), given)
    assert set(given["predicted"]) <= {"a", "b", "c"}
    assert "held-out" in capsys.readouterr().out


def test_pictures_are_what_they_show():
    image = pytest.importorskip("PIL.Image")
    ink = np.arange(6).reshape(2, 3) / 5
    source = Example(ink, "3").source
    shown = image.open(BytesIO(b64decode(source.partition(",")[2])))
    np.testing.assert_array_equal(np.asarray(shown), np.rint(255 * (1 - ink)))
