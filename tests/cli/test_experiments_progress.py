"""How far a command is, and the time that is left."""

from __future__ import annotations

import re

import pytest

from wcll.cli.console import _lines


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr("wcll.cli.console.time.perf_counter", lambda: now[0])
    return now


def seconds_left(line):
    number, unit = re.search(r"about ([\d.]+) (s|min|h) left", line).groups()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


@pytest.mark.parametrize("waits", [[35.0, 6.0], [6.0, 6.0], [0.1, 0.1]], ids=["compiling", "steady", "short steps"])
def test_the_first_estimate_is_right_although_the_first_step_takes_long(clock, capsys, waits):
    """A network is prepared in its first epoch: that time is not taken for the time of every epoch."""
    report, left = _lines("training"), sum([waits[1]] * 99)
    report(0, 100)
    for done in range(1, 101):
        clock[0] += waits[0] if done == 1 else waits[1]
        report(done, 100)
        left -= waits[1] if done > 1 else 0.0
        if line := capsys.readouterr().err:
            break
    assert done < 100
    assert left / 2 <= seconds_left(line) <= 2 * max(left, 1)


def test_what_was_saved_before_is_not_taken_for_work(clock, capsys):
    report = _lines("training")
    for done in (50, 51, 52):
        report(done, 100)
        clock[0] += 10.0
    assert seconds_left(capsys.readouterr().err) == 480


def test_a_very_long_first_step_is_enough_for_an_estimate(clock, capsys):
    """Who has waited minutes is told something; that the first step may have been a slow one, the next line mends."""
    report = _lines("training")
    report(0, 100)
    clock[0] += 300.0
    report(1, 100)
    assert capsys.readouterr().err == "training: 1 %, about 8.2 h left\n"
    clock[0] += 30.0
    report(2, 100)
    assert seconds_left(capsys.readouterr().err) == 98 * 30 // 60 * 60


@pytest.mark.parametrize("step", [0.5, 20.0, 59.0, 61.0, 200.0])
def test_parts_of_the_first_epoch_tell_the_time_left(clock, capsys, step):
    """An epoch of 200 steps of 13 runs, of two."""
    report, waited = _lines("training"), 0.0
    report(0, 26)
    for done in range(1, 200):
        clock[0], waited = clock[0] + step, waited + step
        report(13 * done / 200, 26)
        if line := capsys.readouterr().err:
            break
    assert waited <= max(2 * step, 5.0) if step < 60 else waited == step
    assert re.match(r"training: [012] %, about ", line)
    assert seconds_left(line) == pytest.approx((400 - done) * step, rel=0.02, abs=30)


def test_nothing_new_is_no_news(clock, capsys):
    """Workers are looked at every second; what they have done since the first step tells the time left."""
    report = _lines("training")
    for done in (2.5, 3.0, 3.0, 3.0, 4.0):
        report(done, 8)
        clock[0] += 40.0
    assert capsys.readouterr().err == "training: 50 %, about 8 min left\n"


def test_what_is_done_in_one_step_is_told(clock, capsys):
    report = _lines("train-images-idx3-ubyte.gz")
    report(0, 100)
    report(100, 100)
    assert capsys.readouterr().err == "train-images-idx3-ubyte.gz: 100 %\n"
