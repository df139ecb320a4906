"""A request to train runs: which trials, on what data, by which executor, until when, with which callbacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path

import torch

from wcll._validation import whole
from wcll.datasets import Dataset, load_dataset
from wcll.exceptions import InputError
from wcll.experiments.grouping import TOGETHER, Pace
from wcll.experiments.store import Store
from wcll.experiments.trial import Trial
from wcll.training import dtype_and_device

MOST_WORKERS = 1024  #: threads, or processes

Progress = Callable[[float, int], None]  #: called with the epochs of runs that are done, and their total
Say = Callable[[str], None]  #: called with a line of text
Load = Callable[[str], Dataset]  #: reads a data set by its name


def silent(*news: object) -> None:
    """Ignore progress and messages."""


@dataclass(frozen=True)
class RunRequest:
    """Runs that a store is to have, and how they are trained; checked when it is made, and handed down as it is."""

    store: Path | Store
    trials: Sequence[Trial] = ()
    title: str = ""
    data: Path | None = None  #: a folder with data
    device: str = "auto"
    threads: int = 1  #: of torch, in every process
    processes: int | None = 1  #: None is one per core
    memory: int | None = None  #: bytes; None takes most of what is free
    together: int = TOGETHER  #: runs that train at once, at most
    executor: str = "local"  #: by its name in ``executors.EXECUTORS``
    address: str | None = None  #: of a scheduler that is running already
    pace: Pace = field(default_factory=Pace)  #: when training has to be over, and how fast it was so far
    progress: Progress = silent
    say: Say = silent
    dry_run: bool = False  #: only estimate what it would take

    def __post_init__(self) -> None:
        """Fail if anything in it can't be used."""
        gpu = self.where.type != "cpu"
        for name, value in (("threads", self.threads), ("processes", self.processes)):
            if value is not None and whole(name, value) > MOST_WORKERS:
                raise InputError(name, f"a whole number from 1 to {MOST_WORKERS}", value)
        if gpu and self.n_processes > 1:
            raise InputError("--processes", "1 on a GPU, which trains many runs at once", self.processes)
        if self.memory is not None:
            whole("memory", self.memory)
        whole("together", self.together)

    @property
    def where(self) -> torch.device:
        """The device."""
        return dtype_and_device("float32", self.device)[1]

    @property
    def n_processes(self) -> int:
        """How many processes train: by default as many as there are cores on a CPU, and one on a GPU."""
        if self.processes is None:
            return max(cores() // self.threads, 1) if self.where.type == "cpu" else 1
        return self.processes

    @property
    def load(self) -> Load:
        """Reads a data set by its name."""
        return partial(load_dataset, data=self.data)

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.store.path if isinstance(self.store, Store) else self.store


def cores() -> int:
    """CPU cores that this process may use; in a container, as many as its share of time is worth."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or "max": no limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, ceil(int(quota) / int(period)))
    return count
