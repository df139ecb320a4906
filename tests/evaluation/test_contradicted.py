"""No figure is ok that rests on a Q which the labels contradict: the cases of a new user's table of trees."""

from __future__ import annotations

import numpy as np
import pytest

from wcll import LabelWarning
from wcll.evaluation import AccuracyScorer, LogLikelihoodScorer, label_free_confusion
from wcll.labels import Belief, inverse_size_transition, uniform_transition

TREES = ["ash", "beech", "fir", "maple", "oak", "pine"]
SHARES = np.array([0.32, 0.26, 0.18, 0.12, 0.08, 0.04])


def habits(seed=7):
    """Annotators who have favourites, each class others."""
    rows = np.random.default_rng(seed).dirichlet(np.full(6, 1.5), 6) * (1 - np.eye(6))
    return rows / rows.sum(axis=1, keepdims=True)


def held_out(matrix, recall=0.85, n=1500, seed=0):
    """A table of labels against predictions, and counts of four times as many training labels."""
    predicts = np.full((6, 6), (1 - recall) / 5)
    np.fill_diagonal(predicts, recall)
    joint, rng = np.einsum("y,yj,yk->jk", SHARES, matrix, predicts), np.random.default_rng(seed)
    return rng.multinomial(n, joint.ravel()).reshape(6, 6), rng.multinomial(4 * n, SHARES @ matrix)


def figures(found):
    return [found.accuracy, found.balanced_accuracy, found.macro_f1, *found.recall]


@pytest.mark.parametrize("labels", ["biased", "inverse-size"])
@pytest.mark.parametrize("knows", ["counts", "held-out labels alone", "class shares"])
def test_uniform_labels_assumed_where_they_are_not(labels, knows):
    table, totals = held_out(habits() if labels == "biased" else inverse_size_transition(SHARES))
    belief = {
        "counts": lambda: Belief.of("uniform", totals),
        "held-out labels alone": lambda: Belief(uniform_transition(6), "assumed", family="uniform"),
        "class shares": lambda: Belief.true(uniform_transition(6), SHARES),
    }[knows]()
    found = label_free_confusion(table, belief, classes=TREES)
    assert {figure.verdict for figure in figures(found)} == {"the assumed Q does not fit"}
    assert found.check.contradicted
    words = "uniform labels allow" if knows != "class shares" else "this Q allows"
    assert found.check.line.endswith(f"% of the labels; {words} at most 20 %")
    assert any(found.check.line.startswith(f"'{name}' is ") for name in TREES)
    assert found.accuracy.to_dict()["verdict"] == "the assumed Q does not fit"


@pytest.mark.parametrize("labels", ["uniform", "biased", "inverse-size"])
def test_the_right_q_is_ok(labels):
    matrix = {"uniform": uniform_transition(6), "biased": habits(), "inverse-size": inverse_size_transition(SHARES)}
    table, totals = held_out(matrix[labels])
    told = matrix[labels] if labels == "biased" else labels
    found = label_free_confusion(table, Belief.of(told, totals), classes=TREES)
    assert found.accuracy.verdict == ("too few labels" if labels == "biased" else "ok")  # its inverse is large
    assert found.check.state == "not contradicted"


def test_a_wrong_q_that_only_predictions_betray():
    turned = np.array([[0, 4, 1, 1, 1, 1], *[np.roll([0, 4, 1, 1, 1, 1], i) for i in range(1, 6)]]) / 8
    table, totals = held_out(turned, recall=0.95, n=3000)
    found = label_free_confusion(table, Belief.of("inverse-size", totals), classes=TREES)
    assert "ok" not in {figure.verdict for figure in figures(found)}
    assert found.check.by == "predictions"


class Fitted:
    """As much of a fitted classifier as scorers ask for."""

    def __init__(self, matrix, guesses):
        self.transition_, self.belief_ = matrix, Belief(matrix, "assumed", family="uniform")
        self.classes_, self.guesses = np.array(TREES), guesses

    def encode(self, y):
        return np.asarray(y)

    def predict(self, X):
        return self.classes_[self.guesses]

    def predict_proba(self, X):
        return 0.9 * np.eye(6)[self.guesses] + 0.1 / 6


@pytest.mark.parametrize("scorer", [AccuracyScorer, LogLikelihoodScorer])
def test_scorers_warn_once_a_call(scorer):
    table, _ = held_out(inverse_size_transition(SHARES))
    ybar, guesses = (np.repeat(index.ravel(), table.ravel()) for index in np.indices((6, 6)))
    model = Fitted(uniform_transition(6), guesses)
    with pytest.warns(LabelWarning, match="'pine' is .* uniform labels allow at most 20 %") as caught:
        scorer()(model, None, ybar)
    assert len(caught) == 1
    right = inverse_size_transition(SHARES)
    assert np.isfinite(scorer(transition=right)(model, None, ybar))  # as it is the scorer's Q that is asked
