"""Readers of data in official formats: where they are looked for, whether they are the official ones, downloads."""

from wcll.datasets import cifar, digits, idx, manifest, tiny_imagenet  # noqa: F401  (they fill the registry)
from wcll.datasets.base import Dataset, Split
from wcll.datasets.entries import DATASETS, DatasetSpec
from wcll.datasets.load import load_dataset

__all__ = ["DATASETS", "Dataset", "DatasetSpec", "Split", "load_dataset"]
