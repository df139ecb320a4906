"""Data that tests of running share."""

import pytest

from wcll.datasets import load_dataset


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")
