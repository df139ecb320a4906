"""Runs that share data: their losses and warm-up, samples in memory or from disk, device and threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray, choice
from wcll.exceptions import InputError
from wcll.losses import Context, LossSpec, Targets
from wcll.losses.forward import BALANCE
from wcll.models.registry import Family, ModelChoice, RunStack, Turns, build_model, family_of, outline_model
from wcll.training.augmentation import Standard
from wcll.training.recipe import PLAIN, Recipe

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


DTYPES = {"float32": torch.float32, "float64": torch.float64}
MIN_SHARED = 1e8  #: floating-point operations of a step, a millisecond of one core, from which on threads share them


def dtype_and_device(dtype: str, device: str) -> tuple[torch.dtype, torch.device]:
    """The dtype and the device that the user asked for; ``"auto"`` takes a GPU if there is one."""
    kind = DTYPES[choice("dtype", dtype, DTYPES)]
    automatic = isinstance(device, str) and device == "auto"
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if automatic else device
    try:
        where = torch.device(wanted)
    except (RuntimeError, TypeError, ValueError):
        where = torch.device("meta")
    if where.type not in ("cpu", "cuda"):
        raise InputError("device", "'auto', 'cpu' or 'cuda'", repr(wanted))
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise InputError("device", "a device of this machine", repr(wanted), "torch sees no such GPU; use 'cpu'")
    return kind, where


def all_finite(numbers: Tensor) -> bool:
    """Return whether no number is infinite or NaN: a finite sum says so in a fraction of the time."""
    return bool(numbers.sum().isfinite()) or bool(numbers.isfinite().all())


def threads_for(network: RunStack, n_samples: int) -> int | None:
    """Return 1 if steps on so many samples are too short to share among threads, and None (all threads) if not.

    A linear model takes one thread. Of other dense networks the products are counted, of the step forward and back.
    """
    operations = 6 * n_samples * sum(parameter.numel() for parameter in network.parameters())
    short = network.family is Family.DENSE and operations < MIN_SHARED
    return 1 if short or network.family is Family.LINEAR else None


def training_threads(model: ModelChoice, x: NDArray[Any] | Tensor, n_classes: int, batch_size: int) -> int | None:
    """Return the threads to train a model with on samples such as ``x``; None is all of them."""
    if not isinstance(model, str | dict):
        return None
    return threads_for(outline_model(model, tuple(x.shape[1:]), n_classes), min(batch_size, len(x)))


class _Limits:
    """Who limits torch's threads now: the first to come keeps the number that the last to go puts back."""

    lock, inside, before = threading.Lock(), 0, 0


@contextmanager
def torch_threads(number: int | None) -> Iterator[int]:
    """Give torch so many threads within the block, and as many as before afterwards; None leaves them alone.

    Threads wait for each other at every operation, and long if another process is busy. Blocks may overlap in several
    Python threads. Yields the number from before.
    """
    own = torch.get_num_threads()
    with _Limits.lock:
        _Limits.before = _Limits.before if _Limits.inside else own
        _Limits.inside += 1
        torch.set_num_threads(number or own)
    try:
        yield own
    finally:
        with _Limits.lock:
            _Limits.inside -= 1
            torch.set_num_threads(own if _Limits.inside else _Limits.before)


Loss = Callable[[Tensor, Targets], Tensor]
Gradient = Callable[[Tensor, Tensor, Targets], Tensor]

TRIED, TRIES = 12, 3  #: samples, and draws of their logits, by which a loss shows whether it uses sample weights
SAME = 1e-5  #: the relative difference of two losses that is only rounding


@dataclass(frozen=True)
class RunLoss:
    """Consecutive runs that share a loss."""

    spec: LossSpec
    options: tuple[tuple[str, Any], ...]
    context: Context
    start: int
    stop: int
    early: RunLoss | None = None  #: what takes its place in the first epochs
    warm_up: float = 0  #: how many these are
    own_labels: bool = False  #: whether labels of near samples are left out, though targets have them

    def at(self, epoch: float) -> RunLoss:
        """The loss of these runs in an epoch, counted from 0; within one that is streamed, at a part of it."""
        early = self.early if epoch < self.warm_up else None
        return early or replace(self, early=None, warm_up=0)

    def after(self, warm_up: float, told: Context, balance: float = BALANCE) -> RunLoss:
        """The same after some epochs in which it is told something else, and no class is given up, if it knows how."""
        kept = {"balance": balance} if balance and "balance" in self.spec.options else {}
        early = replace(self, context=told, options=tuple({**dict(self.options), **kept}.items()))
        return replace(self, early=early, warm_up=warm_up)

    def value(self, context: Context) -> Loss:
        """The loss as a function of logits (..., runs, n, k) and targets, told ``context``."""
        loss = self.spec.bind(context, **dict(self.options))
        return (lambda logits, targets: loss(logits, targets.own())) if self.own_labels else loss

    def gradient(self, context: Context) -> Gradient:
        """Its gradient as a function of logits, their softmax, and targets."""
        slope = self.spec.bind_gradient(context, **dict(self.options))
        return (lambda logits, p, targets: slope(logits, p, targets.own())) if self.own_labels else slope

    def uses_sample_weights(self, like: Tensor, *, sets: bool) -> bool:
        """Return whether the loss of made-up samples depends on their weights; ``sets``: labels come as sets.

        A loss that fails on them is taken to use weights: training will show what is wrong with it.
        """
        loss, k = self.value(self.context), like.shape[-1]
        rows = torch.arange(TRIED, device=like.device)
        labels = rows % 2  # few classes: a mean over a class of one sample does not depend on its weight
        ybar = labels.unsqueeze(-1) == torch.arange(k, device=like.device) if sets else labels
        weights = (torch.ones(TRIED), torch.linspace(0.5, 1.5, TRIED))
        targets = [Targets.of(ybar, k, weight.to(like)) for weight in weights]
        try:
            for seed in range(TRIES):
                draw = torch.randn(1, TRIED, k, generator=torch.Generator().manual_seed(seed))
                draw[..., :2] += log(k) + 1  # else the losses of samples are nearly equal where classes are many
                found = []
                for some in targets:
                    with Turns(seed, like.device).turn(), torch.no_grad():  # the loss may draw, too
                        found.append(loss(draw.to(like), some))
                equal, weighted = found
                if not bool(torch.isclose(equal, weighted, rtol=SAME, atol=0).all()):
                    return True
        except Exception:
            return True
        return False


@dataclass(frozen=True)
class RunGroup:
    """Runs that share data: samples, labels, initial weights and the order of batches."""

    x: Tensor  #: (n, ...) as stored: bytes or numbers; the place for some, if they are streamed
    targets: Targets  #: of all samples: one label or several, and weights, if samples have some
    seed: int
    rates: Sequence[float]  #: one a run
    losses: Sequence[RunLoss]
    standard: Standard | None = None  #: how images are normalised, if they are

    def head(self, n: int | None) -> RunGroup:
        """The same with the first samples only; what losses are told stays, and how images are normalised."""
        return replace(self, x=self.x[:n], targets=self.targets[slice(n)])

    def streamed(self, feed: Feed) -> RunGroup:
        """Return the same for samples that come from elsewhere."""
        x, targets = feed.place
        return replace(self, x=x, targets=targets)

    @property
    def ordinary(self) -> bool:
        """Whether targets are true classes, of which none is ruled out."""
        return all(loss.spec.labels == "ordinary" for loss in self.losses)

    def at(self, epoch: float) -> RunGroup:
        """The same with losses as they are in an epoch, counted from 0."""
        return replace(self, losses=[loss.at(epoch) for loss in self.losses])


@dataclass(frozen=True)
class Training:
    """What all runs share."""

    model: ModelChoice
    n_classes: int
    scale: float  #: samples are divided by it
    batch_size: int
    weight_decay: float
    dtype: torch.dtype
    device: torch.device
    epochs: int = 1  #: how long it will be: schedules end with it, and long trainings are worth more preparation
    recipe: Recipe = PLAIN  #: how they are trained beside all this
    planned: int = 0  #: epochs of runs such as these, of this training and of those that will follow it, if known
    feed: Feed | None = None  #: where the samples of the one group come from, if they are not kept
    mean_losses: bool = False  #: whether losses are averaged over every epoch, which takes some time
    turn: Callable[[], AbstractContextManager[None]] = nullcontext  #: around every step of what may draw as it likes

    @property
    def family(self) -> Family:
        """The kind of model, which decides who can train it."""
        return family_of(self.model)

    @property
    def like(self) -> Tensor:
        """No logits, of the dtype and on the device of those to come."""
        return torch.empty(0, self.n_classes, dtype=self.dtype, device=self.device)

    def build(self, x: Tensor, seeds: Sequence[int]) -> RunStack:
        """New models of these seeds for samples such as ``x``."""
        return build_model(self.model, tuple(x.shape[1:]), self.n_classes, seeds, self.dtype).to(self.device)

    def numbers(self, x: Tensor) -> Tensor:
        """Samples as the model takes them; numbers that the precision cannot hold are an error."""
        numbers = x.to(self.device, self.dtype) / self.scale
        if x.is_floating_point() and not all_finite(numbers):
            largest = f"{float(x.abs().max()):g}"
            raise InputError("dataset", f"numbers that {self.dtype} can hold", largest, "scale them")
        return numbers
