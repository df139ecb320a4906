"""Processes that train one model together: each computes its part of every batch, and all take the same step.

Losses for complementary labels are not all means over samples: some cut, penalise or weigh sums over the classes of a
batch, so that the mean of their gradients over parts of a batch is another gradient. So it is logits that processes
exchange, (n, k) numbers a batch: each has those of the whole batch, takes the loss of all of it, as a single process
would, and goes back through its own part alone. Gradients of parameters are then summed over the processes. Every loss,
also a user's own, gives what it gives in one process, to rounding.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from wcll.exceptions import InputError
from wcll.models.layers import Part, RunBatchNorm, RunDropout
from wcll.models.registry import Family, RunStack

LONGEST = 1000  #: bytes of a line that processes tell each other

_current: list[Ranks] = []  #: who trains together now; nobody, if it is empty


@dataclass(frozen=True)
class Ranks:
    """The processes of torch's default group, and which of them this one is."""

    number: int
    count: int
    device: torch.device  #: where numbers lie that are exchanged

    def bounds(self, n: int) -> list[int]:
        """Where the parts of n samples begin, and the end: parts differ by one sample at most.

        >>> Ranks(0, 3, torch.device("cpu")).bounds(8)
        [0, 2, 5, 8]
        """
        return [n * rank // self.count for rank in range(self.count + 1)]

    def part(self, n: int) -> slice:
        """Which of n samples are this process's."""
        return slice(*self.bounds(n)[self.number : self.number + 2])

    def gathered(self, own: Tensor, n: int, dim: int) -> Tensor:
        """The parts of all processes along an axis, n long in all."""
        ends = self.bounds(n)
        sizes = [stop - start for start, stop in pairwise(ends)]
        moved = own.detach().movedim(dim, 0)
        padded = moved.new_zeros(max(sizes), *moved.shape[1:])
        padded[: len(moved)] = moved
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)]).movedim(0, dim)

    def sum_in_place(self, tensor: Tensor) -> None:
        """The sum over all processes."""
        dist.all_reduce(tensor)

    def lines(self, own: str) -> list[str]:
        """What every process has to say, in order."""
        said = torch.zeros(LONGEST, dtype=torch.uint8)
        text = own.encode()[:LONGEST]
        said[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8) if text else 0
        parts = [torch.empty(LONGEST, dtype=torch.uint8, device=self.device) for _ in range(self.count)]
        dist.all_gather(parts, said.to(self.device))
        return [bytes(part.cpu().numpy()).rstrip(b"\0").decode(errors="ignore") for part in parts]

    def alike(self, own: str) -> bool:
        """Whether all processes say the same; they wait for one another here."""
        return len(set(self.lines(own))) == 1

    def first_says(self, yes: bool) -> bool:
        """What the first process says: of what may differ between them, such as the time."""
        said = torch.tensor(int(yes), device=self.device)
        dist.broadcast(said, 0)
        return bool(said)

    def sharing(self, model: RunStack) -> Callable[[Tensor, int | Tensor], Tensor]:
        """A model's logits of a whole batch, of which this process computes its part.

        Gradients go back through that part, and are summed over processes by torch's ``DistributedDataParallel``.
        """
        from torch.nn.parallel import DistributedDataParallel

        if model.family is Family.OWN:
            remedy = "draws and statistics of other modules know nothing of other processes"
            raise InputError("model", "the name of one, for several processes", "a module", remedy)
        known = signature(DistributedDataParallel).parameters
        buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # torch < 2.13
        alike: dict[str, Any] = {buffers: False}  # all processes change theirs alike
        shared = DistributedDataParallel(model, **alike)
        layers = [layer for layer in model.modules() if isinstance(layer, RunBatchNorm | RunDropout)]

        def computed(x: Tensor, step: int | Tensor) -> Tensor:
            own, n = self.part(len(x)), len(x)
            for layer in layers:
                layer.part = Part(own.start, n, summed)
            return _joined(shared(x[own], step), self, n)

        return computed


class _Joined(torch.autograd.Function):
    """Logits of all processes, (runs, n, k), from those of each.

    Every process takes the same loss of all of them, so that none needs to tell another its gradient. Those of
    parameters are averaged afterwards: times the number of processes, that is their sum.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, n: int) -> Tensor:
        """(runs, own part, k) -> (runs, n, k)."""
        ctx.ranks, ctx.n = ranks, n
        return ranks.gathered(own, n, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """That of the own part."""
        return gradients[0][:, ctx.ranks.part(ctx.n)] * ctx.ranks.count, None, None


def _joined(own: Tensor, ranks: Ranks, n: int) -> Tensor:
    joined: Tensor = _Joined.apply(own, ranks, n)  # type: ignore[no-untyped-call]
    return joined


class _Summed(torch.autograd.Function):
    """The sum over all processes, of numbers and of their gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        """The sum."""
        total = own.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The sum, as all processes have used the numbers of each."""
        return _Summed.forward(ctx, gradients[0])


def summed(own: Tensor) -> Tensor:
    """The sum over all processes, through which gradients go back to each."""
    total: Tensor = _Summed.apply(own)  # type: ignore[no-untyped-call]
    return total


def ranks() -> Ranks | None:
    """Who trains together now; None: this process trains alone."""
    return _current[-1] if _current else None


@contextmanager
def together() -> Iterator[Ranks | None]:
    """Within it, the processes of torch's default group train every model together; None if there is but one.

    All of them must do the same: the same data, settings and seed. For scripts that ``torchrun`` starts, once
    ``torch.distributed.init_process_group`` was called; ``wcll train`` does so by itself.
    """
    if not dist.is_initialized():
        raise InputError("together", "processes that torch.distributed has introduced to each other", "none")
    if dist.get_world_size() == 1:
        yield None
        return
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    _current.append(Ranks(dist.get_rank(), dist.get_world_size(), device))
    try:
        yield _current[-1]
    finally:
        _current.pop()
        gc.collect()  # what trained holds the group, whose threads must be gone before the interpreter is
