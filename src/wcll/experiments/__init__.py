"""Experiments: suites of trials, the store of their results, and the loop between them."""

from wcll.experiments.loading import load_suite, packaged_suites, parse_suite
from wcll.experiments.outcomes import Row
from wcll.experiments.plan import Unit, plan
from wcll.experiments.store import Store
from wcll.experiments.suite import Suite
from wcll.experiments.trial import Trial

__all__ = ["Row", "Store", "Suite", "Trial", "Unit", "load_suite", "packaged_suites", "parse_suite", "plan"]
