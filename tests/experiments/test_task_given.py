"""Labels that are given: nothing is drawn, true labels decide nothing, and what they tell is for comparison only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from small import trial
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments.grouping import Job
from wcll.experiments.task import make_task
from wcll.experiments.worker import run_jobs
from wcll.labels import make_complementary

CPU = torch.device("cpu")
GIVEN = {"labels": "given", "imbalance": "none", "p": None, "minority": None, "n_majority": None, "loss": "log"}


def run_one(one, data):
    """Draw and train."""
    return run_jobs([(Job((one,)), make_task(one, data))], CPU)


@pytest.fixture
def labelled(digits):
    ybar = make_complementary(digits.train.y, random_state=0)
    return replace(digits, train=replace(digits.train, ybar=ybar))


def test_samples_keep_the_labels_that_they_have(labelled):
    task = make_task(trial(**GIVEN), labelled)
    whole = labelled.train
    by_image = {image.tobytes(): label for image, label in zip(whole.x, whole.ybar, strict=True)}
    for part in (task.train, task.valid):
        assert all(by_image[x.numpy().tobytes()] == label for x, label in zip(part.x, part.ybar, strict=True))
    parts = [len(task.train.ybar), len(task.valid.ybar), len(task.test.y)]
    assert sum(parts) == len(whole)
    assert parts[1] == pytest.approx(parts[0] / 9, abs=2)
    (row,) = run_jobs([(Job((trial(**GIVEN),)), task)], CPU)
    assert row.metrics["accuracy"] > 0.3


def test_true_labels_change_nothing_that_is_trained_or_held_out(labelled):
    test = replace(labelled.train.take(np.arange(200)), ybar=None)
    known = replace(labelled, test=test)
    hidden = replace(known, train=replace(known.train, y=np.full_like(known.train.y, -1)))
    shuffled = replace(known, train=replace(known.train, y=known.train.y[::-1].copy()))
    tasks = [make_task(trial(**GIVEN), data) for data in (known, hidden, shuffled)]
    for task in tasks[1:]:
        for part, other in ((task.train, tasks[0].train), (task.valid, tasks[0].valid)):
            assert torch.equal(part.x, other.x)
            assert np.array_equal(part.ybar, other.ybar)
    assert tasks[1].declared.transition is None
    assert np.abs(tasks[0].declared.transition.sum(axis=1) - 1).max() < 1e-9


def test_several_given_labels_and_groups(labelled):
    rng = np.random.default_rng(0)
    mask = make_complementary(labelled.train.y, n_labels=3, random_state=0)
    groups = rng.integers(0, 60, len(labelled.train))
    data = replace(labelled, train=replace(labelled.train, ybar=mask, groups=groups))
    one = trial(**{**GIVEN, "loss": "forward"}, folds=5)
    task = make_task(one, data)
    assert task.train.ybar.shape[1] == 10
    where = {image.tobytes(): group for image, group in zip(data.train.x, groups, strict=True)}
    sides = [{where[x.numpy().tobytes()] for x in part.x} for part in (task.train, task.valid, task.test)]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]


def test_folds_take_turns_and_cover_all(labelled):
    tested = [make_task(trial(**GIVEN, folds=5, seed=seed), labelled).test.x for seed in range(6)]
    assert torch.equal(tested[0], tested[5])
    images = torch.cat(tested[:5]).flatten(1)
    assert len(images) == len(labelled.train)
    assert len(images.unique(dim=0)) == len(torch.as_tensor(labelled.train.x).flatten(1).unique(dim=0))


def test_what_cannot_be_is_one_line(labelled, digits):
    hidden = replace(labelled, train=replace(labelled.train, y=np.full_like(labelled.train.y, -1)))
    both = replace(hidden, test=replace(digits.train.take(np.arange(50)), ybar=None))
    for changes, data, message in (
        ({}, digits, "expected complementary labels, for labels = 'given', got none"),
        ({}, hidden, "expected true labels of test samples"),
        ({"loss": "forward", "assume": "true"}, both, "expected true labels of every training sample"),
        ({"loss": "cross-entropy"}, both, "expected true labels of all samples, for loss 'cross-entropy', got some"),
        ({"assume": "pairs", "pairs": 5}, both, "pairs: expected at most the 0 training samples whose class is known"),
        ({"folds": 5}, both, "folds: expected a data set without a test set of its own"),
        ({"folds": 5000}, labelled, "folds: expected at most 1797"),
    ):
        with pytest.raises(InputError) as raised:
            run_one(trial(**{**GIVEN, **changes}), data)
        assert message in str(raised.value)
    for changes, message in (
        ({"noise": 0.1}, "noise: expected none for labels = 'given', which are taken as they are, got 0.1"),
        ({"n_majority": 5}, "n_majority: expected none for labels = 'given'"),
        ({"labels_per_sample": 2}, "labels_per_sample: expected none for labels = 'given'"),
        ({"loss": "wcll", "pi": "declared"}, "pi: expected 'recovered' or 'observed' for labels = 'given'"),
        ({"folds": 3, "test_share": 0.2}, "test_share: expected none beside folds"),
    ):
        with pytest.raises(InputError) as raised:
            trial(**{**GIVEN, **changes})
        assert message in str(raised.value)


SUITE = """
trials = 2

[settings]
dataset = "own.npz"
labels = "given"
judge = "own"
lr = 0.05
epochs = 4
folds = 2

[[rows]]
loss = "log"

[[rows]]
title = "popularity"
loss = "forward"
assume = "popularity"

[[rows]]
title = "few pairs"
loss = "forward"
assume = "pairs"
pairs = 100
"""


def test_a_suite_over_a_users_own_file(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    x = np.eye(3)[y] + 0.1 * rng.standard_normal((300, 3))
    ybar = (y[:, None] + rng.permuted(np.tile([1, 2], (300, 1)), axis=1)[:, :1]) % 3
    np.savez(tmp_path / "own.npz", x=x, y=y, ybar=ybar)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(SUITE)
    assert load_dataset("own.npz").train.ybar.shape == (300,)
    assert run(["run", "own.toml", "--store", "own.sqlite"]) == 0
    said = capsys.readouterr().out
    for row in ("log", "popularity", "few pairs"):
        assert row in said
    assert run(["report", "own.toml", "--store", "own.sqlite", "--out", "own.html"]) == 0
    assert "100 true pairs" in (tmp_path / "own.html").read_text()
    assert run(["results", "--store", "own.sqlite", "export", "own.json"]) == 0
    assert run(["results", "--store", "other.sqlite", "import", "own.json"]) == 0
