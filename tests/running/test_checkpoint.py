"""Long trainings go on from where they were saved."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
import torch

from small import SMALL, start
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.running.checkpoint import Checkpoints
from wcll.running.execute import Tasks, run_jobs
from wcll.running.plan import plan
from wcll.suites import parse_suite

CPU = torch.device("cpu")


class PowerCutError(Exception):
    """In place of a power cut."""


def interrupted_at(epoch):
    """Progress that stops after so many epochs of the runs that it is told of."""
    seen = []

    def progress(done):
        seen.append(done)
        if len([one for one in seen if one]) == epoch:
            raise PowerCutError

    return progress


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr("wcll.running.checkpoint.EVERY", 0.0)


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("plain", [False, True], ids=["engine", "plain"])
def test_what_goes_on_equals_what_never_stopped(model, plain, tmp_path, always):
    jobs = plan([t for t in parse_suite(SMALL, "small").all_trials([0]) if t.model == model], together=64)
    job = next(job for job in jobs if not job.trials[0].ordinary)
    part = (job, Tasks(load_dataset).of(job))
    checkpoints = Checkpoints(tmp_path / "saved")
    with pytest.raises(PowerCutError):
        run_jobs([part], CPU, interrupted_at(7), plain=plain, checkpoints=checkpoints)
    (saved,) = (tmp_path / "saved").iterdir()
    epochs = []
    again = run_jobs([part], CPU, epochs.append, plain=plain, checkpoints=checkpoints)
    whole = run_jobs([part], CPU, plain=plain)
    assert epochs[0] == 6 * len(job.trials)  # six were saved, the seventh was not
    assert len(epochs) == 1 + 6
    for a, b in zip(again, whole, strict=True):
        assert a.history == b.history
    assert saved.exists()  # until the rows are in the store
    checkpoints.clear()
    assert not (tmp_path / "saved").exists()


def test_a_damaged_file_is_as_good_as_none(tmp_path, always):
    job = plan(list(parse_suite(SMALL, "small").all_trials([0])), together=64)[0]
    part = (job, Tasks(load_dataset).of(job))
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(PowerCutError):
        run_jobs([part], CPU, interrupted_at(3), checkpoints=checkpoints)
    (saved,) = tmp_path.iterdir()
    saved.write_bytes(saved.read_bytes()[:-100])
    epochs = []
    rows = run_jobs([part], CPU, epochs.append, checkpoints=checkpoints)
    assert epochs[0] == 0
    assert [row.history for row in rows] == [row.history for row in run_jobs([part], CPU)]


def test_other_data_under_the_same_name_begin_anew(tmp_path, always):
    job = plan(list(parse_suite(SMALL, "small").all_trials([0])), together=64)[0]
    task = Tasks(load_dataset).of(job)
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(PowerCutError):
        run_jobs([(job, task)], CPU, interrupted_at(3), checkpoints=checkpoints)
    epochs = []
    other = dataclasses.replace(task, data={**task.data, "fingerprint": "another"})
    run_jobs([(job, other)], CPU, epochs.append, checkpoints=checkpoints)
    assert epochs[0] == 0


def test_a_folder_that_vanishes_costs_a_save_and_nothing_else(tmp_path, always, monkeypatch):
    job = plan(list(parse_suite(SMALL, "small").all_trials([0])), together=64)[0]
    part = (job, Tasks(load_dataset).of(job))
    monkeypatch.setattr("wcll.running.checkpoint.write_model", failing)
    rows = run_jobs([part], CPU, checkpoints=Checkpoints(tmp_path / "saved"))
    assert len(rows) == len(job.trials)


def failing(*given):
    raise FileNotFoundError("gone")


KILLED = """
import os, signal, sys
from wcll.running import checkpoint, train
checkpoint.EVERY = 0.0
plain = train._Recorder.__call__
def after(self, engine):
    plain(self, engine)
    if engine.epoch == 9 and "KILL" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    with open("epochs", "a") as file:
        print(engine.epoch, file=file)
train._Recorder.__call__ = after
from wcll.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def test_killed_in_the_middle_of_a_unit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL.replace("trials = 3", "trials = 1"))
    command = ["run", "small.toml", "--store", "s.sqlite"]
    child = start(KILLED, *command, env={**os.environ, "KILL": "1"})
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert len(list(Path("s.sqlite.checkpoints").iterdir())) == 1
    Path("epochs").unlink()
    child = start(KILLED, *command)
    _, error = child.communicate(timeout=120)
    assert child.returncode == 0, error
    assert Path("epochs").read_text().split()[0] == "9"
    assert not Path("s.sqlite.checkpoints").exists()
    tables = []
    assert run([*command[:-1], "whole.sqlite"]) == 0
    for store in ("s.sqlite", "whole.sqlite"):
        assert run(["report", "small.toml", "--store", store, "--out", "t.csv"]) == 0
        tables.append(Path("t.csv").read_text())
    assert tables[0] == tables[1]
