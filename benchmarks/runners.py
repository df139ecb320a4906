"""What a runner costs beside the work: overhead of every unit, and 10,000 empty units whose workers are killed.

    python benchmarks/runners.py                          # units of 0.1, 1 and 10 s by every runner, two workers
    python benchmarks/runners.py --simulate dask          # 10,000 empty units, workers killed with -9

Units go through the package's runners into a store of its own; instead of training they rest (``resting.py`` says how).
The overhead of a unit is the time from its beginning to that of the next one in the same process, less the time that it
rests: what a worker loses. The start of processes is not in it, and is told apart.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import resting

from wcll.experiments import Store, executors
from wcll.experiments.executors import EXECUTORS
from wcll.experiments.grouping import Job
from wcll.experiments.request import RunRequest
from wcll.experiments.worker import Tasks

WORKERS = 2
COUNTS = {0.1: 200, 1.0: 20, 10.0: 4}  #: how many units of how many seconds
EMPTY, KILLS = 10_000, 20  #: units of the simulation, and workers that are killed on the way
COLUMNS = ("seconds", "units", "runner", "start s", "wall s", "ideal s", "overhead a unit, ms", "of local's")
RECENT = 10  #: lines of the journal in which a worker that is alive is looked for


@dataclass(frozen=True)
class Measured:
    """How some units went."""

    begun: list[resting.Begun]
    started: float  #: seconds until the first unit began
    wall: float  #: seconds from then until the last row was written
    rows: int
    size: int  #: bytes of the store

    @property
    def again(self) -> int:
        """Units that were begun more than once, as often as they were."""
        return len(self.begun) - len({one.key for one in self.begun})

    def overhead(self, seconds: float) -> float:
        """Seconds that a worker loses with every unit that rests for so many."""
        by_process: dict[int, list[float]] = {}
        for one in self.begun:
            by_process.setdefault(one.process, []).append(one.moment)
        return mean(after - before for moments in by_process.values() for before, after in pairwise(moments)) - seconds


@contextmanager
def at_rest(folder: Path) -> Iterator[Path]:
    """Workers that are started meanwhile rest instead of training, and note it in a journal."""
    here, journal = str(Path(__file__).parent), folder / "journal.txt"
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    before = dict(os.environ)
    os.environ.update({"PYTHONPATH": paths, resting.JOURNAL: str(journal)})
    try:
        with replaced(executors, "work", resting.work):
            yield journal
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Something else under a name, for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def measure(
    runner: str, jobs: Sequence[Job], progress: Callable[[Path, float], None] = lambda journal, share: None
) -> Measured:
    """Have units done by one of the package's runners, into a store; ``progress`` is told what share is written."""
    with TemporaryDirectory(prefix="wcll-") as name, at_rest(Path(name)) as journal:
        folder, start = Path(name), time.monotonic()
        tell = lambda done, total: progress(journal, done / total)  # noqa: E731
        request = RunRequest(
            folder / "results.sqlite", device="cpu", processes=WORKERS, executor=runner, progress=tell, say=print
        )
        with EXECUTORS[runner](request, jobs, Tasks(request.load)) as fill, Store(request.path) as store:
            fill(store)
            end = time.monotonic()
            keys = [row.key for row in store.rows()]
            assert sorted(keys) == sorted(key for job in jobs for key in job.keys), "each unit once, and no other"
        begun, size = resting.journal(journal), (folder / "results.sqlite").stat().st_size
        return Measured(begun, begun[0].moment - start, end - begun[0].moment, len(keys), size)


def compare(counts: dict[float, int]) -> Iterator[str]:
    """A line for every length of units and every runner, local processes first."""
    yield in_columns(*COLUMNS)
    for seconds, count in counts.items():
        local = None
        for runner in EXECUTORS:
            one = measure(runner, resting.jobs_of(seconds, count))
            lost, ideal = one.overhead(seconds), seconds * count / WORKERS
            local = lost if local is None else local
            figures = (
                f"{one.started:.1f}",
                f"{one.wall:.2f}",
                f"{ideal:.2f}",
                f"{1000 * lost:.1f}",
                f"{lost / local:.2f}",
            )
            yield in_columns(f"{seconds:g}", f"{count}", runner, *figures)


def in_columns(*texts: str) -> str:
    """A line of the table."""
    return " ".join(f"{text:>{max(len(name), 6)}}" for name, text in zip(COLUMNS, texts, strict=True))


class Killer:
    """Kills a worker with -9 when some shares of the units are written, which are drawn by chance."""

    def __init__(self, kills: int, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.shares = sorted(self.chance.uniform(0.02, 0.95) for _ in range(kills))
        self.killed = 0

    def __call__(self, journal: Path, share: float) -> None:
        """Told how much is written; a moment at which there is no worker to kill is waited over."""
        if self.killed < len(self.shares) and share >= self.shares[self.killed]:
            recent = {one.process for one in resting.journal(journal)[-RECENT:]}
            alive = [one for one in psutil.Process().children(recursive=True) if one.pid in recent]
            if alive:
                self.chance.choice(alive).kill()
                self.killed += 1


class Clock:
    """Adds up the seconds that calls of a function take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds = function, 0.0

    def __get__(self, owner: Any, kind: type) -> Callable[..., Any]:
        return lambda *given, **options: self(owner, *given, **options)

    def __call__(self, *given: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return self.function(*given, **options)
        finally:
            self.seconds += time.perf_counter() - start


def simulate(runner: str, count: int, kills: int) -> Iterator[str]:
    """Empty units, workers that die, and what the store has in the end."""
    killer, add, check = Killer(kills), Clock(Store.add), Clock(executors.rows_of)
    with replaced(Store, "add", add), replaced(executors, "rows_of", check):
        one = measure(runner, resting.jobs_of(0.0, count), killer)
    yield f"runner {runner}, {count:,} empty units, {WORKERS} workers, {killer.killed} killed with -9 on the way"
    yield f"rows in the store: {one.rows:,}, each once; units that were begun again: {one.again}"
    size = f"{one.size / 1e6:.1f} MB, {one.size / one.rows:.0f} bytes/run"
    yield f"{one.wall:.1f} s, {one.rows / one.wall:.0f} units/s; store: {size}"
    shares = {"writes": add.seconds, "checks of rows that came": check.seconds}
    told = ", ".join(f"{name} {seconds:.1f} s ({seconds / one.wall:.0%})" for name, seconds in shares.items())
    yield f"the writer: {told}; by itself it would write {one.rows / sum(shares.values()):.0f} units/s"


def machine() -> str:
    """Versions, and where this was."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("distributed", "torch"))
    python = f"python {platform.python_version()}, sqlite {sqlite3.sqlite_version}"
    return f"{packages}, {python}, {platform.machine()}, {psutil.cpu_count()} cores that others use too"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulate", choices=[name for name in EXECUTORS if name != "local"])
    parser.add_argument("--units", type=int, default=EMPTY)
    parser.add_argument("--kills", type=int, default=KILLS)
    given = parser.parse_args()
    print(f"$ python benchmarks/runners.py {' '.join(sys.argv[1:])}".rstrip())
    lines = simulate(given.simulate, given.units, given.kills) if given.simulate else compare(COUNTS)
    for line in lines:
        print(line, flush=True)
    print(machine())


if __name__ == "__main__":
    main()
