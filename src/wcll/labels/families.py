"""Families of Q."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wcll.checks import FloatArray


@dataclass(frozen=True, eq=False)
class EstimatedTransition:
    """A Q that was estimated, its standard errors, and where it comes from."""

    transition: FloatArray  #: ``Q[y, ybar]``
    standard_error: FloatArray | None  #: of its entries; None if nobody asked
    shares: FloatArray | None  #: P(y), if they were found together with Q
    basis: str  #: what it was estimated from, in words
    family: str  #: the family that it is of, or leans to

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.transition, dtype=dtype)
