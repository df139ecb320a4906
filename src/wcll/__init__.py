"""Learn classifiers from complementary labels ("this is NOT a cat") when classes are imbalanced."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wcll import functional, labels, losses

__all__ = ["__version__", "functional", "labels", "losses"]


def __getattr__(name: str) -> Any:
    # Rooms load when first used: `wcll --version` must not wait for torch.
    if name in __all__:
        return import_module(f"wcll.{name}")
    raise AttributeError(f"module 'wcll' has no attribute {name!r}")
