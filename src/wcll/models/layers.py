"""Layers that train many runs at once: every parameter has a leading run axis, and no run sees another.

Features of convolutional networks are kept as (n, runs * channels, height, width): one grouped convolution serves all
runs, and so does one batch norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from wcll._memory import check_memory
from wcll._random import stream, stream_seed
from wcll._validation import share

_ROUNDS, _MASK = 10, 0xFFFFFFFF
_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)


def philox(keys: torch.Tensor, counters: torch.Tensor) -> torch.Tensor:
    """Philox 4x32-10: random 32-bit words as a function of key and counter, the same on every device.

    ``keys`` (..., 2) and ``counters`` (..., 4) are int64 tensors of 32-bit words that broadcast against each other.
    See Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """
    key0, key1 = keys.unbind(-1)
    c0, c1, c2, c3 = counters.unbind(-1)
    for _ in range(_ROUNDS):
        low, high = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]  # products wrap, their bits are right
        c0, c1, c2, c3 = (
            ((high >> 32) & _MASK) ^ c1 ^ key0,
            high & _MASK,
            ((low >> 32) & _MASK) ^ c3 ^ key1,
            low & _MASK,
        )
        key0, key1 = (key0 + _WEYL[0]) & _MASK, (key1 + _WEYL[1]) & _MASK
    return torch.stack([c0, c1, c2, c3], -1)


def stream_keys(seeds: list[int], stage: str) -> torch.Tensor:
    """One Philox key a run, (runs, 2)."""
    words = [stream_seed(seed, stage) for seed in seeds]
    return torch.tensor([[word & _MASK, word >> 32] for word in words], dtype=torch.int64)


def counter_uniform(keys: torch.Tensor, step: int | torch.Tensor, layer: int, size: int) -> torch.Tensor:
    """``size`` uniform numbers in [0, 1) for every run: a function of (run, step, layer) and nothing else.

    For one step (runs, size); for steps (s,) in a tensor, the numbers of each: (runs, s, size).
    """
    blocks = torch.arange((size + 3) // 4, device=keys.device)
    steps = torch.as_tensor(step, device=keys.device).unsqueeze(-1)
    zero = 0 * (blocks + steps)
    counters = torch.stack([blocks + zero, (steps & _MASK) + zero, (steps >> 32) + zero, layer + zero], -1)
    drawn = philox(keys.view(-1, *[1] * (counters.ndim - 1), 2), counters)
    return drawn.flatten(-2)[..., :size].double() / 2**32


class Draws:
    """Initial values, run by run, from the stream ``init`` of each run's seed: a run starts alike in any company."""

    def __init__(self, seeds: Sequence[int], dtype: torch.dtype) -> None:
        self.generators = [stream(seed, "init") for seed in seeds]
        self.seeds, self.dtype = seeds, dtype

    def uniform(self, *shape: int, fan_in: int) -> nn.Parameter:
        """U(-b, b) with b = 1 / sqrt(fan_in), torch's default for linear and convolutional layers: (runs, *shape)."""
        bound = 1 / math.sqrt(fan_in)
        runs = torch.empty(len(self.seeds), *shape, dtype=self.dtype)
        for run, generator in zip(runs, self.generators, strict=True):
            run.copy_(torch.from_numpy(generator.uniform(-bound, bound, shape)))
        return nn.Parameter(runs)

    def constant(self, value: float, *shape: int) -> nn.Parameter:
        """The same value everywhere: (runs, *shape)."""
        return nn.Parameter(torch.full((len(self.seeds), *shape), value, dtype=self.dtype))


class Outline(Draws):
    """Shapes without values, on torch's meta device: how much a model takes is known before it is taken."""

    def __init__(self, seeds: Sequence[int], dtype: torch.dtype) -> None:
        self.seeds, self.dtype = seeds, dtype
        self.numbers = 0  #: of all runs, so far

    def uniform(self, *shape: int, fan_in: int) -> nn.Parameter:
        """The shape alone."""
        return self.constant(0.0, *shape)

    def constant(self, value: float, *shape: int) -> nn.Parameter:
        """The shape alone; an error if all so far, and the float64 that one run is drawn in, would not fit."""
        own = math.prod(shape)
        self.numbers += len(self.seeds) * own
        size = self.numbers * self.dtype.itemsize + 8 * own
        check_memory("model", f"{self.numbers} parameters", size, "choose a smaller one")
        return nn.Parameter(torch.empty(len(self.seeds), *shape, dtype=self.dtype, device="meta"))


class RunLinear(nn.Module):
    """A linear layer a run."""

    def __init__(self, draws: Draws, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = draws.uniform(n_out, n_in, fan_in=n_in)
        self.bias = draws.uniform(n_out, fan_in=n_in)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) shared by all runs, or (runs, n, d) -> (runs, n, out)."""
        if x.ndim == 3:
            return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.mT)
        runs, n_out, n_in = self.weight.shape
        together = x @ self.weight.reshape(runs * n_out, n_in).T  # one product for all runs
        n = x.shape[0]  # len(x) would fix it in what torch exports
        return together.view(n, runs, n_out).transpose(0, 1) + self.bias.unsqueeze(1)


class RunConv(nn.Module):
    """A convolution without bias a run."""

    def __init__(self, draws: Draws, n_in: int, n_out: int, *, size: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.weight = draws.uniform(n_out, n_in, size, size, fan_in=n_in * size * size)
        self.stride, self.padding = stride, size // 2

    def forward(self, x: Tensor) -> Tensor:
        """Shared images (n, in, h, w), or features (n, runs * in, h, w) -> (n, runs * out, h', w')."""
        runs, n_in = self.weight.shape[0], self.weight.shape[2]
        groups = 1 if x.shape[1] == n_in else runs
        return functional.conv2d(x, self.weight.flatten(0, 1), stride=self.stride, padding=self.padding, groups=groups)


MOMENTUM, EPSILON = 0.1, 1e-5  #: of batch norm; torch's own


@dataclass(frozen=True)
class Part:
    """The samples of a batch that this process has, where several have parts of it."""

    first: int
    whole: int  #: samples of the batch
    summed: Callable[[Tensor], Tensor]  #: over all processes, gradients too


class RunBatchNorm(nn.Module):
    """Batch normalisation of features (n, runs * channels, h, w), with statistics of each run's own."""

    running_mean: Tensor
    running_var: Tensor
    part: Part | None = None  #: None: the whole batch

    def __init__(self, draws: Draws, channels: int) -> None:
        super().__init__()
        self.weight, self.bias = draws.constant(1.0, channels), draws.constant(0.0, channels)
        self.register_buffer("running_mean", draws.constant(0.0, channels).detach())
        self.register_buffer("running_var", draws.constant(1.0, channels).detach())

    def forward(self, x: Tensor) -> Tensor:
        """Normalise; in training, update the running statistics."""
        if self.training and self.part is not None:
            return self._over_parts(x, self.part)
        mean, var, weight, bias = (t.view(-1) for t in (self.running_mean, self.running_var, self.weight, self.bias))
        return functional.batch_norm(x, mean, var, weight, bias, training=self.training)

    def _over_parts(self, x: Tensor, part: Part) -> Tensor:
        """The same with statistics of a batch that several processes have parts of."""
        n = part.whole * x[0, 0].numel()
        mean = part.summed(x.sum((0, 2, 3))) / n
        centred = x - mean.view(-1, 1, 1)
        var = part.summed(centred.square().sum((0, 2, 3))) / n
        for running, now in ((self.running_mean, mean), (self.running_var, var * (n / (n - 1)))):
            running.lerp_(now.detach().view_as(running), MOMENTUM)
        scale = self.weight.view(-1) / torch.sqrt(var + EPSILON)
        return centred * scale.view(-1, 1, 1) + self.bias.view(-1, 1, 1)


MOST_DRAWN = 2**27  # numbers of drop-out drawn at a time: some gigabytes while it lasts


class RunDropout(nn.Module):
    """Drop-out whose draws are a function of (run seed, step, layer), whatever runs train beside it.

    Whole features of a sample are dropped: units of (runs, n, d), channels of (n, runs * c, h, w).
    """

    keys: Tensor
    prepared: Tensor
    chosen: Tensor
    part: Part | None = None  #: None: the whole batch

    def __init__(self, seeds: Sequence[int], rate: float, layer: int) -> None:
        super().__init__()
        self.rate, self.layer = share("dropout", rate), layer
        self.register_buffer("keys", stream_keys(list(seeds), "dropout"), persistent=False)

    def forward(self, x: Tensor, step: int | Tensor) -> Tensor:
        """Zero a share ``rate`` of the features and scale up the others; a tensor takes the draws that were chosen."""
        if not self.training or self.rate == 0:
            return x
        image = x.ndim == 4
        n, features = (len(x), x.shape[1] // len(self.keys)) if image else x.shape[1:]
        if isinstance(step, Tensor):
            kept = self.chosen.squeeze(1)
        else:
            self.size = (n if self.part is None else self.part.whole, features)
            kept = self._kept(step)
            if self.part is not None:
                kept = kept[:, self.part.first : self.part.first + n]
        scale = kept.to(x.dtype) / (1 - self.rate)
        return x * (scale.transpose(0, 1).reshape(n, -1, 1, 1) if image else scale)

    def choose(self, place: Tensor) -> None:
        """Lay out the draws of one of the prepared steps.

        A compiled network finds them in one shape however many steps are prepared, and need not be compiled anew.
        """
        if self.rate:
            torch.index_select(self.prepared, 1, place, out=self.chosen)

    def _kept(self, step: int | Tensor, keys: Tensor | None = None) -> Tensor:
        n, features = self.size
        drawn = counter_uniform(self.keys if keys is None else keys, step, self.layer, n * features)
        return drawn.view(*drawn.shape[:-1], n, features) >= self.rate


def prepare_dropouts(layers: Sequence[RunDropout], first: int, steps: int) -> None:
    """Draw for steps ``first``, ``first + 1``, ... of the same layer of several models at once.

    Sizes are those of the last step that was run. What is drawn goes to the same memory each time: a recorded step
    finds it there. Drawing is hundreds of small operations, so many runs share each.
    """
    if layers[0].rate == 0:
        return
    numbers = torch.arange(first, first + steps, device=layers[0].keys.device)
    at_once = max(1, MOST_DRAWN // (steps * math.prod(layers[0].size)))
    for start in range(0, len(layers), at_once):
        part = layers[start : start + at_once]
        kept = part[0]._kept(numbers, torch.cat([layer.keys for layer in part]))
        for layer, own in zip(part, torch.split(kept, [len(layer.keys) for layer in part]), strict=True):
            if not hasattr(layer, "prepared"):
                layer.register_buffer("prepared", own.clone(), persistent=False)
                layer.register_buffer("chosen", own.new_empty(len(own), 1, *layer.size), persistent=False)
            layer.prepared.copy_(own)
