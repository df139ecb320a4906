"""Who has claimed a run, and whether that process still lives."""

from __future__ import annotations

import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

BEAT, STALE = 10.0, 60.0  #: seconds between heartbeats, and without one until an owner elsewhere counts as dead
CLOCK = 5.0  #: seconds by which a process's start may seem to move when the machine's clock is set

_at_work: dict[str, int] = {}  # tokens of this process that train, and their threads


@dataclass(frozen=True)
class Owner:
    """A process that runs trials, or one of its threads."""

    token: str
    host: str
    pid: int
    started: str  #: tells the process from a later one with the same pid

    @staticmethod
    def here() -> Owner:
        """This process."""
        return Owner.of(os.getpid())

    @staticmethod
    def of(pid: int) -> Owner:
        """A process of this machine, under a new token."""
        return Owner(uuid.uuid4().hex, _host(), pid, str(psutil.Process(pid).create_time()))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """For so long, other threads of this process leave the owner what it has claimed."""
        _at_work[self.token] = threading.get_ident()
        try:
            yield
        finally:
            _at_work.pop(self.token, None)

    def alive(self, observer: Owner, silent: bool) -> bool:
        """Whether the owner works on: one that is silent for long does not; on the same machine, one that is gone."""
        if silent:
            return False
        if self.host != observer.host:
            return True
        if self.pid == os.getpid():
            # An earlier token has let go; one of this very thread could be waited for for ever.
            return _at_work.get(self.token, threading.get_ident()) != threading.get_ident()
        try:
            process = psutil.Process(self.pid)
            return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) and self._is(process)
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True  # somebody else's: its silence will tell

    def _is(self, process: psutil.Process) -> bool:
        """Whether this is the process that has claimed.

        Older versions counted the start of a process from the machine's: such a one is believed until it is silent.
        """
        return "." not in self.started or abs(process.create_time() - float(self.started)) < CLOCK


def _host() -> str:
    """The machine, and on Linux the world of process numbers that this process lives in."""
    try:
        world = os.readlink("/proc/self/ns/pid")
    except OSError:
        world = ""
    return f"{platform.node()} {world}".strip()
