"""The small digits that come with scikit-learn: 8 x 8 pixels with values from 0 to 16."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wcll.datasets.base import Content, Split
from wcll.datasets.entries import DATASETS, DatasetSpec


def read_digits(_: Path) -> Content:
    """All of them; there is no official test split."""
    from sklearn.datasets import load_digits  # it takes a second to load, and only these data need it

    digits = load_digits()
    train = Split(digits.images.astype(np.uint8), digits.target.astype(np.int64))
    return Content(tuple("0123456789"), train, None, scale=16.0)


DATASETS.register(DatasetSpec(name="digits", read=read_digits, count=lambda _: (1797, None), installed="scikit-learn"))
