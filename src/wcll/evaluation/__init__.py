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
from wcll.evaluation.metrics import Confusion as Confusion
from wcll.evaluation.metrics import check_metric as check_metric
from wcll.evaluation.metrics import class_of as class_of
from wcll.evaluation.selection import EarlyStopping, checkpoints
from wcll.evaluation.selection import zero_one_risk as zero_one_risk

__all__ = ["METRICS", "EarlyStopping", "Figure", "LabelFreeConfusion", "LogLikelihoodScorer", "Reliability"]
__all__ += ["checkpoints", "complementary_table", "label_free_accuracy", "label_free_confusion"]
__all__ += ["label_free_reliability"]
