"""Ending a training in time, by complementary labels that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wcll._validation import whole
from wcll.evaluation.label_free import LogLikelihoodScorer


@dataclass(eq=False)
class EarlyStopping:
    """A callback of ``fit`` that ends training where held-out complementary labels become no likelier.

    No true label is needed. ``best`` is the classifier as it was when they were likeliest, after ``best_epoch``; the
    fitted one has been trained for ``patience`` looks more. Where the rate follows a schedule (``training="strong"``),
    a training that ends early ends with a rate that has not fallen yet: choose ``max_epochs`` instead.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from wcll import ComplementaryClassifier
    >>> from wcll.labels import make_complementary
    >>> X, y = load_digits(return_X_y=True)
    >>> X, ybar = X / 16, make_complementary(y, random_state=0)
    >>> stopping = EarlyStopping(X[1400:], ybar[1400:], patience=3)
    >>> model = ComplementaryClassifier("log", lr=0.02, max_epochs=200, callbacks=[stopping], random_state=0)
    >>> model = model.fit(X[:1400], ybar[:1400])
    >>> model.n_iter_ == stopping.best_epoch + 3 < 200, stopping.best.n_iter_ == stopping.best_epoch
    (True, True)
    """

    X: Any  #: held-out samples
    ybar: Any  #: their complementary labels
    patience: int = 10  #: looks without a better one after which training ends
    every: int = 1  #: epochs from one look to the next
    #: What is to be large, of (classifier, X, ybar); for losses without class probabilities, accuracy:
    #: ``ComplementaryClassifier.score``.
    scorer: Callable[[Any, Any, Any], float] = field(default_factory=LogLikelihoodScorer)
    best: Any = field(default=None, init=False)
    best_epoch: int = field(default=0, init=False)
    best_score: float = field(default=float("-inf"), init=False)
    scores: dict[int, float] = field(default_factory=dict, init=False)  #: by epoch

    def __post_init__(self) -> None:
        whole("patience", self.patience)
        whole("every", self.every)

    def __call__(self, end: Any) -> bool:
        """After an epoch: whether training should end."""
        if self.scores and end.epoch <= max(self.scores):  # another training begins
            self.best, self.best_epoch, self.best_score, self.scores = None, 0, float("-inf"), {}
        if end.epoch % self.every:
            return False
        classifier = end.classifier()
        score = self.scores[end.epoch] = float(self.scorer(classifier, self.X, self.ybar))
        if score > self.best_score:
            self.best, self.best_epoch, self.best_score = classifier, end.epoch, score
        return bool((end.epoch - self.best_epoch) // self.every >= self.patience)
