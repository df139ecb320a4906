"""Models whose parameters carry a leading run axis, so that many runs train together."""

from wcll.models.convolutional import CNN9, ResNet18
from wcll.models.dense import MLP, Linear
from wcll.models.stack import MODELS, RunStack, UserStack, build_model

__all__ = ["CNN9", "MLP", "MODELS", "Linear", "ResNet18", "RunStack", "UserStack", "build_model"]
