"""Tables of generated pages, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(about: str, heads: Iterable[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """Lines of a table below what it is about; the first columns are ``words``, the others numbers. None without rows.

    >>> print(*table("Two numbers:", ("method", "%"), [("PC", "1.0")]), sep="\\n")
    Two numbers:
    <BLANKLINE>
    | method | % |
    | --- | ---: |
    | PC | 1.0 |
    <BLANKLINE>
    """
    names, cells = list(heads), list(rows)
    if not cells:
        return []
    lines = [names, ["---"] * words + ["---:"] * (len(names) - words), *cells]
    return [about, "", *(f"| {' | '.join(line)} |" for line in lines), ""]
