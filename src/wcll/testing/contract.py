"""What a loss must fulfil, one function a clause."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll.exceptions import InputError
from wcll.losses import Targets
from wcll.testing.examples import example_labels, example_logits

SAMPLES = 12  #: in the examples
FAR = 1e4  #: a logit at which exp overflows


@dataclass(frozen=True)
class CheckedLoss:
    """The loss to be checked, and examples for it."""

    function: Callable[..., Tensor]
    name: str
    keywords: dict[str, Any]
    several: bool
    targets: bool
    n_classes: int
    seed: int
    held: bool = False

    def __call__(
        self, logits: Tensor, labels: Tensor, sample_weight: Tensor | None = None, mass: float = 1.0, **more: Any
    ) -> Tensor:
        beside = {
            name: value.to(logits.dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
            for name, value in self.keywords.items()
        }
        targets = Targets.of(labels, self.n_classes, sample_weight, mass)
        plain = targets.mask if self.several else labels
        found = self.function(logits, targets if self.targets else plain, **beside | more)
        assert isinstance(found, Tensor), f"the result is of type {type(found).__name__} instead of a tensor"
        return found

    def logits(self, *runs: int) -> Tensor:
        """Example logits of some runs."""
        return example_logits(*runs, SAMPLES, self.n_classes, seed=self.seed)

    def labels(self, n: int = SAMPLES, *, several: bool | None = None, shift: int = 0) -> Tensor:
        """Example labels; sets of them where the loss takes sets."""
        sets = self.several if several is None else several
        return example_labels(n, self.n_classes, several=sets, seed=self.seed + shift)

    def relabelled(self, order: Tensor) -> CheckedLoss:
        """The loss with its keywords for classes that were renamed: class ``order[j]`` is now called j."""
        moved = dict(self.keywords)
        for name, value in moved.items():
            if isinstance(value, Tensor) and value.ndim and set(value.shape) == {self.n_classes}:
                for axis in range(value.ndim):
                    moved[name] = moved[name].index_select(axis, order)
        return replace(self, keywords=moved)


def applicable_checks(loss: CheckedLoss) -> Iterator[Callable[[CheckedLoss], None]]:
    """The checks that apply to a loss; each raises an ``AssertionError`` that says what was seen."""
    yield from (check_result, check_extreme_logits)
    if not loss.held:
        yield check_gradient
    yield check_run_independence
    yield from (check_labels, check_class_names, check_sample_order, check_absent_class)
    if loss.several:
        yield check_several_labels
    if loss.targets:
        yield check_sample_weights
    if "reduction" in inspect.signature(loss.function).parameters:
        yield check_reductions


def check_result(loss: CheckedLoss) -> None:
    """One value a run, in the dtype of the logits."""
    for dtype in (torch.float32, torch.float64):
        for runs in ((), (3,), (2, 3)):
            logits = loss.logits(*runs).to(dtype)
            found, given = loss(logits, loss.labels()), f"logits of shape {tuple(logits.shape)}"
            seen = f"a result of shape {tuple(found.shape)} instead of {runs}, one a run"
            assert found.shape == runs, f"{given} gave {seen}"
            assert found.dtype == dtype, f"logits of {dtype} gave a result of {found.dtype}"


def check_extreme_logits(loss: CheckedLoss) -> None:
    """Finite values and gradients where a softmax is 0 or 1."""
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * loss.n_classes)  # every pattern, ties included
    for dtype in (torch.float32, torch.float64):
        logits = (FAR * signs).to(dtype).requires_grad_()
        for shift in range(3):
            value = loss(logits, loss.labels(len(logits), shift=shift))
            _assert_finite(value, logits, f"at logits of ±{FAR:g} ({dtype})")


def check_absent_class(loss: CheckedLoss) -> None:
    """Finite values and gradients where nobody has some label."""
    logits = loss.logits().requires_grad_()
    labels = torch.arange(SAMPLES) % (loss.n_classes - 1)
    _assert_finite(loss(logits, labels), logits, "where a batch has no label of the last class")


def check_gradient(loss: CheckedLoss) -> None:
    """The gradient is that of numerical differentiation."""
    logits, labels, step = loss.logits().requires_grad_(), loss.labels(), 1e-6
    found = _gradient(loss(logits, labels), logits)
    fixed = logits.detach()
    for place in np.ndindex(*fixed.shape):
        move = torch.zeros_like(fixed)
        move[place] = step
        expected = float(loss(fixed + move, labels) - loss(fixed - move, labels)) / (2 * step)
        close = abs(found[place].item() - expected) <= 1e-5 + 1e-3 * abs(expected)
        seen = f"{found[place].item():.6g} by autograd, {expected:.6g} by numerical differentiation"
        assert close, f"sample {place[0]}, class {place[1]}: {seen}"


def check_run_independence(loss: CheckedLoss) -> None:
    """A run's loss and gradient are those that it has alone."""
    logits, labels = loss.logits(2, 3).requires_grad_(), loss.labels()
    value = loss(logits, labels)
    leak = float(_gradient(value[0, 0], logits).flatten(0, 1)[1:].abs().max())
    assert leak == 0, f"the loss of one run has a gradient of {leak:g} in the logits of another"
    gradient = _gradient(value.sum(), logits)[1, 2]
    alone = logits[1, 2].detach().requires_grad_()
    _assert_same(loss(alone, labels), value[1, 2], "the loss of a run alone", "among others")
    _assert_same(_gradient(loss(alone, labels), alone), gradient, "the gradient of a run alone", "among others")


def check_labels(loss: CheckedLoss) -> None:
    """Other labels have another loss."""
    logits, labels = loss.logits(), loss.labels()
    others = labels.roll(1, -1) if loss.several else (labels + 1) % loss.n_classes
    found, expected = float(loss(logits, labels)), float(loss(logits, others))
    assert found != expected, f"the loss is {found:g} whatever the labels are"


def check_class_names(loss: CheckedLoss) -> None:
    """Renaming the classes everywhere changes nothing."""
    logits, labels, classes = loss.logits(), loss.labels(), torch.arange(loss.n_classes)
    for order in (classes.roll(1), torch.cat([classes[:2].flip(0), classes[2:]])):  # these make all permutations
        renamed = labels[:, order] if loss.several else order.argsort()[labels]
        found = loss.relabelled(order)(logits[:, order], renamed)
        _assert_same(found, loss(logits, labels), "the loss with classes renamed", "before")


def check_sample_order(loss: CheckedLoss) -> None:
    """Nor does the order of the samples."""
    logits, labels = loss.logits(), loss.labels()
    _assert_same(loss(logits.flip(0), labels.flip(0)), loss(logits, labels), "the loss of samples reversed", "before")


def check_several_labels(loss: CheckedLoss) -> None:
    """A set of one label is that label; of two labels, each matters."""
    logits, classes = loss.logits(), torch.arange(loss.n_classes)
    first = loss.labels(several=False) % (loss.n_classes - 1)
    one, other = first[:, None] == classes, first[:, None] + 1 == classes
    _assert_same(loss(logits, one), loss(logits, first), "the loss of sets of one label", "for the labels themselves")
    for part in (one, other):
        difference = loss(logits, one | other) - loss(logits, part)
        assert abs(difference.item()) > 1e-10, "the loss of sets of two labels is that of one of them"


def check_sample_weights(loss: CheckedLoss) -> None:
    """A sample of weight 2 is a sample that stands there twice."""
    logits, labels = loss.logits(), loss.labels()
    times = torch.tensor([1, 2, 3]).repeat(SAMPLES // 3)
    repeated = loss(logits.repeat_interleave(times, 0), labels.repeat_interleave(times, 0))
    mass = float(times.sum()) / SAMPLES
    weighted = loss(logits, labels, times.double() / mass, mass)
    _assert_same(weighted, repeated, "the loss with weights 1, 2, 3", "with repetition")


def check_reductions(loss: CheckedLoss) -> None:
    """Mean and sum are those of the samples, unless no sample has a value."""
    logits, labels = loss.logits(2), loss.labels()
    mean = loss(logits, labels, reduction="mean")
    _assert_same(mean, loss(logits, labels), "the mean", "without a reduction")
    try:
        samples, total = (loss(logits, labels, reduction=how) for how in ("none", "sum"))
    except InputError as error:
        if error.argument == "reduction":
            return  # made of class means: no sample has a value of its own
        raise
    seen = f"a result of shape {tuple(samples.shape)} instead of {(2, SAMPLES)}"
    assert samples.shape == (2, SAMPLES), f"reduction 'none' gave {seen}"
    _assert_same(samples.mean(-1), mean, "the mean of reduction 'none'", "with reduction 'mean'")
    _assert_same(samples.sum(-1), total, "the sum of reduction 'none'", "with reduction 'sum'")


def _gradient(value: Tensor, logits: Tensor) -> Tensor:
    assert value.requires_grad, "the result has no gradient in the logits"
    (found,) = torch.autograd.grad(value, logits, retain_graph=True)
    return found


def _assert_finite(value: Tensor, logits: Tensor, where: str) -> None:
    assert bool(value.isfinite().all()), f"the loss is {value.item():g} {where}"
    gradient = _gradient(value, logits)
    worst = gradient[~gradient.isfinite()]
    assert not worst.numel(), f"the gradient has {worst.numel()} entries such as {float(worst[:1].sum()):g} {where}"


def _assert_same(found: Tensor, expected: Tensor, what: str, beside: str) -> None:
    assert found.shape == expected.shape, f"{what} has shape {tuple(found.shape)}, {tuple(expected.shape)} {beside}"
    close = torch.isclose(found, expected, rtol=1e-10, atol=1e-10)
    if not bool(close.all()):
        worst = int((found - expected).abs().argmax())
        seen, wanted = found.flatten()[worst].item(), expected.flatten()[worst].item()
        raise AssertionError(f"{what} is {seen:.10g}, {wanted:.10g} {beside}")
