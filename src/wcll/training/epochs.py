"""The one loop over epochs; whatever happens beside training is an observer of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wcll.training.engine import Engine

Observer = Callable[[Engine], bool | None]  #: told of every epoch that is over; True ends training


def train(engine: Engine, epochs: int, observers: Iterable[Observer]) -> None:
    """Run epochs until there are ``epochs``, or an observer returns True; every observer sees every epoch."""
    watching = list(observers)
    while engine.epoch < epochs:
        engine.run_epoch()
        if any([observer(engine) for observer in watching]):  # noqa: C419  (every one is called)
            return
