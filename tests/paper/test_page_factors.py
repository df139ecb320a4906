"""What of the tried comes nearest to print."""

from __future__ import annotations

from wcll.experiments import load_suite
from wcll.paper.comparison import Kept, Part, metrics_of
from wcll.paper.page import LOOKS, factors_printed, nearest
from wcll.paper.protocols import FACTORS

SUITE = load_suite(FACTORS)


def run(trial, last, best):
    """A run of 100 epochs, its best after 40."""
    figures = {epoch: dict.fromkeys(metrics_of(SUITE), value / 100) for epoch, value in ((100, last), (40, best))}
    return Kept(trial.key, False, 1.0, 100, 100, 40, figures)


def part(*, near, without=()):
    """Everything far from print, but for one column at one rate and the best epoch with Algorithm 1."""
    runs = {}
    for column in SUITE.columns:
        for row in SUITE.rows:
            for trial in SUITE.candidates(column, row, 0):
                there = (column.title, trial.lr) == near and row.title != "wcll"
                if row.title not in without:
                    runs[trial.key] = run(trial, 30, 57.0 if there else 40)
    return Part(SUITE, 1, runs, {})


def test_the_nearest_column_rate_and_formula():
    column = SUITE.columns[3].title
    found = nearest(part(near=(column, 5e-6)))["at the best epoch by TEST"]
    assert (found.column, found.lr, list(found.figures)) == (column, "5e-6", ["log", "wcll, Algorithm 1"])
    printed = [one.mean for one in factors_printed().values()]
    assert abs(found.distance - sum(abs(57.0 - one) for one in printed) / 2) < 1e-9


def test_what_was_not_run_is_not_near():
    assert nearest(part(near=None, without=("log",))) == {}
    assert list(nearest(part(near=None, without=("wcll",)))) == list(LOOKS)


def test_every_look_is_a_table_of_the_suite():
    assert {table for tables in LOOKS.values() for table in tables} <= {spec.title for spec in SUITE.tables}
