"""Which runs train together: a function of the suite alone, never of what is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from wcll.suites.trial import Trial

#: What may differ between runs that train together: they share the data, the batches and the model's shape.
OWN = {"loss", "loss_options", "loss_revision", "assume", "weights", "pi", "bias", "beta", "lr"}
SHARED = tuple(field.name for field in fields(Trial) if field.name not in OWN)
UNITS_IN_STEP = 40  #: units that a GPU is given at once: what is lost if the process dies
TOGETHER = 64  #: runs that train at once, unless said otherwise
#: What decides the data of a trial.
DATA = tuple(name for name in SHARED if not name.startswith(("model", "optim", "weight_", "batch", "epochs", "dtype")))


@dataclass(frozen=True)
class Unit:
    """Runs that are trained together, and written together or not at all."""

    trials: tuple[Trial, ...]

    @property
    def data(self) -> tuple[Any, ...]:
        """Equal for units that share a task."""
        first = self.trials[0]
        return (first.ordinary, *(getattr(first, name) for name in DATA))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its runs."""
        return tuple(trial.key for trial in self.trials)


def plan(trials: Sequence[Trial], *, together: int) -> list[Unit]:
    """Cut trials into units of at most ``together`` runs that share everything in SHARED; order is kept."""
    groups: dict[tuple[Any, ...], list[Trial]] = {}
    for trial in dict.fromkeys(trials):
        shared = (trial.ordinary, *(getattr(trial, name) for name in SHARED))
        groups.setdefault(shared, []).append(trial)
    return [
        Unit(tuple(group[start : start + together]))
        for group in groups.values()
        for start in range(0, len(group), together)
    ]


def in_step(units: Sequence[Unit], device: torch.device) -> list[list[Unit]]:
    """Units to be handed out at once: one on a CPU; on a GPU, which has room for more, those that may be alike."""
    if device.type != "cuda":
        return [[unit] for unit in units]
    kinds: dict[object, list[list[Unit]]] = {}
    for unit in units:
        first = unit.trials[0]
        kind = tuple(getattr(first, name) for name in (*(n for n in SHARED if n not in DATA), "dataset", "classes"))
        bundles = kinds.setdefault((kind, first.ordinary), [[]])
        if len(bundles[-1]) == UNITS_IN_STEP:
            bundles.append([])
        bundles[-1].append(unit)
    return [bundle for bundles in kinds.values() for bundle in bundles]
