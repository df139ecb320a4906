"""No figure is ok that rests on a Q which the labels contradict: the cases of a new user's table of trees."""

from __future__ import annotations

import numpy as np
import pytest

from wcll import LabelWarning
from wcll.evaluation import LogLikelihoodScorer, label_free_confusion
from wcll.labels import (
    Belief,
    inverse_size_transition,
    transition_from_pairs,
    transition_from_repeated,
    uniform_transition,
)
from wcll.labels.transition import transition_from_pi

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
def test_the_right_q_is_not_accused(labels):
    matrix = {"uniform": uniform_transition(6), "biased": habits(), "inverse-size": inverse_size_transition(SHARES)}
    table, totals = held_out(matrix[labels])
    told = matrix[labels] if labels == "biased" else labels
    found = label_free_confusion(table, Belief.of(told, totals), classes=TREES)
    seen = "too few labels" if labels == "biased" else "can't be checked"  # its inverse is large
    assert found.accuracy.verdict == seen
    assert found.check.state == "can't be checked"
    known = label_free_confusion(table, Belief.true(matrix[labels], SHARES), classes=TREES)
    assert known.check.state == "not contradicted"
    assert known.accuracy.verdict == ("too few labels" if labels == "biased" else "ok")


def mixed(matrix, part):
    """Every row mixed with that of the next class: no label can tell, whatever the model."""
    return (1 - part) * matrix + part * np.roll(matrix, -1, axis=0)


@pytest.mark.parametrize("labels", ["uniform", "biased", "inverse-size"])
@pytest.mark.parametrize("part", [0.2, 1.0])
def test_a_wrong_q_that_nothing_can_show_is_never_ok(labels, part):
    believed = {"uniform": uniform_transition(6), "biased": habits(), "inverse-size": inverse_size_transition(SHARES)}
    table, totals = held_out(mixed(believed[labels], part), n=3000)
    found = label_free_confusion(table, Belief.of("uniform" if labels == "uniform" else believed[labels], totals))
    assert found.check.state == "can't be checked"
    verdicts = {figure.verdict for figure in figures(found)}
    assert verdicts <= {"can't be checked", "too few labels"}
    assert labels == "biased" or "can't be checked" in verdicts
    assert "Q can't be checked: some class shares give the labels of each prediction under " in str(found)
    remedy = "true pairs measure Q (wcll.labels.transition_from_pairs), as repeated labels of few classes do"
    assert remedy in str(found)


def test_right_and_wrong_that_give_the_same_table_are_told_the_same():
    """Uniform labels and a model of recall .7, or labels that at times name the true class and a better model."""
    k, part = 6, 0.2
    mixing = (1 - part) * np.eye(k) + part * uniform_transition(k)
    other = mixing @ uniform_transition(k)
    predicts = np.full((k, k), 0.06) + 0.64 * np.eye(k)
    joint = predicts / k
    sharper = np.linalg.solve(mixing.T, joint)
    assert (sharper > 0).all()
    table = 3000 * uniform_transition(k).T @ joint
    assert table == pytest.approx(3000 * other.T @ sharper)
    assert np.trace(sharper) > np.trace(joint) + 0.05
    table = np.rint(table).astype(int)
    right, wrong = (label_free_confusion(table, Belief.of(told, table.sum(axis=1))) for told in ("uniform", other))
    assert right.check.state == wrong.check.state == "can't be checked"
    assert right.accuracy.verdict == wrong.accuracy.verdict == "can't be checked"
    assert wrong.accuracy.value > right.accuracy.value + 0.05


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

    def as_trained(self, probabilities):
        return probabilities


def test_a_scorer_warns_once_a_call():
    table, _ = held_out(inverse_size_transition(SHARES))
    ybar, guesses = (np.repeat(index.ravel(), table.ravel()) for index in np.indices((6, 6)))
    model = Fitted(uniform_transition(6), guesses)
    with pytest.warns(LabelWarning, match="'pine' is .* uniform labels allow at most 20 %") as caught:
        LogLikelihoodScorer()(model, None, ybar)
    assert len(caught) == 1
    right = inverse_size_transition(SHARES)
    assert np.isfinite(
        LogLikelihoodScorer(transition=right)(model, None, ybar)
    )  # as it is the scorer's Q that is asked


def labelled(matrix, y, rng):
    return (rng.random(len(y))[:, None] > matrix[y].cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize(("pairs", "verdict"), [(400, "ok"), (100, "can't be checked")])
def test_pairs_that_tell_q_make_figures_ok(pairs, verdict):
    """A hundred do not: they would hardly show that the family is wrong which Q leans to."""
    rng = np.random.default_rng(0)
    matrix = transition_from_pi([3, 2, 1, 1, 2, 3])
    table, totals = held_out(matrix, n=3000)
    y = rng.choice(6, p=SHARES, size=pairs)
    y[:30] = np.repeat(np.arange(6), 5)  # some of every class
    found = transition_from_pairs(y, labelled(matrix, y, rng), 6, totals=totals)
    judged = label_free_confusion(table, Belief.of(found, totals), classes=TREES)
    assert judged.accuracy.verdict == verdict
    assert judged.accuracy.low <= 0.85 <= judged.accuracy.high
    state = {"ok": "not contradicted"}.get(verdict, verdict)
    assert judged.check.state == state
    said = "Q is not contradicted: " if verdict == "ok" else "Q can't be checked: "
    assert str(judged).splitlines()[1].startswith(said)


def test_pairs_of_other_labels_are_contradicted():
    rng = np.random.default_rng(0)
    table, totals = held_out(habits(), n=3000)
    y = rng.choice(6, p=SHARES, size=500)
    found = transition_from_pairs(y, labelled(uniform_transition(6), y, rng), 6, totals=totals)
    judged = label_free_confusion(table, Belief.of(found, totals))
    assert found.measured
    assert judged.check.contradicted
    assert judged.accuracy.verdict == "the assumed Q does not fit"


@pytest.mark.parametrize("labels", [2, 3])
def test_repeated_labels_make_figures_ok_where_they_tell_q(labels):
    """Two labels a sample are too few equations, whatever their number."""
    matrix, rng = np.array([[0, 0.7, 0.3], [0.2, 0, 0.8], [0.6, 0.4, 0]]), np.random.default_rng(0)
    y = rng.choice(3, p=[0.5, 0.3, 0.2], size=4500)
    ybar = np.stack([labelled(matrix, y, rng) for _ in range(labels)], axis=1)
    found = transition_from_repeated(ybar, 3, draws=4)
    belief = Belief.of(found, np.bincount(ybar.ravel(), minlength=3))
    predicts = np.full((3, 3), 0.075) + 0.775 * np.eye(3)
    joint = np.einsum("y,yj,yk->jk", [0.5, 0.3, 0.2], matrix, predicts)
    judged = label_free_confusion(rng.multinomial(1500, joint.ravel()).reshape(3, 3), belief)
    assert belief.known == found.measured == (labels == 3)
    assert judged.accuracy.verdict == ("ok" if labels == 3 else "can't be checked")
