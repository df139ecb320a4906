"""Workers of a Ray cluster: one that is there, or one of this machine's own."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from wcll.checks import InputError, extra
from wcll.running.processes import Workers
from wcll.running.units import failed, work

JOIN = 60.0  #: seconds until every worker has to answer
TRIES = 3  #: how often a unit is given to another worker
GOES_ON = "the same command goes on with what is left"
#: Ray sends no reports of its use.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
#: So it listens on loopback alone; elsewhere than on these systems it would listen to everybody.
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOOPBACK = "127.0.0.1"

_told: list[Any] = []  # Ray, once it was loaded so that it listens on loopback alone


@contextmanager
def ray_cluster(workers: Workers) -> Iterator[RayCluster]:
    """The workers at ``workers.address``; without one, processes of this machine, on loopback, until this is over."""
    if workers.address is None:
        with own_ray(workers.processes) as ray:
            yield RayCluster(ray, workers.processes)
        return
    here = workers.address.rpartition(":")[0] in (LOOPBACK, "localhost")
    with (
        _environment({**QUIET, **(ON_LOOPBACK if here else {})}),
        _begun(_loaded(on_loopback=here), address=workers.address) as ray,
    ):
        yield RayCluster(ray, _cores(ray))


@contextmanager
def own_ray(processes: int) -> Iterator[Any]:
    """A Ray of this process alone, until this is over; what is given is the package ``ray``.

    It listens on loopback, asks for a secret, sends no reports, and leaves nothing in the home folder. Ray learns where
    to listen when it is loaded: this is for processes that have not loaded it before.
    """
    with _environment({**QUIET, **_alone()}), TemporaryDirectory(prefix="wcll-", dir=_short_folder()) as folder:
        options = {"num_cpus": processes, "include_dashboard": False, "_temp_dir": folder}
        with _begun(_loaded(on_loopback=True), address="local", **options) as ray:
            if (place := ray.util.get_node_ip_address()) != LOOPBACK:
                raise InputError("--runner", f"a Ray that listens on {LOOPBACK}", place)
            yield ray


@contextmanager
def _begun(ray: Any, *, address: str, **options: Any) -> Iterator[Any]:
    """Ray, at work."""
    try:
        try:
            ray.init(address, **options, log_to_driver=False, logging_level=logging.CRITICAL)
        except (OSError, RuntimeError, TimeoutError, ValueError) as error:
            got = f"{address} ({type(error).__name__}: {error})"
            remedy = "for example 127.0.0.1:6379 after 'ray start --head'; RAY_AUTH_TOKEN has to be its token"
            raise InputError("--address", "the address of a Ray cluster", got, remedy) from None
        yield ray
    finally:
        ray.shutdown()


def _loaded(on_loopback: bool) -> Any:
    """Ray, which learns where to listen when it is loaded, and serves one cluster at a time."""
    fresh = "ray" not in sys.modules
    ray = extra("ray", "ray")
    if fresh and on_loopback:
        _told.append(ray)
    if ray.is_initialized() or (on_loopback and ray not in _told):
        raise InputError("--runner", "a process that does not use Ray otherwise", "one that does")
    return ray


@cache
def _alone() -> dict[str, str]:
    """A Ray that listens on loopback and asks for a secret, which is not kept in the home folder, as it would be."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return {**secret, **ON_LOOPBACK}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables of this process and of those that it starts, which are as before afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def _cores(ray: Any) -> int:
    """As many workers as the cluster has cores now."""
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def _short_folder() -> str | None:
    """Ray's sockets lie in it, whose paths must be short."""
    return "/tmp" if os.path.isdir("/tmp") else None


class Trainer:
    """A process that trains one unit after the other."""

    def work(self, text: str) -> str:
        """Text in, text out."""
        return work(text)

    def machine(self) -> str:
        """Where it is."""
        return platform.node()


class RayCluster:
    """What Ray can do, as :class:`wcll.running.cluster.Cluster` asks for it."""

    def __init__(self, ray: Any, count: int) -> None:
        self._ray = ray
        kind = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=TRIES, scheduling_strategy="SPREAD")(Trainer)
        self._trainers = {f"{i}": kind.remote() for i in range(1, count + 1)}
        self._busy: dict[Any, str] = {}  # what is out, and who trains it
        self._machines = self._all("machine")

    def workers(self) -> Mapping[str, str]:
        """As many as there were cores in the beginning."""
        return self._machines

    def ask_all(self, text: str) -> Mapping[str, str]:
        """A worker that cannot even import the package says so."""
        return self._all("work", text)

    def submit(self, text: str) -> str:
        """To the worker that has least to do; Ray starts one that is lost anew, and repeats its unit."""
        load = list(self._busy.values())
        name = min(self._trainers, key=load.count)
        unit = self._trainers[name].work.remote(text)
        self._busy[unit] = name
        return str(unit)

    def reply(self, seconds: float) -> tuple[str, str] | None:
        """A unit that has lost several workers is not tried again: it may be what kills them."""
        done, _ = self._ray.wait(list(self._busy), timeout=seconds)
        if not done:
            return None
        del self._busy[done[0]]
        return str(done[0]), self._get(done[0], 0.0)

    def _all(self, method: str, *given: str) -> dict[str, str]:
        asked = {name: getattr(one, method).remote(*given) for name, one in self._trainers.items()}
        return {name: self._get(reply, JOIN) for name, reply in asked.items()}

    def _get(self, reply: Any, seconds: float) -> str:
        try:
            return str(self._ray.get(reply, timeout=seconds))
        except self._ray.exceptions.RayError as error:
            got = " ".join(f"{type(error).__name__}: {error}".split())
            return failed(InputError("worker", "one that has wcll, lives and trains", got, GOES_ON))
