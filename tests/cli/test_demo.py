"""The demonstration, and the page of a suite in a real browser."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from browser import look_at, needs_browser
from small import run_suite
from wcll.cli.app import run
from wcll.report.suite_page import suite_page
from wcll.report.tables import build_table
from wcll.suites import load_suite

PAPER = ["PC", "NN", "FREE", "LOG", "EXP", "L-W", "L-UW", "NCLL", "ML-CLL", "WCLL"]


def shortened(name="demo"):
    suite = load_suite(name)
    return dataclasses.replace(suite, settings={**suite.settings, "epochs": 3})


@pytest.fixture(scope="module")
def rows():
    return run_suite(shortened(), range(2), torch.device("cpu"))


@pytest.fixture(scope="module")
def page(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "page.html"
    path.write_text(suite_page(shortened(), rows, range(2), "wcll demo --trials 2"))
    return path


def test_ten_methods_of_the_paper_one_more_and_the_limit(rows):
    suite = shortened()
    table = build_table(suite, suite.tables[0], rows, range(2))
    assert [line.title for line in table.lines[:10]] == PAPER
    assert len(table.lines) == 12
    assert [line.limit for line in table.lines] == [False] * 11 + [True]
    assert table.complete
    accuracy = [line.cells[0].mean for line in table.lines]
    assert max(accuracy) == accuracy[-1]


def test_the_demo_is_a_function_of_its_seed(rows):
    again = run_suite(shortened(), range(1), torch.device("cpu"))
    assert all(row.history["correct"] == rows[key].history["correct"] for key, row in again.items())


def test_command_writes_the_page_and_prints_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.demo.load_suite", shortened)
    out = tmp_path / "report.html"
    assert run(["demo", "--json", "--trials", "1", "--seed", "3", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["made"]["seeds"] == [3]
    assert len(data["lines"]) == 12
    assert "s left" in captured.err
    assert "</html>" in out.read_text()
    assert run(["demo", "--trials", "1", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "minority recall %" in shown
    assert str(out) in shown.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trials", "0"], "--trials"),
        (["--seed", "-1"], "--seed"),
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
    assert seen["drawn"] == 3 * 12
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150
