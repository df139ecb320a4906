"""Checks of a loss: the contract that every registered loss fulfils, for your own losses too.

:func:`check_loss` runs them all; ``loss_checks`` lists them one by one, for a test framework.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._random import whole_seed
from wcll._validation import FloatArray, choice, whole
from wcll.exceptions import InputError, InputTypeError
from wcll.losses import LOSSES, Context, LossSpec, Targets


def example_logits(*shape: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    """Random float64 logits."""
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def example_labels(n: int, n_classes: int, *, several: bool, seed: int = 0) -> Tensor:
    """One random label a sample, (n,), or a mask of random sets, (n, k)."""
    rng = np.random.default_rng(seed)
    if not several:
        return torch.from_numpy(rng.integers(0, n_classes, n))
    sizes = rng.integers(1, n_classes, n)
    return torch.from_numpy(rng.random((n, n_classes)).argsort(axis=1).argsort(axis=1) < sizes[:, None])


def example_transition(n_classes: int, seed: int = 0) -> FloatArray:
    """A random row-stochastic matrix with a zero diagonal."""
    matrix = np.random.default_rng(seed).uniform(0.2, 1.0, (n_classes, n_classes)) * (1 - np.eye(n_classes))
    stochastic: FloatArray = matrix / matrix.sum(axis=1, keepdims=True)
    return stochastic


def example_context(names: Iterable[str], n_classes: int, seed: int = 0) -> dict[str, Any]:
    """Random values of some of the keywords that a trainer gives."""
    rng = np.random.default_rng(seed)
    shares = {name: rng.uniform(0.5, 1.5, n_classes) for name in ("marginal", "prior", "pi")}
    values = {name: share / share.sum() for name, share in shares.items()}
    values |= {"weight": rng.uniform(0.2, 2.0, n_classes), "transition": example_transition(n_classes, seed)}
    return {name: values[name] for name in names}


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


__all__ = ["check_loss"]


@dataclass(frozen=True)
class LossCheck:
    """One check of one loss: call it to run it; as a string it is its name."""

    function: Callable[[CheckedLoss], None]
    loss: CheckedLoss

    def __call__(self) -> None:
        """Raise an ``AssertionError`` of one line if the loss fails."""
        try:
            self.function(self.loss)
        except Exception as error:
            seen = str(error) if isinstance(error, AssertionError) else f"it raised {type(error).__name__}: {error}"
            raise AssertionError(" ".join(f"{self.loss.name}, {self}: {seen}".split())) from error

    def __str__(self) -> str:
        return self.function.__name__.removeprefix("check_").replace("_", " ")


def check_loss(
    loss: str | LossSpec | Callable[..., Tensor],
    *,
    context: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    several: bool | None = None,
    targets: bool = True,
    n_classes: int = 5,
    seed: int = 0,
) -> None:
    """Check that a loss fulfils the contract of the library; the first failure is an ``AssertionError`` of one line.

    The checks: one value a run, in the logits' dtype; finite values and gradients at logits of ±10,000; the gradient
    is that of numerical differentiation, unless a ``LossSpec`` says that a part is held still; no run depends on
    another; the names of the classes and the order of the samples do not matter; a class may be absent from a batch;
    and, where they apply, several labels a sample, sample weights that count as repetitions, and reductions that agree.

    Parameters
    ----------
    loss : str, LossSpec or callable
        A registered loss, or a function ``(logits, ybar, **keywords)`` of logits (..., n, k) and labels to losses
        (...), one per run.
    context : iterable of str
        Which of the keywords ``weight``, ``transition``, ``marginal``, ``prior`` and ``pi`` to give; examples are made
        of them. Those without a default are always given.
    options : mapping, optional
        Other keywords. Arrays all of whose axes have ``n_classes`` entries are taken to be indexed by class.
    several : bool, optional
        Whether the loss is defined for several labels a sample; a registered loss says so itself.
    targets : bool
        Whether labels come as :class:`wcll.losses.Targets`, as a training loop passes them, or as a plain tensor:
        class indices (n,), or, if ``several``, a boolean mask (n, k).
    n_classes : int
        From 3 to 10.
    seed : int
        Another one gives other examples.

    Examples
    --------
    >>> from wcll.testing import check_loss
    >>> check_loss("wcll", options={"reading": "eq10"})

    A loss of your own that loses its way where the model is sure, and one that does not know of sample weights:

    >>> def naive(logits, targets):
    ...     return -(1 - targets.named(logits.softmax(-1))).log().mean(-1)
    >>> check_loss(naive)
    Traceback (most recent call last):
    AssertionError: naive, extreme logits: the loss is inf at logits of ±10000 (torch.float32)
    >>> def linear(logits, targets):
    ...     return targets.named(logits.softmax(-1)).mean(-1)
    >>> check_loss(linear)
    Traceback (most recent call last):
    AssertionError: linear, sample weights: the loss with weights 1, 2, 3 is 0.152198469, 0.1782828748 with repetition

    For a loop of one's own, which has none:

    >>> check_loss(lambda logits, ybar: logits.softmax(-1)[..., range(len(ybar)), ybar].mean(-1), targets=False)
    """
    for check in loss_checks(
        loss, context=context, options=options, several=several, targets=targets, n_classes=n_classes, seed=seed
    ):
        check()


def loss_checks(
    loss: str | LossSpec | Callable[..., Tensor],
    *,
    context: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    several: bool | None = None,
    targets: bool = True,
    n_classes: int = 5,
    seed: int = 0,
) -> list[LossCheck]:
    """The checks of :func:`check_loss`, with its parameters, to be run one by one.

    With pytest::

        @pytest.mark.parametrize("check", loss_checks(my_loss), ids=str)
        def test_my_loss(check):
            check()

    Examples
    --------
    >>> from wcll.testing import loss_checks
    >>> [str(check) for check in loss_checks("pc")][:3]
    ['result', 'extreme logits', 'gradient']
    """
    if not (isinstance(loss, str | LossSpec) or callable(loss)):
        raise InputTypeError("loss", "a name, a LossSpec or a function", type(loss).__name__)
    if not 3 <= whole("n_classes", n_classes) <= 10:
        raise InputError("n_classes", "a number from 3 to 10", n_classes)
    if not 0 <= whole_seed(seed) < 2**63:
        raise InputError("seed", "a whole number from 0 below 2**63", seed)
    if not np.iterable(context) or not (options is None or isinstance(options, Mapping)):
        raise InputTypeError("context, options", "names, and a mapping of options", f"{context!r}, {options!r}")
    spec = LOSSES[loss] if isinstance(loss, str) else loss
    function = spec.function if isinstance(spec, LossSpec) else spec
    name = spec.name if isinstance(spec, LossSpec) else getattr(function, "__name__", type(function).__name__)
    sets = several if several is not None else isinstance(spec, LossSpec) and spec.several
    keywords = _context(function, context, n_classes, seed) | dict(options or {})
    arrays = {k: torch.tensor(v) for k, v in keywords.items() if isinstance(v, np.ndarray | list | tuple)}
    held = isinstance(spec, LossSpec) and spec.held
    subject = CheckedLoss(function, name, keywords | arrays, sets, targets, n_classes, seed, held)
    return [LossCheck(check, subject) for check in applicable_checks(subject)]


def _context(function: Callable[..., Tensor], names: Iterable[str], n_classes: int, seed: int) -> dict[str, Any]:
    """Examples of the keywords that a trainer gives: of those named, and of those without a default."""
    known = [field.name for field in fields(Context)]
    chosen = {choice("context", name, known) for name in ([names] if isinstance(names, str) else names)}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in known and parameter.default is parameter.empty:
            chosen.add(name)
    return example_context(chosen, n_classes, seed)
