"""Workers of a Dask scheduler: one that is there, or one of this machine's own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from wcll.checks import InputError, extra
from wcll.running.processes import Workers, deaf_to_control_c
from wcll.running.units import failed, work

ANSWER, JOIN = 10.0, 60.0  #: seconds until a scheduler has to answer, and until some worker has to be there
#: A worker that dies is started anew, however long that takes: by itself Dask gives it up if it is not back in time.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1000 days"}
GOES_ON = "the same command goes on with what is left"


@contextmanager
def dask_cluster(workers: Workers) -> Iterator[DaskCluster]:
    """The workers at ``workers.address``; without one, processes of this machine, on loopback, until this is over."""
    distributed = extra("distributed", "dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in one line
    _check_certificates(distributed, workers.address)
    with ExitStack() as stack:
        address = workers.address or stack.enter_context(own_dask(workers.processes))
        try:
            client = stack.enter_context(distributed.Client(address, timeout=ANSWER, set_as_default=False))
            client.wait_for_workers(1, timeout=JOIN)
        except (OSError, RuntimeError, TimeoutError, TypeError, ValueError) as error:
            expected = "the address of a Dask scheduler that has workers"
            got = f"{address} ({type(error).__name__}: {error})"
            remedy = "for example tcp://127.0.0.1:8786 after 'dask scheduler' and 'dask worker'"
            raise InputError("--address", expected, got, remedy) from None
        yield DaskCluster(client, distributed.KilledWorker)


def _check_certificates(distributed: Any, address: str | None) -> None:
    """A client without any would say so as well, but in many lines, and late."""
    if (address or "").startswith("tls://") and not distributed.Security().get_connection_args("client")["ssl_context"]:
        remedy = "name them in Dask's configuration: distributed.comm.tls"
        raise InputError("--address", "certificates for tls://", "none", remedy)


@contextmanager
def own_dask(processes: int) -> Iterator[Any]:
    """A scheduler and workers of one thread each, which nobody outside this machine reaches; no page, no files left.

    What is given is a ``distributed.LocalCluster``, for a ``distributed.Client``.
    """
    distributed, config = extra("distributed", "dask"), extra("dask.config", "dask")
    with TemporaryDirectory(prefix="wcll-") as folder, config.set(PATIENT), ExitStack() as stack:
        with deaf_to_control_c():  # which the workers inherit
            cluster = distributed.LocalCluster(
                n_workers=processes,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # there is one all the same; None would be 8787, which may be taken
                worker_dashboard_address=None,
                scheduler_kwargs={"dashboard": False},
                memory_limit=0,  # runs are cut to the memory there is
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
        yield stack.enter_context(cluster)


class DaskCluster:
    """What a client of a scheduler can do, as :class:`wcll.running.cluster.Cluster` asks for it."""

    def __init__(self, client: Any, killed: type[Exception]) -> None:
        self._client, self._killed = client, killed
        self._done = SimpleQueue[Any]()
        self._out: dict[str, Any] = {}  # what nobody holds is forgotten
        self._seen = time.monotonic()  # when there was some worker

    def workers(self) -> Mapping[str, str]:
        """Those that there are now; with more threads they would train units beside each other."""
        threads = self._ask(self._client.nthreads)
        for worker, number in threads.items():
            if number != 1:
                raise InputError(f"worker {worker}", "one thread", number, "start it with 'dask worker --nthreads 1'")
        return {worker: worker.rpartition(":")[0] for worker in threads}

    def ask_all(self, text: str) -> Mapping[str, str]:
        """A worker that cannot even import the package says so."""
        replies = self._ask(self._client.run, work, text, on_error="return")
        return {worker: reply if isinstance(reply, str) else _broken(reply) for worker, reply in replies.items()}

    def submit(self, text: str) -> str:
        """A unit whose worker is lost is given to another by the scheduler."""
        future = self._ask(self._client.submit, work, text, pure=False)
        self._out[future.key] = future
        future.add_done_callback(self._done.put)
        return str(future.key)

    def reply(self, seconds: float) -> tuple[str, str] | None:
        """A unit that has lost several workers is not tried again: it may be what kills them."""
        self._check_scheduler()
        try:
            future = self._done.get(timeout=seconds)
        except Empty:
            self._check_workers()
            return None
        self._check_scheduler()
        self._seen = time.monotonic()
        del self._out[future.key]
        error = self._ask(future.exception) if future.status != "finished" else None
        if isinstance(error, self._killed):
            dead = InputError("unit", "workers that live", "several that died of it: out of memory?", GOES_ON)
            return future.key, failed(dead)
        return future.key, _broken(error) if error else self._ask(future.result)

    def _check_scheduler(self) -> None:
        if self._client.status != "running":
            raise InputError("--runner", "a Dask scheduler that answers", "one that is gone", GOES_ON)

    def _check_workers(self) -> None:
        """Others take the place of workers that die; where none is left and none comes, nobody would ever reply."""
        if self._ask(self._client.nthreads):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > JOIN:
            raise InputError("--runner", "workers of Dask that live", f"none for {JOIN:.0f} s", GOES_ON)

    def _ask(self, question: Any, *given: Any, **options: Any) -> Any:
        """What a scheduler says, if it is there."""
        try:
            return question(*given, **options)
        except (OSError, RuntimeError, TimeoutError) as error:
            got = f"none ({type(error).__name__}: {error})"
            raise InputError("--runner", "an answer of the Dask scheduler", got, GOES_ON) from None


def _broken(error: object) -> str:
    """A worker that fails before it can say why."""
    return failed(InputError("worker", "one that has wcll and trains", f"{type(error).__name__}: {error}"))
