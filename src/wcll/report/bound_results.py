"""What was measured of the bounds, read from its result files, for pages and reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wcll._files import read_bytes
from wcll.exceptions import InputError
from wcll.theory.counterexample import Counterexample
from wcll.theory.simulation import KIND_TITLES, Trend

TRENDS, COUNTEREXAMPLE = "bounds.json", "bounds-counterexample.json"
COMMANDS = {TRENDS: "simulate", COUNTEREXAMPLE: "counterexample"}


@dataclass(frozen=True)
class Slope:
    """How fast something falls with N: the log-log slope, its 95 % interval, and how often the bounds held."""

    kind: str  #: finite, linear or excess
    labels: str
    title: str
    slope: float
    low: float
    high: float
    draws: int  #: at all N together
    held: int  #: draws in which the corrected bound holds
    held_printed: int

    @property
    def as_root(self) -> bool:
        """Whether the interval has -1/2."""
        return self.low <= -0.5 <= self.high

    @property
    def faster(self) -> bool:
        """Whether all of the interval is below -1/2."""
        return self.high < -0.5


@dataclass(frozen=True)
class BoundResults:
    """The simulation and the counterexample, and how each was made."""

    trends: tuple[Trend, ...]
    counterexample: Counterexample
    made: dict[str, dict[str, Any]]  #: by file

    @property
    def slopes(self) -> list[Slope]:
        """One of every kind and labels, in the order of the file."""
        return [
            Slope(
                kind=trend.kind,
                labels=trend.labels,
                title=KIND_TITLES[trend.kind],
                slope=trend.slope,
                low=trend.slope_low,
                high=trend.slope_high,
                draws=trend.draws * len(trend.points),
                held=sum(point.held for point in trend.points),
                held_printed=sum(point.held_printed for point in trend.points),
            )
            for trend in self.trends
        ]


def read_bounds(folder: Path) -> BoundResults:
    """The result files in a folder; a missing or damaged one is an error that names the command that makes it."""
    plain = {name: _read(folder / name) for name in COMMANDS}
    try:
        trends = tuple(Trend.from_dict(trend) for trend in plain[TRENDS]["trends"])
        if unknown := {trend.kind for trend in trends} - set(KIND_TITLES):
            raise ValueError(f"unknown kinds {sorted(unknown)}")
        found = Counterexample.from_dict(plain[COUNTEREXAMPLE]["counterexample"])
        return BoundResults(trends, found, {name: dict(one["made"]) for name, one in plain.items()})
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(str(folder), "whole result files of the bounds", repr(error)) from None


def _read(path: Path) -> Any:
    remedy = f"make it with: wcll bound {COMMANDS[path.name]} --out {path}"
    if not path.exists():
        raise InputError(str(path), "a result file", "none", remedy)
    try:
        return json.loads(read_bytes(path))
    except ValueError as error:  # no JSON, or no text
        if isinstance(error, InputError):
            raise
        raise InputError(str(path), "a result file of JSON", str(error), f"{remedy} --force") from None
