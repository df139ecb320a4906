"""Arrays of numbers or text in NumPy's format; what a header claims is checked before memory is taken for it."""

from __future__ import annotations

import io
import math
import warnings
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from wcll._files import CHUNK
from wcll._memory import check_memory
from wcll.exceptions import InputError

MAGIC = b"\x93NUMPY"
MOST_HEADER = 10_000  #: bytes; those of numbers and text have about a hundred
KINDS = "biufcmMSU"  #: of numbers, dates and text


def read_npy(file: IO[bytes], size: int, name: str, expected: str) -> NDArray[Any]:
    """The array in a file of ``size`` bytes; ``name`` and ``expected`` are for the error if there is none."""
    try:
        shape, fortran, dtype, start = _header(file)
        need = math.prod(shape) * dtype.itemsize
        if need > size - start:
            raise ValueError(f"{size - start} bytes for an array of {need}")
        check_memory(name, "an array", 3 * need if dtype.kind == "U" else need)  # names are sorted: copies
        raw = read_raw(file, need)
        if len(raw) != need:
            raise ValueError(f"{len(raw)} bytes for an array of {need}")
        array = raw.view(dtype).reshape(shape, order="F" if fortran else "C")
        file.read(1)  # an archive compares its checksum at the end
        _check_text(array)
    except InputError:
        raise
    except Exception as error:  # a damaged header or archive fails in many ways
        raise InputError(name, expected, str(error) or type(error).__name__) from None
    return array


def read_raw(file: IO[bytes], size: int) -> NDArray[np.uint8]:
    """So many bytes of an open file, or as many as there are, in an array that can be written to."""
    raw, done = np.empty(size, np.uint8), 0
    while part := file.read(min(CHUNK, size - done)):
        raw[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    return raw[:done]


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether the first axis runs fastest, type, and where the array begins."""
    start = file.read(8)
    if start[:6] != MAGIC or start[6:] not in (b"\1\0", b"\2\0"):
        raise ValueError("another format")
    width = 2 * start[6]
    length = file.read(width)
    if (n := int.from_bytes(length, "little")) > MOST_HEADER:
        raise ValueError(f"a header of {n} bytes")
    text = io.BytesIO(length + file.read(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd spellings
        if width == 2:
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(text)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(text)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded: they may run programs")
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"type {dtype}")
    if any(isinstance(axis, bool) or axis < 0 for axis in shape):
        raise ValueError(f"shape {shape}")
    return shape, fortran, dtype, 8 + width + n


def _check_text(array: NDArray[Any]) -> None:
    """Fail unless every character is one."""
    if array.dtype.kind == "U" and array.size:
        points = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
            raise ValueError("characters that are none")
