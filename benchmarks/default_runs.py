"""What the benchmarks of ``ComplementaryClassifier()`` share: labels as suites draw them, runs, and lines of JSON."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from wcll import ComplementaryClassifier
from wcll.datasets import Dataset
from wcll.experiments.task import Declared, make_task
from wcll.experiments.trial import Trial

T = TypeVar("T")
Line = dict[str, Any]  #: a run: ``part``, ``setting``, ``seed``, ``method``, ``accuracy`` in percent, and more
AUTO = "auto"  #: the method of lines that the default made
SEEDS = (100, 101, 102, 103, 104)  #: fresh: nothing was chosen by looking at them


@dataclass(frozen=True)
class Drawn:
    """One draw: all images that have labels, and what is tested; ``y_test`` and ``shares`` are for evaluation alone."""

    x: np.ndarray  #: numbers from 0 to 1, one row an image; those that suites hold out are the last
    ybar: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    shares: np.ndarray  #: of the classes among the images
    declared: Declared  #: as suites tell their methods


def draw(trial: Trial, dataset: Dataset) -> Drawn:
    """The images and labels of a trial: those that its suite trains on, and those that it chooses by."""
    task = make_task(trial, dataset)
    parts = [task.train] if task.valid is None else [task.train, task.valid]
    sizes = task.declared.sizes if trial.imbalance_of is None else np.ones(task.n_classes)
    return Drawn(
        x=_numbers(torch.cat([part.x for part in parts]), task.scale),
        ybar=np.concatenate([part.ybar for part in parts]),
        x_test=_numbers(task.test.x, task.scale),
        y_test=task.test.y,
        shares=sizes / sizes.sum(),
        declared=task.declared,
    )


def _numbers(x: torch.Tensor, scale: float) -> np.ndarray:
    return x.flatten(1).numpy() / np.float32(scale)


def run_default(drawn: Drawn, seed: int, device: str = "cpu", **told: Any) -> Line:
    """Fit the default to a draw, told no more than ``told``, and see what it reaches."""
    start = time.perf_counter()
    model = ComplementaryClassifier(random_state=seed, device=device, **told).fit(drawn.x, drawn.ybar)
    seconds = time.perf_counter() - start
    return {
        "method": AUTO,
        **scores(model, drawn),
        **own_words(model),
        "seconds": seconds,
        "device": device,
        **({"told": told} if told else {}),
    }


def scores(model: Any, drawn: Drawn) -> Line:
    """Return test metrics in percent."""
    right = model.predict(drawn.x_test) == drawn.y_test
    recalls = np.array([right[drawn.y_test == k].mean() for k in range(len(drawn.shares))])
    return {
        "accuracy": 100 * float(right.mean()),
        "accuracy_as_trained": 100 * float(recalls @ drawn.shares),  # of classes as frequent as they are in training
        "balanced_accuracy": 100 * float(recalls.mean()),
        "min_recall": 100 * float(recalls.min()),
    }


def own_words(model: ComplementaryClassifier) -> Line:
    """What the default says of itself: its choice, and its estimate of its accuracy."""
    found: Line = {"chosen": {name: _plain(value) for name, value in getattr(model, "chosen_", {}).items()}}
    if (estimate := getattr(model, "estimate_", None)) is not None:
        figure = estimate.accuracy
        found |= {"estimate": [100 * figure.value, 100 * figure.low, 100 * figure.high], "verdict": figure.verdict}
    return found


def _plain(value: Any) -> Any:
    """As JSON has it; of an estimated Q, what it rests on."""
    plain = value is None or isinstance(value, str | int | float | dict)
    return value if plain else str(getattr(value, "basis", type(value).__name__))


def part_of(work: Sequence[T], part: str) -> Sequence[T]:
    """The share of work that ``part`` names: "2/16" is every sixteenth, from the second on."""
    number, of = (int(text) for text in part.split("/"))
    if not 1 <= number <= of:
        raise SystemExit(f"--part: from 1/{of} to {of}/{of}, got {part}")
    return work[number - 1 :: of]


def read(paths: Iterable[Path]) -> list[Line]:
    """All lines of some files; a file that is not there yet has none."""
    return [json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines()]


def append(path: Path, lines: Iterable[Line]) -> None:
    """Write lines as they come; several processes may write one file."""
    for line in lines:
        with path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(line, flush=True)


def have(path: Path) -> set[tuple[str, str, int, str]]:
    """The part, setting, seed and method of every line of a file."""
    return {place(line) for line in read([path])}


def new(lines: Iterable[Line], path: Path) -> Iterator[Line]:
    """Those lines that a file does not have; what two suites share comes twice, and is written once."""
    known = have(path)
    for line in lines:
        if place(line) not in known:
            known.add(place(line))
            yield line


def place(line: Line) -> tuple[str, str, int, str]:
    """What a line is about."""
    return line["part"], line["setting"], line["seed"], line.get("method", AUTO)


def by_seed(lines: Iterable[Line]) -> dict[str, dict[str, dict[int, float]]]:
    """Accuracies in percent by setting, method and seed."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        found[line["setting"]][line.get("method", AUTO)][line["seed"]] = line["accuracy"]
    return found


def coverage(lines: Iterable[Line]) -> Iterator[str]:
    """How often its 95 % interval holds the accuracy on TEST, and how wide it is: of all runs, and by verdict."""
    estimated = [line for line in lines if line.get("estimate")]
    if not estimated:
        return
    yield "its own estimate of its accuracy, 95 % intervals: how often they hold the accuracy on TEST (with classes as"
    yield "frequent as among the labelled samples, which it is an estimate of; and as they are in TEST)"
    for verdict in ("all", *sorted({line["verdict"] for line in estimated})):
        some = [line for line in estimated if verdict in ("all", line["verdict"])]
        held = [
            np.mean([line["estimate"][1] <= line.get(name, line["accuracy"]) <= line["estimate"][2] for line in some])
            for name in ("accuracy_as_trained", "accuracy")
        ]
        wide = np.mean([line["estimate"][2] - line["estimate"][1] for line in some]) / 2
        off = np.mean([line["estimate"][0] - line.get("accuracy_as_trained", line["accuracy"]) for line in some])
        text = f"  {verdict:28} {len(some):4} runs: {100 * held[0]:.0f} % ({100 * held[1]:.0f} %), "
        yield text + f"half-width {wide:.1f} points, on average {off:+.1f} off"
