"""How long a suite will take, measured by a few steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from small import trial
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments import run as estimate
from wcll.experiments import worker
from wcll.experiments.grouping import Job
from wcll.experiments.worker import Tasks

CPU = torch.device("cpu")


@pytest.mark.parametrize(("prepare", "record"), [(0.1, 0.0), (30.0, 0.0), (5.0, 4.0)])
def test_preparation_is_not_counted_for_every_epoch(monkeypatch, prepare, record):
    """An engine is made once; on a GPU, the first steps of all are slow as well."""
    now, step, look, job = [0.0], 0.02, 0.3, Job((trial(epochs=100),))
    tasks = Tasks(load_dataset)
    steps = len(tasks.of(job).view.data.x) // 64

    def train(jobs, device, *, progress=lambda done: None, samples):
        now[0] += prepare
        progress(0)
        for epoch in range(jobs[0][0].first.epochs):
            now[0] += (0 if epoch else record) + (samples // 64) * step + look
            progress(1)

    monkeypatch.setattr(estimate, "train", train)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: now[0])
    cost = estimate.estimate([job], tasks, CPU)
    assert cost.seconds == pytest.approx(prepare + record + 100 * (steps * step + look), rel=0.01)


def test_networks_for_images_are_measured_once_by_few_samples(monkeypatch):
    """On a CPU a step of all runs would take minutes: one run's step of few samples tells what a sample costs."""
    now, sample, asked = [0.0], 0.01, []
    runs = [trial(model="cnn9", loss=loss, epochs=100, batch_size=64) for loss in ("wcll", "pc")]
    jobs = [Job(tuple(runs)), Job(tuple(replace(run, p=3.0, imbalance="eq6", minority=(0,)) for run in runs))]

    def train(jobs, device, *, progress=lambda done: None, samples):
        ((job, _),) = jobs
        asked.append((len(job.trials), samples))
        now[0] += 7  # which preparation takes
        progress(0)
        for _ in range(job.first.epochs):
            now[0] += samples * sample
            progress(1)

    monkeypatch.setattr(estimate, "train", train)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: now[0])
    tasks = Tasks(load_dataset)
    cost = estimate.estimate(jobs, tasks, CPU)
    assert asked == [(1, 32), (1, 96)]
    views = [tasks.of(job).view for job in jobs]
    each = [len(view.data.x) + (len(view.unlabelled) + len(view.valid.x)) / 3 for view in views]
    assert cost.seconds == pytest.approx(2 * 100 * sample * sum(each), rel=0.01)


def counting(seen):
    """A training of which every run takes a second an epoch."""

    def train(jobs, device, *, progress=lambda done: None, samples):
        runs = len(jobs[0][0].trials)
        seen.append(runs)
        for epoch in range(1 + jobs[0][0].first.epochs):
            estimate.time.now += runs if epoch else 0
            progress(runs)

    return train


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


def test_no_more_runs_are_measured_than_fit(monkeypatch):
    """All at once would take the memory of the whole machine."""
    job = Job(tuple(trial(lr=lr, epochs=100) for lr in (1e-3, 2e-3, 3e-3, 4e-3, 5e-3)))
    tasks, seen = Tasks(load_dataset), []
    need = worker.need_of(job, tasks.of(job).view, CPU)
    monkeypatch.setattr(estimate, "available", lambda device: need.of(2), raising=False)
    monkeypatch.setattr(estimate, "time", Clock())
    monkeypatch.setattr(estimate, "train", counting(seen))
    cost = estimate.estimate([job], tasks, CPU)
    assert set(seen) == {2}
    assert cost.seconds == pytest.approx(500)
    assert cost.bytes == need.of(2)
    monkeypatch.setattr(estimate, "available", lambda device: need.of(1) - 1)
    with pytest.raises(InputError, match=r"--memory: expected at least .*, which one run takes"):
        estimate.estimate([job], tasks, CPU)


def test_an_epoch_of_few_steps_is_measured_once(monkeypatch):
    job, seen = Job((trial(epochs=100, batch_size=500),)), []
    monkeypatch.setattr(estimate, "time", Clock())
    monkeypatch.setattr(estimate, "train", counting(seen))
    assert estimate.estimate([job], Tasks(load_dataset), CPU).seconds == pytest.approx(100)
    assert len(seen) == 1
