"""How many labels are needed: accuracy against the number of complementary labels, in worlds that are known.

    python benchmarks/label_needs.py [--seeds 5] [--out benchmarks/results/label_needs.json]

Worlds: K Gaussian classes, one a direction of 30, all equally far apart, so far that nobody can be right in more than
90 or 70 % of balanced samples (the limit, by integration); and scikit-learn's digits. Settings: K = 3, 5, 10; the first
class as frequent as each other or a fifth of that; one or three labels a sample (two of three classes, which is all
that can be said of them); and annotators who choose among the wrong classes

- uniform: each alike,
- popularity: some classes come to mind up to four times as easily as others, whatever the true one is,
- biased: every class has habits of its own (``biased-strong``: .75/.24/.01 for thirds of the wrong classes).

Who learns: a linear model, by forward correction, told the true Q or popularity's, fitted to the label counts, with the
first epochs as ``ComplementaryClassifier`` has them. A fifth of the labels, which are counted, is held out: rate and
epoch are those that make them likeliest. "ordinary labels" is cross-entropy on true labels of as many samples, chosen
the same way. True labels are used for that and for the evaluation: accuracy on samples of which every class has as
many, and recall of the first class. "the default" is ``ComplementaryClassifier(model="linear")``, told nothing, in a
few of these settings and with two seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm, t
from sklearn.datasets import load_digits

from wcll import ComplementaryClassifier
from wcll._random import stream
from wcll.evaluation import checkpoints
from wcll.experiments.row import provenance
from wcll.labels import Belief, biased_transition, make_complementary, transition_from_pi, uniform_transition
from wcll.labels.counts import label_totals
from wcll.labels.families import EARLY
from wcll.losses import LOSSES, Targets
from wcll.training import Engine, RunGroup, RunLoss, Training, dtype_and_device, make_engine, torch_threads, train

CLASSES, RATIOS, LIMITS = (3, 5, 10), (1, 5), (70, 90)
SEVERAL = {3: 2, 5: 3, 10: 3}  #: labels a sample, if not one: of three classes two are all that can be
LABELS = (100, 300, 1000, 3000, 10_000, 30_000)
BIASES = ("uniform", "popularity", "biased")
TOLD = ("true Q", "Q from counts")
ORDINARY, DEFAULT = "ordinary labels", "the default"
FEATURES, TESTED, POPULAR = 30, 3000, 4.0
DIGITS, DIGITS_TESTED = "digits", 497  #: of 1797 images
RATES, BATCH, STEPS, DECAY, HELD_OUT = (2e-3, 1e-2, 5e-2), 256, 400, 1e-4, 0.2


@dataclass(frozen=True)
class Samples:
    """Features and true classes."""

    x: np.ndarray
    y: np.ndarray

    def take(self, rows: Any) -> Samples:
        """Some of them."""
        return Samples(self.x[rows], self.y[rows])


@cache
def distance(k: int, limit: float) -> float:
    """How far the means of k classes lie out on their axes, for the best possible accuracy to be ``limit``."""

    def accuracy(a: float) -> float:  # x_y is the largest of k independent normal numbers, of which it has the mean a
        return float(quad(lambda x: norm.pdf(x - a) * norm.cdf(x) ** (k - 1), -9, a + 9)[0])

    return float(brentq(lambda a: accuracy(a) - limit, 0, 12))


def shares_of(k: int, p: int) -> np.ndarray:
    """Of classes of which the first is p times rarer than each other."""
    sizes = np.r_[1 / p, np.ones(k - 1)]
    return sizes / sizes.sum()


def gaussian(k: int, y: np.ndarray, limit: float, rng: np.random.Generator) -> Samples:
    """Samples of these classes."""
    x = rng.standard_normal((len(y), FEATURES))
    x[np.arange(len(y)), y] += distance(k, limit)
    return Samples(x.astype(np.float32), y)


def gaussians(k: int, p: int, limit: int, n: int, seed: int) -> tuple[Samples, Samples]:
    """Samples to learn from, and balanced ones to test with."""
    rng = stream(seed, "labels", "world")
    test = gaussian(k, np.arange(TESTED) % k, limit / 100, rng)
    return gaussian(k, rng.choice(k, n, p=shares_of(k, p)), limit / 100, rng), test


def digits(p: int, n: int, seed: int) -> tuple[Samples, Samples] | None:
    """The same of digits; None if there are not as many."""
    x, y = load_digits(return_X_y=True)
    order = stream(seed, "labels", "world").permutation(len(y))
    everything = Samples((x[order] / 16).astype(np.float32), y[order])
    pool, test = everything.take(slice(DIGITS_TESTED, None)), everything.take(slice(DIGITS_TESTED))
    rare = np.flatnonzero(pool.y == 0)
    kept = np.setdiff1d(np.arange(len(pool.y)), rare[: len(rare) - len(rare) // p])
    return (pool.take(kept[:n]), test) if len(kept) >= n else None


def transition(bias: str, k: int, seed: int) -> np.ndarray:
    """Q of annotators; which classes are popular, and which habits there are, is drawn."""
    if bias == "uniform":
        return uniform_transition(k)
    if bias == "biased":
        return biased_transition(k, strength="strong", random_state=seed)
    return transition_from_pi(stream(seed, "labels", "popular").permutation(np.geomspace(1, POPULAR, k)))


def group_of(some: Samples, labels: np.ndarray, k: int, seed: int, known: np.ndarray | None) -> RunGroup:
    """All runs that learn from these labels: forward correction told either Q, or cross-entropy (``known`` is None)."""
    targets, n = Targets.of(torch.from_numpy(labels), k), len(RATES)
    if known is None:
        spec = LOSSES["cross-entropy"]
        losses = [RunLoss(spec, (), spec.told(Belief.of("uniform", np.ones(k))), 0, n)]
    else:
        spec, totals = LOSSES["forward"], label_totals(labels, k, np.ones(len(labels)))
        early = Belief.of(EARLY, totals)
        warm_up = warm_up_of(len(labels), epochs_of(len(labels)))
        losses = [
            RunLoss(spec, (), spec.told(belief), n * i, n * (i + 1)).after(warm_up, spec.told(early))
            for i, belief in enumerate((Belief.given(known, totals), early))
        ]
    return RunGroup(torch.from_numpy(some.x), targets, seed, [*RATES] * len(losses), losses)


def warm_up_of(n: int, epochs: int) -> int:
    """Return four epochs, or those of 300 steps if that is more; a third of all at most."""
    return min(max(4, ceil(300 / max(n // BATCH, 1))), epochs // 3)


def epochs_of(n: int) -> int:
    """As many as 400 steps are."""
    return max(10, ceil(STEPS / max(n // BATCH, 1)))


@dataclass(frozen=True)
class Draw:
    """One draw of a setting: what is learnt from, what is chosen by, what is tested."""

    group: RunGroup
    held: RunGroup
    test: Samples

    @staticmethod
    def of(drawn: tuple[Samples, Samples], k: int, bias: str | None, per_sample: int, seed: int) -> Draw:
        """Labels by annotators of this bias; the true ones if it is None."""
        pool, test = drawn
        known = None if bias is None else transition(bias, k, seed)
        labels = pool.y if known is None else make_complementary(pool.y, known, n_labels=per_sample, random_state=seed)
        held = np.arange(len(labels)) < max(1, round(HELD_OUT * len(labels)))
        both = [group_of(pool.take(rows), labels[rows], k, seed, known) for rows in (~held, held)]
        return Draw(both[0], both[1], test)


def accuracies(draws: Sequence[Draw], k: int) -> list[list[tuple[float, float]]]:
    """Of every draw and each of its losses, with rate and epoch chosen: accuracy and the first class's recall, in %."""
    n = len(draws[0].group.x)
    epochs = epochs_of(n)
    training = Training("linear", k, 1.0, min(BATCH, n), DECAY, *dtype_and_device("float32", "cpu"), epochs)
    engine, looked_at = make_engine([draw.group for draw in draws], training), checkpoints(epochs)
    seen = [(engine.prepare(draw.held.x), engine.prepare(torch.from_numpy(draw.test.x))) for draw in draws]
    best: dict[tuple[int, int], tuple[float, tuple[float, float]]] = {}

    def look(engine: Engine) -> None:
        if engine.epoch not in looked_at:
            return
        for i, (draw, (held, tested)) in enumerate(zip(draws, seen, strict=True)):
            logits, predicted = engine.predict(i, held), engine.predict(i, tested).argmax(-1).numpy()
            for j, loss in enumerate(draw.group.losses):
                runs = slice(loss.start, loss.stop)
                scores = loss.value(loss.context)(logits[runs], draw.held.targets).numpy()
                run = int(np.nan_to_num(scores, nan=np.inf).argmin())
                if (i, j) not in best or scores[run] < best[i, j][0]:
                    best[i, j] = float(scores[run]), figures(predicted[runs][run], draw.test.y)

    train(engine, epochs, [look])
    return [[best[i, j][1] for j in range(len(draw.group.losses))] for i, draw in enumerate(draws)]


def figures(predicted: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Accuracy with all classes alike, and recall of the first, in percent."""
    recalls = [float((predicted[y == c] == c).mean()) for c in range(int(y.max()) + 1)]
    return 100 * float(np.mean(recalls)), 100 * recalls[0]


def settings() -> Iterator[dict[str, Any]]:
    """Every world and way to label, also by ordinary labels."""
    worlds = [(limit, k) for limit in LIMITS for k in CLASSES] + [(DIGITS, 10)]
    for (world, k), p, n in product(worlds, RATIOS, LABELS):
        yield {"world": world, "k": k, "p": p, "bias": None, "per_sample": 1, "labels": n}
        for bias, several in product(BIASES, (1, SEVERAL[k])):
            yield {"world": world, "k": k, "p": p, "bias": bias, "per_sample": several, "labels": n}


def rows_of(one: dict[str, Any], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each loss: means over seeds and half of their 95 % intervals; none if there are too few images."""
    n, k, p = one["labels"] // one["per_sample"], one["k"], one["p"]
    drawn = [digits(p, n, s) if one["world"] == DIGITS else gaussians(k, p, one["world"], n, s) for s in seeds]
    if any(found is None for found in drawn):
        return []
    draws = [
        Draw.of(found, k, one["bias"], one["per_sample"], s) for found, s in zip(drawn, seeds, strict=True) if found
    ]
    found = np.array(accuracies(draws, k))  # (seeds, losses, 2)
    told = (ORDINARY,) if one["bias"] is None else TOLD
    return [{**one, "told": name, **spread(found[:, j])} for j, name in enumerate(told)]


def spread(values: np.ndarray) -> dict[str, Any]:
    """Means over seeds with half of their 95 % intervals (Student's t), and accuracies of every seed."""
    mean, n = values.mean(axis=0), len(values)
    half = t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    names = ("accuracy", "recall")
    plain = {name: [round(float(m), 1), round(float(h), 1)] for name, m, h in zip(names, mean, half, strict=True)}
    return {**plain, "seeds": [round(float(v), 1) for v in values[:, 0]]}


def rows_of_default(seeds: Sequence[int] = (0, 1)) -> Iterator[dict[str, Any]]:
    """The default, told nothing, with five balanced classes, one label a sample."""
    for bias, n in product(BIASES, (1000, 10_000)):
        k, found = 5, []
        for seed in seeds:
            pool, test = gaussians(k, 1, LIMITS[-1], n, seed)
            labels = make_complementary(pool.y, transition(bias, k, seed), random_state=seed)
            model = ComplementaryClassifier(model="linear", random_state=seed).fit(pool.x, labels)
            found.append(figures(model.predict(test.x), test.y))
        one = {"world": LIMITS[-1], "k": k, "p": 1, "bias": bias, "per_sample": 1, "labels": n, "told": DEFAULT}
        yield {**one, **spread(np.array(found))}


def lines_of(found: dict[str, Any]) -> Iterator[str]:
    """Everything as text, a line a setting."""
    made = ", ".join(f"{name} {value}" for name, value in found["made"].items())
    yield f"$ {found['command']}"
    yield f"seeds {found['seeds']}, {found['seconds']} s on a busy machine; {made}"
    yield "Accuracy in % with all classes alike, mean over seeds ± half of its 95 % interval, by the number of labels:"
    curves: dict[str, list[str]] = {}
    for row in found["rows"]:
        world = f"limit {row['world']} %" if row["world"] != DIGITS else DIGITS
        a_sample = "" if row["bias"] is None else f", {row['bias']}, {row['per_sample']} a sample"
        name = f"{world}, K = {row['k']}, p = {row['p']}{a_sample}: {row['told']}"
        mean, half = row["accuracy"]
        shown = f"{mean} ± {half}" if len(row["seeds"]) > 2 else " and ".join(map(str, row["seeds"]))
        curves.setdefault(name, []).append(f"{row['labels']}: {shown}")
    yield from (f"{name:68} {'  '.join(points)}" for name, points in curves.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "label_needs.json")
    asked = parser.parse_args()
    start, rows = time.perf_counter(), []
    with torch_threads(1):
        for one in settings():
            rows += rows_of(one, range(asked.seeds))
            print(*rows[-len(TOLD) :], sep="\n", flush=True)
        rows += rows_of_default()
        made = provenance(torch.device("cpu"))
    known = {
        "command": f"python benchmarks/label_needs.py --seeds {asked.seeds}",
        "seeds": list(range(asked.seeds)),
        "seconds": round(time.perf_counter() - start),
        "made": made,
        "limits": list(LIMITS),
        "labels": list(LABELS),
    }
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    head = json.dumps(known, indent=1).removesuffix("\n}")
    asked.out.write_text(f'{head},\n "rows": [\n{lines}\n ]\n}}\n')
    asked.out.with_suffix(".txt").write_text("\n".join(lines_of({**known, "rows": rows})) + "\n")
    print(f"{len(rows)} rows in {known['seconds']} s: {asked.out}")


if __name__ == "__main__":
    main()
