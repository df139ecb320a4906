"""Image files as one array of bytes."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll._memory import check_memory
from wcll._validation import extra
from wcll.exceptions import InputError, MissingExtraError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")  #: no others: Pillow runs programs for some
SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".gif",
    ".ppm",
    ".pgm",
    ".pbm",
    ".tif",
    ".tiff",
    ".webp",
)  #: of files
MOST_PIXELS = 2**26  #: of one image: what claims more is an accident or an attack
WORKERS = min(32, (os.cpu_count() or 1) + 4)  #: threads that decode
PART = 2**26  #: bytes of images that are decoded together, where not all are
DECODING = 10  #: bytes a pixel that one of them holds: the image, its conversion and an array
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV")


def read_images(
    paths: Sequence[Path], colour: bool | None = None, resized: tuple[int, int] | None = None, too_large: str = ""
) -> NDArray[np.uint8]:
    """Images of one size: (n, 3, h, w) in colour, (n, h, w) in grey; if nothing is said, in grey where all are.

    With ``resized``, a width and a height, images may be of any size, and are brought to this one. ``too_large`` is
    what to do about images that do not fit into memory.
    """
    decoding = Decoding.of(paths, colour, resized)
    need = len(paths) * math.prod(decoding.shape) + min(len(paths), WORKERS) * DECODING * decoding.largest
    check_memory(str(paths[0]), f"{len(paths)} images of its size", need, too_large)
    return decoding.read(range(len(paths)))


@dataclass(frozen=True)
class Decoding:
    """Image files, and the size and colour that they are decoded to."""

    paths: Sequence[Path]
    colour: bool
    size: tuple[int, int]  #: width and height
    resized: bool  #: whether images may be of any size
    largest: int  #: pixels that an image has in its file

    @staticmethod
    def of(paths: Sequence[Path], colour: bool | None = None, resized: tuple[int, int] | None = None) -> Decoding:
        """What :func:`read_images` says, by a look at what files say of themselves."""
        with _pool() as pool:
            if colour is None:
                colour = any(pool.map(_is_colour, paths))
            width, height = resized or _opened(paths[0], lambda image: image.size)
            largest = width * height if resized is None else max(pool.map(_area, paths))
        return Decoding(paths, colour, (width, height), resized is not None, largest)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image."""
        width, height = self.size
        return (3, height, width) if self.colour else (height, width)

    def parts(self) -> Iterator[range]:
        """The places of images that are decoded together."""
        size = max(PART // math.prod(self.shape), 1)
        return (range(start, min(start + size, len(self.paths))) for start in range(0, len(self.paths), size))

    def read(self, places: range) -> NDArray[np.uint8]:
        """The images at some places."""
        images = np.empty((len(places), *self.shape), np.uint8)
        paths, size, shape = self.paths, self.size, self.shape

        def decode(i: int, image: Any) -> None:
            if not self.resized and image.size != size:  # before it is decoded: it may be large
                expected = f"an image of {_pixels(size)} as {paths[0].name}"
                raise InputError(str(paths[i]), expected, _pixels(image.size))
            image = image.convert("RGB" if self.colour else "L")
            pixels = np.asarray(image if image.size == size else image.resize(size))
            pixels = pixels.transpose(2, 0, 1) if self.colour else pixels
            if pixels.shape != shape:
                raise ValueError(f"pixels of shape {pixels.shape} where its header says {shape}")
            images[i - places.start] = pixels

        with _pool() as pool:
            list(pool.map(lambda i: _opened(paths[i], partial(decode, i)), places))
        return images


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """Threads, as decoders let others run; what cannot be used is an error, and no warning."""
    with warnings.catch_warnings(), ThreadPoolExecutor(WORKERS) as pool:
        warnings.simplefilter("ignore")
        yield pool


def unreadable(paths: Sequence[Path]) -> dict[int, InputError]:
    """Which of these images cannot be decoded, and why."""

    def decode(path: Path) -> InputError | None:
        try:
            _opened(path, lambda image: image.load())
        except MissingExtraError:
            raise
        except InputError as error:
            return error
        return None

    with _pool() as pool:
        return {i: error for i, error in enumerate(pool.map(decode, paths)) if error is not None}


def _area(path: Path) -> int:
    return int(_opened(path, lambda image: image.width * image.height))


def _is_colour(path: Path) -> bool:
    return bool(_opened(path, lambda image: image.mode in COLOUR_MODES))


def _opened(path: Path, use: Callable[[Any], Any]) -> Any:
    """What ``use`` makes of an image, or an error that names the file."""
    pillow = extra("PIL.Image", "images")
    if not path.is_file():
        raise InputError(str(path), "an image", "no such file")
    try:
        with pillow.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels, more than {MOST_PIXELS} in all")
            if image.mode not in GREY_MODES + COLOUR_MODES:
                raise InputError(str(path), "an image of 8 bits a channel", f"mode {image.mode}")
            return use(image)
    except InputError:
        raise
    except Exception as error:  # decoders of many formats, each with errors of its own
        raise InputError(str(path), "an image that can be read", str(error).replace(f" {str(path)!r}", "")) from None


def _pixels(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]} pixels"
