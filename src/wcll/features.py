"""Features as users have them (arrays, tensors, tables, images), checked and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from wcll.checks import InputError, InputTypeError


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
