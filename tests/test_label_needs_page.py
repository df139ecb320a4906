"""The page on how many labels are needed: it says what the result file says, and its calculator works."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import CHROMIUM, needs_browser

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "docs" / "label_needs_page.py"
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="docs/ is not beside the package")


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("label_needs_page")
    sys.path.remove(str(ROOT / "docs"))


def test_the_page_is_up_to_date(made):
    stale = [path.name for path, text in made.pages().items() if not path.exists() or path.read_text() != text]
    assert not stale, "run python docs/label_needs_page.py"


def test_every_simulated_number_is_on_the_page(made):
    text = made.page()
    for row in json.loads(made.RESULTS.read_text())["rows"]:
        assert made.cell(row) in text


def test_labels_for_an_accuracy_lie_between_simulated_ones(made):
    rows = [{"labels": 100, "accuracy": [40.0, 1]}, {"labels": 10_000, "accuracy": [60.0, 1]}]
    assert made.labels_for(rows, 50.0) == pytest.approx(1000)  # half way, by the logarithm
    assert made.labels_for(rows, 30.0) == 100
    assert made.labels_for(rows, 61.0) is None
    dip = [*rows[:1], {"labels": 1000, "accuracy": [39.0, 1]}, {"labels": 10_000, "accuracy": [60.0, 1]}]
    assert 100 < made.labels_for(dip, 50.0) < 10_000


def test_nothing_is_fetched_and_controls_have_labels(made):
    form = made.calculator()
    assert not re.search(r"https?://|@import|src=", form)
    fields = set(re.findall(r'<(?:input|select) id="([^"]+)"', form))
    assert fields == set(re.findall(r'<label for="([^"]+)"', form))
    assert len(fields) == 8
    assert "<noscript>" in form


@needs_browser
def test_the_calculator_says_what_was_simulated(made, tmp_path):
    """Where nothing has to be interpolated it shows the simulated mean; beyond that it refuses."""
    asks = """<script>
      const set = values => Object.entries(values).forEach(([name, value]) => document.getElementById("ln-" + name).value = value);
      const said = () => { document.getElementById("label-needs").dispatchEvent(new Event("input")); return document.getElementById("ln-found").innerText; };
      set({limit: 90, k: 10, p: 1, bias: "biased", told: "true Q", per: 1, labels: 10000, goal: 85});
      const first = said();
      set({limit: 95}); const beyond = said();
      set({limit: 90, k: 3, labels: 50}); const few = said();
      document.title = JSON.stringify([first, beyond, few]);
    </script>"""
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{made.calculator()}{asks}</body>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
    run = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=600, check=True
    )
    first, beyond, few = json.loads(re.search(r"<title>(.*?)</title>", run.stdout, flags=re.DOTALL).group(1))
    mean = next(row for row in made.curves()[90, 10, 1, "biased", 1, "true Q"] if row["labels"] == 10_000)["accuracy"][
        0
    ]
    needed = made.labels_for(made.curves()[90, 10, 1, "biased", 1, "true Q"], 85)
    assert f"10,000 complementary labels: about {mean:.0f} %" in first
    assert f"For 85 %: about {made.rounded(needed, 30_000)} complementary labels" in first
    assert "not a promise" in first
    assert "must be from 70 to 90" in beyond
    assert "must be from 100 to 30000" in few
