"""The demonstration, and the page of a suite in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess

import pytest
import torch

from wcll.cli.app import run
from wcll.experiments import load_suite
from wcll.experiments.execute import run_suite
from wcll.report.suite_page import suite_page
from wcll.report.tables import build_table

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    monkeypatch.setattr("wcll.experiments.load_suite", shortened)
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


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desktop"])
def test_page_in_a_browser(page, width, dark, tmp_path):
    """Nothing sticks out sideways, text is readable against its background, every figure is drawn."""
    probe = """<script>addEventListener("load", () => {
      const panels = [...document.querySelectorAll(".panels svg")].map(s => s.getBoundingClientRect());
      const luminance = c => { const [r, g, b] = c.match(/\\d+/g).map(Number); return 0.3 * r + 0.6 * g + 0.1 * b; };
      const style = getComputedStyle(document.body);
      const cells = [...document.querySelectorAll("td")].map(c => c.getBoundingClientRect().right);
      parent.postMessage(JSON.stringify({
        inner: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
        drawn: panels.filter(p => p.width > 100 && p.height > 50).length,
        ink: luminance(style.color), paper: luminance(style.backgroundColor), cells: Math.max(...cells)}), "*")});</script>"""
    (tmp_path / "probe.html").write_text(page.read_text().replace("</body>", probe + "</body>"))
    frame = tmp_path / "frame.html"  # a window is never as narrow as a phone, a frame may be
    frame.write_text(
        '<meta name="color-scheme" content="light dark"><script>onmessage = e => { document.title = e.data; }</script>'
        f'<iframe src="probe.html" width="{width}" height="800" style="border:0"></iframe>'
    )
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--disable-quic", "--hide-scrollbars"),
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1400,900",
        "--virtual-time-budget=5000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
    ]
    dom = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    seen = json.loads(re.search(r"<title>(.*?)</title>", dom).group(1))
    assert seen["inner"] == width
    assert seen["overflow"] <= 0
    assert seen["cells"] <= seen["inner"]
    assert seen["drawn"] == 3 * 12
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150
