"""Lists and filters: SQLite does the work, numbers are numbers, and no history is read for it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from small import finished, trial
from wcll.cli.app import run
from wcll.experiments import Store

STORED = Path(__file__).parent / "stored"

RUNS = [
    finished(trial(seed=0, lr=5e-4), 3),
    finished(trial(seed=1, lr=0.1 + 0.2, minority=[0, 1]), 4),
    finished(trial(seed=2, loss="pc", weights="none"), 5),
    finished(trial(seed=3, dataset='it\'s "ü" 100 %'), 6),
    finished(trial(seed=10, imbalance="none", minority=None, p=None), 10),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("where") / "s.sqlite"
    with Store(path) as one:
        one.add(RUNS)
    return path


@pytest.mark.parametrize(
    ("where", "seeds"),
    [
        (["lr=5e-4"], [0]),
        (["lr=0.00050"], [0]),
        ([f"lr={0.1 + 0.2!r}"], [1]),
        (["lr=0.3"], [1]),  # but for rounding
        (["lr=0.3000000001"], []),
        (["seed=1"], [1]),
        (["seed=1.0"], [1]),
        (["seed=01"], [1]),
        (["seed=one"], []),
        (["seed=nan"], []),
        (["p=2", "loss=wcll"], [0, 1, 3]),
        (["p=2", "loss=wcll", "seed=3"], [3]),
        (["loss=pc"], [2]),
        (["loss=pc", "loss=wcll"], []),
        (["loss=' OR 1 --"], []),
        (["minority=[0, 1]"], [1]),
        (["minority=[0,1]"], [1]),
        (["loss_options={}"], [2]),
        (["accuracy=0.4"], [1]),
        (["accuracy=1"], [10]),
        (["seconds=1"], [0, 1, 2, 3, 10]),
        (['dataset=it\'s "ü" 100 %'], [3]),
        ([f"key={RUNS[2].key}"], [2]),
        (["noise=0"], [0, 1, 2, 3, 10]),
        (["noise="], []),
        (["loss=\udcff"], []),  # bytes that are no UTF-8, as the command line hands them on
        ([], [0, 1, 2, 3, 10]),
    ],
    ids=str,
)
def test_what_is_found(store, where, seeds):
    with Store(store) as one:
        assert [line["seed"] for line in one.figures(where)] == seeds
        assert [cells[1] for cells in one.table(["seed"], where)] == seeds
        assert [row.config["seed"] for row in one.rows(where=where)] == seeds


@pytest.mark.parametrize("where", ["los=wcll", 'a"b=3', "$.loss=wcll", "loss.x=3", "data=3", "=3", "\udcff=3"])
def test_names_that_no_run_has(store, where, capsys):
    for command in ([], ["--json"], ["export", "x.csv"]):
        assert run(["results", "--store", str(store), "--where", where, *command]) == 2
        shown = capsys.readouterr()
        assert "--where: expected one of 'accuracy'" in shown.err
        assert shown.out == ""


LISTS = """
import sys
from wcll.cli.app import run
assert run(["results", "--store", "old.sqlite", *sys.argv[1:]]) == 0
print("torch" in sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("command", [[], ["--where", "lr=1e-2"], ["--json"], ["export", "x.csv"]], ids=str)
def test_lists_read_no_histories_and_need_no_torch(tmp_path, command):
    shutil.copy(STORED / "old.sqlite", tmp_path)
    connection = sqlite3.connect(tmp_path / "old.sqlite")
    connection.execute("UPDATE runs SET history = 'not read'")
    connection.commit()
    connection.close()
    child = [sys.executable, "-c", LISTS, *command]
    done = subprocess.run(child, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "False"


def test_lists_are_the_same_read_fast_or_one_by_one(store, tmp_path, capsys):
    """A damaged run beside them changes how the others are read, and nothing else."""
    assert run(["results", "--store", str(store)]) == 0
    before = capsys.readouterr().out
    shutil.copy(store, tmp_path / "s.sqlite")
    with Store(tmp_path / "s.sqlite") as one:
        one.connection.execute("INSERT INTO runs VALUES ('k', '{', '{}', x'', '{}', 0)")
    assert run(["results", "--store", str(tmp_path / "s.sqlite")]) == 0
    shown = capsys.readouterr()
    assert shown.out == before
    assert "1 damaged run is left out: k (" in shown.err


def test_figures_as_json(store, capsys):
    assert run(["results", "--store", str(store), "--json"]) == 0
    assert [line["key"] for line in json.loads(capsys.readouterr().out)] == [row.key for row in RUNS]
    assert run(["results", "--store", str(store), "--json", "--where", "loss=none"]) == 0
    assert json.loads(capsys.readouterr().out) == []
