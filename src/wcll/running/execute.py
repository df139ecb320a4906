"""Working through a suite in this process: train a job, write its rows, take the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING

import torch

from wcll.datasets import Dataset
from wcll.exceptions import InputError
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

if TYPE_CHECKING:
    from wcll.running.request import RunRequest

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


def execute(request: RunRequest, jobs: Sequence[Job], store: Store, tasks: Tasks) -> None:
    """Train here what the store does not have yet of some jobs.

    What is not done before the time of ``request.pace`` is over is left in checkpoints, from which the next call goes
    on. A job that fails does not keep the others from being trained; its error comes last.
    """
    waiting, pace = unfinished(jobs, store), request.pace
    pace.expect(waiting)
    worker = _Worker(request, store, tasks, sum(job.epochs for job in waiting))
    begun, others = as_begun(waiting, worker.checkpoints.begun())  # those as they were trained together
    for together in chain(begun, in_step(others, request.where, pace.most, pace.fitting)):
        if not pace.time_for(together[0]):
            break
        worker.work(together)
    if not pace.over:
        worker.checkpoints.tidy(store)
    if worker.failures:
        raise worker.failures[0]


class _Worker:
    """Trains jobs in this process and writes their rows."""

    def __init__(self, request: RunRequest, store: Store, tasks: Tasks, total: int) -> None:
        self.request, self.store, self.tasks, self.total = request, store, tasks, total
        self.checkpoints, self.done = Checkpoints.of_store(store.path), 0
        self.failures: list[InputError] = []

    def work(self, together: Sequence[Job]) -> None:
        """Train some jobs at once; if they fail, one by one, to find out which of them does."""
        done = self.done
        try:
            rows = run_jobs(
                [(job, self.tasks.of(job)) for job in together],
                self.request.where,
                self.report,
                within=self.report_part,
                memory=self.request.memory,
                checkpoints=self.checkpoints,
                pace=self.request.pace,
            )
        except InputError as error:
            if len(together) == 1:
                self.failures.append(error)
                return
            self.done = done
            for job in together:
                self.work([job])
        else:
            self.store.add(rows)
            self.checkpoints.forget(self.store)

    def report(self, more: int) -> None:
        """Count epochs of runs that are done."""
        self.done += more
        self.request.progress(self.done, self.total)

    def report_part(self, part: float) -> None:
        """Tell the part of an epoch that is done besides; parts are never added up."""
        self.request.progress(self.done + part, self.total)


def unfinished(jobs: Sequence[Job], store: Store) -> list[Job]:
    """Return what is left of jobs."""
    left = (job.without(store.finished(job.keys)) for job in jobs)
    return [job for job in left if job]
