"""What a complementary label is worth: in information, and in labels that an accuracy needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, xlogy

from wcll._validation import FloatArray, class_weights_array, inverse_transition, share, transition_matrix
from wcll.labels.transition import normalised

ACCURACIES = (0.6, 0.8, 0.95)  #: of models that may be judged
POINTS = 0.02  #: half the width of the interval that is wanted
INTERVAL_LEVEL = 0.95  #: of that interval
WORST = 1e9  #: condition beyond which nothing is left of an inverse


@dataclass(frozen=True)
class Judging:
    """How many labels tell a model's accuracy, one label a sample."""

    accuracy: float  #: of the model
    deviation: float  #: standard deviation of what one label says of it
    labels: int  #: for the interval that is wanted
    true_labels: int  #: that would do instead


@dataclass(frozen=True)
class LabelWorth:
    """What one label tells of the class of its sample, and what labels tell of a model."""

    basis: str  #: the Q and the class shares that this rests on
    entropy: float  #: of the classes, in bits
    information: float  #: of one label about the class, in bits
    judging: tuple[Judging, ...]
    problem: str = ""  #: why accuracy cannot be told

    @property
    def labels_for_one(self) -> float:
        """How many labels weigh as much as one true label, at least: labels of one sample partly say the same."""
        return self.entropy / self.information if self.information > 1e-12 else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; None for what no number of labels gives."""
        ratio = self.labels_for_one
        return {**asdict(self), "labels_for_one": ratio if np.isfinite(ratio) else None}


def label_worth(transition: ArrayLike, shares: ArrayLike, basis: str = "Q as given") -> LabelWorth:
    r"""The information :math:`I(y; \bar y) = H(\bar p) - \sum_y p_y H(Q_y)`, and labels for an accuracy.

    >>> worth = label_worth([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], [1, 1, 1])
    >>> round(worth.entropy, 3), round(worth.information, 3), round(worth.labels_for_one, 2)
    (1.585, 0.585, 2.71)
    """
    matrix = transition_matrix(transition)
    p = normalised(class_weights_array("shares", shares, len(matrix)))
    information = max(_entropy(p @ matrix) - float(p @ [_entropy(row) for row in matrix]), 0.0)
    judging: list[Judging] = []
    problem = ""
    inverse = _inverse(matrix)
    if inverse is None:
        problem = "Q has no inverse that could be used"
    else:
        judging = [
            _judging(accuracy, accuracy_deviation(matrix, p, accuracy, inverse=inverse)) for accuracy in ACCURACIES
        ]
    return LabelWorth(basis, _entropy(p), information, tuple(judging), problem)


def accuracy_deviation(
    transition: FloatArray, shares: FloatArray, accuracy: float, *, inverse: FloatArray | None = None
) -> float:
    r"""The standard deviation of :math:`Q^{-1}_{\bar y \hat y}`, whose mean over labels estimates accuracy.

    Of a model that is right with the same chance for every class and otherwise takes any other class alike. For uniform
    Q this is :math:`\sqrt{(K - 1) e - e^2}` with the share e of mistakes.

    >>> Q = (1 - np.eye(3)) / 2
    >>> round(accuracy_deviation(Q, np.ones(3) / 3, 0.5), 4) == round(0.75**0.5, 4)
    True
    """
    share("accuracy", accuracy)
    inverse = inverse_transition(transition) if inverse is None else inverse
    k = len(transition)
    predicted = np.where(np.eye(k) == 1, accuracy, (1 - accuracy) / (k - 1))
    second = float(shares @ (predicted * (transition @ inverse**2)).sum(axis=1))
    return float(np.sqrt(max(second - accuracy**2, 0.0)))


def labels_needed(deviation: float, points: float = POINTS) -> int:
    """How many labels bring the half width of a 95 % interval down to ``points``.

    >>> labels_needed(0.4)
    1537
    """
    return ceil(float(-ndtri((1 - INTERVAL_LEVEL) / 2) * deviation / points) ** 2)


def _judging(accuracy: float, deviation: float) -> Judging:
    true = float(np.sqrt(accuracy * (1 - accuracy)))
    return Judging(accuracy, deviation, labels_needed(deviation), labels_needed(true))


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """The inverse, unless rounding would spoil it; quick for a thousand classes, too."""
    try:
        inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    norms = np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
    return inverse if norms < WORST else None


def _entropy(shares: Sequence[float] | FloatArray) -> float:
    """In bits."""
    return float(-xlogy(shares, shares).sum() / np.log(2))
