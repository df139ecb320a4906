"""Units of work that rest instead of training, for measurements of whoever hands them out; workers import this.

A unit is one run, and rests for as many seconds as its learning rate says. All else of it is real: settings that travel
and are checked, data, evaluation, a row as sixty epochs leave it. The package knows nothing of this. It calls ``train``
by one name (``wcll.experiments.worker.train``), which is replaced here, in every process that is about to do a unit:
workers are sent :func:`work`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from wcll.experiments import load_suite, messages, worker
from wcll.experiments.grouping import Job
from wcll.experiments.train import Recording, Seen, train

JOURNAL = "WCLL_BENCHMARK_JOURNAL"  #: the variable that names the file in which units note that they begin
APART = 1e-9  #: seconds by which units differ, so that each is a run of its own; they share their data
_recorded: list[list[Recording]] = []  # by the first unit of this process


class Begun(NamedTuple):
    """A line of the journal: a process begins a unit, at a moment that all processes of a machine share."""

    process: int
    moment: float
    key: str


def jobs_of(seconds: float, count: int) -> list[Job]:
    """Units that rest for so long, each of its own key."""
    first = next(load_suite("digits").all_trials([0]))
    return [Job((replace(first, lr=seconds + APART * (i + 1)),)) for i in range(count)]


def work(text: str) -> str:
    """What workers do with a unit."""
    worker.train = rest
    return messages.work(text)


def rest(jobs: Sequence[Seen], device: Any, *, progress: Any, **options: Any) -> list[Recording]:
    """In place of training: what a process recorded when it trained its first unit, after as long as a unit says."""
    ((job, view),) = jobs
    if not _recorded:
        _recorded.append(train([(Job((replace(job.first, lr=1e-2),)), view)], device))
    with open(os.environ[JOURNAL], "a") as journal:  # a line is written at once, and whole
        journal.write(f"{os.getpid()} {time.monotonic()} {job.first.key}\n")
    time.sleep(job.first.lr)
    progress(job.epochs)
    return _recorded[0]


def journal(path: Path) -> list[Begun]:
    """What is in a journal, in the order of time."""
    lines = (line.split() for line in path.read_text().splitlines())
    return sorted((Begun(int(process), float(moment), key) for process, moment, key in lines), key=lambda b: b.moment)
