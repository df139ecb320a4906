"""The registry of losses: each row is a keyword function and what one must know to use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from wcll._validation import Registry, choice, inverse_transition
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.labels.transition import normalised
from wcll.labels.weights import weights_of_marginal
from wcll.losses.arguments import Array, Transition, as_transition, per_class
from wcll.losses.targets import Targets

LossFunction = Callable[..., Tensor]
BoundLoss = Callable[..., Tensor]
Link = Literal["softmax", "sigmoid", "scores"]
F = TypeVar("F", bound=LossFunction)


@dataclass(frozen=True)
class Context:
    """What a trainer knows of its training set; a loss takes from it what its keywords name."""

    weight: Array | None = None  #: class weights of mean 1 over the training set
    transition: Array | Transition | None = None  #: the Q that is assumed
    marginal: Array | None = None  #: observed shares of the labels
    prior: Array | None = None  #: ordinary class shares
    pi: Array | None = None  #: the pi of Eq. 7 from which the weights were made

    def to(self, like: Tensor) -> Context:
        """The context checked once and put beside logits such as ``like``, so that no step has to."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        matrix = as_transition(known.pop("transition"), like) if "transition" in known else None
        return Context(transition=matrix, **{name: per_class(name, value, like) for name, value in known.items()})


@dataclass(frozen=True)
class Table1:
    """The columns of the paper's table 1 (``None``: the paper's table has no such row)."""

    complementary_labels: bool = True
    any_loss: bool = True
    any_model: bool = True
    class_imbalance: bool = False


@dataclass(frozen=True)
class LossSpec:
    """A registered loss."""

    name: str
    function: LossFunction
    title: str
    paper: str
    equation: str  #: where the paper states it, as far as we could verify
    several: bool = False  #: defined for several labels a sample
    link: Link = "softmax"  #: how outputs become class probabilities; "scores": they do not
    table1: Table1 | None = None
    revision: int = 1  #: raised when the numbers change
    #: What options that results do not name mean there, where the default was another when the first were made.
    recorded_defaults: Mapping[str, Any] = field(default_factory=dict)
    labels: Literal["complementary", "ordinary"] = "complementary"
    held: bool = False  #: part of it comes from the outputs and is held still: the gradient is not that of the value
    gradient: LossFunction | None = None  #: d loss / d logits in closed form, where somebody wrote it

    @staticmethod
    def own(function: LossFunction) -> LossSpec:
        """A user's function of logits (1, n, k) and targets to a loss of shape (1,), as if it were registered."""
        return LossSpec("own", _one_run(function), "own", paper="", equation="", several=True)

    @property
    def context(self) -> dict[str, bool]:
        """What the loss takes from the trainer's context: name -> whether it must be there."""
        known = {field.name for field in fields(Context)}
        return {k: p.default is p.empty for k, p in self.parameters.items() if k in known}

    @cached_property
    def options(self) -> dict[str, Any]:
        """The user's choices and their defaults."""
        outside = {"reduction", *(field.name for field in fields(Context))}
        return {k: p.default for k, p in self.parameters.items() if k not in outside}

    def recorded(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as results name them: a default that has changed since is named, the one before is not."""
        unsaid, said = {**self.options, **self.recorded_defaults}, {**self.options, **options}
        return {name: said[name] for name in sorted(said) if said[name] != unsaid[name]}

    @property
    def auto_weights(self) -> str | None:
        """The weighting that ``weights="auto"`` means: Eq. 13 for a loss that needs weights, none for others."""
        return "wcll" if self.context.get("weight") else None

    @property
    def weighted(self) -> bool:
        """Whether class weights apply."""
        return "weight" in self.context

    def told(self, belief: Belief) -> Context:
        """What the loss may take of what is believed of its training labels."""
        prior, weights, marginal = None, belief.weights, belief.marginal
        if "prior" in self.context:
            prior = normalised((marginal @ inverse_transition(belief.transition)).clip(0.0))
        if weights is None and self.context.get("weight"):
            weights = weights_of_marginal([1.0] * len(marginal), marginal, 1.0)  # wcll by Eq. 9 without weights: FREE
        return Context(
            weight=None if weights is None else weights.values,
            transition=belief.transition,
            marginal=marginal,
            prior=prior,
            pi=marginal if weights is None or weights.pi is None else weights.pi,
        )

    def bind(self, context: Context, **options: Any) -> partial[Tensor]:
        """The loss as a function of logits and targets alone, its keywords taken from the context.

        >>> from wcll.losses import LOSSES
        >>> LOSSES["scarce"].bind(Context())
        Traceback (most recent call last):
        wcll._validation.InputError: prior: expected a value, which loss 'scarce' needs, got None
        """
        for option in options:
            choice(f"option of loss {self.name!r}", option, self.options)
        if context.weight is not None and not self.weighted:
            raise InputError("weight", f"none for loss {self.name!r}, which is not a mean over samples", "weights")
        keywords = {name: getattr(context, name) for name in self.context}
        for name, required in self.context.items():
            if required and keywords[name] is None:
                raise InputError(name, f"a value, which loss {self.name!r} needs", None)
        return partial(self.function, **keywords, **options)

    def bind_gradient(self, context: Context, **options: Any) -> BoundLoss:
        """The gradient in the logits, closed or by autograd: a function of logits f, softmax(f) and targets.

        It is the gradient of the sum over runs, so every run's is its own.
        """
        loss = self.bind(context, **options)  # checks both
        return autograd(loss) if self.gradient is None else partial(self.gradient, **loss.keywords)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The function's keywords."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}


def autograd(loss: BoundLoss) -> BoundLoss:
    """The gradient of a loss in its logits, by automatic differentiation."""

    def gradient(logits: Tensor, p: Tensor, targets: Any) -> Tensor:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            (found,) = torch.autograd.grad(loss(leaf, targets).sum(), leaf)
        return found

    return gradient


def _one_run(function: LossFunction) -> BoundLoss:
    """A user's loss of one run, whose result is checked."""

    def loss(logits: Tensor, targets: Targets) -> Tensor:
        value = function(logits, targets)
        if not isinstance(value, Tensor) or value.shape != (1,):
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError("loss", "a tensor of shape (1,), one loss for the one run", got)
        return value

    return loss


class Losses(Registry[LossSpec]):
    """Losses by name; adding one means writing its function, here decorated, and nothing else."""

    def add(self, name: str, **facts: Any) -> Callable[[F], F]:
        """Decorator: register the function with the facts that :class:`LossSpec` lists."""

        def register(function: F) -> F:
            self.put(name, LossSpec(name, function, **facts))
            return function

        return register


LOSSES = Losses("loss")
