"""What held-out complementary labels are judged by: Q and the class shares, and how sure one is of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from wcll.checks import FloatArray, distribution, inverse_transition, numeric, transition_matrix
from wcll.labels.statistics import solve_pi
from wcll.labels.transition import complementary_prior, normalised, transition_from_pi, uniform_transition

Source = Literal["known", "assumed", "estimated"]


@dataclass(frozen=True)
class Judge:
    """Q and the ordinary class shares, each known, assumed or estimated.

    ``prior=None`` takes the shares from the held-out labels' own counts. ``totals`` are the label counts from which the
    shares were estimated by the inverse of Q, so that intervals can carry the error of that estimate, which is large.
    """

    transition: FloatArray
    transition_source: Source
    prior: FloatArray | None = None
    prior_source: Source = "estimated"
    totals: FloatArray | None = None

    @staticmethod
    def known(transition: ArrayLike, prior: ArrayLike) -> Judge:
        """Both are known, as in a simulation."""
        matrix = transition_matrix(transition)
        return Judge(matrix, "known", distribution("prior", prior, len(matrix)), "known")

    @staticmethod
    def assumed(transition: ArrayLike, totals: ArrayLike) -> Judge:
        """Q is taken for granted; the shares solve prior Q = label shares, from the label counts ``totals``."""
        matrix, counts = transition_matrix(transition), numeric("totals", totals)
        return Judge(matrix, "assumed", normalised(counts) @ inverse_transition(matrix), "estimated", counts)

    @staticmethod
    def uniform(totals: ArrayLike) -> Judge:
        """Uniform labels are assumed."""
        counts = numeric("totals", totals)
        return Judge.assumed(uniform_transition(len(counts)), counts)

    @staticmethod
    def inverse_size(totals: ArrayLike) -> Judge:
        """Labels of the inverse-size selector: Q and the shares are both recovered from the label counts."""
        pi = solve_pi(normalised(numeric("totals", totals)))
        return Judge(transition_from_pi(pi), "estimated", complementary_prior(pi), "estimated")

    def priors(self, own: FloatArray, draws: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """The class shares, and their values in bootstrap draws; ``own`` and ``draws`` are held-out label shares."""
        if self.prior is None:
            inverse = inverse_transition(self.transition)
            return own @ inverse, draws @ inverse
        if self.totals is None:
            return self.prior, np.broadcast_to(self.prior, draws.shape)
        n = int(self.totals.sum())
        again = rng.multinomial(n, normalised(self.totals), size=len(draws)) / n
        return self.prior, again @ inverse_transition(self.transition)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and names, for JSON."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Judge:
        """What :meth:`to_dict` wrote."""
        fields: dict[str, Any] = {k: np.array(v) if isinstance(v, list) else v for k, v in plain.items()}
        return Judge(**fields)
