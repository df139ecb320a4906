"""Ctrl-C while a command is still loaded: nothing is under way that would have to be tidied up. And when it began."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from types import FrameType

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
