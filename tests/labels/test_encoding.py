"""Names of classes, in every function that takes labels: the same as their indices give."""

from __future__ import annotations

import numpy as np
import pytest

from wcll import evaluation, labels
from wcll.exceptions import InputError
from wcll.labels.cross_fitting import transition_from_predictions

NAMES = ["fir", "oak", "ash", "elm"]  # not sorted: their order is that of Q
K = len(NAMES)
RNG = np.random.default_rng(0)
Y = RNG.integers(K, size=300)
YBAR = (Y + RNG.integers(1, K, size=300)) % K
SEVERAL = [[int(one), int(other)] for one, other in zip(YBAR, (Y + 1) % K, strict=True) if one != other]
REPEATED = (Y[:, None] + RNG.integers(1, K, size=(300, 4))) % K
CHANCES = RNG.dirichlet(np.ones(K), 300)
Q = labels.uniform_transition(K)


def named(indices):
    return [[NAMES[k] for k in row] if np.ndim(row) else NAMES[row] for row in indices]


FUNCTIONS = {
    "label_free_accuracy": lambda of, **n: evaluation.label_free_accuracy(of(YBAR), of(Y), Q, **n),
    "complementary_log_likelihood": lambda of, **n: evaluation.label_free.complementary_log_likelihood(
        of(YBAR), CHANCES, Q, **n
    ),
    "label_free_reliability": lambda of, **n: evaluation.label_free_reliability(CHANCES, of(YBAR), Q, **n).accuracy,
    "complementary_table": lambda of, **n: evaluation.complementary_table(of(YBAR), of(Y), K, **n),
    "Confusion": lambda of, **n: evaluation.metrics.Confusion.of(of(Y), of(YBAR), K, **n).counts,
    "observed_marginal": lambda of, **n: labels.observed_marginal(of(YBAR), K, **n).standard_error,
    "class_weights": lambda of, **n: labels.class_weights("wcll", of(YBAR), K, **n).values,
    "transition_from_pairs": lambda of, **n: labels.transition_from_pairs(of(Y), of(YBAR), K, **n).transition,
    "transition_from_repeated": lambda of, **n: (
        labels.transition_from_repeated(of(REPEATED), K, draws=0, **n).transition
    ),
    "transition_from_predictions": lambda of, **n: transition_from_predictions(CHANCES, of(YBAR), Q, **n),
    "make_imbalance": lambda of, **n: labels.make_imbalance(of(Y), [5, 6, 7, 8], random_state=0, **n),
    "resample": lambda of, **n: labels.resample(np.arange(300), of(YBAR), random_state=0, **n)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_give_what_indices_give(name):
    function = FUNCTIONS[name]
    expected, found = function(lambda indices: indices), function(named, classes=NAMES)
    assert np.array_equal(np.asarray(found), np.asarray(expected))
    with pytest.raises(InputError):
        function(named)  # names without classes: their order is not known
    with pytest.raises(InputError, match="classes among oak, ash, elm, yew") as error:
        function(named, classes=["oak", "ash", "elm", "yew"])
    assert error.value.argument in ("y", "ybar", "predicted")
    assert "'fir'" in str(error.value)


def test_labels_are_drawn_by_name():
    drawn = labels.make_complementary(named(Y), Q, classes=NAMES, random_state=0)
    assert drawn.tolist() == named(labels.make_complementary(Y, Q, random_state=0))
    sets = labels.make_complementary(named(Y), Q, classes=NAMES, n_labels=2, random_state=0)
    assert np.array_equal(sets, labels.make_complementary(Y, Q, n_labels=2, random_state=0))


def test_the_number_of_classes_is_told_once():
    assert labels.observed_marginal(named(YBAR), classes=NAMES).value.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="n_classes: expected the number of classes, or their names"):
        labels.observed_marginal(YBAR)
    with pytest.raises(InputError, match="classes: expected the names of 5 classes, got 4 names"):
        labels.observed_marginal(named(YBAR), 5, classes=NAMES)
    with pytest.raises(InputError, match="classes: expected the names of 4 classes, got 3 names"):
        evaluation.label_free_accuracy(named(YBAR), named(Y), Q, classes=NAMES[:3])
    with pytest.raises(InputError, match="predicted: "):
        evaluation.label_free_accuracy(named(YBAR), [["fir", "oak"]] * 300, Q, classes=NAMES)
