"""What was run: rows, the store that keeps them, and files to carry them."""

from typing import TYPE_CHECKING

from wcll.results.store import Store

if TYPE_CHECKING:
    from wcll.results.row import Row

__all__ = ["Row", "Store"]

if not TYPE_CHECKING:

    def __getattr__(name):
        # Rows need torch: a list of what is in a store must not wait for it.
        if name != "Row":
            raise AttributeError(f"module 'wcll.results' has no attribute {name!r}")
        from wcll.results.row import Row

        return Row
