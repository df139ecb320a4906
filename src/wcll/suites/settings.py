"""The settings of a trial: what each may be, and how its value is read from a suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wcll.checks import InputError, choice
from wcll.labels.transition import TRANSITIONS
from wcll.labels.weights import PI_SOURCES, WEIGHTINGS
from wcll.losses import LOSSES
from wcll.models import MODELS
from wcll.models.stack import named

Options = tuple[tuple[str, Any], ...]

IMBALANCES = ("eq6", "long-tailed", "step", "none")
BY_LABEL = ("ybar", "ybar-inverse")  #: what is imbalanced where samples are kept by their complementary labels
IMBALANCED = ("y", "selector", *BY_LABEL)
BELIEFS = ("uniform", "inverse-size", "true")
RESAMPLINGS = ("over", "under", "over-by-y", "under-by-y")
OPTIMISERS = ("adam",)
DTYPES = ("float32", "float64")
LARGEST = 10**6  #: no rate, decay or ratio is larger, and no count a thousand times larger


def number(key: str, value: Any, low: float, *, above: bool = False, below: float = float("inf")) -> float:
    """A number from ``low`` (or above it) to at most LARGEST (or below ``below``)."""
    top = min(LARGEST, below)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not low <= value <= top or (above and value == low) or value == below:
        start = f"above {low:g}" if above else f"from {low:g}"
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a number {start} to {'below ' if top == below else ''}{top:g}", got)
    return float(value)


def whole(key: str, value: Any, low: int = 1) -> int:
    """A whole number from ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= 1000 * LARGEST:
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a whole number from {low}", got)
    return value


def _positive(key: str, value: Any) -> float:
    return number(key, value, 0, above=True)


def _ratio(key: str, value: Any) -> float:
    return number(key, value, 1)


def _share(key: str, value: Any) -> float:
    return number(key, value, 0, below=1)


def _from_zero(key: str, value: Any) -> float:
    return number(key, value, 0)


def _any_number(key: str, value: Any) -> float:
    return number(key, value, -LARGEST)


def _natural(key: str, value: Any) -> int:
    return whole(key, value, 0)


def _class_list(key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InputError(key, "a list of class ids", repr(value))
    ids = tuple(_natural(key, k) for k in value)
    if len(set(ids)) < len(ids):
        raise InputError(key, "each class once", list(ids))
    return ids


def _classes(key: str, value: Any) -> tuple[int, ...]:
    ids = _class_list(key, value)
    if len(ids) < 2:
        raise InputError(key, "at least two classes", list(ids))
    return ids


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(key, "a name", repr(value))
    return value


def _one_of(*allowed: str) -> Callable[[str, Any], str]:
    return lambda key, value: choice(key, value, allowed)


def _imbalance_of(key: str, value: Any) -> str | None:
    """The default, "y", is None: it leaves keys as they were before there was a choice."""
    name = choice(key, value, IMBALANCED)
    return None if name == "y" else name


def _loss(key: str, value: Any) -> tuple[str, Options]:
    name, options = _with_options(key, value)
    return name, _changed(f"option of loss {name!r}", options, LOSSES[name].options)


def _model(key: str, value: Any) -> tuple[str, Options]:
    name, options = _with_options(key, value)
    return name, _changed(f"option of model {name!r}", options, MODELS.options(name))


def _with_options(key: str, value: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, str | dict):
        raise InputError(key, 'a name, or { name = "...", option = ... } with its options', repr(value))
    return named(value, key)


def _changed(argument: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> Options:
    """Options that differ from their defaults, each of its default's type: what means the same has the same key."""
    for option in options:
        choice(argument, option, defaults)
    typed = {option: _like(f"{argument}, {option}", value, defaults[option]) for option, value in options.items()}
    return tuple(sorted((option, value) for option, value in typed.items() if value != defaults[option]))


def _like(argument: str, value: Any, default: Any) -> Any:
    if isinstance(default, float):
        return _any_number(argument, value)
    if isinstance(default, int):
        return whole(argument, value)
    return _text(argument, value)


#: Every setting of a suite and how its value is read.
SETTINGS: dict[str, Callable[[str, Any], Any]] = {
    "dataset": _text,
    "loss": _loss,
    "lr": _positive,
    "seed": _natural,
    "classes": _classes,
    "test_share": _share,
    "imbalance": _one_of(*IMBALANCES),
    "p": _ratio,
    "minority": _class_list,
    "n_majority": whole,
    "imbalance_of": _imbalance_of,
    "labels": _one_of(*TRANSITIONS),
    "noise": _share,
    "validation": _share,
    "resample": _one_of(*RESAMPLINGS),
    "assume": _one_of(*BELIEFS),
    "weights": _one_of("auto", *WEIGHTINGS),
    "pi": _one_of(*PI_SOURCES),
    "bias": _any_number,
    "beta": _share,
    "judge": _one_of(*BELIEFS),
    "model": _model,
    "optimiser": _one_of(*OPTIMISERS),
    "weight_decay": _from_zero,
    "batch_size": whole,
    "epochs": whole,
    "dtype": _one_of(*DTYPES),
}
NULLABLE = ("weights", "resample")  #: settings for which "none" means none

#: What a grid may vary: candidates of a cell must be comparable by the same held-out labels at the same checkpoints.
TUNABLE = ("lr", "weight_decay", "batch_size", "model", "weights", "pi", "bias", "beta", "assume", "dtype")
