"""``wcll run --runner ray``: a cluster of this machine's own, whose worker is killed."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import psutil
import pytest

from small import MAIN, PATIENCE, start
from wcll.cli.app import run as command
from wcll.running.ray_cluster import ON_LOOPBACK, QUIET

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")


SUITE = ["digits", "--trials", "1"]  #: one trial of the package's own suite


def table(store):
    assert command(["report", *SUITE, "--store", store, "--out", f"{store}.csv"]) == 0
    with open(f"{store}.csv") as file:
        return file.read()


def family(child):
    return [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]


def trainers(child):
    found = []
    for one in family(child):
        with suppress(psutil.Error):  # processes of Ray come and go
            found += [one] if "".join(one.cmdline()[:1]).startswith("ray::Trainer.work") else []
    return found


def places_of(processes):
    """Where somebody listens."""
    places = set()
    for one in processes:
        with suppress(psutil.Error):
            places |= {place.laddr.ip for place in one.net_connections() if place.status == psutil.CONN_LISTEN}
    return {place.removeprefix("::ffff:") for place in places}


def test_the_table_is_the_local_one_though_a_worker_is_killed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert command(["run", *SUITE, "--store", "local.sqlite"]) == 0
    child = start(MAIN, *["run", *SUITE, "--store", "ray.sqlite", "--runner", "ray", "--together", "2"])
    try:
        end = time.monotonic() + PATIENCE
        while child.poll() is None and time.monotonic() < end and not (found := trainers(child)):
            time.sleep(0.05)
        found[0].suspend()  # in the middle of a unit
        every = family(child)
        places = places_of(every)
        found[0].kill()
        _, error = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
    assert child.returncode == 0, error
    assert places == {"127.0.0.1"}
    assert table("ray.sqlite") == table("local.sqlite")
    assert psutil.wait_procs(every, timeout=PATIENCE)[1] == []
    assert list((tmp_path / "home").iterdir()) == []


@pytest.fixture
def head(tmp_path, monkeypatch):
    """A Ray that is there already, on loopback, with a token, as the guide says how; returns its address."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    for name, value in {**QUIET, **ON_LOOPBACK, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 64}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with TemporaryDirectory(prefix="wcll-", dir="/tmp") as folder:  # its sockets lie there: a short path
        monkeypatch.setenv("RAY_TMPDIR", folder)
        given = ["start", "--head", "--block", "--port", f"{port}", "--num-cpus", "2", "--include-dashboard", "false"]
        process = start("from ray.scripts.scripts import main; main()", *given)
        try:
            yield process, f"127.0.0.1:{port}"
        finally:
            for one in reversed(family(process)):
                with suppress(psutil.Error):
                    one.kill()
            process.communicate()


def test_a_ray_that_is_there_makes_the_table_of_this_process(head, tmp_path, monkeypatch):
    process, address = head
    assert command(["run", *SUITE, "--store", "local.sqlite"]) == 0  # meanwhile it begins
    end = time.monotonic() + PATIENCE
    while "raylet" not in {name_of(one) for one in family(process)} and time.monotonic() < end:
        time.sleep(0.1)
    on_ray = ["run", *SUITE, "--store", "ray.sqlite", "--runner", "ray", "--address", address]
    child = start(MAIN, *on_ray)
    places = set()
    while child.poll() is None and time.monotonic() < end:
        places |= places_of([*family(process), psutil.Process(child.pid)])
        time.sleep(0.2)
    _, error = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, error
    assert places == {"127.0.0.1"}
    assert table("ray.sqlite") == table("local.sqlite")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "8" * 64)  # somebody else's
    monkeypatch.setenv("RAY_NUM_REDIS_GET_RETRIES", "1")  # it would ask for 20 s
    _, error = start(MAIN, *on_ray[:-4], "--store", "none.sqlite", *on_ray[-4:]).communicate(timeout=PATIENCE)
    *_, line = error.splitlines()
    assert line.startswith(f"wcll: error: --address: expected the address of a Ray cluster, got {address}")
    assert line.endswith("RAY_AUTH_TOKEN has to be its token")
    assert not (tmp_path / "none.sqlite").exists()
    assert list((tmp_path / "home").iterdir()) == []


def name_of(process):
    with suppress(psutil.Error):
        return process.name()
