"""Which engine trains what: the fastest for the model and the device."""

from __future__ import annotations

from collections.abc import Sequence

from wcll.models.base import Family
from wcll.training.captured import CapturedRuns, worth_compiling
from wcll.training.engine import Engine
from wcll.training.linear import LinearRuns
from wcll.training.plain import PlainLoop
from wcll.training.ranks import ranks
from wcll.training.recipe import PLAIN
from wcll.training.runs import RunGroup, Training


def engine_for(training: Training) -> type[Engine]:
    """The fastest engine that can train such runs."""
    if training.family is Family.LINEAR and training.recipe == PLAIN:
        return LinearRuns
    recorded = training.family is not Family.OWN and ranks() is None  # others' steps may not be the same twice
    return CapturedRuns if training.device.type == "cuda" and recorded else PlainLoop


def make_engine(groups: Sequence[RunGroup], training: Training, *, plain: bool = False) -> Engine:
    """The fastest engine for the model and the device, or the plain loop."""
    kind = PlainLoop if plain else engine_for(training)
    if kind is CapturedRuns:
        return CapturedRuns(groups, training, compiled=worth_compiling(groups, training))
    return kind(groups, training)
