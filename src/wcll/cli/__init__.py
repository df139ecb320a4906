"""The command line."""

from __future__ import annotations

import os
import sys

from wcll.cli.stopping import stop_at_once


def main() -> None:
    """Run a command; bad input is one line on standard error and exit code 2, never a traceback."""
    stop_at_once()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (it is open as long as the process lives)
        if hasattr(stream := getattr(sys, name), "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to fail
    from wcll.cli.app import run  # after the above: it takes its time

    sys.exit(run(sys.argv[1:]))
