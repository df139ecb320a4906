"""How often 95 % intervals of label-free figures hold the truth, and how often narrow ones miss it.

    python benchmarks/intervals.py [--only uniform|biased|inverse-size] [--tables 200] [--draws 300]

Held-out tables are drawn for two classifiers: one guesses (every class alike), one is good (recall .85 of every class,
errors spread alike). Classes are balanced (uniform and biased Q) or every second one is 5 times rarer (inverse-size Q).
What is believed is right: Q and class shares told ("true"), Q told and the shares solved from the counts of training
labels ("solved"), or both recovered from these counts ("counts", inverse-size). Training labels are ten times as many
as held-out ones, at least 100; where not every class is among them, inverse-size counts make no belief: "-".

Shown, in percent: how often the intervals of accuracy, balanced accuracy, macro-F1 and of recalls (over classes and
tables) hold the truth; "ok": how often balanced accuracy is "ok" (of a Q that is told or recovered, "can't be checked":
its interval is as narrow), and "wrong": how often accuracy or balanced accuracy is so while its interval misses.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import defaultdict

import numpy as np
import scipy

from wcll.evaluation import Figure, LabelFreeConfusion, label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.labels.transition import biased_transition, inverse_size_transition, uniform_transition

CLASSES, LABELS = (2, 5, 10, 100), (1, 5, 10, 100, 1000)
KINDS = (
    *(("uniform", "true"), ("uniform", "solved"), ("biased", "true"), ("biased", "solved")),
    *(("inverse-size", "true"), ("inverse-size", "counts")),
)
RECALL = 0.85
NAMES = ("accuracy", "balanced", "F1", "recalls", "ok", "wrong")
NARROW = ("ok", "can't be checked")

Setting = tuple[np.ndarray, np.ndarray, np.ndarray]


def setting(kind: str, k: int, good: bool) -> Setting:
    """Class shares, Q, and P(prediction | y)."""
    shares = np.where(np.arange(k) % 2 == 0, 0.2, 1.0) if kind == "inverse-size" else np.ones(k)
    shares /= shares.sum()
    matrix = {
        "uniform": lambda: uniform_transition(k),
        "biased": lambda: biased_transition(k, strength="weak", random_state=0),
        "inverse-size": lambda: inverse_size_transition(shares),
    }[kind]()
    recall = RECALL if good else 1 / k
    predicts = np.full((k, k), (1 - recall) / (k - 1))
    np.fill_diagonal(predicts, recall)
    return shares, matrix, predicts


def belief_of(knows: str, shares: np.ndarray, matrix: np.ndarray, n: int, rng: np.random.Generator) -> Belief:
    """What somebody would believe who knows that much; raises if the labels do not allow it."""
    totals = rng.multinomial(max(10 * n, 100), shares @ matrix)
    if knows == "true":
        return Belief.true(matrix, shares)
    return Belief.of("inverse-size" if knows == "counts" else matrix, totals)


def macro_f1(shares: np.ndarray, predicts: np.ndarray) -> float:
    """Of the whole population."""
    return float(np.mean(2 * shares * np.diag(predicts) / (shares + shares @ predicts)))


def judged(found: LabelFreeConfusion, recall: float, f1: float) -> list[float]:
    """Ones and zeros for NAMES; accuracy, balanced accuracy and all recalls of these classifiers are equal."""

    def holds(figure: Figure, truth: float) -> bool:
        return figure.low - 1e-9 <= truth <= figure.high + 1e-9

    both = (found.accuracy, found.balanced_accuracy)
    wrong = any(figure.verdict in NARROW and not holds(figure, recall) for figure in both)
    held = [holds(both[0], recall), holds(both[1], recall), holds(found.macro_f1, f1)]
    recalls = float(np.mean([holds(figure, recall) for figure in found.recall]))
    return [*map(float, held), recalls, float(both[1].verdict in NARROW), float(wrong)]


def simulate(kind: str, knows: str, k: int, n: int, good: bool, tables: int, draws: int) -> np.ndarray | None:
    """The means of NAMES over tables; None if no belief can be had."""
    shares, matrix, predicts = setting(kind, k, good)
    joint = np.einsum("y,yj,yk->jk", shares, matrix, predicts).ravel()
    rng = np.random.default_rng([k, n, good, *map(ord, kind + knows)])
    rows = []
    for seed in range(tables):
        table = rng.multinomial(n, joint).reshape(k, k)
        try:
            belief = belief_of(knows, shares, matrix, n, rng)
        except InputError:
            continue
        found = label_free_confusion(table, belief, draws=draws, seed=seed)
        rows.append(judged(found, predicts[0, 0], macro_f1(shares, predicts)))
    return np.mean(rows, axis=0) if rows else None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--only", choices=sorted({kind for kind, _ in KINDS}))
    asked = parser.parse_args()
    start = time.perf_counter()
    print(f"{asked.tables} tables a line (a quarter for 100 classes), {asked.draws} draws; seeded by the setting")
    print(f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}")
    print(f"{'Q':<13}{'believed':<9}{'classifier':<11}{'K':>4}{'n':>6}" + "".join(f"{name:>10}" for name in NAMES))
    everything = defaultdict(list)
    for kind, knows in (one for one in KINDS if asked.only in (None, one[0])):
        for good in (False, True):
            for k in CLASSES:
                for n in LABELS:
                    tables = asked.tables if k < 100 else asked.tables // 4
                    found = simulate(kind, knows, k, n, good, tables, asked.draws)
                    line = f"{kind:<13}{knows:<9}{'good' if good else 'guessing':<11}{k:>4}{n:>6}"
                    cells = ["-"] * len(NAMES) if found is None else [f"{100 * one:.1f}" for one in found]
                    print(line + "".join(f"{cell:>10}" for cell in cells), flush=True)
                    if found is not None:
                        everything[kind, knows].append(found)
    print("mean (worst) over settings, of the last two mean (greatest)")
    for (kind, knows), rows in everything.items():
        mean, worst = 100 * np.mean(rows, axis=0), 100 * np.min(rows, axis=0)
        worst[4:] = 100 * np.max(rows, axis=0)[4:]
        cells = [f"{one:.1f} ({other:.1f})" for one, other in zip(mean, worst, strict=True)]
        print(f"{kind:<13}{knows:<9}" + "".join(f"{cell:>15}" for cell in cells))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
