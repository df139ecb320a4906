"""One self-contained HTML page from a template."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def percent(figure: dict[str, float]) -> str:
    """``72.3 ± 1.2`` from fractions; no ± for a single trial."""
    mean, std = 100 * figure["mean"], 100 * figure["std"]
    return f"{mean:.1f}" if std != std else f"{mean:.1f} ± {std:.1f}"


def render(template: str, **values: Any) -> str:
    """Fill a template of this package; a missing value is an error."""
    environment = Environment(loader=PackageLoader("wcll.report"), autoescape=True, undefined=StrictUndefined)
    environment.filters["percent"] = percent
    return environment.get_template(template).render(**values)
