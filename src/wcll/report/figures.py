"""Small figures as SVG text; colours come from the page's style sheet, so they follow light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from wcll.checks import FloatArray

WIDTH, HEIGHT = 240, 132
LEFT, RIGHT, TOP, BOTTOM = 30, 8, 8, 20
MOST_TICKS = 12  # class names beside a confusion table


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    """Where a value in [0, 1] stands."""
    return TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - TOP - BOTTOM)


def _path(values: Sequence[float] | FloatArray) -> str:
    last = max(len(values) - 1, 1)
    return " ".join(f"{_x(i / last):.1f},{_y(float(v)):.1f}" for i, v in enumerate(values))


def _frame(label: str, marks: str, ticks: str) -> str:
    """Axes from 0 to 100 % around the marks; ``label`` is read out instead of the picture."""
    lines = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(v):.1f}" y2="{_y(v):.1f}"/>'
        f'<text class="tick" x="{LEFT - 5}" y="{_y(v) + 3:.1f}" text-anchor="end">{100 * v:.0f}</text>'
        for v in (0, 0.5, 1)
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{lines}{marks}{ticks}</svg>'


def curve_group(name: str, curves: Iterable[FloatArray]) -> str:
    """The means of many curves, drawn once and used in every panel by their name."""
    lines = "".join(f'<polyline class="other" points="{_path(c.mean(axis=0))}"/>' for c in curves)
    return f'<svg width="0" height="0" aria-hidden="true" style="position:absolute"><g id="{name}">{lines}</g></svg>'


def curve_panel(title: str, own: FloatArray, *, behind: str) -> str:
    """Mean and band (one standard deviation) over trials of ``own`` (trials, epochs), over the group ``behind``."""
    mean = own.mean(axis=0)
    band = own.std(axis=0, ddof=1) if len(own) > 1 else np.zeros_like(mean)
    upper, lower = _path(mean + band), " ".join(reversed(_path(mean - band).split()))
    marks = f'<use href="#{behind}"/><polygon class="band" points="{upper} {lower}"/>'
    marks += f'<polyline class="own" points="{_path(mean)}"/>'
    label = f"{title}: accuracy by epoch, at the end {100 * mean[-1]:.1f} percent"
    return _frame(label, marks, _epoch_ticks(own.shape[1]))


def curves_panel(title: str, curves: Mapping[str, FloatArray]) -> str:
    """Means and bands (one standard deviation) of several groups of runs (trials, epochs), coloured by their order."""
    bands, lines, ends = [], [], []
    for i, (name, runs) in enumerate(curves.items()):
        mean, spread = runs.mean(axis=0), runs.std(axis=0, ddof=min(len(runs) - 1, 1))
        upper, lower = _path(mean + spread), " ".join(reversed(_path(mean - spread).split()))
        bands.append(f'<polygon class="fill{i}" points="{upper} {lower}"/>')
        lines.append(f'<polyline class="line{i}" points="{_path(mean)}"><title>{escape(name)}</title></polyline>')
        ends.append(f"{name} {100 * mean[-1]:.1f}")
    epochs = len(next(iter(curves.values()))[0])
    return _frame(f"{title}, at the end: {', '.join(ends)} percent", "".join(bands + lines), _epoch_ticks(epochs))


def _epoch_ticks(epochs: int) -> str:
    return "".join(
        f'<text class="tick" x="{_x(place):.0f}" y="{HEIGHT - 5}" text-anchor="{anchor}">{text}</text>'
        for place, anchor, text in ((0, "start", "epoch 1"), (1, "end", str(epochs)))
    )


def bar_panel(title: str, values: Sequence[float], names: Sequence[str], highlight: Sequence[int]) -> str:
    """One bar a class, some of them marked."""
    step = 1 / len(values)
    bars, ticks = [], []
    for k, (value, name) in enumerate(zip(values, names, strict=True)):
        left, right = _x((k + 0.14) * step), _x((k + 0.86) * step)
        kind = "bar minority" if k in highlight else "bar"
        bars.append(
            f'<rect class="{kind}" x="{left:.1f}" width="{right - left:.1f}" y="{_y(value):.1f}" '
            f'height="{max(_y(0) - _y(value), 0.8):.1f}"><title>{escape(name)}: {100 * value:.1f} %</title></rect>'
        )
        middle = (left + right) / 2
        ticks.append(f'<text class="tick" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(name)}</text>')
    label = f"{title}: recall of each class, " + ", ".join(
        f"{n} {100 * v:.0f}" for n, v in zip(names, values, strict=True)
    )
    return _frame(label, "".join(bars), "".join(ticks))


def confusion_panel(title: str, shares: FloatArray, names: Sequence[str]) -> str:
    """Rows are true classes, columns predictions, each row of shares summing to 1; darker is more."""
    k = len(shares)
    side = (WIDTH - LEFT - RIGHT) / k
    cells = "".join(
        f'<rect class="cell" x="{LEFT + j * side:.1f}" y="{TOP + i * side:.1f}" width="{side:.1f}" height="{side:.1f}" '
        f'fill-opacity="{shares[i, j]:.2f}"/>'
        for i, j in np.argwhere(shares >= 0.005)
    )
    bottom = TOP + k * side
    frame = f'<rect class="edge" x="{LEFT}" y="{TOP}" width="{k * side:.1f}" height="{k * side:.1f}"/>'
    ticks = []
    for i, name in enumerate(names if k <= MOST_TICKS else ()):
        place = (i + 0.5) * side
        for x, y, anchor in ((LEFT - 5, TOP + place + 3, "end"), (LEFT + place, bottom + 12, "middle")):
            ticks.append(f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(name)}</text>')
    right = ", ".join(f"{name} {100 * shares[i, i]:.0f}" for i, name in enumerate(names))
    label = escape(f"{title}: confusion, rows are true classes; correct: {right}")
    size = f"0 0 {WIDTH} {bottom + 18:.0f}"
    return f'<svg viewBox="{size}" role="img" aria-label="{label}">{cells}{frame}{"".join(ticks)}</svg>'


FIGURE_STYLE = """
svg { --c0: #2458c5; --c1: #c8570b; --c2: #4f7f3a; --c3: #6a51a3; --ink: #1d2126; --soft: #5c6570; --line: #e2dfd7;
  background: #fff; font: 11px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --c0: #7ea6ff; --c1: #f2914a; --c2: #93c77b; --c3: #b9a3ee;
  --ink: #e8e9eb; --soft: #a0a8b3; --line: #2e343c; background: #14171b; } }
text { fill: var(--soft); } .title { fill: var(--ink); font-weight: 600; } .grid { stroke: var(--line); }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; } polygon { opacity: .18; }
""" + "".join(f".line{i} {{ stroke: var(--c{i}); }} .fill{i}, .name{i} {{ fill: var(--c{i}); }} " for i in range(4))


def _file(title: str, width: int, height: int, marks: Sequence[str]) -> str:
    """An SVG file, which brings its own style sheet."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">'
    return f"{head}<style>{FIGURE_STYLE}</style>{''.join(marks)}</svg>\n"


def sheet(title: str, panels: Sequence[tuple[str, str]], names: Sequence[str], *, across: int = 3) -> str:
    """Panels of :func:`curves_panel` as one SVG file, with their titles and the names of their curves."""
    gap, head = 12, 44
    width = across * (WIDTH + gap) + gap
    height = head + -(-len(panels) // across) * (HEIGHT + 30) + gap
    marks = [f'<text class="title" x="{gap}" y="20">{escape(title)}</text>']
    for i, name in enumerate(names):
        marks.append(f'<rect class="fill{i}" x="{gap + 80 * i}" y="29" width="9" height="9"/>')
        marks.append(f'<text x="{gap + 80 * i + 14}" y="38">{escape(name)}</text>')
    for i, (name, panel) in enumerate(panels):
        x, y = gap + (i % across) * (WIDTH + gap), head + 18 + (i // across) * (HEIGHT + 30)
        marks.append(f'<text class="title" x="{x}" y="{y - 4}">{escape(name)}</text>')
        marks.append(panel.replace("<svg ", f'<svg x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" ', 1))
    return _file(title, width, height, marks)


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

    def place(a: float, b: float) -> str:
        across = left + (np.log10(a) - first) / (last - first) * (width - left - right)
        down = top + (high - np.log10(max(b, 10.0**low))) / (high - low) * (height - top - bottom)
        return f"{across:.1f},{down:.1f}"

    marks = []
    for decade in range(int(low), int(high) + 1):
        y = place(x[0], 10.0**decade).split(",")[1]
        marks.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y}" y2="{y}"/>')
        marks.append(f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>')
    for decade in range(int(np.ceil(first - 1e-9)), int(last + 1e-9) + 1):
        across = place(10.0**decade, 10.0**high).split(",")[0]
        marks.append(f'<text x="{across}" y="{height - bottom + 16}" text-anchor="middle">{10**decade:,}</text>')
    if band is not None:
        edge = [place(a, b) for a, b in zip(x, band[1], strict=True)]
        edge += [place(a, b) for a, b in zip(reversed(x), reversed(band[0]), strict=True)]
        marks.append(f'<polygon class="fill0" points="{" ".join(edge)}"/>')
    ends = []
    for i, (name, curve) in enumerate(lines.items()):
        points = [place(a, b) for a, b in zip(x, curve, strict=True)]
        marks.append(f'<polyline class="line{i}" points="{" ".join(points)}"/>')
        ends.append((float(points[-1].split(",")[1]) + 4, i, name))
    above = -float("inf")
    for down, i, name in sorted(ends):  # names that would lie upon each other move down
        above = max(down, above + 13)
        marks.append(f'<text class="name{i}" x="{width - right + 6}" y="{above:.1f}">{escape(name)}</text>')
    marks.append(f'<text class="title" x="{left}" y="18">{escape(title)}</text>')
    marks.append(f'<text x="{(left + width - right) / 2}" y="{height - 4}" text-anchor="middle">N</text>')
    return _file(title, width, height, marks)
