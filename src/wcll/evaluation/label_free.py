"""How good a model is, judged by complementary labels alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    class_indices,
    finite_array,
    inverse_transition,
    same_length,
    sample_weights,
    transition_matrix,
    unmasked,
)
from wcll.evaluation.confusion import complementary_table
from wcll.exceptions import InputError, LabelWarning
from wcll.labels.encoding import Classes, indexed, to_mask
from wcll.labels.goodness_of_fit import asked_by_predictions, check_samples
from wcll.labels.label_model import Belief

LEAST = float(np.log(np.finfo(np.float64).tiny))  #: the log-likelihood of what is impossible


def label_free_accuracy(
    ybar: Any,
    predicted: ArrayLike,
    transition: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> tuple[float, float]:
    r"""An estimate of accuracy from complementary labels, and its standard error.

    .. math:: \frac1n \sum_i Q^{-1}_{\bar y_i \hat y_i}
              \quad\bigl(\text{uniform } Q:\ 1 - (K-1) \cdot \text{share of } \hat y = \bar y\bigr)

    Unbiased if Q is right; it may leave [0, 1] by its error. Of several labels a sample the mean is taken, which is
    unbiased for uniform Q. The standard error is that with one more label, the one farthest from the mean: labels
    that are too few to disagree do not make it 0. An interval is in :func:`wcll.evaluation.label_free_confusion`.
    Labels and predictions are class indices, or names among ``classes``, which are those of the rows of Q.

    >>> label_free_accuracy(np.array([0, 1, 2, 0]), np.array([1, 2, 0, 0]), (1 - np.eye(3)) / 2)[0]
    0.5
    >>> label_free_accuracy(["cat", "dog"], ["dog", "dog"], (1 - np.eye(3)) / 2, classes=["bird", "cat", "dog"])[0]
    0.0
    """
    inverse = inverse_transition(transition)
    k = len(inverse)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, k), k)
    guesses = class_indices("predicted", indexed("predicted", predicted, classes, k), k)
    same_length("ybar", len(mask), "predicted", len(guesses))
    credit = ((mask / mask.sum(axis=1, keepdims=True)) @ inverse)[np.arange(len(mask)), guesses]
    mean, error = _weighted_mean(credit, sample_weight)
    weight = sample_weights(sample_weight, len(credit))
    one_more = np.abs(inverse - mean).max() * np.square(weight / weight.sum()).sum()
    return mean, float(np.hypot(error, one_more))


def complementary_log_likelihood(
    ybar: Any,
    probabilities: ArrayLike,
    transition: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> tuple[float, float]:
    r"""The mean of :math:`\log (p Q)_{\bar y}` over the samples, and its standard error.

    Several labels of a sample are one observation: :math:`\log \sum_y p_y \prod_{j \in S} Q_{yj}`. A proper score of
    the posterior: among models it prefers the one whose probabilities are right under the TRAINING class shares.
    Labels are class indices, or names among ``classes``, which are those of the rows of Q.
    """
    matrix = transition_matrix(transition)
    unmasked("ybar", ybar)
    mask = to_mask(indexed("ybar", ybar, classes, len(matrix)), len(matrix))
    chances = probability_rows(probabilities, mask.shape)
    impossible = mask.astype(float) @ (matrix == 0).T > 0  # some label of the sample, given y
    of_set = mask @ np.log(np.where(matrix == 0, 1.0, matrix)).T
    with np.errstate(divide="ignore"):
        joint = np.where(impossible, -np.inf, np.log(chances) + of_set)
    return _weighted_mean(np.maximum(logsumexp(joint, axis=1), LEAST), sample_weight)


def probability_rows(values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Class probabilities, a row a sample."""
    chances = finite_array("probabilities", values, shape)
    if (chances < 0).any() or not np.allclose(chances.sum(axis=1), 1.0, atol=1e-4):
        worst = chances[np.abs(chances.sum(axis=1) - 1).argmax()]
        expected, remedy = "rows of probabilities that sum to 1", "logits need a softmax"
        raise InputError("probabilities", expected, worst.tolist(), remedy)
    return chances


def _weighted_mean(values: FloatArray, sample_weight: ArrayLike | None) -> tuple[float, float]:
    weight = sample_weights(sample_weight, len(values))
    weight = weight / weight.sum()
    mean = float(weight @ values)
    return mean, float(np.sqrt(np.square(weight * (values - mean)).sum()))


def warn_of_contradiction(
    ybar: IntArray | BoolArray,
    predicted: IntArray,
    belief: Belief,
    names: Any,
    *,
    weight: ArrayLike | None = None,
    stacklevel: int = 2,
) -> None:
    """One line, as a warning, if held-out labels may be true ones, or contradict the Q by which a model is judged."""
    if ybar.ndim == 1 and (question := asked_by_predictions(complementary_table(ybar, predicted, len(names)))):
        warnings.warn(question, LabelWarning, stacklevel=stacklevel + 1)
        return
    found = check_samples(ybar, belief, names, weight=sample_weights(weight, len(ybar)), predicted=predicted)
    if found.contradicted:
        warnings.warn(found.warning, LabelWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class LogLikelihoodScorer:
    """The log-likelihood of held-out labels as a scorer; higher is better; needs class probabilities.

    With ``transition`` every candidate is judged under the same Q, so that candidates may differ in their own; without
    it, under the Q that it assumes. Probabilities for other class shares than those of training (``target_prior``) are
    moved back to these: only so labels like those of training can judge them.
    """

    transition: Any = None

    def __call__(self, estimator: Any, X: Any, ybar: Any) -> float:
        last = _last(estimator)
        belief, labels = _belief(self.transition, last), last.encode(ybar)
        chances = last.as_trained(estimator.predict_proba(X))
        score = complementary_log_likelihood(labels, chances, belief.transition)[0]
        warn_of_contradiction(labels, chances.argmax(axis=1), belief, last.classes_)
        return score


def _belief(transition: Any, last: Any) -> Belief:
    """What a scorer was told, or else what the classifier believes."""
    if transition is None:
        believed: Belief = last.belief_
        return believed
    return Belief(transition_matrix(transition, len(last.classes_)), "given")


def _last(estimator: Any) -> Any:
    """The classifier inside searches and pipelines."""
    if hasattr(estimator, "best_estimator_"):
        return _last(estimator.best_estimator_)
    return _last(estimator[-1]) if hasattr(estimator, "steps") else estimator
