"""Several processes of this machine on one store, for CPU runs that do not stack."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from wcll.checks import InputError
from wcll.experiments.execute import Load, execute
from wcll.experiments.memory import available
from wcll.experiments.plan import Unit
from wcll.experiments.store import Store

LOOK = 1.0  # seconds between looks at how far the workers are


def execute_in_processes(
    units: Sequence[Unit],
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
    watcher = threading.Thread(target=_watch, args=(units, path, progress, over), daemon=True)
    watcher.start()
    try:
        work = delayed(_work)(units, path, load, threads, limit)
        errors = Parallel(n_jobs=processes)([work] * processes)
    except TerminatedWorkerError:
        raise InputError("--processes", "processes that live", "one that was killed, by lack of memory perhaps",
                         "the same command goes on with what is left") from None  # fmt: skip
    finally:
        over.set()
        watcher.join()
    for error in filter(None, errors):
        raise error


def _work(units: Sequence[Unit], path: Path, load: Load, threads: int, memory: int) -> InputError | None:
    """One worker; what is wrong is returned, as an error that is raised would end the others too."""
    torch.set_num_threads(threads)
    try:
        with Store(path) as store:
            execute(units, store, load, torch.device("cpu"), memory=memory)
    except InputError as error:
        return error
    return None


def _watch(units: Sequence[Unit], path: Path, progress: Callable[[int, int], None], over: threading.Event) -> None:
    """Tell how many epochs of runs the workers have written."""
    with Store(path) as store:
        waiting = [unit for unit in units if len(store.finished(unit.keys)) < len(unit.keys)]
        left = _epochs(waiting, store)
        while not over.wait(LOOK):
            progress(left - _epochs(waiting, store), left)


def _epochs(units: Sequence[Unit], store: Store) -> int:
    return sum((len(unit.keys) - len(store.finished(unit.keys))) * unit.trials[0].epochs for unit in units)
