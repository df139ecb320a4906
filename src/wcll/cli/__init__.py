"""The command line."""

from __future__ import annotations

import os
import signal
import sys

from wcll.cli.app import run


def main() -> None:
    """Run a command; bad input is one line on standard error and exit code 2, never a traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (it is open as long as the process lives)
        if hasattr(stream := getattr(sys, name), "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to fail
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who is asked to end ends as after Ctrl-C
    sys.exit(run(sys.argv[1:]))
