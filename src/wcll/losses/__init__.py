"""Losses for complementary labels: the registry, the targets they take, and any of them as a ``torch.nn.Module``.

The plain functions are in :mod:`wcll.functional`.
"""

# ruff: noqa: F401, I001  (families stand in the order of their papers, and so do their losses in the registry)
from wcll.losses import unbiased, forward, surrogates, discriminative, robust, weighted, ordinary
from wcll.losses.registry import LOSSES, Context, LossModule, LossSpec
from wcll.losses.targets import Targets

__all__ = ["LOSSES", "Context", "LossModule", "LossSpec", "Targets"]
