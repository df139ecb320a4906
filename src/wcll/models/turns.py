"""Turns at torch's global random stream: modules and losses of users draw from it, maybe in several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_DOOR, _INSIDE = threading.Lock(), threading.RLock()
_OWNED = threading.local()  # how often this thread is inside


@contextmanager
def alone() -> Iterator[None]:
    """One thread at a time draws from torch's global stream; who waits longest is next."""
    depth = getattr(_OWNED, "depth", 0)
    if depth:
        _INSIDE.acquire()
    else:
        with _DOOR:  # held while waiting: a thread that has just been inside stands behind it
            _INSIDE.acquire()
    _OWNED.depth = depth + 1
    try:
        yield
    finally:
        _OWNED.depth = depth
        _INSIDE.release()


class Turns:
    """A random stream of one's own, which takes the place of torch's global one for the length of a turn."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device if device.type == "cuda" else None
        with alone():
            before = self._states()
            torch.default_generator.manual_seed(seed)
            if self.device is not None:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(seed)
            self.own = self._states()
            self._put(before)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Draw from the own stream within the block, alone; after it the global one is as before."""
        with alone():
            before = self._states()
            self._put(self.own)
            try:
                yield
            finally:
                self.own = self._states()
                self._put(before)

    def _states(self) -> list[Tensor]:
        states = [torch.get_rng_state()]
        return states if self.device is None else [*states, torch.cuda.get_rng_state(self.device)]

    def _put(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        if self.device is not None:
            torch.cuda.set_rng_state(states[1], self.device)
