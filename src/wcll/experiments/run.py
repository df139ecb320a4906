"""Run a suite: train what the store lacks, and return its rows; estimate its time and memory first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from math import inf
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from wcll._files import check_target
from wcll._memory import in_words
from wcll._validation import choice, positive, whole
from wcll.datasets.load import same_data
from wcll.exceptions import InputError
from wcll.experiments import Row, Store, Suite, load_suite
from wcll.experiments.executors import EXECUTORS, Fill
from wcll.experiments.grouping import TOGETHER, Job, Pace, now, plan
from wcll.experiments.request import Progress, RunRequest, Say, silent
from wcll.experiments.row import provenance
from wcll.experiments.store import STORE, sole_writer
from wcll.experiments.suite import MOST_RUNS
from wcll.experiments.task import View
from wcll.experiments.train import stand_in, train
from wcll.experiments.worker import Tasks, available, check_jobs, need_of, runs_that_fit, unfinished
from wcll.training import torch_threads

CPU = torch.device("cpu")
FIRST, STEPS = 5, 10  # steps of a short epoch, in which a GPU records them, and more of a longer one
SLOW = 32  # samples of a step of networks for images on a CPU: 256 take seconds
FORWARD = 1 / 3  # of a step's time is what a prediction of as many samples takes


@dataclass(frozen=True)
class Cost:
    """What is left to do costs about this."""

    seconds: float
    bytes: int  #: of the largest job, or of what of it is trained at once
    device: str


def estimate(
    jobs: Sequence[Job], tasks: Tasks, device: torch.device, samples: dict[object, float] | None = None
) -> Cost:
    """Measure one job of each kind (everything but the seed alike) and scale it up.

    On a CPU networks for images are measured once for all jobs and calls with the same ``samples``: the seconds that a
    sample takes, by network.
    """
    measured: dict[object, tuple[float, int]] = {}
    total, largest, samples = 0.0, 0, {} if samples is None else samples
    for job in jobs:
        kind = tuple(replace(trial, seed=0) for trial in job.trials)
        if kind not in measured:
            view = tasks.of(job).view
            need = need_of(job, view, device)
            job = Job((stand_in(job.first, view),)) if job.auto else job
            at_once = min(runs_that_fit(need, available(device)), len(job.trials))
            slow = job.image and device.type == "cpu"
            seconds = _slow(job, view, samples) if slow else _measure(job, view, device, at_once)
            measured[kind] = seconds, need.of(at_once)
        total += measured[kind][0]
        largest = max(largest, measured[kind][1])
    return Cost(total, largest, str(provenance(device)["device"]))


def _slow(job: Job, view: View, samples: dict[object, float]) -> float:
    """Return the seconds of a job whose runs take turns: a few steps of one run are enough for all of its network."""
    network = (*job.network, job.first.recipe)
    if network not in samples:
        batch = min(SLOW, job.first.batch_size, len(view.data.x) // 3)
        short = Job((replace(job.first, epochs=2, batch_size=batch),))
        looked = replace(view, unlabelled=view.unlabelled[:1], valid=None)
        (_, brief), (_, longer) = (_timed(short, looked, CPU, n * batch) for n in (1, 3))
        samples[network] = max(longer - brief, 0.0) / (2 * batch)
    looks = len(view.unlabelled) + (0 if view.valid is None else len(view.valid.x))
    seen = job.first.epochs * len(view.data.x) + FORWARD * len(job.first.looked_at) * looks
    return len(job.trials) * seen * samples[network]


def _measure(job: Job, view: View, device: torch.device, at_once: int) -> float:
    """Seconds of a job, from two trainings of two epochs that differ in their number of steps.

    Where not all of its runs fit into memory at once, those that do are measured.
    """
    short = Job(tuple(replace(trial, epochs=2) for trial in job.trials[:at_once]))
    batch = min(job.first.batch_size, len(view.data.x))
    steps = len(view.data.x) // batch
    few = min(FIRST, steps)
    most = min(few + STEPS, steps)
    times = [_timed(short, view, device, count * batch) for count in dict.fromkeys((few, most))]
    (_, brief), (prepared, longer) = times[0], times[-1]  # the same where an epoch has few steps
    step = max(longer - brief, 0.0) / max(most - few, 1)
    look = max(brief - few * step, 0.0) if most > few else 0.0  # too few steps do not tell what takes how long
    unseen = job.first.epochs - len(job.first.looked_at)
    seconds = prepared + job.first.epochs * (brief + (steps - few) * step) - unseen * look
    return seconds * len(job.trials) / at_once


def _timed(job: Job, view: View, device: torch.device, samples: int) -> tuple[float, float]:
    """Seconds of preparation, and of the second epoch of two: the first pays for warming up."""
    moments = [time.perf_counter()]

    def note(done: int) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        moments.append(time.perf_counter())

    train([(job, view)], device, progress=note, samples=samples)
    start, _, first, second = moments
    return max(first - start - (second - first), 0.0), second - first


class OutOfTimeError(Exception):
    """There was no time for all runs; these are finished."""

    def __init__(self, rows: dict[str, Row]) -> None:
        super().__init__(f"out of time with {len(rows)} runs finished")
        self.rows = rows


def run(  # noqa: PLR0913 - one argument an option of the command
    suite: str | Path | Suite,
    *,
    store: str | Path | Store | None = STORE,
    data: str | Path | None = None,
    trials: int | Sequence[int] | None = None,
    device: str = "auto",
    threads: int = 1,
    processes: int | None = 1,
    memory: int | None = None,
    together: int | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
    max_time: float | None = None,
    runner: str = "local",
    address: str | None = None,
) -> dict[str, Row]:
    """Train what is missing of a suite, as ``wcll run`` does, and return its rows by key.

    What the store has is not trained again. A call that was interrupted, even by ``kill -9``, resumes where it was. One
    call at a time writes to a store; another one fails at once. The number of torch's threads is afterwards as before.

    Parameters
    ----------
    suite : str, Path or Suite
        A suite of the package by name (:func:`wcll.experiments.packaged_suites`), a ``.toml`` file, or a suite that was
        read by :func:`wcll.experiments.load_suite` or :func:`wcll.experiments.parse_suite`.
    store : str, Path, Store or None
        The file that results are kept in; it is made if it is not there. None keeps none.
    data : str, Path or None
        A folder with data; also looked in: the one that the environment variable WCLL_DATA names, and the user's cache.
    trials : int, sequence of int or None
        How many trials, with seeds 0, 1, ..., or the seeds themselves; None takes the suite's number.
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` takes a GPU if there is one.
    threads : int
        Threads of torch; small models are fastest with one.
    processes : int or None
        Processes on this machine's CPU; None takes one a core. Those beyond the first import the script that calls, so
        it must keep its work behind ``if __name__ == "__main__":``.
    memory : int or None
        Bytes to use; None takes most of what is free.
    together : int or None
        Train at most this many runs at once; None takes 64.
    progress : callable or None
        Called with the epochs of runs that are done, and their total; of epochs that take long, also with a part.
    say : callable or None
        Called with a line of text: what is found in the store.
    max_time : float or None
        Seconds after which this should be over. What is not finished then is kept next to the store, and the next call
        resumes it at the same epoch; one epoch at least is trained. Workers of Dask that do not see the store's file
        lose what they are training.
    runner : {"local", "dask"}
        Who trains: processes of this machine, or workers of Dask, which send rows back to this process.
    address : str or None
        A Dask scheduler that is running, such as ``"tcp://127.0.0.1:8786"``; None starts one with ``processes``
        workers, which no other process reaches.

    Returns
    -------
    dict of str to Row
        By key, in the suite's order. ``rows[trial.key]`` is the row of one of ``suite.all_trials()``;
        :func:`wcll.report.result_tables.build_table` makes tables of them. Runs that are damaged in the store are not
        there; ``say`` is told which, and how to remove them, so that they are trained again. Nor are those for which
        there was no time.

    Examples
    --------
    >>> import wcll
    >>> suite = wcll.experiments.parse_suite('''
    ... title = "Two rates"
    ... settings = {dataset = "digits", labels = "uniform", model = "linear", epochs = 20}
    ... grid = {lr = [1e-3, 1e-2]}
    ... columns = [{title = "digits"}]
    ... rows = [{loss = "forward", assume = "uniform"}]
    ... tables = [{select = "last", at = {lr = 1e-2}}]
    ... ''', "rates")
    >>> rows = wcll.run(suite, store=None, trials=1, device="cpu")
    >>> [(row.config["lr"], row.metrics["accuracy"] > 0.5) for row in rows.values()]
    [(0.001, False), (0.01, True)]
    """
    end = inf if max_time is None else now() + positive("max_time", max_time)
    wanted = suite if isinstance(suite, Suite) else load_suite(str(suite))
    seeds = _seeds(wanted.trials if trials is None else trials)
    with TemporaryDirectory(prefix="wcll-") as folder:
        target = Path(folder) / "results.sqlite" if store is None else store
        request = RunRequest(
            target if isinstance(target, Store) else Path(target),
            tuple(wanted.all_trials(seeds)),
            wanted.title,
            data=None if data is None else Path(data),
            device=device,
            threads=threads,
            processes=processes,
            memory=memory,
            together=TOGETHER if together is None else together,
            executor=runner,
            address=address,
            pace=Pace(end),
            progress=progress or silent,
            say=say or silent,
        )
        try:
            return train_missing(request)
        except OutOfTimeError as error:
            return error.rows


def _seeds(trials: int | Sequence[int]) -> Sequence[int]:
    """0, 1, ... of so many trials, or the seeds that are given."""
    if not isinstance(trials, Sequence):
        return range(whole("trials", trials))
    if len(trials[: MOST_RUNS + 1]) > MOST_RUNS:  # a range may be longer than any list
        raise InputError("trials", f"at most {MOST_RUNS}", "more")
    if not trials or not all(isinstance(s, Integral) and not isinstance(s, bool) and s >= 0 for s in trials):
        raise InputError("trials", "how many, or seeds from 0", repr(trials))
    return [int(seed) for seed in trials]


@dataclass(frozen=True)
class Forecast:
    """What training would do: numbers of runs, of the groups of runs that train together, and the cost."""

    runs: int
    runs_left: int
    groups: tuple[int, ...]  #: runs of each
    groups_left: int
    cost: Cost | None  #: None if nothing is left


def train_missing(request: RunRequest) -> dict[str, Row]:
    """Train what the store lacks; returns the rows of all trials by key, or fails if time does not suffice."""
    _check_executor(request)
    keys, say = list(dict.fromkeys(trial.key for trial in request.trials)), request.say
    with torch_threads(request.threads):
        _, left = _jobs(request)
        if not left:
            with _open(request) as store:
                say(f"{request.title}: all {len(keys)} runs are in {store.path}; nothing is left to do")
                return _finished(request, store, keys)
        tasks, lock = Tasks(request.load), sole_writer(request.path)
        with ExitStack() as stack:
            if not (new := not request.path.exists()):
                stack.enter_context(lock)
            check_jobs(left, tasks, request.where)  # before the store is made: bad data leave nothing behind
            request = _that_fits(request, left, tasks)
            fill = stack.enter_context(EXECUTORS[request.executor](request, left, tasks))
            if new:
                stack.enter_context(lock)
            store = stack.enter_context(_open(request))
            say(f"{request.title}: {len(keys)} runs, {len(store.finished(keys))} of them in {store.path}")
            _execute(request, fill, store, keys)
            return _finished(request, store, keys)


def forecast(request: RunRequest) -> Forecast:
    """Estimate what training would take; a few steps are measured, and nothing is written."""
    _check_executor(request)
    with torch_threads(request.threads):
        jobs, left = _jobs(request)
        cost = estimate(left, Tasks(request.load), request.where, request.pace.samples) if left else None
    sizes, missing = (tuple(len(job.keys) for job in some) for some in (jobs, left))
    return Forecast(sum(sizes), sum(missing), sizes, len(missing), cost)


def _check_executor(request: RunRequest) -> None:
    """Fail unless the executor is known; an address is one of a scheduler, whose workers are there already."""
    choice("--runner", request.executor, EXECUTORS)
    if request.address is not None and request.executor == "local":
        raise InputError("--address", "none for --runner local", request.address, "for example --runner dask")
    if request.address is not None and request.processes not in (None, 1):
        got = request.processes
        raise InputError("--processes", "none beside --address, where workers are there already", got)


def _jobs(request: RunRequest) -> tuple[list[Job], list[Job]]:
    """All jobs, and what is left of them."""
    jobs = plan(request.trials, together=request.together)
    if not isinstance(request.store, Store):
        check_target(request.store, "--store", store=True)
        if not request.store.exists() or not request.store.stat().st_size:
            return jobs, jobs
    with _open(request) as store:
        _check_same_data(request, store, [key for job in jobs for key in job.keys])
        return jobs, unfinished(jobs, store)


def _open(request: RunRequest) -> AbstractContextManager[Store]:
    return nullcontext(request.store) if isinstance(request.store, Store) else Store(request.store)


def _check_same_data(request: RunRequest, store: Store, keys: Sequence[str]) -> None:
    """Files may change under their names: finished runs must not stand for data that they did not see."""
    for name, stamps in store.data_seen(keys).items():
        if not same_data(name, stamps, request.data):
            same = f"the file that the runs in {store.path} have read"
            remedy = "give the new data another name, or use another --store"
            raise InputError(f"dataset {name!r}", same, "one that was changed", remedy)


def _that_fits(request: RunRequest, jobs: Sequence[Job], tasks: Tasks) -> RunRequest:
    """With as many processes as can each train a run of every kind in their share of the memory."""
    who, device = request.n_processes, request.where
    if who == 1:
        return request
    kinds = {job.kind: job for job in reversed(jobs)}  # the first comes last: its task is kept for its training
    needs = [need_of(job, tasks.of(job).view, device).of(1) for job in kinds.values()]
    limit = available(device) if request.memory is None else request.memory
    fit = max(min(who, limit // max(needs)), 1)
    if fit < who:
        request.say(f"processes: {fit} instead of {who}, as a run takes {in_words(max(needs))}")
    return replace(request, processes=fit)


def _execute(request: RunRequest, fill: Fill, store: Store, keys: Sequence[str]) -> None:
    """Work through the jobs; one who interrupts this is told how to resume."""
    try:
        fill(store)
    except KeyboardInterrupt:
        done = f"{len(store.finished(keys))} of {len(keys)} runs are in {store.path}"
        request.say(f"{done}; the same command goes on from there")
        raise


def _finished(request: RunRequest, store: Store, keys: Sequence[str]) -> dict[str, Row]:
    """The rows of all trials; what is damaged, or was removed meanwhile, is said and left out."""
    rows = {row.key: row for row in store.rows(keys)}
    if damage := store.damage():
        request.say(damage)
    gone = len(keys) - len(store.finished(keys))
    if gone and request.pace.end < inf:
        done = f"{len(keys) - gone} of {len(keys)} runs are in {store.path}, {gone} are left"
        request.say(f"out of time: {done}; the same command goes on from there")
        raise OutOfTimeError(rows)
    if gone:
        request.say(f"{gone} runs were removed from {store.path} meanwhile; the same command trains them again")
    return rows
