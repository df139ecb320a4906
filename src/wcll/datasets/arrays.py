"""A user's own arrays in an ``.npz`` file: x and y or ybar; if there are any, also x_test, y_test, classes, groups."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import check_file
from wcll._memory import check_memory
from wcll._validation import BoolArray, IntArray
from wcll.datasets.base import Content, Split, check_names, in_order, some_names
from wcll.datasets.given import PAIR, Source, check_classes, check_kinds, from_mask, from_pairs
from wcll.datasets.npy import read_npy
from wcll.exceptions import InputError

REQUIRED, OPTIONAL = ("x", "y"), ("ybar", "x_test", "y_test", "classes", "groups")
LABELS = ("y", "y_test", "ybar")
UNKNOWN = -2  #: in place of a class index
WHOLE = "a whole .npz file of numbers or text"

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path) -> Content:
    """Images in uint8 or features; labels as names, as class indices, or (without ``classes``) as any whole numbers.

    Complementary labels may be given in ``ybar``: (n,), or (n, m) for several a sample, of which -1 or an empty text is
    none; or a boolean mask (n, k) of the classes that are ruled out. Then ``y``, which is for evaluation only, may be
    missing, in whole or (likewise -1 or an empty text) in part.
    """
    arrays = load_members(path, (), (*REQUIRED, *OPTIONAL))
    if missing := [name for name in REQUIRED if name not in arrays and not (name == "y" and "ybar" in arrays)]:
        raise InputError(str(path), "arrays x and y", f"no {' and no '.join(missing)}")
    tests = [name for name in ("x_test", "y_test") if name in arrays]
    if len(tests) == 1:
        raise InputError(str(path), "x_test and y_test together", f"{tests[0]} alone")
    for name in arrays:
        if name.startswith("x"):
            arrays[name] = checked_samples(path, name, arrays[name])
    _check_labels(path, arrays)
    classes = _classes(path, arrays)
    train = _split(path, arrays, classes, "")
    test = _split(path, arrays, classes, "_test") if tests else None
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


def load_members(path: Path, required: tuple[str, ...], optional: tuple[str, ...]) -> Arrays:
    """Arrays of an ``.npz`` file by their names; others are not read."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            there = {f"{name}.npy": name for name in (*required, *optional)}
            members = {there[entry.filename]: entry for entry in archive.infolist() if entry.filename in there}
            arrays = {name: _member(path, archive, members[name]) for name in there.values() if name in members}
    except InputError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise InputError(str(path), WHOLE, str(error) or type(error).__name__) from None
    if missing := [name for name in required if name not in arrays]:
        raise InputError(str(path), f"an array {missing[0]}", "none")
    return arrays


def _member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; methods of packing that NumPy does not use may take any memory."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename}, packed in another way")
    with archive.open(entry) as file:
        return read_npy(file, entry.file_size, str(path), WHOLE)


def checked_samples(path: Path, name: str, x: NDArray[Any]) -> NDArray[Any]:
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


def _check_labels(path: Path, arrays: Arrays) -> None:
    """Fail unless labels are of a kind and shape that can be labels."""
    for name in ("y", "y_test"):
        y = arrays.get(name)
        if y is not None and (y.ndim != 1 or y.dtype.kind not in "iuU"):
            raise InputError(str(path), f"{name} of whole numbers or text, shape (n,)", f"{y.dtype}, shape {y.shape}")
    ybar = arrays.get("ybar")
    if ybar is None:
        return
    listed = ybar.dtype.kind in "iuU" and ybar.ndim in (1, 2)
    if not (listed or _is_mask(ybar)):
        expected = "ybar of whole numbers or text, shape (n,) or (n, m), or a mask of type bool, shape (n, k)"
        raise InputError(str(path), expected, f"{ybar.dtype}, shape {ybar.shape}")
    if len(ybar) != len(arrays["x"]):
        raise InputError(str(path), f"{len(arrays['x'])} rows in ybar, one a sample of x", f"shape {ybar.shape}")


def _classes(path: Path, arrays: Arrays) -> tuple[str, ...]:
    """Names of classes: those in ``classes``, else every label, sorted; columns of a mask are numbered."""
    ybar = arrays.get("ybar")
    if "classes" in arrays:
        classes = tuple(map(str, arrays["classes"].ravel()))
        check_names(path, classes)
        if len(set(classes)) != len(classes):
            raise InputError(str(path), "different names in classes", some_names(classes))
    elif ybar is not None and _is_mask(ybar):
        classes = tuple(map(str, range(ybar.shape[1])))
    else:
        found = {name: np.unique(arrays[name]) for name in LABELS if name in arrays}
        if ybar is not None:
            found = {name: labels[[not _is_none(label) for label in labels]] for name, labels in found.items()}
            _check_kinds(path, found)
        classes = in_order([str(label) for labels in found.values() for label in labels])
        check_names(path, classes)
    if ybar is not None:
        check_classes(path, classes)
    return classes


def _check_kinds(path: Path, found: Arrays) -> None:
    numbers = [name for name, labels in found.items() if labels.dtype.kind != "U"]
    check_kinds(path, numbers, {name: list(map(str, found[name])) for name in found if name not in numbers})


def _is_mask(ybar: NDArray[Any]) -> bool:
    return ybar.dtype == bool and ybar.ndim == 2


def _is_none(label: Any) -> bool:
    """Whether it stands, in a file with ybar, for a label that is not there."""
    return bool(label == ("" if isinstance(label, str) else -1))


def _indices(path: Path, arrays: Arrays, name: str, classes: tuple[str, ...]) -> IntArray:
    """Labels as class indices; beside ybar, -1 for those that are not there (of test samples all must be)."""
    y = arrays[name]
    is_position = "classes" in arrays and y.dtype.kind != "U"
    labels = tuple(map(str, range(len(classes)))) if is_position else classes
    number = {label: k for k, label in enumerate(labels)}
    values, inverse = np.unique(y, return_inverse=True)
    inverse = inverse.reshape(y.shape)
    optional = "ybar" in arrays and name != "y_test"
    found = [-1 if optional and _is_none(value) else number.get(str(value), UNKNOWN) for value in values]
    if UNKNOWN in found:
        first = found.index(UNKNOWN)
        got = f"{str(values[first]) or 'an empty one'} in sample {np.argwhere(inverse == first)[0][0]}"
        raise InputError(str(path), f"labels in {name} among {some_names(labels)}", got)
    return np.array(found, np.int64)[inverse]


def _ybar(path: Path, arrays: Arrays, classes: tuple[str, ...]) -> IntArray | BoolArray:
    ybar = arrays["ybar"]
    is_listed = ybar.ndim == 2 and ybar.dtype.kind in "iu"
    source = Source(path, "ybar", remedy="a mask is of type bool" if is_listed else "")
    n, k = len(ybar), len(classes)
    if _is_mask(ybar):
        if ybar.shape[1] != k:
            raise InputError(str(path), f"a mask ybar of {k} columns, one a class", f"shape {ybar.shape}")
        return from_mask(source, ybar)
    if is_listed and ybar.shape[1] == k > 2 and np.isin(ybar, (0, 1)).all():
        raise InputError(str(path), "class indices in ybar, or a mask of type bool", f"0 and 1 of type {ybar.dtype}")
    check_memory(str(path), f"{ybar.size} labels in ybar", PAIR * ybar.size)
    labels = _indices(path, arrays, "ybar", classes).reshape(n, -1)
    rows, columns = np.nonzero(labels >= 0)
    return from_pairs(source, (n, k), rows, labels[rows, columns])


def _split(path: Path, arrays: Arrays, classes: tuple[str, ...], suffix: str) -> Split:
    x, name = arrays[f"x{suffix}"], f"y{suffix}"
    y = _indices(path, arrays, name, classes) if name in arrays else np.full(len(x), -1, np.int64)
    groups = None if suffix else arrays.get("groups")
    for name, array in ((f"y{suffix}", y), ("groups", groups)):
        if array is not None and array.shape != (len(x),):
            raise InputError(str(path), f"{len(x)} values in {name}, one a sample of x{suffix}", f"shape {array.shape}")
    return Split(x, y, groups, _ybar(path, arrays, classes) if "ybar" in arrays and not suffix else None)
