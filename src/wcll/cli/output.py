"""What commands print with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """A console as wide as the terminal, or wide enough for any table where there is none."""
    from rich.console import Console

    screen = Console(highlight=False)
    if not screen.is_terminal:
        screen.width = 200
    return screen
