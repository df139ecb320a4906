"""Labels of a batch as losses take them, and the checks of tensors from a user's own loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from wcll._memory import check_memory
from wcll._validation import SMALLEST, FloatArray, choice, inverse_transition, numeric, transition_matrix, whole
from wcll.exceptions import InputError, InputTypeError

Reduction = Literal["mean", "sum", "none"]


@dataclass(frozen=True)
class Targets:
    """Complementary labels of a batch, checked once.

    Losses take plain tensors and check them at every call, or ``Targets`` and check nothing: a training loop builds
    ``Targets.of(ybar, n_classes)`` for the whole training set and indexes it batch by batch.

    Plain tensors on a GPU, and in what ``torch.compile`` traces, are checked by assertions on the device: nothing waits
    for them, they say what was expected but not what came, and after one a process cannot use its GPU any more.
    ``Targets.of`` waits, and says which label is bad.

    Shapes: n samples, k classes, and any leading run axes (or none, if all runs share the labels).
    """

    mask: Tensor  #: (..., n, k) bool: "not these"
    index: Tensor | None = None  #: (..., n) the label, where every sample has just one
    sample_weight: Tensor | None = None  #: (..., n), of mean 1 over the training set
    mass: float = 1.0  #: the mean of the sample weights before they were scaled: how many samples one stands for
    near: Tensor | None = None  #: (..., n, k) shares of the labels of near samples, which "forward" learns from instead
    _shares: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)
    _sums: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)
    _sizes: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @staticmethod
    def of(ybar: Tensor, n_classes: int, sample_weight: Tensor | None = None, mass: float = 1.0) -> Targets:
        """From class indices of shape (..., n) or a boolean mask of shape (..., n, k); bad labels fail here."""
        return Targets.beside(ybar, n_classes, sample_weight, mass, wait=True)

    @staticmethod
    def beside(
        ybar: Tensor, n_classes: int, sample_weight: Tensor | None = None, mass: float = 1.0, *, wait: bool
    ) -> Targets:
        """:meth:`of`, which does not ``wait`` for a GPU, if asked not to; see ``require``."""
        if not isinstance(ybar, Tensor):
            raise InputTypeError("ybar", "a tensor of class indices or a boolean mask", type(ybar).__name__)
        if dense("ybar", ybar).ndim == 0:
            raise InputError("ybar", "one label a sample", "a single number")
        whole("n_classes", n_classes)
        n = ybar.shape[-2] if ybar.dtype == torch.bool and ybar.ndim > 1 else ybar.shape[-1]
        if sample_weight is not None:
            _check_weights(sample_weight, n, wait)
        if ybar.dtype == torch.bool:
            return Targets(_checked_mask(ybar, n_classes, wait), None, sample_weight, mass)
        if ybar.is_floating_point() or ybar.is_complex():
            raise InputTypeError("ybar", "integer class indices or a boolean mask", ybar.dtype, "call .long() first")
        if ybar.numel():
            low, high = ybar.aminmax()
            expected, remedy = f"class indices from 0 to {n_classes - 1}", "class ids are 0-based"
            known = (low >= 0) & (high < n_classes)
            require(known, "ybar", expected, lambda: int(low) if low < 0 else int(high), remedy, wait=wait)
        if not torch.compiler.is_compiling():
            size = ybar.numel() * n_classes
            check_memory("n_classes", f"a mask of {ybar.numel()} samples and {n_classes} classes", size)
        index = ybar.long()
        classes = torch.arange(n_classes, device=ybar.device)
        return Targets(index.unsqueeze(-1) == classes, index, sample_weight, mass)

    def __getitem__(self, rows: Tensor | slice) -> Targets:
        """The targets of some samples."""
        wide = (self.mask, self.near)
        return self.each(lambda part: part[..., rows, :] if any(part is one for one in wide) else part[..., rows])

    def to(self, device: torch.device) -> Targets:
        """The same targets on a device."""
        return self.each(lambda part: part.to(device))

    def take(self, others: Targets) -> None:
        """Put others, which are fewer or as many, in the place of the first of these."""
        own = (self.mask, self.index, self.sample_weight, self.near)
        overwrite(own, (others.mask, others.index, others.sample_weight, others.near))

    def each(self, change: Callable[[Tensor], Tensor]) -> Targets:
        """The same change made to every tensor."""
        index = None if self.index is None else change(self.index)
        weight = None if self.sample_weight is None else change(self.sample_weight)
        near = None if self.near is None else change(self.near)
        return Targets(change(self.mask), index, weight, self.mass, near)

    def own(self) -> Targets:
        """The same without the labels of near samples."""
        return self if self.near is None else replace(self, near=None)

    def __len__(self) -> int:
        return self.mask.shape[-2]

    @property
    def size(self) -> Tensor:
        """s: how many labels a sample has, (..., n), made once."""
        if "size" not in self._sizes:
            self._sizes["size"] = self.mask.sum(-1)
        return self._sizes["size"]

    def counts(self, like: Tensor) -> Tensor:
        """How many samples have each label, a sample with s of them counting 1/s for each: (..., k)."""
        return self.mass * self._totals(like)

    def single(self, loss: str) -> Tensor:
        """The one label of each sample, for losses that are defined for one; shape (..., n)."""
        if self.index is not None:
            return self.index
        expected, remedy = f"one label a sample for loss {loss!r}", "split label sets with wcll.labels.to_pairs"
        require(self.size == 1, "ybar", expected, lambda: f"up to {int(self.size.max())}", remedy)
        return self.mask.long().argmax(-1)

    def share(self, like: Tensor) -> Tensor:
        """1/s on each of a sample's s labels, else 0; (..., n, k) in the dtype of ``like``, made once."""
        if like.dtype not in self._shares:
            shares = self.mask.to(like.dtype)
            self._shares[like.dtype] = shares if self.index is not None else shares / self.size.unsqueeze(-1)
        return self._shares[like.dtype]

    def named(self, values: Tensor) -> Tensor:
        """Sum of ``values`` (..., n, k) over each sample's labels: (..., n)."""
        return torch.where(self.mask, values, 0.0).sum(-1)

    def pairs(self, like: Tensor, weight: Tensor | None) -> Tensor:
        """How much each pair of sample and label counts: ``v_i w_j / s_i`` for label j of sample i, (..., n, k)."""
        pairs = self.share(like)
        if weight is not None:
            pairs = pairs * weight.unsqueeze(-2)
        if self.sample_weight is not None:
            pairs = pairs * self.sample_weight.unsqueeze(-1)
        return pairs

    def class_pairs(self, like: Tensor, weight: Tensor | None, marginal: Tensor | None) -> Tensor:
        """Pair weights of a mean over samples, or of class means with the shares of the whole training set.

        Without ``marginal``: :meth:`pairs` over n. With it (class form): the pairs of class j are averaged within
        the batch and enter with the training set's share of j; a class that is absent from the batch is skipped.
        """
        if marginal is None:
            return self.pairs(like, weight) / len(self)
        pairs = self.pairs(like, None)
        scale = marginal if weight is None else marginal * weight
        return pairs * (scale / present(self._totals(like))).unsqueeze(-2)

    def _totals(self, like: Tensor) -> Tensor:
        """The summed pairs of each class, (..., k), made once."""
        if like.dtype not in self._sums:
            self._sums[like.dtype] = self.pairs(like, None).sum(-2)
        return self._sums[like.dtype]


def overwrite(places: Iterable[Tensor | None], values: Iterable[Tensor | None]) -> None:
    """Put values, which are fewer or as many, in the place of the first of others, where there are both."""
    for place, new in zip(places, values, strict=True):
        if place is not None and new is not None:
            place[: len(new)] = new


def present(total: Tensor) -> Tensor:
    """``total`` with zeros (absent classes) replaced by ones: what is divided by it is zero as well."""
    return torch.where(total > 0, total, 1.0)


def dense(argument: str, tensor: Tensor) -> Tensor:
    """A tensor whose numbers can be looked at: neither sparse, nested nor without data."""
    if tensor.is_meta or tensor.is_nested or tensor.is_quantized or tensor.layout != torch.strided:
        kind = "no data" if tensor.is_meta else "nested" if tensor.is_nested else f"{tensor.dtype}, {tensor.layout}"
        raise InputTypeError(argument, "a dense tensor with data", kind)
    return tensor


def require(
    holds: Tensor, argument: str, expected: str, got: Callable[[], object], remedy: str = "", *, wait: bool = False
) -> None:
    """Fail unless ``holds`` is true everywhere.

    In what ``torch.compile`` traces, and on a GPU that need not be waited for, an assertion on the device is left
    behind instead: it breaks no graph and stops no queue, and fails a little later, in fewer words.
    """
    if torch.compiler.is_compiling() or (_is_far(holds) and not wait):
        torch._assert_async(holds.all(), f"{argument}: expected {expected}")
    elif not bool(holds.all()):
        raise InputError(argument, expected, got(), remedy)


def _is_far(tensor: Tensor) -> bool:
    """Whether somebody who asks for its values waits for all that was begun before."""
    return tensor.is_cuda


def _check_weights(weight: Tensor, n: int, wait: bool) -> None:
    """Sample weights: finite, none negative, one a sample."""
    if not isinstance(weight, Tensor) or not dense("sample_weight", weight).is_floating_point():
        kind = getattr(weight, "dtype", type(weight).__name__)
        raise InputTypeError("sample_weight", "a floating-point tensor", kind)
    if weight.shape[-1:] != (n,):
        raise InputError("sample_weight", f"{n} numbers, one a sample", f"shape {tuple(weight.shape)}")
    fine = weight.isfinite() & (weight >= 0)
    require(fine, "sample_weight", "finite numbers, none negative", lambda: "others", wait=wait)


def _checked_mask(mask: Tensor, n_classes: int, wait: bool) -> Tensor:
    if mask.ndim < 2 or mask.shape[-1] != n_classes:
        raise InputError("ybar", f"a mask of shape (..., n, {n_classes})", tuple(mask.shape))
    require(mask.any(-1), "ybar", "at least one label a sample", lambda: "a mask row without any", wait=wait)
    require(~mask.all(-1), "ybar", "at least one class left a sample", lambda: "a mask row that names all", wait=wait)
    return mask


def reduce_samples(per_sample: Tensor, targets: Targets, weight: Tensor | None, reduction: Reduction) -> Tensor:
    """Weigh losses of shape (..., n) by class and sample, then average: one loss per run.

    A sample with several labels takes the mean of their class weights. The sum is divided by n, never by the batch's
    own sum of weights: weights have mean 1 over the training set, so batches, groups and ranks agree.
    """
    if weight is not None:
        per_sample = per_sample * (targets.share(per_sample) * weight.unsqueeze(-2)).sum(-1)
    if targets.sample_weight is not None:
        per_sample = per_sample * targets.sample_weight
    return apply_reduction(per_sample, reduction)


def sample_factor(like: Tensor, targets: Targets, weight: Tensor | None) -> Tensor | float:
    """What :func:`reduce_samples` with a mean multiplies the loss of each sample by: (..., n, 1), or one number."""
    factor: Tensor | float = 1 / len(targets)
    if weight is not None:
        factor = (targets.share(like) * weight.unsqueeze(-2)).sum(-1, keepdim=True) * factor
    if targets.sample_weight is not None:
        factor = targets.sample_weight.unsqueeze(-1) * factor
    return factor


def reduce_pairs(per_class: Tensor, targets: Targets, weight: Tensor | None, reduction: Reduction) -> Tensor:
    """Average losses of shape (..., n, k), one for every label that a sample could have, over its actual labels."""
    return apply_reduction((targets.pairs(per_class, weight) * per_class).sum(-1), reduction)


def apply_reduction(per_sample: Tensor, reduction: Reduction) -> Tensor:
    """``"mean"`` and ``"sum"`` over the samples of each run, or the samples themselves."""
    if reduction == "none":
        return per_sample
    return per_sample.mean(-1) if reduction == "mean" else per_sample.sum(-1)


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
