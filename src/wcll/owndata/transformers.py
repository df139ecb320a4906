"""Fitted transformers of scikit-learn as plain JSON, and back; those that are not listed are refused by name.

A transformer is rebuilt by fitting it to a few rows that give exactly the written parameters, so that nothing depends
on the attributes that one version of scikit-learn keeps privately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wcll._validation import choice, entry, finite_array
from wcll.exceptions import InputError

NO_EFFECT = {"copy", "n_jobs", "verbose", "force_int_remainder_cols"}  #: settings that change no result
REMEDY = "others cannot be saved without pickling"


def plain_transformer(transformer: Any) -> dict[str, Any]:
    """Name and fitted parameters of a listed transformer, which has the settings that ``wcll train`` gives it.

    >>> plain_transformer(StandardScaler().fit([[1.0], [3.0]]))
    {'name': 'StandardScaler', 'mean': [2.0], 'scale': [1.0]}
    """
    kind = type(transformer)
    name = kind.__name__
    if name not in LISTED or LISTED[name][0] is not kind:
        raise InputError("transformer", "one of " + ", ".join(LISTED), name, REMEDY)
    _, written, _, new = LISTED[name]
    usual = new().get_params(deep=False)
    for setting, value in transformer.get_params(deep=False).items():
        found = name == "OneHotEncoder" and setting == "categories"  # those that were found are written
        if not found and setting not in NO_EFFECT and not _same(value, usual[setting]):
            got = f"{name} with {setting}={value!r}".replace("\n", " ")
            raise InputError("transformer", "settings that can be written", got, REMEDY)
    return {"name": name, **written(transformer)}


def _same(value: Any, usual: Any) -> bool:
    nan = isinstance(value, float) and isinstance(usual, float) and np.isnan(value) and np.isnan(usual)
    return bool(
        nan or (type(value) is type(usual) and isinstance(value, str | int | float | type | None) and value == usual)
    )


def rebuilt_transformer(plain: Any) -> Any:
    """A transformer that :func:`plain_transformer` wrote, fitted as it was; every entry is checked."""
    name = choice("transformer", entry(plain, "name", str), LISTED)
    return LISTED[name][2](plain)


def _plain_imputer(imputer: SimpleImputer) -> dict[str, Any]:
    flagged = [] if imputer.indicator_ is None else imputer.indicator_.features_.tolist()
    return {"statistics": imputer.statistics_.tolist(), "flagged": flagged}


def _imputer(plain: dict[str, Any]) -> SimpleImputer:
    """Means in place of missing numbers, and a column of its own that says where some were missing in training."""
    means = _floats(plain, "statistics")
    flagged = entry(plain, "flagged", list)
    allowed = set(range(len(means)))
    if any(type(i) is not int or i not in allowed for i in flagged) or flagged != sorted(set(flagged)):
        raise InputError("flagged", "positions of columns, each once and in order", flagged)
    rows = np.tile(means, (2, 1))
    rows[1, flagged] = np.nan  # the mean of what is left is the same
    return new_imputer().fit(rows)


def new_imputer() -> SimpleImputer:
    """The one that is used for numbers."""
    return SimpleImputer(strategy="mean", add_indicator=True)


def _plain_scaler(scaler: StandardScaler) -> dict[str, Any]:
    return {"mean": scaler.mean_.tolist(), "scale": scaler.scale_.tolist()}


def _scaler(plain: dict[str, Any]) -> StandardScaler:
    mean, scale = _floats(plain, "mean"), _floats(plain, "scale")
    if len(mean) != len(scale) or not (scale > 0).all():
        raise InputError("scale", f"{len(mean)} numbers above 0", f"{len(scale)} of them, some not")
    scaler = StandardScaler().fit(np.tile(mean, (2, 1)))
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    return scaler


def _plain_encoder(encoder: OneHotEncoder) -> dict[str, Any]:
    return {"categories": [names.tolist() for names in encoder.categories_]}


def _encoder(plain: dict[str, Any]) -> OneHotEncoder:
    listed = entry(plain, "categories", list)
    for names in listed:
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InputError("categories", "a list of names a column", names)
        if names != sorted(set(names)):
            raise InputError("categories", "different names in order", f"{len(names)} that are not")
    encoder = new_encoder([np.array(names, dtype=object) for names in listed])
    return encoder.fit(np.array([[names[0] for names in listed]], dtype=object))


def new_encoder(categories: list[NDArray[Any]] | str = "auto") -> OneHotEncoder:
    """The one that is used for categories: one that is unknown is in no column, which whoever uses it must forbid."""
    return OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False, dtype=np.float32)


def _floats(plain: dict[str, Any], name: str) -> NDArray[np.float64]:
    values = entry(plain, name, list)
    return finite_array(name, values, (len(values),)) if values else np.zeros(0)


#: Class, what is written of it, how it is made of that again, and a new one with the settings that it has.
LISTED: dict[
    str, tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any], Callable[[], BaseEstimator]]
] = {
    "SimpleImputer": (SimpleImputer, _plain_imputer, _imputer, new_imputer),
    "StandardScaler": (StandardScaler, _plain_scaler, _scaler, StandardScaler),
    "OneHotEncoder": (OneHotEncoder, _plain_encoder, _encoder, new_encoder),
}
