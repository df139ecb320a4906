"""How good a model is, judged by complementary labels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import FloatArray, IntArray, inverse_transition, same_length, transition_matrix
from wcll.labels import to_mask


def label_free_accuracy(
    ybar: ArrayLike, predicted: IntArray, transition: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    r"""An unbiased estimate of accuracy from complementary labels, and its standard error.

    .. math:: \frac1n \sum_i Q^{-1}_{\bar y_i \hat y_i}
              \quad\bigl(\text{uniform } Q:\ 1 - (K-1) \cdot \text{share of } \hat y = \bar y\bigr)

    It may leave [0, 1] by its error. Of several labels a sample the mean is taken, which is unbiased for uniform Q.

    >>> label_free_accuracy(np.array([0, 1, 2, 0]), np.array([1, 2, 0, 0]), (1 - np.eye(3)) / 2)[0]
    0.5
    """
    inverse = inverse_transition(transition)
    mask = to_mask(ybar, len(inverse))
    same_length("ybar", len(mask), "predicted", len(predicted))
    credit = ((mask / mask.sum(axis=1, keepdims=True)) @ inverse)[np.arange(len(mask)), predicted]
    return _weighted_mean(credit, sample_weight)


def complementary_log_likelihood(
    ybar: ArrayLike, probabilities: FloatArray, transition: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    r"""The mean of :math:`\log (p Q)_{\bar y}` over the labels, and its standard error.

    A proper score of the posterior: among models it prefers the one whose probabilities are right under the TRAINING
    class shares.
    """
    matrix = transition_matrix(transition)
    mask = to_mask(ybar, len(matrix))
    same_length("ybar", len(mask), "probabilities", len(probabilities))
    chances = np.maximum(probabilities @ matrix, np.finfo(np.float64).tiny)
    per_sample = np.where(mask, np.log(chances), 0.0).sum(axis=1) / mask.sum(axis=1)
    return _weighted_mean(per_sample, sample_weight)


def _weighted_mean(values: FloatArray, sample_weight: ArrayLike | None) -> tuple[float, float]:
    weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = weight / weight.sum()
    mean = float(weight @ values)
    return mean, float(np.sqrt(np.square(weight * (values - mean)).sum()))


def log_likelihood_scorer(estimator: Any, X: Any, ybar: Any) -> float:  # noqa: N803
    """For ``GridSearchCV(..., scoring=log_likelihood_scorer)``: higher is better; needs class probabilities."""
    last, labels = _labels_of(estimator, ybar)
    return complementary_log_likelihood(labels, estimator.predict_proba(X), last.transition_)[0]


def accuracy_scorer(estimator: Any, X: Any, ybar: Any) -> float:  # noqa: N803
    """The label-free accuracy as a scorer; what ``score`` returns, but also for pipelines that transform X."""
    return float(estimator.score(X, ybar))


def _labels_of(estimator: Any, ybar: Any) -> tuple[Any, Any]:
    """The classifier at the end of a pipeline (or itself), and the labels as it counts classes."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return last, last.encode(ybar)
