"""Docstrings as the site shows them: each numbers its own references, and names are found wherever they are shown."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def _own_numbers(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """``.. [1] A paper`` is a footnote of the whole page to Sphinx, on which every loss has a first one."""
    lines[:] = [re.sub(r"\[(\d)\]_", r"[\1]", re.sub(r"^\.\. \[(\d)\] ", r"| [\1] ", line)) for line in lines]


def _by_name(app: Sphinx, env: Any, node: Any, shown: Any) -> Any:
    """Modules name each other's functions."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True  # search all modules
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], node["reftarget"], node, shown)


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _own_numbers)
    app.connect("missing-reference", _by_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
