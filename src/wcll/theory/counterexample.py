r"""A problem in which Lemma 1 as printed is false: samples that have nothing in common.

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

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
import torch

from wcll._random import stream
from wcll._validation import FloatArray, IntArray
from wcll.losses.weighted import wcll
from wcll.theory.bounds import Problem, corrected_lemma, lemma1

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
