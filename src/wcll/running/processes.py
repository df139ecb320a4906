"""Several processes of this machine on one store, for CPU runs that do not stack."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from wcll.checks import InputError
from wcll.results.store import Store
from wcll.running.execute import Load, Tasks, execute, unfinished
from wcll.running.memory import available
from wcll.running.plan import Job

LOOK = 1.0  # seconds between looks at how far the workers are


def execute_in_processes(
    jobs: Sequence[Job],
    path: Path,
    load: Load,
    *,
    processes: int,
    threads: int,
    memory: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Run what the store does not have yet in several processes, which share the memory there is.

    They divide the work by their claims, as processes of several commands would.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    limit = (available(torch.device("cpu")) if memory is None else memory) // processes
    over = threading.Event()
    with TemporaryDirectory(prefix="wcll-") as folder:
        tallies = [Path(folder) / str(i) for i in range(processes)]
        watcher = threading.Thread(target=_watch, args=(jobs, path, tallies, progress, over), daemon=True)
        watcher.start()
        try:
            errors = Parallel(n_jobs=processes)(
                delayed(_work)(jobs, path, load, threads, limit, tally) for tally in tallies
            )
        except TerminatedWorkerError:
            raise InputError("--processes", "processes that live", "one that was killed, by lack of memory perhaps",
                             "the same command goes on with what is left") from None  # fmt: skip
        finally:
            over.set()
            watcher.join()
    for error in filter(None, errors):
        raise error


def _work(jobs: Sequence[Job], path: Path, load: Load, threads: int, memory: int, tally: Path) -> InputError | None:
    """One worker; what is wrong is returned, as an error that is raised would end the others too.

    It counts the epochs that it has done in the file ``tally``.
    """
    torch.set_num_threads(threads)

    def count(done: int, total: int) -> None:
        with suppress(OSError):  # the folder goes away when a sister fails
            tally.write_text(str(done))

    try:
        with Store(path) as store:
            execute(jobs, store, Tasks(load), torch.device("cpu"), memory=memory, progress=count)
    except InputError as error:
        return error
    return None


def _watch(
    jobs: Sequence[Job],
    path: Path,
    tallies: Sequence[Path],
    progress: Callable[[int, int], None],
    over: threading.Event,
) -> None:
    """Tell how many epochs of runs the workers have done: what they say, or more if more is written."""
    with Store(path) as store:
        waiting = unfinished(jobs, store)
        left = sum(job.epochs for job in waiting)
        while not over.wait(LOOK):
            said = sum(_number(tally) for tally in tallies)
            done = min(max(said, left - sum(job.epochs for job in unfinished(waiting, store))), left)
            if done:  # the clock starts when the workers do: starting them takes seconds
                progress(done, left)


def _number(tally: Path) -> int:
    """What a worker has counted; 0 before it begins, or while it writes."""
    try:
        return int(tally.read_text() or 0)
    except (OSError, ValueError):
        return 0
