"""Working through a suite: claim a job, train it, write it; several processes may do so on one store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

import torch

from wcll.checks import InputError
from wcll.datasets import Dataset
from wcll.results.owner import BEAT, Owner
from wcll.results.provenance import provenance
from wcll.results.row import Row
from wcll.results.store import Store
from wcll.running.checkpoint import Checkpoints
from wcll.running.choosing import choose_and_train, stand_in
from wcll.running.containers import Task
from wcll.running.memory import available, check_job, need_of, runs_that_fit
from wcll.running.outcomes import outcomes
from wcll.running.pace import Measured, Pace
from wcll.running.plan import Job, as_begun, in_step
from wcll.running.task import make_task
from wcll.running.train import Progress, Within, train, try_out
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
    within: Within = lambda part: None,
    plain: bool = False,
    memory: int | None = None,
    checkpoints: Checkpoints | None = None,
    pace: Pace | None = None,
) -> list[Row]:
    """Train runs, those of a job and (on a GPU) jobs of equal shape together, then join predictions with the truth.

    ``progress`` and ``within`` are told how far they are, in epochs of runs. ``memory`` limits, in bytes, what is
    trained at once; ``checkpoints`` keep long trainings. Those for which the time
    of ``pace`` does not suffice are kept there, and not among what is returned.
    """
    rows: list[Row] = []
    pace = pace or Pace()
    for together in alike(jobs, device, available(device) if memory is None else memory):
        start = time.perf_counter()
        fingerprints = [task.data["fingerprint"] for _, task in together]
        runs, first = sum(len(job.trials) for job, _ in together), together[0][0]
        if not pace.time_for(first):
            break
        seen = [(job, task.view) for job, task in together]
        watch = pace.watch(first, runs, device)
        saves = checkpoints.of([job for job, _ in together], fingerprints, watch) if checkpoints else None
        if first.auto:  # nothing of it is kept on the way: minutes of images start anew
            recordings = [choose_and_train(job.first, view, device) for job, view in seen]
            took = time.perf_counter() - start
            pace.note(first, Measured(runs, took, took / first.first.epochs))
            progress(sum(job.epochs for job, _ in together))
        else:
            how = partial(train, plain=plain, saves=saves, planned=pace.planned(first))
            recordings = how(seen, device, progress=progress, within=within)
        if len(recordings[0].losses) < first.first.epochs:
            break
        if checkpoints and saves:
            checkpoints.done(saves)
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
            try_out(Job((stand_in(job.first, task.view),)) if job.auto else job, task.view, device)
        tried.add(kind)


def execute(
    jobs: Sequence[Job],
    store: Store,
    tasks: Tasks,
    device: torch.device,
    *,
    memory: int | None = None,
    progress: Callable[[float, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda text: None,
    pace: Pace | None = None,
) -> None:
    """Run what the store does not have yet; ``progress`` is told how many epochs of runs are done, and of how many.

    What is not done before the end of ``pace`` is left in checkpoints, from which the next call goes on.

    A job that another living process, or thread, has claimed is left to it; at the end this waits for such jobs, and
    takes them over if their owner dies. A job that fails does not keep the others from being run; its error comes last.
    """
    waiting, pace = unfinished(jobs, store), pace or Pace()
    pace.expect(waiting)
    total = sum(job.epochs for job in waiting)
    worker = _Worker(store, tasks, device, memory, pace, lambda done: progress(done, total))
    said = False
    with worker.owner.at_work(), heartbeat(store, worker.owner):
        while waiting and not pace.over:
            left, idle = worker.round(waiting)
            if idle:
                if not said:
                    say(f"waiting for {len(left)} groups of runs that other processes have claimed")
                said, pace.over = True, pace.left <= 0
                time.sleep(POLL)
            waiting = unfinished(left, store)
            worker.done = total - sum(job.epochs for job in waiting)
    if not pace.over:
        worker.checkpoints.tidy(store)
    if worker.failures:
        raise worker.failures[0]


class _Worker:
    """One who claims jobs, trains them and writes what comes out."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        device: torch.device,
        memory: int | None,
        pace: Pace,
        progress: Callable[[float], None],
    ) -> None:
        self.owner, self.checkpoints = Owner.here(), Checkpoints.of_store(store.path)
        self.store, self.tasks, self.device, self.memory, self.pace = store, tasks, device, memory, pace
        self.progress, self.done = progress, 0
        self.failures: list[InputError] = []

    def round(self, waiting: Sequence[Job]) -> tuple[list[Job], bool]:
        """Do what can be done of jobs; returns those that are other processes', and whether all were."""
        left, handed_out = list[Job](), 0
        for together in _handed_out(waiting, self.checkpoints, self.device, self.pace):
            left += self.work(together)
            handed_out += len(together)
        return left, 0 < handed_out == len(left)

    def work(self, together: Sequence[Job]) -> list[Job]:
        """Do what is left of some jobs; returns those that are other processes'."""
        mine, others = claim(together, self.store, self.owner)
        try:
            todo = [(job, self.tasks.of(job)) for job in mine]
            how = partial(run_jobs, memory=self.memory, checkpoints=self.checkpoints, pace=self.pace)
            rows = how(todo, self.device, self.report, within=self.report_part)
        except InputError as error:
            self.store.release(self.owner)
            if len(together) > 1:  # find out which of them fails
                return [job for one in together for job in self.work([one])]
            self.failures.append(error)
        else:
            self.store.add(rows)
            self.checkpoints.clear()
        return others

    def report(self, more: int) -> None:
        """So many more epochs of runs are done."""
        self.done += more
        self.progress(self.done)

    def report_part(self, part: float) -> None:
        """So much of an epoch of runs is done besides: what is done in part is never added up."""
        self.progress(self.done + part)


def _handed_out(
    waiting: Sequence[Job], checkpoints: Checkpoints, device: torch.device, pace: Pace
) -> Iterator[list[Job]]:
    """Jobs that train together, as long as there is time: what was begun first, and as it was."""
    begun, others = as_begun(waiting, checkpoints.begun())
    for together in chain(begun, in_step(others, device, pace.most, pace.fitting)):
        if not pace.time_for(together[0]):
            return
        yield together


def claim(jobs: Sequence[Job], store: Store, owner: Owner) -> tuple[list[Job], list[Job]]:
    """What is left of some jobs and is the owner's now, and those that are other processes'."""
    claimed = {job: store.claim(job.keys, owner) for job in jobs}
    mine = [Job(tuple(t for t in job.trials if t.key in keys)) for job, keys in claimed.items() if keys]
    return mine, [job for job, keys in claimed.items() if keys is None]


def unfinished(jobs: Sequence[Job], store: Store) -> list[Job]:
    """What is left of jobs."""
    left = (job.without(store.finished(job.keys)) for job in jobs)
    return [job for job in left if job]


@contextmanager
def heartbeat(store: Store, owner: Owner) -> Iterator[None]:
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
