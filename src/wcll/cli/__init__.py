"""The command line: its entry point, messages on standard error, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

#: Characters that a terminal obeys instead of showing them: control codes, and marks that turn the order of letters.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text that shows what a terminal would obey.

    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def tell(text: str) -> None:
    """A line on standard error; if nobody reads it any more, work goes on."""
    with suppress(OSError):
        print(visible(text), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """A line on standard output."""
    print(visible(text))


STOPPED = 130  #: what shells call a command that Ctrl-C ended


_begun = [time.monotonic()]


def begin() -> None:
    """A command begins now; loading it, which may take seconds, is a part of its time."""
    _begun[0] = time.monotonic()


def begun() -> float:
    """When the command began, in seconds since the machine was started."""
    return _begun[0]


def stop_at_once() -> None:
    """From now on Ctrl-C, and being asked to end, end the process where it is; what ignores Ctrl-C goes on to."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, _stop)


def stop_in_order() -> None:
    """From now on they are exceptions, as there is something to leave in order."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(kind) is _stop:
            signal.signal(kind, signal.default_int_handler)


def _stop(number: int, frame: FrameType | None) -> None:
    # Not an exception: libraries that are half imported would make other errors of it.
    with suppress(OSError):
        os.write(2, b"wcll: stopped\n")
    os._exit(STOPPED)


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
