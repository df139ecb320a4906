"""Checks of a loss: the contract that every registered loss fulfils, for your own losses too.

:func:`check_loss` runs them all; ``loss_checks`` lists them one by one, for a test framework.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._random import whole_seed
from wcll._validation import choice, whole
from wcll.exceptions import InputError, InputTypeError
from wcll.losses import LOSSES, Context, LossSpec
from wcll.testing.contract import CheckedLoss, applicable_checks
from wcll.testing.examples import example_context

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
