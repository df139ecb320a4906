"""Units to workers anywhere, and their rows into one store, which this process alone writes to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch

from wcll.checks import InputError
from wcll.datasets import data_stamp
from wcll.results.owner import Owner
from wcll.results.store import Store
from wcll.running.execute import POLL, claim, heartbeat, unfinished
from wcll.running.pace import RESERVE, now
from wcll.running.plan import Job, in_step
from wcll.running.processes import Progress, Say, Workers
from wcll.running.units import Terms, made_with, rows_of

AHEAD = 2  #: units for every worker that are handed out at a time: it never waits, and little is claimed


class Cluster(Protocol):
    """Workers that train units by :func:`wcll.running.units.work`, one at a time each."""

    def workers(self) -> Mapping[str, str]:
        """The machine of every worker, by the worker's name."""

    def ask_all(self, text: str) -> Mapping[str, str]:
        """What every worker replies to one and the same unit, by its name."""

    def submit(self, text: str) -> str:
        """Hand a unit out, again if its worker is lost; returns a name for it."""

    def reply(self, seconds: float) -> tuple[str, str] | None:
        """The name of a unit that is done, and the reply; None if there is none within so many seconds."""


def agreed(cluster: Cluster, jobs: Sequence[Job], workers: Workers, data: Path | None) -> Terms:
    """The terms of all units, to which every worker has agreed: it has the same versions, code and data."""
    names = dict.fromkeys(job.first.dataset for job in jobs)
    terms = Terms(
        device=workers.device.type,
        threads=workers.threads,
        memory=workers.memory,
        sharing=max(Counter(cluster.workers().values()).values()),
        data=None if data is None else str(data.resolve()),
        stamps={name: data_stamp(name, data) for name in names},
        made_with=made_with(),
    )
    for worker, reply in cluster.ask_all(terms.text()).items():
        try:
            rows_of(reply, [])
        except InputError as error:
            name = error.argument.replace("worker", f"worker {worker}")
            raise InputError(name, error.expected, error.got, error.remedy) from None
    return terms


class Writer:
    """One who claims runs, hands them out, and writes what comes back.

    Units that workers have begun when time is over are lost to this command; the next one begins them anew.
    """

    def __init__(self, cluster: Cluster, terms: Terms, store: Store, progress: Progress, end: float) -> None:
        self.cluster, self.terms, self.store, self.progress, self.end = cluster, terms, store, progress, end
        self.owner = Owner.here()
        self.out: dict[str, list[Job]] = {}  #: what is handed out
        self.done = self.total = 0
        self.failures: list[InputError] = []

    def execute(self, jobs: Sequence[Job], say: Say) -> None:
        """Have run what the store lacks; a unit that fails does not keep the others from it, its error comes last."""
        waiting, said = unfinished(jobs, self.store), False
        self.total = sum(job.epochs for job in waiting)
        with self.owner.at_work(), heartbeat(self.store, self.owner):
            while waiting and not self.over:
                others = self.round(waiting)
                if len(others) == len(waiting):
                    if not said:
                        say(f"waiting for {len(others)} groups of runs that other processes have claimed")
                    said = True
                    time.sleep(POLL)
                waiting = unfinished(others, self.store)
                self.done = self.total - sum(job.epochs for job in waiting)
        if self.failures:
            raise self.failures[0]

    @property
    def over(self) -> bool:
        """Whether there is no time left."""
        return self.end - RESERVE < now()

    def round(self, waiting: Sequence[Job]) -> list[Job]:
        """Have run what can be of some jobs; returns those that are other processes'."""
        others = list[Job]()
        for together in in_step(waiting, torch.device(self.terms.device)):
            self.write(until=AHEAD * max(len(self.cluster.workers()), 1) - 1)
            if self.over:
                break
            mine, taken = claim(together, self.store, self.owner)
            others += taken
            if mine:
                self.out[self.cluster.submit(self.terms.text(mine))] = mine
        self.write(until=0)
        return others

    def write(self, until: int) -> None:
        """Write what comes back until so many units, or fewer, are out, or time is over."""
        while len(self.out) > until and not self.over:
            if (came := self.cluster.reply(POLL)) is None:
                continue
            name, reply = came
            jobs = self.out.pop(name)
            try:
                self.store.add(rows_of(reply, jobs))
            except InputError as error:
                self.failures.append(error)
            self.done += sum(job.epochs for job in jobs)
            self.progress(self.done, self.total)
