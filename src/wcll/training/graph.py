"""A step that is recorded once on a GPU and then replayed: its many small kernels start at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

WARM_UP = 3  # steps that are run before recording, as torch asks for


def side_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream beside the one that is in use."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Replay:
    """Calls a function; on CUDA, after a few calls, replays what it did.

    The function must be the same and do the same work at every call, on the same tensors; what changes between calls is
    written into tensors beforehand. It is not kept: an engine whose step were kept here would hold itself, and stay in
    memory with all its samples until garbage is collected.
    """

    def __init__(self, device: torch.device) -> None:
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = side_stream(device) if device.type == "cuda" else None

    def __call__(self, function: Callable[[], None]) -> None:
        """Do it."""
        self.calls += 1
        if self.stream is None:
            function()
        elif self.graph is not None:
            self.graph.replay()
        elif self.calls <= WARM_UP:
            self._warm_up(function, self.stream)
        else:
            self.graph = torch.cuda.CUDAGraph()
            with _nothing_freed(), torch.cuda.graph(self.graph):  # recording does not run it
                function()
            self.graph.replay()

    def _warm_up(self, function: Callable[[], None], stream: torch.cuda.Stream) -> None:
        """Run on another stream, where memory that the graph will use can be set aside."""
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function()
        torch.cuda.current_stream().wait_stream(stream)


@contextmanager
def _nothing_freed() -> Iterator[None]:
    """No garbage is collected while a graph is recorded.

    An older graph that lies in a cycle would be destroyed in the middle of it, which CUDA does not permit.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
