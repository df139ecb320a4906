"""One finished run, and what can be read off it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.evaluation import Confusion, check_metric, class_of, zero_one_risk
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.losses.base import AUTO, spec_of


@dataclass(frozen=True)
class Row:
    """One finished run: its choices, what it reached (fractions in [0, 1]), how, and where."""

    key: str
    config: dict[str, Any]
    metrics: dict[str, float]  #: of the last epoch
    history: dict[str, Any]  #: counts and scores by epoch (None where nobody looked) and by checkpoint
    provenance: dict[str, Any]  #: seconds, versions, commit, device, data

    def to_dict(self) -> dict[str, Any]:
        """Plain tables, for JSON."""
        return asdict(self)

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return len(self.history["correct"])

    @property
    def class_names(self) -> list[str]:
        """The names of its classes, or their numbers, for data of many classes or runs of earlier versions."""
        numbers = [str(k) for k in range(len(self.history["sizes"]))]
        names: list[str] = self.provenance["data"].get("classes", numbers)
        return names if len(names) == len(numbers) else numbers

    @property
    def rare(self) -> list[int]:
        """The classes of which training has fewer samples than of the mean class."""
        return [int(k) for k in np.flatnonzero(_rare(np.array(self.history["sizes"])))]

    @property
    def looked_at(self) -> list[int]:
        """The epochs after which test and held-out samples were looked at, counted from 1."""
        return [epoch for epoch, correct in enumerate(self.history["correct"], 1) if correct is not None]

    def confusion(self, checkpoint: int) -> Confusion:
        """The test confusion at a checkpoint, counted from 0."""
        return Confusion(np.array(self.history["confusion"][checkpoint]))

    def curve(self, metric: str) -> FloatArray:
        """A metric after every epoch, NaN where nobody looked; macro-F1 needs whole tables: at checkpoints only."""
        nobody = [math.nan] * len(self.history["test_sizes"])
        correct = [nobody if counts is None else counts for counts in self.history["correct"]]
        recall = np.array(correct) / np.maximum(self.history["test_sizes"], 1)
        sizes = np.array(self.history["test_sizes"], dtype=np.float64)
        if check_metric("metric", metric) == "accuracy":
            accuracy: FloatArray = recall @ (sizes / sizes.sum())
            return accuracy
        if metric == "macro_f1":
            raise InputError("metric", "one that is kept for every epoch", repr(metric))
        kept = (sizes > 0) & self._classes_of(metric)
        mean: FloatArray = recall[:, kept].mean(axis=1) if kept.any() else np.full(len(recall), np.nan)
        return mean

    def _classes_of(self, metric: str) -> BoolArray:
        """Those whose recall is averaged; a class that there is not is none."""
        sizes = np.array(self.history["sizes"])
        if (one := class_of(metric)) is not None:
            own: BoolArray = np.arange(len(sizes)) == one
            return own
        return _rare(sizes) if metric == "minority_recall" else np.ones(len(sizes), dtype=bool)

    def value(self, metric: str, epoch: int) -> float:
        """A metric after an epoch, counted from 1, that was looked at."""
        known = self.checkpoints if metric == "macro_f1" else self.looked_at
        if epoch not in known:
            raise InputError("epoch", f"one after which {metric} is known: {', '.join(map(str, known))}", epoch)
        if metric != "macro_f1":
            return float(self.curve(metric)[epoch - 1])
        return self.confusion(self.history["checkpoints"].index(epoch)).macro_f1

    @property
    def checkpoints(self) -> list[int]:
        """The epochs at which held-out labels were looked at."""
        epochs: list[int] = self.history["checkpoints"]
        return epochs

    def best_epoch(self, metric: str) -> int:
        """The epoch of the highest TEST figure that is known, for oracles; macro-F1 is at checkpoints only."""
        if metric != "macro_f1":
            return int(np.argmax(np.nan_to_num(self.curve(metric), nan=-1.0))) + 1
        return self.checkpoints[int(np.argmax([self.value(metric, epoch) for epoch in self.checkpoints]))]

    @property
    def diverged(self) -> bool:
        """Whether the run lost its way: losses or likelihoods that are no numbers."""
        scores = self.history["log_likelihood"]
        seen = [scores[epoch - 1] for epoch in self.looked_at] if scores else []
        return None in self.history["train_loss"] or None in seen

    @property
    def by_likelihood(self) -> bool:
        """Whether the loss gives class probabilities, so that held-out likelihoods can be compared."""
        return spec_of(self.config["loss"]).link == "softmax"

    def held_out_scores(self) -> FloatArray:
        """What selection minimises at the checkpoints: -log (pQ)_ybar, or the 0-1 risk where p is no probability."""
        if self.history["log_likelihood" if self.config["loss"] == AUTO else "held_out"] is None:
            raise InputError("select", "'last' for runs without validation labels", "'label-free'")
        if not self.by_likelihood:
            return zero_one_risk(self.history["held_out"], self.judge.transition)
        scores = [self.history["log_likelihood"][epoch - 1] for epoch in self.history["checkpoints"]]
        return -np.array([math.nan if score is None else score for score in scores])

    @property
    def judge(self) -> Belief:
        """What selection was told of Q and the class shares."""
        return Belief.from_dict(self.history["judge"])


def _rare(sizes: IntArray) -> BoolArray:
    """Classes smaller than the mean."""
    smaller: BoolArray = sizes < sizes.mean()
    return smaller
