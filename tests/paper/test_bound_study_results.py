"""Stored results of the bounds: slopes and the counterexample, and files that are missing or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wcll
from wcll.exceptions import InputError
from wcll.paper import bound_study as sim
from wcll.paper.bound_study import COUNTEREXAMPLE, TRENDS, OrthogonalWorld, measure, read_bounds

STORED = Path(wcll.__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def measured():
    trend = sim.simulate("uniform", "finite", draws=20, sizes=(100, 1000))
    return trend, measure(OrthogonalWorld(classes=5, n=20), [0])


@pytest.fixture
def folder(tmp_path, measured):
    trend, found = measured
    contents = {TRENDS: {"trends": [trend.to_dict()]}, COUNTEREXAMPLE: {"counterexample": found.to_dict()}}
    for name, content in contents.items():
        (tmp_path / name).write_text(json.dumps({"made": {"command": name}, **content}))
    return tmp_path, trend, found


def test_what_is_read_is_what_was_measured(folder):
    path, trend, found = folder
    results = read_bounds(path)
    assert results.trends == (trend,)
    assert results.counterexample == found
    assert results.made[TRENDS] == {"command": TRENDS}
    (slope,) = results.slopes
    assert (slope.kind, slope.labels, slope.title) == ("finite", "uniform", sim.KIND_TITLES["finite"])
    assert (slope.slope, slope.low, slope.high) == (trend.slope, trend.slope_low, trend.slope_high)
    assert (slope.draws, slope.held) == (40, sum(point.held for point in trend.points))


@pytest.mark.parametrize("name", [TRENDS, COUNTEREXAMPLE])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a result file, got none; make it with: wcll bound"),
        (b'{"made"', "expected a result file of JSON"),
        (b"\xff\xfe\x00\xd8", "expected a result file of JSON"),
        (b"[]", "expected whole result files of the bounds"),
        (b"null", "expected whole result files of the bounds"),
        (b'{"made": {}}', "expected whole result files of the bounds"),
        (b'{"made": {}, "trends": [{}], "counterexample": {}}', "expected whole result files of the bounds"),
        (b'{"made": {}, "trends": 3, "counterexample": 3}', "expected whole result files of the bounds"),
    ],
)
def test_missing_and_damaged_files(folder, name, content, message):
    path = folder[0] / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_bounds(folder[0])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not (STORED / COUNTEREXAMPLE).exists(), reason="the result files are not beside the package")
def test_the_stored_slopes():
    results = read_bounds(STORED)
    for slope in results.slopes:
        assert slope.held == slope.held_printed == slope.draws == 7000
        assert (slope.as_root, slope.faster) == (slope.kind != "excess", slope.kind == "excess")
    assert results.counterexample.violated == 20
