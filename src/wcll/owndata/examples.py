"""Samples that nobody gave, such as a model takes: what is made of the model elsewhere is checked on them.

Rows of training would be better, but they are the user's, and a folder with a model may go to others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wcll._random import stream
from wcll._validation import FloatArray
from wcll.owndata.columns import Column
from wcll.owndata.folder import OwnModel
from wcll.owndata.preprocessing import Features, Preprocessing

MADE_UP = 16  #: samples
MISSING = 0.1  #: of the numbers in a table


def made_up(own: OwnModel) -> Features:
    """Numbers around the means of training, some of them missing; every category; images of noise."""
    rng, preprocessing = stream(0, "test", "made-up"), own.preprocessing
    if preprocessing.n_features is None:
        shape = (MADE_UP, *own.classifier.image_shape_)
        noise: NDArray[np.uint8] = rng.integers(0, 256, shape, dtype=np.uint8)
        return noise if own.classifier.image_bytes_ else noise / 255
    wide = preprocessing.width or sum(kind != "text" for kind in preprocessing.kinds.values())
    numbers = _numbers(preprocessing, wide, rng)
    return numbers if preprocessing.width else _table(preprocessing, numbers)


def _numbers(preprocessing: Preprocessing, wide: int, rng: np.random.Generator) -> FloatArray:
    """As spread as in training."""
    numbers: FloatArray = rng.standard_normal((MADE_UP, wide))
    if preprocessing.steps:
        scaler = preprocessing.steps[-1]
        numbers = scaler.mean_[:wide] + scaler.scale_[:wide] * numbers  # what is behind them says what was missing
    if len(preprocessing.steps) > 1:
        numbers[rng.random(numbers.shape) < MISSING] = np.nan
    return numbers


def _table(preprocessing: Preprocessing, numbers: FloatArray) -> dict[str, Column]:
    """Columns by name; texts are the categories of theirs, one after the other, and last a missing one."""
    categories = iter(() if preprocessing.encoder is None else preprocessing.encoder.categories_)
    columns, table = iter(numbers.T), {}
    for name, kind in preprocessing.kinds.items():
        known = [*next(categories), ""] if kind == "text" else []
        values = [str(known[i % len(known)]) for i in range(MADE_UP)] if known else next(columns)
        table[name] = Column(Path("made-up"), name, values, kind)  # type: ignore[arg-type]
    return table
