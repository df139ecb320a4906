"""Working through a suite: claim a job, train it, write it; several processes may do so on one store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache

import torch

from wcll.checks import InputError
from wcll.datasets import Dataset
from wcll.results.owner import BEAT, Owner
from wcll.results.provenance import provenance
from wcll.results.row import Row
from wcll.results.store import Store
from wcll.running.checkpoint import Checkpoints
from wcll.running.containers import Task
from wcll.running.memory import available, check_job, need_of, runs_that_fit
from wcll.running.outcomes import outcomes
from wcll.running.plan import Job, in_step
from wcll.running.task import make_task
from wcll.running.train import Progress, train, try_out
from wcll.suites.settings import Role

POLL = 0.5  # seconds between looks at what other processes are doing

Load = Callable[[str], Dataset]
Drawn = tuple[Job, Task]  #: runs, and the data that were drawn for them


class Tasks:
    """Tasks of jobs, the last one kept: jobs that share data follow each other."""

    def __init__(self, load: Load) -> None:
        self._load = lru_cache(maxsize=3)(load)  # columns may take turns
        self._last: tuple[object, Task] | None = None

    def of(self, job: Job) -> Task:
        """The task of a job; data files are opened when the first job needs them."""
        if self._last is None or self._last[0] != job.data:
            self._last = job.data, make_task(job.first, self._load(job.first.dataset))
        return self._last[1]


def run_jobs(
    jobs: Sequence[Drawn],
    device: torch.device,
    progress: Progress = lambda done: None,
    *,
    plain: bool = False,
    memory: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Row]:
    """Train runs, those of a job and (on a GPU) jobs of equal shape together, then join predictions with the truth.

    ``memory`` limits, in bytes, what is trained at once; ``checkpoints`` keep long trainings.
    """
    rows = []
    for together in alike(jobs, device, available(device) if memory is None else memory):
        start = time.perf_counter()
        fingerprints = [task.data["fingerprint"] for _, task in together]
        saves = checkpoints.of([job for job, _ in together], fingerprints) if checkpoints else None
        seen = [(job, task.view) for job, task in together]
        recordings = train(seen, device, progress=progress, plain=plain, saves=saves)
        runs = sum(len(job.trials) for job, _ in together)
        seconds = (time.perf_counter() - start) / runs
        for (job, task), recording in zip(together, recordings, strict=True):
            made = {"seconds": seconds, "together": runs, **provenance(device), "data": task.data}
            rows += outcomes(job.trials, recording, task, made)
    return rows


def alike(jobs: Sequence[Drawn], device: torch.device, limit: int) -> Iterator[list[Drawn]]:
    """Jobs cut to the memory there is; on a GPU those of equal shape are trained in step, as many as fit."""
    waiting: dict[object, tuple[list[Drawn], int]] = {}
    for job, task in jobs:
        need = need_of(job, task.view, device)
        most = runs_that_fit(need, limit)
        for start in range(0, len(job.trials), most):
            part = Job(job.trials[start : start + most])
            if device.type != "cuda":
                yield [(part, task)]
                continue
            size, shape = need.of(len(part.trials)), (_kind(part, task), len(task.view.data.x))
            others, used = waiting.get(shape, ([], 0))
            if others and used + size > limit:
                yield others
                others, used = [], 0
            waiting[shape] = ([*others, (part, task)], used + size)
    yield from (others for others, _ in waiting.values())


def _kind(job: Job, task: Task) -> object:
    """Equal for jobs whose steps are alike but for the number of samples."""
    runs, x = tuple(trial.of_role(Role.SHARED, Role.OWN) for trial in job.trials), task.view.data.x
    return runs, x.shape[1:], x.dtype, task.n_classes, task.scale, task.limit is None


def check_jobs(jobs: Sequence[Job], tasks: Tasks, device: torch.device) -> None:
    """Draw the data of one job of every kind and try a step of it, so that what is wrong shows before any training.

    Kinds that differ in their data alone are tried once. The first job comes last: its task is kept for its training.
    """
    kinds = {tuple(replace(trial, seed=0) for trial in job.trials): job for job in reversed(jobs)}
    tried = set()
    for job in kinds.values():
        task = tasks.of(job)
        kind = _kind(job, task)
        if kind not in tried:
            check_job(job, task.view)
            try_out(job, task.view, device)
        tried.add(kind)


def execute(
    jobs: Sequence[Job],
    store: Store,
    tasks: Tasks,
    device: torch.device,
    *,
    memory: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Run what the store does not have yet; ``progress`` is told how many epochs of runs are done, and of how many.

    A job that another living process, or thread, has claimed is left to it; at the end this waits for such jobs, and
    takes them over if their owner dies. A job that fails does not keep the others from being run; its error comes last.
    """
    owner, checkpoints = Owner.here(), Checkpoints.of_store(store.path)
    waiting = unfinished(jobs, store)
    total = sum(job.epochs for job in waiting)
    done, failures, said = 0, [], False

    def report(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    def work(together: Sequence[Job]) -> list[Job]:
        """Do what is left of some jobs; returns those that are other processes'."""
        claimed = {job: store.claim(job.keys, owner) for job in together}
        mine = [Job(tuple(t for t in job.trials if t.key in keys)) for job, keys in claimed.items() if keys]
        try:
            todo = [(job, tasks.of(job)) for job in mine]
            rows = run_jobs(todo, device, report, memory=memory, checkpoints=checkpoints)
        except InputError as error:
            store.release(owner)
            if len(together) > 1:  # find out which of them fails
                return [job for one in together for job in work([one])]
            failures.append(error)
        else:
            store.add(rows)
            checkpoints.clear()
        return [job for job, keys in claimed.items() if keys is None]

    with owner.at_work(), _heartbeat(store, owner):
        while waiting:
            left = [job for together in in_step(waiting, device) for job in work(together)]
            if len(left) == len(waiting):
                if not said:
                    say(f"waiting for {len(left)} groups of runs that other processes have claimed")
                said = True
                time.sleep(POLL)
            waiting = unfinished(left, store)
            done = total - sum(job.epochs for job in waiting)
    checkpoints.tidy(store)
    if failures:
        raise failures[0]


def unfinished(jobs: Sequence[Job], store: Store) -> list[Job]:
    """What is left of jobs."""
    left = (job.without(store.finished(job.keys)) for job in jobs)
    return [job for job in left if job]


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
