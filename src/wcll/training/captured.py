"""The engine for networks on a GPU: a step of many runs is recorded as one graph and replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from wcll.losses import Targets
from wcll.models import MODELS, RunStack, build_model
from wcll.models.layers import RunDropout, prepare_dropouts
from wcll.training.batches import batches
from wcll.training.engines import Engine, RunGroup, RunLoss, Training, evaluated_at_once, stack_state
from wcll.training.graph import Replay
from wcll.training.loop import predict_logits
from wcll.training.optim import RunAdam

STREAMS = 2  #: runs that go side by side: one waits for memory while the other computes
RUN_STEPS = 40_000  #: from here on the half minute that torch takes to compile a network is well spent


def worth_compiling(groups: Sequence[RunGroup], training: Training) -> bool:
    """Whether convolutional networks should be compiled: a third less time a step, after half a minute."""
    first = groups[0]
    steps = training.epochs * max(len(first.x) // training.batch_size, 1)
    convolutional = not MODELS[training.model["name"]].exact and training.dtype == torch.float32
    long = steps * sum(len(group.rates) for group in groups) >= RUN_STEPS
    return convolutional and long and find_spec("triton") is not None


@dataclass
class Member:
    """Runs of one stack and their optimiser."""

    model: RunStack
    forward: Any  #: the model, or a compiled form of it
    optimiser: Any
    losses: list[tuple[Any, slice]]  #: bound losses and their runs within the stack
    value: Tensor  #: losses of the last batch, (runs,)


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
        self.training, self.n_classes = training, training.n_classes
        self.evaluated = 8 * evaluated_at_once(training.model["name"])
        self.n, self.batch_size = len(groups[0].x), min(training.batch_size, len(groups[0].x))
        self.image = not MODELS[training.model["name"]].exact
        self.half = half and self.image and training.dtype == torch.float32
        self.groups, self.compiled = groups, compiled
        self.x = [group.x.to(training.device) for group in groups]
        self.targets = [Targets.of(g.labels, self.n_classes).to(training.device) for g in groups]
        self.rows = torch.zeros(len(groups), self.batch_size, dtype=torch.int64, device=training.device)
        self.place = torch.zeros(1, dtype=torch.int64, device=training.device)  # of the step within the epoch
        self.members = [list(self._members(group)) for group in groups]
        self.streams: list[Any] = [torch.cuda.Stream() for _ in range(streams)]  # type: ignore[no-untyped-call]
        self.epoch = self.step = 0
        self._replay = Replay(self._step, training.device)

    def run_epoch(self) -> None:
        """One pass over the data."""
        seeds = [group.seed for group in self.groups]
        orders = [torch.stack(list(batches(self.n, self.batch_size, seed=s, epoch=self.epoch))) for s in seeds]
        order = torch.stack(orders, dim=1).to(self.training.device)
        for group in self.members:
            for member in group:
                member.model.train()
        self._draw(len(order))
        for rows in order:
            self.rows.copy_(rows)
            self._replay()
        self.epoch += 1
        self.step += len(order)

    def last_losses(self, group: int) -> Tensor:
        """The losses of the last batch before its step, (runs,)."""
        return torch.cat([member.value for member in self.members[group]]).clone()

    def prepare(self, x: Tensor) -> Tensor:
        """Samples on the device, as they are stored."""
        return x.to(self.training.device)

    def predict(self, group: int, prepared: Tensor) -> Tensor:
        """Logits of prepared samples, (runs, n, classes)."""
        x = self._numbers(prepared)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.half):
            parts = [predict_logits(m.model, x, batch_size=self.evaluated, exact=False) for m in self.members[group]]
        return torch.cat(parts).to(self.training.dtype)

    def parameters(self, group: int) -> dict[str, Tensor]:
        """Parameters of a group by name, (runs, ...)."""
        named = [dict(member.model.named_parameters()) for member in self.members[group]]
        return {name: torch.cat([one[name].detach() for one in named]) for name in named[0]}

    def state(self) -> dict[str, Tensor]:
        """All that training goes on from."""
        state = {"place": torch.tensor([self.epoch, self.step])}
        for prefix, member in self._named():
            state |= {f"{prefix}.{name}": tensor for name, tensor in _member_state(member).items()}
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` gave."""
        for prefix, member in self._named():
            for name, tensor in _member_state(member).items():
                tensor.copy_(state[f"{prefix}.{name}"])
        self.epoch, self.step = state["place"].tolist()

    def _named(self) -> Iterator[tuple[str, Member]]:
        for g, group in enumerate(self.members):
            yield from ((f"{g}.{i}", member) for i, member in enumerate(group))

    def _draw(self, steps: int) -> None:
        """Drop-out of the coming epoch, drawn at once: in a recorded step it would be most of the kernels."""
        self.place.zero_()
        layers = []
        for _, member in self._named():
            own = [module for module in member.model.modules() if isinstance(module, RunDropout)]
            if any(layer.rate and not hasattr(layer, "size") for layer in own):
                self._try(member)
            layers.append(own)
        for same in zip(*layers, strict=True):
            prepare_dropouts(same, self.step, steps)

    def _try(self, member: Member) -> None:
        """One look at a batch, to learn the sizes of its features."""
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=self.half):
            kept = {name: buffer.clone() for name, buffer in member.model.named_buffers()}
            member.model(self._numbers(self.x[0][: self.batch_size]), 0)
            for name, buffer in member.model.named_buffers():
                buffer.copy_(kept[name])

    def _members(self, group: RunGroup) -> Iterator[Member]:
        runs = len(group.rates)
        size = 1 if self.image else runs
        for start in range(0, runs, size):
            yield self._member(group, start, start + size)

    def _member(self, group: RunGroup, start: int, stop: int) -> Member:
        training, device = self.training, self.training.device
        seeds = [group.seed] * (stop - start)
        model = build_model(training.model, tuple(group.x.shape[1:]), self.n_classes, seeds, training.dtype).to(device)
        rates = torch.tensor(list(group.rates[start:stop]), dtype=training.dtype, device=device)
        optimiser: Any
        if self.image:
            _channels_last(model)
        if self.image and training.dtype == torch.float32:  # torch counts steps in float32: not for float64
            decay = training.weight_decay
            optimiser = torch.optim.Adam(model.parameters(), rates[0], weight_decay=decay, fused=True, capturable=True)
        else:
            optimiser = RunAdam(model.parameters(), rates, weight_decay=training.weight_decay)
        losses = [self._loss(part, start, stop) for part in group.losses if part.start < stop and part.stop > start]
        forward = torch.compile(model) if self.compiled else model
        value = torch.zeros(stop - start, dtype=training.dtype, device=device)
        return Member(model, forward, optimiser, losses, value)

    def _loss(self, part: RunLoss, start: int, stop: int) -> tuple[Any, slice]:
        like = torch.empty(0, self.n_classes, dtype=self.training.dtype, device=self.training.device)
        runs = slice(max(part.start, start) - start, min(part.stop, stop) - start)
        return part.spec.bind(part.context.beside(like), **dict(part.options)), runs

    def _numbers(self, x: Tensor) -> Tensor:
        numbers = x.to(self.training.dtype) / self.training.scale
        if self.image:
            numbers = numbers.unsqueeze(1) if numbers.ndim == 3 else numbers
            numbers = numbers.contiguous(memory_format=torch.channels_last)
        return numbers

    def _step(self) -> None:
        main = torch.cuda.current_stream()
        turn, held = 0, []  # batches are held until all streams have used them: their memory must not be taken before
        for g, group in enumerate(self.members):
            x = self._numbers(self.x[g].index_select(0, self.rows[g]))
            held.append(x)
            for member in group:
                side = self.streams[turn % len(self.streams)]
                side.wait_stream(main)
                with torch.cuda.stream(side):  # targets are each member's own: they keep what losses derive from them
                    self._train(member, x, self.targets[g][self.rows[g]])
                turn += 1
        for side in self.streams:
            main.wait_stream(side)
        held.clear()
        self.place += 1

    def _train(self, member: Member, x: Tensor, targets: Targets) -> None:
        member.optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.half):
            logits = member.forward(x, self.place)
        logits = logits.to(self.training.dtype)
        losses = torch.cat([loss(logits[runs], targets) for loss, runs in member.losses])
        losses.sum().backward()  # type: ignore[no-untyped-call]
        member.optimiser.step()
        member.value.copy_(losses.detach())


def _channels_last(model: nn.Module) -> None:
    """Lay out convolutions' weights (1, out, in, h, w) as GPUs want them."""
    for parameter in model.parameters():
        if parameter.ndim == 5:
            plain = parameter.data.squeeze(0).contiguous(memory_format=torch.channels_last)
            parameter.data = plain.unsqueeze(0)


def _member_state(member: Member) -> dict[str, Tensor]:
    """Parameters, statistics and moments, to be read or written in place."""
    if isinstance(member.optimiser, RunAdam):
        return stack_state(member.model, member.optimiser)
    state = {f"model.{name}": tensor.detach() for name, tensor in member.model.state_dict().items()}
    for i, parameter in enumerate(member.model.parameters()):
        moments = member.optimiser.state[parameter]
        if not moments:  # before the first step: as torch itself would begin
            zero = {"exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
            moments.update(step=torch.zeros((), device=parameter.device), **zero)
        state |= {f"adam.{i}.{name}": tensor for name, tensor in moments.items()}
    return state
