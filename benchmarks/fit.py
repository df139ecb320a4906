"""Compare ``fit`` with the same training as a plain torch loop, 20 epochs of random data with 10 classes.

    python benchmarks/fit.py [--repeats 5] [--epochs 20] [--only linear|mlp|cnn9]

Prints ratios of medians over interleaved repeats: ``fit`` over the faster of the plain loop with one thread and with
two (1.0 and less: fit is as fast). The linear model has 50,000 samples of 100 features, the mlp (500 hidden units)
20,000 of 784. For linear models also four rates as one stack over one rate. On a GPU, milliseconds per step of ``fit``
for ``cnn9`` on images of 32 x 32 pixels.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from wcll import ComplementaryClassifier
from wcll.losses import LOSSES, Context, Targets
from wcll.training import RunGroup, RunLoss, Training, make_engine, torch_threads, train

N, FEATURES, CLASSES, BATCH, RATE, DECAY = 50_000, 100, 10, 256, 5e-4, 1e-4
IMAGES, PIXELS, HIDDEN = 20_000, 784, 500  #: of the mlp: as many as images of MNIST have
RATES = (5e-3, 1e-3, 5e-4, 1e-4)
STEPS = 60  #: of an epoch of cnn9: about as many images as five classes of CIFAR-10 with 3000 each


def data(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Random features and labels: time does not depend on what they show."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, n_features), dtype=np.float32), rng.integers(0, CLASSES, n)


def plain_loop(x: np.ndarray, ybar: np.ndarray, epochs: int, threads: int, hidden: int | None = None) -> None:
    """Train a linear layer, or an mlp, as one would write it: torch's Adam, the same loss and number of steps."""
    with torch_threads(threads):
        features, targets = torch.from_numpy(x), Targets.of(torch.from_numpy(ybar), CLASSES)
        model: torch.nn.Module = torch.nn.Linear(x.shape[1] if hidden is None else hidden, CLASSES)
        if hidden is not None:
            model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], hidden), torch.nn.ReLU(), model)
        optimiser = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=DECAY)
        weight, pi = torch.ones(CLASSES), torch.full((CLASSES,), 1 / CLASSES)
        for _ in range(epochs):
            order, total = torch.randperm(len(x)), 0.0
            for start in range(0, len(x) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                optimiser.zero_grad()
                loss = LOSSES["wcll"].function(model(features[rows]), targets[rows], weight=weight, pi=pi)
                loss.backward()
                optimiser.step()
                total += loss.detach()


def fit(x: np.ndarray, ybar: np.ndarray, epochs: int, model: str | dict[str, object] = "linear") -> None:
    """Fit the estimator with the same settings."""
    options = {"lr": RATE, "weight_decay": DECAY, "batch_size": BATCH, "max_epochs": epochs, "device": "cpu"}
    options["model"] = model
    ComplementaryClassifier("wcll", random_state=0, **options).fit(x, ybar)


def stack(x: np.ndarray, ybar: np.ndarray, epochs: int, rates: tuple[float, ...]) -> None:
    """Several rates at once, on one thread."""
    told = Context(weight=np.ones(CLASSES), pi=np.full(CLASSES, 1 / CLASSES))
    loss = RunLoss(LOSSES["wcll"], (), told, 0, len(rates))
    targets = Targets.of(torch.from_numpy(ybar), CLASSES)
    training = Training("linear", CLASSES, 1.0, BATCH, DECAY, torch.float32, torch.device("cpu"), mean_losses=True)
    with torch_threads(1):
        train(make_engine([RunGroup(torch.from_numpy(x), targets, 0, rates, [loss])], training), epochs, [])


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(variants: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Print and return the median seconds of each variant, and print the ratio of ``fit`` to the faster plain loop."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats + 1):
        for name, work in variants.items():
            times[name].append(seconds(work))
    found = {name: statistics.median(values[1:]) for name, values in times.items()}  # the first warms up
    for name, value in found.items():
        print(f"{name}: {value:.2f} s")
    print(f"fit / plain loop: {found['fit'] / min(found['plain loop, 1 thread'], found['plain loop, 2 threads']):.2f}")
    return found


def linear(repeats: int, epochs: int) -> None:
    """Print the ratios of linear models on a CPU."""
    x, ybar = data(N, FEATURES)
    variants: dict[str, Callable[[], None]] = {
        "plain loop, 1 thread": lambda: plain_loop(x, ybar, epochs, 1),
        "plain loop, 2 threads": lambda: plain_loop(x, ybar, epochs, 2),
        "fit": lambda: fit(x, ybar, epochs),
        "stack of 1 rate": lambda: stack(x, ybar, epochs, RATES[:1]),
        "stack of 4 rates": lambda: stack(x, ybar, epochs, RATES),
    }
    found = compare(variants, repeats)
    print(f"4 rates / 1 rate: {found['stack of 4 rates'] / found['stack of 1 rate']:.2f}")


def mlp(repeats: int, epochs: int) -> None:
    """Print the ratio of an mlp on a CPU."""
    x, ybar = data(IMAGES, PIXELS)
    variants: dict[str, Callable[[], None]] = {
        "plain loop, 1 thread": lambda: plain_loop(x, ybar, epochs, 1, HIDDEN),
        "plain loop, 2 threads": lambda: plain_loop(x, ybar, epochs, 2, HIDDEN),
        "fit": lambda: fit(x, ybar, epochs, {"name": "mlp", "hidden": HIDDEN}),
    }
    compare(variants, repeats)


def cnn9(repeats: int) -> None:
    """Milliseconds a step of the paper's network on a GPU."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (STEPS * BATCH, 3, 32, 32), dtype=np.uint8)
    ybar = rng.integers(0, CLASSES, len(x))
    model = ComplementaryClassifier("wcll", model="cnn9", max_epochs=repeats + 1, random_state=0).fit(x, ybar)
    steps = [1000 * row["seconds"] / STEPS for row in model.history_[1:]]
    print(f"cnn9: {statistics.median(steps):.2f} ms a step of fit (epochs of {STEPS} steps, batches of {BATCH})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--only", choices=("linear", "mlp", "cnn9"))
    options = parser.parse_args()
    print(
        f"python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}, {os.cpu_count()} cores"
    )
    for kind, measure in (("linear", linear), ("mlp", mlp)):
        if options.only in (None, kind):
            print(kind)
            measure(options.repeats, options.epochs)
    if options.only in (None, "cnn9") and torch.cuda.is_available():
        print(torch.cuda.get_device_name())
        cnn9(options.repeats)


if __name__ == "__main__":
    main()
