"""What was run: rows, the store that keeps them, and files to carry them."""

from wcll.results.row import Row
from wcll.results.store import Store

__all__ = ["Row", "Store"]
