"""What the default's choices cost: seconds of ``ComplementaryClassifier().fit`` against a single run, in one process.

    WCLL_DATA=DATA python benchmarks/default_times.py [--repeats 3] [--only linear]

MNIST with a rare class, p = 2, class 0 of the paper's tables, all of one thread: the default, and the default with a
linear model; the plain torch loop of ``fit.py``, one linear run of 100 epochs; and scikit-learn's logistic regression
on the true labels of the same images. Ratios of medians over interleaved repeats.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Callable

import numpy as np
import torch
from fit import plain_loop, seconds
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from wcll import ComplementaryClassifier
from wcll.datasets import load_dataset
from wcll.running.task import make_task
from wcll.suites import load_suite
from wcll.training import torch_threads

EPOCHS = 100


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of table 2's first setting, their complementary labels, and their true ones."""
    suite = load_suite("table2")
    row = next(row for row in suite.rows if row.title == "ordinary labels")
    task = make_task(suite.candidates(suite.columns[0], row, seed)[0], load_dataset("mnist"))
    assert task.limit is not None
    return task.train.x.flatten(1).numpy() / np.float32(task.scale), task.train.ybar, task.limit.y


def variants(x: np.ndarray, ybar: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    shared = {"random_state": 0, "device": "cpu"}
    return {
        "plain loop, one run": lambda: plain_loop(x, ybar, EPOCHS, 1),
        "logistic regression, true labels": lambda: LogisticRegression(max_iter=1000).fit(x, y),
        "default, linear": lambda: ComplementaryClassifier(model="linear", **shared).fit(x, ybar),
        "default": lambda: ComplementaryClassifier(**shared).fit(x, ybar),
    }


def measure(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median seconds of each, in turns, with one thread."""
    times: dict[str, list[float]] = {name: [] for name in work}
    with threadpool_limits(1), torch_threads(1):
        for _ in range(repeats):
            for name, one in work.items():
                times[name].append(seconds(one))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("linear",), help="leave the default with nothing given out")
    given = parser.parse_args()
    print(
        f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}, {os.cpu_count()} cores"
    )
    work = variants(*data())
    if given.only:
        del work["default"]
    found = measure(work, given.repeats)
    plain, limit = list(found)[:2]
    for name, value in found.items():
        ratios = f"{value / found[plain]:.2f} of {plain}, {value / found[limit]:.2f} of {limit}"
        print(f"{name}: {value:.1f} s; {ratios}")


if __name__ == "__main__":
    main()
