"""Working through a suite: claim a unit, train it, write it; several processes may do so on one store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache

import torch

from wcll.checks import InputError
from wcll.datasets import Dataset, load_dataset
from wcll.results.owner import BEAT, Owner
from wcll.results.provenance import provenance
from wcll.results.row import Row
from wcll.results.store import Store
from wcll.running.checkpoint import Checkpoints
from wcll.running.containers import Task
from wcll.running.job import Job, Progress, head, train, try_out
from wcll.running.memory import available, need_of, runs_that_fit
from wcll.running.outcomes import outcomes
from wcll.running.plan import DATA, OWN, SHARED, TOGETHER, Unit, in_step, plan
from wcll.running.task import loss_context, make_task
from wcll.suites.suite import Suite
from wcll.suites.trial import Trial

POLL = 0.5  # seconds between looks at what other processes are doing

Load = Callable[[str], Dataset]
Part = tuple[Sequence[Trial], Task]  #: runs that share data


class Tasks:
    """Tasks of units, the last one kept: units that share data follow each other."""

    def __init__(self, load: Load) -> None:
        self._load = lru_cache(maxsize=3)(load)  # columns may take turns
        self._last: tuple[object, Task] | None = None

    def of(self, unit: Unit) -> Task:
        """The task of a unit; data files are opened when the first unit needs them."""
        if self._last is None or self._last[0] != unit.data:
            self._last = unit.data, make_task(unit.trials[0], self._load(unit.trials[0].dataset))
        return self._last[1]


def make_job(trials: Sequence[Trial], task: Task) -> Job:
    """What training may see of a task."""
    data, labels = (task.train, task.train.ybar) if task.limit is None else (task.limit, task.limit.y)
    contexts = [loss_context(trial, task, labels) for trial in trials]
    return Job(trials, contexts, data, task.valid, task.test.x, task.judge, task.scale)


def run_parts(
    parts: Sequence[Part],
    device: torch.device,
    progress: Progress = lambda done: None,
    *,
    plain: bool = False,
    memory: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Row]:
    """Train runs, those of a part and (on a GPU) parts of equal shape together, then join predictions with the truth.

    ``memory`` limits, in bytes, what is trained at once; ``checkpoints`` keep long trainings.
    """
    limit = available(device) if memory is None else memory
    rows = []
    for together in alike(parts, device, limit):
        start = time.perf_counter()
        jobs = [make_job(trials, task) for trials, task in together]
        seen = [task.data["fingerprint"] for _, task in together]
        saves = checkpoints.of(jobs, seen) if checkpoints else None
        recordings = train(jobs, device, progress=progress, plain=plain, saves=saves)
        runs = sum(len(trials) for trials, _ in together)
        seconds = (time.perf_counter() - start) / runs
        for (trials, task), recording in zip(together, recordings, strict=True):
            made = {"seconds": seconds, "together": runs, **provenance(device), "data": task.data}
            rows += outcomes(trials, recording, task, made)
    return rows


def alike(parts: Sequence[Part], device: torch.device, limit: int) -> Iterator[list[Part]]:
    """Parts cut to the memory there is; on a GPU those of equal shape are trained in step, as many as fit."""
    waiting: dict[object, tuple[list[Part], int]] = {}
    for trials, task in parts:
        need = need_of(make_job(trials[:1], task), device)
        most = runs_that_fit(need, limit)
        for start in range(0, len(trials), most):
            part = (trials[start : start + most], task)
            size = need.of(len(part[0]))
            if device.type != "cuda":
                yield [part]
                continue
            shape = _shape(*part)
            others, used = waiting.get(shape, ([], 0))
            if others and used + size > limit:
                yield others
                others, used = [], 0
            waiting[shape] = ([*others, part], used + size)
    yield from (others for others, _ in waiting.values())


def _shape(trials: Sequence[Trial], task: Task) -> object:
    """Equal for parts that can be trained in step."""
    data = task.train if task.limit is None else task.limit
    return _kind(trials, task), len(data.x)


def _kind(trials: Sequence[Trial], task: Task) -> object:
    """Equal for parts whose steps are alike but for the number of samples."""
    settings = [name for name in SHARED if name not in DATA] + sorted(OWN)
    runs = tuple(tuple(getattr(trial, name) for name in settings) for trial in trials)
    data = task.train if task.limit is None else task.limit
    return runs, data.x.shape[1:], data.x.dtype, task.n_classes, task.scale, task.limit is None


def check_units(units: Sequence[Unit], load: Load, device: torch.device) -> None:
    """Draw the data of one unit of every kind and try a step of it, so that what is wrong shows before any training.

    Kinds that differ in their data alone are tried once.
    """
    tasks, tried = Tasks(load), set()
    kinds = {tuple(replace(trial, seed=0) for trial in unit.trials): unit for unit in reversed(units)}
    for unit in reversed(kinds.values()):
        task = tasks.of(unit)
        job = make_job(unit.trials, task)
        kind = _kind(unit.trials, task)
        if kind not in tried:
            try_out(replace(job, data=head(job.data, 8)), device)
        tried.add(kind)


def run_suite(
    suite: Suite,
    seeds: Sequence[int],
    device: torch.device,
    *,
    load: Load = load_dataset,
    progress: Callable[[int, int], None] = lambda done, total: None,
    together: int = TOGETHER,
    memory: int | None = None,
    plain: bool = False,
) -> dict[str, Row]:
    """Run a suite without a store, by a plain loop or the engine; returns its rows by key."""
    units = plan(list(suite.all_trials(seeds)), together=together)
    total, done = sum(len(unit.keys) * unit.trials[0].epochs for unit in units), 0

    def report(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    tasks = Tasks(load)
    made = (
        run_parts([(unit.trials, tasks.of(unit)) for unit in step], device, report, plain=plain, memory=memory)
        for step in in_step(units, device)
    )
    return {row.key: row for rows in made for row in rows}


def execute(
    units: Sequence[Unit],
    store: Store,
    load: Load,
    device: torch.device,
    *,
    memory: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Run what the store does not have yet; ``progress`` is told how many epochs of runs are done, and of how many.

    A unit that another living process has claimed is left to it; at the end this waits for such units, and takes
    them over if their owner dies. A unit that fails does not keep the others from being run; its error comes last.
    """
    owner, tasks, checkpoints = Owner.here(), Tasks(load), Checkpoints.beside(store.path)
    waiting: list[Unit] = [unit for unit in units if len(store.finished(unit.keys)) < len(unit.keys)]
    total = sum(_epochs(unit, store) for unit in waiting)
    done, failures, said = 0, [], False

    def report(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    def work(together: Sequence[Unit]) -> list[Unit]:
        """Do what is left of some units; returns those that are other processes'."""
        claimed = {unit: store.claim(unit.keys, owner) for unit in together}
        mine = {unit: [t for t in unit.trials if t.key in keys] for unit, keys in claimed.items() if keys}
        try:
            parts = [(trials, tasks.of(unit)) for unit, trials in mine.items()]
            rows = run_parts(parts, device, report, memory=memory, checkpoints=checkpoints)
        except InputError as error:
            store.release(owner)
            if len(together) > 1:  # find out which of them fails
                return [unit for one in together for unit in work([one])]
            failures.append(error)
        else:
            store.add(rows)
            checkpoints.clear()
        return [unit for unit, keys in claimed.items() if keys is None]

    with _heartbeat(store, owner):
        while waiting:
            left = [unit for together in in_step(waiting, device) for unit in work(together)]
            if len(left) == len(waiting):
                if not said:
                    say(f"waiting for {len(left)} groups of runs that other processes have claimed")
                said = True
                time.sleep(POLL)
            waiting = left
            done = total - sum(_epochs(unit, store) for unit in waiting)
    _tidy(store, checkpoints)
    if failures:
        raise failures[0]


def _tidy(store: Store, checkpoints: Checkpoints) -> None:
    """Take away what trainings have left behind, if nobody is at work."""
    if not store.claimed():
        checkpoints.sweep()


def _epochs(unit: Unit, store: Store) -> int:
    return (len(unit.keys) - len(store.finished(unit.keys))) * unit.trials[0].epochs


@contextmanager
def _heartbeat(store: Store, owner: Owner) -> Iterator[None]:
    """Say every few seconds that this process lives; give its claims back at the end, however it ends."""
    over = threading.Event()

    def beat() -> None:
        with suppress(InputError), Store(store.path) as own:  # SQLite's connections belong to one thread
            while not over.wait(BEAT):
                with suppress(InputError):
                    own.beat(owner)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(InputError):
            store.release(owner)
