"""Ending a training by held-out complementary labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris

from wcll import ComplementaryClassifier
from wcll.evaluation import EarlyStopping
from wcll.exceptions import InputError
from wcll.labels import make_complementary


def watch(stopping, scores, start=1):
    """Epochs with these scores; after which of them it ends."""
    for epoch, score in enumerate(scores, start):
        if stopping(SimpleNamespace(epoch=epoch, classifier=lambda score=score: score)):
            return epoch
    return None


def told(**settings):
    return EarlyStopping(None, None, scorer=lambda classifier, x, ybar: classifier, **settings)


def test_it_ends_where_nothing_is_better_for_long():
    stopping = told(patience=2)
    assert watch(stopping, [1.0, 3.0, 2.0, 2.5, 9.0]) == 4
    assert (stopping.best, stopping.best_epoch, stopping.best_score) == (3.0, 2, 3.0)
    assert stopping.scores == {1: 1.0, 2: 3.0, 3: 2.0, 4: 2.5}


def test_what_is_no_better_is_not_waited_for():
    assert watch(told(patience=1), [1.0, 1.0]) == 2


def test_looks_may_be_far_between():
    stopping = told(patience=1, every=3)
    assert watch(stopping, [0, 0, 5.0, 9.0, 9.0, 4.0, 9.0]) == 6
    assert stopping.scores == {3: 5.0, 6: 4.0}


def test_a_model_that_diverges_is_stopped():
    assert watch(told(patience=2), [float("nan")] * 5) == 2


def test_another_training_starts_anew():
    stopping = told(patience=2)
    watch(stopping, [5.0, 1.0, 1.0])
    assert watch(stopping, [1.0, 2.0, 3.0]) is None
    assert (stopping.best_epoch, len(stopping.scores)) == (3, 3)


def test_losses_without_probabilities_are_judged_by_accuracy():
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, ybar = x[order], make_complementary(y[order], random_state=0)
    stopping = EarlyStopping(x[100:], ybar[100:], patience=2, scorer=ComplementaryClassifier.score)
    model = ComplementaryClassifier("pc", lr=0.05, max_epochs=60, callbacks=[stopping], random_state=0)
    model.fit(x[:100], ybar[:100])
    assert model.n_iter_ == stopping.best_epoch + 2 < 60
    assert stopping.best.n_iter_ == stopping.best_epoch


@pytest.mark.parametrize("setting", ["patience", "every"])
def test_bad_settings_are_named(setting):
    with pytest.raises(InputError, match=f"{setting}: expected"):
        told(**{setting: 0})
