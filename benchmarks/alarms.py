"""How often labels that contradict the assumed Q are found out, and how often a Q that is right is accused.

    python benchmarks/alarms.py [--only uniform|biased|inverse-size] [--draws 200]

6000 labels of K classes: 4500 to train on, whose counts ``fit`` looks at, and 1500 held out, which ``score`` and
``label_free_confusion`` look at together with the predictions of a simulated model (recall .85 of every class, in some
lines .6 or .99; errors are spread alike). Class shares are drawn anew each time from Dirichlet(3, ..., 3). What is
assumed: uniform labels, a biased Q that is told, or inverse-size labels, whose Q is estimated from the counts. What is
true: the same ("right"), or a Q whose rows are 20 % away on average (total variation):

    counts      rows shifted at random; expected label counts have a deviance of at least 30 from every mixture of rows
    hardly      the same; a deviance from 0.5 to 30
    model       the same, or estimated; expected counts fit the assumed Q (a deviance below 0.5)
    invisible   every true row is a mixture of assumed rows: no label and no model can tell. Mixing rows cannot move
                uniform labels of ten classes farther than 11 %, which is what is drawn there

Shown, in percent of draws: alarms by label counts in ``fit``; in ``score``, by held-out counts or predictions; by
intervals of figures that are outside [0, 1]; any of these; and how often balanced accuracy and accuracy are "ok".
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator

import numpy as np
import scipy

from wcll.checks import InputError
from wcll.evaluation import label_free_confusion
from wcll.labels import (
    Belief,
    biased_transition,
    check_counts,
    check_table,
    inverse_size_transition,
    shifted_transition,
    uniform_transition,
)
from wcll.labels.mixtures import nearest_mixtures

TRAIN, HELD_OUT, DISTANCE, CLASSES = 4500, 1500, 0.2, (3, 6, 10)
LISTS = {"uniform": ("right", "counts", "hardly", "model", "invisible"), "inverse-size": ("right", "model")}
LISTS["biased"] = LISTS["uniform"]
RECALLS = {"right": (0.85, 0.6, 0.99), "model": (0.85, 0.6)}
NAMES = ("fit", "score", "figures", "any", "ok", "acc. ok")

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
            if {"counts": away >= 30, "hardly": 0.5 <= away < 30, "model": away < 0.5}[kind]:
                yield shares, matrix, true


def judged(assumed: str, world: World, recall: float, rng: np.random.Generator) -> list[bool]:
    """NAMES of one draw of labels; raises if the labels allow no belief."""
    shares, matrix, true = world
    k = len(shares)
    predicts = np.full((k, k), (1 - recall) / (k - 1))
    np.fill_diagonal(predicts, recall)
    joint = np.einsum("y,yj,yk->jk", shares, true, predicts)
    totals = rng.multinomial(TRAIN, shares @ true)
    table = rng.multinomial(HELD_OUT, joint.ravel()).reshape(k, k)
    belief = Belief.of(matrix if assumed == "biased" else assumed, totals)
    found = label_free_confusion(table, belief, draws=100)
    figures = [found.accuracy, found.balanced_accuracy, found.macro_f1, *found.recall]
    fit, score = check_counts(totals, belief).contradicted, check_table(table, belief).contradicted
    outside = any(figure.low > 1 or figure.high < 0 for figure in figures)
    any_kind = fit or score or outside or found.check.contradicted
    return [fit, score, outside, any_kind, *(figure.verdict == "ok" for figure in figures[1::-1])]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=sorted(LISTS))
    asked = parser.parse_args()
    start = time.perf_counter()
    print(f"{asked.draws} draws a line, {TRAIN} labels to train on and {HELD_OUT} held out; seeded by the setting")
    print(f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}")
    print(f"{'assumed Q':<14}{'true Q':<11}{'recall':>6}{'K':>4}{'TV %':>6}" + "".join(f"{name:>9}" for name in NAMES))
    for assumed in (one for one in ("uniform", "biased", "inverse-size") if asked.only in (None, one)):
        for kind in LISTS[assumed]:
            for recall in RECALLS.get(kind, (0.85,)):
                for k in CLASSES:
                    rng = np.random.default_rng([k, int(100 * recall), *map(ord, kind + assumed)])
                    rows, away = [], []
                    for world in worlds(assumed, kind, k):
                        try:
                            rows.append(judged(assumed, world, recall, rng))
                        except InputError:  # counts that no inverse-size selector gives
                            continue
                        away.append(np.abs(world[1] - world[2]).sum(axis=1).mean() / 2)
                        if len(rows) == asked.draws:
                            break
                    cells = "".join(f"{100 * share:>9.1f}" for share in np.mean(rows, axis=0))
                    print(f"{assumed:<14}{kind:<11}{recall:>6}{k:>4}{100 * np.mean(away):>6.0f}{cells}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
