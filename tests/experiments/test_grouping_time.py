"""Work that has to be over in time: it stops, and the next call goes on where it was."""

from __future__ import annotations

from functools import partial
from itertools import islice
from math import inf
from pathlib import Path

import pytest
import torch

import wcll
from small import LIMIT, LINEAR_MODEL, MLP, WCLL, suite_toml, trial
from wcll.cli import begin, begun
from wcll.cli.app import run
from wcll.cli.experiments import end_of
from wcll.exceptions import InputError
from wcll.experiments import grouping, load_suite, worker
from wcll.experiments import run as estimate
from wcll.experiments.grouping import Job, Measured, Pace, Stopwatch, as_begun, in_step
from wcll.experiments.train import _Recorder

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
CNN9 = {"title": "mlp", "model": {"name": "cnn9", "width": 2}}
FEW = {"n_majority": 20, "epochs": 5}
short_toml = partial(suite_toml, trials=2, rows=[WCLL, LIMIT], columns=[MLP], grid={"lr": [1e-2]}, **FEW)
SHORT = short_toml()
NETWORK = short_toml(columns=[CNN9], dtype="float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SHORT)
    return tmp_path


class Clock:
    """A clock that every epoch of a run sets forward; it keeps which epoch of which runs that was."""

    def __init__(self, monkeypatch, seconds=1.0):
        self.now, self.seconds, self.epochs = 1000.0, seconds, []
        recorded = _Recorder.__call__

        def after(recorder, engine):
            recorded(recorder, engine)
            group = engine.groups[recorder.index]
            self.now += self.seconds * len(group.rates)
            self.epochs.append((group.seed, *(loss.spec.name for loss in group.losses), engine.epoch))

        monkeypatch.setattr(_Recorder, "__call__", after)
        monkeypatch.setattr(grouping, "now", lambda: self.now)
        monkeypatch.setattr("wcll.experiments.run.now", lambda: self.now)
        monkeypatch.setattr("wcll.cli.paper.now", lambda: self.now)
        monkeypatch.setattr("wcll.cli.experiments.begun", lambda: self.now)


def table(store):
    assert run(["report", "small.toml", "--store", store, "--out", "table.csv", "--force"]) == 0
    return Path("table.csv").read_text()


def command(store="s.sqlite", *more):
    return ["run", "small.toml", "--store", store, *more]


def test_ended_twice_midway_the_table_is_the_same_and_no_epoch_is_done_twice(folder, monkeypatch, capsys):
    Path("small.toml").write_text(NETWORK)
    assert run(command("whole.sqlite")) == 0
    shown, expected = capsys.readouterr().out, table("whole.sqlite")
    clock, jobs = Clock(monkeypatch), 4  # of five epochs: two seeds, and for each the upper limit by itself
    for done, runs in ((8, 1), (16, 3)):
        assert run(command("s.sqlite", "--max-time", "11s")) == 3
        told = capsys.readouterr()
        assert told.out == ""  # no table of a part
        assert told.err.endswith(
            f"out of time: {runs} of 4 runs are in s.sqlite, {4 - runs} are left; the same command goes on from there\n"
        )
        assert len(clock.epochs) == done
        assert len(list((folder / "s.sqlite.checkpoints").iterdir())) == 1
    assert run(command("s.sqlite")) == 0
    assert capsys.readouterr().out == shown
    assert len(clock.epochs) == len(set(clock.epochs)) == 5 * jobs
    assert table("s.sqlite") == expected
    assert not (folder / "s.sqlite.checkpoints").exists()


@pytest.mark.parametrize("limit", ["0.001s", "5"])
def test_a_time_shorter_than_an_epoch_is_enough_to_go_on(limit, folder, monkeypatch):
    Path("small.toml").write_text(short_toml(epochs=2))
    clock, codes = Clock(monkeypatch, seconds=60.0), []
    while not codes or codes[-1] == 3:
        codes.append(run(command("s.sqlite", "--max-time", limit)))
        assert len(clock.epochs) == len(codes)  # one epoch a call
    assert codes == [3] * 7 + [0]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run(command("whole.sqlite")) == 0
    assert table("s.sqlite") == table("whole.sqlite")


def test_a_time_that_suffices_changes_nothing(folder, capsys):
    assert run(command("s.sqlite", "--max-time", "1.5h")) == 0
    assert "out of time" not in capsys.readouterr().err
    assert run(command("s.sqlite", "--max-time", "1s")) == 0  # nothing is left to do


def test_loading_the_command_is_a_part_of_its_time(folder):
    begin()
    assert begun() <= end_of("10s") - 10 <= grouping.now()
    assert end_of(None) == inf
    before = begun()
    assert run(["methods"]) == 0
    assert begun() > before


def test_two_processes_stop_and_one_goes_on(folder):
    Path("small.toml").write_text(short_toml(columns=[LINEAR_MODEL]))
    assert run(command("s.sqlite", "--max-time", "0.01s", "--processes", "2")) == 3
    saved = list((folder / "s.sqlite.checkpoints").iterdir())
    assert len(saved) in (1, 2)  # a slow one may have found no time at all
    assert run(command("s.sqlite", "--max-time", "1h")) == 0
    assert run(command("whole.sqlite")) == 0
    assert table("s.sqlite") == table("whole.sqlite")


def test_a_call_from_python_returns_what_is_finished(folder, monkeypatch):
    clock, said = Clock(monkeypatch), []
    rows = wcll.run("small.toml", store="s.sqlite", max_time=11, say=said.append)
    assert len(rows) == 1
    assert "1 of 4 runs are in s.sqlite, 3 are left" in said[-1]
    assert len(wcll.run("small.toml", store="s.sqlite")) == 4
    assert len(clock.epochs) == 20
    for value in (0, -1, "9m", float("nan"), float("inf")):
        with pytest.raises(InputError, match="max_time: expected"):
            wcll.run("small.toml", max_time=value)


@pytest.mark.parametrize("text", ["", "9x", "m", "-1m", "0s", "1e3", "nan", "9m9", "1_0", "9" * 400, "٩m"])
@pytest.mark.parametrize("name", [["run", "small.toml"], ["paper", "run", "table2"], ["paper", "run", "search"]])
def test_a_time_that_is_none_is_one_line(text, name, folder, capsys):
    assert run([*name, f"--max-time={text}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wcll: error: --max-time: expected a time such as 90s, 9m or 1.5h, got '")


def test_the_papers_commands_stop_in_time(folder, monkeypatch, capsys):
    """They have the same option, and none of them makes a part of what is unfinished."""
    monkeypatch.setattr("wcll.cli.paper.load_suite", lambda name: load_suite("small.toml"))
    Clock(monkeypatch)
    assert run(["paper", "run", "table2", "--max-time", "11s", "--processes", "1", "--results", "parts"]) == 3
    assert "1 of 4 runs are in wcll-paper.sqlite, 3 are left" in capsys.readouterr().err
    assert not Path("parts").exists()


def test_trainings_of_another_suite_that_wait_are_kept(folder, monkeypatch):
    """A suite that is finished takes away what is of no use, not what another command will go on with."""
    clock = Clock(monkeypatch)
    assert run(command("s.sqlite", "--max-time", "1s")) == 3
    Path("other.toml").write_text(short_toml(epochs=2))
    assert run(["run", "other.toml", "--store", "s.sqlite"]) == 0
    clock.epochs.clear()
    assert run(command("s.sqlite")) == 0
    assert len(clock.epochs) == 4 * 5 - 1
    assert not (folder / "s.sqlite.checkpoints").exists()


# --- bundles of a GPU ------------------------------------------------------------------------------------------------


def networks(jobs, runs, model="cnn9", epochs=100):
    """Jobs of networks, each on data of its own."""
    rates = [0.001 * (i + 1) for i in range(runs)]
    return [Job(tuple(trial(model=model, lr=lr, seed=seed, epochs=epochs) for lr in rates)) for seed in range(jobs)]


def sizes(bundle):
    return [len(job.trials) for job in bundle]


def keys(bundles):
    return sorted(key for bundle in bundles for job in bundle for key in job.keys)


@pytest.mark.parametrize(
    ("jobs", "runs", "expected"),
    [
        (36, 3, [[3] * 5] * 7 + [[3]]),  # 108 runs, never more than 16 at once
        (2, 40, [[16], [16], [8], [16], [16], [8]]),  # a job that is larger is cut
        (20, 1, [[1] * 16, [1] * 4]),
    ],
)
def test_few_networks_train_in_step_on_a_gpu(jobs, runs, expected):
    planned = networks(jobs, runs)
    bundles = list(in_step(planned, CUDA))
    assert list(map(sizes, bundles)) == expected
    assert keys(bundles) == keys([planned])


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_what_is_quick_trains_in_large_bundles(model):
    assert list(map(sizes, in_step(networks(50, 3, model), CUDA))) == [[3] * 40, [3] * 10]


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(grouping, "now", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.1, [16, 16, 16, 16]),  # quick: as many as are faster together
        (10.0, [16, 6, 6, 6]),  # a minute's worth
        (100.0, [16, 1, 1, 1]),  # one is the least
    ],
)
def test_later_bundles_are_as_large_as_a_minute_allows(seconds, expected, clock):
    """The first shows how long a run takes; half a minute of preparation is not a part of it."""
    jobs, measured, bundles = networks(64, 1), Pace(), []
    for bundle in in_step(jobs, CUDA, measured.most):
        bundles.append(bundle)
        watch = Stopwatch(measured, bundle[0], len(bundle), CPU)
        for epoch in range(100):
            clock[0] += len(bundle) * seconds / 100 + (0 if epoch else 30.0)
            watch.epoch_ends()
            watch.epoch_begins()
        assert not measured.over
    assert [len(bundle) for bundle in bundles[:4]] == expected
    assert keys(bundles) == keys([jobs])


def test_epochs_that_nobody_looks_at_count_as_what_they_take(clock):
    """Of 100 epochs 16 are looked at, which takes as long as training: 10 seconds a run, at the worst 20."""
    jobs, measured, looks = networks(64, 1), Pace(), {1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 56, 66, 77, 88, 100}
    watch = Stopwatch(measured, jobs[0], 16, CPU)
    for epoch in range(1, 101):
        clock[0] += 16 * (2 if epoch in looks else 1) * 10 / 116
        watch.epoch_ends()
        watch.epoch_begins()
    assert measured.most(jobs[0]) == 6
    assert watch.expected == pytest.approx(16 * 20 / 116)  # nothing that is begun may end too late


def test_the_last_bundles_are_as_large_as_the_time_allows(clock):
    (job, *_), ends = networks(1, 1), Pace(end=1000.0 + 100.0)
    ends.note(job, Measured(runs=16, first=20.0, epoch=16 * 0.05))  # five seconds a run, and a quarter more if alone
    found = []
    for now in (0.0, 40.0, 60.0, 70.0, 75.0):
        clock[0] = 1000.0 + now
        assert not ends.over
        found.append(sum(map(len, islice(in_step(networks(20, 1), CUDA, ends.most, ends.fitting), 1))))
    assert found == [12, 6, 2, 1, 0]
    assert ends.over


def planned_as_on_a_gpu(monkeypatch):
    """The CPU trains what a GPU would be given at once."""
    monkeypatch.setattr(worker, "in_step", lambda jobs, device, *more: in_step(jobs, CUDA, *more))


def test_a_group_of_networks_is_cut_to_the_time_left(folder, monkeypatch, capsys):
    """A run takes five seconds: after twelve there is time for four of the next twelve, and nothing is half done."""
    rates = {"lr": [1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3]}
    Path("small.toml").write_text(short_toml(columns=[CNN9], dtype="float32", grid=rates))
    planned_as_on_a_gpu(monkeypatch)
    Clock(monkeypatch)
    assert run(command("s.sqlite", "--max-time", "85s")) == 3
    assert "out of time: 16 of 24 runs are in s.sqlite, 8 are left" in capsys.readouterr().err
    assert not (folder / "s.sqlite.checkpoints").exists()
    assert run(command("s.sqlite", "--max-time", "21s")) == 3  # nothing is measured yet: one run begins
    assert "out of time: 19 of 24 runs are in s.sqlite, 5 are left" in capsys.readouterr().err
    assert not (folder / "s.sqlite.checkpoints").exists()
    assert run(command("s.sqlite")) == 0
    assert run(command("whole.sqlite")) == 0
    assert table("s.sqlite") == table("whole.sqlite")


def images_of_digits(monkeypatch, *options):
    """Run the queue of image trials, of one setting: four networks at one learning rate, then at another."""
    spec = {"metrics": ["accuracy", "balanced_accuracy", "minority_recall"], "select": "label-free"}
    tables = [{"title": title, **spec} for title in ("paper", "fair")]
    Path("small.toml").write_text(suite_toml(columns=[CNN9], tables=tables, dtype="float32", **FEW))
    monkeypatch.setattr("wcll.cli.paper.load_suite", lambda name: load_suite("small.toml"))
    monkeypatch.setattr("wcll.cli.paper.IMAGES", ())
    return run(["paper", "run", "images", "--trials", "1", "--processes", "1", "--store", "s.sqlite", *options])


def test_the_queue_cuts_a_group_by_what_the_stage_before_took(folder, monkeypatch, capsys):
    planned_as_on_a_gpu(monkeypatch)
    Clock(monkeypatch, seconds=100.0)
    assert images_of_digits(monkeypatch, "--max-time", "3502s") == 3  # four runs take 2000 seconds
    assert "out of time: 2 of 4 runs are in s.sqlite, 2 are left" in capsys.readouterr().err
    assert not (folder / "s.sqlite.checkpoints").exists()
    assert images_of_digits(monkeypatch) == 0


def test_the_queue_counts_what_the_store_holds(folder, monkeypatch, capsys):
    """Also of runs that are in result files by now."""
    Clock(monkeypatch, seconds=100.0)
    assert images_of_digits(monkeypatch, "--results", "parts", "--max-time", "3602s") == 3
    assert "out of time: 3 of 4 runs are in s.sqlite, 1 are left" in capsys.readouterr().err
    assert images_of_digits(monkeypatch, "--results", "parts", "--dry-run") == 0
    assert "4 runs, 3 of them in s.sqlite, 1 left" in capsys.readouterr().out
    assert images_of_digits(monkeypatch, "--results", "parts") == 0
    assert "4 runs, 3 of them in s.sqlite" in capsys.readouterr().err
    assert images_of_digits(monkeypatch, "--results", "parts") == 0
    assert "runs" not in capsys.readouterr().err


def test_a_dry_run_of_the_queue_measures_a_network_once(folder, monkeypatch, capsys):
    """On a CPU that takes seconds, and the queue has many stages and settings of one network."""
    measured, train = [], estimate.train

    def watched(jobs, *rest, **more):
        measured.append(jobs)
        return train(jobs, *rest, **more)

    monkeypatch.setattr(estimate, "train", watched)
    assert images_of_digits(monkeypatch, "--dry-run") == 0
    assert capsys.readouterr().out.count("about ") == 2  # stages
    assert len(measured) == 2  # a short and a longer training


def test_only_what_needs_it_is_timed():
    (network,), (linear,) = networks(1, 1), networks(1, 1, "linear")
    free, limited = Pace(), Pace(end=grouping.now() + 60)
    assert [free.watch(job, 1, CUDA) is None for job in (network, linear)] == [False, True]
    assert [free.watch(job, 1, CPU) is None for job in (network, linear)] == [True, True]
    assert None not in [limited.watch(job, 1, CPU) for job in (network, linear)]


def test_what_was_begun_together_goes_on_together():
    """As it was, whatever other bundles would be made now; unless a part of it is done, or jobs are smaller now."""
    jobs = networks(4, 4)
    first, second, third, fourth = (list(job.keys) for job in jobs)
    begun = [[first[:3], second], [third[1:]]]
    bundles, others = as_begun(jobs, begun)
    assert [[list(job.keys) for job in bundle] for bundle in bundles] == begun
    assert [list(job.keys) for job in others] == [first[3:], third[:1], fourth]
    for changed in ([[*first, second[0]]], [["unknown"]], [first[:2], [*first[:1], "x"]], [[]], []):
        assert as_begun(jobs, [changed]) == ([], jobs)
