"""Workers elsewhere: units and rows as text, one writer, and workers that are not like the one who asks."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import wcll
from small import LINEAR, trial
from wcll.checks import InputError
from wcll.cli.app import run as command
from wcll.results import Store
from wcll.running import processes, runners, units
from wcll.running.plan import Job
from wcll.running.units import Terms, made_with, rows_of, work
from wcll.suites import parse_suite

TINY = LINEAR.replace("epochs = 12", "epochs = 1").replace("trials = 3", "trials = 1")


class Here:
    """A cluster of two workers that are this process; what was handed out last comes back first."""

    def __init__(self):
        self.out, self.seen, self.most = [], [], 0

    def workers(self):
        return {"a": "machine", "b": "machine"}

    def ask_all(self, text):
        return {name: work(text) for name in self.workers()}

    def submit(self, text):
        self.out.append((str(len(self.seen)), text))
        self.seen.append(text)
        self.most = max(self.most, len(self.out))
        return self.out[-1][0]

    def reply(self, seconds):
        name, text = self.out.pop()
        return name, work(text)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    cluster = Here()
    monkeypatch.setitem(processes.RUNNERS, "here", None)
    monkeypatch.setitem(runners.BY_NAME, "here", partial(runners.on_cluster, lambda workers: nullcontext(cluster)))
    return cluster


def results(rows):
    return {key: (row.config, row.metrics, row.history, row.provenance["data"]) for key, row in rows.items()}


def terms(**changes):
    plain = Terms("cpu", 1, None, 1, None, {"digits": None}, made_with())
    return replace(plain, **changes)


def test_rows_that_were_sent_are_those_of_this_process(here):
    suite, heard = parse_suite(TINY, "tiny"), []
    sent = wcll.run(suite, store="s.sqlite", runner="here", together=2, progress=lambda *step: heard.append(step))
    assert list(results(sent).items()) == list(results(wcll.run(suite, store=None)).items())
    assert len(here.seen) == 8  # of two runs each
    assert here.most == 4  # two for every worker, so that others may claim the rest
    assert heard == [(2 * i, 16) for i in range(1, 9)]
    with Store(Path("s.sqlite")) as store:
        assert store.claimed() == 0


@pytest.mark.parametrize(
    ("name", "got"), [("torch", "0.1"), ("code", "another"), ("python", "2.7"), ("wcll", "0"), ("numpy", "1")]
)
def test_a_worker_that_is_not_alike_is_one_line(here, name, got, monkeypatch, capsys, tmp_path):
    wanted = made_with()
    monkeypatch.setattr(units, "made_with", lambda: {**wanted, name: got})  # of the worker
    assert command(["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"wcll: error: worker a: expected {name} {wanted[name]}, got {got}; a worker needs")
    assert not (tmp_path / "s.sqlite").exists()


def test_a_worker_with_other_data_is_one_line(here, monkeypatch, capsys):
    monkeypatch.setattr(units, "data_stamp", lambda name, data: "other")
    assert command(["run", "tiny.toml", "--runner", "here"]) == 2
    assert "worker a: expected the data set 'digits' of the one who asks, got one with other files" in (
        capsys.readouterr().err
    )


def test_a_worker_that_comes_later_is_asked_too(here, monkeypatch, tmp_path, capsys):
    """Workers may join, or be started anew, after all were asked: every unit says what it needs."""
    monkeypatch.setattr(Here, "ask_all", lambda self, text: {})
    monkeypatch.setattr(units, "made_with", lambda: {**made_with(), "torch": "0.1"})
    assert command(["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite"]) == 2
    assert "got 0.1; a worker needs the versions" in capsys.readouterr().err
    with Store(tmp_path / "s.sqlite") as store:
        assert (store.count(), store.claimed()) == (0, 0)


def test_a_unit_that_fails_does_not_stop_the_others(here, monkeypatch, capsys, tmp_path):
    plain = Here.reply

    def fails_once(self, seconds):
        name, reply = plain(self, seconds)
        return name, units.failed(InputError("memory", "more", "little")) if name == "1" else reply

    monkeypatch.setattr(Here, "reply", fails_once)
    given = ["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite", "--together", "2"]
    assert command(given) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "wcll: error: memory: expected more, got little"
    with Store(tmp_path / "s.sqlite") as store:
        assert (store.count(), store.claimed()) == (14, 0)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert command(["run", "tiny.toml", "--store", "s.sqlite"]) == 0


def test_what_there_is_no_time_for_is_left(here, monkeypatch, tmp_path):
    moment = [0.0]
    monkeypatch.setattr("wcll.running.cluster.now", lambda: moment[0])
    monkeypatch.setattr("wcll.running.run.now", lambda: moment[0])
    plain = Here.reply

    def slow(self, seconds):
        moment[0] += 10
        return plain(self, seconds)

    monkeypatch.setattr(Here, "reply", slow)
    suite = parse_suite(TINY, "tiny")
    assert len(wcll.run(suite, store="s.sqlite", runner="here", together=2, max_time=25)) == 6
    with Store(tmp_path / "s.sqlite") as store:
        assert store.claimed() == 0
    assert len(wcll.run(suite, store="s.sqlite", runner="here", together=2)) == 16


def test_trials_arrive_as_they_were_sent():
    some = [
        trial(),
        trial(loss="auto", budget=1000),
        trial(model={"name": "mlp", "hidden": 3}, training="strong", dtype="float32"),
        trial(labels="matrix", matrix=[[0 if i == j else 1 / 9 for j in range(10)] for i in range(10)], judge="own"),
    ]
    _, jobs = units._read(terms().text([Job((one,)) for one in some]))
    assert [job.first for job in jobs] == some


def broken(change):
    table = json.loads(terms().text([Job((trial(),))]))
    change(table)
    return json.dumps(table)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "{" * 100_000, "NaN",
        broken(lambda table: table.pop("threads")),
        broken(lambda table: table.update(more=1)),
        broken(lambda table: table.update(threads=0)),
        broken(lambda table: table.update(memory="4GB")),
        broken(lambda table: table.update(data=1)),
        broken(lambda table: table.update(stamps=[])),
        broken(lambda table: table.update(groups=[[]])),
        broken(lambda table: table["groups"][0][0].update(loss="no such")),
        broken(lambda table: table["groups"][0][0].update(epochs=-1)),
        broken(lambda table: table["groups"][0][0].update(command="rm")),
        broken(lambda table: table.update(device="tpu")),
    ],
)  # fmt: skip
def test_a_unit_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="expected"):
        rows_of(work(text), [])


@pytest.mark.parametrize("reply", ["", "[", "[1]", "{}", '{"error": ["a"]}', '[{"key": "k"}]', "[NaN]", "{"])
def test_a_reply_that_is_none_is_refused(reply):
    with pytest.raises(InputError, match="a worker's r"):
        rows_of(reply, [Job((trial(),))])


def test_rows_of_another_unit_are_refused():
    job = Job((trial(epochs=1),))
    reply = work(terms().text([job]))
    assert [row.key for row in rows_of(reply, [job])] == list(job.keys)
    with pytest.raises(InputError, match="a worker's rows: expected those of its unit, got others"):
        rows_of(reply, [Job((trial(epochs=2),))])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runner", "slurm"], "--runner: expected"),
        (["--address", "tcp://127.0.0.1:1"], "--address: expected none for --runner local"),
        (["--runner", "here", "--address", "x", "--processes", "2"], "--processes: expected none beside --address"),
    ],
)
def test_runners_that_make_no_sense(here, options, message, capsys):
    assert command(["run", "tiny.toml", *options]) == 2
    assert message in capsys.readouterr().err


def test_every_runner_that_is_offered_is_there():
    assert list(runners.BY_NAME) == list(processes.RUNNERS)


def test_without_the_extra_one_line_says_what_to_install(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert command(["run", "tiny.toml", "--runner", "dask"]) == 2
    assert capsys.readouterr().err == (
        "wcll: error: distributed: expected an installed package, got none; pip install 'wcll[dask]'\n"
    )
