"""The one loop over epochs; whatever happens beside training is an observer of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wcll.training.engine import Engine


@dataclass(frozen=True)
class EpochEnd:
    """What observers are told after an epoch."""

    engine: Engine
    epoch: int  #: how many are done
    seconds: float  #: that it took


Observer = Callable[[EpochEnd], bool | None]


def train(engine: Engine, epochs: int, observers: Iterable[Observer]) -> None:
    """Run epochs until there are ``epochs``, or an observer returns True; every observer sees every epoch."""
    watching = list(observers)
    while engine.epoch < epochs:
        start = time.perf_counter()
        engine.run_epoch()
        end = EpochEnd(engine, engine.epoch, time.perf_counter() - start)
        if any([observer(end) for observer in watching]):  # noqa: C419  (every one is called)
            return
