"""The bounds put to the test on a distribution that is known exactly: how far are empirical risks from true ones?

The distribution has finitely many samples, so that a draw of N labelled samples is one multinomial draw, risks are
sums, and suprema over linear models can be climbed to. The loss is Eq. 9 with softmax cross-entropy and the declared
pi.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import FloatArray, IntArray, choice
from wcll.labels import imbalance_counts
from wcll.labels.transition import make_transition
from wcll.labels.weights import eq13
from wcll.theory.bounds import Bound, Problem, corrected_lemma, corrected_theorem, finite_class, lemma1, theorem1

SIZES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)  #: three decades of N
DRAWS = 1000
MEMBERS = 200  #: models of the finite class
STARTS, STEPS = 4, 60  #: of the climb to a supremum
DESCENT = 3000  #: steps of the descent to a minimum
CHUNK = 100  #: draws that are worked on at once
RESAMPLES = 1000  #: of the bootstrap for a slope's interval
BYTES = 100_000  #: that a draw takes: its place in every resample of every size, and its counts
LABELS = ("uniform", "inverse-size")
KIND_TITLES = {
    "finite": f"largest deviation of {MEMBERS} models",
    "linear": "largest deviation of linear models",
    "excess": "excess risk of the trained linear model",
}
KINDS = tuple(KIND_TITLES)


@dataclass(frozen=True)
class World:
    """Samples of norm at most 1, each with its class and equally likely, and how complementary labels are drawn."""

    x: FloatArray  #: (points, features)
    y: IntArray
    sizes: IntArray  #: points of each class
    transition: FloatArray
    norm: float  #: of every row of a linear model, at most

    @staticmethod
    def draw(
        labels: str, *, classes: int = 4, p: float = 3.0, points: int = 150, norm: float = 2.0, seed: int = 0
    ) -> World:
        """Gaussian clouds in three dimensions, class 0 rarer by ``p``; the last feature is 1, for the bias."""
        rng = stream(seed, "theory", "world")
        sizes = imbalance_counts(points, n_classes=classes, minority=[0], p=p)
        y = np.repeat(np.arange(classes), sizes)
        x = np.column_stack([2 * rng.normal(size=(classes, 3))[y] + rng.normal(size=(points, 3)), np.ones(points)])
        x[:, :3] /= np.linalg.norm(x[:, :3], axis=1).max()
        return World(x / math.sqrt(2), y, sizes, make_transition(labels, sizes, random_state=seed), norm)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.sizes)

    @cached_property
    def joint(self) -> FloatArray:
        """P(x, ybar), (points, classes)."""
        shares: FloatArray = self.transition[self.y] / len(self.y)
        return shares

    @cached_property
    def omega(self) -> FloatArray:
        """Eq. 13 from the declared pi."""
        return eq13(1 / self.sizes / (1 / self.sizes).sum())

    def problem(self, n: int, delta: float = 0.05) -> Problem:
        """What the bounds need to know of it."""
        return Problem.linear(self.sizes, n, norm=self.norm, radius=1.0, delta=delta)

    def draws(self, n: int, draws: int, *, seed: int = 0) -> FloatArray:
        """Empirical distributions of ``n`` labelled samples, (draws, points, classes)."""
        rng = stream(seed, "theory", "draws", str(n))
        flat = self.joint.ravel() / self.joint.sum()
        return rng.multinomial(n, flat, size=draws).reshape(draws, *self.joint.shape) / n

    def models(self, count: int, *, seed: int = 0) -> FloatArray:
        """Random linear models within the norm, (count, classes, features)."""
        rng = stream(seed, "theory", "models")
        weights = rng.normal(size=(count, self.classes, self.x.shape[1]))
        length = self.norm * rng.random((count, self.classes, 1)) ** (1 / self.x.shape[1])
        models: FloatArray = weights / np.linalg.norm(weights, axis=-1, keepdims=True) * length
        return models


class Risk:
    r"""Sums :math:`\sum D(x, \bar y)\,\omega_{\bar y}\bar\ell(Wx, \bar y)` for linear models W, one for each of many D.

    With cross-entropy :math:`\bar\ell = (K-1) f_{\bar y} - \sum_j f_j + \log\sum_j e^{f_j}`, so for each D the sum is
    :math:`\sum_x A(x) \cdot f(x) + b(x) \log\sum_j e^{f_j(x)}`.
    """

    def __init__(self, world: World, measures: FloatArray) -> None:
        weighted = torch.as_tensor(measures * world.omega)  # (measures, points, classes)
        self.b = weighted.sum(-1)[:, None]  # one more axis, for several models of each measure
        self.a = ((world.classes - 1) * weighted).mT[:, None] - self.b.unsqueeze(-2)
        self.x = torch.as_tensor(world.x)

    def value(self, weights: Tensor) -> Tensor:
        """Of models (measures, models, classes, features): (measures, models)."""
        outputs = weights @ self.x.T
        return (self.a * outputs).sum((-2, -1)) + (self.b * outputs.logsumexp(-2)).sum(-1)

    def gradient(self, weights: Tensor) -> Tensor:
        """In the models' weights."""
        outputs = weights @ self.x.T
        return (self.a + self.b.unsqueeze(-2) * outputs.softmax(-2)) @ self.x


def largest_deviation(world: World, drawn: FloatArray, *, starts: int = STARTS, seed: int = 0) -> FloatArray:
    """sup |R^ - R| over linear models within the norm, for each draw: climbed to from ``starts`` models, both ways.

    What is found is a lower bound of the supremum, and close to it: more starts find hardly more.
    """
    found = [_climb(world, part - world.joint, starts, seed) for part in _chunks(drawn)]
    return np.concatenate(found)


def _climb(world: World, difference: FloatArray, starts: int, seed: int) -> FloatArray:
    """Steps along the gradient, of a length that shrinks, put back into the norm."""
    risk = Risk(world, np.concatenate([difference, -difference]))
    weights = torch.as_tensor(world.models(starts, seed=seed)).expand(2 * len(difference), -1, -1, -1)
    best = risk.value(weights)
    for step in range(STEPS):
        gradient = risk.gradient(weights)
        length = gradient.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        weights = _within(weights + 2 * world.norm * 0.93**step * gradient / length, world.norm)
        best = torch.maximum(best, risk.value(weights))
    largest: FloatArray = best.amax(-1).view(2, -1).amax(0).numpy()
    return largest


def finite_deviation(world: World, drawn: FloatArray, models: FloatArray) -> FloatArray:
    """max |R^ - R| over finitely many models, for each draw."""
    tables = _loss_tables(world, models).reshape(len(models), -1)
    flat = (drawn - world.joint).reshape(len(drawn), -1)
    largest: FloatArray = np.abs(flat @ tables.T).max(axis=1)
    return largest


def excess_risk(world: World, drawn: FloatArray) -> FloatArray:
    """R(f^) - R(f*) of the linear model that minimises R^ within the norm, for each draw.

    With cross-entropy and weights that are not negative both risks are convex, so that descent finds the minimum.
    """
    truth = Risk(world, world.joint[None])
    least = truth.value(_descend(world, world.joint[None]))[0, 0]
    found = [truth.value(_descend(world, part).transpose(0, 1))[0] - least for part in _chunks(drawn)]
    excess: FloatArray = torch.cat(found).clamp(min=0.0).numpy()  # rounding
    return excess


def _descend(world: World, measures: FloatArray) -> Tensor:
    """Accelerated projected descent, (measures, 1, classes, features)."""
    risk = Risk(world, measures)
    weights = torch.zeros(len(measures), 1, world.classes, world.x.shape[1], dtype=torch.float64)
    ahead, pace = weights, 1.0
    step = 2.0 / float(world.omega.max())  # the curvature is at most sum_x b(x) |x|^2 / 2
    for _ in range(DESCENT):
        new = _within(ahead - step * risk.gradient(ahead), world.norm)
        next_pace = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        ahead, weights, pace = new + (pace - 1) / next_pace * (new - weights), new, next_pace
    return weights


def _within(weights: Tensor, norm: float) -> Tensor:
    lengths: Tensor = weights.norm(dim=-1, keepdim=True)
    return weights * (norm / lengths.clamp(min=norm))


def _loss_tables(world: World, models: FloatArray) -> FloatArray:
    """The weighted complementary loss of every model, sample and label: (models, points, classes)."""
    outputs = models @ world.x.T
    total = outputs.sum(axis=1) - np.logaddexp.reduce(outputs, axis=1)
    loss = (world.classes - 1) * outputs.swapaxes(1, 2) - total[..., None]
    tables: FloatArray = world.omega * loss
    return tables


def _chunks(drawn: FloatArray) -> list[FloatArray]:
    return [drawn[start : start + CHUNK] for start in range(0, len(drawn), CHUNK)]


@dataclass(frozen=True)
class Point:
    """What was measured at one N, beside the bounds."""

    n: int
    mean: float
    low: float  #: 5th and 95th percentile over draws
    high: float
    printed: float
    corrected: float  #: for finitely many models, the bound that is about them
    held: int  #: draws in which the corrected bound holds
    held_printed: int
    median_ratio: float  #: of corrected bound to measurement
    vacuous: bool


@dataclass(frozen=True)
class Trend:
    """A measurement over N: sup over a class of models, or the excess risk; and its log-log slope."""

    labels: str
    kind: str
    draws: int
    points: tuple[Point, ...]
    slope: float
    slope_low: float  #: 95 % interval, by resampling the draws
    slope_high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Trend:
        """What :meth:`to_dict` wrote."""
        return Trend(**{**plain, "points": tuple(Point(**point) for point in plain["points"])})


def simulate(labels: str, kind: str, *, draws: int = DRAWS, sizes: Sequence[int] = SIZES, seed: int = 0) -> Trend:
    """Measure one kind of deviation over N on a world of uniform or inverse-size labels."""
    choice("kind", kind, KINDS)
    check_memory("draws", f"{draws} draws", draws * BYTES, "ask for fewer")
    world = World.draw(choice("labels", labels, LABELS), seed=seed)
    measured = [_measure(world, kind, world.draws(n, draws, seed=seed), seed) for n in sizes]
    points = tuple(_point(world.problem(n), kind, values) for n, values in zip(sizes, measured, strict=True))
    slope, low, high = log_slope(sizes, np.stack(measured), seed=seed)
    return Trend(labels, kind, draws, points, slope, low, high)


def _measure(world: World, kind: str, drawn: FloatArray, seed: int) -> FloatArray:
    if kind == "finite":
        return finite_deviation(world, drawn, world.models(MEMBERS, seed=seed))
    return largest_deviation(world, drawn, seed=seed) if kind == "linear" else excess_risk(world, drawn)


def _point(problem: Problem, kind: str, values: FloatArray) -> Point:
    old, new = _statements(problem, kind)
    low, high = np.quantile(values, (0.05, 0.95))
    return Point(
        n=problem.n,
        mean=float(values.mean()),
        low=float(low),
        high=float(high),
        printed=old.value,
        corrected=new.value,
        held=int((values <= new.value).sum()),
        held_printed=int((values <= old.value).sum()),
        median_ratio=float(np.median(new.value / np.maximum(values, 1e-300))),
        vacuous=new.vacuous,
    )


def _statements(problem: Problem, kind: str) -> tuple[Bound, Bound]:
    """The bound as printed, and the corrected one, of what is measured."""
    if kind == "excess":
        return theorem1(problem), corrected_theorem(problem)
    return lemma1(problem), finite_class(problem, MEMBERS) if kind == "finite" else corrected_lemma(problem)


def log_slope(sizes: Sequence[int], measured: FloatArray, *, seed: int = 0) -> tuple[float, float, float]:
    """The slope of log mean over log N, (sizes, draws) -> slope and its 95 % interval by resampling draws."""
    n = np.log(np.asarray(sizes, dtype=np.float64))
    centred = (n - n.mean()) / ((n - n.mean()) ** 2).sum()
    rng = stream(seed, "theory", "bootstrap")
    rows = rng.integers(0, measured.shape[1], size=(RESAMPLES, *measured.shape))
    means = np.stack(
        [values[picked].mean(axis=1) for values, picked in zip(measured, rows.swapaxes(0, 1), strict=True)]
    )
    slopes = centred @ np.log(means)
    low, high = np.quantile(slopes, (0.025, 0.975))
    return float(centred @ np.log(measured.mean(axis=1))), float(low), float(high)
