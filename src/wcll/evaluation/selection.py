"""Selection of the learning rate and the epoch, and early stopping, by held-out complementary labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wcll._validation import FloatArray, inverse_transition, numeric, whole
from wcll.evaluation.label_free import LogLikelihoodScorer
from wcll.exceptions import InputError, InputTypeError

#: Where, in percent of all epochs, models are compared: often while they learn fast, rarely afterwards.
CHECKPOINTS = (1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 56, 66, 77, 88, 100)


def checkpoints(epochs: int) -> tuple[int, ...]:
    """The epochs (1-based, each once) at which models are compared.

    >>> checkpoints(10)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    >>> checkpoints(100) == CHECKPOINTS
    True
    """
    whole("epochs", epochs)
    return tuple(sorted({-(-percent * epochs // 100) for percent in CHECKPOINTS}))


def zero_one_risk(tables: ArrayLike, transition: ArrayLike) -> FloatArray:
    r"""Unbiased 0-1 risk of tables N[ybar, prediction] under Q: :math:`1 - \frac1n \sum_{jk} Q^{-1}_{jk} N_{jk}`."""
    counts, inverse = numeric("tables", tables), inverse_transition(transition)
    if counts.shape[-2:] != inverse.shape:
        raise InputError("tables", f"tables of shape {inverse.shape}", f"shape {counts.shape}")
    with np.errstate(over="ignore"):
        n = counts.sum(axis=(-2, -1))
    if not np.isfinite(n).all() or (counts < 0).any() or (n == 0).any():
        raise InputError("tables", "tables of counts, none all 0", "NaN, negative numbers or an empty table")
    risk: FloatArray = 1 - (inverse * counts).sum(axis=(-2, -1)) / n
    return risk


def smoothed(scores: ArrayLike) -> FloatArray:
    """Each score averaged with its two neighbours (its one neighbour at the ends).

    Held-out labels are few, so that single checkpoints win by luck; neighbours share the luck less than the skill.

    >>> smoothed([3.0, 0.0, 3.0, 6.0]).tolist()
    [1.5, 2.0, 3.0, 4.5]
    """
    values = numeric("scores", scores)
    if values.ndim != 1 or not values.size:
        raise InputError("scores", "one score a checkpoint, shape (n,)", f"shape {values.shape}")
    padded = np.pad(values, 1)
    averaged = np.full(len(values), 3)
    averaged[[0, -1]] = 2 if len(values) > 1 else 1
    with np.errstate(all="ignore"):  # scores may be infinite
        mean: FloatArray = (padded[:-2] + values + padded[2:]) / averaged
    return mean


@dataclass(frozen=True)
class Choice:
    """A candidate and one of its checkpoints."""

    candidate: int
    checkpoint: int
    score: float


def select(candidates: Sequence[ArrayLike]) -> Choice:
    """The candidate and checkpoint of the lowest smoothed score; exact ties take the earlier checkpoint.

    ``candidates`` have one score a checkpoint each, lower is better. NaN and infinity (a run that diverged) lose
    against every number, also for the neighbours that they touch.
    """
    if isinstance(candidates, str | bytes | Mapping) or not np.iterable(candidates):
        raise InputTypeError("candidates", "a list of scores", type(candidates).__name__)
    found = [smoothed(scores) for scores in candidates]
    if not found:
        raise InputError("candidates", "at least one", "none")
    if len({len(scores) for scores in found}) > 1:
        raise InputError("candidates", "equally many scores each", sorted({len(scores) for scores in found}))
    scores = np.stack(found, axis=1)
    scores = np.where(np.isfinite(scores), scores, np.inf)
    checkpoint, candidate = divmod(int(scores.argmin()), scores.shape[1])  # argmin takes the first of equals
    return Choice(candidate, checkpoint, float(scores[checkpoint, candidate]))


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
