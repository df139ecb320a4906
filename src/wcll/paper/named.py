"""Protocols that are run in full: one for each way to draw labels, named before any of their runs was looked at.

Claims on recalls, spreads or epochs need more than the mean accuracies that the search keeps. So beside the protocol of
the tables, for each other way to draw labels the one is taken that the search put nearest to WCLL's printed numbers
among those that could be run in every setting; all methods of the search, the other forms of NCLL and ML-CLL, wrong
weights and resampling are trained under it.
"""

from __future__ import annotations

from dataclasses import replace

from wcll.paper.search import CHOSEN, GENERATORS, Protocol, main_columns
from wcll.suites import Suite
from wcll.suites.loading import load_base
from wcll.suites.suite import Axis

#: By the name of their suites; the protocol of the tables has suites of its own.
NAMED = {
    "protocol-uniform": Protocol(
        "uniform labels of imbalanced classes", 2000, "wcll algorithm1, declared pi", 5e-4, "last"
    ),
    "protocol-selector": Protocol(
        "inverse-size labels of balanced classes", 2000, "wcll eq9, declared pi", 5e-4, "last"
    ),
    "protocol-less": Protocol("uniform labels, rare classes named less", 3000, "wcll eq9, observed pi", 5e-6, "last"),
    "protocol-more": Protocol("uniform labels, rare classes named more", 1500, "wcll eq9, declared pi", 5e-4, "last"),
}
N_PROTOCOLS = len(NAMED) + 1  #: how many there are with that of the tables, CHOSEN
assert CHOSEN.generator not in {protocol.generator for protocol in NAMED.values()}


def named_suite(name: str) -> Suite:
    """The settings of tables 2, 3 and 4 under a named protocol, at its rate; WCLL's rows by its formula."""
    protocol, base = NAMED[name], load_base("_protocols")
    formula = next(row for row in load_base("_search").rows if row.title == protocol.loss).settings
    own = {**GENERATORS[protocol.generator], "n_majority": protocol.size, "lr": protocol.lr}
    return replace(
        base,
        name=name,
        title=f"{base.title}: {protocol.generator}, {protocol.size} images, {protocol.lr:g}",
        settings={**base.settings, **own},
        grid={},
        columns=main_columns(base),
        rows=tuple(_by_formula(row, formula) for row in base.rows),
        tables=(replace(base.tables[0], at=()),),
    )


def _by_formula(row: Axis, formula: dict[str, object]) -> Axis:
    """A row of WCLL trains the formula, with its pi; others are as they are."""
    return Axis(row.title, {**row.settings, **formula}) if row.settings["loss"] == "wcll" else row
