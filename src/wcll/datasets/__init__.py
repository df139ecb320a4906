"""Readers of data in official formats: where they are looked for, whether they are the official ones, downloads."""

from wcll.datasets.arrays import read_arrays
from wcll.datasets.base import Dataset, Split
from wcll.datasets.cifar import read_cifar10, read_cifar100
from wcll.datasets.digits import read_digits
from wcll.datasets.download import download_dataset
from wcll.datasets.entries import DATASETS, DatasetSpec, Download
from wcll.datasets.folders import data_folders
from wcll.datasets.idx import read_idx
from wcll.datasets.images import read_images
from wcll.datasets.load import data_stamp, load_dataset, same_data
from wcll.datasets.manifest import read_manifest
from wcll.datasets.parquet import read_parquet
from wcll.datasets.tiny_imagenet import read_tiny_imagenet

__all__ = ["DATASETS", "Dataset", "DatasetSpec", "Download", "Split", "data_folders", "data_stamp"]
__all__ += [
    "download_dataset",
    "load_dataset",
    "read_arrays",
    "read_cifar10",
    "read_cifar100",
    "read_digits",
    "read_idx",
]
__all__ += ["read_images", "read_manifest", "read_parquet", "read_tiny_imagenet", "same_data"]
