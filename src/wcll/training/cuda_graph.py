"""The engine for networks on a GPU: a step of many runs is recorded as one CUDA graph and replayed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain

import torch
from torch import Tensor, nn

from wcll.losses import Targets
from wcll.models.layers import RunDropout, prepare_dropouts
from wcll.models.registry import Family, RunStack, predict_logits
from wcll.training.autograd import Batch, Forward, StackStep, mixed
from wcll.training.engine import Engine, Need, network_need
from wcll.training.runs import RunGroup, Training

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


STREAMS = 2  #: runs that go side by side: one waits for memory while the other computes
RUN_STEPS = 40_000  #: from here on the half minute that torch takes to compile a network is well spent
FUSED = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}  #: in one kernel
VARIANTS = 64  #: of a network that are compiled: torch would leave off after 8 shapes, rates of drop-out and the like


def worth_compiling(groups: Sequence[RunGroup], training: Training) -> bool:
    """Whether convolutional networks should be compiled: a third less time a step, after half a minute.

    What is compiled serves all later trainings of the process, so those that are planned count as well.
    """
    steps = max(len(groups[0].x) // training.batch_size, 1)
    epochs = max(training.epochs * sum(len(group.rates) for group in groups), training.planned)
    convolutional = training.family is Family.IMAGE and training.dtype == torch.float32
    return convolutional and epochs * steps >= RUN_STEPS and find_spec("triton") is not None


class CapturedRuns(Engine):
    """Dense models of a group in one stack; convolutional ones each alone, as stacked convolutions are slow.

    Convolutional models compute in bfloat16 where they are trained in float32; parameters, their sums and statistics
    stay in float32. Samples stay bytes in the GPU's memory.
    """

    def __init__(
        self,
        groups: Sequence[RunGroup],
        training: Training,
        *,
        streams: int = STREAMS,
        half: bool = True,
        compiled: bool = False,
    ) -> None:
        super().__init__(groups, training)
        device = training.device
        self.image = training.family is Family.IMAGE
        self.half = half and self.image and training.dtype == torch.float32
        self.x = [group.x.to(device).contiguous() for group in groups]
        self.targets = [group.targets.to(device) for group in groups]
        self.rows = torch.zeros(len(groups), self.batch_size, dtype=torch.int64, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)  # of the step within the epoch
        self.step = torch.tensor(0)  #: how many are done
        self.stacks = [self._stacks(group, compiled) for group in groups]
        self.streams = [side_stream(device) for _ in range(streams)]
        self._tell()

    def _take_losses(self, groups: Sequence[RunGroup]) -> None:
        """Train with the losses of these groups from now on; a step is recorded anew."""
        for stacks, group in zip(self.stacks, groups, strict=True):
            for stack in stacks:
                stack.take_losses(group)
        self._replay = Replay(self.training.device)

    def run_epoch(self) -> None:
        """One pass over the data."""
        self._tell()
        for stack in chain(*self.stacks):
            stack.model.train()
            stack.total.zero_()
        self._draw(self.steps)
        self._prepare_courses()
        for order in self._orders():
            for rows in order.to(self.training.device):
                self.rows.copy_(rows)
                self._replay(self._step)
        self.step = self.step + self.steps
        self.epoch += 1

    def take_samples(self, x: Tensor, targets: Targets) -> None:
        """Put these in the place of the first samples of the one group, where recorded steps find them."""
        self.x[0][: len(x)] = x.to(self.training.device)
        self.targets[0].take(targets)

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return torch.cat([stack.last for stack in self.stacks[group]])

    def mean_losses(self, group: int) -> Tensor:
        """The losses averaged over the last epoch, (runs,), for a training that asks for them."""
        return torch.cat([stack.total for stack in self.stacks[group]]) / self.steps

    def prepare(self, x: Tensor) -> Tensor:
        """Samples on the device, as they are stored."""
        return x.to(self.training.device)

    def _logits(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples as they are, (runs, n, classes)."""
        x = self._numbers(group, prepared)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.half):
            parts = [predict_logits(stack.predicting, x, batch_size=8 * self.at_once) for stack in self.stacks[group]]
        return torch.cat(parts).to(self.training.dtype)

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters and running statistics of a group by name, (runs, ...)."""
        named = [stack.predicting.state_dict() for stack in self.stacks[group]]
        return {name: torch.cat([one[name].detach() for one in named]) for name in named[0]}

    def load_parameters(self, group: int, parameters: Mapping[str, Tensor]) -> None:
        """Put the runs of a group where :meth:`parameters` says; optimisers stay as they are."""
        stacks = self.stacks[group]
        parts = {name: torch.split(whole, self.n_runs // len(stacks)) for name, whole in parameters.items()}
        for i, stack in enumerate(stacks):
            stack.load_parameters({name: part[i] for name, part in parts.items()})

    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from, to be read or written in place."""
        state = {"step": self.step}
        for g, stacks in enumerate(self.stacks):
            for i, stack in enumerate(stacks):
                state |= {f"{g}.{i}.{name}": tensor for name, tensor in stack.tensors().items()}
        return state

    @classmethod
    def need(cls, x: Tensor, training: Training, n_others: int, n_evaluated: int) -> Need:
        """Memory: convolutional runs take turns."""
        shared, own, at_work = network_need(x, training, n_others, n_evaluated)
        turns = training.family is Family.IMAGE
        return Need(shared + STREAMS * at_work, own) if turns else Need(shared, own + at_work)

    def _stacks(self, group: RunGroup, compiled: bool) -> list[StackStep]:
        size = 1 if self.image else self.n_runs
        stacks = [StackStep(group, self.training, start, start + size) for start in range(0, self.n_runs, size)]
        for stack in stacks:
            stack.forward = recorded_forward(stack.model, compiled=compiled and self.image)
        for stack, rate in zip(stacks if self.image else (), group.rates, strict=False):
            for model in {stack.model, stack.predicting}:
                _channels_last(model)
            if self.half:
                stack.forward = _in_half(stack.forward)
            if self.half and self.training.recipe.optimiser != "sgd":
                stack.lr, decay = torch.tensor(rate, device=self.training.device), self.training.weight_decay
                stack.optimiser = FUSED[self.training.recipe.optimiser](  # counts steps in float32: not for float64
                    stack.model.parameters(), stack.lr, weight_decay=decay, fused=True, capturable=True
                )
        return stacks

    def _draw(self, steps: int) -> None:
        """Drop-out of the coming epoch, drawn at once: in a recorded step it would be most of the kernels."""
        self.position.zero_()
        layers = []
        for stack in chain(*self.stacks):
            own = [module for module in stack.model.modules() if isinstance(module, RunDropout)]
            if any(layer.rate and not hasattr(layer, "size") for layer in own):
                self._try(stack)
            layers.append(own)
        for same in zip(*layers, strict=True):
            prepare_dropouts(same, int(self.step), steps)

    def _try(self, stack: StackStep) -> None:
        """One look at a batch, to learn the sizes of its features."""
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=self.half):
            kept = {name: buffer.clone() for name, buffer in stack.model.named_buffers()}
            stack.model(self._numbers(0, self.x[0][: self.batch_size]), 0)
            for name, buffer in stack.model.named_buffers():
                buffer.copy_(kept[name])

    def _numbers(self, group: int, x: Tensor) -> Tensor:
        numbers = self._normalised(group, x.to(self.training.dtype) / self.training.scale)
        if self.image:
            numbers = numbers.unsqueeze(1) if numbers.ndim == 3 else numbers
            numbers = numbers.contiguous(memory_format=torch.channels_last)
        return numbers

    def _batch(self, g: int) -> Batch:
        """What a step of a group is given."""
        course, rows, place = self.courses[g], self.rows[g], self.position
        if course is None:
            return Batch([self._numbers(g, self.x[g].index_select(0, rows))], self.targets[g])
        images = [course.images(self.x[g], rows, place, view) for view in range(self.training.recipe.views)]
        views = [course.finished(self._numbers(g, image), place, view) for view, image in enumerate(images)]
        return mixed(views, self.targets[g], rows, course.at(place), self.training.recipe.mixup > 0)

    def _own(self, batch: Batch, g: int) -> Batch:
        """The same with targets that are a stack's own: they keep what losses derive from them."""
        rows = self.rows[g]
        beside = None if batch.beside is None else self.targets[g][rows.roll(1)]
        return replace(batch, targets=self.targets[g][rows], beside=beside)

    def _step(self) -> None:
        main = torch.cuda.current_stream()
        turn, held = 0, []  # batches are held until all streams have used them: their memory must not be taken before
        for g, stacks in enumerate(self.stacks):
            batch = self._batch(g)
            held.append(batch)
            for stack in stacks:
                side = self.streams[turn % len(self.streams)]
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    stack(self._own(batch, g), self.position)
                turn += 1
        for side in self.streams[:turn]:
            main.wait_stream(side)
        held.clear()
        self.position += 1


def recorded_forward(model: RunStack, *, compiled: bool) -> Forward:
    """A model's logits of a batch at a place among the steps for which drop-out was drawn.

    Models of equal shape share what is compiled: parameters are inputs of it. Shapes are taken as they are: what serves
    several sizes of images would be slower.
    """
    network: Forward = torch.compile(model, dynamic=False) if compiled else model
    layers = [module for module in model.modules() if isinstance(module, RunDropout)]

    def computed(x: Tensor, step: int | Tensor) -> Tensor:
        for layer in layers:
            layer.choose(torch.as_tensor(step))
        with _many_variants() if compiled else nullcontext():
            return network(x, step)

    return computed


def _many_variants() -> AbstractContextManager[None]:
    """Within it, torch compiles more variants of a function than it would."""
    from torch._dynamo import config  # takes a second to load

    patched: AbstractContextManager[None] = config.patch(recompile_limit=VARIANTS)
    return patched


def _in_half(forward: Forward) -> Forward:
    """The same in bfloat16, where that is precise enough; what comes after computes as it did."""

    def computed(x: Tensor, step: int | Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return forward(x, step)

    return computed


def _channels_last(model: nn.Module) -> None:
    """Lay out convolutions' weights (1, out, in, h, w) as GPUs want them."""
    for parameter in model.parameters():
        if parameter.ndim == 5:
            plain = parameter.data.squeeze(0).contiguous(memory_format=torch.channels_last)
            parameter.data = plain.unsqueeze(0)
