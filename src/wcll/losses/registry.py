"""The registry of losses, and the parts that several losses are built from."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from wcll._validation import Functions, Registry, choice, inverse_transition, is_number
from wcll.exceptions import InputError
from wcll.labels import Belief
from wcll.labels.transition import normalised
from wcll.labels.weights import weights_of_marginal
from wcll.losses.targets import Array, Batch, Labels, Targets, Transition, as_transition, per_class

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


AUTO = "auto"  #: the name of a loss that is to be chosen, with all else
LIKELIHOOD = "forward"  #: what it turns out to be, told the Q that was chosen


def _not_trained(logits: Tensor, ybar: Any, *, transition: Any) -> Tensor:
    raise NotImplementedError(f"loss {AUTO!r} is not trained: it chooses what is")


_CHOSEN = LossSpec(AUTO, _not_trained, "auto", paper="", equation="", several=True, revision=2)


def spec_of(name: str) -> LossSpec:
    """A registered loss, or what is known of the one that will be chosen; its revision is raised when choices change.

    >>> spec_of("auto").link, spec_of("pc").link
    ('softmax', 'scores')
    """
    return _CHOSEN if name == AUTO else LOSSES[name]


def softmax(logits: Tensor) -> Tensor:
    """softmax(f) over the last axis; fast also where samples, not classes, are neighbours in memory.

    torch is slow along a short last axis, and slower still if it has to copy: logits that are a transposed view
    (..., k, n).mT are handled as they lie.
    """
    return logits.mT.softmax(-2).mT if _transposed(logits) else logits.softmax(-1)


def log_softmax(logits: Tensor) -> Tensor:
    """log softmax(f), likewise."""
    return logits.mT.log_softmax(-2).mT if _transposed(logits) else logits.log_softmax(-1)


def _transposed(logits: Tensor) -> bool:
    return logits.stride(-2) == 1 and logits.shape[-1] > 1 and logits.stride(-1) != 1


BaseLoss = Callable[[Tensor], Tensor]
Base = str | BaseLoss

BASES: Functions[BaseLoss] = Functions("base")


@BASES.add("ce")
def ce(logits: Tensor) -> Tensor:
    """Cross-entropy, -log p_j."""
    return -log_softmax(logits)


@BASES.add("mae")
def mae(logits: Tensor) -> Tensor:
    """Mean absolute error, sum_i |p_i - [i = j]| = 2 (1 - p_j)."""
    return 2 * (1 - softmax(logits))


@BASES.add("mse")
def mse(logits: Tensor) -> Tensor:
    """Squared error, 1 - 2 p_j + sum_i p_i^2."""
    p = logits.softmax(-1)
    return 1 - 2 * p + p.square().sum(-1, keepdim=True)


@BASES.add("gce")
def gce(logits: Tensor, q: float = 0.7) -> Tensor:
    """Generalised cross-entropy, (1 - p_j^q) / q with 0 < q <= 1."""
    if not is_number(q) or not 0 < q <= 1:
        raise InputError("q", "a number above 0, at most 1", q)
    return -torch.expm1(q * logits.log_softmax(-1)) / q


@BASES.add("phuber")
def phuber(logits: Tensor, tau: float = 10.0) -> Tensor:
    """Partially Huberised cross-entropy: linear in p_j where p_j is at most 1/tau; tau > 1."""
    if not is_number(tau) or not tau > 1:
        raise InputError("tau", "a number above 1", tau)
    log_p = logits.log_softmax(-1)
    return torch.where(log_p > -math.log(tau), -log_p, 1 + math.log(tau) - tau * log_p.exp())


@BASES.add("symmetric")
def symmetric(logits: Tensor, alpha: float = 0.1, beta: float = 1.0, floor: float = -4.0) -> Tensor:
    """Symmetric cross-entropy, alpha (-log p_j) - beta A (1 - p_j), with A in place of log 0."""
    log_p = logits.log_softmax(-1)
    return -alpha * log_p - beta * floor * (1 - log_p.exp())


def base_gradient(base: Base, logits: Tensor, p: Tensor, coefficients: Tensor) -> Tensor:
    """The gradient in the logits of sum_k c_k l_k(x), for coefficients c (..., n, k) and p = softmax(f)."""
    if base == "ce" or base is ce:
        return torch.addcmul(-coefficients, p, coefficients.sum(-1, keepdim=True))
    if base == "mae" or base is mae:
        return 2 * p * ((coefficients * p).sum(-1, keepdim=True) - coefficients)
    return autograd(lambda leaf, _: coefficients * base_loss(base)(leaf))(logits, p, None)


def base_loss(base: Base) -> BaseLoss:
    """A base loss by name, or the user's own function of logits (..., n, k) to losses (..., n, k)."""
    return base if callable(base) else BASES[base]


Correction = Callable[[Tensor, Targets], Tensor]  #: from partial risks (..., 1, k) to the factors of their gradients


def coefficients(logits: Tensor, batch: Batch, transition: Array | Transition | None) -> Tensor:
    """What multiplies l_k(x_i) in the risk: the pair weights of i times row ybar of the inverse of Q; (..., n, k)."""
    pairs = batch.targets.class_pairs(logits, batch.weight, batch.marginal)
    if transition is None:  # the inverse of the uniform Q is 11' - (K-1) I
        return pairs.sum(-1, keepdim=True) - (logits.shape[-1] - 1) * pairs
    return pairs @ as_transition(transition, logits).inverse


def partial_risks(logits: Tensor, batch: Batch, base: Base, transition: Array | Transition | None) -> Tensor:
    """Estimates of P(y=k) E[l_k | y=k] for the ordinary classes k: (..., k)."""
    return (coefficients(logits, batch, transition) * base_loss(base)(logits)).sum(-2)


def ascend(risks: Tensor, batch: Batch) -> Tensor:
    """The sum of partial risks, or, run by run, the loss that climbs out of the negative ones."""
    if batch.marginal is None:  # a batch's own shares would make risks negative by chance, and ascent would dominate
        expected = "the shares of the labels in the whole training set"
        raise InputError("marginal", expected, None, "wcll.labels.observed_marginal gives them")
    climb = -(batch.targets.counts(risks) * risks).clamp(max=0).sum(-1)
    return risks.sum(-1).where((risks >= 0).all(-1), climb)


def ascent(risks: Tensor, targets: Targets) -> Tensor:
    """The correction of :func:`ascend`: all partial risks, or, run by run, the negative ones upwards."""
    climb = -targets.counts(risks).unsqueeze(-2) * (risks <= 0)
    return torch.where((risks >= 0).all(-1, keepdim=True), 1.0, climb)


def risk_gradient(
    logits: Tensor,
    p: Tensor,
    targets: Targets,
    *,
    weight: Tensor | None = None,
    transition: Transition | None = None,
    marginal: Tensor | None = None,
    base: Base = "ce",
    correction: Correction | None = None,
) -> Tensor:
    """The gradient of the summed, perhaps corrected risks: as they are linear in the base losses, so is it in theirs.

    Its arguments were checked when it was bound.
    """
    factors = coefficients(logits, Batch(targets, weight, marginal), transition)
    if correction is not None:
        risks = (factors * base_loss(base)(logits)).sum(-2, keepdim=True)
        factors = factors * correction(risks, targets)
    return base_gradient(base, logits, p, factors)
