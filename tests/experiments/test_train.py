"""Training and what it leaves behind: it sees no true label, and a run does not depend on its neighbours."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

from small import SMALL, run_suite, trial
from wcll.datasets import Dataset, Split, load_dataset
from wcll.evaluation.label_free import complementary_log_likelihood
from wcll.evaluation.metrics import Confusion
from wcll.evaluation.selection import select
from wcll.exceptions import InputTypeError
from wcll.experiments import parse_suite
from wcll.experiments import train as training
from wcll.experiments.grouping import Job, plan
from wcll.experiments.task import Clean, Ordinary, Weak, make_task
from wcll.experiments.train import run_group, train
from wcll.experiments.worker import Tasks, run_jobs

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def suite():
    return parse_suite(SMALL, "small")


@pytest.fixture(scope="module")
def rows(suite):
    return run_suite(suite, [0], CPU)


def trained(one, task, **options):
    (recording,) = train([(Job((one,)), task.view)], CPU, **options)
    return recording


@pytest.mark.parametrize("loss", ["wcll", "forward", "free"])
@pytest.mark.parametrize("pi", ["recovered", "declared"])
@pytest.mark.parametrize("plain", [False, True], ids=["engine", "plain"])
def test_corrupted_true_labels_change_no_parameter_and_no_selection(digits, loss, pi, plain):
    one = trial(loss=loss, assume="inverse-size", judge="inverse-size", pi=pi)
    clean = trained(one, make_task(one, digits), plain=plain)
    own = Split(digits.train.x.copy(), digits.train.y.copy())
    task = make_task(one, dataclasses.replace(digits, train=own))
    own.y[:] = np.random.default_rng(0).integers(0, 10, len(own.y))  # all that is left of the truth
    task.test.y[:] = 0
    corrupted = trained(one, task, plain=plain)
    assert clean.parameters.keys() == corrupted.parameters.keys()
    assert all(torch.equal(value, corrupted.parameters[name]) for name, value in clean.parameters.items())
    scores = [[-float(score[0, 0]) for score in recording.scores] for recording in (clean, corrupted)]
    assert scores[0] == scores[1]
    assert select([scores[0]]) == select([scores[1]])
    assert all(torch.equal(a, b) for a, b in zip(clean.tables.values(), corrupted.tables.values(), strict=True))


def test_training_cannot_be_given_true_labels(digits):
    one = trial()
    task = make_task(one, digits)
    assert task.limit is None  # not even made
    assert {field.name for field in dataclasses.fields(Weak)} == {"x", "ybar", "groups"}
    ordinary = dataclasses.replace(task, limit=Ordinary(task.train.x, task.train.ybar))
    with pytest.raises(InputTypeError, match="data: expected complementary labels for loss 'wcll', got Ordinary"):
        trained(one, ordinary)
    view = dataclasses.replace(task.view, data=Clean(task.train.x, task.train.ybar))
    with pytest.raises(InputTypeError, match="data: expected complementary labels for loss 'wcll', got Clean"):
        train([(Job((one,)), view)], CPU)


def test_the_training_module_knows_no_container_of_test_labels():
    tree = ast.parse(Path(inspect.getfile(training)).read_text())
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not {"Clean", "Task", "Confusion"} & (names | imported)


def test_logit_adjustment_finds_the_rare_classes_that_cross_entropy_misses(digits):
    rare = {"imbalance": "step", "p": 10, "minority": None, "labels": "uniform", "epochs": 20}
    for seed in range(3):
        plain, adjusted = (trial(loss=loss, seed=seed, **rare) for loss in ("cross-entropy", "logit-adjusted"))
        task = make_task(plain, digits)
        shares = run_group(Job((adjusted,)), task.view).losses[0].context.marginal
        assert np.allclose(shares, task.declared.sizes / task.declared.sizes.sum())  # of y, not of ybar
        rows = run_jobs([(Job((plain, adjusted)), task)], CPU)
        assert rows[1].metrics["minority_recall"] > rows[0].metrics["minority_recall"] + 0.1
        assert rows[1].metrics["balanced_accuracy"] > rows[0].metrics["balanced_accuracy"]


def test_rows_hold_what_the_predictions_were(digits):
    one = trial(judge="inverse-size")
    task = make_task(one, digits)
    recording = trained(one, task)
    (row,) = run_jobs([(Job((one,)), task)], CPU)
    last = recording.predicted[-1][0].numpy()
    assert last.dtype == np.uint8
    confusion = Confusion.of(task.test.y, last.astype(np.int64), 10)
    assert row.metrics["accuracy"] == pytest.approx(confusion.accuracy)
    assert row.metrics["balanced_accuracy"] == pytest.approx(confusion.balanced_accuracy)
    assert row.metrics["macro_f1"] == pytest.approx(confusion.macro_f1)
    assert row.metrics["minority_recall"] == pytest.approx(confusion.recall[0])
    for k, recall in enumerate(confusion.recall):
        assert row.value(f"recall_{k}", one.epochs) == pytest.approx(recall)
    assert np.isnan(row.value("recall_10", one.epochs))  # there is no such class
    assert row.history["confusion"][-1] == confusion.counts.tolist()
    assert np.sum(row.history["held_out"][0]) == len(task.valid.ybar)
    assert row.curve("accuracy")[-1] == pytest.approx(confusion.accuracy)
    weight, bias = recording.parameters["layer.weight"][0], recording.parameters["layer.bias"][0]
    logits = (task.valid.x.double() / task.scale).flatten(1) @ weight.T + bias
    expected = complementary_log_likelihood(task.valid.ybar, logits.softmax(-1).numpy(), task.judge.transition)
    assert (row.history["log_likelihood"][-1], row.history["log_likelihood_se"][-1]) == pytest.approx(expected)
    data = {"fingerprint": digits.fingerprint, "official": True, "stamp": "", "classes": list("0123456789")}
    assert row.provenance["data"] == data
    assert row.provenance["seconds"] > 0


def test_together_equals_alone(suite, rows):
    for job in plan(list(suite.all_trials([0])), together=1)[::5]:
        (alone,) = run_jobs([(job, Tasks(load_dataset).of(job))], CPU)
        other = rows[alone.key]
        assert alone.history["correct"] == other.history["correct"]
        assert alone.held_out_scores() == pytest.approx(other.held_out_scores(), abs=1e-10)


def test_losses_without_probabilities_are_judged_by_the_risk(rows):
    by_loss = {row.config["loss"]: row for row in rows.values()}
    assert by_loss["pc"].history["log_likelihood"] is None
    assert not by_loss["pc"].by_likelihood
    assert np.isfinite(by_loss["pc"].held_out_scores()).all()
    assert by_loss["wcll"].held_out_scores()[0] == -by_loss["wcll"].history["log_likelihood"][0]


def test_many_classes_are_recorded_whole():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), 4)
    data = Dataset("many", tuple(map(str, range(300))), Split(rng.random((1200, 4)), y), Split(rng.random((1200, 4)), y),
                   1.0, True, "x", "here")  # fmt: skip
    one = trial(
        imbalance="none", minority=None, p=None, n_majority=2, labels="uniform", epochs=1, validation=0.3, loss="log"
    )
    recording = trained(one, make_task(one, data))
    assert recording.predicted[0].dtype == torch.int32
