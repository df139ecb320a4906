"""Evaluation: what was recorded meets the true labels, after training, and becomes a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from wcll.checks import BoolArray, FloatArray, InputError, IntArray, choice
from wcll.evaluation import Confusion, Judge, checkpoints, zero_one_risk
from wcll.evaluation.confusion import tables_of
from wcll.experiments.containers import Clean, Task
from wcll.experiments.runner import Recording
from wcll.experiments.trial import Trial
from wcll.losses import LOSSES

HISTORY = (
    *("sizes", "judge", "train_labels", "test_sizes", "checkpoints", "correct", "confusion"),
    *("train_loss", "log_likelihood", "log_likelihood_se", "held_out"),
)
METRICS = ("accuracy", "balanced_accuracy", "minority_recall", "macro_f1")


@dataclass(frozen=True)
class Row:
    """One finished run: its choices, what it reached (fractions in [0, 1]), how, and where."""

    key: str
    config: dict[str, Any]
    metrics: dict[str, float]  #: of the last epoch
    history: dict[str, Any]  #: counts and scores by epoch and by checkpoint
    provenance: dict[str, Any]  #: seconds, versions, commit, device, data

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def check(self) -> None:
        """Fail with ValueError if it cannot be a row, for those that come from files."""
        parts = (self.config, self.metrics, self.history, self.provenance)
        if not isinstance(self.key, str) or not all(isinstance(part, dict) for part in parts):
            raise ValueError(f"the run {self.key}, which is not made of tables")
        needed = (HISTORY, self.history), (("seconds", "data"), self.provenance), (("loss", "seed"), self.config)
        lacking = [name for names, part in needed for name in names if name not in part]
        if lacking:
            raise ValueError(f"the run {self.key} without {', '.join(lacking)}")

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return len(self.history["correct"])

    def confusion(self, checkpoint: int) -> Confusion:
        """The test confusion at a checkpoint, counted from 0."""
        return Confusion(np.array(self.history["confusion"][checkpoint]))

    def curve(self, metric: str) -> FloatArray:
        """A metric after every epoch; macro-F1 needs whole tables, which are kept at checkpoints only."""
        recall = np.array(self.history["correct"]) / np.maximum(self.history["test_sizes"], 1)
        sizes = np.array(self.history["test_sizes"], dtype=np.float64)
        if choice("metric", metric, METRICS) == "accuracy":
            accuracy: FloatArray = recall @ (sizes / sizes.sum())
            return accuracy
        if metric == "macro_f1":
            raise InputError("metric", "one that is kept for every epoch", repr(metric))
        kept = sizes > 0 if metric == "balanced_accuracy" else (sizes > 0) & _rare(np.array(self.history["sizes"]))
        mean: FloatArray = recall[:, kept].mean(axis=1) if kept.any() else np.full(len(recall), np.nan)
        return mean

    def value(self, metric: str, epoch: int) -> float:
        """A metric after an epoch, counted from 1."""
        if metric != "macro_f1":
            return float(self.curve(metric)[epoch - 1])
        return self.confusion(self.history["checkpoints"].index(epoch)).macro_f1

    @property
    def diverged(self) -> bool:
        """Whether the run lost its way: losses or likelihoods that are no numbers."""
        return None in self.history["train_loss"] or None in (self.history["log_likelihood"] or [])

    @property
    def by_likelihood(self) -> bool:
        """Whether the loss gives class probabilities, so that held-out likelihoods can be compared."""
        return LOSSES[self.config["loss"]].link == "softmax"

    def held_out_scores(self) -> FloatArray:
        """What selection minimises at the checkpoints: -log (pQ)_ybar, or the 0-1 risk where p is no probability."""
        if self.history["held_out"] is None:
            raise InputError("select", "'last' for runs without validation labels", "'label-free'")
        if not self.by_likelihood:
            return zero_one_risk(self.history["held_out"], self.judge.transition)
        scores = [self.history["log_likelihood"][epoch - 1] for epoch in self.history["checkpoints"]]
        return -np.array([math.nan if score is None else score for score in scores])

    @property
    def judge(self) -> Judge:
        """What selection was told of Q and the class shares."""
        return Judge.from_dict(self.history["judge"])


def outcomes(trials: Sequence[Trial], recording: Recording, task: Task, provenance: dict[str, Any]) -> list[Row]:
    """Join the predictions of every run with the true labels; the predictions themselves are dropped."""
    facts = {"sizes": task.declared.sizes.tolist(), "judge": task.judge.to_dict(), **_counts(task)}
    compared = checkpoints(trials[0].epochs)
    joined = _joined(recording, task.test, compared, task.n_classes)
    recorded = _recorded(recording)
    rows = []
    for run, trial in enumerate(trials):
        history = {**facts, "checkpoints": list(compared)}
        history |= {name: None if values is None else values[run] for name, values in {**joined, **recorded}.items()}
        if LOSSES[trial.loss].link != "softmax":
            history |= {"log_likelihood": None, "log_likelihood_se": None}
        row = Row(trial.key, trial.config(), {}, history, provenance)
        metrics = {metric: row.value(metric, trial.epochs) for metric in METRICS}
        rows.append(Row(trial.key, row.config, {k: v for k, v in metrics.items() if v == v}, history, provenance))
    return rows


def _rare(sizes: IntArray) -> BoolArray:
    """Classes smaller than the mean."""
    smaller: BoolArray = sizes < sizes.mean()
    return smaller


def _counts(task: Task) -> dict[str, list[int]]:
    k = task.n_classes
    return {
        "train_labels": np.bincount(task.train.ybar, minlength=k).tolist(),
        "test_sizes": np.bincount(task.test.y, minlength=k).tolist(),
    }


def _joined(recording: Recording, test: Clean, compared: Sequence[int], n_classes: int) -> dict[str, list[Any]]:
    """Run by run: correct counts a class after every epoch, and whole tables at the checkpoints."""
    y = torch.as_tensor(test.y, device=recording.predicted[0].device)
    one_hot = (y.unsqueeze(-1) == torch.arange(n_classes, device=y.device)).float()
    correct = torch.stack([(predicted == y).float() @ one_hot for predicted in recording.predicted])  # whole numbers
    tables = torch.stack([tables_of(y, recording.predicted[epoch - 1].long(), n_classes) for epoch in compared])
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
