"""Several processes of this machine on one store, for CPU runs that do not stack."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import torch

from wcll.checks import InputError, choice, extra, whole
from wcll.results.store import Store
from wcll.running.execute import Load, Tasks, execute, unfinished
from wcll.running.memory import available
from wcll.running.pace import Pace
from wcll.running.plan import Job
from wcll.training import dtype_and_device

MOST_WORKERS = 1024  #: threads, or processes
LOOK = 1.0  # seconds between looks at how far the workers are


Progress = Callable[[float, int], None]  #: told how many epochs of runs are done, and of how many
Say = Callable[[str], None]  #: told a line
RUNNERS: dict[str, str | None] = {
    "local": None,
    "dask": "distributed",
    "ray": "ray",
}  #: by name, the package that each needs


@dataclass(frozen=True)
class Workers:
    """Who does the work: a device, threads of torch, and on a CPU perhaps several processes; or a cluster's workers."""

    device: torch.device
    threads: int
    processes: int
    memory: int | None  #: bytes
    runner: str = "local"
    address: str | None = None  #: of a cluster that is there

    @staticmethod
    def of(
        device: str,
        threads: int,
        processes: int | None,
        memory: int | None,
        runner: str = "local",
        address: str | None = None,
    ) -> Workers:
        """Checked; without a number of processes, as many as there are cores on a CPU."""
        _check_runner(runner, address, processes)
        where = dtype_and_device("float32", device)[1]
        _number_of("threads", threads)
        if processes is None:
            processes = max(cores() // threads, 1) if where.type == "cpu" else 1
        if _number_of("processes", processes) > 1 and where.type != "cpu":
            raise InputError("--processes", "1 on a GPU, which trains many runs at once", processes)
        return Workers(where, threads, processes, None if memory is None else whole("memory", memory), runner, address)


def _check_runner(runner: str, address: str | None, processes: int | None) -> None:
    """A runner that is known and installed; an address is for a cluster, whose workers are there already."""
    package = RUNNERS[choice("--runner", runner, RUNNERS)]
    if package and find_spec(package) is None:  # it is not loaded yet: Ray has to be told things before
        extra(package, runner)
    if address is not None and runner == "local":
        raise InputError("--address", "none for --runner local", address, "for example --runner dask")
    if address is not None and processes not in (None, 1):
        raise InputError("--processes", "none beside --address, where workers are there already", processes)


def _number_of(argument: str, value: int) -> int:
    """So many threads or processes as a machine may have."""
    if whole(argument, value) > MOST_WORKERS:
        raise InputError(argument, f"a whole number from 1 to {MOST_WORKERS}", value)
    return int(value)


def execute_in_processes(
    jobs: Sequence[Job], path: Path, load: Load, workers: Workers, progress: Progress, end: float
) -> None:
    """Run what the store does not have yet in several processes, which share the memory there is, until ``end``.

    They divide the work by their claims, as processes of several commands would.
    """
    count = min(workers.processes, len(jobs))
    limit = (available(workers.device) if workers.memory is None else workers.memory) // count
    over = threading.Event()
    with TemporaryDirectory(prefix="wcll-") as folder, ThreadPoolExecutor(1) as watcher:
        tallies = [Path(folder) / str(i) for i in range(count)]
        watching = watcher.submit(_watch, jobs, path, tallies, progress, over)
        try:
            with _pool(count) as pool:
                with deaf_to_control_c():  # which the workers inherit
                    given = (jobs, path, load, workers.threads, limit, end)
                    work = [pool.submit(_work, *given, tally) for tally in tallies]
                errors = [one.result() for one in work]
        except BrokenProcessPool:
            got = "one that died: killed, out of memory, or a script without if __name__ == '__main__'"
            remedy = "the same command goes on with what is left"
            raise InputError("--processes", "processes that live", got, remedy) from None
        finally:
            over.set()
        watching.result()  # what a user's progress raised
    for error in filter(None, errors):
        raise error


def cores() -> int:
    """CPU cores that this process may use; in a container, as many as its share of time is worth."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or "max": no limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, ceil(int(quota) / int(period)))
    return count


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Fresh processes that leave Ctrl-C to this one, which ends them if it is stopped or if one of them dies."""
    others = set(active_children())
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin) as pool:
        try:
            yield pool
        except BaseException:
            for child in set(active_children()) - others:
                child.terminate()
            raise


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


def _begin() -> None:
    """The first thing that a worker does, before it waits for a plan, of which its parent may die halfway."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _work(
    jobs: Sequence[Job], path: Path, load: Load, threads: int, memory: int, end: float, tally: Path
) -> InputError | None:
    """One worker; what is wrong is returned, as an error that is raised would end the others too.

    It counts the epochs that it has done in the file ``tally``.
    """
    torch.set_num_threads(threads)

    def count(done: float, total: int) -> None:
        with suppress(OSError):  # the folder goes away when a sister fails
            tally.write_text(str(done))

    try:
        with Store(path) as store:
            execute(jobs, store, Tasks(load), torch.device("cpu"), memory=memory, progress=count, pace=Pace(end))
    except InputError as error:
        return error
    return None


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for more work for ever."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _watch(jobs: Sequence[Job], path: Path, tallies: Sequence[Path], progress: Progress, over: threading.Event) -> None:
    """Tell how many epochs of runs the workers have done: what they say, or more if more is written."""
    with Store(path) as store:
        waiting = unfinished(jobs, store)
        left = sum(job.epochs for job in waiting)
        while not over.wait(LOOK):
            said = sum(_number(tally) for tally in tallies)
            done = min(max(said, left - sum(job.epochs for job in unfinished(waiting, store))), left)
            if done:  # the clock starts when the workers do: starting them takes seconds
                progress(done, left)


def _number(tally: Path) -> float:
    """What a worker has counted; 0 before it begins, or while it writes."""
    try:
        return float(tally.read_text() or 0)
    except (OSError, ValueError):
        return 0
