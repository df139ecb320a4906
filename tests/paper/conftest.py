"""Data that tests of the paper share."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory):
    """scikit-learn's digits, enlarged, in MNIST's format."""
    folder = tmp_path_factory.mktemp("data")
    images = np.kron(load_digits().images, np.ones((3, 3)))[:, :24, :24].clip(0, 15) * 17
    images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
    labels = load_digits().target.astype(np.uint8)
    (folder / "mnist").mkdir()
    for part, rows in (("train", slice(0, 1400)), ("t10k", slice(1400, None))):
        for name, array in (("images-idx3", images[rows]), ("labels-idx1", labels[rows])):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (folder / "mnist" / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    return folder
