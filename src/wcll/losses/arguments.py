"""The border of every loss: tensors of a user's loop are checked and put beside the logits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from wcll._validation import SMALLEST, FloatArray, choice, inverse_transition, numeric, transition_matrix
from wcll.exceptions import InputError, InputTypeError
from wcll.losses.targets import Reduction, Targets, dense, require

Array = Tensor | ArrayLike
Labels = Tensor | Targets


@dataclass(frozen=True)
class Transition:
    """``Q[y, ybar]`` and what losses derive from it, checked and computed once."""

    matrix: Tensor  #: (..., k, k)
    exact: FloatArray | Tensor  #: the same in float64, to be inverted; a tensor in what ``torch.compile`` traces
    _made: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def of(matrix: Array, like: Tensor) -> Transition:
        """Check a matrix (or a stack of them, one a run) and put it beside ``like``."""
        if torch.compiler.is_compiling():
            return Transition._traced(_tensor("transition", matrix).to(torch.float64), like)
        rows = numeric("transition", matrix)
        if rows.ndim < 2:
            raise InputError("transition", "a square matrix", f"shape {rows.shape}")
        stack = rows.reshape(-1, *rows.shape[-2:]) if rows.ndim > 2 else rows[None]
        checked = np.stack([transition_matrix(one, like.shape[-1]) for one in stack]).reshape(rows.shape)
        return Transition(torch.as_tensor(checked, dtype=like.dtype, device=like.device), checked)

    @staticmethod
    def _traced(rows: Tensor, like: Tensor) -> Transition:
        """The same in operations that become part of a graph; what is wrong with values is asserted there."""
        k = like.shape[-1]
        if rows.ndim < 2 or rows.shape[-2:] != (k, k):
            raise InputError("transition", f"a {k} x {k} matrix", f"shape {tuple(rows.shape)}")
        sums = rows.sum(-1, keepdim=True)
        stochastic = (rows >= 0).all(-1, keepdim=True) & ((sums - 1).abs() <= 1e-6)
        require(stochastic, "transition", "probabilities in rows that sum to 1", lambda: "others")
        exact = rows / sums
        return Transition(exact.to(like), exact.to(like.device))

    def to(self, like: Tensor) -> Transition:
        """The same transition in the dtype and on the device of ``like``."""
        if self.matrix.shape[-1] != like.shape[-1]:
            raise InputError("transition", f"{like.shape[-1]} classes, as logits have", self.matrix.shape[-1])
        if self.matrix.dtype == like.dtype and self.matrix.device == like.device:
            return self
        return Transition(self.matrix.to(like), self.exact)

    @property
    def log(self) -> Tensor:
        """log Q; -inf where a label is impossible."""
        if "log" not in self._made:
            self._made["log"] = self.matrix.log()
        return self._made["log"]

    @property
    def inverse(self) -> Tensor:
        """The inverse of Q; a singular Q is an error."""
        if "inverse" not in self._made:
            self._made["inverse"] = self._inverted()
        return self._made["inverse"]

    def _inverted(self) -> Tensor:
        if isinstance(self.exact, Tensor) or torch.compiler.is_compiling():
            found: Tensor = torch.linalg.inv_ex(_tensor("transition", self.exact)).inverse
            require(found.isfinite(), "transition", "an invertible matrix", lambda: "another")
            return found.to(self.matrix)
        stack = self.exact.reshape(-1, *self.exact.shape[-2:])
        inverse = np.stack([inverse_transition(one) for one in stack]).reshape(self.exact.shape)
        return torch.as_tensor(inverse, dtype=self.matrix.dtype, device=self.matrix.device)


@dataclass(frozen=True)
class Batch:
    """A loss's checked arguments."""

    targets: Targets
    weight: Tensor | None = None
    marginal: Tensor | None = None


def prepare(
    logits: Tensor,
    ybar: Labels,
    weight: Array | None = None,
    reduction: Reduction = "mean",
    *,
    marginal: Array | None = None,
    means: str | None = None,
    single: str | None = None,
) -> Batch:
    """Check what a loss was called with; ``Targets`` mark a batch that was checked before.

    A GPU is not waited for: see :class:`Targets`.

    ``means`` names a loss that is built on class means, so that no reduction but the mean makes sense; ``single`` one
    that is defined for one label a sample.
    """
    choice("reduction", reduction, get_args(Reduction))
    if means is not None and reduction != "mean":
        remedy = "it is built on class means over the batch, which no single sample has"
        raise InputError("reduction", f"'mean' for loss {means!r}", repr(reduction), remedy)
    targets = ybar if isinstance(ybar, Targets) else _checked_targets(logits, ybar)
    weight = checked_per_class("weight", weight, logits, ybar)
    if single is not None:
        targets.single(single)
    return Batch(targets, weight, checked_per_class("marginal", marginal, logits, ybar))


def _checked_targets(logits: Tensor, ybar: Tensor) -> Targets:
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        raise InputTypeError("logits", "a floating-point tensor", getattr(logits, "dtype", type(logits).__name__))
    if dense("logits", logits).ndim < 2 or logits.shape[-1] < 2 or not logits.shape[-2]:
        raise InputError("logits", "shape (..., samples, classes) with at least 2 classes", tuple(logits.shape))
    targets = Targets.beside(ybar, logits.shape[-1], wait=False)
    if len(targets) != logits.shape[-2]:
        raise InputError("ybar", f"{logits.shape[-2]} samples as in logits", len(targets))
    _check_runs("ybar", targets.mask.shape[:-2], logits)
    return targets


def per_class(argument: str, values: Array, logits: Tensor, *, wait: bool = True) -> Tensor:
    """One non-negative number a class, shape (..., k), not all zero, beside the logits; all but weights sum to 1.

    They are looked at where they are, so that a GPU is not waited for because of numbers that were not on it.
    """
    if isinstance(values, Tensor) and (dense(argument, values).dtype == torch.bool or values.is_complex()):
        raise InputTypeError(argument, "numbers", values.dtype)
    tensor = _tensor(argument, values).to(logits.dtype)
    if tensor.ndim < 1 or tensor.shape[-1] != logits.shape[-1]:
        raise InputError(argument, f"{logits.shape[-1]} numbers, one a class", f"shape {tuple(tensor.shape)}")
    _check_runs(argument, tensor.shape[:-1], logits)
    total = tensor.sum(-1, dtype=torch.float64)
    smallest, largest = (lambda: f"{float(tensor.min()):g}"), (lambda: f"{float(tensor.max()):g}")
    require(tensor.isfinite() & (tensor >= 0), argument, "finite numbers, none negative", smallest, wait=wait)
    require(total > 0, argument, "at least one positive number", lambda: "all zero", wait=wait)
    require(total < 1 / SMALLEST, argument, f"numbers whose sum is below {1 / SMALLEST:g}", largest, wait=wait)
    if argument != "weight":
        one = (total - 1).abs() <= 1e-3
        require(one, argument, "shares that sum to 1", lambda: f"a sum of {float(total.max()):g}", wait=wait)
    return tensor.to(logits.device)


def checked_per_class(argument: str, values: Array | None, logits: Tensor, ybar: Labels) -> Tensor | None:
    """:func:`per_class`, unless ``ybar`` says that the batch was checked before."""
    if values is None:
        return None
    return (
        _like(logits, argument, values)
        if isinstance(ybar, Targets)
        else per_class(argument, values, logits, wait=False)
    )


def as_transition(transition: Array | Transition, logits: Tensor) -> Transition:
    """A prepared transition beside the logits; an array checked."""
    if isinstance(transition, Transition):  # checked before
        return transition.to(logits)
    prepared = Transition.of(transition, logits)
    _check_runs("transition", prepared.matrix.shape[:-2], logits)
    return prepared


def _check_runs(argument: str, runs: torch.Size, logits: Tensor) -> None:
    """All runs share an argument, or each has its own."""
    if runs not in ((), logits.shape[:-2]):
        raise InputError(argument, f"no run axes, or those of logits, {tuple(logits.shape[:-2])}", tuple(runs))


def _like(logits: Tensor, argument: str, values: Array) -> Tensor:
    return _tensor(argument, values).to(dtype=logits.dtype, device=logits.device)


def _tensor(argument: str, values: Array) -> Tensor:
    """Numbers as a tensor, in the dtype that they have or float64."""
    if isinstance(values, Tensor):
        return values
    if torch.compiler.is_compiling():  # which traces operations of torch alone
        return torch.as_tensor(values, dtype=torch.float64)
    return torch.tensor(numeric(argument, values))  # a copy: the array may be read-only
