"""What a million runs and a billion rows would take: figures from files of results. The page itself is checked with all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.skipif(not (DOCS / "cost_model.py").exists(), reason="docs are not beside the package")


@pytest.fixture
def model(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import cost_model

    return cost_model


def test_the_writer_breaks_first(model):
    """As the guide says."""
    runner = model.Runner.measured("dask")
    for kind in model.kinds():
        most = runner.most_workers(kind)
        assert most["the writer"] < most["the scheduler"]


def test_a_million_runs_are_so_many_times_one(model, monkeypatch):
    monkeypatch.setattr(model, "kinds", lambda: [model.Kind("some", "machine", 3.6)])
    monkeypatch.setattr(model.Runner, "measured", lambda name: model.Runner(name, 2.304, 5.0, 100.0))
    text = model.parts()["cost"]
    assert "| some, machine | 3.600 s | 1,000 h | 1.00% | 360 | 1,200 |" in text
    assert "100 runs a second" in text
    assert "It makes 2.8 h for all" in text


STREAMED = """$ python benchmarks/streaming.py
1,000 rows, 7 features, groups of 10 rows: 3 MB
                        rows a s  of plain    s in all   peak MB
plain reading          1,000,000      1.00         4.3       500
pyarrow's default        500,000      0.50         8.3      9000
train, linear            100,000      0.10        44.3       600
"""


def test_a_billion_rows_are_so_many_times_those_that_were_read(model, monkeypatch, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(model.RESULTS, results)
    monkeypatch.setattr(model, "RESULTS", results)
    (results / model.STREAMING).write_text(STREAMED)
    text = model.parts()["cost"]
    assert "A billion rows of 7 features, a file of 3,000 GB" in text
    assert "| plain reading | 1,000,000 | 0.28 h | 3,000 MB/s | 500 MB |" in text
    assert "| train, linear | 100,000 | 2.8 h | 300 MB/s | 600 MB |" in text
    assert "default" not in text  # its memory grows with the file
