"""Long trainings go on from where they were saved."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
import torch

from small import PATIENCE, SMALL, linear_toml, start, suite_toml, trial
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.experiments import Store, checkpoint, parse_suite
from wcll.experiments.checkpoint import Checkpoints
from wcll.experiments.grouping import Job, Pace, now, plan
from wcll.experiments.worker import Tasks, run_jobs
from wcll.persistence import write_model

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
    monkeypatch.setattr("wcll.experiments.checkpoint.EVERY", 0.0)


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
    with Store(tmp_path / "s.sqlite") as store:
        checkpoints.forget(store)
        assert saved.exists()
        store.add(again)
        checkpoints.forget(store)
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("at", [2, 5])
def test_a_warm_up_goes_on_as_if_it_had_never_stopped(at, tmp_path, always):
    """Saved before or after what losses are told has changed."""
    one = trial(loss="forward", assume="true", warm_up=3, epochs=8)
    part = (Job((one,)), Tasks(load_dataset).of(Job((one,))))
    checkpoints = Checkpoints(tmp_path / "saved")
    with pytest.raises(PowerCutError):
        run_jobs([part], CPU, interrupted_at(at), checkpoints=checkpoints)
    (again,), (whole,) = run_jobs([part], CPU, checkpoints=checkpoints), run_jobs([part], CPU)
    assert again.history == whole.history
    (cold,) = run_jobs([(Job((dataclasses.replace(one, warm_up=None),)), part[1])], CPU)
    assert cold.history != whole.history


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
    monkeypatch.setattr("wcll.experiments.checkpoint.write_model", failing)
    rows = run_jobs([part], CPU, checkpoints=Checkpoints(tmp_path / "saved"))
    assert len(rows) == len(job.trials)


def failing(*given):
    raise FileNotFoundError("gone")


KILLED = """
import os, signal, sys
from wcll.experiments import checkpoint, train
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
    Path("small.toml").write_text(linear_toml(trials=1))
    command = ["run", "small.toml", "--store", "s.sqlite"]
    child = start(KILLED, *command, env={**os.environ, "KILL": "1"})
    child.communicate(timeout=PATIENCE)
    assert child.returncode == -signal.SIGKILL
    assert len(list(Path("s.sqlite.checkpoints").iterdir())) == 1
    Path("epochs").unlink()
    child = start(KILLED, *command)
    _, error = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, error
    assert Path("epochs").read_text().split()[0] == "9"
    assert not Path("s.sqlite.checkpoints").exists()
    tables = []
    assert run([*command[:-1], "whole.sqlite"]) == 0
    for store in ("s.sqlite", "whole.sqlite"):
        assert run(["report", "small.toml", "--store", store, "--out", "t.csv", "--force"]) == 0
        tables.append(Path("t.csv").read_text())
    assert tables[0] == tables[1]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64, torch.float32, torch.float64])
def test_what_is_packed_comes_back_as_it_was(dtype):
    drawn = torch.randint(0, 200, (7, 3, 11), generator=torch.Generator().manual_seed(0)).to(dtype)
    if dtype.is_floating_point:
        drawn[2, 1, 3], drawn[3, 0, 0], drawn[4, 0, 0] = float("nan"), float("inf"), -0.0
    again = checkpoint._unpacked(checkpoint._packed(drawn), list(drawn.shape), str(dtype).removeprefix("torch."))
    assert again.dtype == dtype
    assert again.numpy().tobytes() == drawn.numpy().tobytes()


def test_predictions_that_hardly_change_take_hardly_any_room():
    """Those of ten thousand images after each of a hundred epochs, of which one in a hundred changes."""
    draw = torch.Generator().manual_seed(0)
    first = torch.randint(0, 10, (1, 1, 10_000), generator=draw, dtype=torch.uint8)
    other = torch.randint(0, 10, (100, 1, 10_000), generator=draw, dtype=torch.uint8)
    predicted = torch.where(torch.rand(other.shape, generator=draw) < 0.01, other, first)
    assert checkpoint._packed(predicted).nbytes < predicted.nbytes / 10


def test_a_save_at_the_end_that_fails_is_one_line(tmp_path, monkeypatch, capsys):
    """What was trained would be lost: nobody is told that the same command goes on there."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(suite_toml(trials=1))
    monkeypatch.setattr(checkpoint, "write_model", failing)
    assert run(["run", "small.toml", "--store", "s.sqlite", "--max-time", "0.001s"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("wcll: error: --store: expected a place for")
    assert line.endswith("got gone")


def test_what_is_finished_is_returned_although_the_rest_is_out_of_time(tmp_path):
    """Jobs that were handed out at once need not be trained at once: memory may be short."""
    jobs = plan([t for t in parse_suite(SMALL, "small").all_trials([0]) if t.model == "linear"], together=3)
    tasks, pace, ended = Tasks(load_dataset), Pace(end=now() + 600), []

    def progress(done):
        ended.append(done)
        if len([one for one in ended if one]) == 12 + 3:  # the first is finished, the second at its third epoch
            pace.end = 0.0

    checkpoints, both = Checkpoints(tmp_path / "saved"), [(job, tasks.of(job)) for job in jobs[:2]]
    rows = run_jobs(both, CPU, progress, checkpoints=checkpoints, pace=pace)
    assert [row.key for row in rows] == list(jobs[0].keys)
    assert pace.over
    assert checkpoints.begun() == [[list(jobs[1].keys)]]
    with Store(tmp_path / "s.sqlite") as store:
        store.add(rows)
        checkpoints.forget(store)  # what is written by now: not what is under way
    epochs = []
    rows += run_jobs(both[1:], CPU, epochs.append, checkpoints=checkpoints)
    assert epochs[0] == 3 * len(jobs[1].trials)
    assert [row.history for row in rows] == [row.history for row in run_jobs(both, CPU)]


@pytest.mark.parametrize("header", [[], {}, {"runs": "ab"}, {"runs": ["ab"]}, {"runs": [[1]]}, {"runs": {"a": []}}])
def test_files_that_say_nothing_of_runs_are_of_no_use(header, tmp_path):
    (tmp_path / "s.sqlite.checkpoints").mkdir()
    path = tmp_path / "s.sqlite.checkpoints" / f"{0:024}.safetensors"
    write_model(path, {"x": torch.zeros(1)}, header)
    path.with_name(f"{1:024}.safetensors").write_bytes(b"damaged")
    checkpoints = Checkpoints.of_store(tmp_path / "s.sqlite")
    assert checkpoints.begun() == []
    with Store(tmp_path / "s.sqlite") as store:
        checkpoints.tidy(store)
    assert not path.parent.exists()


def test_trainings_that_nobody_goes_on_with_are_forgotten(tmp_path):
    (tmp_path / "s.sqlite.checkpoints").mkdir()
    old, new = (tmp_path / "s.sqlite.checkpoints" / f"{i:024}.safetensors" for i in range(2))
    for path in (old, new):
        write_model(path, {"x": torch.zeros(1)}, {"runs": [["a"]]})
    os.utime(old, (0, 0))
    with Store(tmp_path / "s.sqlite") as store:
        Checkpoints.of_store(tmp_path / "s.sqlite").tidy(store)
    assert [path.exists() for path in (old, new)] == [False, True]
