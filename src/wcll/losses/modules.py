"""Losses as ``torch.nn.Module``: one class for every registered loss, made from its function."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from wcll.checks import InputError, choice
from wcll.losses.inputs import Labels, Transition
from wcll.losses.spec import LOSSES, LossSpec


class LossModule(nn.Module):
    """A loss with its keywords fixed; arrays among them are buffers and move with ``.to(device)``."""

    spec: ClassVar[LossSpec]

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
        key = (matrix._version, logits.dtype, logits.device)
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = key, Transition.of(matrix, logits)
        return self._prepared[1]

    def extra_repr(self) -> str:
        """The options, for ``print(model)``."""
        return ", ".join(f"{name}={value!r}" for name, value in self.keywords.items())


def class_name(spec: LossSpec) -> str:
    """``WCLLLoss`` for WCLL, ``LUWLoss`` for L-UW, ``CrossEntropyLoss`` for cross-entropy."""
    words = spec.title.replace("-", " ").split()
    return "".join(word[0].upper() + word[1:] for word in words) + "Loss"


@cache
def module_classes() -> dict[str, type[LossModule]]:
    """Class name -> class, for every registered loss."""
    return {class_name(spec): _module_class(spec) for spec in LOSSES.values()}


def _module_class(spec: LossSpec) -> type[LossModule]:
    return type(
        class_name(spec),
        (LossModule,),
        {
            "spec": spec,
            "__doc__": spec.function.__doc__,
            "__module__": "wcll.losses",
            "__signature__": inspect.Signature(list(spec.parameters.values())),
        },
    )
