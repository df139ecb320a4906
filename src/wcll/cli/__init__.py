"""The command line."""

from __future__ import annotations

import sys

from wcll.cli.app import run


def main() -> None:
    """Run a command; bad input is one line on standard error and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to fail
    sys.exit(run(sys.argv[1:]))
