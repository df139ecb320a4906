"""Metrics with true labels, for the final evaluation and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from wcll._validation import FloatArray, IntArray, choice, class_indices, matrix_size, same_length
from wcll.labels.encoding import Classes, class_count, indexed

#: What tables may show of a run, and how they call it; minority recall is the mean recall of classes below mean size.
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "minority_recall": "minority recall",
    "macro_f1": "macro-F1",
}
OF_A_CLASS = re.compile("recall_(0|[1-9][0-9]{0,5})")  #: metrics besides: accuracy within a class, counted from 0


def check_metric(argument: str, name: str) -> str:
    """Return ``name`` if it is a metric, else fail."""
    one = isinstance(name, str) and OF_A_CLASS.fullmatch(name)
    return name if one else choice(argument, name, [*METRICS, "recall_0"])


def class_of(metric: str) -> int | None:
    """The class that a metric is about, if it is about one.

    >>> class_of("recall_2"), class_of("accuracy")
    (2, None)
    """
    found = OF_A_CLASS.fullmatch(metric)
    return int(found[1]) if found else None


def metric_title(metric: str) -> str:
    """How tables call a metric.

    >>> metric_title("macro_f1"), metric_title("recall_2")
    ('macro-F1', 'recall of class 2')
    """
    return METRICS.get(metric, f"recall of class {class_of(metric)}")


@dataclass(frozen=True)
class Confusion:
    """The table ``counts[y, prediction]``, and what follows from it; all figures are fractions in [0, 1]."""

    counts: IntArray

    @staticmethod
    def of(y: Any, predicted: Any, n_classes: int | None = None, *, classes: Classes = None) -> Confusion:
        """Count pairs of true and predicted classes: indices, or names among ``classes``."""
        k = matrix_size(class_count(n_classes, classes))
        true = class_indices("y", indexed("y", y, classes), k)
        guesses = class_indices("predicted", indexed("predicted", predicted, classes), k)
        same_length("y", len(true), "predicted", len(guesses))
        return Confusion(np.bincount(true * k + guesses, minlength=k**2).reshape(k, k))

    @property
    def accuracy(self) -> float:
        """The share of samples whose class was predicted."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def recall(self) -> FloatArray:
        """The same within each class (NaN for a class without samples)."""
        with np.errstate(invalid="ignore"):
            recall: FloatArray = np.diag(self.counts) / self.counts.sum(axis=1)
        return recall

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall over classes."""
        return float(np.nanmean(self.recall))

    @property
    def macro_f1(self) -> float:
        """The mean over classes that occur of 2 TP / (2 TP + FP + FN)."""
        sizes = self.counts.sum(axis=1)
        both = sizes + self.counts.sum(axis=0)
        return float(np.mean((2 * np.diag(self.counts) / np.maximum(both, 1))[sizes > 0]))
