"""Images are normalised by what their models learn from, and by nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from small import suite_toml, trial
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments import parse_suite
from wcll.experiments.grouping import Job, plan
from wcll.experiments.task import make_task
from wcll.experiments.train import run_group, train
from wcll.experiments.worker import Tasks, run_jobs
from wcll.training.augmentation import Standard

CPU = torch.device("cpu")
NETWORK = {"model": {"name": "cnn9", "width": 2}, "n_majority": 20, "normalise": "standard", "epochs": 3}


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


@pytest.mark.parametrize("shape", [(40, 8, 9), (40, 1, 8, 9), (40, 3, 8, 9)], ids=str)
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_every_channel_has_mean_0_and_standard_deviation_1(shape, kind):
    rng = np.random.default_rng(0)
    x = (rng.random(shape) * 100 + 20 * np.arange(shape[1] if len(shape) == 4 else 1).reshape(-1, 1, 1)).astype(kind)
    standard = Standard.of(torch.from_numpy(x), 255.0)
    axes, numbers = (0, 1, 2) if len(shape) == 3 else (0, 2, 3), x.astype(np.float64) / 255
    assert standard.mean.flatten().numpy() == pytest.approx(numbers.mean(axes), rel=1e-12)
    assert standard.std.flatten().numpy() == pytest.approx(numbers.std(axes), rel=1e-12)
    made = standard(torch.from_numpy(numbers)).numpy()
    assert made.shape == shape
    assert made.mean(axes) == pytest.approx(0, abs=1e-12)
    assert made.std(axes) == pytest.approx(1)


def test_a_channel_without_spread_becomes_0():
    x = torch.full((5, 2, 8, 8), 7, dtype=torch.uint8)
    x[:, 1] = torch.randint(0, 256, (5, 8, 8), dtype=torch.uint8)
    made = Standard.of(x, 255.0)(x.double() / 255)
    assert made[:, 0].abs().max() == 0
    assert made[:, 1].std(correction=0) == pytest.approx(1)


def test_a_run_is_that_of_images_that_were_normalised_beforehand(digits):
    """With the mean and spread of its training samples: a data set of such numbers gives the same row."""
    one = trial(**NETWORK)
    task = make_task(one, digits)
    standard = Standard.of(task.train.x, 16.0)

    def made(x):
        return standard(torch.as_tensor(x).double() / 16.0)

    beforehand = dataclasses.replace(
        task,
        **{name: dataclasses.replace(getattr(task, name), x=made(getattr(task, name).x)) for name in ("train", "valid", "test")},
        scale=1.0,
    )  # fmt: skip
    (row,) = run_jobs([(Job((one,)), task)], CPU)
    (same,) = run_jobs([(Job((dataclasses.replace(one, normalise=None),)), beforehand)], CPU)
    (plain,) = run_jobs([(Job((dataclasses.replace(one, normalise=None),)), task)], CPU)
    assert row.history["correct"] == same.history["correct"]
    assert row.history["log_likelihood"] == pytest.approx(same.history["log_likelihood"], rel=1e-9)
    assert row.history["train_loss"] != pytest.approx(plain.history["train_loss"], rel=1e-9)


def test_test_and_held_out_images_change_no_parameter(digits):
    one = trial(**NETWORK)
    task = make_task(one, digits)
    dark = dataclasses.replace(
        task,
        valid=dataclasses.replace(task.valid, x=torch.zeros_like(task.valid.x)),
        test=dataclasses.replace(task.test, x=torch.zeros_like(task.test.x)),
    )
    first, second = (train([(Job((one,)), each.view)], CPU)[0].parameters for each in (task, dark))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_samples_that_are_drawn_again_count_again(digits):
    one = trial(**NETWORK, resample="over")
    task = make_task(one, digits)
    standard = run_group(Job((one,)), task.view).standard
    assert standard.mean.item() == pytest.approx(task.train.x.double().mean() / 16)


def test_the_upper_limit_is_normalised_likewise(digits):
    one = trial(**NETWORK, loss="cross-entropy")
    task = make_task(one, digits)
    assert run_group(Job((one,)), task.view).standard.mean.item() == pytest.approx(task.train.x.double().mean() / 16)


def test_a_few_samples_to_try_are_normalised_as_all(digits):
    one = trial(**NETWORK)
    whole = run_group(Job((one,)), make_task(one, digits).view)
    assert whole.head(8).standard == whole.standard


def test_a_grid_may_try_both_on_the_same_data():
    assert "normalise" not in trial().config()
    assert trial(normalise="none", model="cnn9") == trial(model="cnn9")
    columns = [{"title": name, "model": name} for name in ("cnn9", "resnet18")]
    text = suite_toml(columns=columns, grid={"lr": [1e-3], "normalise": ["none", "standard"]})
    jobs = plan(list(parse_suite(text, "small").all_trials([0])), together=64)
    assert {job.first.normalise for job in jobs} == {None, "standard"}
    assert all(len({trial.normalise for trial in job.trials}) == 1 for job in jobs)
    assert len({job.data for job in jobs}) == 2  # with true labels, and without


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_it_is_for_images(model):
    with pytest.raises(
        InputError, match=rf"normalise: expected 'none' for model '{model}', got 'standard'; it is for images"
    ):
        trial(normalise="standard", model=model)


def test_features_are_refused_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("table.npz", x=rng.random((90, 4)), y=np.arange(90) % 3)
    Path("s.toml").write_text(
        'trials = 1\n[settings]\ndataset = "table.npz"\nlr = 1e-2\nepochs = 2\nmodel = "cnn9"\nnormalise = "standard"\n'
        '[[rows]]\nloss = "wcll"\n'
    )
    assert run(["run", "s.toml", "--store", "s.sqlite"]) == 2
    error = capsys.readouterr().err
    assert "expected images" in error
    assert "Traceback" not in error


def test_runs_of_other_data_have_means_of_their_own(digits):
    """Two seeds, each by itself and after the other."""
    tasks = Tasks(lambda name: digits)
    jobs = [Job((trial(**NETWORK, seed=seed),)) for seed in (0, 1)]
    standards = [run_group(job, tasks.of(job).view).standard for job in jobs]
    assert not torch.equal(standards[0].mean, standards[1].mean)
