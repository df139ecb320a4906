"""The registry of models, users' own modules, and their turns at torch's global random stream."""

from __future__ import annotations

import copy
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from wcll._memory import check_memory
from wcll._random import stream_seed
from wcll._validation import Functions, choice
from wcll.exceptions import InputError, InputTypeError
from wcll.models.layers import Draws, Outline

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


Shape = tuple[int, ...]


class Family(Enum):
    """Kinds of models, which differ in how they are best trained."""

    LINEAR = "linear"
    DENSE = "dense"  #: matrix products of flattened samples
    IMAGE = "image"  #: convolutions
    OWN = "own"  #: a user's module, of which nothing is known

    @property
    def small(self) -> bool:
        """Whether a sample takes so little that many are predicted at a time, and in float64."""
        return self in (Family.LINEAR, Family.DENSE)

    @property
    def at_once(self) -> int:
        """Samples that are predicted at a time: fewer where a sample's activations are large."""
        return 4096 if self.small else 512


class RunStack(nn.Module, ABC):
    """Several runs of one architecture: ``forward(x, step)`` maps (n, ...) to logits (runs, n, classes).

    Subclasses build their layers and say of which family they are.
    """

    family: ClassVar[Family]

    def __init__(
        self,
        input_shape: Shape,
        n_classes: int,
        seeds: Sequence[int],
        dtype: torch.dtype = torch.float32,
        *,
        outline: bool = False,
        **more: Any,
    ) -> None:
        """Build the layers, once it is known that they fit; an ``outline`` has shapes and takes no memory."""
        super().__init__()
        self.n_runs = len(seeds)
        self.build(Outline(seeds, dtype), input_shape, n_classes, **more)
        if not outline:
            self.build(Draws(seeds, dtype), input_shape, n_classes, **more)

    @abstractmethod
    def build(self, draws: Draws, shape: Shape, n_classes: int) -> None:
        """Make the layers; keywords that a model adds here are its options."""

    @abstractmethod
    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """Logits of every run; ``step`` numbers the training step, for drop-out."""


class UserStack(RunStack):
    """One run of a user's own module; its outputs must have one column a class."""

    family = Family.OWN

    def __init__(self, module: nn.Module, n_classes: int) -> None:
        super().__init__((), n_classes, [0])
        self.module = module

    def build(self, draws: Draws, shape: Shape, n_classes: int) -> None:
        """The layers are the module's."""
        self.n_classes = n_classes

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """The module's logits with a run axis in front."""
        logits = self.module(x)
        if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape[1] != self.n_classes:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError("model", f"outputs of shape (n, {self.n_classes}), one column a class", got)
        return logits.unsqueeze(0)


class Models(Functions[type[RunStack]]):
    """Architectures by name."""

    def options(self, name: str) -> dict[str, Any]:
        """The keyword options of a model and their defaults."""
        parameters = inspect.signature(self[name].build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


MODELS = Models("model")

ModelChoice = str | dict[str, Any] | nn.Module | Callable[[Shape, int], nn.Module]


def build_model(
    model: ModelChoice, input_shape: Shape, n_classes: int, seeds: Sequence[int], dtype: torch.dtype = torch.float32
) -> RunStack:
    """A stack of runs from a name, a name with options ``{"name": "mlp", "hidden": 200}``, or a user's own module.

    A user's module is copied and trained from the weights it has; a function ``(input_shape, n_classes) -> module``
    is called under the seed of the run.
    """
    if isinstance(model, str | dict):
        return _named_model(model, input_shape, n_classes, seeds, dtype)
    if not callable(model):
        raise InputTypeError("model", "a name, a torch module or a function that makes one", type(model).__name__)
    if len(seeds) != 1:
        raise InputError("model", "a named model to train several runs together", type(model).__name__)
    if isinstance(model, nn.Module):
        return UserStack(copy.deepcopy(model), n_classes).to(dtype)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with Turns(stream_seed(seeds[0], "init"), device).turn():
        made = model(input_shape, n_classes)
    if not isinstance(made, nn.Module):
        raise InputError("model", "a function that returns a torch module", type(made).__name__)
    return UserStack(made, n_classes).to(dtype)


def outline_model(
    model: str | dict[str, Any],
    input_shape: Shape,
    n_classes: int,
    seeds: Sequence[int] = (0,),
    dtype: torch.dtype = torch.float32,
) -> RunStack:
    """A named model on torch's meta device: its names, shapes and dtypes, and nothing that takes memory.

    >>> {name: tuple(tensor.shape) for name, tensor in outline_model("linear", (4,), 3).state_dict().items()}
    {'layer.weight': (1, 3, 4), 'layer.bias': (1, 3)}
    """
    return _named_model(model, input_shape, n_classes, seeds, dtype, outline=True)


def check_size(
    model: ModelChoice, input_shape: Shape, n_classes: int, runs: int = 1, dtype: torch.dtype = torch.float32
) -> None:
    """Fail, before memory is taken, if so many runs of a model cannot be trained: each keeps four arrays a parameter.

    Those are its value, its gradient and Adam's two moments. Of a user's own module nothing is known.
    """
    if isinstance(model, str | dict):
        each = sum(p.numel() for p in outline_model(model, input_shape, n_classes, dtype=dtype).parameters())
        what = f"{runs * each} parameters and what trains them"
        check_memory("model", what, 4 * runs * each * dtype.itemsize, "choose a smaller one")


def _named_model(
    model: str | dict[str, Any],
    input_shape: Shape,
    n_classes: int,
    seeds: Sequence[int],
    dtype: torch.dtype,
    *,
    outline: bool = False,
) -> RunStack:
    name, options = named(model, "model")
    for option in options:
        choice(f"option of model {name!r}", option, MODELS.options(name))
    return MODELS[name](input_shape, n_classes, seeds, dtype, outline=outline, **options)


def family_of(model: ModelChoice) -> Family:
    """The family of a model, by what a user says of it."""
    return MODELS[named(model, "model")[0]].family if isinstance(model, str | dict) else Family.OWN


@torch.no_grad()
def predict_logits(model: RunStack, x: Tensor, *, batch_size: int | None = None, precise: bool = False) -> Tensor:
    """Logits of every run in evaluation mode, (runs, n, classes).

    ``precise`` computes in float64 (small models only), so that a sample's prediction does not depend on the batch it
    comes in.
    """
    if precise and model.family.small and x.dtype != torch.float64:
        model, x = copy.deepcopy(model).double(), x.double()
    model.eval()
    return torch.cat([model(part) for part in torch.split(x, batch_size or model.family.at_once)], dim=1)


def folded(parameters: Mapping[str, Tensor], scaling: tuple[Any, Any] | None) -> dict[str, Tensor]:
    """Return parameters for features as they are, of a model that was trained on standardised ones."""
    return _first_layer(
        parameters, scaling, lambda weight, bias, mean, scale: (weight / scale, bias - (weight / scale) @ mean)
    )


def unfolded(parameters: Mapping[str, Tensor], scaling: tuple[Any, Any] | None) -> dict[str, Tensor]:
    """Undo :func:`folded`."""
    return _first_layer(parameters, scaling, lambda weight, bias, mean, scale: (weight * scale, bias + weight @ mean))


def _first_layer(
    parameters: Mapping[str, Tensor],
    scaling: tuple[Any, Any] | None,
    change: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
) -> dict[str, Tensor]:
    """Change weight and bias of the first layer, in float64; all else stays."""
    found = dict(parameters)
    if scaling is None:
        return found
    names = list(found)[:2]  # weight and bias of the first layer
    weight, bias = (found[name] for name in names)
    mean, scale = (torch.as_tensor(values, dtype=torch.float64, device=weight.device).flatten() for values in scaling)
    for name, old, new in zip(names, (weight, bias), change(weight.double(), bias.double(), mean, scale), strict=True):
        found[name] = new.to(old.dtype)
    return found


def named(value: str | dict[str, Any], argument: str) -> tuple[str, dict[str, Any]]:
    """A name and its options, from ``"name"`` or ``{"name": ..., option: ...}``."""
    if isinstance(value, str):
        return value, {}
    options = dict(value)
    if "name" not in options:
        raise InputError(argument, "a 'name' among its options", sorted(map(str, options)))
    return options.pop("name"), options


def image_shape(name: str, input_shape: Shape) -> tuple[int, int, int]:
    """Channels, height and width, or an error for a model that needs images."""
    if len(input_shape) == 2:
        return (1, *input_shape)
    if len(input_shape) != 3:
        wanted = f"images of shape (n, channels, height, width) for model {name!r}"
        raise InputError("X", wanted, f"samples of shape {tuple(input_shape)}")
    return input_shape
