"""Time of the default: seconds of ``ComplementaryClassifier().fit`` next to single fits, all in one process.

    WCLL_DATA=DATA python benchmarks/default_times.py [--repeats 3] [--data mnist digits table large]

MNIST is 19,000 images with a rare class (p = 2, class 0 of the paper's tables), digits are scikit-learn's 1797 images
with uniform labels. Table and large are made up: 6000 rows of 20 features in six Gaussian classes, and 500,000 rows of
100 features in ten, with biased labels. A quarter of the digits, and 10,000 rows of the others, are the test set. Each
variant takes the threads that it chooses; the plain torch loops of ``fit.py`` (2000 steps) take one, and all cores.
Accuracy is that on the test set, or on rows of the same classes that were not trained on. Prints medians over
interleaved repeats, and their ratios to the faster plain loop of a linear model. For ``large`` (one repeat) there are
also the seconds and the memory of a search for neighbours among 50,000 of its rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import torch
from fit import HIDDEN, plain_loop, seconds
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from wcll import ComplementaryClassifier
from wcll._neighbors import MAX_REFERENCES, components, nearest_neighbors
from wcll.datasets import load_dataset
from wcll.experiments import load_suite
from wcll.experiments.task import make_task
from wcll.labels import biased_transition, make_complementary

BATCH, STEPS = 256, 2000
CORES = os.cpu_count() or 1
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  #: x, complementary and true labels; test set


def mnist() -> Data:
    """Return images of table 2's first setting."""
    suite = load_suite("table2")
    row = next(row for row in suite.rows if row.title == "ordinary labels")
    task = make_task(suite.candidates(suite.columns[0], row, 0)[0], load_dataset("mnist"))
    assert task.limit is not None
    x, x_test = (part.flatten(1).numpy() / np.float32(task.scale) for part in (task.train.x, task.test.x))
    return x, task.train.ybar, task.limit.y, x_test, task.test.y


def digits() -> Data:
    """Return scikit-learn's digits with uniform labels."""
    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split((x / 16).astype(np.float32), y, test_size=450, stratify=y, random_state=0)
    return x, make_complementary(y, random_state=0), y, x_test, y_test


def gaussians(n: int, n_features: int, k: int, distance: float) -> Data:
    """Return Gaussian classes, whose means have this standard deviation per feature, with biased labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n + 10_000)
    x = (distance * rng.normal(size=(k, n_features))[y] + rng.normal(size=(len(y), n_features))).astype(np.float32)
    ybar = make_complementary(y[:n], biased_transition(k, strength="strong", random_state=0), random_state=0)
    return x[:n], ybar, y[:n], x[n:], y[n:]


def variants(data: Data) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by name."""
    x, ybar, y = data[:3]
    shared, epochs = {"random_state": 0, "device": "cpu"}, max(round(STEPS / max(len(x) // BATCH, 1)), 1)
    named = {"max_epochs": epochs, "lr": 1e-3, **shared}
    mlp = {"name": "mlp", "hidden": HIDDEN}
    return {
        "plain loop, linear, 1 thread": lambda: plain_loop(x, ybar, epochs, 1),
        f"plain loop, linear, {CORES} threads": lambda: plain_loop(x, ybar, epochs, CORES),
        "fit, linear": lambda: ComplementaryClassifier("wcll", **named).fit(x, ybar),
        "plain loop, mlp, 1 thread": lambda: plain_loop(x, ybar, epochs, 1, HIDDEN),
        f"plain loop, mlp, {CORES} threads": lambda: plain_loop(x, ybar, epochs, CORES, HIDDEN),
        "fit, mlp": lambda: ComplementaryClassifier("wcll", model=mlp, **named).fit(x, ybar),
        "logistic regression, true labels": lambda: LogisticRegression(max_iter=1000).fit(x, y),
        "default, linear": lambda: ComplementaryClassifier(model="linear", **shared).fit(x, ybar),
        "default": lambda: ComplementaryClassifier(**shared).fit(x, ybar),
    }


def measure(work: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the median seconds of each, in turns, and what each returned last."""
    times: dict[str, list[float]] = {name: [] for name in work}
    found: dict[str, Any] = {}
    for _ in range(repeats):
        for name, one in work.items():
            times[name].append(seconds(lambda name=name, one=one: found.update({name: one()})))
    return {name: statistics.median(values) for name, values in times.items()}, found


def report(name: str, data: Data, repeats: int) -> None:
    """Print seconds, ratios and accuracies."""
    work = variants(data)
    if name == "large":
        work = {key: one for key, one in work.items() if key.startswith("default")}
        measure_neighbors(data[0])
    times, found = measure(work, repeats)
    plain = min((value for key, value in times.items() if key.startswith("plain loop, linear")), default=None)
    print(f"{name}: {len(data[0])} x {data[0].shape[1]}, {STEPS} steps of plain loops and named fits")
    for key, value in times.items():
        ratio = "" if plain is None else f"; {value / plain:.2f} of the faster plain loop of a linear model"
        model = found[key]
        right = "" if model is None else f"; accuracy {100 * (model.predict(data[3]) == data[4]).mean():.1f} %"
        print(f"  {key}: {value:.1f} s{ratio}{right}", flush=True)
    if name == "large":
        print(f"  peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


def measure_neighbors(x: np.ndarray) -> None:
    """Print seconds and additional memory of a search for neighbours."""
    process, highest, done = psutil.Process(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            highest[0] = max(highest[0], process.memory_info().rss)

    some = x[:MAX_REFERENCES].copy()
    start, before = time.perf_counter(), process.memory_info().rss
    watcher = threading.Thread(target=watch)
    watcher.start()
    nearest_neighbors(components(some), 10)
    took = time.perf_counter() - start
    done.set()
    watcher.join()
    more = (highest[0] - before) / 2**20
    print(f"neighbours of {len(some)} x {some.shape[1]}: {took:.1f} s, {more:.0f} MiB more memory")


def main() -> None:
    sets = {
        "mnist": mnist,
        "digits": digits,
        "table": lambda: gaussians(6000, 20, 6, 0.6),
        "large": lambda: gaussians(500_000, 100, 10, 0.25),
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=list(sets), default=list(sets))
    given = parser.parse_args()
    print(f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}, {CORES} cores")
    print(f"load average at the beginning: {os.getloadavg()[0]:.1f}")
    for name in given.data:
        report(name, sets[name](), 1 if name == "large" else given.repeats)
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
