"""Samples that do not fit into memory: an epoch takes them a buffer at a time, shuffled there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.losses import Targets

AHEAD = 4  #: parts that are read while a buffer is learnt from

T = TypeVar("T")


@dataclass(frozen=True)
class Filled:
    """A buffer of samples, and the steps that learn from it."""

    x: Tensor
    targets: Targets
    order: Tensor  #: rows of every step, (steps, batch)
    done: float  #: the part of the epoch that was over before


class Feed(Protocol):
    """Where an engine that keeps no samples of its own takes them from."""

    n: int  #: samples of an epoch

    @property
    def place(self) -> tuple[Tensor, Targets]:
        """As many samples as a buffer has room for, and no values yet."""

    def filled(self, epoch: int) -> Iterator[Filled]:
        """The buffers of an epoch, one after the other; each may be overwritten when the next is asked for."""


@dataclass(frozen=True)
class Part:
    """Some samples, as they are read."""

    x: NDArray[Any]  #: numbers
    labels: IntArray | BoolArray  #: class indices (n,), or a mask (n, k)
    weight: FloatArray | None = None  #: of mean 1 over all samples

    def __len__(self) -> int:
        return len(self.x)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Those that there are."""
        return [self.x, self.labels, *([] if self.weight is None else [self.weight])]

    def each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Part:
        """The same change made to every array."""
        return Part(*map(change, self.arrays))

    def tensors(self, n_classes: int, mass: float) -> tuple[Tensor, Targets]:
        """As engines take them."""
        weight = None if self.weight is None else torch.from_numpy(self.weight)
        return torch.from_numpy(self.x), Targets.of(torch.from_numpy(self.labels), n_classes, weight, mass)

    def place(self, room: int, n_classes: int, mass: float) -> tuple[Tensor, Targets]:
        """As engines take so many samples such as these, without values; those of features take no memory."""
        x, targets = self.each(lambda values: values[:1]).tensors(n_classes, mass)
        return x.expand(room, *x.shape[1:]), targets.each(lambda one: one.repeat_interleave(room, 0))


class Buffer:
    """Parts as they come, put into one piece of memory and shuffled there.

    Batches are taken from a full buffer in an order drawn by (seed, epoch). What is left of it is less than a batch and
    is carried over to the next, so that an epoch loses no more than its last incomplete batch, as in memory. Where all
    samples fit, they are read once, in their order, and an epoch is that of an engine that keeps its samples.
    """

    def __init__(
        self,
        read: Callable[[int | None], Iterator[Part]],
        n: int,
        like: Part,
        *,
        n_classes: int,
        room: int,
        batch_size: int,
        seed: int,
        mass: float = 1.0,
    ) -> None:
        """``read`` gives all ``n`` samples in the order of an epoch (None: as they lie); ``like`` are some of them."""
        self.read, self.n, self.n_classes, self.seed, self.mass = read, n, n_classes, seed, mass
        self.batch = min(batch_size, n)
        self.room = min(max(room, 2 * self.batch), n)
        self._like, self._held = like, 0
        self._memory: Part | None = None

    @property
    def place(self) -> tuple[Tensor, Targets]:
        """As many samples as there is room for, and no values yet."""
        return self._like.place(self.room, self.n_classes, self.mass)

    def filled(self, epoch: int) -> Iterator[Filled]:
        """The buffers of an epoch; each is overwritten when the next is asked for."""
        rng, done = stream(self.seed, "batches", epoch), 0
        for held in self._fill(epoch):
            order = torch.from_numpy(rng.permutation(len(held)))
            taken = len(held) - len(held) % self.batch
            steps = order[:taken].view(-1, self.batch)
            yield Filled(*held.tensors(self.n_classes, self.mass), steps, done / self.n)
            done += taken
            if self.room < self.n:
                self._carry(order[taken:].numpy())

    def _fill(self, epoch: int) -> Iterator[Part]:
        """What the buffer holds when it is full, and at the end."""
        if self._memory is None:
            self._memory = self._like.each(lambda values: np.empty((self.room, *values.shape[1:]), values.dtype))
        memory, whole = self._memory, self.room == self.n
        if whole and self._held == self.n:  # all of it is there from the epoch before
            yield memory
            return
        self._held, seen = 0, 0
        for part in read_ahead(self.read(None if whole else epoch)):
            start = 0
            while start < len(part):
                if self._held == self.room:
                    yield memory
                at, size = self._held, min(self.room - self._held, len(part) - start)
                for place, values in zip(memory.arrays, part.arrays, strict=True):
                    place[at : at + size] = values[start : start + size]
                self._held, start = at + size, start + size
            seen += len(part)
        if seen != self.n:
            raise RuntimeError(f"{seen} samples were read where {self.n} were counted")
        if self._held >= self.batch:
            yield memory.each(lambda values: values[: self._held])

    def _carry(self, rows: IntArray) -> None:
        """Keep these rows alone, as the first."""
        assert self._memory is not None
        for values in self._memory.arrays:
            values[: len(rows)] = values[rows]
        self._held = len(rows)


class Mapped:
    """Samples in a file that is mapped into memory, in the very order in which an engine would take its own.

    Batches are drawn over all samples, and each buffer is read from where they lie, so that results are those of
    training in memory, bit for bit.
    """

    def __init__(
        self,
        read: Callable[[IntArray], NDArray[Any]],
        labels: IntArray | BoolArray,
        weight: FloatArray | None = None,
        *,
        n_classes: int,
        room: int,
        batch_size: int,
        seed: int,
        mass: float = 1.0,
    ) -> None:
        """``read`` makes numbers of the samples at some places; ``labels`` and ``weight`` are those of all."""
        self.read, self.labels, self.weight, self.mass = read, labels, weight, mass
        self.n, self.n_classes, self.seed = len(labels), n_classes, seed
        self.batch = min(batch_size, self.n)
        self.room = max(min(room, self.n) // self.batch, 1) * self.batch

    @property
    def place(self) -> tuple[Tensor, Targets]:
        """As many samples as there is room for, and no values yet."""
        return self._part(np.arange(1)).place(self.room, self.n_classes, self.mass)

    def filled(self, epoch: int) -> Iterator[Filled]:
        """The buffers of an epoch."""
        order = stream(self.seed, "batches", epoch).permutation(self.n)[: self.n - self.n % self.batch]
        for start in range(0, len(order), self.room):
            part = self._part(order[start : start + self.room])
            steps = torch.arange(len(part)).view(-1, self.batch)
            yield Filled(*part.tensors(self.n_classes, self.mass), steps, start / self.n)

    def _part(self, rows: IntArray) -> Part:
        return Part(self.read(rows), self.labels[rows], None if self.weight is None else self.weight[rows])


def room_for(shape: tuple[int, ...], size: int) -> int:
    """How many samples of float32 of a shape have room in so many bytes.

    >>> room_for((100,), 4_000)
    10
    """
    return max(size // (4 * prod(shape)), 1)


def read_ahead(parts: Iterator[T], most: int = AHEAD) -> Iterator[T]:
    """The same parts, read by a thread that is up to ``most`` of them ahead."""
    with ThreadPoolExecutor(1) as reader:
        waiting = deque(reader.submit(next, parts, None) for _ in range(most))
        while (part := waiting.popleft().result()) is not None:
            waiting.append(reader.submit(next, parts, None))
            yield part
