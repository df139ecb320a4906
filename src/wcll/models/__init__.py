"""Models whose parameters carry a leading run axis, so that many runs train together."""

from wcll.models import convolutional, dense  # noqa: F401  (they fill the registry)
from wcll.models.stack import MODELS
from wcll.models.stack import Family as Family
from wcll.models.stack import check_size as check_size

__all__ = ["MODELS"]
