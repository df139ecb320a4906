"""``wcll results remove``: something must be chosen, what is chosen goes, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wcll.cli.app import run
from wcll.experiments import Store
from wcll.experiments.store import sole_writer

STORED = Path(__file__).parents[1] / "experiments" / "stored"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("old.toml", "old.sqlite"):
        shutil.copy(STORED / name, tmp_path / name)


def left():
    with Store(Path("old.sqlite")) as store:
        return [row.config for row in store.rows()]


def remove(*options):
    return run(["results", "remove", "--store", "old.sqlite", *options])


def test_by_value(capsys):
    assert remove("--where", "loss=wcll", "--where", "lr=1e-3", "--dry-run") == 0
    assert "2 of 8 runs would be removed from old.sqlite" in capsys.readouterr().err
    assert len(left()) == 8
    assert remove("--where", "loss=wcll", "--where", "lr=1e-3") == 0
    assert "2 of 8 runs were removed from old.sqlite" in capsys.readouterr().err
    assert len(left()) == 6
    assert not [config for config in left() if config["loss"] == "wcll" and config["lr"] == 1e-3]
    assert run(["results", "--store", "old.sqlite", "--where", "loss=wcll", "remove"]) == 0
    assert {config["loss"] for config in left()} == {"forward"}


def test_everything(capsys):
    assert remove("--all") == 0
    assert "8 of 8 runs were removed" in capsys.readouterr().err
    assert left() == []
    assert remove("--all") == 0
    assert "0 of 0 runs were removed" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--all", "--damaged"], ["--all", "--where", "loss=wcll"]])
def test_exactly_one_choice(options, capsys):
    assert remove(*options) == 2
    error = capsys.readouterr().err
    assert "one of --where, --damaged and --all" in error
    assert error.count("\n") == 1
    assert len(left()) == 8


def test_values_that_nobody_has_and_names_that_nobody_knows(capsys):
    assert remove("--where", "loss=none") == 0
    assert "0 of 8 runs were removed" in capsys.readouterr().err
    assert remove("--where", "los=wcll") == 2
    assert "did you mean 'loss'?" in capsys.readouterr().err
    assert remove("--where", "loss") == 2
    assert len(left()) == 8
    assert run(["results", "remove", "--all", "--store", "none.sqlite"]) == 2
    assert "which does not exist" in capsys.readouterr().err


def test_nothing_is_removed_while_another_command_writes(capsys):
    with sole_writer(Path("old.sqlite")):
        assert remove("--all") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(
            "wcll: error: --store: expected a store that no other command is writing to, got old.sqlite"
        )
        assert remove("--all", "--dry-run") == 0
        assert len(left()) == 8  # reading is free
    assert remove("--all") == 0


def test_the_paper_says_what_is_missing(monkeypatch, capsys):
    """Of runs that are damaged, or were removed meanwhile, no number can be made."""
    monkeypatch.setattr("wcll.cli.paper.train_with_progress", lambda *given: {"k": None})
    for command in (["table2"], ["search"]):
        assert run(["paper", "run", *command, "--trials", "1", "--store", "new.sqlite"]) == 2
        error = capsys.readouterr().err
        assert "missing" in error
        assert error.count("\n") == 1
