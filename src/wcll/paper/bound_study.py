r"""The paper's bounds put to the test: cases, simulations, a counterexample, and their figures.

The counterexample is a problem in which Lemma 1 as printed is false: samples that have nothing in common.

**The problem.** There are K classes of equal shares, and M orthonormal directions :math:`e_d`, M a multiple of K and
far above N. A sample is one of them, all equally likely, so that its norm is 1; direction d is of class d mod K; its
complementary label is uniform among the other classes, which is the inverse-size selector for equal shares. So
:math:`\pi_k = \omega_k = 1/K`. The loss is Eq. 9 with softmax cross-entropy, the models are linear with
:math:`\|w_k\| \le B`. All that Lemma 1 asks for is so: N independent samples, a fixed class of models, and, as outputs
lie within :math:`\pm B`, losses of at most :math:`L_f = \log(1 + (K-1) e^{2B})`; the complexity of one output is at
most :math:`B/\sqrt N`, and :math:`L_\phi = \sqrt 2` is the Lipschitz constant of cross-entropy in all outputs together.

**The true risk.** Uniform labels make :math:`E[-(K-1)\ell_{\bar y} + \sum_j \ell_j \mid y] = \ell_y`, so

.. math:: R(f) = \frac{1}{KM} \sum_d \ell_{y(d)}(f(e_d)),\qquad \ell_y(0) = \log K .

**A model that has learnt its samples by heart.** As directions are orthonormal, outputs :math:`f_k(e_d)` can be chosen
freely but for :math:`\sum_d f_k(e_d)^2 \le B^2`, for every class alone. Let :math:`m_{dk}` samples be direction d with
label k, :math:`m_d = \sum_k m_{dk}` and :math:`c_{dk} = (K-1)\,m_{dk} - m_d`. Then

.. math:: K N \hat R(f) = \sum_k \sum_d c_{dk} f_k(e_d) + \sum_d m_d \log \sum_j e^{f_j(e_d)} .

The first part is at most :math:`B \sum_k \|c_k\|` (Cauchy and Schwarz), which :math:`f_k(e_d) = B c_{dk} / \|c_k\|`
reaches. Both risks of that model are sums of finitely many terms: their difference is computed, not estimated, and the
supremum over all models is **at least** this.

**How far the supremum can be above.** The logarithm above differs from :math:`\log K` by at most the largest
:math:`|f_j| \le B`, and for every model of the class R differs from :math:`\log(K) / K` by at most

.. math:: \frac{2}{KM} \sum_d \max_j |f_j(e_d)| \le \frac{2}{KM} \sqrt{M \sum_{j,d} f_j(e_d)^2}
          \le \frac{2B}{K} \sqrt{K/M} ,

so that it is **at most** :math:`\frac{B}{KN} \sum_k \|c_k\| + \frac BK (1 + 2 \sqrt{K/M})`.

**Why the printed bound fails.** With samples that all differ and N/K of every label :math:`\|c_k\| \approx (K-2)
\sqrt{N/K}`, so that the deviation is about :math:`B \sqrt{K/N}`. The printed bound is here

.. math:: \Bigl(1 + \frac{K-1}{K^2}\Bigr) \frac{2\sqrt2\,B + L_f \sqrt{2 \log(4/\delta)}}{\sqrt N} ,

without that root of K: in Eq. 9 :math:`\ell_{\bar y}` has the coefficient K - 1, where the printed proof has
:math:`\pi_K (K-1)`, which is less than 1 here. Both fall as :math:`1/\sqrt N`. :math:`\mathfrak R_N(F)` is read as the
complexity of one output, as a bracket that counts K outputs suggests; were it that of all K together, the bound would
hold here. Theorem 1 is not refuted: no model is better than another by more than :math:`\frac{4B}{K} \sqrt{K/M}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._files import read_bytes
from wcll._memory import check_memory
from wcll._random import stream
from wcll._validation import FloatArray, IntArray, choice
from wcll.datasets.base import Dataset
from wcll.exceptions import InputError
from wcll.experiments import Suite, Trial
from wcll.experiments.grouping import Job
from wcll.experiments.task import Task, make_task
from wcll.experiments.train import train
from wcll.experiments.worker import need_of
from wcll.labels import imbalance_counts
from wcll.labels.transition import make_transition
from wcll.labels.weights import eq13
from wcll.losses.weighted import wcll
from wcll.theory import (
    Bound,
    Problem,
    corrected_lemma,
    corrected_theorem,
    finite_class,
    lemma1,
    linear_complexity_of,
    theorem1,
)


@dataclass(frozen=True)
class Case:
    """A problem, and what is to be said of it."""

    title: str
    problem: Problem
    note: str = ""

    @cached_property
    def bounds(self) -> list[Bound]:
        """Both statements, each as printed and corrected."""
        return [statement(self.problem) for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem)]

    def to_dict(self, gap: float | None = None) -> dict[str, Any]:
        """For JSON: every term, and how many labels bring a bound down to ``gap``."""
        bounds = [
            {
                **asdict(one),
                "value": one.value,
                "verdict": one.verdict,
                **({} if gap is None else {"labels_needed": one.labels_for(gap)}),
            }
            for one in self.bounds
        ]
        return {"title": self.title, "note": self.note, "problem": asdict(self.problem), "bounds": bounds}


def own_case(
    shares: Sequence[float], n: int, *, norm: float | None, layer_norms: Sequence[float], radius: float, delta: float
) -> Case:
    """Linear models of a norm (1 unless given), or networks where the norms of their layers are."""
    title = f"K = {len(shares)}, class shares {min(shares):g} to {max(shares):g}, N = {n}"
    if not layer_norms:
        linear = Problem.linear(shares, n, norm=1.0 if norm is None else norm, radius=radius, delta=delta)
        return Case(f"{title}, linear models", linear)
    if norm is not None:
        raise InputError("--norm", "none beside --layer-norm, which has its own", norm)
    network = Problem.network(shares, n, norms=layer_norms, radius=radius, delta=delta)
    return Case(f"{title}, networks of {len(layer_norms)} layers without biases", network)


def suite_cases(suite: Suite, load: Callable[[str], Dataset], *, norm: float | None, delta: float) -> list[Case]:
    """One case for every column that differs in its data set, labels or class sizes.

    Without a ``norm``, that of WCLL trained there is taken.
    """
    cases: dict[object, Case] = {}
    for column in suite.columns:
        trials = [trial for row in suite.rows for trial in suite.candidates(column, row, 0)]
        trial = next((one for one in trials if _is_wcll(one)), None)
        if trial is None or trial.model != "linear":
            expected = "a row of loss 'wcll' with a linear model, which the bounds are about"
            raise InputError("--suite", expected, suite.name)
        task = make_task(trial, load(trial.dataset))
        sizes = sorted(task.declared.sizes.tolist())
        kind = (trial.dataset, trial.labels, trial.imbalance_of, len(task.train.x), *sizes)
        if kind not in cases:
            title = f"{suite.title}, {column.title}" if column.title else suite.title
            cases[kind] = _task_case(title, trial, task, norm, delta)
    return list(cases.values())


def _is_wcll(trial: Trial) -> bool:
    """WCLL by any reading, with cross-entropy and labels as they are."""
    return trial.loss == "wcll" and {name for name, _ in trial.loss_options} <= {"reading"} and not trial.resample


def _task_case(title: str, trial: Trial, task: Task, norm: float | None, delta: float) -> Case:
    """The problem of a task: its samples' radius, and the norm that training reaches unless one is given."""
    x = task.train.x.flatten(1).double().numpy() / task.scale
    x = np.column_stack([x, np.ones(len(x))])  # a bias is a feature that is 1
    radius = float(np.linalg.norm(x, axis=1).max())
    training = f"rate {trial.lr:g}, {trial.epochs} epochs, seed 0"
    trained = f"that of WCLL trained there ({training}), so seen after the data: no bound holds for it as it stands"
    largest, how = (_trained_norm(trial, task), trained) if norm is None else (norm, "as given")
    problem = Problem.linear(task.declared.sizes, len(x), norm=largest, radius=radius, delta=delta)
    inverse_size = trial.labels == "inverse-size" and trial.imbalance_of is None
    measured, error = linear_complexity_of(x, norm=largest, draws=20, random_state=0)
    note = (
        f"weights of norm at most {largest:.3g}, {how}; samples of norm at most {radius:.2f}; R_N at most "
        f"{problem.complexity:.4g}, on these samples by Monte Carlo {measured:.4g} ± {error:.1g} (ratio "
        f"{problem.complexity / measured:.1f})"
    )
    return Case(title, replace(problem, inverse_size=inverse_size), note)


def _trained_norm(trial: Trial, task: Task) -> float:
    """The largest norm of a class's weights, its bias among them, after training."""
    job, device = Job((trial,)), torch.device("cpu")
    check_memory(
        "--suite", "a training", need_of(job, task.view, device).of(1), "give --norm, so that nothing is trained"
    )
    (recording,) = train([(job, task.view)], device)
    weights = torch.cat(
        [recording.parameters[f"layer.{name}"][0].view(task.n_classes, -1) for name in ("weight", "bias")], 1
    )
    return float(weights.norm(dim=1).max())


COUNTEREXAMPLE_DRAWS = 20


@dataclass(frozen=True)
class OrthogonalWorld:
    """Samples that are orthonormal directions, ``each`` of every class, and linear models of at most a norm."""

    classes: int = 400
    n: int = 10_000
    norm: float = 3.0
    each: int = 10**9

    @property
    def directions(self) -> int:
        """M: how many samples there are to draw from."""
        return self.classes * self.each

    @property
    def excess_at_most(self) -> float:
        """By how much one model's true risk can be above another's."""
        return 4 * self.norm / self.classes / math.sqrt(self.each)

    def problem(self, delta: float = 0.05) -> Problem:
        """What the bounds need to know of it."""
        return Problem.linear(np.ones(self.classes), self.n, norm=self.norm, radius=1.0, delta=delta)

    def draw(self, seed: int) -> tuple[IntArray, IntArray]:
        """Samples, by the numbers of their directions, and their complementary labels."""
        rng = stream(seed, "theory", "counterexample")
        samples = rng.integers(0, self.directions, size=self.n)
        return samples, (samples + rng.integers(1, self.classes, size=self.n)) % self.classes

    def coefficients(self, samples: IntArray, labels: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The directions that occur, which of them every sample has, and c, (directions that occur, classes)."""
        seen, place, count = np.unique(samples, return_inverse=True, return_counts=True)
        c = np.repeat(-count[:, None].astype(np.float64), self.classes, axis=1)
        np.add.at(c, (place, labels), self.classes - 1)
        return seen, place, c

    def largest_deviation(self, samples: IntArray, labels: IntArray) -> tuple[float, float]:
        """The supremum of the deviation over all models is at least the first of these, and at most the second."""
        seen, place, c = self.coefficients(samples, labels)
        lengths = np.linalg.norm(c, axis=0)
        outputs = self.norm * c / np.maximum(lengths, 1e-300)
        omega = np.full(self.classes, 1 / self.classes)
        logits = torch.as_tensor(outputs[place])
        losses = wcll(logits, torch.as_tensor(labels), weight=omega, reading="eq9", reduction="none")
        deviation = float(losses.mean()) - self.true_risk(seen, outputs)
        linear = self.norm * float(lengths.sum()) / (self.classes * len(samples))
        return abs(deviation), linear + self.norm / self.classes * (1 + 2 / math.sqrt(self.each))

    def true_risk(self, seen: IntArray, outputs: FloatArray) -> float:
        """R of the model that has these outputs on these directions, and outputs of 0 on all others."""
        own = outputs[np.arange(len(seen)), seen % self.classes]
        losses = float((np.logaddexp.reduce(outputs, axis=1) - own).sum())
        return (losses + (self.directions - len(seen)) * math.log(self.classes)) / (self.directions * self.classes)


@dataclass(frozen=True)
class Counterexample:
    """What was measured, and the bounds beside it."""

    classes: int
    n: int
    norm: float
    directions: int
    delta: float
    seeds: tuple[int, ...]
    at_least: tuple[float, ...]  #: the deviation of a model that was found, of every draw
    at_most: tuple[float, ...]  #: what no model's deviation is above
    printed: float  #: Lemma 1
    corrected: float
    excess_at_most: float  #: of any model: what Theorem 1 is about

    @property
    def mean(self) -> float:
        """The mean deviation that was found."""
        return float(np.mean(self.at_least))

    @property
    def violated(self) -> int:
        """Draws in which the printed bound is false."""
        return sum(value > self.printed for value in self.at_least)

    @property
    def held(self) -> int:
        """Draws in which the corrected bound is surely true."""
        return sum(value <= self.corrected for value in self.at_most)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON, and a summary."""
        summary = {"min": min(self.at_least), "mean": self.mean, "max": max(self.at_least)}
        return {**asdict(self), **summary, "violated": self.violated, "held": self.held}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Counterexample:
        """What :meth:`to_dict` wrote; the summary is made anew."""
        fields = {field.name: plain[field.name] for field in dataclass_fields(Counterexample)}
        lists = {name: tuple(fields[name]) for name in ("seeds", "at_least", "at_most")}
        return Counterexample(**{**fields, **lists})


def measure(
    world: OrthogonalWorld,
    seeds: Sequence[int],
    *,
    delta: float = 0.05,
    progress: Callable[[int, int], None] | None = None,
) -> Counterexample:
    """Draw samples once for every seed, and compare the largest deviation with both bounds."""
    found = []
    for seed in seeds:
        found.append(world.largest_deviation(*world.draw(seed)))
        if progress is not None:
            progress(len(found), len(seeds))
    problem = world.problem(delta)
    return Counterexample(
        classes=world.classes,
        n=world.n,
        norm=world.norm,
        directions=world.directions,
        delta=delta,
        seeds=tuple(seeds),
        at_least=tuple(low for low, _ in found),
        at_most=tuple(high for _, high in found),
        printed=lemma1(problem).value,
        corrected=corrected_lemma(problem).value,
        excess_at_most=world.excess_at_most,
    )


def literal_deviation(classes: int) -> float:
    r"""How far Eq. 12 is from Eq. 11 for outputs of 0 and equal shares, whatever the samples are.

    Every :math:`\ell` is log K then, so Eq. 11 is :math:`\log(K)/K`, and Eq. 12, in which :math:`\pi_z = 1/K` stands
    once more, :math:`\log(K)/K^2`. The difference does not fall with N: to the letter Lemma 1 is false for every class
    of models with such a member as soon as its bound is below this.

    >>> round(literal_deviation(10), 4)
    0.2072
    """
    return (1 - 1 / classes) * math.log(classes) / classes


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
    """sup ``|R^ - R|`` over linear models within the norm, for each draw: climbed to from ``starts`` models, both ways.

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
    """max ``|R^ - R|`` over finitely many models, for each draw."""
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


TRENDS, COUNTEREXAMPLE = "bounds.json", "bounds-counterexample.json"
COMMANDS = {TRENDS: "simulate", COUNTEREXAMPLE: "counterexample"}


@dataclass(frozen=True)
class Slope:
    """How fast something falls with N: the log-log slope, its 95 % interval, and how often the bounds held."""

    kind: str  #: finite, linear or excess
    labels: str
    title: str
    slope: float
    low: float
    high: float
    draws: int  #: at all N together
    held: int  #: draws in which the corrected bound holds
    held_printed: int

    @property
    def as_root(self) -> bool:
        """Whether the interval has -1/2."""
        return self.low <= -0.5 <= self.high

    @property
    def faster(self) -> bool:
        """Whether all of the interval is below -1/2."""
        return self.high < -0.5


@dataclass(frozen=True)
class BoundResults:
    """The simulation and the counterexample, and how each was made."""

    trends: tuple[Trend, ...]
    counterexample: Counterexample
    made: dict[str, dict[str, Any]]  #: by file

    @property
    def slopes(self) -> list[Slope]:
        """One of every kind and labels, in the order of the file."""
        return [
            Slope(
                kind=trend.kind,
                labels=trend.labels,
                title=KIND_TITLES[trend.kind],
                slope=trend.slope,
                low=trend.slope_low,
                high=trend.slope_high,
                draws=trend.draws * len(trend.points),
                held=sum(point.held for point in trend.points),
                held_printed=sum(point.held_printed for point in trend.points),
            )
            for trend in self.trends
        ]


def read_bounds(folder: Path) -> BoundResults:
    """The result files in a folder; a missing or damaged one is an error that names the command that makes it."""
    plain = {name: _read(folder / name) for name in COMMANDS}
    try:
        trends = tuple(Trend.from_dict(trend) for trend in plain[TRENDS]["trends"])
        if unknown := {trend.kind for trend in trends} - set(KIND_TITLES):
            raise ValueError(f"unknown kinds {sorted(unknown)}")
        found = Counterexample.from_dict(plain[COUNTEREXAMPLE]["counterexample"])
        return BoundResults(trends, found, {name: dict(one["made"]) for name, one in plain.items()})
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(str(folder), "whole result files of the bounds", repr(error)) from None


def _read(path: Path) -> Any:
    remedy = f"make it with: wcll bound {COMMANDS[path.name]} --out {path}"
    if not path.exists():
        raise InputError(str(path), "a result file", "none", remedy)
    try:
        return json.loads(read_bytes(path))
    except ValueError as error:  # no JSON, or no text
        if isinstance(error, InputError):
            raise
        raise InputError(str(path), "a result file of JSON", str(error), f"{remedy} --force") from None
