"""The demonstration: its figures, its page, and the page in a real browser."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

from wcll.cli.app import run
from wcll.demo import (
    LIMIT,
    METHODS,
    PAPER_METHODS,
    DemoSettings,
    Training,
    best_methods,
    demo_page,
    make_task,
    run_demo,
)

SMALL = DemoSettings(trials=2, epochs=3)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def result():
    return run_demo(SMALL)


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "page.html"
    path.write_text(demo_page(result, "wcll demo --trials 2"))
    return path


def test_ten_methods_of_the_paper_and_the_limit(result):
    assert len(PAPER_METHODS) == 10
    rows = result.summary()
    assert [row["method"] for row in rows] == [*METHODS, LIMIT]
    assert all(row["trials"] == 2 for row in rows)
    for row in rows:
        assert 0 <= row["accuracy"]["mean"] <= 1
        assert row["accuracy"]["std"] == pytest.approx(np.std(row["accuracy"]["values"], ddof=1))
        assert row["minority_recall"]["mean"] == pytest.approx(np.mean([row["recall"][k] for k in SMALL.minority]))
    assert LIMIT not in best_methods(rows).values()
    assert rows[-1]["accuracy"]["mean"] == max(row["accuracy"]["mean"] for row in rows)
    json.dumps(result.to_dict())


def test_the_task_is_imbalanced_and_labels_are_wrong_classes():
    task = make_task(SMALL, seed=0)
    sizes = np.bincount(task.limit.labels)
    assert sizes[[0, 1]].tolist() == [26, 26]
    assert sizes[2:].min() > 115
    assert (task.weak.labels != task.limit.labels).all()
    assert torch.equal(task.weak.x, task.limit.x)
    assert len(task.test.y) == 449
    assert [field.name for field in dataclasses.fields(Training)] == ["x", "labels"]


def test_the_demo_is_a_function_of_its_seed(result):
    again = run_demo(SMALL)
    assert all(np.array_equal(a.confusions, b.confusions) for a, b in zip(result.results, again.results, strict=True))


def test_page_is_self_contained(page):
    text = page.read_text()
    assert not re.search(r"(src|href)=[\"'](?!#)", text)
    assert "url(" not in text
    assert text.count("<svg") == 2 * (len(METHODS) + 1) + 1
    assert all(title in text for title in ("WCLL", "L-UW", "Ordinary labels (limit)", "wcll demo --trials 2"))


def test_command_writes_the_page_and_prints_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.demo.DemoSettings", lambda **given: dataclasses.replace(SMALL, **given))
    out = tmp_path / "report.html"
    assert run(["demo", "--json", "--trials", "1", "--seed", "3", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["settings"]["seed"] == 3
    assert len(data["rows"]) == 12
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
    assert seen["drawn"] == 2 * (len(METHODS) + 1)
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150
