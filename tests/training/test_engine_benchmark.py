"""The measurement of network runs, on a few small images: it runs, and its parts add up."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "networks.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the benchmarks are not beside the package")
def test_the_parts_of_a_network_run(tmp_path, capsys):
    small = {"device": "cpu", "width": 1, "images": 10, "tested": 5, "runs": 2, "epochs": 100, "measured": 2}
    arguments = [text for name, value in small.items() for text in (f"--{name}", str(value))]
    run_path(str(SCRIPT))["main"]([*arguments, "--normalise", "standard", "--out", str(tmp_path / "found.json")])
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "found.json").read_text())
    assert found["compiled"] is False
    assert len(found["units"]) == 2
    parts = found["seconds_a_run"]
    assert min(parts.values()) > 0
    always, seldom = (parts[f"evaluation, evaluate={name}"] for name in ("epochs", "checkpoints"))
    assert seldom == pytest.approx(always * 16 / 100)
    in_all = found["seconds_a_run_in_all"]
    assert in_all["checkpoints"] == pytest.approx(parts["steps"] + parts["writing"] + seldom)
    assert found["ms_per_run_step"] == pytest.approx(10 * parts["steps"])  # a step an epoch
