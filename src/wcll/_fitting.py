"""What a user hands to the estimator: features, labels, weights, seeds and devices, checked at the border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from wcll._memory import check_memory
from wcll._random import whole_seed
from wcll._validation import FloatArray, IntArray, as_array, choice, distribution
from wcll.exceptions import InputError, InputTypeError, short
from wcll.labels.encoding import NamedLabels, declared_categories, encode_labels, said_of, to_pairs
from wcll.labels.transition import normalised
from wcll.training.runs import Feed, all_finite


def check_features(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Features of shape (n, d), or images (n, ...), as finite floating-point numbers.

    Images of unsigned bytes become numbers in [0, 1]; whether they were bytes is remembered from ``fit``. Sparse
    matrices of SciPy are made dense, if that fits into memory. Sets or checks ``n_features_in_`` (and the names of a
    table's columns) as scikit-learn does.
    """
    if isinstance(X, torch.Tensor | np.ma.MaskedArray | list | tuple):
        X = as_array("X", X)
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    if isinstance(X, np.ndarray) and X.ndim > 2:
        array = _check_images(estimator, X, reset=reset)
    else:
        if reset:  # an earlier fit may have been on images
            vars(estimator).pop("image_shape_", None)
        dtype = estimator.dtype if reset else estimator.fitted_["dtype"]
        if issparse(X) or hasattr(X, "sparse"):  # as tables of pandas have it whose columns are sparse
            _check_dense_size(X, dtype)
        _refuse_text(X)
        try:
            checked = validate_data(
                estimator, X, reset=reset, accept_sparse="csr", ensure_all_finite=False, dtype="numeric"
            )
            array = _dense(checked, dtype) if issparse(checked) else checked
        except TypeError as error:
            raise InputTypeError("X", "numbers in an array or a table", str(error).splitlines()[0]) from None
        except (ValueError, OverflowError) as error:
            raise InputError("X", "numbers in an array or a table, as in fit", str(error)) from None
    if array.dtype.kind not in "biuf":
        raise InputTypeError("X", "real numbers", array.dtype)
    kind = np.float32 if array.dtype.kind in "bu" or array.dtype in (np.float16, np.float32) else np.float64
    plain = np.require(array.astype(kind, copy=False), requirements=["C", "W"])  # as torch wants it
    _refuse_missing(plain, names)
    return plain


def _check_dense_size(X: Any, dtype: str) -> None:
    """Fail, before anything is made, if a sparse matrix would not fit as a dense one.

    Beside each number there is room for another in float64, as predictions take it.
    """
    if X.ndim != 2:
        raise InputError("X", "a matrix of shape (n, d)", f"shape {X.shape}")
    n, d = map(int, X.shape)
    what = f"{n} samples of {d} features as dense numbers, which models take,"
    check_memory(
        "X", what, (np.dtype(dtype).itemsize + 8) * n * d, "take fewer features, or some of the rows at a time"
    )


def _dense(checked: Any, dtype: str) -> NDArray[Any]:
    """Sparse numbers as dense ones in the dtype of the model; if it cannot hold them, in their own, to say which."""
    with np.errstate(over="ignore"):
        wanted = checked.astype(dtype)
    array: NDArray[Any] = (wanted if np.isfinite(wanted.data).all() else checked).toarray()
    return array


def _refuse_text(X: Any) -> None:
    """Text is no number, even if it looks like one; arrays of objects and tables may hold some."""
    if not hasattr(X, "dtypes") and getattr(getattr(X, "dtype", None), "kind", None) != "O":
        return
    array = np.asarray(X)
    if array.dtype == object and any(isinstance(value, str | bytes) for value in array.ravel()):
        raise InputTypeError("X", "numbers", "text")


def _check_images(estimator: Any, array: NDArray[Any], *, reset: bool) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise InputTypeError("X", "real numbers", array.dtype)
    if array.size == 0:
        raise InputError("X", "images with pixels", f"shape {array.shape}")
    shape, is_bytes = array.shape[1:], array.dtype == np.uint8
    if reset:
        estimator.n_features_in_ = int(np.prod(shape))
        estimator.image_shape_, estimator.image_bytes_ = shape, is_bytes
    elif not hasattr(estimator, "image_shape_"):
        raise InputError("X", f"a table of {estimator.n_features_in_} features, as in fit", f"shape {array.shape}")
    elif shape != estimator.image_shape_:
        raise InputError("X", f"images of shape {estimator.image_shape_}", shape)
    elif is_bytes != estimator.image_bytes_:
        expected = "unsigned bytes" if estimator.image_bytes_ else "numbers that are not unsigned bytes"
        raise InputTypeError("X", f"{expected}, as in fit", array.dtype, "their scale would differ")
    return array / np.float32(255) if is_bytes else array


def _refuse_missing(array: NDArray[Any], names: list[str] | None) -> None:
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = np.argwhere(bad)[0]
    kind = "NaN" if np.isnan(array[tuple(place)]) else "infinity"
    column = f"column {place[1]}" + (f" ({names[place[1]]!r})" if names else "") if array.ndim == 2 else "a pixel"
    raise InputError("X", "finite numbers", f"{kind} in {column}, row {place[0]}", "drop or impute missing values")


def to_tensor(features: NDArray[Any], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Features as a tensor; numbers that the dtype cannot hold are an error."""
    tensor = torch.as_tensor(features, dtype=dtype, device=device)
    if not all_finite(tensor):
        largest = float(np.abs(features).max())
        raise InputError("X", f"numbers that {dtype} can hold", f"{largest:g}", "scale X or use dtype='float64'")
    return tensor


def called(y: Any) -> str | None:
    """What a column of pandas is called, if it has a name: messages call labels so."""
    column = y.iloc[:, 0] if hasattr(y, "iloc") and np.shape(y)[1:] == (1,) else y
    name = getattr(column, "name", None)
    return short(name) if isinstance(name, str) and name.strip() else None


def check_labels(y: Any, classes: Any, n: int | None = None) -> NamedLabels:
    """Complementary labels in any of their forms, of ``n`` samples if that is known."""
    with said_of(called(y), "y", "ybar"):
        labels = _read_labels(y, classes)
        if n not in (None, len(labels)):
            raise InputError("y", f"{n} labels, one for each sample of X", len(labels))
    return labels


def _read_labels(y: Any, classes: Any) -> NamedLabels:
    """A column is flattened with scikit-learn's warning."""
    if y is None:
        raise InputError("y", "labels (fit requires y to be passed, but the target y is None)", None)
    if isinstance(y, torch.Tensor):
        if y.is_meta or y.is_nested or y.layout != torch.strided or y.dtype == torch.bfloat16:
            kind = "no data" if y.is_meta else "nested" if y.is_nested else f"{y.dtype}, {y.layout}"
            raise InputTypeError("y", "a dense tensor of whole numbers or a boolean mask", kind)
        y = as_array("y", y)
    if hasattr(y, "toarray"):
        raise InputTypeError("y", "an array or a list of labels", type(y).__name__)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not np.ma.is_masked(y):
        classes = declared_categories(y) if classes is None else classes
        y = column_or_1d(y, warn=True)
    labels = encode_labels(y, classes)
    if labels.index is not None and labels.classes.dtype.kind == "f":
        try:
            check_classification_targets(labels.classes)
        except ValueError as error:
            raise InputError("y", "class names as text or whole numbers", str(error)) from None
    return labels


@dataclass(frozen=True)
class Samples:
    """What a user hands to ``fit``, checked."""

    features: NDArray[Any]
    labels: NamedLabels
    weight: FloatArray

    def split(self) -> Samples:
        """Label sets as pairs of sample and label, for losses that take one label a sample."""
        assert self.labels.mask is not None
        sample, label, share = to_pairs(self.labels.mask)
        labels = NamedLabels(self.labels.classes, label, None)
        return Samples(self.features[sample], labels, self.weight[sample] * share)


class Stream(Protocol):
    """Samples that do not fit into memory: how many, what their labels are, and some of them that stand for all."""

    @property
    def n(self) -> int:
        """How many there are."""

    @property
    def totals(self) -> FloatArray:
        """How often each class is a label; of several labels of a sample, each counts as its share."""

    @property
    def x(self) -> NDArray[Any]:
        """Features of those that stand for all."""

    @property
    def y(self) -> Any:
        """Their labels."""

    @property
    def groups(self) -> NDArray[Any] | None:
        """Their groups, if there are any."""

    def feed(self, *, pairs: bool, batch_size: int, seed: int, dtype: str) -> Feed:
        """All of them, for an engine; label sets as pairs of sample and label, if asked for."""


def check_target_prior(value: Any, n_classes: int) -> FloatArray | None:
    """Class shares that predictions are to be for: equal ones, or a user's own; None for those of training."""
    if value is None:
        return None
    if isinstance(value, str):
        choice("target_prior", value, ["balanced"])
        return np.full(n_classes, 1 / n_classes)
    shares = distribution("target_prior", value, n_classes)
    if not shares.all():
        remedy = "give a class that is not expected a small share"
        raise InputError("target_prior", "shares above 0", f"0 for class {int(shares.argmin())}", remedy)
    return normalised(shares)


def check_groups(groups: Any, n: int) -> IntArray | None:
    """Groups of samples as numbers; None if there are none."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.ndim != 1 or len(names) != n:
        raise InputError("groups", f"{n} groups, one for each sample of X", f"shape {names.shape}")
    try:
        member: IntArray = np.unique(names, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise InputTypeError("groups", "names or numbers", "a mixture of both") from None
    return member


def check_neighbor_features(features: Any, X: Any) -> NDArray[Any] | None:
    """Features in which neighbours are found, one row per sample of X; None if there are none."""
    if features is None:
        return None
    array, n = as_array("neighbor_features", features), X.shape[0] if hasattr(X, "shape") else len(X)
    if array.dtype.kind not in "biuf":
        raise InputTypeError("neighbor_features", "numbers", array.dtype)
    if array.ndim != 2 or len(array) != n or not array.size:
        raise InputError("neighbor_features", f"numbers of shape ({n}, m), a row per sample", f"shape {array.shape}")
    with np.errstate(over="ignore"):
        if not np.isfinite(array.astype(np.float32)).all():
            raise InputError(
                "neighbor_features", "finite numbers that float32 can hold", "NaN, infinity or larger ones"
            )
    return array


def seed_of(random_state: Any) -> int:
    """A seed from an integer, a generator of NumPy's either kind, or fresh entropy."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if random_state is None or isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(check_random_state(random_state).randint(2**31 - 1))
    return whole_seed(random_state)
