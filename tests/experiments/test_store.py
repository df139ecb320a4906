"""The store: its one writer, schemas, and files that are not stores."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from small import LINEAR, MAIN, PATIENCE, finished, start, trial
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.experiments import Store, store
from wcll.experiments.store import sole_writer

RUNS = {name: trial(seed=seed) for seed, name in enumerate("abcdefgh")}
KEYS = [RUNS[name].key for name in "abc"]
A, B, C = KEYS


def row(name, correct=5):
    return finished(RUNS[name], correct)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def test_rows_come_back_as_they_were(path):
    with Store(path) as one:
        assert one.add([row("a"), row("b", 2)]) == 2
        assert one.add([row("a", 7)]) == 0  # what is there stays
        assert one.finished(KEYS) == {A, B}
    with Store(path) as again:
        assert [r.to_dict() for r in again.rows()] == [row("a").to_dict(), row("b", 2).to_dict()]
        assert [r.key for r in again.rows([B, "zz", A])] == [B, A]
        assert again.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


#: Holds the right to write until it is killed.
HOLDS = """
import sys, time
from pathlib import Path
from wcll.experiments.store import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("holds", file=sys.stderr, flush=True)
    time.sleep(600)
"""


def test_a_second_writer_is_refused_until_the_first_is_gone(path, tmp_path):
    """However it ends, and under whatever name the store is known."""
    child = start(HOLDS, str(path))
    assert child.stderr.readline() == "holds\n"
    (tmp_path / "link.sqlite").symlink_to(path)
    for name in (path, tmp_path / "link.sqlite"):
        with pytest.raises(
            InputError, match=r"expected a store that no other command is writing to, got .*; wait for it"
        ):
            sole_writer(name).__enter__()
    with Store(path) as one:
        assert list(one.rows()) == []  # reading is free
    child.kill()
    child.communicate()
    with sole_writer(path):
        with pytest.raises(InputError, match="expected a store that no other command"):
            sole_writer(path).__enter__()  # in this process, too
        with ThreadPoolExecutor(1) as thread, pytest.raises(InputError, match="expected a store that no other command"):
            thread.submit(sole_writer(path).__enter__).result()
    with sole_writer(path):
        pass


@pytest.fixture
def full_disk():
    """No file may grow beyond less than SQLite's notes take: every write fails, as it does on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_store_on_a_full_disk_can_be_read(path, request):
    with Store(path) as one:
        one.add([row("a"), row("b")])
    request.getfixturevalue("full_disk")
    with Store(path, create=False) as one:
        assert [r.key for r in one.rows()] == [A, B]
        with pytest.raises(InputError, match=r"that can be written, got .* \(attempt to write a readonly database"):
            one.add([row("c")])
    with pytest.raises(InputError, match=r"a file that can be written, got .* \(disk I/O error\); free space"):
        Store(path)


def test_many_may_make_the_store_at_once(tmp_path):
    def make(i):
        for turn in range(12):
            with Store(tmp_path / f"{turn}.sqlite") as one:
                one.add([row("abcdef"[i])])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(make, range(6)))
    for turn in range(12):
        with Store(tmp_path / f"{turn}.sqlite") as one:
            assert one.finished([RUNS[name].key for name in "abcdef"]) == {RUNS[name].key for name in "abcdef"}


def test_a_store_that_vanishes_is_an_error_not_a_loss_in_silence(path):
    with Store(path) as one:
        path.unlink()
        with pytest.raises(InputError, match="to stay where it is, got another or none"):
            one.add([row("a")])


def test_memory_is_a_file_name_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store(Path(":memory:")) as one:
        one.add([row("a")])
    with Store(Path(":memory:"), create=False) as one:
        assert one.finished([A]) == {A}


def test_an_older_schema_is_brought_up_to_date(path, monkeypatch):
    with Store(path) as one:
        one.add([row("a")])
    added = (*store.MIGRATIONS, "ALTER TABLE runs ADD COLUMN note TEXT; CREATE INDEX by_time ON runs (finished)")
    monkeypatch.setattr(store, "MIGRATIONS", added)
    with Store(path) as one:
        assert one.connection.execute("PRAGMA user_version").fetchone()[0] == 2
        assert [r.key for r in one.rows()] == [A]
    monkeypatch.undo()
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"expected a store of schema 1 or older, got .* of schema 2; update wcll"):
        Store(path)
    assert path.read_bytes() == before


def foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.write_text("not a database, by any means" * 50), "which is not one (file is not a database)"),
        (foreign, "a database of something else"),
        (lambda p: p.mkdir(), "--store: expected a file, got"),
    ],
    ids=["text", "foreign", "folder"],
)
@pytest.mark.parametrize("command", [["run", "digits"], ["results"]], ids=["run", "results"])
def test_files_that_are_not_stores_are_left_alone(make, message, command, path, capsys):
    make(path)
    before = path.read_bytes() if path.is_file() else None
    assert run([*command, "--store", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error or "unable to open" in error
    assert error.count("\n") == 1
    assert before is None or path.read_bytes() == before


def test_places_where_no_store_can_be(tmp_path, capsys):
    assert run(["run", "digits", "--store", str(tmp_path / "no" / "x.sqlite")]) == 2
    assert "--store: expected a folder that can be written" in capsys.readouterr().err
    assert run(["results", "--store", str(tmp_path / "x.sqlite")]) == 2
    assert "which does not exist; run a suite first" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert run(["run", "digits", "--store", str(tmp_path / "x.sqlite")]) == 2
    assert "--store: expected a folder that can be written" in capsys.readouterr().err


def test_a_full_disk_loses_nothing(tmp_path, path):
    """Files may not grow past a few pages, as on a disk without space: one line, and the store as it was."""
    suite = tmp_path / "small.toml"
    suite.write_text(LINEAR)
    with Store(path) as one:
        one.add([row("a")])
    shutil.copy(path, tmp_path / "before.sqlite")

    def no_space():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (32_000, 32_000))

    child = start(MAIN, "run", str(suite), "--store", str(path), "--trials", "1", preexec_fn=no_space)
    _, error = child.communicate(timeout=PATIENCE)
    assert child.returncode == 2, error
    last = error.strip().splitlines()[-1]
    assert "--store: expected a file that can be written" in last
    assert "free space" in last
    assert "Traceback" not in error
    with Store(path) as one:
        assert one.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert [r.to_dict() for r in one.rows()] == [row("a").to_dict()]


STORED = (
    Path(__file__).parent / "stored"
)  #: what version 0.1.0 wrote before beliefs had names: a suite, its store and table


def test_a_store_of_an_earlier_version_opens_and_is_finished_without_training(tmp_path, monkeypatch, capsys):
    for name in ("old.toml", "old.sqlite"):
        shutil.copy(STORED / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wcll.experiments.worker.run_jobs", None)  # whoever trains fails
    assert run(["run", "old.toml", "--store", "old.sqlite"]) == 0
    assert "all 8 runs are in old.sqlite; nothing is left to do" in capsys.readouterr().err
    assert run(["report", "old.toml", "--store", "old.sqlite", "--out", "new.csv"]) == 0
    assert Path("new.csv").read_text() == (STORED / "old.csv").read_text()
    with Store(Path("old.sqlite")) as stored:
        beliefs = {row.config["judge"]: str(row.judge) for row in stored.rows()}
    assert beliefs["inverse-size"].startswith("Q estimated from label counts, told the family: inverse-size")
    assert beliefs["true"] == "Q true; class shares true"
