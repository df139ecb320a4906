"""Who has claimed a run, and whether that process still lives."""

from __future__ import annotations

import os
import platform
import uuid
from dataclasses import dataclass
from pathlib import Path

BEAT, STALE = 10.0, 60.0  #: seconds between heartbeats, and without one until an owner elsewhere counts as dead


@dataclass(frozen=True)
class Owner:
    """A process that runs trials."""

    token: str
    host: str
    pid: int
    started: str  #: tells the process from a later one with the same pid

    @staticmethod
    def here() -> Owner:
        """This process."""
        return Owner(uuid.uuid4().hex, _host(), os.getpid(), _start_of(os.getpid()))

    def alive(self, observer: Owner, silent: bool) -> bool:
        """Whether the owner works on: one that is silent for long does not; on the same machine, one that is gone."""
        if silent:
            return False
        if self.host != observer.host or os.name != "posix":
            return True
        if self.pid == os.getpid():
            return False  # this process under an earlier token: it has let go
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return _start_of(self.pid) == self.started


def _host() -> str:
    """The machine, and on Linux the world of process numbers that this process lives in."""
    try:
        world = os.readlink("/proc/self/ns/pid")
    except OSError:
        world = ""
    return f"{platform.node()} {world}".strip()


def _start_of(pid: int) -> str:
    """When a process started, in the kernel's own words; empty where there is no such file, "dead" for a zombie."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "dead" if state in "ZX" else fields[18]
    except (OSError, IndexError, ValueError):
        return ""
