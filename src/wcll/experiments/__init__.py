"""Experiments: suites of trials, how they are run, and the store of their results."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wcll.experiments.row import Row
    from wcll.experiments.store import Store
    from wcll.experiments.suite import Suite, load_suite, packaged_suites, parse_suite
    from wcll.experiments.trial import Trial

__all__ = ["Row", "Store", "Suite", "Trial", "load_suite", "packaged_suites", "parse_suite"]

if not TYPE_CHECKING:
    _HOMES = {"Row": "row", "Store": "store", "Trial": "trial"}  # the other names are in suite

    def __getattr__(name):
        # Trials and rows need torch: a list of what is in a store must not wait for it.
        if name not in __all__:
            raise AttributeError(f"module 'wcll.experiments' has no attribute {name!r}")
        return getattr(import_module(f"wcll.experiments.{_HOMES.get(name, 'suite')}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
