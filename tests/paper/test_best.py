"""The paper's tables with the row of the default."""

from __future__ import annotations

import dataclasses

import pytest

from wcll.cli.app import run
from wcll.cli.paper import ALONE, PARTS
from wcll.cli.paper import SUITES as COMMANDS
from wcll.paper import best
from wcll.paper.best import with_auto
from wcll.paper.result_files import keys_of, read_part
from wcll.suites import load_suite


def small(name="table2"):
    """Two settings and two methods of a suite, in a few seconds."""
    suite = load_suite(name)
    return dataclasses.replace(
        suite,
        settings={**suite.settings, "n_majority": 60, "epochs": 8, "batch_size": 64},
        grid={"lr": [5e-4, 1e-2]} if suite.grid else {},
        columns=suite.columns[:2],
        rows=tuple(row for row in suite.rows if row.title in ("pc", "wcll")),
    )


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setitem(best.ROW, "budget", 200)
    monkeypatch.setattr("wcll.cli.paper.load_suite", small)


@pytest.mark.parametrize("name", [name for part in (*COMMANDS, *ALONE) for name in PARTS.get(part, (part,))])
def test_every_table_can_have_the_row(name):
    """One run a setting and trial, whatever is tried of the others; their keys stay."""
    suite = load_suite(name)
    more = with_auto(suite)
    assert more.rows[:-1] == suite.rows
    keys = keys_of(suite, 2)
    new = [trial for trial in more.all_trials(range(2)) if trial.key not in set(keys)]
    assert all(trial.auto for trial in new)
    assert len({trial.key for trial in new}) == 2 * len(suite.columns)
    assert set(keys) < set(keys_of(more, 2))


def test_the_command_adds_the_row(small_mnist, tmp_path, capsys, quick):
    options = ["--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1", "--trials", "1"]
    assert run(["paper", "table2", "--only", "mnist", *options]) == 0
    before = capsys.readouterr().out
    assert "auto" not in before
    assert run(["paper", "table2", "--only", "mnist", "--protocol", "best", "--results", str(tmp_path), *options]) == 0
    shown = capsys.readouterr()
    assert "10 runs, 8 of them in" in shown.err  # the same store: only what is new is trained
    lines = [line.split() for line in shown.out.splitlines() if line.startswith("auto ")]
    assert len(lines) == 2  # by the paper's protocol, and by the fair one
    assert lines[0] == lines[1]
    assert all(0 < float(figure) < 100 for figure in lines[0][1:])
    assert "is told nothing, and chooses Q, rate and epoch" in shown.out
    others = [line for line in before.splitlines() if line.startswith(("PC", "WCLL"))]
    assert [line.replace("°", "") for line in shown.out.splitlines() if line.startswith(("PC", "WCLL"))] == [
        line.replace("°", "") for line in others
    ]
    part = read_part(tmp_path / "table2-best.json", with_auto(small()))
    assert part.methods[-1] == "auto"
    assert part.made["command"] == "wcll paper table2 --protocol best --trials 1"
    assert not (tmp_path / "table2.json").exists()


def test_the_row_is_in_figure_3_and_its_file_too(small_mnist, tmp_path, capsys, quick):
    options = ["--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1", "--trials", "1"]
    assert run(["paper", "figure3", "--protocol", "best", "--results", str(tmp_path), *options]) == 0
    assert "auto " in capsys.readouterr().out
    kept = read_part(tmp_path / "figure3-best.json", with_auto(small("figure3")))
    assert sorted({len(one.recalls) for one in kept.runs.values()}) == [1, 8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["table2", "--protocol", "bets"],
            "--protocol: expected one of 'paper', 'best', got 'bets'; did you mean 'best'",
        ),
        (["search", "--protocol", "best"], "--protocol: expected 'paper' but for single tables and all, got 'best'"),
        (["images", "--protocol", "best"], "--protocol: expected 'paper' but for single tables and all"),
        (["protocols", "--protocol", "best"], "--protocol: expected 'paper' but for single tables and all"),
    ],
)
def test_bad_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
