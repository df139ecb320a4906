"""What a user hands to the estimator: features, labels, weights, seeds and devices, checked at the border."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from wcll.checks import FloatArray, InputError, InputTypeError, choice, finite_array
from wcll.labels.draw import to_pairs
from wcll.labels.names import NamedLabels, encode_labels

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def check_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any]:  # noqa: N803
    """Features of shape (n, d), or images (n, ...), finite; unsigned bytes become numbers in [0, 1].

    Sets or checks ``n_features_in_`` (and the names of a table's columns) as scikit-learn does.
    """
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()  # noqa: N806
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    if isinstance(X, np.ndarray) and X.ndim > 2:
        array = _check_images(estimator, X, reset=reset)
    else:
        array = validate_data(estimator, X, reset=reset, ensure_all_finite=False, dtype="numeric")
    if np.issubdtype(array.dtype, np.floating):
        _refuse_missing(array, names)
    if array.dtype == np.uint8:
        return array / np.float32(255)
    return np.require(array, requirements="W")  # torch wants arrays that may be written


def _check_images(estimator: Any, array: NDArray[Any], *, reset: bool) -> NDArray[Any]:
    if not np.issubdtype(array.dtype, np.number):
        raise InputTypeError("X", "numbers", array.dtype)
    if reset:
        estimator.n_features_in_ = int(np.prod(array.shape[1:]))
        estimator.image_shape_ = array.shape[1:]
    elif array.shape[1:] != getattr(estimator, "image_shape_", None):
        raise InputError("X", f"images of shape {getattr(estimator, 'image_shape_', None)}", array.shape[1:])
    return array


def _refuse_missing(array: NDArray[Any], names: list[str] | None) -> None:
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = np.argwhere(bad)[0]
    kind = "NaN" if np.isnan(array[tuple(place)]) else "infinity"
    column = f"column {place[1]}" + (f" ({names[place[1]]!r})" if names else "") if array.ndim == 2 else "a pixel"
    raise InputError("X", "finite numbers", f"{kind} in {column}, row {place[0]}", "drop or impute missing values")


def check_labels(y: Any, classes: Any) -> NamedLabels:
    """Complementary labels in any of their forms; a column is flattened with scikit-learn's warning."""
    if y is None:
        raise InputError("y", "labels (fit requires y to be passed, but the target y is None)", None)
    if isinstance(y, torch.Tensor):
        y = y.detach().cpu().numpy()
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if getattr(y, "ndim", 0) == 1 and y.dtype.kind == "f":
        check_classification_targets(np.asarray(y))
    return encode_labels(y, classes)


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """One non-negative number a sample; ones if there are none."""
    if sample_weight is None:
        return np.ones(n)
    weight = finite_array("sample_weight", sample_weight, (n,))
    if (weight < 0).any() or not weight.any():
        raise InputError("sample_weight", "non-negative numbers, not all zero", f"a minimum of {weight.min():g}")
    return weight


def split_sets(
    features: NDArray[Any], labels: NamedLabels, weight: FloatArray
) -> tuple[NDArray[Any], NamedLabels, FloatArray]:
    """Label sets as pairs of sample and label, for losses that take one label a sample."""
    assert labels.mask is not None
    sample, label, share = to_pairs(labels.mask)
    return features[sample], NamedLabels(labels.classes, label, None), weight[sample] * share


def seed_of(random_state: Any) -> int:
    """A seed from an integer, a generator of NumPy's either kind, or fresh entropy."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(check_random_state(random_state).randint(2**31 - 1))


def place(dtype: str, device: str) -> tuple[torch.dtype, torch.device]:
    """The dtype and the device that the user asked for; ``"auto"`` takes a GPU if there is one."""
    kind = DTYPES[choice("dtype", dtype, DTYPES)]
    wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        where = torch.device(wanted)
    except RuntimeError:
        raise InputError("device", "'auto', 'cpu' or 'cuda'", repr(wanted)) from None
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise InputError("device", "a device of this machine", repr(wanted), "torch sees no such GPU; use 'cpu'")
    return kind, where
