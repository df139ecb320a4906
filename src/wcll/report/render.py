"""Templates of the packages, filled: one self-contained HTML page, Markdown, or SVG."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from wcll.report.cells import Cell


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
