"""Optimisers with a learning rate of its own for every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class RunAdam:
    """Adam with L2 decay, as ``torch.optim.Adam``, for parameters (runs, ...) and one rate a run.

    torch's own optimisers take one rate for all; here no run's step depends on another's. ``decoupled`` takes decay off
    the parameters themselves, as ``torch.optim.AdamW`` does. A step uses the gradients up. On a CPU torch's
    fused kernel does it.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: Tensor,
        *,
        weight_decay: float = 0.0,
        decoupled: bool = False,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay, self.decoupled = lr, weight_decay, decoupled  # may be changed between steps
        self.betas, self.eps = betas, eps
        self.steps = torch.zeros((), dtype=torch.float64, device=lr.device)  # a tensor: a step may be recorded
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
        moments = zip(self.parameters, self.means, self.squares, strict=True)
        arrays = [(p, p.grad, mean, square) for p, mean, square in moments if p.grad is not None]
        kernel = _FUSED_DECOUPLED if self.decoupled else _FUSED
        if kernel and all(array.is_cpu and array.is_contiguous() for four in arrays for array in four):
            self._fused(kernel, arrays)
        else:
            self._by_arrays(arrays)

    def _fused(self, kernel: Any, arrays: Sequence[tuple[Tensor, ...]]) -> None:
        """Update run by run, in one pass over memory."""
        first, second = self.betas
        options = {"beta1": first, "beta2": second, "weight_decay": self.weight_decay, "eps": self.eps}
        rates, steps = self.lr.tolist(), [self.steps.to(torch.float32)] * len(arrays)
        for run, rate in enumerate(rates if arrays else []):
            own = [*arrays] if len(rates) == 1 else [tuple(array[run] for array in four) for four in arrays]
            kernel(*map(list, zip(*own, strict=True)), [], steps, lr=rate, amsgrad=False, maximize=False, **options)

    def _by_arrays(self, arrays: Sequence[tuple[Tensor, ...]]) -> None:
        """Update all runs at once, operation by operation."""
        first, second = self.betas
        unbias: Any = 1 - first**self.steps
        root: Any = (1 - second**self.steps) ** 0.5
        if self.steps.device.type == "cpu":  # numbers are cheaper there
            unbias, root = unbias.item(), root.item()
        for parameter, gradient, mean, square in arrays:
            size = _for_each_run(self.lr, parameter)
            if self.weight_decay and self.decoupled:
                parameter.mul_(1 - size * self.weight_decay)
            elif self.weight_decay:
                gradient.add_(parameter, alpha=self.weight_decay)
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            scale = torch.sqrt(square, out=gradient).div_(root).add_(self.eps)
            parameter.sub_((size * mean).div_(scale).div_(unbias))


class RunSGD:
    """SGD with Nesterov's momentum and L2 decay, as ``torch.optim.SGD``, with one rate a run."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: Tensor, *, weight_decay: float = 0.0, momentum: float = 0.9
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay, self.momentum = lr, weight_decay, momentum
        self.means = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step of every run."""
        for parameter, mean in zip(self.parameters, self.means, strict=True):
            if parameter.grad is None:
                continue
            gradient = parameter.grad.add(parameter, alpha=self.weight_decay)
            mean.mul_(self.momentum).add_(gradient)
            parameter.sub_(_for_each_run(self.lr, parameter) * gradient.add_(mean, alpha=self.momentum))


def _for_each_run(rates: Tensor, parameter: Tensor) -> Tensor:
    """Rates (runs,), in a shape that multiplies parameters (runs, ...)."""
    return rates[0] if len(rates) == 1 else rates.view(-1, *[1] * (parameter.ndim - 1))


class StackedAdam:
    """Adam with L2 decay for one array of parameters (groups, rows, columns), with a rate a row.

    The gradient is written into :attr:`gradient` before a step, which uses it up. The number of steps is a tensor, so
    that a step can be recorded and replayed. On a CPU torch's fused kernel makes one pass over the memory of runs that
    share a rate; elsewhere it takes a few operations on whole arrays.
    """

    def __init__(
        self,
        parameters: Tensor,
        rates: Tensor,
        *,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters, self.rates = parameters, rates.unsqueeze(-1)
        self.weight_decay, self.betas, self.eps = weight_decay, betas, eps
        self.gradient, self.mean, self.square = (torch.zeros_like(parameters) for _ in range(3))
        self.steps = torch.zeros((), dtype=torch.float64, device=parameters.device)
        self._parts = self._same_rates() if parameters.device.type == "cpu" else []

    def step(self) -> None:
        """One step of every run."""
        self.steps += 1
        if not self._parts:
            self._by_arrays()
        first, second = self.betas
        options = {"beta1": first, "beta2": second, "weight_decay": self.weight_decay, "eps": self.eps}
        steps = self.steps.to(torch.float32)
        for rate, arrays in self._parts:
            _FUSED(*arrays, [], [steps] * len(arrays[0]), lr=rate, amsgrad=False, maximize=False, **options)

    def _by_arrays(self) -> None:
        first, second = self.betas
        gradient = self.gradient.add_(self.parameters, alpha=self.weight_decay)
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        unbias = (1 - first**self.steps).to(gradient.dtype)
        root = (1 - second**self.steps).sqrt().to(gradient.dtype)
        size = torch.sqrt(self.square, out=gradient).div_(root).add_(self.eps)
        self.parameters.sub_(torch.div(self.mean, size, out=gradient).mul_(self.rates / unbias))

    def _same_rates(self) -> list[tuple[float, list[list[Tensor]]]]:
        """For every rate, the rows that have it, of the parameters, their gradient and both moments."""
        if _FUSED is None:
            return []
        places: dict[float, list[tuple[int, slice]]] = {}
        for group, rates in enumerate(self.rates.squeeze(-1).tolist()):
            start = 0
            for stop in range(1, len(rates) + 1):
                if stop == len(rates) or rates[stop] != rates[start]:
                    places.setdefault(rates[start], []).append((group, slice(start, stop)))
                    start = stop
        arrays = (self.parameters, self.gradient, self.mean, self.square)
        return [(rate, [[array[place] for place in where] for array in arrays]) for rate, where in places.items()]


# Private to torch, so they may go: then whole arrays do.
_FUSED: Any = getattr(torch, "_fused_adam_", None)
_FUSED_DECOUPLED: Any = getattr(torch, "_fused_adamw_", None)
