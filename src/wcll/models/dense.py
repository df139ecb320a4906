"""Models for tables and flattened images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from wcll.checks import whole
from wcll.models.layers import Draws, RunDropout, RunLinear
from wcll.models.stack import MODELS, Family, RunStack, Shape


@MODELS.add("linear")
class Linear(RunStack):
    """One linear layer on flattened inputs: the paper's model for MNIST."""

    family = Family.LINEAR

    def __init__(
        self, input_shape: Shape, n_classes: int, seeds: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__(seeds)
        self.layer = RunLinear(Draws(seeds, dtype), prod(input_shape), n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, ...) -> (runs, n, classes)."""
        logits: Tensor = self.layer(x.flatten(1))
        return logits


@MODELS.add("mlp")
class MLP(RunStack):
    """Hidden layers with ReLU, and drop-out after each if asked for."""

    family = Family.DENSE

    def __init__(
        self,
        input_shape: Shape,
        n_classes: int,
        seeds: Sequence[int],
        dtype: torch.dtype = torch.float32,
        *,
        hidden: int = 500,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(seeds)
        whole("hidden", hidden)
        whole("layers", layers)
        draws = Draws(seeds, dtype)
        widths = [prod(input_shape), *[hidden] * layers]
        self.hidden = nn.ModuleList(RunLinear(draws, a, b) for a, b in pairwise(widths))
        self.dropouts = nn.ModuleList(RunDropout(seeds, dropout, place) for place in range(layers))
        self.output = RunLinear(draws, hidden, n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, ...) -> (runs, n, classes)."""
        x = x.flatten(1)
        for layer, dropout in zip(self.hidden, self.dropouts, strict=True):
            x = dropout(layer(x).relu(), step)
        logits: Tensor = self.output(x)
        return logits
