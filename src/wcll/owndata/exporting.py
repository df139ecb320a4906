"""A model in a folder as one ONNX file, with its preprocessing inside.

Numbers and dates are one input, ``numbers``, columns of text another, ``texts``; images are ``images``. What stays
outside is reading: a date is a number of days since 1970 (UTC), a number or date that is missing is NaN, a text that is
missing is empty, and images have the size that the model takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wcll.onnx import OPSET, TEXTS, TOLERANCE, Before, Checked, Feeds, before_images, image_feeds, write_onnx
from wcll.owndata.folder import OwnModel
from wcll.owndata.preprocessing import Features, Preprocessing

WHAT = {
    "numbers": "float64, a row a sample; NaN where a value is missing; dates as days since 1970-01-01, UTC",
    "texts": "strings, a row a sample; empty where a value is missing; a text that is no category of its column counts "
    "for nothing, as with wcll predict --unknown-category ignore",
}


class _Columns(nn.Module):
    """Numbers as the fitted transformers make them, in float64, and categories behind them."""

    means: Tensor
    flagged: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.has_numbers = bool(preprocessing.steps)
        if not self.has_numbers:
            return
        *imputers, scaler = preprocessing.steps
        self.imputes = bool(imputers)
        if imputers:
            self.register_buffer("means", torch.as_tensor(imputers[0].statistics_, dtype=torch.float64))
            self.register_buffer("flagged", torch.as_tensor(imputers[0].indicator_.features_, dtype=torch.int64))
        self.register_buffer("mean", torch.as_tensor(scaler.mean_, dtype=torch.float64))
        self.register_buffer("scale", torch.as_tensor(scaler.scale_, dtype=torch.float64))

    def forward(self, *inputs: Tensor) -> Tensor:
        if not self.has_numbers:
            return inputs[0]
        numbers, *encoded = inputs
        if self.imputes:
            missing = numbers.isnan()
            filled = torch.where(missing, self.means, numbers)
            numbers = torch.cat([filled, missing.index_select(1, self.flagged).double()], 1)
        return torch.cat([((numbers - self.mean) / self.scale).float(), *encoded], 1)


def to_onnx(
    own: OwnModel, path: Path, features: Features, *, opset: int = OPSET, tolerance: float = TOLERANCE
) -> Checked:
    """Write model and preprocessing to a file, if it gives for samples what torch gives."""
    x = own.preprocessing.transform(features, ignore_unknown=True)
    before = _before(own)
    return write_onnx(own.classifier, path, before, feeds_of(own, features), x, opset=opset, tolerance=tolerance)


def feeds_of(own: OwnModel, features: Features) -> Feeds:
    """What such a file takes of a user's samples."""
    if isinstance(features, np.ndarray):
        width = own.preprocessing.width
        return {"numbers": features.astype(np.float64)} if width else image_feeds(own.classifier, features)
    numbers, texts = own.preprocessing.columns(features)
    return {name: array for name, array in (("numbers", numbers), (TEXTS, texts)) if array.shape[1]}


def _before(own: OwnModel) -> Before:
    preprocessing = own.preprocessing
    if preprocessing.n_features is None:
        return before_images(own.classifier)
    kinds, encoder = preprocessing.kinds, preprocessing.encoder
    categories = () if encoder is None else tuple(tuple(names.tolist()) for names in encoder.categories_)
    texts = [name for name, kind in kinds.items() if kind == "text"]
    numbers = [name for name in kinds if name not in texts] or None
    inputs: dict[str, Any] = {}
    if preprocessing.steps:
        dates = [name for name, kind in kinds.items() if kind == "date"]
        inputs["numbers"] = {"columns": numbers, "dates": dates, "what": WHAT["numbers"]}
    if categories:
        inputs[TEXTS] = {"columns": texts, "what": WHAT[TEXTS]}
    metadata = {"inputs": inputs, "preprocessing": preprocessing.to_dict()}
    return Before(_Columns(preprocessing), categories, metadata)
