"""The paper's bounds: Lemma 1 and Theorem 1 as printed, a corrected statement, and both put to the test."""

from wcll.theory.bounds import (
    Bound,
    Problem,
    corrected_lemma,
    corrected_theorem,
    lemma1,
    norm_seen_later,
    theorem1,
)
from wcll.theory.rademacher import linear_complexity, linear_complexity_of, mlp_complexity

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
