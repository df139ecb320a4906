"""The page of the demonstration: what is found, what labels look like, the suite's tables, and how to go on."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wcll.checks import FloatArray
from wcll.report.render import render
from wcll.report.suite_page import page_parts
from wcll.report.tables import Line, Table, build_table
from wcll.results.row import Row
from wcll.suites.suite import Suite

NEXT = """\
from wcll import ComplementaryClassifier

model = ComplementaryClassifier().fit(X, not_y)  # for every row of X, a class that it is not
print(model.report())                            # what was chosen, why, and how good it seems
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
    found = finding(suite, build_table(suite, suite.tables[0], rows, seeds))
    return render("demo.html", **page_parts(suite, rows, seeds, command), found=found, examples=examples, next=NEXT)


def finding(suite: Suite, table: Table) -> str:
    """In one sentence: what is reached where nothing is told, beside the best of the others and what limits them."""
    autos = [row.title for row in suite.rows if suite.candidates(suite.columns[0], row, 0)[0].auto]
    own = [line for line in table.lines if line.title in autos and line.cells[0].values]
    if not own:
        return ""
    mean, rest = own[0].cells[0].mean, [line for line in table.lines if line is not own[0] and line.cells[0].values]
    rivals, limits = ([line for line in rest if line.limit == limit] for limit in (False, True))
    parts = []
    if rivals:
        best = max(rivals, key=lambda line: line.cells[0].mean)
        said = _beside(mean, best.cells[0].mean, f"the best of the other methods ({_named(suite, best)})")
        unsure = best.cells[0].undecided or own[0].cells[0].undecided
        parts.append(said + (", which may be chance," if unsure else ""))
    parts += [_beside(mean, line.cells[0].mean, line.title) for line in limits[:1]]
    told = f"Without a true label, and told nothing but “not this”, {own[0].title} reaches {100 * mean:.1f} % "
    return told + table.head_texts()[0] + (f": {' and '.join(parts)}." if parts else ".")


def _beside(mean: float, other: float, whom: str) -> str:
    points = round(100 * mean, 1) - round(100 * other, 1)  # as they are shown
    if abs(points) < 0.05:
        return f"as much as {whom}"
    return f"{abs(points):.1f} points {'above' if points > 0 else 'below'} {whom}"


def _named(suite: Suite, line: Line) -> str:
    """A method, and what it is told that others must find out."""
    (row,) = (row for row in suite.rows if row.title == line.title)
    told = suite.candidates(suite.columns[0], row, 0)[0].told
    return line.title + (f", told {' and '.join(told)}" if told else "")


def png(pixels: np.ndarray) -> bytes:
    """A picture of bytes (height, width), from 0 for black to 255 for white, or (height, width, 3) in colour."""
    height, width = pixels.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
