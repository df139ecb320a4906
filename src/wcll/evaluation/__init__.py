"""How good a model is: with true labels (for the end), and without any."""

from wcll.evaluation.confusion import Figure, LabelFreeConfusion, complementary_table, label_free_confusion
from wcll.evaluation.label_free import (
    LogLikelihoodScorer,
    complementary_log_likelihood,
    label_free_accuracy,
)
from wcll.evaluation.metrics import METRICS, Confusion, check_metric, class_of, metric_title
from wcll.evaluation.reliability import Reliability, label_free_reliability
from wcll.evaluation.selection import Choice, checkpoints, select, smoothed, zero_one_risk
from wcll.evaluation.stopping import EarlyStopping

__all__ = ["METRICS", "Choice", "Confusion", "EarlyStopping", "Figure", "LabelFreeConfusion"]
__all__ += ["LogLikelihoodScorer"]
__all__ += ["Reliability", "label_free_reliability"]
__all__ += ["check_metric", "checkpoints", "class_of", "complementary_log_likelihood"]
__all__ += ["complementary_table", "metric_title"]
__all__ += ["label_free_accuracy", "label_free_confusion", "select", "smoothed"]
__all__ += ["zero_one_risk"]
