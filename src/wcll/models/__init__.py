"""Models whose parameters carry a leading run axis, so that many runs train together."""

from wcll.models.convolutional import CNN9, ResNet18
from wcll.models.dense import MLP, Linear
from wcll.models.stack import (
    MODELS,
    Family,
    ModelChoice,
    RunStack,
    Shape,
    UserStack,
    build_model,
    check_size,
    family_of,
    outline_model,
    predict_logits,
)

__all__ = ["CNN9", "MLP", "MODELS", "Family", "Linear", "ModelChoice", "ResNet18", "RunStack", "Shape", "UserStack"]
__all__ += ["build_model", "check_size", "family_of", "outline_model", "predict_logits"]
