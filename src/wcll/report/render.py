"""Templates and plots: self-contained HTML pages, Markdown, and SVG whose colours follow light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from wcll._validation import FloatArray

if TYPE_CHECKING:
    from wcll.report.result_tables import Cell


def render(template: str, *, package: str = "wcll.report", **values: Any) -> str:
    """Fill a template of a package, which may extend those of this one; a missing value is an error.

    HTML and SVG are escaped, Markdown and SVG have lines of their own.
    """
    return _environment(package, template.rpartition(".")[2]).get_template(template).render(**values)


def phrase(template: str, macro: str, *figures: Any, package: str, words: Mapping[str, Any]) -> str:
    """One macro of a template with its arguments; it can use ``words``."""
    module = _environment(package, "txt").get_template(template).make_module(dict(words))
    return str(getattr(module, macro)(*figures))


@cache
def _environment(package: str, kind: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("wcll.report")]),
        autoescape=kind in ("html", "svg"),
        undefined=StrictUndefined,
        trim_blocks=kind != "html",
        lstrip_blocks=kind != "html",
    )
    environment.filters["bold"] = bold
    environment.filters["literal"] = literal
    return environment


def literal(text: str) -> str:
    r"""Text that means nothing to Markdown, in one line: no tags, links, columns or control codes.

    >>> print(literal("a|b <i> [c](d) *e*"))
    a\|b \<i\> \[c](d) \*e\*
    """
    shown = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return re.sub(r"([\\`*_\[<>|&~$])", r"\\\1", shown)


def bold(cell: Cell) -> str:
    """A cell's text in Markdown, bold for the best."""
    return f"**{cell.text()}**" if cell.best else cell.text()


WIDTH, HEIGHT = 240, 132
LEFT, RIGHT, TOP, BOTTOM = 30, 8, 8, 20
MOST_TICKS = 12  # class names beside a confusion table
PANEL = 340  # the width of a figure with names of classes
LONGEST = 14  # characters of such a name
LETTER = 5.4  # the width of one, about
NAMES = 108  # room for one at the left, on a phone as well
BELOW = 4.6  # how far down a character of a slanted name reaches, on a phone


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    """Where a value in [0, 1] stands."""
    return TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - TOP - BOTTOM)


def _points(values: Sequence[float] | FloatArray) -> str:
    """Of a curve over all epochs, those that are known: NaN is where nobody looked."""
    last = max(len(values) - 1, 1)
    return " ".join(f"{_x(i / last):.1f},{_y(float(v)):.1f}" for i, v in enumerate(values) if v == v)


def _band(runs: FloatArray) -> tuple[FloatArray, str]:
    """The mean over trials of (trials, epochs), and one standard deviation around it as the points of a polygon."""
    mean, spread = runs.mean(axis=0), runs.std(axis=0, ddof=min(len(runs) - 1, 1))
    return mean, " ".join([_points(mean + spread), *reversed(_points(mean - spread).split())])


def _draw(figure: str, **values: Any) -> str:
    """Fill the template of a figure; its lines become one."""
    size = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "room": 0}
    text = render(f"{figure}.svg", **{**size, "x": _x, "y": _y, "points": _points, **values})
    return "".join(line.strip() for line in text.splitlines())


def curve_group(name: str, curves: Iterable[FloatArray]) -> str:
    """The means of many curves, drawn once and used in every panel by their name."""
    return _draw("group", name=name, curves=[_points(curve.mean(axis=0)) for curve in curves])


def curve_panel(title: str, own: FloatArray, *, behind: str) -> str:
    """Mean and band (one standard deviation) over trials of ``own`` (trials, epochs), over the group ``behind``."""
    mean, band = _band(own)
    return _draw("curve", title=title, mean=mean, band=band, behind=behind, epochs=len(mean))


def curves_panel(title: str, curves: Mapping[str, FloatArray]) -> str:
    """Means and bands (one standard deviation) of several groups of runs (trials, epochs), coloured by their order."""
    epochs = len(next(iter(curves.values()))[0])
    return _draw("curves", title=title, curves={name: _band(runs) for name, runs in curves.items()}, epochs=epochs)


def line_panel(title: str, values: Sequence[float]) -> str:
    """One curve over epochs, from its lowest to its highest value."""
    known = [value for value in values if np.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span = high - low or 1.0
    shares = [(value - low) / span if np.isfinite(value) else np.nan for value in values]
    return _draw("line", title=title, shares=shares, low=low, high=high, last=values[-1], epochs=len(values))


def bar_panel(title: str, values: Sequence[float], names: Sequence[str], highlight: Sequence[int]) -> str:
    """One bar a class, some of them marked."""
    room = _slant(names)
    bars = list(zip(names, map(_short, names), values, strict=True))
    return _draw("bars", title=title, bars=bars, highlight=highlight, room=room)


def confusion_panel(title: str, shares: FloatArray, names: Sequence[str]) -> str:
    """Rows are true classes, columns predictions, each row of shares summing to 1; darker is more."""
    cells, ticks = np.argwhere(shares >= 0.005), list(map(_short, names)) if len(shares) <= MOST_TICKS else []
    room = _slant(ticks)
    left = max(LEFT, 10 + round(LETTER * max(map(len, ticks), default=0)))
    side = (WIDTH - left - RIGHT) / len(shares)
    return _draw(
        "confusion", title=title, shares=shares, names=names, side=side, cells=cells, ticks=ticks, room=room, left=left
    )


def _slant(names: Sequence[str]) -> int:
    """How much further down names reach that stand slanted, as they would not fit beside each other; else 0."""
    longest = max((len(_short(name)) for name in names), default=0)
    fit = LETTER * (longest + 1) * len(names) <= WIDTH - LEFT - RIGHT
    return 0 if fit or longest <= 2 else round(0.64 * LETTER * longest) + 4


def share_panel(title: str, shares: Sequence[float], names: Sequence[str], limit: float, *, marked: bool = True) -> str:
    """A bar for every class, a line at the limit, and those beyond it marked, if that means anything."""
    left, step, most = NAMES, 15, 1.08 * max(*shares, limit)
    bars = [(name, _short(name), value, marked and value > limit) for name, value in zip(names, shares, strict=True)]
    height = TOP + step * len(bars) + TOP

    def across(value: float) -> float:
        return value / most * (PANEL - left - RIGHT)

    return _draw(
        "shares", title=title, bars=bars, limit=limit, across=across, left=left, step=step, width=PANEL, height=height
    )


def transition_panel(title: str, matrix: FloatArray, names: Sequence[str], said: str = "not") -> str:
    """Q as shades, the largest entry the darkest: rows are true classes, columns labels, or what else is ``said``.

    Few classes have their names below the columns, too.
    """
    left = NAMES
    side = (PANEL - left - RIGHT) / len(matrix)
    cells = [
        (i, j, matrix[i, j] / matrix.max(), f"{names[i]}, {said} {names[j]}: {100 * matrix[i, j]:.1f} %")
        for i, j in np.argwhere(matrix >= 0.005)
    ]
    most = [(name, names[int(row.argmax())]) for name, row in zip(names, matrix, strict=True)]
    short, slanted = list(map(_short, names)), len(names) <= MOST_TICKS
    room = round(BELOW * max(map(len, short))) + TOP if slanted else 0
    height = round(TOP + side * len(matrix) + TOP) + room
    return _draw(
        "transition",
        title=title,
        said=said,
        cells=cells,
        most=most,
        names=short,
        slanted=slanted,
        left=left,
        side=side,
        width=PANEL,
        height=height,
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _file(title: str, width: int, height: int, marks: str) -> str:
    return render("file.svg", title=title, width=width, height=height, marks=marks) + "\n"


def sheet(title: str, panels: Sequence[tuple[str, str]], names: Sequence[str], *, across: int = 3) -> str:
    """Panels of :func:`curves_panel` as one SVG file, with their titles and the names of their curves."""
    gap, head = 12, 44
    marks = _draw("sheet", title=title, panels=panels, names=names, across=across, gap=gap, head=head)
    height = head + -(-len(panels) // across) * (HEIGHT + 30) + gap
    return _file(title, across * (WIDTH + gap) + gap, height, marks)


def loglog_figure(
    title: str,
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    band: tuple[Sequence[float], Sequence[float]] | None = None,
) -> str:
    """Positive curves over positive x, both in decades, as an SVG file; ``band`` goes with the first curve."""
    width, height, left, right, top, bottom = 460, 300, 52, 130, 30, 34
    values = [value for curve in (*lines.values(), *(band or ())) for value in curve if value > 0]
    low, high = np.floor(np.log10(min(values))), np.ceil(np.log10(max(values)))
    high = max(high, low + 1)
    first = np.log10(min(x))
    last = max(np.log10(max(x)), first + 1e-9)

    def place(a: float, b: float) -> tuple[float, float]:
        across = left + (np.log10(a) - first) / (last - first) * (width - left - right)
        down = top + (high - np.log10(max(b, 10.0**low))) / (high - low) * (height - top - bottom)
        return round(float(across), 1), round(float(down), 1)

    def points(xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join("{},{}".format(*place(a, b)) for a, b in zip(xs, ys, strict=True))

    names: list[tuple[float, int, str]] = []
    for down, i, name in sorted((place(x[-1], curve[-1])[1], i, name) for i, (name, curve) in enumerate(lines.items())):
        above = names[-1][0] if names else -np.inf
        names.append((max(down + 4, above + 13), i, name))  # those that would lie upon each other move down
    size = {"width": width, "height": height, "left": left, "right": right, "bottom": bottom}
    marks = _draw(
        "loglog",
        title=title,
        **size,
        rows=[(place(x[0], 10.0**d)[1], f"{10.0**d:g}") for d in range(int(low), int(high) + 1)],
        columns=[
            (place(10.0**d, 10.0**high)[0], f"{10**d:,}")
            for d in range(int(np.ceil(first - 1e-9)), int(last + 1e-9) + 1)
        ],
        band=points([*x, *reversed(x)], [*band[1], *reversed(band[0])]) if band else "",
        curves=[points(x, curve) for curve in lines.values()],
        names=names,
    )
    return _file(title, width, height, marks)
