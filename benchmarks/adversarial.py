"""The default on adversarial cases: ``ComplementaryClassifier()`` against six plain fits.

    python benchmarks/adversarial.py --out RUNS.jsonl [--seeds 200 201] [--only default] [--label before]
    python benchmarks/adversarial.py --out RUNS.jsonl --draws 0                      (only the table)

Digits are the 1797 images of scikit-learn, values from 0 to 1; 450 of them are the test set (stratified). Gaussians
have unit covariance in 10 dimensions, K = 5 random means, 3000 rows, and 5000 more for the test set. Purity is the
share of the 10 nearest neighbours that have the same class. The means are scaled until 3000 rows of equally frequent
classes have a purity of 0.85, or the one in the case's name. Labels, one per sample, are uniform; popularity (each
wrong class in proportion to its popularity, from a Dirichlet distribution with parameter 1.5); or biased (each row of Q
from that distribution, without its diagonal).

- 60 and 200 labels: as many digits, uniform. K=3: Gaussians, 300 rows, biased. K=50: Gaussians, 6000 rows, uniform.
- never named: digits, uniform without class 0, which is declared through ``classes``.
- 7 % true: digits; 93 % of the labels are uniform or popularity, the others name the true class.
- look-alikes, far: digits. Squared distances of a sample to the means of its wrong classes are standardised to z (mean
  0, standard deviation 1). Class k is named in proportion to exp(-z_k) (look-alikes) or exp(z_k) (far).
- copies: digits, uniform; every row five times, with the same label.
- correlated: Gaussians, uniform, mapped to 40 features by a random matrix. A common factor (standard deviation 5, with
  a random sign per feature) and noise (standard deviation 0.1) are added.
- 100:1: Gaussians, 6000 rows. Class frequencies fall geometrically by 100 to 1, in the test set also. The rarest class
  has about 34 test samples, so its recall is a rough estimate.
- purity: Gaussians whose neighbours say more or less.
- unscaled: digits, uniform; each column multiplied by 10^U(-1, 3), drawn once per seed. Also with ``model="linear"``.

Plain fits: ``forward`` with Q of popularity or uniform; linear at learning rates 2e-3 and 1e-2, mlp at 1e-3; about 1500
steps. Unscaled cases have them on standardised features as well; where the default is linear, so are they. The best
is selected on the test set (oracle), for each draw and metric.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from default_runs import AUTO, Drawn, Line, append, have, new, read, run_default, scores
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import HABITS, epochs_of

from wcll import ComplementaryClassifier
from wcll.experiments.task import Declared
from wcll.labels import make_complementary
from wcll.labels.transition import noisy_transition, normalised

PART, SEED, STANDARDISED = "adversarial", 200, ", standardised"
METRICS = ("accuracy", "balanced_accuracy", "min_recall")
FITS = [(q, *fit) for q in ("popularity", "uniform") for fit in (("linear", 2e-3), ("linear", 1e-2), ("mlp", 1e-3))]
Rng, Split = np.random.Generator, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  #: x, x_test, y, y_test


def digits(rng: Rng, n: int | None = None) -> Split:
    """Split the digits; train on the first n."""
    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x / 16, y, test_size=450, stratify=y, random_state=int(rng.integers(2**31)))
    return x[:n], x_test, y[:n], y_test


def gaussians(
    rng: Rng, n: int = 3000, k: int = 5, target: float = 0.85, ratio: float = 1.0, correlated: bool = False
) -> Split:
    """Draw Gaussian classes with means as far apart as the target purity needs."""
    means, y, noise = rng.normal(size=(k, 10)), np.arange(3000) % k, rng.normal(size=(3000, 10))
    low, high = 0.0, 20.0
    for _ in range(12):
        scale = (low + high) / 2
        low, high = (scale, high) if purity(scale * means[y] + noise, y) < target else (low, scale)
    y = rng.choice(k, n + 5000, p=normalised(ratio ** -np.linspace(0, 1, k)))
    x = scale * means[y] + rng.normal(size=(len(y), 10))
    if correlated:
        common = 5 * rng.normal(size=(len(x), 1)) * rng.choice([-1, 1], 40)
        x = x @ rng.normal(size=(10, 40)) + common + 0.1 * rng.normal(size=(len(x), 40))
    return x[:n], x[n:], y[:n], y[n:]


def purity(x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the 10 nearest neighbours that have the same class."""
    neighbours = NearestNeighbors(n_neighbors=10).fit(x).kneighbors(return_distance=False)
    return float((y[neighbours] == y[:, None]).mean())


def matrix(labels: str, k: int, rng: Rng) -> np.ndarray:
    """Return Q of uniform, popularity or biased labels, or of those that never name class 0."""
    rows = {"uniform": np.ones(k), "never": np.arange(k) > 0}.get(labels)
    if rows is None:
        rows = rng.dirichlet(np.full(k, HABITS), k if labels == "biased" else None)
    return normalised(rows * (1 - np.eye(k)))


def by_distance(x: np.ndarray, y: np.ndarray, k: int, sign: float, rng: Rng) -> np.ndarray:
    """Draw labels by how far a sample is from the means of the wrong classes."""
    means, wrong = np.stack([x[y == c].mean(axis=0) for c in range(k)]), y[:, None] != np.arange(k)
    squared = ((x[:, None] - means) ** 2).sum(axis=-1)[wrong].reshape(len(y), k - 1)
    z = (squared - squared.mean(axis=1, keepdims=True)) / squared.std(axis=1, keepdims=True)
    rows = np.zeros(wrong.shape)
    rows[wrong] = normalised(np.exp(sign * z)).ravel()
    return np.array([rng.choice(k, p=row) for row in rows])


@dataclass(frozen=True)
class Case:
    """Samples, labels and options of the classifier."""

    samples: Callable[[Rng], Split] = digits
    labels: str = "uniform"
    mistakes: float = 0.0
    copies: int = 1
    unscaled: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def draw(self, seed: int) -> tuple[Drawn, float]:
        """Return a draw and its purity in standardised features."""
        rng = np.random.default_rng(seed)
        x, x_test, y, y_test = self.samples(rng)
        k = int(y_test.max()) + 1
        same = purity(StandardScaler().fit_transform(x), y)
        if self.labels in ("look-alikes", "far"):
            ybar = by_distance(x, y, k, 1.0 if self.labels == "far" else -1.0, rng)
        else:
            q = noisy_transition(matrix(self.labels, k, rng), rate=self.mistakes)
            ybar = make_complementary(y, q, random_state=seed)
        factors = 10 ** rng.uniform(-1, 3, x.shape[1]) if self.unscaled else 1.0
        x, x_test = ((part * factors).astype(np.float32) for part in (np.repeat(x, self.copies, axis=0), x_test))
        sizes = self.copies * np.bincount(y, minlength=k)
        return Drawn(x, np.repeat(ybar, self.copies), x_test, y_test, sizes / sizes.sum(), Declared(sizes, None)), same


CASES = {
    **{f"{n} labels": Case(partial(digits, n=n)) for n in (60, 200)},
    "K=3, 300 labels, biased": Case(partial(gaussians, n=300, k=3), "biased"),
    "K=50, 6000 labels": Case(partial(gaussians, n=6000, k=50)),
    "never named": Case(labels="never"),
    **{f"7 % true, {labels}": Case(labels=labels, mistakes=0.07) for labels in ("uniform", "popularity")},
    **{labels: Case(labels=labels) for labels in ("look-alikes", "far")},
    "copies": Case(copies=5),
    "correlated": Case(partial(gaussians, correlated=True)),
    **{f"100:1, {q}": Case(partial(gaussians, n=6000, ratio=100), q) for q in ("uniform", "popularity")},
    "unscaled": Case(unscaled=True),
    **{
        f"purity {target}, {labels}": Case(partial(gaussians, target=target), labels)
        for target, labels in product((0.34, 0.5, 0.7, 0.85, 0.98), ("uniform", "biased"))
    },
    "unscaled, linear": Case(unscaled=True, options={"model": "linear"}),
}


def run_plain(drawn: Drawn, seed: int, standardised: bool, **options: Any) -> Line:
    """Fit one fixed configuration."""
    plain = ComplementaryClassifier("forward", max_epochs=epochs_of(len(drawn.x)), random_state=seed, **options)
    model = make_pipeline(StandardScaler(), plain) if standardised else plain
    start = time.perf_counter()
    model.fit(drawn.x, drawn.ybar)
    return {"seconds": time.perf_counter() - start, **scores(model, drawn)}


def runs(names: Sequence[str], seeds: Sequence[int], only: str | None, label: str, done: set[Any]) -> Iterator[Line]:
    """Yield a line per method; all cases of one seed come before the next seed."""
    for seed, name in product(seeds, names):
        case, (drawn, same) = CASES[name], CASES[name].draw(seed)
        k = len(drawn.shares)
        classes = {"classes": list(range(k))} if len(np.unique(drawn.ybar)) < k else {}
        todo = {label: partial(run_default, drawn, seed, **case.options, **classes)} if only != "plain" else {}
        for standardised, (q, model, lr) in product((False, True), FITS if only != "default" else []):
            if standardised <= case.unscaled and case.options.get("model", model) == model:
                fit = partial(run_plain, drawn, seed, standardised, transition=q, model=model, lr=lr, device="cpu")
                todo[f"plain, {q}, {model}, {lr:g}{STANDARDISED * standardised}"] = partial(fit, **classes)
        for method, run in todo.items():
            if (PART, name, seed, method) not in done:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    line = {**run(), "warnings": [str(warning.message) for warning in caught]}
                yield {"part": PART, "setting": name, "seed": seed, "purity": same, **line, "method": method}


def summary(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the table: means over the draws that have the default and plain fits."""
    yield "accuracy | balanced accuracy | minimal recall: default, best plain fit, difference | seconds of the default"
    rivals: dict[tuple[str, int, bool], list[Line]] = defaultdict(list)
    rows: dict[tuple[str, str, bool], list[list[float]]] = defaultdict(list)
    for line in lines:
        if line["method"].startswith("plain"):
            rivals[line["setting"], line["seed"], line["method"].endswith(STANDARDISED)].append(line)
    for line, standardised in product(lines, (False, True)):
        plain = rivals[line["setting"], line["seed"], standardised]
        if plain and not line["method"].startswith("plain"):
            figures = [value for metric in METRICS for value in (line[metric], max(fit[metric] for fit in plain))]
            rows[line["setting"], line["method"], standardised].append([*figures, line["seconds"], line["purity"]])
    for (name, label, standardised), values in sorted(rows.items(), key=lambda row: [*CASES].index(row[0][0])):
        *figures, seconds, same = np.mean(values, axis=0)
        pairs = zip(figures[::2], figures[1::2], strict=True)
        cells = " | ".join(f"{own:5.1f} {best:5.1f} {own - best:+6.1f}" for own, best in pairs)
        title = f"{name}{STANDARDISED * standardised} (n={len(values)}, purity {same:.2f})"
        yield f"{title:50} {label:8} | {cells} | {seconds:4.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines; runs that it has are skipped")
    parser.add_argument("--draws", type=int, default=2, help=f"number of seeds, from {SEED} on; 0: only the table")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of --draws")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--only", choices=("default", "plain"))
    parser.add_argument("--label", default=AUTO, help="name of the default's rows, such as before or after")
    given = parser.parse_args()
    seeds = given.seeds or range(SEED, SEED + given.draws)
    append(given.out, new(runs(given.cases, seeds, given.only, given.label, have(given.out)), given.out))
    print(*summary(read([given.out])), sep="\n")


if __name__ == "__main__":
    main()
