"""``wcll run --runner ray``: a cluster of this machine's own, whose worker is killed."""

from __future__ import annotations

import time
from contextlib import suppress
from importlib.util import find_spec

import psutil
import pytest

from small import LINEAR, MAIN, PATIENCE, start
from wcll.cli.app import run as command

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")


def table(store):
    assert command(["report", "suite.toml", "--store", store, "--out", f"{store}.csv"]) == 0
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
    (tmp_path / "suite.toml").write_text(
        LINEAR.replace("epochs = 12", "epochs = 200").replace("trials = 3", "trials = 1")
    )
    assert command(["run", "suite.toml", "--store", "local.sqlite"]) == 0
    child = start(MAIN, *["run", "suite.toml", "--store", "ray.sqlite", "--runner", "ray", "--together", "1"])
    try:
        end = time.monotonic() + PATIENCE
        while child.poll() is None and time.monotonic() < end and not (found := trainers(child)):
            time.sleep(0.05)
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
