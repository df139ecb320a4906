"""Ordinary losses l_j(x), one value for every class j, from which complementary losses are built."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from wcll._validation import Functions, is_number
from wcll.exceptions import InputError
from wcll.losses.softmax import log_softmax, softmax
from wcll.losses.spec import autograd

BaseLoss = Callable[[Tensor], Tensor]
Base = str | BaseLoss

BASES: Functions[BaseLoss] = Functions("base")


@BASES.add("ce")
def ce(logits: Tensor) -> Tensor:
    """Cross-entropy, -log p_j."""
    return -log_softmax(logits)


@BASES.add("mae")
def mae(logits: Tensor) -> Tensor:
    """Mean absolute error, sum_i |p_i - [i = j]| = 2 (1 - p_j)."""
    return 2 * (1 - softmax(logits))


@BASES.add("mse")
def mse(logits: Tensor) -> Tensor:
    """Squared error, 1 - 2 p_j + sum_i p_i^2."""
    p = logits.softmax(-1)
    return 1 - 2 * p + p.square().sum(-1, keepdim=True)


@BASES.add("gce")
def gce(logits: Tensor, q: float = 0.7) -> Tensor:
    """Generalised cross-entropy, (1 - p_j^q) / q with 0 < q <= 1."""
    if not is_number(q) or not 0 < q <= 1:
        raise InputError("q", "a number above 0, at most 1", q)
    return -torch.expm1(q * logits.log_softmax(-1)) / q


@BASES.add("phuber")
def phuber(logits: Tensor, tau: float = 10.0) -> Tensor:
    """Partially Huberised cross-entropy: linear in p_j where p_j is at most 1/tau; tau > 1."""
    if not is_number(tau) or not tau > 1:
        raise InputError("tau", "a number above 1", tau)
    log_p = logits.log_softmax(-1)
    return torch.where(log_p > -math.log(tau), -log_p, 1 + math.log(tau) - tau * log_p.exp())


@BASES.add("symmetric")
def symmetric(logits: Tensor, alpha: float = 0.1, beta: float = 1.0, floor: float = -4.0) -> Tensor:
    """Symmetric cross-entropy, alpha (-log p_j) - beta A (1 - p_j), with A in place of log 0."""
    log_p = logits.log_softmax(-1)
    return -alpha * log_p - beta * floor * (1 - log_p.exp())


def base_gradient(base: Base, logits: Tensor, p: Tensor, coefficients: Tensor) -> Tensor:
    """The gradient in the logits of sum_k c_k l_k(x), for coefficients c (..., n, k) and p = softmax(f)."""
    if base == "ce" or base is ce:
        return torch.addcmul(-coefficients, p, coefficients.sum(-1, keepdim=True))
    if base == "mae" or base is mae:
        return 2 * p * ((coefficients * p).sum(-1, keepdim=True) - coefficients)
    return autograd(lambda leaf, _: coefficients * base_loss(base)(leaf))(logits, p, None)


def base_loss(base: Base) -> BaseLoss:
    """A base loss by name, or the user's own function of logits (..., n, k) to losses (..., n, k)."""
    return base if callable(base) else BASES[base]
