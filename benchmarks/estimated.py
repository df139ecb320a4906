"""How often 95 % intervals hold the truth where Q is not known but estimated, and what is then called "ok".

    python benchmarks/estimated.py [--only popularity|inverse-size|pairs|repeated] [--draws 200]

4500 labels of K classes to estimate Q from, 1500 held out, a simulated model (recall .85 of every class, errors spread
alike). Class shares are drawn anew each time from Dirichlet(10, ..., 10). Q is estimated by a family from label counts
(popularity, inverse-size: the family is right), from 300 true pairs and the counts, or from three labels of each of the
4500 samples. Pairs and repeated labels lean to popularity; the true Q is popularity ("family") or a biased one, weak or
strong, of which the leaning is wrong.

Shown: in how many draws (percent) the interval of accuracy and of balanced accuracy holds the truth; the same among
narrow intervals, those that are "ok" or "can't be checked", and how many these are; and how often accuracy is "ok",
"can't be checked", "too few labels", or Q accused though its estimate is as good as the labels allow.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator

import numpy as np
import scipy

from wcll.evaluation import Figure, LabelFreeConfusion, label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import (
    Belief,
    biased_transition,
    inverse_size_transition,
    transition_from_pairs,
    transition_from_repeated,
)
from wcll.labels.transition import normalised, transition_from_pi

TRAIN, HELD_OUT, PAIRS, REPEATED, RECALL, CLASSES = 4500, 1500, 300, 3, 0.85, (3, 6, 10)
WAYS = {"inverse-size": ("family",), "popularity": ("family",)}
WAYS["pairs"] = WAYS["repeated"] = ("family", "weak", "strong")
VERDICTS = ("ok", "can't be checked", "too few labels", "the assumed Q does not fit")
NAMES = ("accuracy", "balanced", "narrow", "of", "narrow b.", "of", "ok", "can't", "too few", "accused")

World = tuple[np.ndarray, np.ndarray]


def world_of(way: str, kind: str, k: int, rng: np.random.Generator) -> World:
    """Class shares and Q."""
    shares = rng.dirichlet(np.full(k, 10.0))
    if way == "inverse-size":
        return shares, inverse_size_transition(shares)
    if kind != "family":
        return shares, biased_transition(k, strength=kind, random_state=rng)
    popularity = rng.dirichlet(np.full(k, 8.0))
    if way == "popularity":  # what counts tell of it takes these class shares
        shares = normalised(1 - popularity)
    return shares, transition_from_pi(popularity)


def labels_of(matrix: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label for each sample."""
    return (rng.random(len(y))[:, None] > matrix[y].cumsum(axis=1)).sum(axis=1).clip(0, len(matrix) - 1)


def belief_of(way: str, world: World, rng: np.random.Generator) -> Belief:
    """What the labels tell by this way."""
    shares, matrix = world
    k = len(shares)
    y = rng.choice(k, TRAIN, p=shares)
    labels = np.stack([labels_of(matrix, y, rng) for _ in range(REPEATED if way == "repeated" else 1)], axis=1)
    totals = np.bincount(labels.ravel(), minlength=k)
    if way == "repeated":
        return Belief.of(transition_from_repeated(labels, k), totals)
    if way == "pairs":
        true = rng.choice(k, PAIRS, p=shares)
        return Belief.of(transition_from_pairs(true, labels_of(matrix, true, rng), k, totals=totals), totals)
    return Belief.of(way, totals)


def draws_of(way: str, kind: str, k: int, draws: int) -> Iterator[LabelFreeConfusion]:
    """Held-out tables, judged."""
    predicts = np.full((k, k), (1 - RECALL) / (k - 1))
    np.fill_diagonal(predicts, RECALL)
    for seed in range(draws):
        rng = np.random.default_rng([k, seed, *map(ord, way + kind)])
        world = world_of(way, kind, k, rng)
        joint = np.einsum("y,yj,yk->jk", *world, predicts)
        table = rng.multinomial(HELD_OUT, joint.ravel()).reshape(k, k)
        try:
            yield label_free_confusion(table, belief_of(way, world, rng), draws=200, seed=seed)
        except InputError:  # counts that no selector of this family gives
            continue


def coverage(figures: list[Figure]) -> list[float]:
    """How often the truth is held: by all intervals, and by narrow ones; how many these are."""
    held = np.array([one.low - 1e-9 <= RECALL <= one.high + 1e-9 for one in figures])
    narrow = np.array([one.verdict in VERDICTS[:2] for one in figures])
    return [100 * held.mean(), 100 * held[narrow].mean() if narrow.any() else np.nan, int(narrow.sum())]


def line(found: list[LabelFreeConfusion]) -> list[float]:
    """NAMES."""
    accuracy, balanced = coverage([one.accuracy for one in found]), coverage([one.balanced_accuracy for one in found])
    verdicts = [one.accuracy.verdict for one in found]
    shares = [100 * verdicts.count(verdict) / len(verdicts) for verdict in VERDICTS]
    return [accuracy[0], balanced[0], *accuracy[1:], *balanced[1:], *shares]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=sorted(WAYS))
    asked = parser.parse_args()
    start = time.perf_counter()
    print(f"{asked.draws} draws a line, {TRAIN} labels to estimate from, {HELD_OUT} held out; seeded by the setting")
    versions = f"python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    print(f"{versions}; {os.cpu_count()} CPU cores, {platform.machine()}")
    print(f"{'estimated by':<14}{'true Q':<8}{'K':>3}" + "".join(f"{name:>10}" for name in NAMES))
    for way, kinds in ((way, kinds) for way, kinds in WAYS.items() if asked.only in (None, way)):
        for kind in kinds:
            for k in CLASSES:
                cells = line([*draws_of(way, kind, k, asked.draws)])
                text = "".join(f"{'-' if np.isnan(cell) else f'{cell:.1f}':>10}" for cell in cells)
                print(f"{way:<14}{kind:<8}{k:>3}{text}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
