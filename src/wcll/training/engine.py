"""Engines: batches, the loop over epochs, predictions, saved states, and the choice of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from wcll._random import stream
from wcll.exceptions import InputError
from wcll.losses import Targets
from wcll.models.registry import Family, RunStack, Shape, build_model, outline_model
from wcll.training.distributed import Ranks, ranks
from wcll.training.recipe import PLAIN, Course
from wcll.training.runs import RunGroup, Training


def batches(n: int, batch_size: int, *, seed: int, epoch: int) -> Iterator[Tensor]:
    """Indices of one epoch's batches, shuffled by the stream ``batches`` of (seed, epoch).

    The last incomplete batch is dropped, so that every step averages the same number of samples; fewer samples than
    ``batch_size`` are one batch.
    """
    order = torch.from_numpy(stream(seed, "batches", epoch).permutation(n))
    size = min(batch_size, n)
    for start in range(0, n - size + 1, size):
        yield order[start : start + size]


TEMPORARIES = 12  #: arrays of a batch's logits that gradients of losses may need at once


@dataclass(frozen=True)
class Need:
    """Bytes for what all runs of a group share, and for each run."""

    shared: int
    per_run: int

    def of(self, runs: int) -> int:
        """Bytes for a group of so many runs."""
        return self.shared + runs * self.per_run


class Engine(ABC):
    """Groups of runs that are trained in step; a result of one group or run does not depend on the others.

    Every group has equally many samples and runs.
    """

    def __init__(self, groups: Sequence[RunGroup], training: Training) -> None:
        self.groups, self.training, self.n_classes = groups, training, training.n_classes
        self.n, self.n_runs = training.feed.n if training.feed else len(groups[0].x), len(groups[0].rates)
        self.batch_size = min(training.batch_size, self.n)
        self.at_once = training.family.at_once
        self.steps = max(self.n // self.batch_size, 1)  #: of an epoch
        self.epoch = 0  #: how many are done
        self.ranks = ranks()  #: who trains these runs together; None: this process alone
        if self.ranks is not None:
            self._check_ranks(self.ranks)
        #: Told which part of an epoch is done, by engines whose steps may take long.
        self.after_step: Callable[[float], object] = lambda part: None
        self._warming: list[bool] | None = None  #: which losses are told what they are told early; None: nothing yet
        given, place = [group.standard for group in groups], (training.device, training.dtype)
        self.standards = [None if standard is None else standard.to(*place) for standard in given]
        training.recipe.check_samples(tuple(groups[0].x.shape[1:]))
        self.courses = [self._course(group) for group in groups]

    def _check_ranks(self, ranks: Ranks) -> None:
        """Fail unless all processes are to train the same, each of them some samples of a batch."""
        plan = [self.n, self.n_runs, self.batch_size, self.training.epochs, [group.seed for group in self.groups]]
        if not ranks.alike(str(plan)):
            remedy = "give all the same data, settings and random_state"
            raise InputError("together", "processes that train the same", "others", remedy)
        if self.batch_size < ranks.count:
            expected = f"at least {ranks.count} samples a batch, one a process"
            raise InputError("batch_size", expected, self.batch_size)

    @abstractmethod
    def run_epoch(self) -> None:
        """One pass over the data, after :meth:`_tell`."""

    def _tell(self, done: float = 0.0) -> None:
        """See to it that losses are told what they are to be told in the coming epoch, or after a part of it."""
        epoch = self.epoch + done
        warming = [epoch < loss.warm_up for group in self.groups for loss in group.losses]
        if warming != self._warming:
            self._take_losses([group.at(epoch) for group in self.groups])
            self._warming = warming

    @abstractmethod
    def _take_losses(self, groups: Sequence[RunGroup]) -> None:
        """Train with the losses of these groups from now on; all else stays as it is."""

    @abstractmethod
    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""

    @abstractmethod
    def mean_losses(self, group: int) -> Tensor:
        """The losses averaged over the last epoch, (runs,), for a training that asks for them."""

    @abstractmethod
    def prepare(self, x: Tensor) -> Tensor:
        """Samples put where :meth:`predict` wants them, once."""

    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes); of images and their mirror images, if training says so."""
        logits = self._logits(group, prepared)
        return (logits + self._logits(group, prepared.flip(-1))) / 2 if self.training.recipe.test_flip else logits

    @abstractmethod
    def _logits(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples as they are, (runs, n, classes)."""

    def _course(self, group: RunGroup) -> Course | None:
        """The steps of a group, if anything but its batches changes from step to step."""
        training, device = self.training, self.training.device
        if training.recipe == PLAIN:
            return None
        how = {"batch": self.batch_size, "steps": self.steps, "epochs": training.epochs}
        return Course(training.recipe, group.seed, **how, dtype=training.dtype, device=device)

    def _prepare_courses(self) -> None:
        """Draw what the coming epoch needs."""
        for course in self.courses:
            if course is not None:
                course.prepare(self.epoch)

    def _normalised(self, group: int, numbers: Tensor) -> Tensor:
        """Images as the models of a group take them: groups have data, and so means, of their own."""
        standard = self.standards[group]
        return numbers if standard is None else standard(numbers)

    def classify(self, group: int, prepared: Tensor) -> Tensor:
        """Predicted classes of prepared samples, (runs, n), in one byte each if they fit."""
        kind = torch.uint8 if self.n_classes <= 256 else torch.int32
        parts = [self.predict(group, part).argmax(-1).to(kind) for part in torch.split(prepared, self.at_once)]
        return torch.cat(parts, dim=-1)

    @abstractmethod
    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters and running statistics of a group by name, (runs, ...)."""

    @abstractmethod
    def load_parameters(self, group: int, parameters: Mapping[str, Tensor]) -> None:
        """Put the runs of a group where :meth:`parameters` says; optimisers stay as they are."""

    def export(self, group: int) -> RunStack:
        """The models of a group as they are now, to predict with and to keep."""
        seeds = [self.groups[group].seed] * self.n_runs
        model = self.training.build(self.groups[group].x, seeds)
        model.load_state_dict(self.parameters(group))
        return model

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from, to be read or written in place."""

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from; tensors are the engine's own and change with it."""
        return {**self.tensors(), "epoch": torch.tensor(self.epoch)}

    def load_state(self, state: Mapping[str, Tensor]) -> bool:
        """Go on from what :meth:`state` gave; False, and nothing is changed, if it is of other runs or engines."""
        own = self.state()
        if _shapes(state) != _shapes(own):
            return False
        for name, tensor in own.items():
            tensor.copy_(state[name])
        self.epoch = int(state["epoch"])
        return True

    def _orders(self) -> Iterator[Tensor]:
        """The rows of every step of the coming epoch in every group, on the CPU: (steps, groups, batch).

        All steps at once; or, if samples are streamed, those of a buffer, once its samples are taken.
        """
        if self.training.feed is None:
            yield self._order()
            return
        for part in self.training.feed.filled(self.epoch):
            self._tell(part.done)
            self.take_samples(part.x, part.targets)
            yield part.order.unsqueeze(1)

    @abstractmethod
    def take_samples(self, x: Tensor, targets: Targets) -> None:
        """Put these in the place of the first samples of the one group, where recorded steps find them."""

    def _order(self) -> Tensor:
        """The rows of every step of the coming epoch in every group, if samples are kept."""
        orders = [list(batches(self.n, self.batch_size, seed=g.seed, epoch=self.epoch)) for g in self.groups]
        return torch.stack([torch.stack(order) for order in orders], dim=1)

    @classmethod
    @abstractmethod
    def need(cls, x: Tensor, training: Training, n_others: int, n_evaluated: int) -> Need:
        """Memory for training on ``x`` and evaluating, ``n_evaluated`` samples at a time, ``n_others`` samples."""


def samples_need(x: Tensor, training: Training, n_others: int, features: int) -> int:
    """Bytes of all samples as an engine keeps them and as they came; a GPU keeps bytes as bytes."""
    keeps = training.device.type == "cuda" and x.dtype == torch.uint8
    each = features * (1 if keeps else training.dtype.itemsize)
    return (len(x) + n_others) * each + x.nbytes + min(training.batch_size, len(x)) * features * training.dtype.itemsize


def logits_need(x: Tensor, training: Training, n_evaluated: int) -> int:
    """Bytes of one run's logits: of a batch with what losses make of them, and of samples that are evaluated."""
    batch = min(training.batch_size, len(x))
    return (TEMPORARIES * batch + 2 * n_evaluated) * training.n_classes * training.dtype.itemsize


def network_need(x: Tensor, training: Training, n_others: int, n_evaluated: int) -> tuple[int, int, int]:
    """Bytes for a network: what runs share, each run's parameters and logits, and what one at work takes."""
    item, batch = training.dtype.itemsize, min(training.batch_size, len(x))
    parameters, activations, largest = _size(training, tuple(x.shape[1:]))
    shared = samples_need(x, training, n_others, prod(x.shape[1:]))
    arrays = 8 + bool(training.recipe.ema)
    own = arrays * parameters * item + logits_need(x, training, n_evaluated)  # gradients, moments, what a step needs
    return shared, own, 3 * batch * activations * item + 3 * n_evaluated * largest * item


def _size(training: Training, shape: Shape) -> tuple[int, int, int]:
    """Parameters of one run, and of one sample the activations: of all layers, and of the largest."""
    named = isinstance(training.model, str | dict)
    make = outline_model if named else build_model  # a user's own has its memory already
    model = make(training.model, shape, training.n_classes, [0], torch.float32)  # type: ignore[arg-type]
    sizes: list[int] = []
    for module in model.modules():
        if not list(module.children()):
            module.register_forward_hook(lambda _, __, output: sizes.append(output.numel()))
    with torch.no_grad():
        model.eval()(torch.zeros(1, *shape, device="meta" if named else None))
    return sum(p.numel() for p in model.parameters()), sum(sizes), max(sizes)


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}


def engine_for(training: Training) -> type[Engine]:
    """Return the fastest engine that can train such runs."""
    from wcll.training.autograd import PlainLoop  # the engines import this module
    from wcll.training.cuda_graph import CapturedRuns
    from wcll.training.linear import LinearRuns

    if training.family is Family.LINEAR and training.recipe == PLAIN:
        return LinearRuns
    recorded = training.family is not Family.OWN and ranks() is None  # others' steps may not be the same twice
    return CapturedRuns if training.device.type == "cuda" and recorded else PlainLoop


def make_engine(groups: Sequence[RunGroup], training: Training, *, plain: bool = False) -> Engine:
    """Make the fastest engine for the model and the device, or the plain loop."""
    from wcll.training.autograd import PlainLoop
    from wcll.training.cuda_graph import CapturedRuns, worth_compiling

    kind = PlainLoop if plain else engine_for(training)
    if kind is CapturedRuns:
        return CapturedRuns(groups, training, compiled=worth_compiling(groups, training))
    return kind(groups, training)


Observer = Callable[[Engine], bool | None]  #: told of every epoch that is over; True ends training


def train(engine: Engine, epochs: int, observers: Iterable[Observer]) -> None:
    """Run epochs until there are ``epochs``, or an observer returns True; every observer sees every epoch."""
    watching = list(observers)
    while engine.epoch < epochs:
        engine.run_epoch()
        if any([observer(engine) for observer in watching]):  # noqa: C419  (every one is called)
            return
