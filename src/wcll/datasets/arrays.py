"""A user's own arrays in an ``.npz`` file: x and y; if there are any, also x_test, y_test, classes and groups."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.checks import InputError, IntArray
from wcll.datasets.base import Content, Split, check_names, in_order, some_names
from wcll.datasets.npy import read_npy
from wcll.memory import check_memory
from wcll.reading import check_file

REQUIRED, OPTIONAL = ("x", "y"), ("x_test", "y_test", "classes", "groups")
WHOLE = "a whole .npz file of numbers or text"

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path) -> Content:
    """Images in uint8 or features; labels as names, as class indices, or (without ``classes``) as any whole numbers."""
    arrays = _load(path)
    tests = [name for name in ("x_test", "y_test") if name in arrays]
    if len(tests) == 1:
        raise InputError(str(path), "x_test and y_test together", f"{tests[0]} alone")
    for name in arrays:
        if name.startswith("x"):
            arrays[name] = _samples(path, name, arrays[name])
    classes, indices = _labels(path, arrays)
    train = _split(path, arrays, indices, "")
    test = _split(path, arrays, indices, "_test") if tests else None
    if test is not None and (test.x.shape[1:], test.x.dtype) != (train.x.shape[1:], train.x.dtype):
        expected = f"x_test of shape {('n', *train.x.shape[1:])} and type {train.x.dtype}, as x"
        raise InputError(str(path), expected, f"{test.x.shape} and {test.x.dtype}")
    return Content(classes, train, test, 255.0 if train.x.dtype == np.uint8 else 1.0)


def read_array(path: Path, name: str = "") -> NDArray[Any]:
    """The array of an ``.npy`` file, or the one of an ``.npz`` file that is called ``name``."""
    check_file(path)
    try:
        if path.suffix != ".npz":
            with path.open("rb") as file:
                return read_npy(file, path.stat().st_size, str(path), "an .npy file of numbers")
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename.removesuffix(".npy") for entry in archive.infolist()]
            if name not in names:
                raise InputError(str(path), f"one of its arrays, {some_names(names)}, after a colon", repr(name))
            return _member(path, archive, archive.getinfo(f"{name}.npy"))
    except InputError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise InputError(str(path), WHOLE, str(error) or type(error).__name__) from None


def _load(path: Path) -> Arrays:
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            there = {f"{name}.npy": name for name in (*REQUIRED, *OPTIONAL)}
            members = {there[entry.filename]: entry for entry in archive.infolist() if entry.filename in there}
            arrays = {name: _member(path, archive, members[name]) for name in there.values() if name in members}
    except InputError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise InputError(str(path), WHOLE, str(error) or type(error).__name__) from None
    if missing := [name for name in REQUIRED if name not in arrays]:
        raise InputError(str(path), "arrays x and y", f"no {' and no '.join(missing)}")
    return arrays


def _member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; methods of packing that NumPy does not use may take any memory."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename}, packed in another way")
    with archive.open(entry) as file:
        return read_npy(file, entry.file_size, str(path), WHOLE)


def _samples(path: Path, name: str, x: NDArray[Any]) -> NDArray[Any]:
    """Bytes and floats as they are, whole numbers as floats."""
    if x.ndim not in (2, 3, 4) or x.size == 0:
        raise InputError(str(path), f"{name} of shape (n, d), (n, h, w) or (n, c, h, w), not empty", x.shape)
    if x.ndim == 4 and x.shape[1] > 4 >= x.shape[3]:
        raise InputError(str(path), f"{name} with channels before pixels", x.shape, "x.transpose(0, 3, 1, 2)")
    if x.dtype == np.uint8:
        return x
    if x.dtype.kind not in ("iubf" if x.ndim == 2 else "f"):
        raise InputError(str(path), f"{name} of type uint8 or float", x.dtype)
    dtype = np.dtype(np.float32 if x.dtype.itemsize <= 4 and x.dtype.kind == "f" else np.float64)
    if x.dtype != dtype:
        check_memory(str(path), f"{name} as {dtype}", x.size * dtype.itemsize)
    with np.errstate(over="ignore"):  # it is infinite then
        numbers = x.astype(dtype, copy=False)
    if not np.isfinite(numbers).all():
        raise InputError(str(path), f"finite numbers in {name}", "NaN or infinity")
    return numbers


def _labels(path: Path, arrays: Arrays) -> tuple[tuple[str, ...], dict[str, IntArray]]:
    """Names of classes, and labels as their indices."""
    found: Arrays = {name: arrays[name] for name in ("y", "y_test") if name in arrays}
    for name, y in found.items():
        if y.ndim != 1 or y.dtype.kind not in "iuU":
            raise InputError(str(path), f"{name} of whole numbers or text, shape (n,)", f"{y.dtype}, shape {y.shape}")
    if "classes" not in arrays:
        classes = in_order([str(label) for y in found.values() for label in np.unique(y)])
        check_names(path, classes)
        return classes, {name: _indices(path, name, y, classes) for name, y in found.items()}
    classes = tuple(map(str, arrays["classes"].ravel()))
    check_names(path, classes)
    if len(set(classes)) != len(classes):
        raise InputError(str(path), "different names in classes", some_names(classes))
    positions = tuple(map(str, range(len(classes))))
    names = {name: classes if y.dtype.kind == "U" else positions for name, y in found.items()}
    return classes, {name: _indices(path, name, y, names[name]) for name, y in found.items()}


def _indices(path: Path, name: str, y: NDArray[Any], labels: tuple[str, ...]) -> IntArray:
    number = {label: k for k, label in enumerate(labels)}
    values, inverse = np.unique(y, return_inverse=True)
    if unknown := [str(value) for value in values if str(value) not in number]:
        raise InputError(str(path), f"labels in {name} among {some_names(labels)}", unknown[0])
    return np.array([number[str(value)] for value in values], np.int64)[inverse]


def _split(path: Path, arrays: Arrays, indices: dict[str, IntArray], suffix: str) -> Split:
    x, y = arrays[f"x{suffix}"], indices[f"y{suffix}"]
    groups = None if suffix else arrays.get("groups")
    for name, array in ((f"y{suffix}", y), ("groups", groups)):
        if array is not None and array.shape != (len(x),):
            raise InputError(str(path), f"{len(x)} values in {name}, one a sample of x{suffix}", f"shape {array.shape}")
    return Split(x, y, groups)
