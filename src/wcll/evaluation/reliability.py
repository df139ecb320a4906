"""Whether probabilities are what they say, judged by complementary labels alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import FloatArray, IntArray, sample_weights, transition_matrix, unmasked, whole
from wcll.evaluation.label_free import label_free_accuracy, probability_rows
from wcll.labels.encoding import Classes, indexed, to_mask


@dataclass(frozen=True, eq=False)
class Reliability:
    """Mean confidence and estimated accuracy of samples, in bins of like confidence, the least sure first."""

    samples: IntArray  #: how many are in each bin
    share: FloatArray  #: their part of the summed sample weights
    confidence: FloatArray  #: the mean of the largest probability
    accuracy: FloatArray  #: how often that class is right, estimated; it may leave [0, 1] by its error
    standard_error: FloatArray  #: of the accuracy

    @property
    def gap(self) -> tuple[float, float]:
        """How much surer than right predictions are over all, and its standard error."""
        error = float(np.sqrt(np.square(self.share * self.standard_error).sum()))
        return float(self.share @ (self.confidence - self.accuracy)), error


def label_free_reliability(
    probabilities: ArrayLike,
    ybar: Any,
    transition: ArrayLike,
    *,
    bins: int = 10,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> Reliability:
    r"""Reliability of class probabilities, from complementary labels that were not trained on.

    Samples are put into bins of about as many each by their confidence :math:`\max_y p_{iy}`, so that all have like
    errors. In a bin B the mean confidence is compared with the accuracy that labels tell:

    .. math:: \frac1{|B|} \sum_{i \in B} Q^{-1}_{\bar y_i \hat y_i} , \qquad \hat y_i = \arg\max_y p_{iy} ,

    which is unbiased if Q is right (:func:`label_free_accuracy`). Its error is that of one true label a sample times
    several: for uniform labels about K - 1 times, so few bins tell more than many.

    Probabilities are to be for the class shares of these samples: of a classifier with a ``target_prior``, those of
    ``model.as_trained(model.predict_proba(X))``.

    Parameters
    ----------
    probabilities : array of shape (n, k)
    ybar : complementary labels
        Class indices, lists of them, or a mask; or names among ``classes``.
    transition : array of shape (k, k)
        ``Q[y, ybar]``; it must have an inverse.
    bins : int
        At most so many: samples of the same confidence stay together.
    sample_weight : array of shape (n,), optional
    classes : sequence, optional
        The names of all classes, in the order of columns of ``probabilities`` and of rows of Q.

    Examples
    --------
    >>> p = np.repeat([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], 4, axis=0)
    >>> found = label_free_reliability(p, [1, 2, 1, 0, 0, 2, 0, 2], (1 - np.eye(3)) / 2, bins=2)
    >>> found.confidence.tolist(), found.accuracy.tolist()
    ([0.5, 0.8], [0.5, 1.0])
    """
    matrix = transition_matrix(transition)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, len(matrix)), len(matrix))
    chances = probability_rows(probabilities, mask.shape)
    weight = sample_weights(sample_weight, len(mask))
    confidence, predicted = chances.max(axis=1), chances.argmax(axis=1)
    wanted = min(whole("bins", bins), len(mask))
    edges = np.unique(np.quantile(confidence, np.arange(1, wanted) / wanted, method="inverted_cdf"))
    member = np.searchsorted(edges, confidence)
    found = [rows for k in range(len(edges) + 1) if weight[rows := np.flatnonzero(member == k)].any()]
    accuracy = [label_free_accuracy(mask[rows], predicted[rows], matrix, sample_weight=weight[rows]) for rows in found]
    value, error = np.array(accuracy).T
    return Reliability(
        samples=np.array([len(rows) for rows in found]),
        share=np.array([weight[rows].sum() for rows in found]) / weight.sum(),
        confidence=np.array([np.average(confidence[rows], weights=weight[rows]) for rows in found]),
        accuracy=value,
        standard_error=error,
    )
