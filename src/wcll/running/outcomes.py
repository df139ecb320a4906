"""Evaluation: what was recorded meets the true labels, after training, and becomes a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from wcll.evaluation import METRICS, checkpoints
from wcll.evaluation.label_free import tables_of
from wcll.labels import to_mask
from wcll.results.row import Row
from wcll.running.containers import Clean, Task
from wcll.running.train import Recording
from wcll.suites.trial import Trial


def outcomes(trials: Sequence[Trial], recording: Recording, task: Task, provenance: dict[str, Any]) -> list[Row]:
    """Join the predictions of every run with the true labels; the predictions themselves are dropped."""
    facts = {"sizes": task.declared.sizes.tolist(), **_counts(task)}
    compared, looked_at = checkpoints(trials[0].epochs), list(trials[0].looked_at)
    joined = _joined(recording, task.test, [looked_at.index(epoch) for epoch in compared], task.n_classes)
    recorded = _recorded(recording)
    rows = []
    for run, trial in enumerate(trials):
        history = {**facts, "judge": recording.judges[run].to_dict(), "checkpoints": list(compared)}
        history |= {name: None if values is None else values[run] for name, values in {**joined, **recorded}.items()}
        if trial.spec.link != "softmax":
            history |= {"log_likelihood": None, "log_likelihood_se": None}
        for name in ("correct", "log_likelihood", "log_likelihood_se"):
            history[name] = _by_epoch(history[name], looked_at, trial.epochs)
        row = Row(trial.key, trial.config(), {}, history, provenance)
        metrics = {metric: row.value(metric, trial.epochs) for metric in METRICS}
        rows.append(Row(trial.key, row.config, {k: v for k, v in metrics.items() if v == v}, history, provenance))
    return rows


def _counts(task: Task) -> dict[str, list[int]]:
    k = task.n_classes
    return {
        "train_labels": to_mask(task.train.ybar, k).sum(axis=0).tolist(),
        "test_sizes": np.bincount(task.test.y, minlength=k).tolist(),
    }


def _by_epoch(values: list[Any] | None, looked_at: Sequence[int], epochs: int) -> list[Any] | None:
    """One value an epoch, None where nobody looked."""
    known = None if values is None else dict(zip(looked_at, values, strict=True))
    return None if known is None else [known.get(epoch) for epoch in range(1, epochs + 1)]


def _joined(recording: Recording, test: Clean, compared: Sequence[int], n_classes: int) -> dict[str, list[Any]]:
    """Run by run: correct counts a class each time that it was looked at, and whole tables at those of ``compared``."""
    y = torch.as_tensor(test.y, device=recording.predicted[0].device)
    one_hot = (y.unsqueeze(-1) == torch.arange(n_classes, device=y.device)).float()
    correct = torch.stack([(predicted == y).float() @ one_hot for predicted in recording.predicted])  # whole numbers
    tables = torch.stack([tables_of(y, recording.predicted[i].long(), n_classes) for i in compared])
    return {"correct": _by_run(correct.long()), "confusion": _by_run(tables)}


def _recorded(recording: Recording) -> dict[str, list[Any] | None]:
    """Run by run: what training and selection left behind."""
    scores = torch.stack(recording.scores) if recording.scores else None
    tables = [table for _, table in sorted(recording.tables.items())]
    return {
        "train_loss": _numbers(torch.stack(recording.losses)),
        "log_likelihood": None if scores is None else _numbers(scores[..., 0]),
        "log_likelihood_se": None if scores is None else _numbers(scores[..., 1]),
        "held_out": _by_run(torch.stack(tables)) if tables else None,
    }


def _by_run(values: torch.Tensor) -> list[Any]:
    """(epochs, runs, ...) as lists, runs first."""
    lists: list[Any] = values.transpose(0, 1).tolist()
    return lists


def _numbers(values: torch.Tensor) -> list[list[float | None]]:
    return [[_finite(value) for value in run] for run in _by_run(values.double())]


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if math.isfinite(value) else None
