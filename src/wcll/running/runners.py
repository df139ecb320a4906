"""Who works through a suite's jobs: processes of this machine, or workers of a cluster.

A runner is a context: whoever enters it has workers that are ready, and what it gives fills a store. So what is wrong
with workers is said before there is a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wcll.results.store import Store
from wcll.running.cluster import Cluster, Writer, agreed
from wcll.running.dask_cluster import dask_cluster
from wcll.running.execute import Load, Tasks, execute
from wcll.running.pace import Pace
from wcll.running.plan import Job
from wcll.running.processes import Progress, Say, Workers, execute_in_processes
from wcll.running.ray_cluster import ray_cluster


@dataclass(frozen=True)
class Orders:
    """What is to be in a store, who trains it on what, until when, and who is told."""

    jobs: Sequence[Job]
    workers: Workers
    tasks: Tasks  #: of this process
    load: Load
    data: Path | None
    pace: Pace
    progress: Progress
    say: Say


Fill = Callable[[Store], None]  #: trains what a store lacks
Runner = Callable[[Orders], AbstractContextManager[Fill]]


@contextmanager
def local(orders: Orders) -> Iterator[Fill]:
    """This process, or several of this machine that share the work by their claims."""
    who = orders.workers

    def fill(store: Store) -> None:
        if who.processes > 1:
            execute_in_processes(orders.jobs, store.path, orders.load, who, orders.progress, orders.pace.end)
        else:
            limited = partial(execute, memory=who.memory, pace=orders.pace)
            limited(orders.jobs, store, orders.tasks, who.device, progress=orders.progress, say=orders.say)

    yield fill


@contextmanager
def on_cluster(connect: Callable[[Workers], AbstractContextManager[Cluster]], orders: Orders) -> Iterator[Fill]:
    """Workers that send rows back, which this process writes."""
    with connect(orders.workers) as cluster:
        terms = agreed(cluster, orders.jobs, orders.workers, orders.data)

        def fill(store: Store) -> None:
            Writer(cluster, terms, store, orders.progress, orders.pace.end).execute(orders.jobs, orders.say)

        yield fill


#: By the names that ``processes.RUNNERS`` has.
BY_NAME: dict[str, Runner] = {
    "local": local,
    "dask": partial(on_cluster, dask_cluster),
    "ray": partial(on_cluster, ray_cluster),
}
