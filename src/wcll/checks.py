"""Checks of arguments: each returns what may be used, or raises an error that says what is wrong."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wcll.errors import InputError as InputError
from wcll.errors import InputTypeError as InputTypeError
from wcll.errors import MissingExtraError as MissingExtraError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def choice(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, else fail and offer the nearest name."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    near = get_close_matches(str(value), names, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else ""
    raise InputError(argument, "one of " + ", ".join(map(repr, names)), repr(value), remedy)


def extra(module: str, name: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(module, "an installed package", "none", f"pip install 'wcll[{name}]'") from None


def finite_array(argument: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A float64 array of the given shape without NaN or infinity."""
    array = numeric(argument, values)
    if array.shape != shape:
        raise InputError(argument, f"shape {shape}", array.shape)
    if not np.isfinite(array).all():
        raise InputError(argument, "finite numbers", "NaN or infinity")
    return array


def numeric(argument: str, values: ArrayLike) -> FloatArray:
    """A float64 array, or an error that says what came instead."""
    unmasked(argument, values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(argument, "numbers", getattr(values, "dtype", type(values).__name__)) from None


def unmasked(argument: str, values: Any) -> None:
    """Fail where values are masked: as plain arrays they would count as what is below the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise InputError(argument, "a value everywhere", f"a masked one in row {row}", "drop such rows")


def class_weights_array(argument: str, values: ArrayLike, n_classes: int) -> FloatArray:
    """Weights: one a class, none negative, not all zero."""
    array = finite_array(argument, values, (n_classes,))
    if (array < 0).any():
        raise InputError(argument, "no negative weight", f"{array.min():g} for class {array.argmin()}")
    if not array.any():
        raise InputError(argument, "at least one positive weight", "all zero")
    return array


def distribution(argument: str, values: ArrayLike, n_classes: int) -> FloatArray:
    """Probabilities of ``n_classes`` classes: none negative, sum 1."""
    array = class_weights_array(argument, values, n_classes)
    if not np.isclose(array.sum(), 1.0, atol=1e-6):
        raise InputError(argument, "probabilities that sum to 1", f"a sum of {array.sum():g}")
    return array


def sample_weights(values: ArrayLike | None, n: int) -> FloatArray:
    """One non-negative number a sample, not all zero; ones if there are none."""
    if values is None:
        return np.ones(n)
    weight = finite_array("sample_weight", values, (n,))
    if (weight < 0).any() or not weight.any():
        raise InputError("sample_weight", "non-negative numbers, not all zero", f"a minimum of {weight.min():g}")
    return weight


def transition_matrix(values: ArrayLike, n_classes: int | None = None) -> FloatArray:
    """A row-stochastic matrix ``Q[y, ybar] = P(ybar | y)``, rescaled so that every row sums to 1 exactly."""
    matrix = numeric("transition", values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError("transition", "a square matrix", f"shape {matrix.shape}")
    if n_classes is not None and len(matrix) != n_classes:
        raise InputError("transition", f"a {n_classes} x {n_classes} matrix", f"{len(matrix)} x {len(matrix)}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError("transition", "probabilities", "negative, NaN or infinite entries")
    sums = matrix.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > 1e-6:
        found = f"{sums[worst]:g} in row {worst}"
        raise InputError("transition", "rows that sum to 1", found, "Q[y, ybar] = P(ybar | y)")
    stochastic: FloatArray = matrix / sums[:, None]
    return stochastic


def inverse_transition(values: ArrayLike, n_classes: int | None = None) -> FloatArray:
    """The inverse of a transition matrix, or an error if it is singular."""
    matrix = transition_matrix(values, n_classes)
    if np.linalg.cond(matrix) > 1e12:
        rank = f"rank {np.linalg.matrix_rank(matrix)} for {len(matrix)} classes"
        remedy = "use a loss that needs no inverse, such as 'forward'"
        raise InputError("transition", "an invertible matrix", rank, remedy)
    inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64)
    return inverse


def class_indices(argument: str, values: ArrayLike, n_classes: int | None = None) -> IntArray:
    """0-based class indices of shape (n,)."""
    unmasked(argument, values)
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(argument, "one class index a sample, shape (n,)", f"shape {array.shape}")
    if array.size == 0:
        raise InputError(argument, "at least one sample", "none")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputTypeError(argument, "integer class indices", array.dtype, "convert class names to indices first")
    low, high = array.min(), array.max()
    if low < 0:
        raise InputError(argument, "class indices from 0", int(low), "class ids are 0-based")
    if n_classes is not None and high >= n_classes:
        raise InputError(argument, f"class indices below {n_classes}", int(high), "class ids are 0-based")
    return array.astype(np.int64, copy=False)


def same_length(first: str, n_first: int, second: str, n_second: int) -> None:
    """Both arguments describe the same samples."""
    if n_first != n_second:
        raise InputError(second, f"{n_first} samples as in {first}", n_second)


def positive(argument: str, value: Any) -> float:
    """A finite number above 0."""
    if not _is_number(value) or value <= 0:
        raise InputError(argument, "a number above 0", value)
    return float(value)


def non_negative(argument: str, value: Any) -> float:
    """A finite number from 0."""
    if not _is_number(value) or value < 0:
        raise InputError(argument, "a number from 0", value)
    return float(value)


def _is_number(value: Any) -> bool:
    """A real number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of a whole number that is too large
        return False


def whole(argument: str, value: Any) -> int:
    """A whole number from 1, of at most 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(argument, "a whole number from 1", repr(value))
    if value >= 2**63:
        raise InputError(argument, "a whole number of at most 64 bits", "a larger one")
    return int(value)


def share(argument: str, value: Any) -> float:
    """A number from 0 to below 1."""
    if not _is_number(value) or not 0 <= value < 1:
        raise InputError(argument, "a share from 0 to below 1", value)
    return float(value)
