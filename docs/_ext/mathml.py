"""Formulas as MathML, written when the site is built: browsers draw them without a script and without a network."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)
BAR = "ˉ"  #: as the reader writes it
SPACE = "{http://www.w3.org/1998/Math/MathML}"
ElementTree.register_namespace("", SPACE[1:-1])

#: Commands that docutils' reader of TeX lacks, or takes at the beginning of a group only, and what says the same.
SAME = {r"\textstyle": "", r"\dots": r"\ldots"}


def _mathml(node: nodes.Element, *, block: bool) -> str:
    tex = node.astext()
    for command, other in SAME.items():
        tex = tex.replace(command, other)
    try:
        return _with_bars(str(latex2mathml.tex2mathml(tex, as_block=block)))
    except MathError as error:
        log.warning("%s: %s", error, tex, location=node)
        return f"<code>{escape(tex)}</code>"


def _with_bars(formula: str) -> str:
    """ȳ as one sign, which every font can draw, and the index of a letter with a bar beside it.

    The reader puts a bar over it by the rules for accents, for which few fonts have the sizes, and an index below it,
    as under a sum.
    """
    named = re.sub(r"&(?!lt;|gt;|amp;|quot;)\w+;", lambda one: unescape(one[0]), formula)  # XML knows few names
    tree = ElementTree.fromstring(named)
    for node in [*tree.findall(".//{*}mover"), *tree.findall(".//{*}munderover")]:
        letter, *index, above = node
        if above.text == BAR:
            node[:], node.tag = [_barred(letter, above), *index], SPACE + ("msub" if index else "mrow")
            node.attrib.clear()
    return ElementTree.tostring(tree, encoding="unicode")


def _barred(letter: ElementTree.Element, bar: ElementTree.Element) -> ElementTree.Element:
    sign = normalize("NFC", f"{letter.text}\N{COMBINING MACRON}")
    whole = ElementTree.Element(SPACE + ("mi" if len(sign) == 1 else "mover"))
    if len(sign) == 1:
        whole.text = sign
    else:
        whole.extend([letter, bar])
    return whole


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
