"""Features of a few training samples, kept beside a model: what is made of the model elsewhere is checked on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from wcll.checks import InputError, entry
from wcll.owndata.columns import Column
from wcll.owndata.folder import EXAMPLES, OwnModel
from wcll.owndata.preprocessing import Features, Preprocessing
from wcll.persistence import read_model, write_model

KEPT = 16  #: samples, from the first to the last


def write_examples(folder: Path, own: OwnModel, features: Features) -> None:
    """Keep some of the samples, without labels; values of a table as they are before any transformer."""
    n = len(features) if isinstance(features, np.ndarray) else len(next(iter(features.values())))
    rows = np.unique(np.linspace(0, n - 1, KEPT).astype(np.int64))
    texts: list[Any] = []
    if isinstance(features, np.ndarray):
        array = features[rows] if features.dtype == np.uint8 else features[rows].astype(np.float64)
    else:
        array, words = own.preprocessing.columns({name: column.take(rows) for name, column in features.items()})
        texts = words.tolist()
    write_model(folder / EXAMPLES, {"x": torch.from_numpy(np.ascontiguousarray(array))}, {"texts": texts})


def read_examples(folder: Path, own: OwnModel) -> Features:
    """The samples that were kept, as they were read."""
    path = folder / EXAMPLES
    if not path.is_file():
        raise InputError(
            "model", "samples to check the file on", f"no {EXAMPLES} in {folder}", "name some: --check DATA"
        )
    header, tensors = read_model(path)
    x, texts = tensors.get("x"), entry(header, "texts", list)
    if x is None or not len(x):
        raise InputError(str(path), "samples", "none")
    return _table(path, x.numpy(), texts, own.preprocessing) if own.preprocessing.kinds else x.numpy()


def _table(path: Path, numbers: Any, texts: list[Any], preprocessing: Preprocessing) -> dict[str, Column]:
    """Columns of a table, each from where its kind is kept."""
    kinds = preprocessing.kinds
    wide = sum(kind == "text" for kind in kinds.values())
    words = np.array(texts, dtype=object)
    fits = words.shape == (len(numbers), wide) and all(isinstance(word, str) for word in words.ravel())
    if numbers.shape[1:] != (len(kinds) - wide,) or numbers.dtype != np.float64 or not fits:
        raise InputError(str(path), "samples of the model's columns", "others")
    columns = {"number": iter(numbers.T), "text": iter(words.T)}
    return {
        name: Column(path, name, values.tolist() if kind == "text" else values, kind)  # type: ignore[arg-type]
        for name, kind in kinds.items()
        for values in [next(columns["text" if kind == "text" else "number"])]
    }
