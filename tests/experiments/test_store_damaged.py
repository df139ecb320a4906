"""Damaged runs: they are named and left out, the others are shown, and they can be removed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from pathlib import Path

import pytest

from wcll.cli.app import run
from wcll.experiments import Store

STORED = Path(__file__).parent / "stored"
FIRST = "ba3e6282fd0b9b1219ead244"  #: the key of a run in it

LIGHT = [  # seen in settings and metrics, which is all that a list looks at
    "config = '{'",
    "config = '[]'",
    "config = x'00'",
    "config = 3",
    "metrics = '{\"accuracy\": []}'",
    "metrics = 'null'",
    "key = x'00'",
]
HEAVY = [
    "provenance = 'x'",
    "provenance = '[]'",
    "provenance = '{\"device\": [1]}'",
    "history = x'00'",
    "history = 'text'",
    "history = 3",
    f"history = x'{zlib.compress(b'[]').hex()}'",
    f"history = x'{zlib.compress(b'{}').hex()}'",
    f"history = x'{zlib.compress(b'[' * 100_000).hex()}'",
    'provenance = \'{"seconds": 1.0, "data": []}\'',
    'provenance = \'{"seconds": "long", "data": {"fingerprint": "f", "official": true}}\'',
    "config = replace(config, '\"epochs\": 4', '\"epochs\": 5')",
    "key = 'abc'",
]
every_damage = pytest.mark.parametrize("damage", LIGHT + HEAVY)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("old.toml", "old.sqlite"):
        shutil.copy(STORED / name, tmp_path / name)
    return tmp_path / "old.sqlite"


def change(path, damage):
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE runs SET {damage} WHERE key = ?", (FIRST,))
    connection.commit()
    connection.close()


def said(capsys):
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return shown.out, shown.err


def is_named(error, damage):
    assert "damaged" in error
    assert ("abc" if "abc" in damage else "x'00'" if "key" in damage else FIRST) in error.replace("b'\\x00'", "x'00'")
    assert "wcll results remove --damaged --store old.sqlite" in error


@every_damage
def test_the_others_are_shown_and_exported(store, damage, capsys):
    change(store, damage)
    assert run(["results", "--store", "old.sqlite"]) == 0
    out, error = said(capsys)
    if damage in LIGHT:
        assert "7 runs" in out
        is_named(error, damage)
    assert run(["results", "export", "others.json", "--store", "old.sqlite"]) == 0
    is_named(said(capsys)[1], damage)
    assert len(json.loads(Path("others.json").read_text())) == 7
    assert run(["results", "import", "others.json", "--store", "new.sqlite"]) == 0
    assert "7 of 7 runs were new" in said(capsys)[1]
    for command in (["--where", "seed=0"], ["--json"], ["export", "others.csv"]):
        assert run(["results", "--store", "old.sqlite", *command]) == 0
        said(capsys)


@every_damage
def test_tables_go_without(store, damage, capsys, monkeypatch):
    change(store, damage)
    for ending in ("csv", "html") if damage == HEAVY[0] else ("csv",):  # pages take a second
        assert run(["report", "old.toml", "--store", "old.sqlite", "--out", f"table.{ending}"]) == 0
        _, error = said(capsys)
        assert "7 runs" in error
        if "key" not in damage:  # else nobody knows whose it was
            is_named(error, damage)
    if "key" not in damage:
        monkeypatch.setattr("wcll.experiments.worker.run_jobs", None)  # whoever trains fails
        assert run(["run", "old.toml", "--store", "old.sqlite"]) == 0
        out, error = said(capsys)
        is_named(error, damage)
        assert "(0 of 1)" in out


@every_damage
def test_what_is_damaged_can_be_removed_and_is_trained_again(store, damage, capsys):
    change(store, damage)
    assert run(["results", "remove", "--damaged", "--dry-run", "--store", "old.sqlite"]) == 0
    assert "1 of 8 runs would be removed" in said(capsys)[1]
    assert run(["results", "remove", "--damaged", "--store", "old.sqlite"]) == 0
    assert "1 of 8 runs were removed" in said(capsys)[1]
    with Store(store) as left:
        assert len(list(left.rows())) == 7
        assert not left.damage()
    assert run(["results", "remove", "--damaged", "--store", "old.sqlite"]) == 0
    assert "0 of 7 runs were removed" in said(capsys)[1]


def test_a_removed_run_is_trained_again(store, capsys):
    assert run(["report", "old.toml", "--store", "old.sqlite", "--out", "before.csv"]) == 0
    change(store, "history = x'00'")
    assert run(["results", "remove", "--damaged", "--store", "old.sqlite"]) == 0
    assert run(["run", "old.toml", "--store", "old.sqlite"]) == 0
    assert "8 runs, 7 of them in old.sqlite" in said(capsys)[1]
    with Store(store) as again:
        assert len(list(again.rows())) == 8
    assert run(["report", "old.toml", "--store", "old.sqlite", "--out", "after.csv"]) == 0
    assert Path("after.csv").read_text() == Path("before.csv").read_text()


def test_a_history_that_unpacks_to_too_much_is_damaged(store, capsys, monkeypatch):
    monkeypatch.setattr("wcll.experiments.store.MOST", 10_000)
    connection = sqlite3.connect(store)
    connection.execute("UPDATE runs SET history = ? WHERE key = ?", (zlib.compress(b" " * 100_000), FIRST))
    connection.commit()
    connection.close()
    assert run(["report", "old.toml", "--store", "old.sqlite"]) == 0
    assert FIRST in said(capsys)[1]


def test_keys_that_are_null_are_damaged(store, capsys):
    connection = sqlite3.connect(store)
    connection.execute("INSERT INTO runs SELECT NULL, config, metrics, history, provenance, finished FROM runs LIMIT 2")
    connection.commit()
    connection.close()
    assert run(["results", "--store", "old.sqlite"]) == 0
    out, error = said(capsys)
    assert "8 runs" in out
    assert "2 damaged runs" in error
    assert run(["results", "remove", "--damaged", "--store", "old.sqlite"]) == 0
    assert "2 of 10 runs were removed" in said(capsys)[1]


@pytest.mark.parametrize("flip", range(0, 4096, 293))
def test_a_flipped_bit_locks_nobody_out(store, flip, capsys):
    """In a page of the table of runs: whatever becomes of its own runs, commands end in one line or go on."""
    raw = bytearray(store.read_bytes())
    page = raw.index(b'{"dataset"') // 4096 * 4096
    raw[page + flip] ^= 0x10
    store.write_bytes(raw)
    commands = (
        ["results"],
        ["results", "export", "others.json"],
        ["report", "old.toml"],
        ["results", "remove", "--damaged"],
    )
    for command in commands:
        assert run([*command, "--store", "old.sqlite"]) in (0, 2)
        said(capsys)
    assert Path("others.json").exists()
    assert len(json.loads(Path("others.json").read_text())) >= 1


def test_runs_that_sqlite_cannot_read_are_counted_and_the_others_kept(store, capsys):
    connection = sqlite3.connect(store)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
    connection.close()
    raw = bytearray(store.read_bytes())
    leaves = [i for i in range(len(raw) // 4096) if raw[4096 * i] == 13 and i + 1 != root and i]
    raw[4096 * leaves[1] + 3] ^= 0x80  # of a leaf in the middle, how many cells it has
    store.write_bytes(raw)
    assert run(["results", "export", "others.json", "--store", "old.sqlite"]) == 0
    assert "cannot be read" in said(capsys)[1]
    assert 0 < len(json.loads(Path("others.json").read_text())) < 8
