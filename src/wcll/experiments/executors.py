"""Who trains: this process, processes of this machine, or workers of Dask. Whoever it is, this process alone writes.

An executor is a context: inside it workers are ready, and what it yields fills a store. So errors about workers come
before there is a store.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from wcll._validation import extra
from wcll.exceptions import InputError
from wcll.experiments.checkpoint import Checkpoints
from wcll.experiments.grouping import RESERVE, Job, as_begun, in_step, now
from wcll.experiments.messages import Terms, counted, rows_of, work
from wcll.experiments.request import RunRequest
from wcll.experiments.store import Store
from wcll.experiments.worker import Tasks, available, execute, unfinished

AHEAD = 2  #: units per worker that are handed out at a time, so that no worker waits
LOOK = 0.5  #: seconds between two looks at how far workers are, and whether they live
POOLS = 4  #: the first pool of processes, and three that replace broken ones
ANSWER, JOIN = 10.0, 60.0  #: seconds until a scheduler has to answer, and until some worker has to be there
GOES_ON = "the same command resumes with what is left"
#: A worker that dies is started again, however long that takes (by default Dask gives it up if it is not back in time),
#: and what it was training is given to one more worker.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1000 days", "distributed.scheduler.allowed-failures": 1}

Unit = tuple[Job, ...]  #: what a worker is given at a time
Fill = Callable[[Store], None]  #: trains what a store lacks


@dataclass(frozen=True)
class Pool:
    """Workers that take units through an executor."""

    executor: Executor
    size: Callable[[], int]  #: workers that there are now
    check: Callable[[], None]  #: fails if nobody will ever reply
    lost: type[Exception]  #: what a future raises whose worker died
    retries: (
        int  #: how often a unit that lost its worker is tried again with others beside it, before it is tried alone
    )


@contextmanager
def local(request: RunRequest, jobs: Sequence[Job], tasks: Tasks) -> Iterator[Fill]:
    """This process, or several of this machine, which share the memory there is."""
    if (count := min(request.n_processes, len(jobs))) == 1:
        yield lambda store: execute(request, jobs, store, tasks)
        return
    memory = (available(request.where) if request.memory is None else request.memory) // count
    terms = Terms.of(request, jobs, memory=memory)
    yield lambda store: Writer(request, terms, store).fill(jobs, partial(processes, count))


@contextmanager
def dask(request: RunRequest, jobs: Sequence[Job], tasks: Tasks) -> Iterator[Fill]:
    """The workers of the scheduler at ``request.address``; without one, of a scheduler of this machine."""
    distributed = extra("distributed", "dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in one line
    _check_certificates(distributed, request.address)
    with ExitStack() as stack:
        address = request.address or stack.enter_context(own_dask(request.n_processes))
        try:
            client = stack.enter_context(distributed.Client(address, timeout=ANSWER, set_as_default=False))
            client.wait_for_workers(1, timeout=JOIN)
        except (OSError, RuntimeError, TimeoutError, TypeError, ValueError) as error:
            expected = "the address of a Dask scheduler that has workers"
            got = f"{address} ({type(error).__name__}: {error})"
            remedy = "for example tcp://127.0.0.1:8786 after 'dask scheduler' and 'dask worker'"
            raise InputError("--address", expected, got, remedy) from None
        workers = DaskWorkers(client)
        sharing = Counter(worker.rpartition(":")[0] for worker in workers.threads())
        terms = Terms.of(request, jobs, max(sharing.values()), request.memory)
        workers.agree(terms)
        pool = Pool(client.get_executor(pure=False), workers.count, workers.check, distributed.KilledWorker, 0)
        yield lambda store: Writer(request, terms, store).fill(jobs, lambda: nullcontext(pool))


#: By the names that ``--runner`` takes.
EXECUTORS: dict[str, Callable[[RunRequest, Sequence[Job], Tasks], AbstractContextManager[Fill]]] = {
    "local": local,
    "dask": dask,
}


class Writer:
    """Hands out units and writes the rows that come back.

    Units whose worker died are tried again after all others, at last alone, so that one that kills its worker ends
    no other, and is known. Errors do not keep the other units from being trained; the first is raised in the end.
    """

    def __init__(self, request: RunRequest, terms: Terms, store: Store) -> None:
        path = store.path.resolve()
        self.request, self.store = request, store
        self.terms = replace(terms, store=str(path), inode=path.stat().st_ino)
        self.checkpoints = Checkpoints.of_store(store.path)
        self.waiting, self.suspects = deque[Unit](), deque[Unit]()
        self.lost = Counter[Unit]()  #: how many workers a unit has lost
        self.out: dict[Future[str], Unit] = {}
        self.done, self.told, self.looked, self.total, self.tried = 0, 0.0, now(), 0, 0
        self.failures: list[InputError] = []

    def fill(self, jobs: Sequence[Job], connect: Callable[[], AbstractContextManager[Pool]]) -> None:
        """Have trained what the store lacks; a pool of processes that breaks is replaced by another one."""
        left = unfinished(jobs, self.store)
        self.total = sum(job.epochs for job in left)
        begun, others = as_begun(left, self.checkpoints.begun())
        self.waiting.extend(map(tuple, [*begun, *in_step(others, self.request.where)]))
        with TemporaryDirectory(prefix="wcll-") as folder:
            self.terms = replace(self.terms, tally=folder)
            for _ in range(POOLS):
                with connect() as pool:
                    self.work(pool)
                if not (self.waiting or self.suspects) or self.over:
                    break
            else:
                got = f"{POOLS} times one that died: killed, or out of memory?"
                self.failures.append(InputError("--processes", "processes that live", got, GOES_ON))
        if not self.over:
            self.checkpoints.tidy(self.store)
        if self.failures:
            raise self.failures[0]

    @property
    def over(self) -> bool:
        """Whether there is no time left."""
        return self.request.pace.end - RESERVE < now()

    def work(self, pool: Pool) -> None:
        """Hand out and write until nothing is left, time is over or the pool broke; what is out is waited for.

        Workers stop in time by themselves, and leave checkpoints.
        """
        replies, broken = SimpleQueue[Future[str]](), False
        while True:
            while not broken and (unit := self.next(pool)):
                broken = not self.submit(pool, unit, replies)
            if not self.out:
                return
            try:
                broken |= self.take(pool, replies.get(timeout=LOOK))
            except Empty:
                pool.check()
            self.report()

    def next(self, pool: Pool) -> Unit | None:
        """Return what is handed out now, if anything is; every worker begins something, however late it is."""
        full = self.tried >= pool.size() if self.over else len(self.out) >= AHEAD * max(pool.size(), 1)
        if self.waiting and not full:
            return self.waiting.popleft()
        alone = self.suspects and not (self.waiting or self.out or full)
        return self.suspects.popleft() if alone else None

    def submit(self, pool: Pool, unit: Unit, replies: SimpleQueue[Future[str]]) -> bool:
        """Hand out a unit; returns whether the pool takes it."""
        try:
            future = pool.executor.submit(work, self.terms.text(unit))
        except BrokenProcessPool:
            (self.suspects if self.lost[unit] > pool.retries else self.waiting).appendleft(unit)
            return False
        self.out[future] = unit
        self.tried += 1
        future.add_done_callback(replies.put)
        return True

    def take(self, pool: Pool, future: Future[str]) -> bool:
        """Write what came back of a unit; returns whether the pool is broken."""
        unit = self.out.pop(future)
        if future.cancelled():
            pool.check()
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or isinstance(error, pool.lost):
            self.lose(pool, unit)
            return isinstance(error, BrokenProcessPool)
        self.done += _epochs(unit)
        try:
            if error:
                raise InputError("worker", "one that has wcll and trains", f"{type(error).__name__}: {error}")
            rows = rows_of(future.result(), unit, partly=self.terms.deadline is not None)
        except InputError as wrong:
            self.failures.append(wrong)
        else:
            self.store.add(rows)
            self.checkpoints.forget(self.store)
        return False

    def lose(self, pool: Pool, unit: Unit) -> None:
        """Try a unit whose worker died again: next to others, then alone, and then no more."""
        self.lost[unit] += 1
        if self.lost[unit] <= pool.retries:
            self.waiting.append(unit)
        elif self.lost[unit] == pool.retries + 1:
            self.suspects.append(unit)
        else:
            first, losses = unit[0].first, dict.fromkeys(trial.loss for job in unit for trial in job.trials)
            got = f"one that its worker died of {self.lost[unit]} times: out of memory?"
            name = f"{first.dataset}, {first.model}, {', '.join(losses)}, seed {first.seed} (key {first.key})"
            self.failures.append(InputError(f"runs of {name}", "runs that can be trained", got, GOES_ON))
            self.done += _epochs(unit)

    def report(self) -> None:
        """Tell how many epochs are done; now and then also of the units that are out."""
        done = float(self.done)
        if now() - self.looked >= LOOK:
            self.looked = now()
            done += sum(counted(self.terms, unit) for unit in self.out.values())
        if done > self.told:  # a unit that begins again is no news
            self.told = min(done, self.total)
            self.request.progress(int(self.told) if self.told.is_integer() else self.told, self.total)


def _epochs(unit: Unit) -> int:
    return sum(job.epochs for job in unit)


# --- processes of this machine ---------------------------------------------------------------------------------------


@contextmanager
def processes(count: int) -> Iterator[Pool]:
    """Fresh processes that leave Ctrl-C to this one, which ends them if it is stopped; they end with it, too."""
    others = set(active_children())
    with ProcessPoolExecutor(count, get_context("spawn"), _begin) as executor:
        try:
            with deaf_to_control_c():  # which the workers inherit
                started = [executor.submit(os.getpid) for _ in range(count)]  # each starts one
            try:
                started[0].result()
            except BrokenProcessPool:
                got = "one that died as it started: killed, or a script without if __name__ == '__main__'"
                raise InputError("--processes", "processes that live", got, GOES_ON) from None
            yield Pool(executor, lambda: count, lambda: None, BrokenProcessPool, 1)
        except BaseException:
            for child in set(active_children()) - others:
                child.terminate()
            raise


def _begin() -> None:
    """Prepare a worker, before it waits for its first unit: its parent may die at any moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would wait for units for ever."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


@contextmanager
def deaf_to_control_c() -> Iterator[None]:
    """Ctrl-C is heard when this is over; processes that are started meanwhile never hear it, from their first line.

    Blocking it is for them. Here it isn't enough, as any other thread of this process may take it, and it would end
    this one between the start of a process and its entry in the list of those to end.
    """
    with _heard_later(signal.SIGINT, signal.SIGTERM):
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        resource_tracker.ensure_running()  # it would open the ears of whoever starts it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _heard_later(*kinds: signal.Signals) -> Iterator[None]:
    """What Python does at these signals, it does at the end."""
    if threading.current_thread() is not threading.main_thread():  # which is the one that handles them
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {kind: handler for kind in kinds if callable(handler := signal.getsignal(kind))}
    for kind in handlers:
        signal.signal(kind, lambda *signalled: came.append(signalled))
    try:
        yield
    finally:
        for kind, handler in handlers.items():
            signal.signal(kind, handler)
        for number, frame in came:
            handlers[signal.Signals(number)](number, frame)


# --- workers of Dask -------------------------------------------------------------------------------------------------


@contextmanager
def own_dask(processes: int) -> Iterator[Any]:
    """Start a scheduler and workers of one thread each on loopback; no page, no files left.

    They speak TLS with a certificate that is made for them and thrown away, so that no other process of this machine
    can run code in them. Yields a ``distributed.LocalCluster``, for a ``distributed.Client``.
    """
    distributed, config = extra("distributed", "dask"), extra("dask.config", "dask")
    extra("cryptography", "dask")
    with TemporaryDirectory(prefix="wcll-") as folder, config.set(PATIENT), ExitStack() as stack:
        with deaf_to_control_c():  # which the workers inherit
            cluster = distributed.LocalCluster(
                n_workers=processes,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                protocol="tls://",
                security=distributed.Security.temporary(),
                dashboard_address="127.0.0.1:0",  # there is one all the same; None would be 8787, which may be taken
                worker_dashboard_address=None,
                scheduler_kwargs={"dashboard": False},
                memory_limit=0,  # runs are cut to the memory there is
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
        yield stack.enter_context(cluster)


def _check_certificates(distributed: Any, address: str | None) -> None:
    """A client without any would say so as well, but in many lines, and late."""
    if (address or "").startswith("tls://") and not distributed.Security().get_connection_args("client")["ssl_context"]:
        remedy = "name them in Dask's configuration: distributed.comm.tls"
        raise InputError("--address", "certificates for tls://", "none", remedy)


class DaskWorkers:
    """The workers that a scheduler has, and whether it is still there."""

    def __init__(self, client: Any) -> None:
        self._client, self._seen = client, now()
        self._number, self._looked = 0, 0.0

    def threads(self) -> Mapping[str, int]:
        """Return the threads of every worker: with more than one they would train units beside each other."""
        found: dict[str, int] = self._ask(self._client.nthreads)
        for worker, number in found.items():
            if number != 1:
                raise InputError(f"worker {worker}", "one thread", number, "start it with 'dask worker --nthreads 1'")
        return found

    def count(self) -> int:
        """Return how many workers there are, or were at the last look."""
        if now() - self._looked >= LOOK:
            self._number, self._looked = len(self._ask(self._client.nthreads)), now()
            self._seen = now() if self._number else self._seen
        return self._number

    def agree(self, terms: Terms) -> None:
        """Fail unless every worker has the same versions, code and data; one may not even have the package."""
        replies: dict[str, object] = self._ask(self._client.run, work, terms.text(), on_error="return")
        for worker, reply in replies.items():
            if not isinstance(reply, str):
                got = f"{type(reply).__name__}: {reply}"
                raise InputError(f"worker {worker}", "one that has wcll and trains", got)
            try:
                rows_of(reply, [])
            except InputError as error:
                name = error.argument.replace("worker", f"worker {worker}")
                raise InputError(name, error.expected, error.got, error.remedy) from None

    def check(self) -> None:
        """Fail if the scheduler is gone, or has had no worker for a minute: others take the place of those that die."""
        if self._client.status != "running":
            raise InputError("--runner", "a Dask scheduler that answers", "one that is gone", GOES_ON)
        self._looked = 0.0
        if not self.count() and now() - self._seen > JOIN:
            raise InputError("--runner", "workers of Dask that live", f"none for {JOIN:.0f} s", GOES_ON)

    def _ask(self, question: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return what a scheduler says, if it is there."""
        try:
            return question(*given, **options)
        except (OSError, RuntimeError, TimeoutError) as error:
            got = f"none ({type(error).__name__}: {error})"
            raise InputError("--runner", "an answer of the Dask scheduler", got, GOES_ON) from None
