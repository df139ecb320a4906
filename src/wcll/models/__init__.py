"""Models whose parameters carry a leading run axis, so that many runs train together."""

from wcll.models import architectures  # noqa: F401  (they fill the registry)
from wcll.models.registry import MODELS

__all__ = ["MODELS"]
