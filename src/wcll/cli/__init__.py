"""The command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; bad input is one line on standard error and exit code 2, never a traceback."""
    from wcll.cli.app import run

    sys.exit(run(sys.argv[1:]))
