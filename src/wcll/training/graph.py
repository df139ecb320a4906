"""A step that is recorded once on a GPU and then replayed: its many small kernels start at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP = 3  # steps that are run before recording, as torch asks for


class Replay:
    """Calls a function; on CUDA, after a few calls, replays what it did.

    The function must do the same work at every call, on the same tensors; what changes between calls is written into
    tensors beforehand.
    """

    def __init__(self, function: Callable[[], None], device: torch.device) -> None:
        self.function = function
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.on_gpu = device.type == "cuda"
        self.stream: Any = torch.cuda.Stream(device) if self.on_gpu else None  # type: ignore[no-untyped-call]

    def __call__(self) -> None:
        self.calls += 1
        if not self.on_gpu:
            self.function()
        elif self.graph is not None:
            self.graph.replay()
        elif self.calls <= WARM_UP:
            self._beside(self.function)
        else:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # recording does not run it
                self.function()
            self.graph.replay()

    def _beside(self, function: Callable[[], None]) -> None:
        """Run on another stream, where memory that the graph will use can be set aside."""

        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            function()
        torch.cuda.current_stream().wait_stream(self.stream)
