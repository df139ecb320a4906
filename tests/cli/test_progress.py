"""How far a command is, and the time that is left."""

from __future__ import annotations

import re

import pytest

from wcll.cli.output import _lines


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr("wcll.cli.output.time.perf_counter", lambda: now[0])
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


def test_a_very_long_first_step_is_told_without_an_estimate(clock, capsys):
    report = _lines("training")
    report(0, 100)
    clock[0] += 300.0
    report(1, 100)
    assert capsys.readouterr().err == "training: 1 %\n"
    clock[0] += 30.0
    report(2, 100)
    assert seconds_left(capsys.readouterr().err) == 98 * 30 // 60 * 60


def test_what_is_done_in_one_step_is_told(clock, capsys):
    report = _lines("train-images-idx3-ubyte.gz")
    report(0, 100)
    report(100, 100)
    assert capsys.readouterr().err == "train-images-idx3-ubyte.gz: 100 %\n"
