"""Architectures for images, tables and flattened images."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from torch import Tensor, nn
from torch.nn import functional

from wcll._validation import whole
from wcll.exceptions import InputError
from wcll.models.layers import Draws, RunBatchNorm, RunConv, RunDropout, RunLinear
from wcll.models.registry import MODELS, Family, RunStack, Shape, image_shape


def _pooled(features: Tensor, runs: int) -> Tensor:
    """The mean over positions of features (n, runs * c, h, w): (runs, n, c)."""
    n = features.shape[0]  # len(features) would fix it in what torch exports
    return features.mean((2, 3)).view(n, runs, -1).transpose(0, 1)


@MODELS.add("cnn9")
class CNN9(RunStack):
    """The paper's network: nine 3x3 convolutions without bias, each with batch norm and ReLU, and a linear layer.

    Max pooling and drop-out (of channels) follow every three convolutions, whose widths are ``width``, twice and four
    times ``width``; the linear layer sees the mean over positions.
    """

    family = Family.IMAGE

    def build(self, draws: Draws, shape: Shape, n_classes: int, *, width: int = 64, dropout: float = 0.25) -> None:
        """``width`` channels at first, then two and four times as many."""
        whole("width", width)
        channels, height, wide = image_shape("cnn9", shape)
        if min(height, wide) < 8:
            raise InputError("X", "images of at least 8 x 8 pixels for model 'cnn9'", f"{height} x {wide}")
        widths = [channels] + [width] * 3 + [2 * width] * 3 + [4 * width] * 3
        self.convolutions = nn.ModuleList(RunConv(draws, a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(RunBatchNorm(draws, w) for w in widths[1:])
        self.dropouts = nn.ModuleList(RunDropout(draws.seeds, dropout, layer) for layer in range(3))
        self.output = RunLinear(draws, 4 * width, n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, c, h, w) -> (runs, n, classes)."""
        x = x.unsqueeze(1) if x.ndim == 3 else x
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            x = norm(convolution(x)).relu()
            if i % 3 == 2:
                x = self.dropouts[i // 3](functional.max_pool2d(x, 2), step)
        logits: Tensor = self.output(_pooled(x, self.n_runs))
        return logits


class Block(nn.Module):
    """Two convolutions around a short cut."""

    def __init__(self, draws: Draws, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = RunConv(draws, n_in, n_out, stride=stride), RunConv(draws, n_out, n_out)
        self.norm1, self.norm2 = RunBatchNorm(draws, n_out), RunBatchNorm(draws, n_out)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.short = nn.Sequential(RunConv(draws, n_in, n_out, size=1, stride=stride), RunBatchNorm(draws, n_out))

    def forward(self, x: Tensor) -> Tensor:
        """(n, runs * in, h, w) -> (n, runs * out, h', w')."""
        inner: Tensor = self.norm2(self.second(self.norm1(self.first(x)).relu()))
        added: Tensor = inner + self.short(x)
        return added.relu()


@MODELS.add("resnet18")
class ResNet18(RunStack):
    """ResNet-18 with a 3x3 stem, for images of about 32 pixels (stride 1) or 64 pixels and more (stride 2)."""

    family = Family.IMAGE

    def build(self, draws: Draws, shape: Shape, n_classes: int, *, width: int = 64) -> None:
        """``width`` channels at first, eight times as many at last."""
        whole("width", width)
        channels, height, wide = image_shape("resnet18", shape)
        self.stem = RunConv(draws, channels, width, stride=1 if min(height, wide) < 64 else 2)
        self.norm = RunBatchNorm(draws, width)
        blocks: list[Block] = []
        for n_in, n_out in pairwise([width, width, 2 * width, 4 * width, 8 * width]):
            blocks += [Block(draws, n_in, n_out, n_out // n_in), Block(draws, n_out, n_out, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.output = RunLinear(draws, 8 * width, n_classes)

    def forward(self, x: Tensor, step: int | Tensor = 0) -> Tensor:
        """(n, c, h, w) -> (runs, n, classes)."""
        x = x.unsqueeze(1) if x.ndim == 3 else x
        x = self.blocks(self.norm(self.stem(x)).relu())
        logits: Tensor = self.output(_pooled(x, self.n_runs))
        return logits


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
