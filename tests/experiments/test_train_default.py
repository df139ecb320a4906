"""Runs whose loss is chosen: the classifier as users get it, in the tables of suites."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from small import FORWARD, LIMIT, LINEAR_MODEL, PC, WCLL, suite_toml, trial
from wcll import ComplementaryClassifier
from wcll.datasets import Split, load_dataset
from wcll.exceptions import InputError, InputTypeError
from wcll.experiments import Row, Store, parse_suite, train
from wcll.experiments.grouping import CHOOSING, Job, Pace, in_step, plan
from wcll.experiments.request import RunRequest
from wcll.experiments.row import check_names, check_row
from wcll.experiments.run import estimate, run
from wcll.experiments.task import Clean, make_task
from wcll.experiments.train import choose_and_train, stand_in
from wcll.experiments.worker import Tasks, check_jobs, execute, need_of, run_jobs
from wcll.report.result_tables import build_table, told_notes

CPU = torch.device("cpu")
QUICK = {"loss": "auto", "dtype": "float32", "budget": 200}
ROW = {"title": "auto", "loss": "auto", "budget": 200}


@pytest.fixture(scope="module")
def suite():
    return parse_suite(suite_toml(columns=[LINEAR_MODEL], rows=[ROW, WCLL, PC, FORWARD, LIMIT]), "small")


@pytest.fixture(scope="module")
def rows(suite):
    return run(suite, store=None, trials=2, device="cpu")


def own_row(suite, rows, seed=0):
    (one,) = suite.candidates(suite.columns[0], suite.rows[0], seed)
    return one, rows[one.key]


# What a suite says


def test_a_row_of_a_suite_is_one_run_a_trial_whatever_the_grid(suite, rows):
    one, row = own_row(suite, rows)
    assert one.auto
    assert one.lr is None
    assert len(rows) == 2 * (1 + 4 * 2)
    assert "lr" not in row.config
    assert row.config["loss_options"] == {}
    assert suite.candidates(suite.columns[0], suite.rows[0], 0, {"lr": 1e-2}) == [one]


def test_what_it_chooses_does_not_make_another_result():
    assert trial(**QUICK).key == trial(**QUICK, lr=0.5, epochs=7, assume="inverse-size", pi="declared").key
    assert trial(**QUICK).key != trial(**{**QUICK, "budget": 201}).key
    assert trial(**QUICK).key != trial(**QUICK, batch_size=32).key


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"lr": 0.1}, r"line 29: lr: expected none for loss 'auto', which chooses for itself, got 0\.1"),
        ({"epochs": 3}, "line 29: epochs: expected none for loss 'auto'"),
        ({"resample": "over"}, "resample: expected 'none' for loss 'auto', got 'over'"),
    ],
)
def test_what_a_row_of_it_cannot_have_is_said_with_its_line(setting, message):
    text = suite_toml(columns=[LINEAR_MODEL], rows=[WCLL, {"loss": "auto", **setting}, FORWARD, LIMIT])
    with pytest.raises(InputError, match=message):
        parse_suite(text, "own")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "wcll", "budget": 5}, "budget: expected none but for loss 'auto', got 5"),
        ({"loss": {"name": "auto", "balance": 1.0}}, "option of loss 'auto'"),
        ({"loss": "wcll", "lr": None}, "lr: expected a value, got none"),
        ({**QUICK, "budget": 0}, "budget: expected a whole number from 1"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(InputError, match=message):
        trial(**changes)


# What comes out


def test_it_is_the_classifier_on_all_labels_that_were_drawn(digits):
    one = trial(**QUICK)
    task = make_task(one, digits)
    recording = choose_and_train(one, task.view, CPU)
    x, ybar = (np.concatenate([getattr(part, name) for part in (task.train, task.valid)]) for name in ("x", "ybar"))
    model = ComplementaryClassifier(
        model="linear", batch_size=64, budget=200, classes=range(10), random_state=0, device="cpu"
    ).fit(np.float32(x).reshape(len(x), -1) / np.float32(task.scale), ybar)
    test = np.float32(task.test.x.numpy()).reshape(len(task.test.x), -1) / np.float32(task.scale)
    np.testing.assert_array_equal(recording.predicted[0][0].numpy(), model.predict(test))
    (score,) = (row["score"] for row in model.selection_ if row["chosen"])
    assert recording.scores[0][0, 0].item() == pytest.approx(score)
    np.testing.assert_allclose(recording.judges[0].transition, model.transition_)


def test_corrupted_true_labels_change_nothing(digits):
    one = trial(**QUICK)
    clean = choose_and_train(one, make_task(one, digits).view, CPU)
    own = Split(digits.train.x.copy(), digits.train.y.copy())
    task = make_task(one, dataclasses.replace(digits, train=own))
    own.y[:] = 3  # all that is left of the truth
    task.test.y[:] = 0
    corrupted = choose_and_train(one, task.view, CPU)
    assert all(torch.equal(value, corrupted.parameters[name]) for name, value in clean.parameters.items())
    assert torch.equal(clean.predicted[0], corrupted.predicted[0])


def test_it_cannot_be_given_true_labels(digits):
    one = trial(**QUICK)
    task = make_task(one, digits)
    view = dataclasses.replace(task.view, data=Clean(task.train.x, task.train.ybar))
    with pytest.raises(InputTypeError, match="data: expected complementary labels for loss 'auto', got Clean"):
        choose_and_train(one, view, CPU)


@pytest.mark.parametrize("asked", [None, {"name": "strong", "crop": 1}])
def test_networks_are_trained_as_the_trial_says(asked, digits, monkeypatch):
    given = {} if asked is None else {"training": asked}
    one = trial(**QUICK, model="cnn9", **given)
    seen = []
    monkeypatch.setattr(train, "ComplementaryClassifier", lambda **told: seen.append(told) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        choose_and_train(one, make_task(one, digits).view, CPU)
    assert seen[0]["training"] == (asked or {"name": "plain"})


def test_groups_stay_on_one_side(digits, monkeypatch):
    groups = np.arange(len(digits.train.y)) // 3
    grouped = dataclasses.replace(digits, train=Split(digits.train.x, digits.train.y, groups=groups))
    seen = []

    class Spy(ComplementaryClassifier):
        def fit(self, X, y, sample_weight=None, *, groups=None):
            seen.append((len(X), groups))
            return super().fit(X, y, sample_weight, groups=groups)

    monkeypatch.setattr(train, "ComplementaryClassifier", Spy)
    one = trial(**QUICK)
    task = make_task(one, grouped)
    choose_and_train(one, task.view, CPU)
    ((n, given),) = seen
    assert n == len(task.train.ybar) + len(task.valid.ybar)
    np.testing.assert_array_equal(given, np.concatenate([task.train.groups, task.valid.groups]))
    assert not set(task.train.groups) & set(task.valid.groups)


def test_every_selection_shows_its_one_epoch(suite, rows):
    _, row = own_row(suite, rows)
    assert row.epochs == 1
    assert row.checkpoints == [1]
    assert not row.diverged
    assert np.isfinite(row.held_out_scores()).all()
    (spec,) = suite.tables
    for select in ("last", "label-free", "oracle"):
        asked = dataclasses.replace(spec, metrics=("accuracy",), select=select, at=(("lr", 1e-2),))
        cell = build_table(suite, asked, rows, range(2)).cell("auto", "linear", "accuracy")
        assert cell.values[0] == row.metrics["accuracy"]
        assert len(cell.values) == 2


def test_tables_say_that_it_is_told_nothing(suite):
    for choice in (False, True):
        assert "told nothing; Q, neighbours and epoch are selected by the complementary labels: auto" in told_notes(
            suite, choice=choice
        )
    assert not any("auto" in line for line in told_notes(suite)[:-1])


def test_rows_can_be_kept_sent_and_read(suite, rows):
    _, row = own_row(suite, rows)
    again = Row(**row.to_dict())
    check_row(again)
    check_names(again)
    assert again.judge.transition_source in ("estimated", "assumed")


# How it is run


def test_it_is_alone_in_its_job(suite):
    jobs = plan(list(suite.all_trials([0, 1])), together=64)
    alone = [job for job in jobs if job.auto]
    assert [len(job.trials) for job in alone] == [1, 1]
    assert [job.epochs for job in alone] == [CHOOSING] * 2
    steps = list(in_step(jobs, torch.device("cuda")))
    assert all(len(step) == 1 for step in steps if step[0].auto)
    assert sorted(job.keys for step in steps for job in step) == sorted(job.keys for job in jobs)


def test_progress_counts_it(suite):
    heard = []
    run(suite, store=None, trials=1, device="cpu", progress=lambda done, total: heard.append((done, total)))
    assert heard[-1][0] == heard[-1][1] == CHOOSING + 4 * 2 * 12
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_what_is_in_the_store_is_not_trained_again(suite, tmp_path, monkeypatch):
    store = tmp_path / "r.sqlite"
    first = run(suite, store=store, trials=1, device="cpu")
    monkeypatch.setattr("wcll.experiments.worker.choose_and_train", None)
    again = run(suite, store=store, trials=1, device="cpu")
    assert {key: row.metrics for key, row in first.items()} == {key: row.metrics for key, row in again.items()}


def test_one_that_would_end_too_late_is_not_begun(tmp_path):
    jobs = plan([trial(**QUICK, seed=seed) for seed in range(3)], together=64)
    with Store(tmp_path / "r.sqlite") as store:
        late = RunRequest(store, device="cpu", pace=Pace(0.0))  # over since the machine was started
        execute(late, jobs, store, Tasks(load_dataset))
        done = [job for job in jobs if store.finished(job.keys)]
        assert len(done) == 1  # one unit at least, so that any call goes on
        execute(RunRequest(store, device="cpu"), jobs, store, Tasks(load_dataset))
        assert all(store.finished(job.keys) for job in jobs)


def test_it_is_tried_and_measured_before_any_training(digits):
    one = trial(**QUICK)
    job, tasks = Job((one,)), Tasks(load_dataset)
    check_jobs([job], tasks, CPU)
    view = tasks.of(job).view
    assert stand_in(one, view).loss == "forward"
    assert stand_in(trial(loss="auto"), view).epochs > stand_in(one, view).epochs
    assert estimate([job], tasks, CPU).seconds > 0
    assert need_of(job, view, CPU).of(1) > need_of(Job((trial(dtype="float32"),)), view, CPU).of(1)


def test_rows_of_one_job(digits):
    one = trial(**QUICK)
    (row,) = run_jobs([(Job((one,)), make_task(one, digits))], CPU)
    assert row.key == one.key
    assert row.provenance["together"] == 1
