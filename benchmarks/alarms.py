"""How often labels that contradict the assumed Q are found out, and how often a Q that is right is accused.

    python benchmarks/alarms.py [--only uniform|biased|inverse-size] [--model simulated|fitted] [--draws 200]

6000 labels of K classes: 4500 to train on, whose counts ``fit`` looks at, and 1500 held out, which ``score`` and
``label_free_confusion`` look at with a model's predictions. Models are simulated (recall .85 of every class, in some
lines .6 or .99; errors are spread alike) or fitted: a linear ``ComplementaryClassifier`` of the first K digits of
MNIST (of scikit-learn's digits where there is no MNIST; images are drawn with replacement), trained with the assumed Q;
its predictions for the test set make the tables of 50 draws of labels, so that a
line has four models. Class shares are drawn anew for each world from Dirichlet(3, ..., 3). What is assumed: uniform
labels, a biased Q that is told, or inverse-size labels, whose Q is estimated from the counts. What is true: the same
("right"), or a Q whose rows are 20 % away on average (total variation):

    counts      rows shifted at random; expected label counts have a deviance of at least 30 from every mixture of rows
    model       the same, or estimated; expected counts fit the assumed Q (a deviance below 0.5), and the model shows it
    unseen      the same, but no test could show it with this model: see below
    invisible   every true row is a mixture of assumed rows: no label and no model can tell. Mixing rows cannot move
                uniform labels of ten classes farther than 11 %, which is what is drawn there

"Unseen" is decided by computation, not by what the alarms say. Let d be the deviance of the expected table of held-out
labels and predictions from the nearest table that the assumed Q allows. Who knew both tables could do no better than
the test of Neyman and Pearson of the one against the other, which, at the level of the alarms, sees a difference with
the chance Phi(sqrt(d) - z); no test of the assumed Q can be better. Where that is below 90 % the wrong Q is in the list
of those that cannot be seen with this model and so many labels; d = 0 means that the assumed Q allows the table itself.

Shown, in percent of draws: alarms by label counts in ``fit``; in ``score``, by held-out counts or predictions; by
intervals of figures that are outside [0, 1]; any of these; how often any figure is "ok" by mistake (never); how often
accuracy "can't be checked"; and what the best test that there can be would find ("best").
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
import scipy
import torch
from scipy.special import ndtr, ndtri

from wcll import ComplementaryClassifier, LabelWarning
from wcll.datasets import load_dataset
from wcll.evaluation import label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import (
    Belief,
    biased_transition,
    check_counts,
    check_table,
    inverse_size_transition,
    make_complementary,
    shifted_transition,
    uniform_transition,
)
from wcll.labels.goodness_of_fit import LEVEL, nearest_mixtures

TRAIN, HELD_OUT, DISTANCE, CLASSES = 4500, 1500, 0.2, (3, 6, 10)
LISTS = {"uniform": ("right", "counts", "model", "invisible"), "inverse-size": ("right", "model")}
LISTS["biased"] = LISTS["uniform"]
RECALLS = {"right": (0.85, 0.6, 0.99), "model": (0.85, 0.6)}
ENOUGH = 0.9  #: of the best test's alarms: below, a wrong Q cannot be seen
A_MODEL = 50  #: draws of labels for one fitted model
TRIES = 5  #: worlds for each that is wanted, among which those are looked for that a model shows
NAMES = ("fit", "score", "figures", "any", "ok", "can't", "best")

World = tuple[np.ndarray, np.ndarray, np.ndarray]


def mixed(matrix: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every row mixed with that of another class, by as much as moves it DISTANCE on average, if that is possible."""
    k = len(matrix)
    other = matrix[(np.arange(k) + rng.integers(1, k)) % k]
    moved = np.abs(other - matrix).sum(axis=1).mean() / 2
    part = min(1.0, DISTANCE / moved)
    return (1 - part) * matrix + part * other


def worlds(assumed: str, kind: str, k: int) -> Iterator[World]:
    """Class shares, the Q that is assumed, and the Q that is true, for ever."""
    rng = np.random.default_rng([k, *map(ord, assumed + kind)])
    while True:
        shares = rng.dirichlet(np.full(k, 3.0))
        matrix = {
            "uniform": lambda: uniform_transition(k),
            "biased": lambda: biased_transition(k, random_state=rng),
            "inverse-size": lambda shares=shares: inverse_size_transition(shares),
        }[assumed]()
        if kind == "right":
            yield shares, matrix, matrix
        elif kind == "invisible":
            yield shares, matrix, mixed(matrix, rng)
        else:
            true = shifted_transition(matrix, distance=DISTANCE, random_state=rng)
            expected = TRAIN * (shares @ true)[None]
            away = nearest_mixtures(expected, matrix).deviance[0] if assumed != "inverse-size" else 0.0
            if {"counts": away >= 30, "model": away < 0.5}[kind]:  # what is between, counts show at times
                yield shares, matrix, true


def simulated(k: int, recall: float) -> np.ndarray:
    """P(prediction | y) of a model with this recall of every class."""
    predicts = np.full((k, k), (1 - recall) / (k - 1))
    np.fill_diagonal(predicts, recall)
    return predicts


@cache
def images() -> tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The data set's name, features and classes to train on, and of its test set."""
    try:
        data = load_dataset("mnist")
    except InputError:
        data = load_dataset("digits")
    x, x_test = (np.asarray(split.x, dtype=np.float32).reshape(len(split.x), -1) for split in (data.train, data.test))
    return data.name, x / x.max(), np.asarray(data.train.y), x_test / x.max(), np.asarray(data.test.y)


def fitted(assumed: str, world: World, rng: np.random.Generator) -> np.ndarray:
    """P(prediction | y) on the test set, of a model that learnt from TRAIN labels with the assumed Q."""
    shares, matrix, true = world
    k = len(shares)
    _, x, y, x_test, y_test = images()
    classes = rng.choice(k, TRAIN, p=shares)
    which = np.empty(TRAIN, dtype=np.int64)
    for one in range(k):
        which[classes == one] = rng.choice(np.flatnonzero(y == one), np.count_nonzero(classes == one))
    labels = make_complementary(classes, true, random_state=rng)
    told = matrix if assumed == "biased" else assumed
    model = ComplementaryClassifier(
        "forward", classes=range(k), transition=told, lr=5e-3, max_epochs=15, device="cpu", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # alarms are counted later
        model.fit(x[which], labels)
    predicts = np.zeros((k, k))
    own = y_test < k
    np.add.at(predicts, (y_test[own], model.predict(x_test[own])), 1.0)
    return predicts / predicts.sum(axis=1, keepdims=True)


def at_best(assumed: str, world: World, predicts: np.ndarray) -> float:
    """The chance of an alarm that no test of the assumed Q can exceed."""
    shares, matrix, true = world
    if assumed == "inverse-size":
        matrix = Belief.of(assumed, TRAIN * (shares @ true)).transition
    table = HELD_OUT * np.einsum("y,yj,yk->kj", shares, true, predicts)
    away = nearest_mixtures(np.vstack([TRAIN * (shares @ true), table]), matrix).deviance.sum()
    return float(ndtr(np.sqrt(max(away, 0.0)) - ndtri(1 - LEVEL)))


def judged(assumed: str, world: World, predicts: np.ndarray, rng: np.random.Generator) -> list[float]:
    """NAMES, but the last, of one draw of labels; raises if the labels allow no belief."""
    shares, matrix, true = world
    joint = np.einsum("y,yj,yk->jk", shares, true, predicts)
    totals = rng.multinomial(TRAIN, shares @ true)
    table = rng.multinomial(HELD_OUT, joint.ravel()).reshape(joint.shape)
    belief = Belief.of(matrix if assumed == "biased" else assumed, totals)
    found = label_free_confusion(table, belief, draws=100)
    figures = [found.accuracy, found.balanced_accuracy, found.macro_f1, *found.recall]
    fit = found.check.contradicted and found.check.by == "counts"  # of the training labels, which are more
    score = (
        check_counts(table.sum(axis=1), belief).contradicted
        or (check_table(table, belief) if fit else found.check).contradicted
    )
    outside = any(figure.low > 1 or figure.high < 0 for figure in figures)
    any_kind = fit or score or outside
    ok = any(figure.verdict == "ok" for figure in figures)
    return [*map(float, (fit, score, outside, any_kind, ok, found.accuracy.verdict == "can't be checked"))]


def lines(assumed: str, kind: str, k: int, recall: float | None, draws: int) -> dict[str, list[list[float]]]:
    """By list, rows of NAMES, distance and recall; wrong Qs that no test can see with a model are "unseen"."""
    rng = np.random.default_rng([k, int(100 * (recall or 0)), *map(ord, kind + assumed)])
    each = 1 if recall else A_MODEL
    found: dict[str, list[list[float]]] = {kind: []}
    for tried, world in enumerate(worlds(assumed, kind, k)):
        if len(found[kind]) >= draws or tried * each >= TRIES * draws:
            break
        try:
            predicts = simulated(k, recall) if recall else fitted(assumed, world, rng)
            best = at_best(assumed, world, predicts)
        except InputError:  # counts that no inverse-size selector gives
            continue
        rows = found.setdefault("unseen" if kind == "model" and best < ENOUGH else kind, [])
        away = np.abs(world[1] - world[2]).sum(axis=1).mean() / 2
        for _ in range(each if len(rows) < draws else 0):
            try:
                row = judged(assumed, world, predicts, rng)
            except InputError:
                continue
            rows.append([*row, 0.0 if kind == "right" else best, away, float(np.diag(predicts).mean())])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=sorted(LISTS))
    parser.add_argument("--model", choices=("simulated", "fitted"), default="simulated")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    start = time.perf_counter()
    real = asked.model == "fitted"
    models = f"linear models of {images()[0]}, {A_MODEL} draws each" if real else "simulated models"
    print(
        f"{asked.draws} draws a line, {TRAIN} labels to train on, {HELD_OUT} held out; {models}; seeded by the setting"
    )
    versions = f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    print(f"{versions}, torch {torch.__version__}; {os.cpu_count()} CPU cores, {platform.machine()}")
    titles = "".join(f"{name:>9}" for name in NAMES)
    print(f"{'assumed Q':<14}{'true Q':<11}{'recall':>6}{'K':>4}{'TV %':>6}{'draws':>7}{titles}")
    for assumed in (one for one in ("uniform", "biased", "inverse-size") if asked.only in (None, one)):
        for kind in LISTS[assumed]:
            for recall in (None,) if real else RECALLS.get(kind, (0.85,)):
                for k in CLASSES:
                    for name, rows in lines(assumed, kind, k, recall, asked.draws).items():
                        if not rows:
                            continue
                        *shares, away, known = np.mean(rows, axis=0)
                        cells = "".join(f"{100 * share:>9.1f}" for share in shares)
                        head = f"{assumed:<14}{name:<11}{known:>6.2f}{k:>4}{100 * away:>6.0f}{len(rows):>7}"
                        print(head + cells, flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
