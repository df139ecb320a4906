"""Losses as ``torch.nn.Module``: what the class of every registered loss inherits."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from wcll.checks import InputError, choice
from wcll.losses.arguments import Labels, Transition
from wcll.losses.spec import LOSSES, LossSpec


class LossModule(nn.Module):
    """A loss with its keywords fixed; arrays among them are buffers and move with ``.to(device)``.

    A subclass names its loss, or has a ``spec`` of its own, and inherits the rest; it is documented by the loss's
    function.

    Examples
    --------
    >>> from wcll.losses import LossModule
    >>> class PairwiseLoss(LossModule, loss="pc"): ...
    >>> loss = PairwiseLoss(weight=[0.5, 1.0, 1.5], surrogate="ramp")
    >>> loss, loss.weight
    (PairwiseLoss(surrogate='ramp'), tensor([0.5000, 1.0000, 1.5000], dtype=torch.float64))
    """

    spec: ClassVar[LossSpec]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, loss: str | None = None) -> None:
        super().__init_subclass__()
        if loss is not None:
            cls.spec = LOSSES[loss]
        cls.__doc__ = cls.__doc__ or cls.spec.function.__doc__
        cls.__signature__ = inspect.Signature(list(cls.spec.parameters.values()))

    def __init__(self, **keywords: Any) -> None:
        super().__init__()
        parameters = self.spec.parameters
        for name in keywords:
            choice(f"option of loss {self.spec.name!r}", name, parameters)
        missing = [name for name, p in parameters.items() if p.default is p.empty and name not in keywords]
        if missing:
            raise InputError(missing[0], f"a value, which loss {self.spec.name!r} needs", None)
        self.keywords = dict(keywords)
        self._prepared: tuple[Any, Transition] | None = None
        for name, value in keywords.items():
            if isinstance(value, Tensor | np.ndarray | list | tuple) or hasattr(value, "__array__"):
                self.register_buffer(name, value if isinstance(value, Tensor) else torch.from_numpy(np.array(value)))
                del self.keywords[name]

    def forward(self, logits: Tensor, ybar: Labels) -> Tensor:
        """The loss of logits (..., n, k) and labels: one per run."""
        arrays: dict[str, Any] = dict(self.named_buffers())
        if "transition" in arrays:
            arrays["transition"] = self._transition(arrays["transition"], logits)
        return self.spec.function(logits, ybar, **self.keywords, **arrays)

    def _transition(self, matrix: Tensor, logits: Tensor) -> Transition:
        """The matrix checked, and inverted where needed, once for each dtype and device."""
        if torch.compiler.is_compiling():
            return Transition.of(matrix, logits)
        key = (matrix._version, logits.dtype, logits.device)
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = key, Transition.of(matrix, logits)
        return self._prepared[1]

    def extra_repr(self) -> str:
        """The options, for ``print(model)``."""
        return ", ".join(f"{name}={value!r}" for name, value in self.keywords.items())
