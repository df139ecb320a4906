r"""Rademacher complexities of one output: :math:`\mathfrak R_N(F) = E \sup_f \frac1N \sum_i \sigma_i f(x_i)`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import numeric, positive, whole
from wcll.exceptions import InputError


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
