"""How far methods are apart where test sets are small: over trials, and with the error of the test sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from wcll._validation import FloatArray
from wcll.report.result_tables import ROUNDING, SIGNIFICANCE, Cell, holm


@dataclass(frozen=True)
class Gap:
    """How far a share is above another, or above a number; fractions."""

    mean: float
    error: float  #: its standard error
    freedom: float  #: degrees of freedom of the error

    @property
    def p_value(self) -> float:
        """Two-sided: how often equal shares would be as far apart."""
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        half = float(stdtrit(self.freedom, 1 - SIGNIFICANCE / 2)) * self.error
        return self.mean - half, self.mean + half

    def text(self) -> str:
        """In points, with the interval."""
        low, high = self.interval
        return f"{100 * self.mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def gap(first: Cell, second: Cell | float, n: int) -> Gap:
    r"""Between the shares of two methods, or of one and a number, in trials that test ``n`` images each.

    With differences :math:`d_t` of T trials the squared standard error of their mean is
    :math:`s_d^2 / T + a (1 - a) / n + b (1 - b) / n`: errors on one test set do not average out over trials (that both
    methods see the same images would make the last parts smaller; it is not relied on). Degrees of freedom by Welch and
    Satterthwaite: only the first part has few.
    """
    values = [np.array(list(first.values.values()))]
    if isinstance(second, Cell):
        shared = [seed for seed in first.values if seed in second.values]
        values = [np.array([cell.values[seed] for seed in shared]) for cell in (first, second)]
        difference = values[0] - values[1]
    else:
        difference = values[0] - second
    trials = len(difference)
    between, tested = float(difference.var(ddof=1)) / trials, sum(_of_a_share(some, n) for some in values)
    freedom = (trials - 1) * (between + tested) ** 2 / max(between, ROUNDING) ** 2
    return Gap(float(difference.mean()), math.sqrt(between + tested), min(freedom, 1e6))


def _of_a_share(values: FloatArray, n: int) -> float:
    """The variance of a share among ``n`` images; one more on either side keeps 0 and 1 from being certain."""
    share = (values.mean() * n + 1) / (n + 2)
    return float(share * (1 - share) / n)


def signs(gaps: Sequence[Gap]) -> list[int]:
    """Of each gap whether it is significantly above (1) or below (-1) 0, or neither (0); adjusted by Holm."""
    adjusted = holm([one.p_value for one in gaps])
    return [int(np.sign(one.mean)) if p < SIGNIFICANCE else 0 for one, p in zip(gaps, adjusted, strict=True)]
