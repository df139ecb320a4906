"""Models for tables and flattened images."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from torch import Tensor, nn

from wcll._validation import whole
from wcll.exceptions import InputError
from wcll.models.layers import Draws, RunDropout, RunLinear
from wcll.models.stack import MODELS, Family, RunStack, Shape

MOST_LAYERS = 1000  #: hidden ones; each is a module, which takes time and memory even if it is narrow


@MODELS.add("linear")
class Linear(RunStack):
    """One linear layer on flattened inputs: the paper's model for MNIST."""

    family = Family.LINEAR

    def build(self, draws: Draws, shape: Shape, n_classes: int) -> None:
        """One layer."""
        self.layer = RunLinear(draws, prod(shape), n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, ...) -> (runs, n, classes)."""
        logits: Tensor = self.layer(x.flatten(1))
        return logits


@MODELS.add("mlp")
class MLP(RunStack):
    """Hidden layers with ReLU, and drop-out after each if asked for."""

    family = Family.DENSE

    def build(
        self, draws: Draws, shape: Shape, n_classes: int, *, hidden: int = 500, layers: int = 1, dropout: float = 0.0
    ) -> None:
        """``layers`` layers of ``hidden`` units, and the output."""
        if whole("layers", layers) > MOST_LAYERS:
            raise InputError("layers", f"at most {MOST_LAYERS}", layers)
        widths = [prod(shape), *[whole("hidden", hidden)] * layers]
        self.hidden = nn.ModuleList(RunLinear(draws, a, b) for a, b in pairwise(widths))
        self.dropouts = nn.ModuleList(RunDropout(draws.seeds, dropout, layer) for layer in range(layers))
        self.output = RunLinear(draws, hidden, n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, ...) -> (runs, n, classes)."""
        x = x.flatten(1)
        for layer, dropout in zip(self.hidden, self.dropouts, strict=True):
            x = dropout(layer(x).relu(), step)
        logits: Tensor = self.output(x)
        return logits
