"""Units and rows as text, one writer, and workers that die or are not like the one who asks."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import psutil
import pytest

import wcll
from small import linear_toml, trial, work_or_die
from wcll.cli.app import run as command
from wcll.exceptions import InputError
from wcll.experiments import Store, executors, messages, parse_suite
from wcll.experiments.executors import Pool, Writer
from wcll.experiments.grouping import RESERVE, Job
from wcll.experiments.messages import Terms, made_with, rows_of, work

TINY = linear_toml(trials=1, epochs=1)


class Here(Executor):
    """Two workers that are this process, and train what they are given at once, if they do not die."""

    def __init__(self):
        self.seen, self.dies, self.lost, self.act = [], lambda number, text: False, ChildProcessError, work

    def submit(self, function, text):
        future = Future()
        self.seen.append(text)
        if self.dies(len(self.seen), text):
            future.set_exception(self.lost("its worker died"))
        else:
            future.set_result(self.act(text))
        return future


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    workers = Here()

    @contextmanager
    def context(request, jobs, tasks):
        pool = Pool(workers, lambda: 2, lambda: None, workers.lost, 1)
        yield lambda store: Writer(request, Terms.of(request, jobs), store).fill(jobs, lambda: nullcontext(pool))

    monkeypatch.setitem(executors.EXECUTORS, "here", context)
    return workers


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
    assert heard == [(2 * i, 16) for i in range(1, 9)]


@pytest.mark.parametrize(
    ("name", "got"), [("torch", "0.1"), ("code", "another"), ("python", "2.7"), ("wcll", "0"), ("numpy", "1")]
)
def test_a_worker_that_is_not_alike_is_one_line(here, name, got, monkeypatch, capsys, tmp_path):
    """Every unit says what it needs, so that workers that come late are asked as well."""
    here.act = lambda text: json.loads(text)["groups"] and as_another(text, name, got)
    wanted = made_with()[name]
    assert command(["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"wcll: error: worker: expected {name} {wanted}, got {got}; a worker needs the versions")
    with Store(tmp_path / "s.sqlite") as store:
        assert store.count() == 0


def as_another(text, name, got):
    """What a worker replies that has another version of something."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(messages, "made_with", lambda: {**made_with(), name: got})
        return work(text)


def test_a_worker_with_other_data_is_one_line(here, capsys):
    def elsewhere(text):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(messages, "data_stamp", lambda name, data: "other")
            return work(text)

    here.act = elsewhere
    assert command(["run", "tiny.toml", "--runner", "here"]) == 2
    assert "worker: expected the data set 'digits' of the one who asks, got one with other files" in (
        capsys.readouterr().err
    )


def test_a_unit_that_fails_does_not_stop_the_others(here, capsys, tmp_path):
    failed = messages.failed(InputError("memory", "more", "little"))
    here.act = lambda text: failed if len(here.seen) == 2 else work(text)
    given = ["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite", "--together", "2"]
    assert command(given) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "wcll: error: memory: expected more, got little"
    with Store(tmp_path / "s.sqlite") as store:
        assert store.count() == 14
    assert command(["run", "tiny.toml", "--store", "s.sqlite"]) == 0


def test_a_lost_worker_costs_nothing(here):
    here.dies = lambda number, text: number in (1, 3)
    rows = wcll.run("tiny.toml", store=None, runner="here", together=2)
    assert len(rows) == 16
    assert len(here.seen) == 8 + 2
    assert sorted(here.seen[-2:]) == sorted([here.seen[0], here.seen[2]])  # they come last


@pytest.mark.parametrize("lost", [ChildProcessError, BrokenProcessPool])
def test_a_unit_that_always_kills_its_worker_comes_last_and_is_named(here, capsys, tmp_path, lost):
    """All others are trained, also where it ends the units next to it, as in a pool of processes."""
    here.lost = lost
    suite = parse_suite(TINY, "tiny")
    killer = next(t for t in suite.all_trials([0]) if t.loss == "pc" and t.p == 2)
    here.dies = lambda number, text: '"loss":"pc"' in text and '"p":2' in text
    given = ["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite", "--together", "2"]
    assert command(given) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line == (
        f"wcll: error: runs of digits, linear, pc, seed 0 (key {killer.key}): expected runs that can be trained, got one "
        "that its worker died of 3 times: out of memory?; the same command resumes with what is left"
    )
    with Store(tmp_path / "s.sqlite") as store:
        assert store.count() == 14
    assert here.dies(0, here.seen[-1])


def test_processes_that_are_killed_end_no_other_unit(here, monkeypatch, capsys, tmp_path):
    """A unit kills every real process that trains it: all others are trained, and nobody is left in the end."""
    before = set(psutil.Process().children())
    monkeypatch.setattr(executors, "work", work_or_die)
    assert command(["run", "tiny.toml", "--processes", "2", "--together", "2", "--store", "s.sqlite"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("wcll: error: runs of digits, linear, pc, seed 0 (key ")
    with Store(tmp_path / "s.sqlite") as store:
        assert store.count() == 14
    children = set(psutil.Process().children()) - before
    assert [one for one in children if "spawn_main" in " ".join(one.cmdline())] == []


def test_what_there_is_no_time_for_is_left(here, monkeypatch, tmp_path):
    """Workers are told the deadline; rows of a part are welcome then, and nothing new is handed out afterwards."""
    moment = [0.0]
    for name in ("executors", "run", "messages"):
        monkeypatch.setattr(f"wcll.experiments.{name}.now", lambda: moment[0])

    def slow(text):
        moment[0] += 10
        unit = json.loads(text)
        assert unit.pop("deadline") > 0
        return work(json.dumps(unit)) if len(here.seen) != 2 else "[]"

    here.act = slow
    suite = parse_suite(TINY, "tiny")
    assert len(wcll.run(suite, store="s.sqlite", runner="here", together=2, max_time=20 + RESERVE)) == 4
    assert len(here.seen) == 3
    here.act = work
    assert len(wcll.run(suite, store="s.sqlite", runner="here", together=2)) == 16


def test_workers_save_long_trainings_next_to_the_store(here, monkeypatch, tmp_path):
    """Where they have its file; what is left is resumed, by whomever, and checkpoints go when rows are written."""
    monkeypatch.setattr("wcll.experiments.checkpoint.EVERY", 0.0)
    (tmp_path / "tiny.toml").write_text(linear_toml(trials=1, epochs=3))
    folder, seen = tmp_path / "s.sqlite.checkpoints", []

    def stopped(text):
        reply = work(text)
        seen.append(len(list(folder.iterdir())))
        return reply if len(seen) != 2 else messages.failed(InputError("worker", "light", "a power cut"))

    here.act = stopped
    given = ["run", "tiny.toml", "--runner", "here", "--store", "s.sqlite", "--together", "8"]
    assert command(given) == 2
    assert seen == [1, 2, 3, 4]  # units
    assert len(list(folder.iterdir())) == 1  # those of the others went when their rows were written
    epochs = []
    rows = wcll.run("tiny.toml", store="s.sqlite", together=8, progress=lambda done, total: epochs.append(done))
    assert epochs[0] == 2 * 2  # of two runs, two of three epochs
    assert len(rows) == 16
    assert not folder.exists()


def test_workers_without_the_store_keep_time_all_the_same(tmp_path):
    (tmp_path / "s.sqlite").touch()
    other = terms(store=str(tmp_path / "s.sqlite"), inode=-1, deadline=1.0)
    messages._pace.cache_clear()
    job = Job((trial(epochs=3),))
    assert rows_of(work(other.text([job])), [job], partly=True) == []
    assert [path.name for path in tmp_path.iterdir()] == ["s.sqlite"]


def test_workers_count_epochs(tmp_path, monkeypatch):
    """What a worker has counted of its unit; a file that is not there yet, or is being written, says nothing."""
    monkeypatch.setattr(messages, "TELL", 0.0)
    job, others = Job((trial(epochs=2),)), Job((trial(epochs=2, seed=1),))
    told = terms(tally=str(tmp_path))
    assert messages.counted(told, [job]) == 0
    assert len(rows_of(work(told.text([job])), [job])) == 1
    assert messages.counted(told, [job]) == 2
    assert messages.counted(told, [others]) == 0
    (tmp_path / others.first.key).touch()
    assert messages.counted(told, [others]) == 0


def test_trials_arrive_as_they_were_sent():
    some = [
        trial(),
        trial(loss="auto", budget=1000),
        trial(model={"name": "mlp", "hidden": 3}, training="strong", dtype="float32"),
        trial(labels="matrix", matrix=[[0 if i == j else 1 / 9 for j in range(10)] for i in range(10)], judge="own"),
    ]
    _, jobs = messages._read(terms().text([Job((one,)) for one in some]))
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
        broken(lambda table: table.update(store=1)),
        broken(lambda table: table.update(inode="one")),
        broken(lambda table: table.update(deadline="soon")),
        broken(lambda table: table.update(tally=[])),
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
    twice = f"[{reply[1:-1]},{reply[1:-1]}]"
    for wrong, unit, partly in ((reply, trial(epochs=2), True), (twice, trial(epochs=1), True), ("[]", trial(), False)):
        with pytest.raises(InputError, match="a worker's rows: expected those of its unit, got others"):
            rows_of(wrong, [Job((unit,))], partly=partly)


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


def test_without_the_extra_one_line_says_what_to_install(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert command(["run", "tiny.toml", "--runner", "dask"]) == 2
    assert capsys.readouterr().err == (
        "wcll: error: distributed: expected an installed package, got none; pip install 'wcll[dask]'\n"
    )
