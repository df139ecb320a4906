"""What is to be run: trials, and suites of them as TOML files."""

from wcll.suites.loading import load_suite, packaged_suites, parse_suite
from wcll.suites.suite import Suite
from wcll.suites.trial import Trial

__all__ = ["Suite", "Trial", "load_suite", "packaged_suites", "parse_suite"]
