"""The demonstration: the paper's methods on real digits with few samples of some classes."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from wcll import __version__
from wcll.checks import FloatArray, IntArray, positive
from wcll.evaluation import Confusion
from wcll.labels import imbalance_counts, make_complementary, make_imbalance
from wcll.losses import LOSSES, Targets
from wcll.losses.spec import BoundLoss
from wcll.models import build_model
from wcll.report.figures import bar_panel, curve_group, curve_panel
from wcll.report.page import render
from wcll.streams import stream
from wcll.training import LossGroup, RunAdam, Trainer, predict_logits
from wcll.training.context import assume

#: The ten methods of the paper, which assume uniform labels, and one that uses the selector that the counts imply.
PAPER_METHODS = ("pc", "nn", "free", "log", "exp", "l-w", "l-uw", "ncll", "ml-cll", "wcll")
METHODS = (*PAPER_METHODS, "forward")
LIMIT = "cross-entropy"
TITLES = {LIMIT: "Ordinary labels"}
LABELS = {"forward": "Forward, Q from counts", LIMIT: "Ordinary labels (limit)"}
N_CLASSES = 10


@dataclass(frozen=True)
class DemoSettings:
    """What the demonstration does.

    The optimiser is the paper's; as there are 15 times fewer samples, batches are halved and the rate is raised so that
    the sum of all rates is the paper's (about 8000 steps of 5e-4, here 800 of 5e-3).
    """

    p: float = 5.0
    minority: tuple[int, ...] = (0, 1)
    n_majority: int = 130
    transition: str = "inverse-size"
    model: str = "linear"
    lr: float = 5e-3
    weight_decay: float = 1e-4
    batch_size: int = 128
    epochs: int = 100
    trials: int = 5
    seed: int = 0


@dataclass(frozen=True)
class Training:
    """What training gets: images and labels, complementary ones but for the ordinary-label limit."""

    x: torch.Tensor
    labels: IntArray


@dataclass(frozen=True)
class Test:
    """What evaluation gets: test images and true labels."""

    x: torch.Tensor
    y: IntArray


@dataclass(frozen=True)
class Task:
    """One draw of the data."""

    weak: Training
    limit: Training  #: the same images with their true labels
    test: Test


@dataclass(frozen=True)
class MethodResult:
    """One method in one trial: the test confusion after every epoch, (epochs, k, k)."""

    method: str
    trial: int
    confusions: IntArray


@dataclass(frozen=True)
class DemoResult:
    """All that the report shows."""

    settings: DemoSettings
    results: list[MethodResult]
    sizes: dict[str, int]  #: samples for training and for testing
    seconds: float
    versions: dict[str, str]

    def last(self, method: str) -> list[Confusion]:
        """The final confusion of each trial."""
        return [Confusion(r.confusions[-1]) for r in self.results if r.method == method]

    def summary(self) -> list[dict[str, Any]]:
        """Mean and standard deviation (ddof=1) over trials of each method, fractions in [0, 1]."""
        rows = []
        minority = list(self.settings.minority)
        for method in (*METHODS, LIMIT):
            tables = self.last(method)
            figures = {
                "accuracy": [c.accuracy for c in tables],
                "balanced_accuracy": [c.balanced_accuracy for c in tables],
                "minority_recall": [float(c.recall[minority].mean()) for c in tables],
            }
            row: dict[str, Any] = {
                "method": method,
                "title": TITLES.get(method, LOSSES[method].title),
                "label": LABELS.get(method, LOSSES[method].title),
                "trials": len(tables),
            }
            for name, values in figures.items():
                row[name] = {"mean": float(np.mean(values)), "std": _std(values), "values": values}
            row["recall"] = np.mean([c.recall for c in tables], axis=0).tolist()
            rows.append(row)
        return rows

    def curves(self) -> dict[str, FloatArray]:
        """Accuracy after every epoch, (trials, epochs), of each method."""
        return {
            method: np.array(
                [[Confusion(c).accuracy for c in r.confusions] for r in self.results if r.method == method]
            )
            for method in (*METHODS, LIMIT)
        }

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "settings": asdict(self.settings),
            "rows": self.summary(),
            "sizes": self.sizes,
            "seconds": self.seconds,
            "versions": self.versions,
        }


def best_methods(rows: list[dict[str, Any]]) -> dict[str, str]:
    """For each figure, the method with the highest mean; the limit does not compete."""
    rivals = [row for row in rows if row["method"] != LIMIT]
    figures = ("accuracy", "balanced_accuracy", "minority_recall")
    return {figure: max(rivals, key=lambda row: row[figure]["mean"])["method"] for figure in figures}


def demo_page(result: DemoResult, command: str) -> str:
    """The report as one self-contained HTML page."""
    rows, curves = result.summary(), result.curves()
    names = [str(k) for k in range(N_CLASSES)]
    for row in rows:
        row["curve"] = curve_panel(row["label"], curves[row["method"]], behind="everyone")
        row["bars"] = bar_panel(row["label"], row["recall"], names, result.settings.minority)
    return render(
        "demo.html",
        title="wcll demo",
        rows=rows,
        everyone=curve_group("everyone", curves.values()),
        best=best_methods(rows),
        limit=LIMIT,
        settings=result.settings,
        minority=result.settings.minority,
        n_train=result.sizes["train"],
        n_test=result.sizes["test"],
        command=command,
        seconds=result.seconds,
        versions=", ".join(f"{name} {version}" for name, version in result.versions.items()),
    )


def _std(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def make_task(settings: DemoSettings, seed: int) -> Task:
    """Real digits, split, thinned out to Eq. 6 and labelled with what they are not."""
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    x = torch.as_tensor(images / 16, dtype=torch.float32)
    order = stream(seed, "validation").permutation(len(y))
    train, test = order[len(y) // 4 :], order[: len(y) // 4]
    sizes = imbalance_counts(
        n_majority=settings.n_majority, n_classes=N_CLASSES, minority=settings.minority, p=settings.p
    )
    available = np.minimum(sizes, np.bincount(y[train]))  # a class may fall short by a few
    kept = train[make_imbalance(y[train], available, random_state=seed)]
    ybar = np.asarray(make_complementary(y[kept], settings.transition, random_state=seed), dtype=np.int64)
    return Task(Training(x[kept], ybar), Training(x[kept], y[kept]), Test(x[test], y[test]))


def run_demo(settings: DemoSettings, progress: Callable[[int, int], None] = lambda done, total: None) -> DemoResult:
    """Train every method in every trial; ``progress`` is told how many epochs of runs are done, and of how many."""
    positive("trials", settings.trials)
    start = time.perf_counter()
    results: list[MethodResult] = []
    total = settings.trials * settings.epochs * (len(METHODS) + 1)
    done = 0
    for trial in range(settings.trials):
        task = make_task(settings, settings.seed + trial)
        for methods, training in ((METHODS, task.weak), ((LIMIT,), task.limit)):
            predictions = []
            for predicted in _predictions(methods, training, task.test.x, settings, settings.seed + trial):
                predictions.append(predicted)
                done += len(methods)
                progress(done, total)
            results += _evaluate(methods, np.stack(predictions), task.test.y, trial)
    versions = {
        "wcll": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} thread",
    }
    sizes = {"train": len(task.weak.labels), "test": len(task.test.y)}
    return DemoResult(settings, results, sizes, time.perf_counter() - start, versions)


def _predictions(
    methods: tuple[str, ...], training: Training, test: torch.Tensor, settings: DemoSettings, seed: int
) -> Iterator[IntArray]:
    """After every epoch, what each method predicts for the unlabelled test images: (methods, n)."""
    stack = build_model(settings.model, training.x.shape[1:], N_CLASSES, [seed] * len(methods))
    rates = torch.full((len(methods),), settings.lr)
    optimiser = RunAdam(stack.parameters(), rates, weight_decay=settings.weight_decay)
    losses = [LossGroup(_bound_loss(name, training.labels), i, i + 1) for i, name in enumerate(methods)]
    trainer = Trainer(stack, optimiser, losses, seed)
    targets = Targets.of(torch.as_tensor(training.labels), N_CLASSES)
    for _ in range(settings.epochs):
        trainer.run_epoch(training.x, targets, settings.batch_size)
        yield predict_logits(stack, test).argmax(-1).numpy()


def _bound_loss(name: str, labels: IntArray) -> BoundLoss:
    """A loss with what the labels alone tell: no class size is declared."""
    spec = LOSSES[name]
    totals = np.bincount(labels, minlength=N_CLASSES).astype(np.float64)
    assumed = assume(totals, "inverse-size" if name == "forward" else None, "auto", loss=name)
    return spec.bind(assumed.context(spec).beside(torch.empty(0, N_CLASSES)))


def _evaluate(methods: tuple[str, ...], predictions: IntArray, y: IntArray, trial: int) -> list[MethodResult]:
    """Join predictions (epochs, methods, n) with true labels, now that training is over."""
    return [
        MethodResult(method, trial, np.stack([Confusion.of(y, p, N_CLASSES).counts for p in predictions[:, i]]))
        for i, method in enumerate(methods)
    ]
