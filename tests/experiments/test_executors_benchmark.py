"""The benchmark of runners, small: units that rest, and workers that are killed on the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wcll.experiments import executors, messages, train, worker

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "runners.py").exists(), reason="the benchmarks are not beside the package"
)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(worker, "train", train.train)  # as it is afterwards, too
    import runners

    return runners


def test_no_unit_is_lost_and_none_is_there_twice_though_workers_are_killed(script):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    killed, rows, speed, writer = script.simulate("dask", 60, 1)
    assert killed == "runner dask, 60 empty units, 2 workers, 1 killed with -9 on the way"
    assert rows.startswith("rows in the store: 60, each once; units that were begun again: ")
    assert re.fullmatch(r"\d+\.\d s, \d+ units/s; store: \d\.\d MB, \d{4,5} bytes/run", speed)
    assert "the writer: writes " in writer
    assert executors.work is messages.work


def test_what_is_measured_is_what_a_worker_loses(script):
    begun = [script.resting.Begun(*one) for one in [(1, 0.0, "a"), (2, 0.5, "b"), (1, 1.1, "c"), (2, 1.7, "d")]]
    measured = script.Measured([*begun, script.resting.Begun(1, 2.2, "c")], 1.0, 3.0, 4, 1)
    assert measured.overhead(1.0) == pytest.approx(0.4 / 3)
    assert measured.again == 1
