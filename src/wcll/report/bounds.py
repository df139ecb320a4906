"""Figures of the bounds beside what is measured."""

from __future__ import annotations

from wcll.report.figures import loglog_figure
from wcll.theory.simulation import KIND_TITLES, Trend


def trend_figure(trend: Trend) -> str:
    """What was measured (mean, and 5 to 95 % of draws) and the bounds, over N, as an SVG file."""
    points = trend.points
    lines = {
        "measured": [point.mean for point in points],
        "as printed": [point.printed for point in points],
        "corrected": [point.corrected for point in points],
    }
    title = f"{KIND_TITLES[trend.kind]}, {trend.labels} labels"
    band = [point.low for point in points], [point.high for point in points]
    return loglog_figure(title[0].upper() + title[1:], [point.n for point in points], lines, band)


def figure_name(trend: Trend) -> str:
    """The file that a figure goes to."""
    return f"bounds-{trend.kind}-{trend.labels}.svg"
