"""One summary of what a set of complementary labels tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from wcll.checks import InputError
from wcll.labels.statistics import (
    Estimate,
    InverseSizeRecovery,
    label_counts,
    observed_marginal,
    ordinary_prior,
    recover_inverse_size,
)


@dataclass(frozen=True)
class LabelSummary:
    """What labels alone tell; an entry is ``None`` where the labels do not allow it."""

    n: int
    counts: Estimate
    marginal: Estimate
    prior: Estimate | None  #: ordinary class shares under the Q that was given
    inverse_size: InverseSizeRecovery | None  #: pi, class shares and Q under the inverse-size assumption
    inverse_size_problem: str | None  #: why it is missing

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        recovered = self.inverse_size
        return {
            "n": self.n,
            "counts": self.counts.to_dict(),
            "marginal": self.marginal.to_dict(),
            "prior_under_transition": self.prior.to_dict() if self.prior else None,
            "inverse_size": {"pi": recovered.pi.to_dict(), "prior": recovered.prior.to_dict()} if recovered else None,
            "inverse_size_problem": self.inverse_size_problem,
        }


def describe_labels(ybar: ArrayLike, n_classes: int, *, transition: ArrayLike | None = None) -> LabelSummary:
    """Counts, marginal, the ordinary prior under ``transition`` (if given), and the inverse-size recovery.

    >>> describe_labels([0, 0, 1, 2], 3).marginal.value
    array([0.5 , 0.25, 0.25])
    """
    recovered, problem = None, None
    try:
        recovered = recover_inverse_size(ybar, n_classes)
    except InputError as error:
        problem = str(error)
    return LabelSummary(
        n=len(ybar),  # type: ignore[arg-type]
        counts=label_counts(ybar, n_classes),
        marginal=observed_marginal(ybar, n_classes),
        prior=None if transition is None else ordinary_prior(ybar, transition),
        inverse_size=recovered,
        inverse_size_problem=problem,
    )
