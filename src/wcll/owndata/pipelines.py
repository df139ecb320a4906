"""A scikit-learn Pipeline that ends in a classifier of this package, in a folder; nothing is pickled.

Every transformer is written as its settings and what it has learnt, and made of these again by fitting it to a few rows
and setting what it has learnt. What does not come back as it was is refused, by name, when it is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from wcll import __version__
from wcll.atomic import MODEL, PIPELINE, replacing_folder
from wcll.checks import InputError, InputTypeError, choice, entry
from wcll.estimator import ComplementaryClassifier
from wcll.owndata.folder import check_model, file_digest, is_model_folder, read_content, write_content
from wcll.owndata.transformers import REMEDY, among, written_settings

FORMAT, CONTENT = "wcll-pipeline-1", PIPELINE
FILES = {CONTENT, MODEL}
SCALER = ("mean", "scale", "var")  #: what a scaler has learnt
WORDS = ("passthrough", "drop")  #: that scikit-learn takes in place of a transformer
MOST_COLUMNS = 2**24  #: of a table
DTYPES = {"float64", "float32", "int64", "int32", "bool", "object"}


def save_pipeline(pipeline: Pipeline, folder: str | PathLike[str]) -> None:
    """Write a fitted pipeline of listed transformers and a :class:`ComplementaryClassifier` into a folder.

    Listed are ``SimpleImputer``, ``StandardScaler``, ``OneHotEncoder``, and a ``ColumnTransformer`` or ``Pipeline`` of
    these; others, and settings that cannot be written, are refused by name. Columns that a slice or a function chose
    are written one by one. A folder that is there must be empty, or
    one that this function wrote, which is replaced.
    """
    if type(pipeline) is not Pipeline or not pipeline.steps:
        raise InputTypeError("pipeline", "a Pipeline of scikit-learn", type(pipeline).__name__)
    *steps, (last, classifier) = pipeline.steps
    if not isinstance(classifier, ComplementaryClassifier):
        raise InputError("pipeline", "a ComplementaryClassifier as the last step", type(classifier).__name__)
    check_is_fitted(classifier)
    written_settings(pipeline, {"steps": lambda value: True})
    written = [[name, _checked(step)] for name, step in steps]
    target = Path(folder)
    if target.is_dir() and not is_model_folder(target, FILES, CONTENT):
        other = min({path.name for path in target.iterdir()} - FILES, default="files of others")
        raise InputError("folder", "an empty one, or a saved pipeline", f"{target}, with {other}")
    with replacing_folder(target, "folder", FILES) as draft:
        classifier.save(draft / MODEL)
        content = {"format": FORMAT, "wcll": __version__, "steps": written, "last": last}
        write_content(draft / CONTENT, {**content, "model": file_digest(draft / MODEL)})


def load_pipeline(folder: str | PathLike[str]) -> Pipeline:
    """A pipeline that :func:`save_pipeline` wrote: it predicts as it did, bit for bit. Damaged ones are refused."""
    place = Path(folder)
    path = place / CONTENT
    if not path.is_file():
        raise InputError("folder", "one that save_pipeline wrote", f"{place}, without {CONTENT}")
    content = read_content(path, FORMAT, "save_pipeline")
    check_model(place / MODEL, content, CONTENT)
    classifier = ComplementaryClassifier.load(place / MODEL)
    try:
        steps = _pipeline(content).steps
        return Pipeline([*steps, (entry(content, "last", str), classifier)])
    except InputError as error:
        raise InputError(str(path), "entries that can be used", f"this: {error}") from None
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(str(path), "transformers that can be made again", line) from None


def _checked(step: Any) -> dict[str, Any]:
    """What is written of a step, if the same can be made of it again."""
    plain: dict[str, Any] = json.loads(json.dumps(_plain(step)))
    try:
        same = json.dumps(_plain(_rebuilt(plain))) == json.dumps(plain)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        same = False
    if not same:
        got = f"a {type(step).__name__} that cannot"
        raise InputError("pipeline", "steps that can be made again of what is written", got, REMEDY)
    return plain


def _plain(step: Any) -> dict[str, Any]:
    """What is written of a step."""
    if isinstance(step, str) and step in WORDS:
        return {"kind": step}
    name = type(step).__name__
    if name not in LISTED or type(step) is not LISTED[name][0]:
        raise InputError("pipeline", f"steps among {', '.join(LISTED)}", name, REMEDY)
    if hasattr(step, "_sklearn_output_config"):
        raise InputError("pipeline", f"{name} without set_output", "one with it", REMEDY)
    check_is_fitted(step)
    names = getattr(step, "feature_names_in_", None) if name != "Pipeline" else None
    return {"kind": name, "names": None if names is None else names.tolist(), **LISTED[name][1](step)}


def _rebuilt(plain: Any) -> Any:
    """A step that was written, fitted as it was."""
    kind = choice("kind", entry(plain, "kind", str), [*WORDS, *LISTED])
    if kind in WORDS:
        return kind
    made = LISTED[kind][2](plain)
    if (names := plain.get("names")) is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError("names", "names of columns", "others")
        made.feature_names_in_ = np.array(names, dtype=object)
    return made


def _is_fill(value: Any) -> bool:
    return value is None or type(value) in (str, int, float)


def _plain_array(array: Any, what: str) -> dict[str, Any] | None:
    """Numbers or texts, with their dtype."""
    if array is None:
        return None
    found = np.asarray(array)
    if found.dtype.kind == "U":
        found = found.astype(object)
    texts = found.dtype != object or all(type(value) is str for value in found.ravel())
    if found.dtype.name not in DTYPES or not texts:
        raise InputError("pipeline", f"{what} of numbers, or of text alone", "others", "impute missing values first")
    return {"dtype": found.dtype.name, "values": found.tolist()}


def _array(one: Any, name: str) -> NDArray[Any]:
    """What :func:`_plain_array` wrote."""
    values, dtype = entry(one, "values", list), choice("dtype", entry(one, "dtype", str), DTYPES)
    if dtype == "object" and not all(isinstance(value, str) for value in values):
        raise InputError(name, "texts", "others")
    array = np.array(values, dtype=dtype)
    if array.ndim != 1:
        raise InputError(name, "a list of values", f"shape {array.shape}")
    return array


def _width(plain: Any) -> int:
    """How many columns a transformer takes."""
    width: int = entry(plain, "features", int)
    if not 1 <= width <= MOST_COLUMNS:
        raise InputError("features", f"a number from 1 to {MOST_COLUMNS}", width)
    return width


def _plain_imputer(imputer: SimpleImputer) -> dict[str, Any]:
    yes_no = among(True, False)
    allowed = {
        "strategy": among("mean", "median", "most_frequent", "constant"),
        "fill_value": _is_fill,
        "add_indicator": yes_no,
        "keep_empty_features": yes_no,
    }
    flagged = None if imputer.indicator_ is None else imputer.indicator_.features_.tolist()
    found = imputer.statistics_
    if found.dtype == object and all(type(value) in (int, float) for value in found):
        if imputer._fit_dtype.kind == "O":
            raise InputError("pipeline", "a SimpleImputer of numbers, or of text", "one of objects", REMEDY)
        found = found.astype(np.float64)  # as constants are kept
    statistics = _plain_array(found, "SimpleImputer's statistics")
    return {"settings": written_settings(imputer, allowed), "statistics": statistics, "flagged": flagged}


def _imputer(plain: dict[str, Any]) -> SimpleImputer:
    """Fitted to a row of what it fills in, and the same with a gap where some were missing in training."""
    statistics, flagged = _array(plain.get("statistics"), "statistics"), entry(plain, "flagged", list | None)
    imputer = SimpleImputer(**_checked_settings(plain, SimpleImputer))
    rows = np.tile(statistics, (2, 1))
    rows[1, flagged or []] = np.nan
    return imputer.fit(rows)


def _plain_scaler(scaler: StandardScaler) -> dict[str, Any]:
    settings = written_settings(scaler, dict.fromkeys(("with_mean", "with_std"), among(True, False)))
    state = {name: _plain_array(getattr(scaler, f"{name}_"), "StandardScaler's parameters") for name in SCALER}
    seen = np.asarray(scaler.n_samples_seen_).tolist()
    return {"settings": settings, "features": scaler.n_features_in_, "seen": seen, **state}


def _scaler(plain: dict[str, Any]) -> StandardScaler:
    width = _width(plain)
    state = {name: None if plain.get(name) is None else _array(plain[name], name) for name in SCALER}
    if any(values is not None and len(values) != width for values in state.values()):
        raise InputError("features", "as many as there are parameters", width)
    scaler = StandardScaler(**_checked_settings(plain, StandardScaler)).fit(np.zeros((1, width)))
    for name, values in state.items():
        setattr(scaler, f"{name}_", values)
    seen = entry(plain, "seen", int | float | list)
    scaler.n_samples_seen_ = np.array(seen, dtype=None if isinstance(seen, int) else np.float64)[()]
    return scaler


def _plain_encoder(encoder: OneHotEncoder) -> dict[str, Any]:
    allowed = {
        "categories": lambda value: True,  # those that were found are written
        "handle_unknown": among("error", "ignore"),
        "sparse_output": among(True, False),
        "dtype": among(np.float64, np.float32),
    }
    settings = written_settings(encoder, allowed)
    settings["dtype"] = np.dtype(encoder.dtype).name
    given = not isinstance(settings.pop("categories"), str)
    categories = [_plain_array(found, "OneHotEncoder's categories") for found in encoder.categories_]
    return {"settings": settings, "categories": categories, "given": given}


def _encoder(plain: dict[str, Any]) -> OneHotEncoder:
    categories = [_array(one, "categories") for one in entry(plain, "categories", list)]
    if not categories or not all(len(found) for found in categories):
        raise InputError("categories", "some for every column", "none")
    settings = _checked_settings(plain, OneHotEncoder)
    settings["dtype"] = {"float64": np.float64, "float32": np.float32}[settings["dtype"]]
    encoder = OneHotEncoder(**settings).set_params(categories=[found.astype(object) for found in categories])
    encoder.fit(np.array([[found[0] for found in categories]], dtype=object))
    encoder.categories_ = categories
    return encoder if entry(plain, "given", bool) else encoder.set_params(categories="auto")


def _checked_settings(plain: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Settings by name, as the transformer takes them."""
    settings = dict(entry(plain, "settings", dict))
    for name in settings:
        choice(f"setting of {kind.__name__}", name, kind._get_param_names())
    return settings


def _plain_columns(columns: ColumnTransformer) -> dict[str, Any]:
    allowed = {
        "transformers": lambda value: True,
        "remainder": among(*WORDS),
        "sparse_threshold": lambda value: type(value) in (int, float),
        "verbose_feature_names_out": among(True, False),
    }
    settings = written_settings(columns, allowed)
    del settings["transformers"]
    kept = {name: part for name, part, _ in columns.transformers}
    parts = [
        [name, _plain(kept[name] if isinstance(kept[name], str) else part), _places(columns, where)]
        for name, part, where in columns.transformers_
        if name in kept
    ]
    outputs = {name: [int(part.start), int(part.stop)] for name, part in columns.output_indices_.items()}
    state = {"features": columns.n_features_in_, "sparse": bool(columns.sparse_output_), "outputs": outputs}
    return {"settings": settings, "parts": parts, **state}


def _places(columns: ColumnTransformer, where: Any) -> list[Any]:
    """Columns as a list of names, or of positions."""
    if np.isscalar(where) or (isinstance(where, slice) and isinstance(where.start or where.stop, str)):
        raise InputError("pipeline", "columns as lists of names or positions", repr(where), "write [column]")
    if isinstance(where, slice):
        return list(range(columns.n_features_in_))[where]
    listed: list[Any] = np.asarray(where).tolist()
    if listed and all(type(one) is bool for one in listed):
        return [i for i, taken in enumerate(listed) if taken]
    return listed


def _columns(plain: dict[str, Any]) -> ColumnTransformer:
    """Fitted to nothing but the number of columns, and then given the transformers."""
    width, names = _width(plain), plain.get("names")
    parts = [(str(name), _rebuilt(part), list(where)) for name, part, where in entry(plain, "parts", list)]
    place = {name: i for i, name in enumerate(names or [])}
    outline = [
        (name, "drop" if part == "drop" else "passthrough", [place.get(one, one) for one in where])
        for name, part, where in parts
    ]
    made = ColumnTransformer(outline, **_checked_settings(plain, ColumnTransformer)).fit(np.zeros((1, width)))
    fitted = {name: (part, where) for name, part, where in parts}
    for i, (name, part, _) in enumerate(made.transformers_):
        if name in fitted:
            own, where = fitted[name]
            made.transformers_[i] = (name, part if isinstance(own, str) else own, where)
    made.transformers = [(name, part if isinstance(part, str) else clone(part), where) for name, part, where in parts]
    made.sparse_output_ = entry(plain, "sparse", bool)
    made.output_indices_ = {name: slice(*ends) for name, ends in entry(plain, "outputs", dict).items()}
    return made


def _plain_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    written_settings(pipeline, {"steps": lambda value: True})
    return {"steps": [[name, _plain(step)] for name, step in pipeline.steps]}


def _pipeline(plain: dict[str, Any]) -> Pipeline:
    return Pipeline([(str(name), _rebuilt(step)) for name, step in entry(plain, "steps", list)])


#: Class, what is written of it, and how it is made of that again.
LISTED: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
    "SimpleImputer": (SimpleImputer, _plain_imputer, _imputer),
    "StandardScaler": (StandardScaler, _plain_scaler, _scaler),
    "OneHotEncoder": (OneHotEncoder, _plain_encoder, _encoder),
    "ColumnTransformer": (ColumnTransformer, _plain_columns, _columns),
    "Pipeline": (Pipeline, _plain_pipeline, _pipeline),
}
