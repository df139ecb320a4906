"""Random examples of what losses take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._validation import FloatArray


def example_logits(*shape: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    """Random float64 logits."""
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def example_labels(n: int, n_classes: int, *, several: bool, seed: int = 0) -> Tensor:
    """One random label a sample, (n,), or a mask of random sets, (n, k)."""
    rng = np.random.default_rng(seed)
    if not several:
        return torch.from_numpy(rng.integers(0, n_classes, n))
    sizes = rng.integers(1, n_classes, n)
    return torch.from_numpy(rng.random((n, n_classes)).argsort(axis=1).argsort(axis=1) < sizes[:, None])


def example_transition(n_classes: int, seed: int = 0) -> FloatArray:
    """A random row-stochastic matrix with a zero diagonal."""
    matrix = np.random.default_rng(seed).uniform(0.2, 1.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    stochastic: FloatArray = matrix / matrix.sum(axis=1, keepdims=True)
    return stochastic


def example_context(names: Iterable[str], n_classes: int, seed: int = 0) -> dict[str, Any]:
    """Random values of some of the keywords that a trainer gives."""
    rng = np.random.default_rng(seed)
    shares = {name: rng.uniform(0.5, 1.5, n_classes) for name in ("marginal", "prior", "pi")}
    values = {name: share / share.sum() for name, share in shares.items()}
    values |= {"weight": rng.uniform(0.2, 2.0, n_classes), "transition": example_transition(n_classes, seed)}
    return {name: values[name] for name in names}
