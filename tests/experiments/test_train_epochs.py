"""Runs that are looked at at the checkpoints only: the same figures there, none elsewhere, and all that reads them copes."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from small import TABLE, suite_toml, trial
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.evaluation import checkpoints
from wcll.exceptions import InputError
from wcll.experiments import Store, Trial, parse_suite
from wcll.experiments import run as estimate
from wcll.experiments.checkpoint import Checkpoints
from wcll.experiments.grouping import Job, Pace, now, plan
from wcll.experiments.worker import Tasks, need_of, run_jobs
from wcll.paper.comparison import Kept, keep

CPU = torch.device("cpu")
EPOCHS = 24
COMPARED = checkpoints(EPOCHS)
MODELS = {
    "linear": {"model": "linear"},
    "mlp": {"model": {"name": "mlp", "hidden": 8, "dropout": 0.2}},
    "cnn9": {"model": {"name": "cnn9", "width": 2}, "dtype": "float32", "n_majority": 20},
}
ORACLE = {"title": "Oracle", "select": "oracle"}
SELDOM = suite_toml(trials=1, epochs=EPOCHS, evaluate="checkpoints", tables=[TABLE, ORACLE])
JUDGED = ("log_likelihood", "log_likelihood_se")


def one(**changes):
    return trial(**{"epochs": EPOCHS, "loss": "forward", "assume": "inverse-size", **changes})


@pytest.fixture(scope="module")
def tasks():
    return Tasks(load_dataset)


@pytest.fixture(scope="module")
def both(tasks):
    """For every model a run that is looked at after every epoch, and one at the checkpoints."""
    found = {}
    for name, changes in MODELS.items():
        jobs = [Job((one(evaluate=when, **changes),)) for when in ("epochs", "checkpoints")]
        found[name] = [run_jobs([(job, tasks.of(job))], CPU)[0] for job in jobs]
    return found


def test_the_default_leaves_keys_as_they_were():
    assert one(evaluate="epochs") == one()
    assert "evaluate" not in one().config()
    assert one(evaluate="checkpoints").key != one().key
    assert list(one(evaluate="checkpoints").looked_at) == list(COMPARED)
    assert list(one().looked_at) == list(range(1, EPOCHS + 1))
    with pytest.raises(InputError, match=r"evaluate: expected .*checkpoints.* got 'seldom'"):
        one(evaluate="seldom")


@pytest.mark.parametrize("model", MODELS)
def test_at_the_checkpoints_figures_are_those_of_a_run_that_is_always_looked_at(model, both):
    always, seldom = both[model]
    assert seldom.epochs == EPOCHS
    assert seldom.looked_at == list(COMPARED)
    for name in set(always.history) - {"correct", *JUDGED}:
        assert always.history[name] == seldom.history[name], name
    for name in ("correct", *JUDGED):
        for epoch, (known, other) in enumerate(zip(always.history[name], seldom.history[name], strict=True), 1):
            assert other == (known if epoch in COMPARED else None), (name, epoch)
    assert always.metrics == seldom.metrics
    assert always.held_out_scores().tolist() == seldom.held_out_scores().tolist()
    assert not seldom.diverged


def test_what_nobody_looked_at_is_not_known(both):
    always, seldom = both["linear"]
    known = np.array(COMPARED) - 1
    for metric in ("accuracy", "balanced_accuracy", "minority_recall"):
        curve, whole = seldom.curve(metric), always.curve(metric)
        assert np.flatnonzero(~np.isnan(curve)).tolist() == known.tolist()
        assert curve[known].tolist() == whole[known].tolist()
        assert seldom.best_epoch(metric) == COMPARED[int(whole[known].argmax())]
        assert seldom.value(metric, 8) == always.value(metric, 8)
        with pytest.raises(InputError, match=rf"epoch: expected one after which {metric} is known: 1, 2, .*24, got 9"):
            seldom.value(metric, 9)
    assert seldom.best_epoch("macro_f1") == always.best_epoch("macro_f1")


def test_outputs_that_are_no_numbers_show_where_someone_looked(both):
    _, seldom = both["linear"]
    scores = [None] * EPOCHS
    assert replace(seldom, history={**seldom.history, "log_likelihood": scores}).diverged


def test_losses_without_probabilities_have_no_likelihoods(tasks):
    job = Job((one(loss="pc", evaluate="checkpoints"),))
    (row,) = run_jobs([(job, tasks.of(job))], CPU)
    assert row.history["log_likelihood"] is None
    assert not row.diverged
    assert len(row.held_out_scores()) == len(COMPARED)


@pytest.mark.parametrize(
    ("model", "ends"),
    [("linear", (1,)), ("linear", (4,)), ("linear", (23,)), ("mlp", (5, 7)), ("cnn9", (7, 9))],
    ids=str,
)
def test_ended_between_checkpoints_it_goes_on_as_if_never_ended(model, ends, both, tasks, tmp_path):
    """Fourth, seventh, ninth and twenty-third: nobody looks there. First and fifth: someone just did."""
    job = Job((one(evaluate="checkpoints", **MODELS[model]),))
    saved, rows = Checkpoints(tmp_path / "saved"), []
    for end in (*ends, None):
        pace, epochs = Pace(end=now() + 3600), []

        def progress(done, end=end, pace=pace, epochs=epochs):
            epochs.append(done)
            if sum(epochs) == end:
                pace.end = 0.0

        assert not rows
        rows = run_jobs([(job, tasks.of(job))], CPU, progress, checkpoints=saved, pace=pace)
        assert sum(epochs) == (end or EPOCHS)
    assert rows[0].history == both[model][1].history


def test_runs_of_both_kinds_do_not_train_together():
    trials = [one(), one(evaluate="checkpoints"), one(loss="wcll", evaluate="checkpoints")]
    assert [len(job.trials) for job in plan(trials, together=64)] == [1, 2]


def test_less_memory_is_needed(tasks):
    always, seldom = (Job((one(evaluate=when),)) for when in ("epochs", "checkpoints"))
    view = tasks.of(always).view
    fewer = (EPOCHS - len(COMPARED)) * len(view.unlabelled)
    assert need_of(always, view, CPU).per_run - need_of(seldom, view, CPU).per_run == fewer


@pytest.mark.parametrize("batch_size", [64, 256])
def test_a_dry_run_counts_the_looks_that_there_are(batch_size, tasks, monkeypatch):
    """With two steps an epoch nothing tells a step from a look: then all epochs are taken to be alike."""
    moment, step, look = [0.0], 0.02, 0.3
    job = Job((one(epochs=100, batch_size=batch_size, evaluate="checkpoints"),))
    steps = len(tasks.of(job).view.data.x) // batch_size

    def train(jobs, device, *, progress=lambda done: None, samples):
        progress(0)
        for _ in range(jobs[0][0].first.epochs):
            moment[0] += (samples // batch_size) * step + look
            progress(1)

    monkeypatch.setattr(estimate, "train", train)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: moment[0])
    looks = 16 if steps > estimate.FIRST else 100
    assert estimate.estimate([job], tasks, CPU).seconds == pytest.approx(100 * steps * step + looks * look)


def test_everything_that_reads_rows_copes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SELDOM)
    assert run(["run", "small.toml", "--store", "s.sqlite"]) == 0
    assert "only the epochs at which models are compared were looked at" in capsys.readouterr().out
    for name in ("page.html", "table.csv", "table.tex", "table.md"):
        assert run(["report", "small.toml", "--store", "s.sqlite", "--out", name]) == 0
        text = Path(name).read_text()
        assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    curve = re.search(r'<polyline class="own" points="([^"]*)"', Path("page.html").read_text())
    assert curve
    assert len(curve[1].split()) == len(COMPARED)
    assert run(["results", "--store", "s.sqlite", "--where", "evaluate=checkpoints"]) == 0
    for name in ("rows.json", "rows.csv"):
        assert run(["results", "export", name, "--store", "s.sqlite"]) == 0
    assert {line["evaluate"] for line in csv.DictReader(Path("rows.csv").read_text().splitlines())} == {"checkpoints"}
    assert run(["results", "import", "rows.json", "--store", "other.sqlite"]) == 0
    keys = [t.key for t in parse_suite(SELDOM, "small").all_trials()]
    with Store(Path("s.sqlite")) as first, Store(Path("other.sqlite")) as second:
        assert list(first.rows(keys)) == list(second.rows(keys))


def refused(row, capsys, **changes):
    changed = {**json.loads(json.dumps(vars(row))), "history": {**row.history, **changes}}
    Path("rows.json").write_text(json.dumps([changed]))
    code = run(["results", "import", "rows.json", "--store", "new.sqlite"])
    error = capsys.readouterr().err
    assert code == 2
    assert error.count("\n") == 1
    return error


def test_what_the_settings_do_not_say_is_refused(both, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    always, seldom = both["linear"]
    correct = seldom.history["correct"]
    assert "history.correct: expected counts of 24 epochs" in refused(always, capsys, correct=correct)
    assert "history.correct: expected counts of" in refused(seldom, capsys, correct=always.history["correct"])
    assert "history.correct: expected 24 lists" in refused(seldom, capsys, correct=correct[:-1])
    assert "history.correct: expected 24 lists" in refused(seldom, capsys, correct=None)
    for name in JUDGED:
        assert f"history.{name}: expected none where nobody looked" in refused(
            seldom, capsys, **{name: always.history[name]}
        )


def test_a_result_file_keeps_what_is_known(both):
    _, seldom = both["linear"]
    kept = keep(seldom, curves=1)
    lines = json.loads(json.dumps(kept.to_list(), allow_nan=False))
    again = Kept.from_list(lines)
    assert np.array_equal(again.recalls, kept.recalls, equal_nan=True)
    assert replace(again, recalls=()) == replace(kept, recalls=())
    assert np.flatnonzero(~np.isnan(again.recalls)).tolist() == [epoch - 1 for epoch in COMPARED]
    assert again.best in COMPARED
    with pytest.raises(ValueError, match="does not tell its end"):
        Kept.from_list([*lines[:-1], [*lines[-1][:-1], None]])


def test_a_setting_that_is_none_is_not_part_of_a_key():
    eq9 = {"name": "wcll", "reading": "eq9"}
    assert Trial.of({"dataset": "digits", "loss": eq9, "lr": 1e-2, "seed": 0}).key == "7aabfbcdd50eee9dd0b183df"
