"""A data set by name, or a user's own by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from wcll.datasets.arrays import read_arrays
from wcll.datasets.base import Content, Dataset, dataset
from wcll.datasets.checksums import appearance, stamp_of
from wcll.datasets.entries import DATASETS, DatasetSpec
from wcll.datasets.folders import check_folder, data_folders, expanded
from wcll.datasets.manifest import MANIFEST, files, read_manifest
from wcll.datasets.parquet import read_parquet
from wcll.exceptions import InputError

#: What reads a user's own file, by its ending.
READERS: dict[str, Callable[[Path], Content]] = {".npz": read_arrays, ".parquet": read_parquet}


def load_dataset(name: str, data: str | Path | None = None) -> Dataset:
    """Read a registered data set, an ``.npz`` or ``.parquet`` file, or a folder that holds ``manifest.csv``.

    Registered ones are looked for under ``data``, the folder that the environment variable WCLL_DATA names, and the
    user's cache. A path is tried as it is, then under each of these folders.

    >>> digits = load_dataset("digits")
    >>> digits.train.x.shape, digits.classes[:3]
    ((1797, 8, 8), ('0', '1', '2'))
    >>> load_dataset("digit")
    Traceback (most recent call last):
    wcll._validation.InputError: dataset: expected one of 'cifar10', ..., got 'digit'; did you mean 'digits'?
    """
    check_folder(data)
    if name in DATASETS:
        return _registered(DATASETS[name], data)
    return _own(str(name), data)


def _registered(spec: DatasetSpec, data: str | Path | None) -> Dataset:
    if spec.installed:
        return dataset(spec.name, spec.read(Path()), True, spec.installed)
    folders = data_folders(data)
    place = spec.find(folders)
    if place is None:
        raise spec.not_found(folders)
    content, stamp = _stamped(place, spec.paths(place), lambda: spec.read(place))
    return replace(dataset(spec.name, content, spec.is_official(place), str(place)), stamp=stamp)


def same_data(name: str, stamps: set[str], data: str | Path | None = None) -> bool:
    """Whether results with these stamps have seen the data as they are now.

    The empty stamp says nothing: earlier versions gave it to registered data. Those that are not here cannot differ.
    """
    known = stamps - {""}
    if not known:
        return True
    now = data_stamp(name, data)
    if name in DATASETS:
        return now is None or known == {now}
    status = _own_file(name, data)[1].stat()  # size and time were the stamp of earlier versions
    return known <= {f"{status.st_size}-{status.st_mtime_ns}", now}


def data_stamp(name: str, data: str | Path | None = None) -> str | None:
    """The stamp of a data set's files as they are now; None if they are not here, or came with a package."""
    if name not in DATASETS:
        return stamp_of(*_own_paths(*_own_file(name, data)))
    spec = DATASETS[name]
    place = None if spec.installed else spec.find(data_folders(data))
    return None if place is None else stamp_of(place, spec.paths(place))


def _stamped(folder: Path, paths: Sequence[Path], read: Callable[[], Content]) -> tuple[Content, str]:
    """What is read from files, and the stamp of what they held then."""
    before = appearance(folder, paths)
    content, stamp = read(), stamp_of(folder, paths)
    if appearance(folder, paths) != before:
        raise InputError(str(folder), "files that stay as they are while they are read", "ones that were changed")
    return content, stamp


def _own(name: str, data: str | Path | None) -> Dataset:
    place, file = _own_file(name, data)
    read = READERS[place.suffix] if file == place else read_manifest
    content, stamp = _stamped(*_own_paths(place, file), lambda: read(place))
    title = place.stem if file == place else place.resolve().name
    return replace(dataset(title, content, False, str(place)), stamp=stamp)


def _own_paths(place: Path, file: Path) -> tuple[Path, list[Path]]:
    """A folder, and the files in it that are read."""
    return (file.parent, [file]) if file == place else (place, files(place))


def _own_file(name: str, data: str | Path | None) -> tuple[Path, Path]:
    """Where a user's own data lie: a file (twice), or a folder and its manifest."""
    path = expanded("dataset", Path(name), "the path of data")
    folders = data_folders(data)
    found = next((p for p in (path, *(folder / path for folder in folders)) if name and _is_there(p)), None)
    if found is None:
        if path.suffix not in READERS and len(path.parts) < 2:
            DATASETS[name]  # meant as a name: fails and offers the nearest
        got = f"{name}, which is neither here nor in {', '.join(map(str, folders))}"
        raise InputError("dataset", "the path of an .npz or .parquet file or of a folder with manifest.csv", got)
    if found.is_dir() and (found / MANIFEST).is_file():
        return found, found / MANIFEST
    if found.is_file() and found.suffix in READERS:
        return found, found
    raise InputError("dataset", "an .npz or .parquet file or a folder with manifest.csv", str(found))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or a folder that is closed
        return False
