"""Random numbers as a function of counters: a run draws the same whoever trains beside it, on every device."""

from __future__ import annotations

import torch

from wcll._random import stream_seed

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
