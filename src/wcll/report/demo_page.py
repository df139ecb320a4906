"""The page of the demonstration: what is found, what labels look like, the suite's tables, and how to go on."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wcll._validation import FloatArray
from wcll.report.render import render
from wcll.report.suite_page import page_parts
from wcll.results.row import Row
from wcll.suites.suite import Suite

NEXT = """\
from wcll import ComplementaryClassifier

model = ComplementaryClassifier().fit(X, not_y)  # for every row of X, a class that it is not
print(model.report())  # what was chosen, why, and how good it seems
predicted = model.predict(X_new)"""


@dataclass(frozen=True)
class Example:
    """An image, as shares of ink, and the class that it was said not to be."""

    ink: FloatArray  #: from 0 to 1, (height, width)
    label: str

    @property
    def source(self) -> str:
        """The image itself, as pages hold it: black on white."""
        grey = np.rint(255 * (1 - self.ink.clip(0, 1))).astype(np.uint8)
        return f"data:image/png;base64,{b64encode(png(grey)).decode()}"


def demo_page(
    suite: Suite, rows: Mapping[str, Row], seeds: Sequence[int], command: str, examples: Sequence[Example]
) -> str:
    """The page of a suite, with what newcomers need around it."""
    return render("demo.html", **page_parts(suite, rows, seeds, command), examples=examples, next=NEXT)


def png(pixels: np.ndarray) -> bytes:
    """A picture of bytes (height, width), from 0 for black to 255 for white, or (height, width, 3) in colour."""
    height, width = pixels.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
