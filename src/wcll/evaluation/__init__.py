"""How good a model is: with true labels (for the end), and without any."""

from wcll.evaluation.label_free import (
    AccuracyScorer,
    LogLikelihoodScorer,
    accuracy_scorer,
    complementary_log_likelihood,
    label_free_accuracy,
    log_likelihood_scorer,
)
from wcll.evaluation.metrics import Confusion

__all__ = [
    "AccuracyScorer",
    "Confusion",
    "LogLikelihoodScorer",
    "accuracy_scorer",
    "complementary_log_likelihood",
    "label_free_accuracy",
    "log_likelihood_scorer",
]
