"""What commands say beside their results, and text as it may be printed."""

from __future__ import annotations

import re
import sys
from contextlib import suppress

#: Characters that a terminal obeys instead of showing them: control codes, and marks that turn the order of letters.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text that shows what a terminal would obey.

    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def tell(text: str) -> None:
    """A line on standard error; if nobody reads it any more, work goes on."""
    with suppress(OSError):
        print(visible(text), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """A line on standard output."""
    print(visible(text))
