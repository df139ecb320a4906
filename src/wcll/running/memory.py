"""How much memory runs take, and how much there is."""

from __future__ import annotations

from math import prod

import torch
from torch import nn

from wcll.checks import InputError
from wcll.memory import SHARE, check_memory, free_memory, in_words
from wcll.models import MODELS
from wcll.models.layers import Draws
from wcll.running.containers import View
from wcll.running.plan import Job
from wcll.running.train import training_of
from wcll.training.engine import Need
from wcll.training.engines import engine_for

COPIES = 5  #: of a model's parameters while it trains: as drawn, as trained, their gradients and two moments
MOST_TENSORS = 10_000  #: of a model's parameters: more of them would take hours only to be made
HISTORY = 40  #: bytes of a number in a list, of which a few are kept of every epoch


class _Counts(Draws):
    """Draws nothing, and counts what it would."""

    def __init__(self, model: str) -> None:
        super().__init__([0], torch.float32)
        self.model, self.numbers, self.tensors = model, 0, 0

    def uniform(self, *shape: int, fan_in: int) -> nn.Parameter:
        return self.constant(0.0, *shape)

    def constant(self, value: float, *shape: int) -> nn.Parameter:
        self.numbers, self.tensors = self.numbers + prod(shape), self.tensors + 1
        if self.tensors > MOST_TENSORS:
            raise InputError(f"model {self.model!r}", f"at most {MOST_TENSORS} layers and biases", "more")
        return nn.Parameter(torch.empty(0))


def check_size(job: Job, view: View) -> None:
    """Fail if the parameters of one run do not fit into memory: they are counted, not made."""
    first = job.first
    counts, stack = _Counts(first.model), MODELS[first.model].__new__(MODELS[first.model])
    nn.Module.__init__(stack)
    stack.build(counts, tuple(view.data.x.shape[1:]), view.n_classes, **dict(first.model_options))
    size = COPIES * counts.numbers * getattr(torch, first.dtype).itemsize
    check_memory(f"model {first.model!r}", f"{counts.numbers} parameters that train", size, "make it smaller")


def need_of(job: Job, view: View, device: torch.device) -> Need:
    """What a job will take: the need of its engine, recorded predictions, and what scores of held-out labels take."""
    check_size(job, view)
    training = training_of(job, view, device)
    n_test, n_valid, k = len(view.unlabelled), 0 if view.valid is None else len(view.valid.x), view.n_classes
    at_once = min(max(n_test, n_valid), training.family.at_once)
    need = engine_for(training).need(view.data.x, training, n_test + n_valid, at_once)
    recorded = training.epochs * (n_test * (1 if k <= 256 else 4) + HISTORY * (k + 3)) + 4 * n_valid * k * 8
    return Need(need.shared, need.per_run + recorded)


def available(device: torch.device) -> int:
    """Bytes that runs may use by default: most of what is free now."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return free_memory()


def runs_that_fit(need: Need, limit: int) -> int:
    """How many runs of a group may train at once."""
    if need.of(1) > limit:
        raise InputError("--memory", f"at least {in_words(need.of(1))}, which one run takes", in_words(limit))
    return (limit - need.shared) // max(need.per_run, 1)
