"""How the columns of a table become the numbers that a model takes; fitted once, written as JSON, the same ever after.

Numbers and dates (in days): missing ones are the mean, with a column that says so, then mean 0 and deviation 1.
Text: a column for every category, a missing one counting as one of its own if training had some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from wcll._memory import check_memory
from wcll._validation import FloatArray, choice, entry
from wcll.datasets.base import some_names
from wcll.exceptions import InputError
from wcll.owndata.columns import SHOWN, Column
from wcll.owndata.transformers import new_encoder, new_imputer, plain_transformer, rebuilt_transformer

KINDS = ("number", "date", "text")
FEW = 20  #: different texts of a column that may always be categories
NEARLY = 0.5  #: the share of rows with a text of their own from which on a column is taken for names of rows

BLOCK = 2048  #: rows that are scaled together, so that they stay in the processor's own memory

Features = Mapping[str, Column] | NDArray[Any]


@dataclass(frozen=True)
class Held:
    """What a column holds."""

    path: Path
    name: str
    kind: str
    there: int  #: rows with a value
    different: int = 0  #: texts
    example: str = ""  #: the first of them

    @staticmethod
    def of(column: Column, kind: str) -> Held:
        """By a look at every row."""
        if kind == "text":
            there = [text for text in column.texts() if text]
            return Held(column.path, column.name, kind, len(there), len(set(there)), there[0] if there else "")
        values = column.numbers() if kind == "number" else column.dates() if kind == "date" else np.zeros(0)
        return Held(column.path, column.name, kind, int((~np.isnan(values)).sum()))


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Fitted transformers, and the columns that they take; none for images, whose pixels are taken as they are."""

    kinds: Mapping[str, str]  #: of columns by name, in order; none for arrays
    width: int  #: features of an array, if it is one
    steps: tuple[Any, ...] = ()  #: for numbers and dates, one after the other
    encoder: OneHotEncoder | None = None  #: for text

    @staticmethod
    def fit(features: Features, categories: Sequence[str] = ()) -> tuple[Preprocessing, NDArray[Any], list[str]]:
        """Fitted to features; these as numbers; and what is to be said of them."""
        if isinstance(features, np.ndarray):
            return _fit_array(features)
        held = (Held.of(column, "text" if name in categories else column.kind) for name, column in features.items())
        kinds, notes = settled_kinds(held)
        new = Preprocessing(kinds, 0)
        numbers, texts = new._numbers(features), new._texts(features)
        steps: list[Any] = []
        if numbers.shape[1]:
            for step in (new_imputer(), StandardScaler()):
                numbers = step.fit_transform(numbers)
                steps.append(step)
        encoder = None
        if texts.shape[1]:
            encoder = new_encoder()
            encoder.fit(texts)
        fitted = Preprocessing(kinds, 0, tuple(steps), encoder)
        return fitted, fitted.transform(features), notes

    def transform(self, features: Features, *, ignore_unknown: bool = False) -> NDArray[Any]:
        """Features as a model takes them; columns that are not among those of training are left out."""
        if isinstance(features, np.ndarray):
            return self._transform_array(features)
        if not self.kinds:
            expected = f"arrays of {self.width} features" if self.width else "images"
            raise InputError("data", f"{expected}, as in training", "a table")
        self._check_columns(features)
        numbers = self._scaled(features)
        if self.encoder is None:
            return numbers
        texts = self._texts(features)
        if not ignore_unknown:
            self._check_known(features, texts)
        wide = sum(map(len, self.encoder.categories_)) + numbers.shape[1]
        check_memory("data", f"{len(texts)} rows of {wide} numbers", 3 * 4 * wide * len(texts))
        return np.hstack([numbers, self.encoder.transform(texts)])

    def columns(self, features: Mapping[str, Column]) -> tuple[FloatArray, NDArray[Any]]:
        """Columns of numbers and dates, NaN where a value is missing, and those of text, before any transformer."""
        self._check_columns(features)
        return self._numbers(features), self._texts(features)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and names, for JSON."""
        return {
            "columns": [{"name": name, "kind": kind} for name, kind in self.kinds.items()],
            "width": self.width,
            "steps": [plain_transformer(step) for step in self.steps],
            "encoder": None if self.encoder is None else plain_transformer(self.encoder),
        }

    @staticmethod
    def from_dict(plain: Any) -> Preprocessing:
        """What :meth:`to_dict` wrote; whatever does not fit together is refused."""
        columns = entry(plain, "columns", list)
        kinds = {entry(one, "name", str): choice("kind", entry(one, "kind", str), KINDS) for one in columns}
        encoder = entry(plain, "encoder", dict | None)
        new = Preprocessing(
            kinds,
            entry(plain, "width", int),
            tuple(rebuilt_transformer(step) for step in entry(plain, "steps", list)),
            None if encoder is None else rebuilt_transformer(encoder),
        )
        new._check_fit(len(columns))
        return new

    @property
    def n_features(self) -> int | None:
        """How many numbers a sample becomes; None for images."""
        if not self.kinds and not self.width:
            return None
        numbers = len(self.steps[-1].mean_) if self.steps else 0
        return numbers + (0 if self.encoder is None else sum(map(len, self.encoder.categories_)))

    def _check_fit(self, columns: int) -> None:
        """Fail unless steps fit to columns and to each other."""
        numbers = self.width or sum(kind != "text" for kind in self.kinds.values())
        texts = sum(kind == "text" for kind in self.kinds.values())
        sizes = [step.n_features_in_ for step in self.steps]
        if [type(step).__name__ for step in self.steps] not in (
            [],
            ["StandardScaler"],
            ["SimpleImputer", "StandardScaler"],
        ):
            raise InputError("steps", "SimpleImputer and StandardScaler", [type(step).__name__ for step in self.steps])
        flagged = len(self.steps[0].indicator_.features_) if len(sizes) == 2 else 0
        wanted = [numbers, numbers + flagged][-len(sizes) :] if sizes else []
        is_encoder = self.encoder is None or isinstance(self.encoder, OneHotEncoder)
        encoded = self.encoder.n_features_in_ if self.encoder is not None and is_encoder else 0
        if (
            len(self.kinds) != columns
            or sizes != wanted
            or bool(sizes) != bool(numbers)
            or not is_encoder
            or encoded != texts
        ):
            raise InputError("columns", "transformers that fit to them", "others")

    def _check_columns(self, features: Mapping[str, Column]) -> None:
        if missing := [name for name in self.kinds if name not in features]:
            path = next((column.path for column in features.values()), "data")  # none may be left
            raise InputError(
                str(path), f"the columns of training, {some_names(list(self.kinds))}", f"no {missing[0]!r}"
            )

    def _numbers(self, features: Mapping[str, Column]) -> FloatArray:
        """Columns of numbers and dates."""
        found = self._number_columns(features)
        return np.stack(found, axis=1) if found else np.zeros((len(next(iter(features.values()))), 0))

    def _number_columns(self, features: Mapping[str, Column]) -> list[FloatArray]:
        return [
            features[name].numbers() if kind == "number" else features[name].dates()
            for name, kind in self.kinds.items()
            if kind != "text"
        ]

    def _scaled(self, features: Mapping[str, Column]) -> NDArray[np.float32]:
        """What the steps make of numbers and dates, bit for bit; some rows at a time, which is several times faster."""
        columns, n = self._number_columns(features), len(next(iter(features.values())))
        if not columns:
            return np.zeros((n, 0), np.float32)
        imputer, scaler = self.steps
        mean, scale, flagged = scaler.mean_[:, None], scaler.scale_[:, None], imputer.indicator_.features_
        scaled = np.empty((n, len(mean)), np.float32)
        for start in range(0, n, BLOCK):
            block = np.stack([column[start : start + BLOCK] for column in columns])
            missing = np.isnan(block)
            if missing.any():
                block = np.where(missing, imputer.statistics_[:, None], block)
            block = np.concatenate([block, missing[flagged]]) if len(flagged) else block
            scaled[start : start + BLOCK] = ((block - mean) / scale).T
        return scaled

    def _texts(self, features: Mapping[str, Column]) -> NDArray[Any]:
        n = len(next(iter(features.values())))
        found = [features[name].texts() for name, kind in self.kinds.items() if kind == "text"]
        return np.array(found, dtype=object).T if found else np.zeros((n, 0), dtype=object)

    def _check_known(self, features: Mapping[str, Column], texts: NDArray[Any]) -> None:
        """Fail where a category was not there in training; a missing one is in no column then, as any is imputed."""
        assert self.encoder is not None
        names = [name for name, kind in self.kinds.items() if kind == "text"]
        for j, name in enumerate(names):
            known = set(self.encoder.categories_[j].tolist())
            if odd := sorted(set(texts[:, j].tolist()) - known - {""}):
                row = texts[:, j].tolist().index(odd[0]) + features[name].first
                expected = f"categories of column {name!r} among {some_names(sorted(known - {''}))}"
                remedy = "--unknown-category ignore predicts without it"
                raise InputError(str(features[name].path), expected, f"{odd[0][:SHOWN]!r} in row {row}", remedy)

    def _transform_array(self, features: NDArray[Any]) -> NDArray[Any]:
        if self.kinds:
            raise InputError("data", f"a table with columns {some_names(list(self.kinds))}, as in training", "arrays")
        if not self.width:
            return features
        if features.ndim != 2 or features.shape[1] != self.width:
            raise InputError("data", f"{self.width} features a sample, as in training", f"shape {features.shape}")
        numbers = features
        for step in self.steps:
            numbers = step.transform(numbers.astype(np.float64))
        return numbers.astype(np.float32)


def _fit_array(features: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], list[str]]:
    if features.ndim > 2:  # images
        return Preprocessing({}, 0), features, []
    scaler = StandardScaler().fit(features.astype(np.float64))
    new = Preprocessing({}, features.shape[1], (scaler,))
    return new, new.transform(features), []


def settled_kinds(columns: Iterable[Held]) -> tuple[dict[str, str], list[str]]:
    """What each column is, without those that hold nothing; and what is to be said of them."""
    kinds: dict[str, str] = {}
    notes: list[str] = []
    path: Path | str = "data"
    for column in columns:
        path = column.path
        if column.kind not in KINDS:
            remedy = f"leave it out: --ignore {column.name}"
            got = f"another kind in {column.name!r}"
            raise InputError(str(path), "columns of numbers, dates or text", got, remedy)
        if not column.there:
            notes.append(f"column {column.name!r} holds no value, and is left out")
            continue
        if column.different > FEW and column.different > NEARLY * column.there:
            raise too_different(column)
        kinds[column.name] = column.kind
    if not kinds:
        raise InputError(str(path), "at least one column of features", "none")
    return kinds, notes


def too_different(column: Held) -> InputError:
    """Nearly every row has a text of its own: nothing can be learnt from it."""
    told = f"{column.different} different texts in {column.there} rows of column {column.name!r}"
    got, remedy = f"{told}, such as {column.example[:SHOWN]!r}", f"leave it out: --ignore {column.name}"
    return InputError(str(column.path), "numbers, dates (2024-05-31) or categories that come again", got, remedy)
