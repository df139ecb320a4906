"""Protocols that are run in full beside that of the tables."""

from __future__ import annotations

import dataclasses

import pytest

from wcll.cli.app import run
from wcll.paper import protocols
from wcll.paper.comparison import read_part
from wcll.paper.protocols import CHOSEN, GENERATORS, N_PROTOCOLS, NAMED, named_suite


def test_there_is_one_for_each_way_to_draw_labels():
    assert {one.generator for one in (CHOSEN, *NAMED.values())} == set(GENERATORS)
    assert N_PROTOCOLS == len(GENERATORS) == 5


@pytest.fixture(scope="module")
def searched():
    """The keys of the search's first trials."""
    return {trial.key for trial in protocols.search_trials(protocols.base_suite(), 1)}


@pytest.mark.parametrize("name", NAMED)
def test_its_runs_are_those_of_the_search_and_more(name, searched):
    """The same data, rate and formula: the search's trials are among them, so that a store has to train them once."""
    suite, protocol = named_suite(name), NAMED[name]
    assert [column.title for column in suite.columns] == [
        c.title for c in protocols.main_columns(protocols.base_suite())
    ]
    assert len(suite.columns) == 11
    for row in suite.rows:
        for column in suite.columns:
            (trial,) = suite.candidates(column, row, 0)
            assert (trial.lr, trial.n_majority, trial.validation) == (protocol.lr, protocol.size, 0)
            if row.title in ("wcll", *protocols.base_suite().rows) or row.title in ("pc", "nn", "free", "log", "l-w"):
                assert trial.key in searched
            if trial.loss == "wcll":
                reading = dict(trial.loss_options).get("reading", "algorithm1")
                assert f"{reading}, {trial.pi} pi" in protocol.loss


def test_the_command_writes_one_protocol_after_the_other(tmp_path, capsys, monkeypatch):
    """On digits, with two methods: files come back, also where the last was not reached."""
    names = list(NAMED)[:2]

    def small(name):
        suite = named_suite(name)
        rows = tuple(row for row in suite.rows if row.title in ("pc", "wcll"))
        settings = {**suite.settings, "dataset": "digits", "n_majority": 40, "epochs": 2, "batch_size": 64}
        return dataclasses.replace(suite, rows=rows, columns=suite.columns[:1], settings=settings)

    monkeypatch.setattr("wcll.cli.paper.named_suite", small)
    monkeypatch.setattr("wcll.cli.paper.NAMED", {name: NAMED[name] for name in names})
    options = ["--trials", "2", "--store", str(tmp_path / "s.sqlite"), "--processes", "1", "--results", str(tmp_path)]
    assert run(["paper", "run", "protocols", *options]) == 0
    for name in names:
        part = read_part(tmp_path / f"{name}.json", small(name))
        assert len(part.cell("paper", "wcll", part.columns[0], "minority_recall").values) == 2
        assert part.made["command"] == "wcll paper run protocols --trials 2"
    assert run(["paper", "run", "protocols", *options]) == 0
    assert capsys.readouterr().err.count("nothing is left to do") == 2
