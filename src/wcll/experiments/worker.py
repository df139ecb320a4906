"""The work of one process: train jobs within its memory, evaluate them, and return their rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np
import torch

from wcll._auto import STACKED
from wcll._memory import SHARE, free_memory, in_words
from wcll.evaluation import METRICS, checkpoints
from wcll.evaluation.label_free import tables_of
from wcll.exceptions import InputError
from wcll.experiments.checkpoint import Checkpoints
from wcll.experiments.grouping import Job, Measured, Pace, as_begun, in_step
from wcll.experiments.request import Load, RunRequest
from wcll.experiments.row import Row, provenance
from wcll.experiments.store import Store
from wcll.experiments.task import Clean, Task, View, make_task
from wcll.experiments.train import Progress, Recording, Within, choose_and_train, stand_in, train, training_of, try_out
from wcll.experiments.trial import Role, Trial
from wcll.labels.encoding import to_mask
from wcll.models.registry import check_size
from wcll.training.engine import Need, engine_for


def outcomes(trials: Sequence[Trial], recording: Recording, task: Task, provenance: dict[str, Any]) -> list[Row]:
    """Join the predictions of every run with the true labels; the predictions themselves are dropped."""
    facts = {"sizes": task.declared.sizes.tolist(), **_counts(task)}
    compared, looked_at = checkpoints(trials[0].epochs), list(trials[0].looked_at)
    joined = _joined(recording, task.test, [looked_at.index(epoch) for epoch in compared], task.n_classes)
    recorded = _recorded(recording)
    rows = []
    for run, trial in enumerate(trials):
        history = {**facts, "judge": recording.judges[run].to_dict(), "checkpoints": list(compared)}
        history |= {name: None if values is None else values[run] for name, values in {**joined, **recorded}.items()}
        if trial.spec.link != "softmax":
            history |= {"log_likelihood": None, "log_likelihood_se": None}
        for name in ("correct", "log_likelihood", "log_likelihood_se"):
            history[name] = _by_epoch(history[name], looked_at, trial.epochs)
        row = Row(trial.key, trial.config(), {}, history, provenance)
        metrics = {metric: row.value(metric, trial.epochs) for metric in METRICS}
        rows.append(Row(trial.key, row.config, {k: v for k, v in metrics.items() if v == v}, history, provenance))
    return rows


def _counts(task: Task) -> dict[str, list[int]]:
    k = task.n_classes
    return {
        "train_labels": to_mask(task.train.ybar, k).sum(axis=0).tolist(),
        "test_sizes": np.bincount(task.test.y, minlength=k).tolist(),
    }


def _by_epoch(values: list[Any] | None, looked_at: Sequence[int], epochs: int) -> list[Any] | None:
    """One value an epoch, None where nobody looked."""
    known = None if values is None else dict(zip(looked_at, values, strict=True))
    return None if known is None else [known.get(epoch) for epoch in range(1, epochs + 1)]


def _joined(recording: Recording, test: Clean, compared: Sequence[int], n_classes: int) -> dict[str, list[Any]]:
    """Run by run: correct counts a class each time that it was looked at, and whole tables at those of ``compared``."""
    y = torch.as_tensor(test.y, device=recording.predicted[0].device)
    one_hot = (y.unsqueeze(-1) == torch.arange(n_classes, device=y.device)).float()
    correct = torch.stack([(predicted == y).float() @ one_hot for predicted in recording.predicted])  # whole numbers
    tables = torch.stack([tables_of(y, recording.predicted[i].long(), n_classes) for i in compared])
    return {"correct": _by_run(correct.long()), "confusion": _by_run(tables)}


def _recorded(recording: Recording) -> dict[str, list[Any] | None]:
    """Run by run: what training and selection left behind."""
    scores = torch.stack(recording.scores) if recording.scores else None
    tables = [table for _, table in sorted(recording.tables.items())]
    return {
        "train_loss": _numbers(torch.stack(recording.losses)),
        "log_likelihood": None if scores is None else _numbers(scores[..., 0]),
        "log_likelihood_se": None if scores is None else _numbers(scores[..., 1]),
        "held_out": _by_run(torch.stack(tables)) if tables else None,
    }


def _by_run(values: torch.Tensor) -> list[Any]:
    """(epochs, runs, ...) as lists, runs first."""
    lists: list[Any] = values.transpose(0, 1).tolist()
    return lists


def _numbers(values: torch.Tensor) -> list[list[float | None]]:
    return [[_finite(value) for value in run] for run in _by_run(values.double())]


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return float(value) if math.isfinite(value) else None


COPIES = 3  #: of all samples, that choosing among models has at once
HISTORY = 40  #: bytes of a number in a list, of which a few are kept of every epoch


def check_job(job: Job, view: View) -> None:
    """Fail if what trains one run's model does not fit into memory; nothing is made of it."""
    first = job.first
    model = {"name": first.model, **dict(first.model_options)}
    check_size(model, tuple(view.data.x.shape[1:]), view.n_classes, dtype=getattr(torch, first.dtype))


def need_of(job: Job, view: View, device: torch.device) -> Need:
    """What a job will take: the need of its engine, recorded predictions, and what scores of held-out labels take."""
    check_job(job, view)
    training = training_of(job, view, device)
    n_test, n_valid, k = len(view.unlabelled), 0 if view.valid is None else len(view.valid.x), view.n_classes
    at_once = min(max(n_test, n_valid), training.family.at_once)
    need = engine_for(training).need(view.data.x, training, n_test + n_valid, at_once)
    predicted = len(job.first.looked_at) * n_test * (1 if k <= 256 else 4)
    recorded = predicted + training.epochs * HISTORY * (k + 3) + 4 * n_valid * k * 8
    if job.auto:  # candidates train in one stack, on folds, which are copies of the samples
        copies = COPIES * view.data.x.numel() * getattr(torch, job.first.dtype).itemsize
        return Need(need.shared, STACKED * (need.per_run + recorded) + copies)
    return Need(need.shared, need.per_run + recorded)


def available(device: torch.device) -> int:
    """Bytes that runs may use by default: most of what is free now."""
    if device.type == "cuda":
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return free_memory()


def runs_that_fit(need: Need, limit: int) -> int:
    """How many runs of a group may train at once."""
    if need.of(1) > limit:
        raise InputError("--memory", f"at least {in_words(need.of(1))}, which one run takes", in_words(limit))
    return (limit - need.shared) // max(need.per_run, 1)


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
