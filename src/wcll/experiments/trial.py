"""One training as a frozen set of choices; its hash is the key of its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from wcll.checks import InputError, choice, non_negative, positive, whole
from wcll.labels.transition import TRANSITIONS
from wcll.labels.weights import PI_SOURCES, WEIGHTINGS
from wcll.losses import LOSSES
from wcll.models import MODELS
from wcll.models.stack import named

Options = tuple[tuple[str, Any], ...]

IMBALANCES = ("eq6", "long-tailed", "step", "none")
BELIEFS = ("uniform", "inverse-size", "true")
RESAMPLINGS = ("over", "under", "over-by-y", "under-by-y")
OPTIMISERS = ("adam",)
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Trial:
    """Everything that a result depends on. A field that is None is not used, and not part of the key.

    So a field that is added later with the default None leaves the keys of earlier results as they are.
    """

    dataset: str
    loss: str
    lr: float
    seed: int
    classes: tuple[int, ...] | None = None  #: keep these classes, in this order
    test_share: float | None = None  #: where there is no official test set (default: a quarter)
    imbalance: str = "none"
    p: float | None = None  #: majority to minority ratio
    minority: tuple[int, ...] | None = None
    n_majority: int | None = None  #: samples of a majority class (default: as many as there are)
    labels: str = "uniform"  #: how complementary labels are drawn: a name of TRANSITIONS
    noise: float = 0.0  #: share of labels that wrongly name the true class
    validation: float = 1 / 9  #: held-out samples for selection, as a share of the training set
    resample: str | None = None
    loss_options: Options = ()
    loss_revision: int = 1
    assume: str = "uniform"  #: the Q that the loss is told: assumed uniform, recovered from counts, or the true one
    weights: str | None = "auto"
    pi: str = "recovered"  #: where the weights' pi comes from
    bias: float | None = None
    beta: float | None = None
    judge: str = "uniform"  #: the Q that selection is told
    model: str = "linear"
    model_options: Options = ()
    optimiser: str = "adam"
    weight_decay: float = 1e-4
    batch_size: int = 256
    epochs: int = 100
    dtype: str = "float32"

    @staticmethod
    def of(settings: Mapping[str, Any]) -> Trial:
        """A trial from the settings of a suite: checked, numbers as what they mean, options split from names."""
        for key in settings:
            choice("setting", key, SETTINGS)
        for key in ("dataset", "loss", "lr", "seed"):
            if settings.get(key) is None:
                raise InputError(key, "a value", "none", "every run needs one")
        values: dict[str, Any] = {}
        for key, value in settings.items():
            values[key] = None if value is None or (value == "none" and key in NULLABLE) else SETTINGS[key](key, value)
        for key in ("loss", "model"):
            if key in values:
                values[key], values[f"{key}_options"] = values[key]
        values["loss_revision"] = LOSSES[values["loss"]].revision
        trial = Trial(**values)
        trial._check_together()
        return trial

    def _check_together(self) -> None:
        if self.imbalance != "none" and self.p is None:
            raise InputError("p", f"a ratio for imbalance = {self.imbalance!r}", "none")
        if self.imbalance == "eq6" and not self.minority:
            raise InputError("minority", "classes for imbalance = 'eq6'", "none", "for example minority = [0]")
        if self.imbalance == "none" and (self.p is not None or self.minority):
            raise InputError("imbalance", "'eq6', 'long-tailed' or 'step' where p or minority is given", "'none'")
        spec = LOSSES[self.loss]
        if self.weights not in (None, "auto") and not spec.weighted:
            raise InputError("weights", f"none for loss {self.loss!r}, which is not a mean over samples", self.weights)

    def config(self) -> dict[str, Any]:
        """Plain values in the order of the fields, without those that are not used."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["loss_options"], values["model_options"] = dict(self.loss_options), dict(self.model_options)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None}

    @property
    def key(self) -> str:
        """The identity of the result."""
        return key_of(self.config())

    @property
    def ordinary(self) -> bool:
        """Whether the loss learns from true labels: the upper limit."""
        return LOSSES[self.loss].labels == "ordinary"


def key_of(config: Mapping[str, Any]) -> str:
    """The hash of a configuration."""
    return blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=12).hexdigest()


def _share(key: str, value: Any) -> float:
    if not 0 <= non_negative(key, value) < 1:
        raise InputError(key, "a share from 0 to below 1", value)
    return float(value)


def _rate(key: str, value: Any) -> float:
    if isinstance(value, bool):
        raise InputError(key, "a number above 0", value)
    return positive(key, value)


def _natural(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(key, "a whole number from 0", repr(value))
    return value


def _classes(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InputError(key, "a list of class ids", repr(value))
    ids = tuple(_natural(key, k) for k in value)
    if len(set(ids)) < len(ids):
        raise InputError(key, "each class once", list(ids))
    return ids


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(key, "a name", repr(value))
    return value


def _one_of(*allowed: str) -> Callable[[str, Any], str]:
    return lambda key, value: choice(key, value, allowed)


def _loss(key: str, value: Any) -> tuple[str, Options]:
    name, options = _with_options(key, value)
    for option in options:
        choice(f"option of loss {name!r}", option, LOSSES[name].options)
    LOSSES[name]
    return name, tuple(sorted(options.items()))


def _model(key: str, value: Any) -> tuple[str, Options]:
    name, options = _with_options(key, value)
    for option in options:
        choice(f"option of model {name!r}", option, MODELS.options(name))
    MODELS[name]
    return name, tuple(sorted(options.items()))


def _with_options(key: str, value: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, str | dict):
        raise InputError(key, 'a name, or { name = "...", option = ... } with its options', repr(value))
    return named(value, key)


#: Every setting of a suite and how its value is read.
SETTINGS: dict[str, Callable[[str, Any], Any]] = {
    "dataset": _text,
    "loss": _loss,
    "lr": _rate,
    "seed": _natural,
    "classes": _classes,
    "test_share": _share,
    "imbalance": _one_of(*IMBALANCES),
    "p": _rate,
    "minority": _classes,
    "n_majority": whole,
    "labels": _one_of(*TRANSITIONS),
    "noise": _share,
    "validation": _share,
    "resample": _one_of(*RESAMPLINGS),
    "assume": _one_of(*BELIEFS),
    "weights": _one_of("auto", *WEIGHTINGS),
    "pi": _one_of(*PI_SOURCES),
    "bias": lambda key, value: float(value),
    "beta": _share,
    "judge": _one_of(*BELIEFS),
    "model": _model,
    "optimiser": _one_of(*OPTIMISERS),
    "weight_decay": non_negative,
    "batch_size": whole,
    "epochs": whole,
    "dtype": _one_of(*DTYPES),
}
NULLABLE = ("weights", "resample")  #: settings for which "none" means none
