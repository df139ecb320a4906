"""Losses as ``torch.nn.Module``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wcll._validation import choice
from wcll.exceptions import InputError
from wcll.losses.arguments import Labels, Transition
from wcll.losses.spec import LOSSES


class LossModule(nn.Module):
    """A registered loss with its keywords fixed; arrays among them are buffers and move with ``.to(device)``.

    Parameters
    ----------
    loss : str
        The name of a registered loss.
    **keywords
        Those of its function in :mod:`wcll.functional`; what the loss needs must be given.

    Examples
    --------
    >>> from wcll.losses import LossModule
    >>> loss = LossModule("pc", weight=[0.5, 1.0, 1.5], surrogate="ramp")
    >>> loss, loss.weight
    (LossModule('pc', surrogate='ramp'), tensor([0.5000, 1.0000, 1.5000], dtype=torch.float64))
    """

    def __init__(self, loss: str, **keywords: Any) -> None:
        super().__init__()
        spec = LOSSES[loss]
        for name in keywords:
            choice(f"option of loss {loss!r}", name, spec.parameters)
        missing = [name for name, p in spec.parameters.items() if p.default is p.empty and name not in keywords]
        if missing:
            raise InputError(missing[0], f"a value, which loss {loss!r} needs", None)
        self.loss, self.function, self.keywords = loss, spec.function, dict(keywords)
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
        return self.function(logits, ybar, **self.keywords, **arrays)

    def _transition(self, matrix: Tensor, logits: Tensor) -> Transition:
        """The matrix checked, and inverted where needed, once for each dtype and device."""
        if torch.compiler.is_compiling():
            return Transition.of(matrix, logits)
        key = (matrix._version, logits.dtype, logits.device)
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = key, Transition.of(matrix, logits)
        return self._prepared[1]

    def extra_repr(self) -> str:
        """The loss and its options, for ``print(model)``."""
        return ", ".join([repr(self.loss), *(f"{name}={value!r}" for name, value in self.keywords.items())])
