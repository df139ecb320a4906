r"""Lemma 1 and Theorem 1 of the paper, term by term, and a corrected statement.

Both bound how far the empirical weighted risk can be from its expectation,

.. math:: \sup_{f \in F} |\hat R(f) - R(f)|,\quad R(f) = E\,\omega_{\bar y}\bar\ell(f(x), \bar y),\quad
          \bar\ell = -(K-1)\,\ell_{\bar y} + \sum_j \ell_j ,

the loss of Eq. 9. For labels of the inverse-size selector and the pi that Eq. 7 declares, R is an ordinary risk with
class weights proportional to :math:`1/(1-\pi_y)`; for other labels it is only what it is: a bound says nothing of
accuracy.

**Corrected.** For :math:`\ell \in [0, L_f]`, with probability at least :math:`1 - \delta`,

.. math:: \sup_f |\hat R - R| \le 2\sqrt2\,\omega_{max}\,\Lambda \sum_k \mathfrak R_N(F_k)
          + \omega_{max}\,(2K-3)\,L_f \sqrt{\frac{\log(2/\delta)}{2N}} .

*Proof.* (1) Range. :math:`\bar\ell = -(K-2)\,\ell_{\bar y} + \sum_{j \ne \bar y} \ell_j` lies in :math:`[-(K-2) L_f,
(K-1) L_f]`, so a sample, exchanged together with its label, changes :math:`\hat R` by at most
:math:`\omega_{max}(2K-3)L_f/N`. (2) McDiarmid's inequality, for :math:`\sup_f (\hat R - R)` and :math:`\sup_f (R -
\hat R)` with :math:`\delta/2` each, gives the second term above their expectations. (3) Symmetrisation: each
expectation is at most :math:`2\,\mathfrak R_N(\omega\bar\ell \circ F)`. (4) Vector contraction (Maurer, ALT 2016): if
:math:`\omega_{\bar y}\bar\ell(\cdot, \bar y)` is :math:`\omega_{max}\Lambda`-Lipschitz in the Euclidean norm of the
outputs, then :math:`\mathfrak R_N(\omega\bar\ell\circ F) \le \sqrt2\,\omega_{max}\Lambda \frac1N E\sup_f \sum_{i,k}
\sigma_{ik} f_k(x_i) \le \sqrt2\,\omega_{max}\Lambda \sum_k \mathfrak R_N(F_k)`, the supremum of a sum being at most
the sum of suprema.

:math:`\Lambda` is the largest gradient norm of :math:`\bar\ell`:

- softmax cross-entropy: :math:`\bar\ell = (K-1) f_{\bar y} - \sum_j f_j + \log\sum_j e^{f_j}`, with the gradient
  :math:`(K-1) e_{\bar y} - 1 + p`. Its squared norm is convex in p, hence largest at a vertex: :math:`(K-1)^2 +
  (K-1)` at :math:`p = e_{\bar y}`, :math:`(K-2)^2 + (K-2)` at the others. :math:`\Lambda = \sqrt{K(K-1)}`,
  approached, not reached.
- :math:`\ell_j = \phi(f_j)` with an :math:`L_\phi`-Lipschitz :math:`\phi`: coefficients :math:`-(K-2)` and K - 1
  times 1 on different outputs: :math:`\Lambda = L_\phi \sqrt{(K-2)^2 + K - 1} = L_\phi\sqrt{K^2 - 3K + 3}`.
- every :math:`\ell_j` L-Lipschitz in the Euclidean norm: the triangle inequality, :math:`\Lambda = (2K-3) L`.

The excess risk of the empirical minimiser is at most twice the bound, as :math:`\hat R(\hat f) \le \hat R(f^*)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import InputError, choice, distribution, numeric, positive, whole
from wcll.labels.transition import complementary_prior, transition_from_pi
from wcll.labels.weights import eq13
from wcll.theory.rademacher import linear_complexity

LossKind = Literal["cross-entropy", "margin", "lipschitz"]
LOSS_KINDS: tuple[LossKind, ...] = ("cross-entropy", "margin", "lipschitz")
SQRT2 = math.sqrt(2)  #: the Lipschitz constant of softmax cross-entropy in the Euclidean norm: |p - e_j| < sqrt(2)


@dataclass(frozen=True)
class Problem:
    """All that the bounds depend on."""

    pi: tuple[float, ...]  #: Eq. 7
    n: int  #: complementary labels
    complexity: float  #: the Rademacher complexity of one output at this n
    largest_loss: float  #: L_f
    loss: LossKind = "cross-entropy"
    lipschitz: float = SQRT2  #: L_phi, or L
    delta: float = 0.05

    @staticmethod
    def linear(
        sizes: ArrayLike, n: int, *, norm: float, radius: float, loss: LossKind = "cross-entropy",
        lipschitz: float | None = None, largest_loss: float | None = None, delta: float = 0.05,
    ) -> Problem:  # fmt: skip
        r"""Linear models with :math:`\|w_k\| \le` ``norm`` on samples with :math:`\|x\| \le` ``radius``.

        ``sizes`` are the ordinary class sizes or shares of Eq. 6. For cross-entropy :math:`L_f` follows from the
        norms: outputs lie within :math:`\pm Br`, so :math:`\ell \le \log(1 + (K-1) e^{2Br})`; for other losses give
        ``largest_loss`` and ``lipschitz``.
        """
        choice("loss", loss, LOSS_KINDS)
        classes = numeric("sizes", sizes).size
        if classes < 2:
            raise InputError("sizes", "sizes of at least two classes", classes)
        if loss == "cross-entropy":
            if lipschitz is not None or largest_loss is not None:
                raise InputError(
                    "lipschitz, largest_loss", "none for cross-entropy, whose constants are known", "a value"
                )
            lipschitz, largest_loss = SQRT2, cross_entropy_limit(classes, norm * radius)
        if lipschitz is None or largest_loss is None:
            raise InputError("lipschitz, largest_loss", f"both, for loss = {loss!r}", "none")
        pi = tuple(complementary_prior(sizes).tolist())
        return Problem(pi, n, linear_complexity(norm, radius, n), largest_loss, loss, lipschitz, delta)

    def __post_init__(self) -> None:
        distribution("pi", np.array(self.pi), len(self.pi))
        whole("n", self.n)
        for name in ("complexity", "largest_loss", "lipschitz"):
            positive(name, getattr(self, name))
        if not 0 < self.delta < 1:
            raise InputError("delta", "a probability between 0 and 1", self.delta)

    @property
    def classes(self) -> int:
        """K."""
        return len(self.pi)

    @property
    def omega_max(self) -> float:
        """The largest weight of Eq. 13 (of sum 1, as the paper has it)."""
        return float(eq13(self.pi).max())

    @property
    def pi_max(self) -> float:
        """The largest share of Eq. 7; it belongs to another class than the largest weight, unless all are equal."""
        return max(self.pi)

    @property
    def contraction(self) -> float:
        """Lambda: how fast the complementary loss changes with the outputs."""
        k = self.classes
        if self.loss == "cross-entropy":
            return math.sqrt(k * (k - 1))
        if self.loss == "margin":
            return self.lipschitz * math.sqrt(k * k - 3 * k + 3)
        return self.lipschitz * (2 * k - 3)

    @property
    def width(self) -> float:
        """The range of the weighted complementary loss: no deviation can be larger."""
        return self.omega_max * (2 * self.classes - 3) * self.largest_loss

    @property
    def scale(self) -> float | None:
        """The risk of outputs of 0, for inverse-size labels and cross-entropy: log K times the mean of omega."""
        if self.loss != "cross-entropy":
            return None
        omega = eq13(self.pi)  # these are also the class shares: both are proportional to 1/pi
        return math.log(self.classes) * float(omega @ transition_from_pi(np.array(self.pi)) @ omega)

    def at(self, n: int) -> Problem:
        """The same with another number of labels; complexities fall as 1/sqrt(N)."""
        return replace(self, n=n, complexity=self.complexity * math.sqrt(self.n / n))


@dataclass(frozen=True)
class Bound:
    """A bound: its terms by name, what went into them, and how surely it holds."""

    name: str
    formula: str
    ingredients: dict[str, float]
    terms: dict[str, float]
    confidence: float
    width: float  #: the range of the loss: what is bounded is at most this anyway
    scale: float | None  #: the risk of a model whose outputs are all 0, if labels are of the inverse-size selector

    @property
    def value(self) -> float:
        """The sum of the terms."""
        return sum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than the range of the loss does."""
        return self.value >= self.width

    @property
    def verdict(self) -> str:
        """What it is worth."""
        if self.vacuous:
            return "vacuous: not below the range of the loss"
        if self.scale is not None and self.value >= self.scale:
            return "of little use: not below the risk of outputs that are all 0"
        return "informative"


def lemma1(problem: Problem) -> Bound:
    r"""Lemma 1 as printed, with its :math:`L_\phi` taken as the loss's Lipschitz constant.

    .. math:: 2 \omega_K L_\phi [\pi_K (K-1) + K]\, \mathfrak R_{N}(F) + \sqrt{\frac{I^2 \log(4/\delta)}{2N}},\quad
              I = 2 \omega_K L_f [\pi_K (K-1) + K],

    "with probability at least :math:`1 - \delta/2`". What is loose or wrong in its proof:

    - The step from the composed class to F uses a contraction for real functions although f has K outputs: a factor
      :math:`\sqrt2` and the sum over the K outputs are missing. The first term is too small.
    - :math:`\omega_K` and :math:`\pi_K` are both maxima, but of different classes, as :math:`\omega \propto 1/\pi`:
      loose.
    - :math:`\pi_z` stands before both parts of Eq. 12, in the proof before the first only; and the loss of the
      experiments is that of Eq. 9, without :math:`\pi_z`.
    - McDiarmid's inequality is applied to one f and then read as a statement on the supremum; samples are exchanged,
      their labels are not.
    - It bounds the deviation of the weighted risk. For other labels than those of the inverse-size selector that is
      not the risk of any classification problem.
    """
    bracket = problem.pi_max * (problem.classes - 1) + problem.classes
    largest = 2 * problem.omega_max * problem.largest_loss * bracket
    return Bound(
        "Lemma 1, as printed",
        "2 omega_K L_phi [pi_K (K-1) + K] R_N(F) + sqrt(I^2 log(4/delta) / (2N))",
        {
            **_common(problem, "omega_K"),
            "pi_K": problem.pi_max,
            "L_phi": problem.lipschitz,
            "pi_K (K-1) + K": bracket,
            "I": largest,
        },
        {
            "complexity": 2 * problem.omega_max * problem.lipschitz * bracket * problem.complexity,
            "deviation": largest * math.sqrt(math.log(4 / problem.delta) / (2 * problem.n)),
        },
        1 - problem.delta / 2,
        problem.width,
        problem.scale,
    )


def theorem1(problem: Problem) -> Bound:
    r"""Theorem 1 as printed: twice Lemma 1, for :math:`R(\hat f) - R(f^*)`.

    The printed proof sets :math:`\hat R(\hat f) - \hat R(f^*) = 0` "as :math:`N \to \infty`"; it is at most 0 for
    every N, which is all that is needed.
    """
    formula = "4 omega_K L_phi [pi_K (K-1) + K] R_N(F) + sqrt(2 I^2 log(4/delta) / N)"
    return _twice(lemma1(problem), "Theorem 1, as printed", formula)


def corrected_lemma(problem: Problem) -> Bound:
    """The corrected statement; its proof is in the module's description."""
    k = problem.classes
    deviation = problem.width * math.sqrt(math.log(2 / problem.delta) / (2 * problem.n))
    complexity = 2 * SQRT2 * problem.omega_max * problem.contraction * k * problem.complexity
    return Bound(
        "Lemma 1, corrected",
        "2 sqrt(2) omega_max Lambda sum_k R_N(F_k) + omega_max (2K-3) L_f sqrt(log(2/delta) / (2N))",
        {
            **_common(problem, "omega_max"),
            "Lambda": problem.contraction,
            "sum_k R_N(F_k)": k * problem.complexity,
            "2K-3": 2 * k - 3,
        },
        {"complexity": complexity, "deviation": deviation},
        1 - problem.delta,
        problem.width,
        problem.scale,
    )


def corrected_theorem(problem: Problem) -> Bound:
    r"""Twice the corrected lemma: :math:`R(\hat f) - R(f^*) \le [R - \hat R](\hat f) + [\hat R - R](f^*)`."""
    formula = "2 (2 sqrt(2) omega_max Lambda sum_k R_N(F_k) + omega_max (2K-3) L_f sqrt(log(2/delta) / (2N)))"
    return _twice(corrected_lemma(problem), "Theorem 1, corrected", formula)


def finite_class(problem: Problem, members: int) -> Bound:
    r"""For finitely many models J: Hoeffding's inequality and a union, no complexity.

    .. math:: \omega_{max} (2K-3) L_f \sqrt{\log(2J/\delta) / (2N)}
    """
    deviation = problem.width * math.sqrt(math.log(2 * whole("members", members) / problem.delta) / (2 * problem.n))
    return Bound(
        "finitely many models",
        "omega_max (2K-3) L_f sqrt(log(2J/delta) / (2N))",
        {**_common(problem, "omega_max"), "J": members, "2K-3": 2 * problem.classes - 3},
        {"deviation": deviation},
        1 - problem.delta,
        problem.width,
        problem.scale,
    )


def labels_needed(bound: float, n: int, gap: float) -> int:
    """How many labels bring a bound from its value at ``n`` down to ``gap``: every term falls as 1/sqrt(N).

    >>> labels_needed(2.0, n=100, gap=0.5)
    1600
    """
    return math.ceil(whole("n", n) * (positive("bound", bound) / positive("gap", gap)) ** 2 - 1e-9)


def cross_entropy_limit(classes: int, reach: float) -> float:
    r"""The largest softmax cross-entropy of outputs within :math:`\pm r`: :math:`\log(1 + (K-1) e^{2r})`."""
    return float(np.logaddexp(0.0, math.log(classes - 1) + 2 * reach))


def _common(problem: Problem, omega: str) -> dict[str, float]:
    return {
        "K": problem.classes,
        "N": problem.n,
        "delta": problem.delta,
        omega: problem.omega_max,
        "L_f": problem.largest_loss,
        "R_N": problem.complexity,
    }


def _twice(lemma: Bound, name: str, formula: str) -> Bound:
    terms = {term: 2 * value for term, value in lemma.terms.items()}
    return replace(lemma, name=name, formula=formula, terms=terms)
