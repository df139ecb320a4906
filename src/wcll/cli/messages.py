"""What commands say beside their results."""

from __future__ import annotations

import sys
from contextlib import suppress


def tell(text: str) -> None:
    """A line on standard error; if nobody reads it any more, work goes on."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
