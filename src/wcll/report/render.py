"""Templates of the packages, filled: one self-contained HTML page, or Markdown."""

from __future__ import annotations

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from wcll.report.cells import Cell


def render(template: str, *, package: str = "wcll.report", **values: Any) -> str:
    """Fill a template of a package, which may extend those of this one; a missing value is an error.

    HTML is escaped, Markdown has lines of its own.
    """
    html = template.endswith(".html")
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("wcll.report")]),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=not html,
        lstrip_blocks=not html,
    )
    environment.filters["bold"] = bold
    return environment.get_template(template).render(**values)


def bold(cell: Cell) -> str:
    """A cell's text in Markdown, bold for the best."""
    return f"**{cell.text()}**" if cell.best else cell.text()
