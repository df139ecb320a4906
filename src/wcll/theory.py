r"""Lemma 1 and Theorem 1 of the paper, term by term, and a corrected statement.

Both bound how far the empirical weighted risk can be from its expectation,

.. math:: \sup_{f \in F} |\hat R(f) - R(f)|,\quad R(f) = E\,\omega_{\bar y}\bar\ell(f(x), \bar y),\quad
          \bar\ell = -(K-1)\,\ell_{\bar y} + \sum_j \ell_j ,

the loss of Eq. 9. For labels of the inverse-size selector and the pi that Eq. 7 declares, R is an ordinary risk with
class weights proportional to :math:`1/(1-\pi_y)`; for other labels it is only what it is: a bound says nothing of
accuracy.

**Corrected.** Let D be the range of :math:`\omega_{\bar y}\bar\ell`. With probability at least :math:`1 - \delta`,

.. math:: \sup_f |\hat R - R| \le 2\,\omega_{max}\,\kappa \sum_k \mathfrak R_N(F_k)
          + D \sqrt{\frac{\log(2/\delta)}{2N}} .

*Proof.* (1) McDiarmid's inequality: a sample, exchanged together with its label, changes :math:`\hat R` by at most
D/N; for :math:`\sup_f (\hat R - R)` and :math:`\sup_f (R - \hat R)`, with :math:`\delta/2` each, this gives the
second term above their expectations. (2) Symmetrisation: each expectation is at most :math:`2\,\mathfrak
R_N(\omega\bar\ell \circ F)`. (3) Contraction: :math:`\mathfrak R_N(\omega\bar\ell\circ F) \le \omega_{max}\,\kappa
\sum_k \mathfrak R_N(F_k)`.

*Range.* :math:`\bar\ell = -(K-2)\,\ell_{\bar y} + \sum_{j \ne \bar y} \ell_j` lies in :math:`[-(K-2) L_f, (K-1) L_f]`
for :math:`\ell \in [0, L_f]`, so :math:`D \le \omega_{max}(2K-3)L_f`. Softmax cross-entropy with outputs within
:math:`\pm r` has :math:`\bar\ell = (K-1) f_{\bar y} - \sum_j f_j + \log\sum_j e^{f_j}`, which rises with
:math:`f_{\bar y}` (slope :math:`K - 2 + p_{\bar y}`) and falls with every other output (slope :math:`p_j - 1`), so
its ends are at two corners: :math:`\pm(2K-3) r + \log(e^{\pm r} + (K-1) e^{\mp r})`.

*Contraction.* :math:`\kappa` is the smaller of two. By vectors (Maurer, ALT 2016): if :math:`\bar\ell(\cdot, \bar y)`
is :math:`\Lambda`-Lipschitz in the Euclidean norm of the outputs, :math:`\kappa = \sqrt2\,\Lambda`, the supremum of a
sum being at most the sum of suprema. :math:`\Lambda` is the largest gradient norm:

- softmax cross-entropy: the gradient :math:`(K-1) e_{\bar y} - 1 + p` has a squared norm that is convex in p, hence
  largest at a vertex: :math:`(K-1)^2 + (K-1)` at :math:`p = e_{\bar y}`, :math:`(K-2)^2 + (K-2)` at the others.
  :math:`\Lambda = \sqrt{K(K-1)}`, approached, not reached.
- :math:`\ell_j = \phi(f_j)` with an :math:`L_\phi`-Lipschitz :math:`\phi`: coefficients :math:`-(K-2)` and K - 1
  times 1 on different outputs: :math:`\Lambda = L_\phi \sqrt{(K-2)^2 + K - 1} = L_\phi\sqrt{K^2 - 3K + 3}`.
- every :math:`\ell_j` L-Lipschitz in the Euclidean norm: the triangle inequality, :math:`\Lambda = (2K-3) L`.

By outputs (Ledoux and Talagrand), where the loss is a sum of functions of single outputs: each has a coefficient of
at most :math:`m = \max(K-2, 1)`, so :math:`\kappa = m L_\phi` for :math:`\ell_j = \phi(f_j)`; for cross-entropy the
linear part costs m and the logarithm, which is 1-Lipschitz in the Euclidean norm, :math:`\sqrt2`: :math:`\kappa = m +
\sqrt2`.

The excess risk of the empirical minimiser is at most twice the bound, as :math:`\hat R(\hat f) \le \hat R(f^*)`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import choice, distribution, numeric, positive, whole
from wcll.exceptions import InputError
from wcll.labels.transition import complementary_prior
from wcll.labels.weights import eq13


def linear_complexity(norm: float, radius: float, n: int) -> float:
    r"""Linear models :math:`x \mapsto w \cdot x` with :math:`\|w\|_2 \le B` on samples with :math:`\|x\|_2 \le r`.

    .. math:: \mathfrak R_N = \frac BN E \Bigl\|\sum_i \sigma_i x_i\Bigr\|
              \le \frac BN \sqrt{E \Bigl\|\sum_i \sigma_i x_i\Bigr\|^2} = \frac BN \sqrt{\sum_i \|x_i\|^2}
              \le \frac{B r}{\sqrt N}

    A bias is a feature that is 1.

    >>> linear_complexity(norm=2.0, radius=3.0, n=100)
    0.6
    """
    return positive("norm", norm) * positive("radius", radius) / math.sqrt(whole("n", n))


def linear_complexity_of(
    X: ArrayLike,
    *,
    norm: float,
    draws: int = 100,
    random_state: RandomState = None,
) -> tuple[float, float]:
    r"""The same for given samples, by Monte Carlo over the signs: :math:`\frac BN E_\sigma \|\sum_i \sigma_i x_i\|`.

    Returns the mean over ``draws`` and its standard error. It is at most :math:`B \sqrt{\sum_i \|x_i\|^2} / N`.

    >>> value, error = linear_complexity_of([[3.0, 4.0]], norm=1.0, random_state=0)
    >>> round(value, 9), round(error, 9)
    (5.0, 0.0)
    """
    samples = numeric("X", X)
    if samples.ndim != 2 or not len(samples):
        raise InputError("X", "samples of shape (n, features)", f"shape {samples.shape}")
    rng = stream(random_state, "theory", "signs")
    signs = rng.choice([-1.0, 1.0], size=(whole("draws", draws), len(samples)))
    values = positive("norm", norm) / len(samples) * np.linalg.norm(signs @ samples, axis=1)
    error = values.std(ddof=1) / math.sqrt(draws) if draws > 1 else math.nan
    return float(values.mean()), float(error)


def mlp_complexity(norms: Sequence[float], radius: float, n: int) -> float:
    r"""Networks of d layers with ReLU between them, layer j of Frobenius norm at most :math:`M_j`.

    .. math:: \mathfrak R_N \le \frac{r \bigl(\sqrt{2 d \log 2} + 1\bigr) \prod_j M_j}{\sqrt N}

    (Golowich, Rakhlin and Shamir, COLT 2018, Theorem 1), for one output, so that the last norm is that of one row, and
    for networks without biases (a feature that is 1 stands for the first layer's). It grows with the product of the
    norms, which trained networks make large: expect it to be vacuous.
    """
    if not norms:
        raise InputError("norms", "one norm a layer", "none")
    product = math.prod(positive("norms", norm) for norm in norms)
    return (
        positive("radius", radius) * (math.sqrt(2 * len(norms) * math.log(2)) + 1) * product / math.sqrt(whole("n", n))
    )


LossKind = Literal["cross-entropy", "margin", "lipschitz"]
LOSS_KINDS: tuple[LossKind, ...] = ("cross-entropy", "margin", "lipschitz")
MOST_LABELS = 1e15
MAURER = math.sqrt(2)  #: what the contraction of vectors costs
CROSS_ENTROPY = math.sqrt(2)  #: its Lipschitz constant in the Euclidean norm: |p - e_j| < sqrt(2)


@dataclass(frozen=True)
class Problem:
    """All that the bounds depend on."""

    pi: tuple[float, ...]  #: Eq. 7
    n: int  #: complementary labels
    complexity: float  #: the Rademacher complexity of one output at this n
    largest_loss: float  #: L_f
    loss: LossKind = "cross-entropy"
    lipschitz: float = CROSS_ENTROPY  #: L_phi, or L
    delta: float = 0.05
    reach: float | None = None  #: outputs lie within plus and minus this, where that is known
    inverse_size: bool = True  #: whether labels are of the inverse-size selector, so that R is a classification risk

    @staticmethod
    def linear(
        sizes: ArrayLike,
        n: int,
        *,
        norm: float,
        radius: float,
        loss: LossKind = "cross-entropy",
        lipschitz: float | None = None,
        largest_loss: float | None = None,
        delta: float = 0.05,
    ) -> Problem:
        r"""Linear models with :math:`\|w_k\| \le` ``norm`` on samples with :math:`\|x\| \le` ``radius``.

        ``sizes`` are the ordinary class sizes or shares of Eq. 6. For cross-entropy :math:`L_f` follows from the
        norms: outputs lie within :math:`\pm Br`, so :math:`\ell \le \log(1 + (K-1) e^{2Br})`; for other losses give
        ``largest_loss`` and ``lipschitz``.
        """
        complexity, reach = linear_complexity(norm, radius, n), norm * radius
        choice("loss", loss, LOSS_KINDS)
        classes = numeric("sizes", sizes).size
        if classes < 2:
            raise InputError("sizes", "sizes of at least two classes", classes)
        constants = "lipschitz, largest_loss"
        if loss == "cross-entropy":
            if lipschitz is not None or largest_loss is not None:
                raise InputError(constants, "none for cross-entropy, whose constants are known", "a value")
            lipschitz, largest_loss = CROSS_ENTROPY, cross_entropy_limit(classes, reach)
        if lipschitz is None or largest_loss is None:
            raise InputError(constants, f"both, for loss = {loss!r}", "none")
        pi = tuple(complementary_prior(sizes).tolist())
        return Problem(pi, n, complexity, largest_loss, loss, lipschitz, delta, reach)

    @staticmethod
    def network(sizes: ArrayLike, n: int, *, norms: Sequence[float], radius: float, delta: float = 0.05) -> Problem:
        """ReLU networks without biases and with cross-entropy, see :func:`wcll.theory.mlp_complexity`.

        ``norms`` are the Frobenius norms of the layers, the last one that of an output's row.
        """
        complexity = mlp_complexity(norms, radius, n)
        outputs = Problem.linear(sizes, n, norm=math.prod(norms), radius=radius, delta=delta)  # of the same reach
        return replace(outputs, complexity=complexity)

    def __post_init__(self) -> None:
        distribution("pi", np.array(self.pi), len(self.pi))
        whole("n", self.n)
        for name in ("complexity", "largest_loss", "lipschitz"):
            positive(name, getattr(self, name))
        if not 0 < self.delta < 1:
            raise InputError("delta", "a probability between 0 and 1", self.delta)

    @property
    def classes(self) -> int:
        """How many classes there are."""
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
    def vector_lipschitz(self) -> float:
        """Lambda: how fast the bracket changes with the vector of outputs."""
        k = self.classes
        if self.loss == "cross-entropy":
            return math.sqrt(k * (k - 1))
        if self.loss == "margin":
            return self.lipschitz * math.sqrt(k * k - 3 * k + 3)
        return self.lipschitz * (2 * k - 3)

    @property
    def contraction(self) -> float:
        """kappa: what the step from the losses to the outputs costs, by vectors or by single outputs."""
        largest = max(self.classes - 2, 1)
        by_output = {"cross-entropy": largest + MAURER, "margin": largest * self.lipschitz, "lipschitz": math.inf}
        return min(MAURER * self.vector_lipschitz, by_output[self.loss])

    @property
    def width(self) -> float:
        """D: the range of the weighted complementary loss; no deviation can be larger."""
        k, omega = self.classes, eq13(self.pi)
        low, high = -(k - 2) * self.largest_loss, (k - 1) * self.largest_loss
        if self.loss == "cross-entropy" and self.reach is not None:
            low, high = (
                side * (2 * k - 3) * self.reach
                + float(np.logaddexp(side * self.reach, math.log(k - 1) - side * self.reach))
                for side in (-1, 1)
            )
        return float(omega.max() * high - min(omega.max() * low, omega.min() * low))

    @property
    def scale(self) -> float | None:
        """The risk of outputs of 0, for inverse-size labels and cross-entropy: log K times the mean of omega."""
        if self.loss != "cross-entropy" or not self.inverse_size:
            return None
        omega = eq13(self.pi)  # these are also the class shares: both are proportional to 1/pi
        pi = np.array(self.pi)
        named = (
            float(pi @ omega) - pi * omega
        )  # sum over j of Q[y, j] omega_j, for the inverse-size Q, without the matrix
        return math.log(self.classes) * float(omega @ (named / (1 - pi)))

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

    def labels_for(self, gap: float) -> int:
        """How many labels bring it down to ``gap``."""
        return labels_needed(self.value, int(self.ingredients["N"]), gap)


def lemma1(problem: Problem) -> Bound:
    r"""Lemma 1 as printed, with its :math:`L_\phi` taken as the loss's Lipschitz constant.

    .. math:: 2 \omega_K L_\phi [\pi_K (K-1) + K]\, \mathfrak R_{N}(F) + \sqrt{\frac{I^2 \log(4/\delta)}{2N}},\quad
              I = 2 \omega_K L_f [\pi_K (K-1) + K],

    "with probability at least :math:`1 - \delta/2`"; :math:`\mathfrak R_N(F)` is read as the complexity of one
    output. What is loose or wrong in its proof:

    - It is about Eq. 12, and Eq. 12 does not estimate Eq. 11: its sums over the :math:`N_z` samples of a label are
      divided by all N, so that its expectation has about :math:`\pi_z^2` where Eq. 11 has :math:`\pi_z`.
    - :math:`\pi_z` stands before both parts of Eq. 12, in the proof before the first only. The loss of the
      experiments, Eq. 9, has no :math:`\pi_z`: there the first coefficient is K - 1, not :math:`\pi_K (K-1)`, and the
      bracket too small; with many classes the statement is false (:mod:`wcll.paper.bound_study`).
    - The contraction works output by output, which is right for :math:`\ell_j = \phi(f_j)`. A loss whose every
      :math:`\ell_j` sees all outputs, as softmax cross-entropy, needs the contraction of vectors, which costs more.
    - :math:`\omega_K` and :math:`\pi_K` are both maxima, but of different classes, as :math:`\omega \propto 1/\pi`:
      loose.
    - McDiarmid's inequality is applied to one f and then read as a statement on the supremum; samples are exchanged,
      their labels are not.
    - It bounds the deviation of the weighted risk. For other labels than those of the inverse-size selector that is
      not the risk of any classification problem; and nothing in it depends on how balanced the result is.
    """
    bracket = problem.pi_max * (problem.classes - 1) + problem.classes
    largest = 2 * problem.omega_max * problem.largest_loss * bracket
    terms = {
        "complexity": 2 * problem.omega_max * problem.lipschitz * bracket * problem.complexity,
        "deviation": largest * math.sqrt(math.log(4 / problem.delta) / (2 * problem.n)),
    }
    formula = "2 omega_K L_phi [pi_K (K-1) + K] R_N(F) + sqrt(I^2 log(4/delta) / (2N))"
    own = {"pi_K": problem.pi_max, "L_phi": problem.lipschitz, "pi_K (K-1) + K": bracket, "I": largest}
    lemma = _bound(problem, "Lemma 1, as printed", formula, own, terms, omega="omega_K")
    return replace(lemma, confidence=1 - problem.delta / 2)


def theorem1(problem: Problem) -> Bound:
    r"""Theorem 1 as printed: twice Lemma 1, for :math:`R(\hat f) - R(f^*)`.

    The printed proof sets :math:`\hat R(\hat f) - \hat R(f^*) = 0` "as :math:`N \to \infty`"; it is at most 0 for
    every N, which is all that is needed.
    """
    formula = "4 omega_K L_phi [pi_K (K-1) + K] R_N(F) + sqrt(2 I^2 log(4/delta) / N)"
    return _twice(lemma1(problem), "Theorem 1, as printed", formula)


def corrected_lemma(problem: Problem) -> Bound:
    """The corrected statement; its proof is in the module's description."""
    terms = {
        "complexity": 2 * problem.omega_max * problem.contraction * problem.classes * problem.complexity,
        "deviation": problem.width * math.sqrt(math.log(2 / problem.delta) / (2 * problem.n)),
    }
    formula = "2 omega_max kappa sum_k R_N(F_k) + D sqrt(log(2/delta) / (2N))"
    own = {"Lambda": problem.vector_lipschitz, "kappa": problem.contraction, "D": problem.width}
    own["sum_k R_N(F_k)"] = problem.classes * problem.complexity
    return _bound(problem, "Lemma 1, corrected", formula, own, terms)


def corrected_theorem(problem: Problem) -> Bound:
    r"""Twice the corrected lemma: :math:`R(\hat f) - R(f^*) \le [R - \hat R](\hat f) + [\hat R - R](f^*)`."""
    formula = "4 omega_max kappa sum_k R_N(F_k) + 2 D sqrt(log(2/delta) / (2N))"
    return _twice(corrected_lemma(problem), "Theorem 1, corrected", formula)


def finite_class(problem: Problem, members: int) -> Bound:
    r"""For finitely many models J, by Hoeffding's inequality and a union: :math:`D \sqrt{\log(2J/\delta) / (2N)}`."""
    deviation = problem.width * math.sqrt(math.log(2 * whole("members", members) / problem.delta) / (2 * problem.n))
    own = {"J": members, "D": problem.width}
    return _bound(problem, "finitely many models", "D sqrt(log(2J/delta) / (2N))", own, {"deviation": deviation})


def labels_needed(bound: float, n: int, gap: float) -> int:
    """How many labels bring a bound from its value at ``n`` down to ``gap``: every term falls as 1/sqrt(N).

    >>> labels_needed(2.0, n=100, gap=0.5)
    1600
    """
    ratio = positive("bound", bound) / positive("gap", gap)
    if ratio > math.sqrt(MOST_LABELS / whole("n", n)):
        raise InputError("gap", f"one that at most {MOST_LABELS:g} labels reach", gap)
    return max(math.ceil(n * ratio**2 - 1e-9), 1)


def norm_seen_later(norm: float, delta: float) -> tuple[float, float]:
    """A norm, and a share of ``delta``, with which a bound holds for a norm that was found after training.

    A bound is about a norm that was fixed before the data were seen. It holds for 1, 2, 4, ... at once if 2^j has the
    share delta / 2^(j+1), as these sum to delta; a norm that is found later is at most one of them.

    >>> norm_seen_later(3.0, 0.08)
    (4.0, 0.01)
    """
    fraction, exponent = math.frexp(positive("norm", norm))
    power = max(exponent - (fraction == 0.5), 0)
    return 2.0**power, delta / 2 ** (power + 1)


def cross_entropy_limit(classes: int, reach: float) -> float:
    r"""The largest softmax cross-entropy of outputs within :math:`\pm r`: :math:`\log(1 + (K-1) e^{2r})`."""
    return float(np.logaddexp(0.0, math.log(classes - 1) + 2 * reach))


def _bound(
    problem: Problem, name: str, formula: str, own: dict[str, float], terms: dict[str, float], omega: str = "omega_max"
) -> Bound:
    """A statement that holds with probability 1 - delta; to what went into all of them come its ``own`` ingredients."""
    common = {"K": problem.classes, "N": problem.n, "delta": problem.delta, omega: problem.omega_max}
    ingredients = {**common, "L_f": problem.largest_loss, "R_N": problem.complexity, **own}
    for part, number in {**ingredients, **terms, "the sum": 2 * sum(terms.values())}.items():
        if not sys.float_info.min <= number < math.inf:  # else it was rounded away; twice the sum is the theorem's
            remedy = "a norm, the radius, the sizes or delta are too large or too small"
            raise InputError("bound", "terms that are numbers above 0", f"{part} = {number:g}", remedy)
    return Bound(name, formula, ingredients, terms, 1 - problem.delta, problem.width, problem.scale)


def _twice(lemma: Bound, name: str, formula: str) -> Bound:
    terms = {term: 2 * value for term, value in lemma.terms.items()}
    return replace(lemma, name=name, formula=formula, terms=terms)


__all__ = [
    "Bound",
    "Problem",
    "corrected_lemma",
    "corrected_theorem",
    "lemma1",
    "linear_complexity",
    "linear_complexity_of",
    "mlp_complexity",
    "norm_seen_later",
    "theorem1",
]
