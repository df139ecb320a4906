"""``wcll run --runner dask`` with a scheduler and workers that are processes of their own, and are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil
import pytest

from small import LINEAR, PATIENCE
from wcll.cli.app import run as command
from wcll.results import Store
from wcll.running.dask_cluster import _own

pytest.importorskip("distributed", reason="the extra dask is not installed")

SUITE = LINEAR.replace("epochs = 12", "epochs = 2").replace("trials = 3", "trials = 1")


@pytest.fixture
def dask(tmp_path, monkeypatch):
    """Starts ``dask scheduler`` and ``dask worker`` on loopback; all are ended afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE)
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
    assert command(["report", "suite.toml", "--store", store, "--out", "table.csv"]) == 0
    with open("table.csv") as file:
        return file.read()


WORKER = ("--nthreads", "1", "--no-nanny", "--local-directory", "scratch")


def test_the_table_is_the_local_one_whoever_is_killed(dask, tmp_path, monkeypatch, capsys):
    scheduler = dask("scheduler", "--port", "0")
    where = address(tmp_path)
    first, _ = dask("worker", *WORKER), dask("worker", *WORKER)
    assert command(["run", "suite.toml", "--store", "local.sqlite"]) == 0
    expected = table("local.sqlite")
    on_dask = ["run", "suite.toml", "--runner", "dask", "--address", where, "--together", "1"]

    with monkeypatch.context() as patched:  # a worker is killed on the way
        adds = kill_when(patched, 3, first)
        assert command([*on_dask, "--store", "worker.sqlite"]) == 0
        assert adds == [1] * 16
    assert table("worker.sqlite") == expected

    with monkeypatch.context() as patched:  # the scheduler is
        kill_when(patched, 3, scheduler)
        capsys.readouterr()
        assert command([*on_dask, "--store", "scheduler.sqlite"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("wcll: error: --runner: expected a")
    assert line.endswith("the same command goes on with what is left")
    with Store(tmp_path / "scheduler.sqlite") as store:
        begun = store.count()
        assert 3 <= begun < 16
        assert store.claimed() == 0

    (tmp_path / "scheduler.json").unlink()
    dask("scheduler", "--port", where.rpartition(":")[2])
    assert address(tmp_path) == where
    dask("worker", *WORKER)
    with monkeypatch.context() as patched:
        adds = kill_when(patched, 0, scheduler)
        assert command([*on_dask, "--store", "scheduler.sqlite"]) == 0
        assert len(adds) == 16 - begun
    assert table("scheduler.sqlite") == expected


def test_its_own_scheduler_listens_on_loopback_alone():
    import distributed

    before = listening()
    with _own(distributed, 0) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        assert {place.ip for place in listening() - before} == {"127.0.0.1"}
    assert listening() == before


def listening():
    """Where this process can be reached."""
    return {one.laddr for one in psutil.Process().net_connections() if one.status == psutil.CONN_LISTEN}
