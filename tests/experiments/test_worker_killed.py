"""``kill -9`` at any moment: nothing that is finished is lost, nothing is there twice."""

from __future__ import annotations

import errno
import io
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from small import LINEAR, MAIN, PATIENCE, start
from wcll.cli.app import run
from wcll.experiments import Store, load_suite, worker

KILLS = int(os.environ.get("WCLL_KILLS", "2"))  # `make torture` asks for thirty

#: Dies when the second unit's rows are in the file but not committed: a tiny cache spills them into it.
DIES_IN_A_WRITE = """
import os, signal, sys
from wcll.experiments import store
class Dying(store.Store):
    def add(self, rows):
        self.connection.execute("PRAGMA cache_size = 1")
        self.connection.execute("PRAGMA cache_spill = 1")
        Dying.writes = getattr(Dying, "writes", 0) + 1
        self.connection.set_trace_callback(
            lambda text: os.kill(os.getpid(), signal.SIGKILL) if text == "COMMIT" and Dying.writes == 2 else None)
        return super().add(rows)
import wcll.experiments.run
wcll.experiments.run.Store = Dying
from wcll.cli.app import run
sys.exit(run(sys.argv[1:]))
"""

#: From its second unit on it trains without an end, or nearly: whoever looks finds it at work, however late.
GOES_ON = """
import wcll.experiments.worker as execute
plain, units = execute.run_jobs, []
def again_and_again(*given, **options):
    units.append(given)
    for _ in range(10_000 if len(units) > 1 else 1):
        rows = plain(*given, **options)
    return rows
execute.run_jobs = again_and_again
from wcll.cli import main
main()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(LINEAR)
    return tmp_path


def command(store, suite="small.toml"):
    return ["run", str(suite), "--store", str(store), "--together", "3"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store of a run that nothing has disturbed."""
    place = tmp_path_factory.mktemp("whole")
    (place / "small.toml").write_text(LINEAR)
    assert run(command(place / "whole.sqlite", place / "small.toml")) == 0
    return place / "whole.sqlite"


def keys():
    return sorted(trial.key for trial in load_suite("small.toml").all_trials())


def count(path):
    """Finished runs so far, read beside the process that writes."""
    if not path.exists():
        return 0
    connection = sqlite3.connect(path, timeout=PATIENCE)
    try:
        return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        connection.close()


def table(path):
    assert run(["report", "small.toml", "--store", str(path), "--out", "table.csv", "--force"]) == 0
    with open("table.csv") as file:
        return file.read()


def check(path):
    with Store(path) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert sorted(row.key for row in store.rows()) == keys()


def test_killed_again_and_again_the_table_is_the_same(folder, whole):
    path, rng = folder / "killed.sqlite", random.Random(0)
    moments = ["write", *(rng.uniform(0, 1.5) for _ in range(KILLS - 1))]
    rng.shuffle(moments)
    seen = 0
    for moment in moments:
        child = start(DIES_IN_A_WRITE if moment == "write" else MAIN, *command(path))
        if moment != "write":
            while count(path) <= seen and child.poll() is None:  # it is at work
                time.sleep(0.02)
            time.sleep(moment)
            child.send_signal(signal.SIGKILL)
        _, error = child.communicate(timeout=PATIENCE)
        assert child.returncode in (-signal.SIGKILL, 0), error  # a late kill may find it finished
        assert moment != "write" or child.returncode == -signal.SIGKILL or seen >= len(keys()) - 3
        assert seen <= count(path)
        seen = count(path)
    assert run(command(path)) == 0
    check(path)
    assert table(path) == table(whole)


def test_a_second_command_is_refused_until_control_c(folder, capsys):
    """One line at once, and nothing is changed; the first says how to go on, and another one does."""
    path = folder / "shared.sqlite"
    first = start(GOES_ON, *command(path))
    while count(path) < 1 and first.poll() is None:
        time.sleep(0.02)
    for second in (command(path), ["results", "remove", "--all", "--store", str(path)]):
        assert run(second) == 2
        *_, line = capsys.readouterr().err.splitlines()
        assert line.startswith("wcll: error: --store: expected a store that no other command is writing to, got ")
    assert run(["report", "small.toml", "--store", str(path)]) == 0  # reading is free
    first.send_signal(signal.SIGINT)
    _, error = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130, error
    assert "the same command goes on from there" in error
    assert "Traceback" not in error
    assert run(command(path)) == 0
    check(path)


def test_a_finished_suite_opens_no_data(folder, monkeypatch, capsys):
    path = folder / "done.sqlite"
    assert run([*command(path), "--trials", "1"]) == 0
    first = capsys.readouterr()

    def refuse(*arguments):
        raise AssertionError("data were opened")

    monkeypatch.setattr("wcll.experiments.request.load_dataset", refuse)
    monkeypatch.setattr("wcll.experiments.worker.make_task", refuse)
    assert run([*command(path), "--trials", "1"]) == 0
    again = capsys.readouterr()
    assert "nothing is left to do" in again.err
    assert again.out == first.out
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run([*command(path), "--trials", "2", "--dry-run"]) == 0
    assert "32 runs, 16 of them in" in capsys.readouterr().out


def test_with_two_processes_killed_again_and_again_the_table_is_the_same(folder, whole, monkeypatch):
    """Its reader is gone from the start, and it is killed while workers start, wait for their plan, train or write."""
    monkeypatch.setenv("TMPDIR", str(folder))
    path, rng = folder / "killed.sqlite", random.Random(1)
    for number in range(max(KILLS - 1, 2)):
        child = start(MAIN, *command(path), "--processes", "2")
        assert child.stderr is not None
        child.stderr.close()
        moment, seen, late = time.monotonic() + rng.uniform(0, 6), count(path), number % 2
        while child.poll() is None and (count(path) <= seen if late else time.monotonic() < moment):
            time.sleep(0.02)
        family = psutil.Process(child.pid).children() if child.poll() is None else []
        child.kill()
        assert child.wait(timeout=PATIENCE) in (-signal.SIGKILL, 0)
        assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []  # nobody trains on
        assert seen <= count(path)
    assert run(command(path)) == 0
    check(path)
    assert table(path) == table(whole)


@pytest.mark.parametrize("ending", ["2>&1 | head -1", "2>&-"])
def test_training_goes_on_when_nobody_reads(folder, ending):
    """Its reader is gone after a line, or standard error was never there: all runs are stored."""
    main = f"{sys.executable} -m wcll run small.toml --trials 1 --store s.sqlite"
    subprocess.run(["bash", "-c", f"({main}) {ending}"], check=False, capture_output=True, timeout=PATIENCE)
    with Store(Path("s.sqlite"), create=False) as finished:
        assert len(list(finished.rows())) == 16


def test_training_goes_on_when_what_it_says_has_no_room(folder, monkeypatch):
    tried = []

    class Full(io.StringIO):
        def write(self, text):
            tried.append(text)
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Full())
        assert run(["run", "small.toml", "--trials", "1", "--store", "s.sqlite"]) == 0
    assert tried
    with Store(Path("s.sqlite"), create=False) as finished:
        assert len(list(finished.rows())) == 16


def test_a_run_that_is_removed_meanwhile_is_said(folder, capsys, monkeypatch):
    """By whoever writes without asking; its table goes without, and the same command trains it again."""
    path, plain = folder / "s.sqlite", worker.run_jobs

    def removing(*given, **options):
        with Store(path) as store:
            store.remove()
        return plain(*given, **options)

    one = [*command(path), "--trials", "1"]
    monkeypatch.setattr(worker, "run_jobs", removing)
    assert run(one) == 0
    said = capsys.readouterr()
    assert "runs were removed from" in said.err
    assert "(0 of 1)" in said.out
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run(one) == 0
    assert "(0 of 1)" not in capsys.readouterr().out
