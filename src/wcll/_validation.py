"""Validation of arguments, and the registry of things that users pick by name."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wcll._memory import check_memory
from wcll.exceptions import InputError as InputError
from wcll.exceptions import InputTypeError as InputTypeError
from wcll.exceptions import MissingExtraError as MissingExtraError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SMALLEST = 1e-200  #: sums below it, or above its inverse, lose what is divided by them


def choice(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, else fail and offer the nearest name."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    near = get_close_matches(value, names, n=1) if isinstance(value, str) and len(value) < 100 else []
    remedy = f"did you mean {near[0]!r}?" if near else ""
    shown = repr(value) if isinstance(value, str) else value
    raise InputError(argument, "one of " + ", ".join(map(repr, names)), shown, remedy)


def entry(plain: Any, name: str, kind: Any) -> Any:
    """An entry of what was read from a file, if it is there and of its kind."""
    words = f"an entry of type {getattr(kind, '__name__', kind)}"
    if not isinstance(plain, dict) or name not in plain:
        raise InputError(name, words, "no such entry")
    if not isinstance(plain[name], kind) or (isinstance(plain[name], bool) and kind is not bool):
        raise InputTypeError(name, words, type(plain[name]).__name__)
    return plain[name]


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


def as_array(argument: str, values: Any, expected: str = "an array or a list") -> NDArray[Any]:
    """Anything like an array as a plain one of NumPy's; an error where something would be lost on the way.

    Refused are text, mappings and sets, masked entries, sparse arrays and tensors, tensors without data, rows of
    different lengths.
    """
    if type(values) is np.ndarray:
        return values
    if values is None or isinstance(values, str | bytes | Mapping | Set) or hasattr(values, "toarray"):
        raise InputTypeError(argument, expected, type(values).__name__)
    unmasked(argument, values)
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(values, torch.Tensor):
            return _of_tensor(argument, values)
        return np.asarray(values)
    except InputError:
        raise
    except Exception as error:  # whatever a user's type raises
        raise InputTypeError(argument, "an array, or rows of one length", f"{type(values).__name__}: {error}") from None


def unmasked(argument: str, values: Any) -> None:
    """Fail where values are masked: as plain arrays they would count as what is below the mask."""
    if has_masked(values):
        raise InputError(argument, "an array without masked entries", "masked ones", "fill or drop them")


def has_masked(values: Any) -> bool:
    """Whether an array, or one in a list, hides entries."""
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    nested = (list, tuple, np.ma.MaskedArray)
    return isinstance(values, list | tuple) and any(has_masked(part) for part in values if isinstance(part, nested))


def _of_tensor(argument: str, tensor: Any) -> NDArray[Any]:
    """A torch tensor's numbers; those that NumPy has no type for, such as bfloat16, are wider afterwards."""
    if tensor.is_meta or tensor.is_nested or tensor.is_quantized or "strided" not in str(tensor.layout):
        kind = "no data" if tensor.is_meta else "nested" if tensor.is_nested else f"{tensor.dtype}, {tensor.layout}"
        raise InputTypeError(argument, "a dense tensor with data", kind)
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    narrow = plain.is_floating_point() and plain.dtype.itemsize < 4
    array: NDArray[Any] = (plain.float() if narrow else plain).numpy()
    return array


def numeric(argument: str, values: ArrayLike) -> FloatArray:
    """A float64 array, or an error that says what came instead; neither text nor truth values are numbers."""
    array = as_array(argument, values, "numbers")
    if array.dtype == object and all(map(is_number, array.ravel())):
        array = np.array(array, dtype=np.float64)  # of Python's own numbers
    if array.dtype.kind not in "iuf":
        raise InputTypeError(argument, "numbers", getattr(values, "dtype", type(values).__name__))
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which is seen
        return array.astype(np.float64, copy=False)


def class_weights_array(argument: str, values: ArrayLike, n_classes: int) -> FloatArray:
    """Weights: one a class, none negative, not all zero."""
    array = finite_array(argument, values, (n_classes,))
    if (array < 0).any():
        raise InputError(argument, "no negative weight", f"{array.min():g} for class {array.argmin()}")
    if not array.any():
        raise InputError(argument, "at least one positive weight", "all zero")
    return check_sum(argument, array)


def check_sum(argument: str, array: FloatArray) -> FloatArray:
    """Numbers from 0 whose sum can be divided by."""
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if not SMALLEST < total < 1 / SMALLEST:
        raise InputError(argument, f"numbers whose sum is between {SMALLEST:g} and {1 / SMALLEST:g}", f"{total:g}")
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
    return check_sum("sample_weight", weight)


def transition_matrix(values: ArrayLike, n_classes: int | None = None, *, argument: str = "transition") -> FloatArray:
    """A row-stochastic matrix ``Q[y, ybar] = P(ybar | y)``, rescaled so that every row sums to 1 exactly."""
    matrix = numeric(argument, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(argument, "a square matrix", f"shape {matrix.shape}")
    if len(matrix) < 2:
        raise InputError(argument, "at least two classes", len(matrix))
    if n_classes is not None and len(matrix) != n_classes:
        raise InputError(argument, f"a {n_classes} x {n_classes} matrix", f"{len(matrix)} x {len(matrix)}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError(argument, "probabilities", "negative, NaN or infinite entries")
    with np.errstate(over="ignore"):
        sums = matrix.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > 1e-6:
        found = f"{sums[worst]:g} in row {worst}"
        raise InputError(argument, "rows that sum to 1", found, "Q[y, ybar] = P(ybar | y)")
    stochastic: FloatArray = matrix / sums[:, None]
    return stochastic


def inverse_transition(values: ArrayLike) -> FloatArray:
    """The inverse of a transition matrix, or an error if it is singular."""
    matrix = transition_matrix(values)
    if np.linalg.cond(matrix) > 1e12:
        rank = f"rank {np.linalg.matrix_rank(matrix)} for {len(matrix)} classes"
        remedy = "use a loss that needs no inverse, such as 'forward'"
        raise InputError("transition", "an invertible matrix", rank, remedy)
    inverse: FloatArray = np.linalg.inv(matrix).astype(np.float64)
    return inverse


def class_indices(argument: str, values: ArrayLike, n_classes: int | None = None) -> IntArray:
    """0-based class indices of shape (n,)."""
    array = as_array(argument, values)
    if n_classes is not None:
        check_memory("n_classes", f"counts of {whole('n_classes', n_classes)} classes", 8 * n_classes)
    if array.ndim != 1:
        raise InputError(argument, "one class index a sample, shape (n,)", f"shape {array.shape}")
    if array.size == 0:
        raise InputError(argument, "at least one sample", "none")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputTypeError(argument, "integer class indices", array.dtype, "convert class names to indices first")
    low, high = array.min(), array.max()
    if low < 0:
        raise InputError(argument, "class indices from 0", int(low), "class ids are 0-based")
    if high >= (2**63 if n_classes is None else n_classes):
        raise InputError(argument, f"class indices below {n_classes or 2**63}", int(high), "class ids are 0-based")
    return array.astype(np.int64, copy=False)


def matrix_size(n_classes: Any, least: int = 2) -> int:
    """A number of classes, from ``least``, of which some matrices fit into memory."""
    if whole("n_classes", n_classes) < least:
        raise InputError("n_classes", f"at least {least}", n_classes)
    check_memory("n_classes", f"matrices of {n_classes} classes", 5 * 8 * int(n_classes) ** 2)
    return int(n_classes)


def same_length(first: str, n_first: int, second: str, n_second: int) -> None:
    """Both arguments describe the same samples."""
    if n_first != n_second:
        raise InputError(second, f"{n_first} samples as in {first}", n_second)


def positive(argument: str, value: Any) -> float:
    """A finite number above 0."""
    if not is_number(value) or value <= 0:
        raise InputError(argument, "a number above 0", value)
    return float(value)


def non_negative(argument: str, value: Any) -> float:
    """A finite number from 0."""
    if not is_number(value) or value < 0:
        raise InputError(argument, "a number from 0", value)
    return float(value)


def is_number(value: Any) -> bool:
    """Whether it is a real number that a float can hold."""
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
    if not is_number(value) or not 0 <= value < 1:
        raise InputError(argument, "a share from 0 to below 1", value)
    return float(value)


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
G = TypeVar("G", bound=Callable[..., object])


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to items whose failed look-ups help and whose duplicate names fail at import.

    >>> colours = Registry[int]("colour")
    >>> colours.put("red", 1)
    >>> colours["rod"]
    Traceback (most recent call last):
    wcll._validation.InputError: colour: expected one of 'red', got 'rod'; did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def put(self, name: str, item: T) -> None:
        """Register ``item`` under ``name``."""
        if name in self._items:
            raise RuntimeError(f"{self.kind} {name!r} is registered twice")
        self._items[name] = item

    def __getitem__(self, name: str) -> T:
        return self._items[choice(self.kind, name, self._items)]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Functions(Registry[F], Generic[F]):
    """A registry of plain functions, filled by decorating them."""

    def add(self, name: str) -> Callable[[G], G]:
        """Decorator: register the function under ``name``."""

        def register(function: G) -> G:
            self.put(name, cast(F, function))
            return function

        return register
