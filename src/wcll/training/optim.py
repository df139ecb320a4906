"""Adam with a rate of its own for every run."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class RunAdam:
    """Adam with L2 decay, as ``torch.optim.Adam``, for parameters (runs, ...) and one rate a run.

    torch's own optimisers take one rate for all; here no run's step depends on another's.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: Tensor,
        *,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay = lr, weight_decay  # both may be changed between steps
        self.betas, self.eps = betas, eps
        self.steps = 0
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step of every run."""
        self.steps += 1
        first, second = self.betas
        unbias = 1 - first**self.steps
        root = (1 - second**self.steps) ** 0.5
        for parameter, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            if parameter.grad is None:
                continue
            gradient = parameter.grad.add(parameter, alpha=self.weight_decay) if self.weight_decay else parameter.grad
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            size = self.lr[0] if len(self.lr) == 1 else self.lr.view(-1, *[1] * (parameter.ndim - 1))
            parameter.sub_(size * mean / (square.sqrt() / root).add_(self.eps) / unbias)
