"""Figures of the bounds: over N, and beside what is measured."""

from __future__ import annotations

from wcll.report.figures import loglog_figure
from wcll.theory.bounds import Problem, corrected_lemma, lemma1
from wcll.theory.simulation import KIND_TITLES, Trend

SIZES = [round(10 ** (exponent / 4)) for exponent in range(8, 33)]  #: from 100 to 100 million labels


def lemma_figure(title: str, problem: Problem) -> str:
    """Lemma 1 over N, as printed and corrected, and the range of the loss, as an SVG file."""
    lines = {
        "as printed": [lemma1(problem.at(n)).value for n in SIZES],
        "corrected": [corrected_lemma(problem.at(n)).value for n in SIZES],
        "range of the loss": [problem.width] * len(SIZES),
    }
    return loglog_figure(f"Lemma 1: {title}", SIZES, lines)


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


def figure_name(labels: str, kind: str) -> str:
    """Return the name of the file for the figure of these labels and this kind of model."""
    return f"bounds-{kind}-{labels}.svg"
