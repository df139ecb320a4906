"""Models whose parameters carry a leading run axis, so that many runs train together."""

from wcll.models import architectures  # noqa: F401  (they fill the registry)
from wcll.models.registry import MODELS
from wcll.models.registry import Family as Family
from wcll.models.registry import check_size as check_size

__all__ = ["MODELS"]
