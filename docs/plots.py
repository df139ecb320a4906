"""Small plots of generated pages, each an SVG file as wide as a phone; where there is room they stand side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from wcll.report.render import render

WIDTH, HEIGHT = 310, 210  #: without the names of curves, which stand below
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 28, 38
LINE = 15  #: of text
MOST = 4  #: curves of one panel: the style sheet of SVG files has as many colours


@dataclass(frozen=True)
class Panel:
    """Curves over the same x, with the words of both axes."""

    title: str
    across: str
    x: Sequence[float]
    curves: Mapping[str, Sequence[float]]  #: by name; a name that is empty is not shown
    decades: bool = False  #: whether x is drawn by its logarithm
    limits: tuple[float, float] | None = None  #: of y

    def place(self, x: float) -> float:
        """Where x stands, from 0 to 1."""
        first, last, value = (log10(v) if self.decades else v for v in (self.x[0], self.x[-1], x))
        return (value - first) / (last - first)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest y, rounded to ticks."""
        if self.limits:
            return self.limits
        values = [v for curve in self.curves.values() for v in curve]
        low, high = min(values), max(values)
        step = tick_step(low, high if high > low else low + 1)
        return floor(low / step) * step, ceil(max(high, low + step) / step) * step

    @property
    def named(self) -> list[tuple[int, str]]:
        """The curves that have names, with their numbers."""
        return [(i, name) for i, name in enumerate(self.curves) if name]

    @property
    def x_ticks(self) -> list[float]:
        """Powers of ten, or round numbers."""
        if self.decades:
            return [10.0**d for d in range(ceil(log10(self.x[0]) - 1e-9), floor(log10(self.x[-1]) + 1e-9) + 1)]
        return ticks(self.x[0], self.x[-1])


def tick_step(low: float, high: float) -> float:
    """A round distance, three to six of which lie between two numbers.

    >>> tick_step(0, 100), tick_step(-1.3, 2)
    (20.0, 1.0)
    """
    rough = (high - low) / 5
    power = 10.0 ** floor(log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= 0.8 * rough)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from one to another."""
    step = tick_step(low, high)
    return [i * step for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def figure(title: str, panel: Panel) -> str:
    """The file; its title is what a screen reader says, the panel shows its own."""
    height = HEIGHT + LINE * len(panel.named)
    return render("file.svg", title=title, width=WIDTH, height=height, marks=_marks(panel)) + "\n"


def _marks(panel: Panel) -> str:
    low, high = panel.ends
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x_of(value: float) -> str:
        return f"{LEFT + panel.place(value) * across:.1f}"

    def y_of(value: float) -> float:
        return TOP + (high - min(max(value, low), high)) / (high - low) * down

    parts = [f'<text class="title" x="{LEFT}" y="14">{escape(panel.title)}</text>']
    for tick in ticks(low, high):
        y = y_of(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
    for tick in panel.x_ticks:
        parts.append(f'<text x="{x_of(tick)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_number(tick)}</text>')
    middle = LEFT + across / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(panel.across)}</text>')
    for i, (_, curve) in enumerate(panel.curves.items()):
        points = " ".join(f"{x_of(x)},{y_of(y):.1f}" for x, y in zip(panel.x, curve, strict=True))
        parts.append(f'<polyline class="line{i % MOST}" points="{points}"/>')
    for row, (i, name) in enumerate(panel.named):
        y = HEIGHT + LINE * row + LINE // 2
        parts.append(f'<polyline class="line{i % MOST}" points="{LEFT},{y} {LEFT + 20},{y}"/>')
        parts.append(f'<text class="name{i % MOST}" x="{LEFT + 26}" y="{y + 4}">{escape(name)}</text>')
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
