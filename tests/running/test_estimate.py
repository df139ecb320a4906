"""How long a suite will take, measured by a few steps."""

from __future__ import annotations

import pytest
import torch

from small import trial
from wcll.datasets import load_dataset
from wcll.running import estimate
from wcll.running.execute import Tasks
from wcll.running.plan import Job

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
