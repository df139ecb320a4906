"""Image files as one array of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.checks import InputError, extra

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")  #: no others: Pillow runs programs for some
MOST_PIXELS = 2**26  #: of one image: what claims more is an accident or an attack
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV")


def read_images(paths: Sequence[Path], colour: bool | None = None) -> NDArray[np.uint8]:
    """Images of one size: (n, 3, h, w) in colour, (n, h, w) in grey; if nothing is said, in grey where all are."""
    with ThreadPoolExecutor() as pool:  # decoders let other threads run
        if colour is None:
            colour = any(pool.map(_is_colour, paths))
        decode = partial(_decode, mode="RGB" if colour else "L")
        first = decode(paths[0])
        images = np.empty((len(paths), *first.shape), np.uint8)

        def fill(i: int) -> None:
            pixels = decode(paths[i])
            if pixels.shape != first.shape:
                size = f"{_size(first)} pixels as {paths[0].name}"
                raise InputError(str(paths[i]), f"an image of {size}", f"{_size(pixels)} pixels")
            images[i] = pixels

        list(pool.map(fill, range(len(paths))))
    return images


def _is_colour(path: Path) -> bool:
    return _opened(path, lambda image: image.mode) in COLOUR_MODES


def _decode(path: Path, mode: str) -> NDArray[np.uint8]:
    """Pixels in the order of axes (h, w) or (3, h, w)."""
    pixels: NDArray[np.uint8] = _opened(path, lambda image: np.asarray(image.convert(mode)))
    return pixels if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _opened(path: Path, use: Callable[[Any], Any]) -> Any:
    """What ``use`` makes of an image, or an error that names the file."""
    pillow = extra("PIL.Image", "images")
    if not path.is_file():
        raise InputError(str(path), "an image", "no such file")
    try:
        with pillow.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels, more than {MOST_PIXELS} in all")
            mode, result = image.mode, use(image)
    except Exception as error:  # decoders of many formats, each with errors of its own
        raise InputError(str(path), "an image that can be read", str(error).replace(repr(str(path)), "it")) from None
    if mode not in GREY_MODES + COLOUR_MODES:
        raise InputError(str(path), "an image of 8 bits a channel", f"mode {mode}")
    return result


def _size(pixels: NDArray[Any]) -> str:
    return f"{pixels.shape[-1]} x {pixels.shape[-2]}"
