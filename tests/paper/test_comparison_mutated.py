"""Result files that were changed in hundreds of ways: read as they are, or refused in one line."""

from __future__ import annotations

import copy
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

import wcll
from wcll.cli.paper import print_part
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.paper import protocols as searching
from wcll.paper.comparison import read_file, read_part, write_lines

STORED = Path(__file__).parent / "stored" / "table2.json"
SEARCH = Path(wcll.__file__).parents[2] / "results" / "paper" / "search.json"
GONE = object()
VALUES = (None, "text", "", [], {}, [[]], {"a": 1}, True, -1, 0, 0.5, 1e308, -1e308, math.nan, math.inf, 10**400, GONE)


@pytest.fixture(scope="module")
def suite():
    """The one that the stored file is of."""
    whole = load_suite("table2")
    return replace(
        whole,
        trials=2,
        settings={**whole.settings, "n_majority": 60, "epochs": 8, "batch_size": 64, "dtype": "float64"},
        grid={"lr": [5e-4, 1e-2]},
        columns=whole.columns[:2],
        rows=tuple(row for row in whole.rows if row.title in ("pc", "wcll", "ordinary labels")),
    )


def places(value, path=()):
    """Every place in plain JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


def mutated(plain, rng, where):
    """The text of a file with one value replaced or gone, or cut, or with a byte changed."""
    kind = rng.random()
    if kind > 0.2:
        new, (*path, last) = copy.deepcopy(plain), rng.choice(where)
        inner = new
        for key in path:
            inner = inner[key]
        value = rng.choice(VALUES)
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value
        return json.dumps(new).encode()
    text = json.dumps(plain).encode()
    place = rng.randrange(len(text))
    return text[:place] if kind < 0.1 else text[:place] + bytes([rng.randrange(256)]) + text[place + 1 :]


def finite(part):
    """Whether all that tables are made of are numbers."""
    runs = part.runs.values()
    numbers = [x for run in runs for figures in run.figures.values() for x in (*figures.values(), *run.recalls)]
    return all(isinstance(x, int | float) and 0 <= x <= 1 for x in numbers)


def test_changed_result_files_are_read_or_refused(suite, tmp_path, capsys):
    plain, rng, path = json.loads(STORED.read_text()), random.Random(0), tmp_path / "table2.json"
    where = [place for place in places(plain) if place and place[0] != "fields"]
    refused = 0
    for number in range(400):
        path.write_bytes(mutated(plain, rng, where))
        try:
            part = read_part(path, suite)
        except InputError:
            refused += 1
            continue
        assert finite(part), f"{number}: {path.read_text()}"
        print_part(part)
    assert refused > 200


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"suite": "table2", "trials": ' + b"9" * 5000 + b"}", b"\xff", b"nul"]
)
def test_files_that_are_hardly_json(text, suite, tmp_path):
    (tmp_path / "table2.json").write_bytes(text)
    with pytest.raises(InputError, match="a file that 'wcll paper' wrote"):
        read_part(tmp_path / "table2.json", suite)


def test_a_file_that_is_to_be_replaced_may_be_damaged(tmp_path):
    for trials in ("many", None, [3], {}):
        (tmp_path / "table2.json").write_text(json.dumps({"suite": "table2", "trials": trials}))
        with pytest.raises(InputError, match=r"table2\.json"):
            write_lines(tmp_path / "table2.json", {"suite": "table2", "trials": 2}, "runs", [])
    assert read_file(tmp_path / "table2.json", "table2")["trials"] == {}


@pytest.mark.skipif(not SEARCH.exists(), reason="the result files are not beside the package")
def test_changed_files_of_the_search_are_read_or_refused(tmp_path, monkeypatch):
    """Of one way to draw labels and one size, which is quick."""
    generator, size = searching.INVERSE_SIZE, searching.SIZES[0]
    monkeypatch.setattr(searching, "check_version", lambda *_: None)
    monkeypatch.setattr(searching, "search_trials", lambda *_: [])
    monkeypatch.setattr(searching, "SIZES", (size,))
    monkeypatch.setattr(searching, "GENERATORS", {generator: searching.GENERATORS[generator]})
    plain, rng, path = json.loads(SEARCH.read_text()), random.Random(0), tmp_path / "search.json"
    plain["figures"] = [line for line in plain["figures"] if line[:2] == [generator, size]]
    where, read = [place for place in places({**plain, "figures": plain["figures"][:2]}) if place], 0
    for number in range(60):
        path.write_bytes(mutated(plain, rng, where))
        try:
            found = searching.read_search(path)
        except InputError:
            continue
        read += 1
        assert all(0 <= value <= 100 for value in found.figures.values()), number
        assert math.isfinite(found.made["seconds"])
        assert all(isinstance(found.made[name], str) for name in ("command", "device", "torch", "commit"))
    assert 0 < read < 60
