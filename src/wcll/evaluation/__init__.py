"""Evaluation of classifiers: with true labels, for the end, and without any."""

from wcll.evaluation.label_free import (
    Figure,
    LabelFreeConfusion,
    LogLikelihoodScorer,
    Reliability,
    complementary_table,
    label_free_accuracy,
    label_free_confusion,
    label_free_reliability,
)
from wcll.evaluation.metrics import METRICS
from wcll.evaluation.selection import EarlyStopping, checkpoints

__all__ = ["METRICS", "EarlyStopping", "Figure", "LabelFreeConfusion", "LogLikelihoodScorer", "Reliability"]
__all__ += ["checkpoints", "complementary_table", "label_free_accuracy", "label_free_confusion"]
__all__ += ["label_free_reliability"]
