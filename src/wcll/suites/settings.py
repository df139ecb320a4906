"""How the values of settings are read from a suite, and what a setting is declared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wcll._validation import FloatArray, choice, numeric, transition_matrix
from wcll.datasets.arrays import read_array
from wcll.datasets.folders import data_folders
from wcll.exceptions import InputError
from wcll.labels.families import told_by_counts
from wcll.losses.base import spec_of
from wcll.models import MODELS
from wcll.models.base import named
from wcll.training.recipe import Recipe, recipe_of

Options = tuple[tuple[str, Any], ...]
Reader = Callable[[str, Any], Any]  #: of a setting's name and its value as written


class Role(Enum):
    """What a setting decides, and so which runs may train together."""

    DATA = "data"  #: which samples and labels there are
    SHARED = "shared"  #: what all runs share that train together
    OWN = "own"  #: what is each run's own


@dataclass(frozen=True)
class Setting:
    """How a field of a trial is declared."""

    role: Role
    read: Reader | None  #: None for fields that follow from others
    tunable: bool  #: a grid may vary it: candidates stay comparable by the same held-out labels at the same checkpoints
    nullable: bool  #: "none" means none


def setting(
    role: Role, read: Reader | None = None, default: Any = MISSING, *, tunable: bool = False, nullable: bool = False
) -> Any:
    """A field of a trial."""
    return field(default=default, metadata={"setting": Setting(role, read, tunable, nullable)})


IMBALANCES = ("eq6", "long-tailed", "step", "shares", "none")
BY_LABEL = ("ybar", "ybar-inverse")  #: what is imbalanced where samples are kept by their complementary labels
IMBALANCED = ("y", "selector", *BY_LABEL)
BELIEFS = (*told_by_counts(), "true")
ESTIMATES = ("repeated", "model", "pairs")  #: Qs that a loss may be told which take more than label counts
RESAMPLINGS = ("over", "under", "over-by-y", "under-by-y")
EVALUATED = ("epochs", "checkpoints")  #: when test and held-out samples are looked at: every time, or where it counts
DTYPES = ("float32", "float64")
NORMALISED = ("standard",)  #: every channel's mean and standard deviation over the training samples
ROUNDED = 1e-2  #: how far from 1 rows of a printed Q may sum
LARGEST = 10**6  #: no rate, decay or ratio is larger, and no count a thousand times larger


def number(key: str, value: Any, low: float, *, above: bool = False, below: float = float("inf")) -> float:
    """A number from ``low`` (or above it) to at most LARGEST (or below ``below``)."""
    top = min(LARGEST, below)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not low <= value <= top or (above and value == low) or value == below:
        start = f"above {low:g}" if above else f"from {low:g}"
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a number {start} to {'below ' if top == below else ''}{top:g}", got)
    return float(value) + 0.0  # 0 and -0 are the same, and have the same key


def whole(key: str, value: Any, low: int = 1, most: int = 1000 * LARGEST) -> int:
    """A whole number from ``low`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= most:
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a whole number from {low} to {most}", got)
    return value


positive = partial(number, low=0, above=True)
ratio = partial(number, low=1)
share = partial(number, low=0, below=1)
from_zero = partial(number, low=0)
any_number = partial(number, low=-LARGEST)
natural = partial(whole, low=0)


def class_list(key: str, value: Any) -> tuple[int, ...]:
    """Class ids, each once."""
    if not isinstance(value, list | tuple) or not value:
        raise InputError(key, "a list of class ids", repr(value))
    ids = tuple(natural(key, k) for k in value)
    if len(set(ids)) < len(ids):
        raise InputError(key, "each class once", list(ids))
    return ids


def classes(key: str, value: Any) -> tuple[int, ...]:
    """Two or more class ids, each once."""
    ids = class_list(key, value)
    if len(ids) < 2:
        raise InputError(key, "at least two classes", list(ids))
    return ids


def shares(key: str, value: Any) -> tuple[float, ...]:
    """Two or more numbers above 0 as shares of their sum: [61, 19, 20] and [0.61, 0.19, 0.2] mean the same."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise InputError(key, "a list of shares, one a class", repr(value), "for example shares = [61, 19, 20]")
    parts = [positive(key, part) for part in value]
    return tuple(round(part / sum(parts), 12) for part in parts)


def matrix(key: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Q as rows of chances, or read from a file: ``"file.npy"``, or ``"file.npz:name"`` for one of several arrays.

    Rows that sum to 1 but for the rounding of printed numbers are rescaled. What counts is what is in it: the rows are
    part of a run's key, and where they were read from is not.
    """
    rows = numeric(key, _read_matrix(key, value) if isinstance(value, str) else value)
    sums = rows.sum(axis=-1, keepdims=True) if rows.ndim == 2 else np.ones(1)
    rows = transition_matrix(rows / sums if (np.abs(sums - 1) < ROUNDED).all() else rows)
    return tuple(tuple(float(chance) for chance in row) for row in rows)


def _read_matrix(key: str, value: str) -> FloatArray:
    """From a file, which is looked for here and in the folders of data."""
    name, _, array = value.partition(":")
    places = [folder / name for folder in (Path(), *data_folders(None))]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise InputError(key, "rows of chances, or a file of them, here or in a folder of data", repr(value))
    return numeric(key, read_array(path, array))


def text(key: str, value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(key, "a name", repr(value))
    return value


def one_of(*allowed: str) -> Callable[[str, Any], str]:
    """A reader of one of these names."""
    return lambda key, value: choice(key, value, allowed)


def imbalance_of(key: str, value: Any) -> str | None:
    """The default, "y", is None: it leaves keys as they were before there was a choice."""
    name = choice(key, value, IMBALANCED)
    return None if name == "y" else name


def folds(key: str, value: Any) -> int:
    """Two or more."""
    return whole(key, value, low=2)


def labels_per_sample(key: str, value: Any) -> int | None:
    """The default, 1, is None, likewise."""
    number = whole(key, value)
    return None if number == 1 else number


def evaluate(key: str, value: Any) -> str | None:
    """The default, "epochs", is None, likewise."""
    name = choice(key, value, EVALUATED)
    return None if name == "epochs" else name


def loss(key: str, value: Any) -> tuple[str, Options]:
    """A loss, and those of its options that differ from their defaults."""
    name, options = _with_options(key, value)
    return name, _changed(f"option of loss {name!r}", options, spec_of(name).options)


def model(key: str, value: Any) -> tuple[str, Options]:
    """A model, and those of its options that differ from their defaults."""
    name, options = _with_options(key, value)
    return name, _changed(f"option of model {name!r}", options, MODELS.options(name))


def training(key: str, value: Any) -> Recipe:
    """A recipe; options that are not named are as the recipe of that name has them."""
    if not isinstance(value, str | dict):
        raise InputError(key, 'a name, or { name = "strong", option = ... } with its options', repr(value))
    return recipe_of(value)


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
        return any_number(argument, value)
    if isinstance(default, int):
        return whole(argument, value, most=LARGEST)
    return text(argument, value)
