"""``wcll run --runner dask`` with a scheduler and workers that are processes of their own, and are killed."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time

import psutil
import pytest

from small import PATIENCE
from wcll.cli.app import run as command
from wcll.exceptions import InputError
from wcll.experiments import Store, executors
from wcll.experiments.executors import DaskWorkers, own_dask

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

SUITE, RUNS = ["digits", "--trials", "1"], 28  #: one trial of the package's own suite, in units of two runs


@pytest.fixture
def dask(tmp_path, monkeypatch):
    """Starts ``dask scheduler`` and ``dask worker`` on loopback; all are ended afterwards."""
    monkeypatch.chdir(tmp_path)
    begun = []

    def start(kind, *options):
        plain = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", "scheduler.json", *options]
        with open(f"{kind}-{len(begun)}.txt", "w") as log:
            begun.append(subprocess.Popen([sys.executable, "-m", "dask", kind, *plain], stdout=log, stderr=log))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def address(folder):
    """Where the scheduler is, as soon as it has said so."""
    file, end = folder / "scheduler.json", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if file.exists() and (text := file.read_text()):
            return json.loads(text)["address"]
        time.sleep(0.05)
    raise AssertionError((folder / "scheduler-0.txt").read_text())


def kill_when(monkeypatch, written, process):
    """``kill -9`` as soon as so many units are in the store; while it is written to, others are being trained."""
    adds, plain = [], Store.add

    def add(self, rows):
        added = plain(self, rows)
        adds.append(added)
        if len(adds) == written:
            process.kill()
            process.wait()
        return added

    monkeypatch.setattr(Store, "add", add)
    return adds


def table(store):
    assert command(["report", *SUITE, "--store", store, "--out", "table.csv", "--force"]) == 0
    with open("table.csv") as file:
        return file.read()


WORKER = ("--nthreads", "1", "--no-nanny", "--local-directory", "scratch")


def test_the_table_is_the_local_one_whoever_is_killed(dask, tmp_path, monkeypatch, capsys):
    scheduler = dask("scheduler", "--port", "0")
    where = address(tmp_path)
    first, _ = dask("worker", *WORKER), dask("worker", *WORKER)
    assert command(["run", *SUITE, "--store", "local.sqlite"]) == 0
    expected = table("local.sqlite")
    on_dask = ["run", *SUITE, "--runner", "dask", "--address", where, "--together", "2"]

    with monkeypatch.context() as patched:  # a worker is killed on the way
        adds = kill_when(patched, 3, first)
        assert command([*on_dask, "--store", "worker.sqlite"]) == 0
        assert adds == [2] * (RUNS // 2)
    assert table("worker.sqlite") == expected

    with monkeypatch.context() as patched:  # the scheduler is
        kill_when(patched, 3, scheduler)
        capsys.readouterr()
        assert command([*on_dask, "--store", "scheduler.sqlite"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("wcll: error: --runner: expected a")
    assert line.endswith("the same command resumes with what is left")
    with Store(tmp_path / "scheduler.sqlite") as store:
        begun = store.count()
        assert 6 <= begun < RUNS

    (tmp_path / "scheduler.json").unlink()
    dask("scheduler", "--port", where.rpartition(":")[2])
    assert address(tmp_path) == where
    dask("worker", *WORKER)
    with monkeypatch.context() as patched:
        adds = kill_when(patched, 0, scheduler)
        assert command([*on_dask, "--store", "scheduler.sqlite"]) == 0
        assert sum(adds) == RUNS - begun
    assert table("scheduler.sqlite") == expected


def test_its_own_scheduler_listens_on_loopback_alone_and_refuses_strangers():
    """On ports that are free, so that there may be several."""
    pytest.importorskip("cryptography", reason="the extra dask is not installed")
    gc.collect()  # clients of other tests
    before = listening()
    with own_dask(0) as cluster, own_dask(0):
        assert cluster.scheduler_address.startswith("tls://127.0.0.1:")
        assert {place.ip for place in listening() - before} == {"127.0.0.1"}
        with distributed.Client(cluster, set_as_default=False) as client:
            assert client.nthreads() == {}
        address = cluster.scheduler_address
        for security in (None, distributed.Security.temporary()):  # none, or a certificate of somebody else
            refused(address, security=security)
        refused(address.replace("tls://", "tcp://"))
    assert listening() == before


def test_an_address_that_asks_for_certificates_is_one_line_without(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["run", *SUITE, "--runner", "dask", "--address", "tls://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == (
        "wcll: error: --address: expected certificates for tls://, got none; "
        "name them in Dask's configuration: distributed.comm.tls\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_whose_workers_are_gone_is_not_waited_for(dask, tmp_path, monkeypatch):
    """Neither when the command begins nor later; a scheduler that is gone is one line as well."""
    scheduler = dask("scheduler", "--port", "0")
    where = address(tmp_path)
    monkeypatch.setattr(executors, "JOIN", 0.2)
    monkeypatch.setattr(executors, "LOOK", 0.0)
    with distributed.Client(where, set_as_default=False) as client:
        workers = DaskWorkers(client)
        workers.check()
        time.sleep(0.3)
        with monkeypatch.context() as patched:  # some are there between two checks
            patched.setattr(client, "nthreads", lambda: {"a": 1})
            assert workers.count() == 1
        workers.check()
        time.sleep(0.3)
        with pytest.raises(InputError, match="expected workers of Dask that live, got none for 0 s; the same command"):
            workers.check()
        scheduler.kill()
        scheduler.wait()
        end = time.monotonic() + PATIENCE
        while client.status == "running" and time.monotonic() < end:
            time.sleep(0.05)
        with pytest.raises(InputError, match="expected a Dask scheduler that answers, got one that is gone; the same"):
            workers.check()


def refused(address, **options):
    """A client that cannot connect is collected here: if that happens while another one starts, Dask waits forever."""
    with pytest.raises((OSError, TypeError)):
        distributed.Client(address, timeout=2, set_as_default=False, **options)
    gc.collect()


def listening():
    """Where this process can be reached."""
    return {one.laddr for one in psutil.Process().net_connections() if one.status == psutil.CONN_LISTEN}
