"""Formulas as MathML, written when the site is built: browsers draw them without a script and without a network."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)

#: Commands that docutils' reader of TeX lacks, or takes at the beginning of a group only, and what says the same.
SAME = {r"\textstyle": "", r"\dots": r"\ldots"}


def _mathml(node: nodes.Element, *, block: bool) -> str:
    tex = node.astext()
    for command, other in SAME.items():
        tex = tex.replace(command, other)
    try:
        return str(latex2mathml.tex2mathml(tex, as_block=block))
    except MathError as error:
        log.warning("%s: %s", error, tex, location=node)
        return f"<code>{escape(tex)}</code>"


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{_mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    formula = _mathml(node, block=True)
    self.body.append(f'<div class="math" role="math" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
