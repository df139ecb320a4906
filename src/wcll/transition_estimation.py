"""Estimate Q with models that are trained on complementary labels; no true label is used."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from wcll._fitting import check_labels
from wcll._validation import FloatArray, IntArray, sample_weights, whole
from wcll.estimator import ComplementaryClassifier
from wcll.exceptions import InputError, InputTypeError, LabelWarning
from wcll.labels.cross_fitting import FEW_EPOCHS, ROUNDS, WARM_UP, ModelTransition, cross_fitted
from wcll.labels.encoding import to_mask
from wcll.losses import LOSSES

__all__ = ["ModelTransition", "transition_with_model"]

RATE = 2e-3  #: of such a model, if it is small


def transition_with_model(
    X: Any,
    ybar: Any,
    estimator: ComplementaryClassifier | None = None,
    *,
    folds: int = 2,
    rounds: int = ROUNDS,
    steps: int = 20,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: Any = None,
) -> ModelTransition:
    r"""Q from samples and their complementary labels: EM with cross-fitted predictions.

    In every round models are trained on the other folds with the Q so far, and Q is estimated anew from their
    predictions. It begins with popularity, again with popularity and a small
    diagonal, and, if samples have more than two labels on average, once more with what these tell by themselves
    (:func:`wcll.labels.transition_from_repeated`; if any has more than five, ``wcll.labels.cross_fitting``). Which is
    taken, starts themselves among them, is decided by the likelihood of labels that neither model nor Q has seen:
    a start if it is as good as the best, else the mean of the last three that are.

    Large sets that rule out more than two thirds of the classes on average, such as the complements of candidates, say
    nearly everything whatever Q is, and a wrong Q does much harm there: then no model is trained, and Q is popularity.

    Parameters
    ----------
    X : array of shape (n, d), table, sparse matrix, or images
    ybar : complementary labels
        As for :meth:`wcll.ComplementaryClassifier.fit`; several labels a sample tell Q much better than one.
    estimator : ComplementaryClassifier, optional
        What is trained, with a loss that takes Q; if None, ``forward`` at a rate of 2e-3 for 12 epochs, of which the
        first four are told popularity's Q (``warm_up``). Few epochs are better: what is learnt late is noise of the
        labels.
    folds : int
        Parts of the samples; a model predicts those that it was not trained on.
    rounds : int
    steps : int
        Of EM, each round.
    sample_weight : array of shape (n,), optional
        For the models and for Q: 1 / acceptance, if samples were kept or dropped by their label, gives the Q of all.
    groups : array of shape (n,), optional
        Samples of one group, such as images of one patient, are on one side of every split.
    random_state : int, RandomState or None

    Returns
    -------
    ModelTransition
        To be given to an estimator: ``ComplementaryClassifier("forward", transition=found)``. Its standard errors are
        those of known class membership, so they are lower bounds.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from wcll.labels import make_complementary
    >>> X, y = make_blobs(3000, centers=3, random_state=0)
    >>> Q = [[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]]
    >>> estimator = ComplementaryClassifier("forward", lr=0.05, max_epochs=12, warm_up=4)
    >>> found = transition_with_model(X, make_complementary(y, Q, random_state=0), estimator, random_state=0)
    >>> bool(abs(found.transition - Q).max() < 0.1)
    True
    """
    model = _checked(estimator)
    labels = check_labels(ybar, model.classes)
    mask = to_mask(labels.values, len(labels.classes))
    weight = sample_weights(sample_weight, len(mask))
    if whole("folds", folds) < 2:
        raise InputError("folds", "at least 2", folds, "a model may not predict the samples that it was trained on")
    whole("rounds", rounds)
    model.set_params(classes=list(range(mask.shape[1])))  # names are for the user

    def predict(matrix: FloatArray, rest: IntArray, part: IntArray, seed: int) -> FloatArray:
        told = clone(model).set_params(transition=matrix, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelWarning)  # of a Q that is yet to be found
            told.fit(_safe_indexing(X, rest), labels.values[rest], sample_weight=weight[rest])
        chances: FloatArray = told.predict_proba(_safe_indexing(X, part))
        return chances

    seeds = check_random_state(random_state)
    how: dict[str, Any] = {"folds": folds, "rounds": rounds, "steps": steps}
    return cross_fitted(mask, predict, seeds, sample_weight=weight, groups=groups, **how)


def _checked(estimator: ComplementaryClassifier | None) -> ComplementaryClassifier:
    """The user's, or the usual one: a copy."""
    if estimator is None:
        return ComplementaryClassifier("forward", lr=RATE, max_epochs=FEW_EPOCHS, warm_up=WARM_UP)
    if not isinstance(estimator, ComplementaryClassifier):
        raise InputTypeError("estimator", "a ComplementaryClassifier", type(estimator).__name__)
    name = estimator.loss["name"] if isinstance(estimator.loss, dict) else estimator.loss
    if not isinstance(name, str) or "transition" not in LOSSES[name].context:
        takes = [loss for loss, spec in LOSSES.items() if spec.context.get("transition")]
        raise InputError("estimator", f"one whose loss takes Q, such as {' or '.join(map(repr, takes))}", repr(name))
    copied: ComplementaryClassifier = clone(estimator).set_params(
        target_prior=None
    )  # labels are of the training shares
    return copied
