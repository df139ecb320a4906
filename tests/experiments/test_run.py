"""``wcll.run``: what the command does, from Python."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

import wcll
from small import MAIN, PATIENCE, SMALL, linear_toml, start, suite_toml, trial
from wcll.cli.app import run as command
from wcll.cli.console import _lines
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments import Store, executors, parse_suite, request
from wcll.experiments.grouping import Job
from wcll.experiments.request import RunRequest
from wcll.experiments.run import _that_fits
from wcll.experiments.worker import Tasks, need_of
from wcll.training.autograd import StackStep

TINY = suite_toml(trials=2, epochs=2)


@pytest.fixture(scope="module")
def suite():
    return parse_suite(TINY, "tiny")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


def results(rows):
    """All but what differs from run to run."""
    return {key: (row.config, row.metrics, row.history) for key, row in rows.items()}


def test_the_call_and_the_command_give_the_same_rows(suite, folder):
    assert command(["run", "tiny.toml", "--store", "command.sqlite"]) == 0
    rows = wcll.run(folder / "tiny.toml", store="call.sqlite")
    assert list(rows) == [trial.key for trial in suite.all_trials()]
    with Store(folder / "command.sqlite") as store:
        assert results(rows) == results({row.key: row for row in store.rows()})
    assert results(rows) == results(wcll.run(suite, store=None))


def test_a_second_call_trains_nothing(suite, folder, monkeypatch):
    said, steps = [], []
    first = wcll.run(suite, store="s.sqlite", trials=1, progress=lambda *step: steps.append(step), say=said.append)
    assert steps[-1] == (16 * 2, 16 * 2)

    def refuse(*arguments, **options):
        raise AssertionError("runs were trained")

    monkeypatch.setattr("wcll.experiments.worker.run_jobs", refuse)
    with Store(folder / "s.sqlite") as store:
        again = wcll.run(suite, store=store, trials=[0], say=said.append)
        assert store.finished(list(again)) == set(again)  # it is still open
    assert [row.to_dict() for row in again.values()] == [row.to_dict() for row in first.values()]
    assert said == [
        "Small: 16 runs, 0 of them in s.sqlite",
        f"Small: all 16 runs are in {folder}/s.sqlite; nothing is left to do",
    ]


def slow_steps(monkeypatch, seconds):
    """Every step of a network takes so long, by a clock of its own, which is returned."""
    clock, step = [0.0], StackStep.__call__

    def slow(self, *arguments):
        clock[0] += seconds
        step(self, *arguments)

    monkeypatch.setattr(StackStep, "__call__", slow)
    monkeypatch.setattr("wcll.experiments.train.now", lambda: clock[0])
    monkeypatch.setattr("wcll.cli.console.time.perf_counter", lambda: clock[0])
    return clock


def networks(suite):
    return replace(suite, columns=suite.columns[1:])


def test_slow_steps_are_told_before_an_epoch_is_over(suite, monkeypatch, capsys):
    clock = slow_steps(monkeypatch, 90.0)
    heard, report = [], _lines("training")

    def progress(done, total):
        heard.append((clock[0], done, total))
        report(done, total)

    wcll.run(networks(suite), store=None, trials=1, progress=progress)
    moments, done, totals = zip(*heard, strict=True)
    assert list(done) == sorted(done)
    assert (done[0], done[-1], {*totals}) == (0, 16, {16})
    assert list(done).count(16) == 1  # not before its end
    assert all(isinstance(one, int) for one in (done[0], done[-1]))
    first, second = done[1:3]
    assert 0 < first == second / 2 < 1
    assert moments[1] - moments[0] == 90.0
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"training: \d %, about .* left", lines[0])
    assert lines[-1] == "training: 100 %, about 0 s left"


def test_quick_steps_are_not_told_one_by_one(suite, monkeypatch):
    slow_steps(monkeypatch, 1e-6)
    heard = []
    wcll.run(networks(suite), store=None, trials=1, progress=lambda done, total: heard.append(done))
    assert all(done == int(done) for done in heard)


def test_what_goes_on_from_a_checkpoint_counts_on(suite, monkeypatch):
    """Parts of an epoch are added to what was done before it, and to nothing else."""
    slow_steps(monkeypatch, 90.0)
    monkeypatch.setattr("wcll.experiments.checkpoint.EVERY", 0.0)
    heard = []

    def stopped(done, total):
        if done > 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wcll.run(networks(suite), store="s.sqlite", trials=1, progress=stopped)
    wcll.run(networks(suite), store="s.sqlite", trials=1, progress=lambda done, total: heard.append((done, total)))
    assert (heard[0], heard[-1]) == ((6, 16), (16, 16))
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_a_store_has_one_writer_at_a_time(suite):
    """A call within a call, or in another thread, fails at once and harms nothing."""
    refused = []

    def again(done, total):
        with pytest.raises(InputError, match="expected a store that no other command is writing to") as error:
            wcll.run(suite, store="s.sqlite", trials=1)
        refused.append(error)

    rows = wcll.run(suite, store="s.sqlite", trials=1, progress=again)
    assert refused
    assert results(rows) == results(wcll.run(suite, store="s.sqlite", trials=1))


def test_the_number_of_threads_is_as_before(suite, monkeypatch):
    before = torch.get_num_threads()
    linear = replace(suite, columns=suite.columns[:1])
    rows = wcll.run(linear, store=None, trials=1, threads=before + 1)
    assert {row.provenance["threads"] for row in rows.values()} == {before + 1}
    assert torch.get_num_threads() == before

    def failing(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr("wcll.experiments.run.check_jobs", failing)
    with pytest.raises(ZeroDivisionError):
        wcll.run(suite, store="s.sqlite", threads=before + 1)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suite": "digit"}, "did you mean 'digits'"),
        ({"trials": 0}, "trials: expected a whole number from 1, got 0"),
        ({"trials": []}, r"trials: expected how many, or seeds from 0, got \[\]"),
        ({"trials": [-1]}, r"trials: expected how many, or seeds from 0, got \[-1\]"),
        ({"trials": [True]}, r"trials: expected how many, or seeds from 0, got \[True\]"),
        ({"trials": "2"}, "trials: expected how many, or seeds from 0, got '2'"),
        ({"device": "tpu"}, "device: expected 'auto', 'cpu' or 'cuda'"),
        ({"threads": 0}, "threads: expected a whole number"),
        ({"processes": 0}, "processes: expected a whole number"),
        ({"memory": "4GB"}, "memory: expected a whole number from 1, got '4GB'"),
        ({"together": 0}, "together: expected a whole number"),
        ({"store": "no/such/folder.sqlite"}, "--store: expected a folder that can be written"),
        ({"data": "nowhere"}, "data: expected a folder, got nowhere, which is not there"),
    ],
)
def test_bad_input_leaves_nothing(options, message, suite, folder):
    with pytest.raises(InputError, match=message):
        wcll.run(**{"suite": suite, "store": "s.sqlite", **options})
    assert [path.name for path in folder.iterdir()] == ["tiny.toml"]


def finished(path):
    """Finished runs so far, read beside the process that writes."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.OperationalError:  # it is not there yet
        return 0


def workers(child):
    """The processes that train; the helper of multiprocessing that tidies up is none."""
    return [one for one in psutil.Process(child.pid).children() if "spawn_main" in " ".join(one.cmdline())]


@pytest.fixture
def at_work(folder, monkeypatch):
    """``wcll run`` in two processes, under way: the first runs are soon finished, all of them not for long."""
    (folder / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    (folder / "long.toml").write_text(linear_toml(trials=24, epochs=200))
    child = start(MAIN, *["run", "long.toml", "--store", "s.sqlite", "--processes", "2", "--together", "2"])
    while not finished(folder / "s.sqlite") and child.poll() is None:
        time.sleep(0.05)
    yield child
    child.kill()
    child.communicate()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_control_c_and_being_asked_end_all_processes_cleanly(at_work, folder, kind):
    both = workers(at_work)
    assert len(both) == 2
    os.kill(at_work.pid, kind)
    _, error = at_work.communicate(timeout=PATIENCE)
    assert at_work.returncode == 130
    assert error.endswith("the same command goes on from there\nwcll: stopped\n")
    assert "Traceback" not in error
    assert not any(one.is_running() for one in both)
    assert not list((folder / "temporary").glob("wcll-*"))


def test_workers_end_with_their_parent(at_work):
    both = workers(at_work)
    assert len(both) == 2
    at_work.kill()
    assert psutil.wait_procs(both, timeout=PATIENCE)[1] == []


def starting(folder, monkeypatch, **options):
    """``wcll run`` of many runs in two processes that have just been started: they have no plan yet, which is long."""
    monkeypatch.setenv("TMPDIR", str(folder))
    (folder / "many.toml").write_text(linear_toml(trials=60))
    child = start(MAIN, *["run", "many.toml", "--store", "s.sqlite", "--processes", "2", "--together", "2"], **options)
    while child.poll() is None and len(both := workers(child)) < 2:
        time.sleep(0.02)
    return child, both


def test_workers_that_wait_for_their_plan_end_with_their_parent(folder, monkeypatch):
    child, both = starting(folder, monkeypatch)
    child.kill()
    left = psutil.wait_procs(both, timeout=PATIENCE)[1]
    for one in left:
        one.kill()
    child.communicate()
    assert left == []


def heeds(process, kind):
    """Whether a process that exists, however new, would be reached by a signal."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    sets = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk", "SigIgn"))]
    return not any(one >> (kind - 1) & 1 for one in sets)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nobody says which signals a process heeds")
def test_control_c_while_workers_start_is_left_to_their_parent(folder, monkeypatch):
    child, both = starting(folder, monkeypatch)
    heeded = [heeds(one, signal.SIGINT) for one in both]
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert error.endswith("the same command goes on from there\nwcll: stopped\n")
    assert "Traceback" not in error
    assert psutil.wait_procs(both, timeout=PATIENCE)[1] == []
    assert heeded == [False, False]  # else each would show a traceback of its own


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals can't be sent to a thread")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_control_c_that_another_thread_takes_waits_until_workers_are_started(kind):
    before = signal.signal(kind, signal.default_int_handler)
    over, started = threading.Event(), []
    other = threading.Thread(target=over.wait)
    other.start()

    def begin():
        with executors.deaf_to_control_c():
            signal.pthread_kill(other.ident, kind)
            time.sleep(0.1)
            started.append("a worker")

    try:
        with pytest.raises(KeyboardInterrupt):
            begin()
        assert signal.getsignal(kind) is signal.default_int_handler
    finally:
        signal.signal(kind, before)
        over.set()
        other.join()
    assert started == ["a worker"]


def test_cores_of_a_container(monkeypatch, tmp_path):
    monkeypatch.setattr("wcll.experiments.request.os.sched_getaffinity", lambda _: range(64), raising=False)
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr("wcll.experiments.request.Path", lambda _: limit)
    for text, expected in (("150000 100000", 2), ("max 100000", 64), ("6400000 50000", 64)):
        limit.write_text(text)
        assert request.cores() == expected
    limit.unlink()
    assert request.cores() == 64


def raising(done, total):
    raise ArithmeticError("mine")


@pytest.mark.parametrize("processes", [1, 2])
def test_what_progress_raises_is_raised(tmp_path, processes):
    suite = replace(parse_suite(SMALL, "small"), columns=parse_suite(SMALL, "small").columns[:1])
    seeds = [np.int64(seed) for seed in range(3)]
    with pytest.raises(ArithmeticError, match="mine"):
        wcll.run(suite, store=tmp_path / "s.sqlite", trials=seeds, processes=processes, progress=raising)
    assert len(wcll.run(suite, store=tmp_path / "s.sqlite", trials=3)) == 24


def test_nought_is_nought_whatever_its_sign():
    text = suite_toml(lr=0.01, grid={"weight_decay": [0.0, -0.0]})
    assert len({trial.key for trial in parse_suite(text, "small").all_trials([0])}) == 8


@pytest.mark.parametrize(("runs", "count"), [(2.9, 2), (1.9, 1), (0.5, 1)])
def test_as_many_processes_as_fit_into_memory(runs, count):
    """Each must have room for one run; if none has, one process says how much it takes."""
    said = []
    job = Job((trial(),))
    tasks = Tasks(load_dataset)
    room = int(runs * need_of(job, tasks.of(job).view, torch.device("cpu")).of(1))
    some = RunRequest(Path("unused.sqlite"), job.trials, device="cpu", processes=2, memory=room, say=said.append)
    assert _that_fits(some, [job], tasks).processes == count
    assert len(said) == 2 - count
    assert all(re.fullmatch(r"processes: 1 instead of 2, as a run takes [\d.]+ \w+", line) for line in said)
