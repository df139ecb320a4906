"""The report: every published number beside ours, a verdict on every claim, and how it all came about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wcll.losses import LOSSES
from wcll.paper.claims import FAILS, HOLDS, UNTESTED, judge_all
from wcll.paper.compare import CLOSE, Comparison, Entry, mean_absolute, rank_agreement, show_name
from wcll.paper.findings import findings
from wcll.paper.reproduction import Reproduction
from wcll.paper.search import GENERATORS, INVERSE_SIZE, SIZES, Fit, Protocol, Search
from wcll.report.figures import curves_panel, sheet
from wcll.report.page import render
from wcll.report.tables import BY_RISK, TRUTH, told_notes
from wcll.suites.suite import Axis

SHADES = (2.0, 5.0, 10.0)  #: points of difference at which the colour changes
CHOSEN = Protocol(INVERSE_SIZE, 2000, "wcll eq9, declared pi", 5e-4, "last")  #: the one called "paper" here
VERDICTS = {HOLDS: "hold", FAILS: "do not hold", UNTESTED: "can't be tested"}
MOST = 10  #: protocols that are listed


def render_report(found: Reproduction, ending: str) -> str:
    """The report as one HTML page (``.html``) or as Markdown (``.md``)."""
    return render(f"paper{ending}", **contents(found))


def figure3(found: Reproduction) -> str:
    """Figure 3's panels of MNIST as one SVG file."""
    figure = found.parts["figure3"]
    names = [show_name(method) for method in figure.methods]
    return sheet("Accuracy on the imbalanced class by epoch, mean and standard deviation", _panels(figure), names)


def contents(found: Reproduction) -> dict[str, Any]:
    """All that a template shows."""
    entries, claims = found.entries, judge_all(found)
    return {
        "title": "Does the paper hold? WCLL on MNIST",
        "claims": claims,
        "verdicts": [(text, sum(claim.verdict == kind for claim in claims)) for kind, text in VERDICTS.items()],
        "findings": findings(found),
        "numbers": {
            "published": len(entries) + len(found.missing),
            "measured": len(entries),
            "close": sum(entry.close for entry in entries),
            "within": sum(entry.within_spread for entry in entries),
            "wcll": f"{mean_absolute(found.wcll):.1f}",
            "settings": len(found.wcll),
            "points": f"{CLOSE:g}",
        },
        "shade": _shade,
        "tables": [_table(table) for table in found.tables],
        "extras": [_table(found.parts[name]) for name in ("bases", "sizes")],
        "panels": _panels(found.parts["figure3"]),
        "figure_methods": [show_name(method) for method in found.parts["figure3"].methods],
        "figure_trials": found.parts["figure3"].results.trials,
        "search": _search(found.search) if found.search else None,
        "made": _made(found),
    }  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One method of a table."""

    name: str
    mark: str  #: † selected by the 0-1 risk, ‡ sees true labels
    entries: list[Entry]

    @property
    def printed(self) -> list[str]:
        """As the paper has it."""
        return [entry.printed.text() if entry.printed else "" for entry in self.entries]


def _line(table: Comparison, row: Axis) -> Line:
    trial = table.results.suite.candidates(table.results.suite.columns[0], row, 0)[0]
    mark = (BY_RISK if LOSSES[trial.loss].link != "softmax" else "") + (TRUTH if trial.sees_truth else "")
    return Line(show_name(row.title), mark, table.of(row.title))


def _table(table: Comparison) -> dict[str, Any]:
    suite = table.results.suite
    lines = [_line(table, row) for row in suite.rows]
    theirs = max((entry.printed.trials for entry in table.printed if entry.printed), default=0)
    ranks = [
        (column, *(rank_agreement([table.at(m, column) for m in table.methods], how) for how in ("paper", "fair")))
        for column in table.columns
    ]
    return {
        "title": suite.title,
        "trials": table.results.trials,
        "columns": table.columns,
        "lines": lines,
        "rates": [f"{lr:g}" for lr in lines[0].entries[0].rates],
        "printed": len(table.printed),
        "close": sum(entry.close for entry in table.printed),
        "within": sum(entry.within_spread for entry in table.printed),
        "mean_absolute": mean_absolute(table.printed),
        "ranks": ranks if len(table.printed) > 3 * len(table.columns) else [],  # fewer have no order
        "marks": "".join(dict.fromkeys("".join(line.mark for line in lines))),
        "told": [note.replace("wcll", "WCLL") for note in told_notes(suite)],
        "fewer": f"The paper has {theirs}." if theirs and table.results.trials < theirs else "",
    }


def _shade(entry: Entry) -> str:
    """A class for the size of a difference: near, off, far, or very far."""
    if entry.difference is None:
        return ""
    return ("near", "off", "far", "wrong")[sum(abs(entry.difference) > limit for limit in SHADES)]


def _panels(figure: Comparison) -> list[tuple[str, str]]:
    results, suite = figure.results, figure.results.suite
    panels = []
    for column in suite.columns:
        trials = {row.title: suite.candidates(column, row, 0)[0] for row in suite.rows}
        curves = {
            show_name(method): np.array([results.runs[replace(trial, seed=seed).key].curve for seed in results.seeds])
            for method, trial in trials.items()
        }
        label = f"{column.title}: accuracy on the imbalanced class by epoch"
        panels.append((column.title, curves_panel(label, curves)))
    return panels


def _search(search: Search) -> dict[str, Any]:
    ranked, rates = search.ranked(search.readings), search.base.grid["lr"]
    whole = [fit for fit in ranked if fit.cells == len(search.base.columns)]
    chosen = next(i for i, fit in enumerate(whole, 1) if fit.protocol == CHOSEN)
    close = [fit for fit in whole if fit.distance <= CLOSE]
    nearest = min(close, key=lambda fit: search.rival_distance(fit.protocol), default=None)
    first = {fit.protocol.generator: fit for fit in reversed(ranked)}
    shown = [*whole[:MOST], *([whole[chosen - 1]] if chosen > MOST else [])]
    return {
        "protocols": len(ranked),
        "close": len(close),
        "rank": chosen,
        "whole": len(whole),
        "nearest": None if nearest is None else _fit(search, nearest),
        "nearest_is_used": nearest is not None and replace(nearest.protocol, loss=CHOSEN.loss) == CHOSEN,
        "best": [_fit(search, fit) for fit in shown],
        "generators": [_fit(search, first[name]) for name in dict.fromkeys(fit.protocol.generator for fit in ranked)],
        "sizes": SIZES,
        "readings": [
            (show_name(loss), [search.distance(replace(CHOSEN, loss=loss, size=size)).distance for size in SIZES])
            for loss in search.readings
        ],
        "rates": [f"{lr:g}" for lr in rates],
        "rivals": [
            (show_name(loss.split(" ")[0]), [
                [search.distance(replace(CHOSEN, loss=loss, size=size, lr=lr)).distance for lr in rates]
                for size in (1000, CHOSEN.size)
            ])
            for loss in [CHOSEN.loss, *search.rivals]
        ],
        "together": search.together(CHOSEN.loss)[:5],
        "cells": len(search.base.columns),
        "trials": search.trials,
        "kinds": {"ways to draw labels": len(GENERATORS), "sizes": len(SIZES), "formulas": len(search.readings),
                  "rates": len(rates)},
    }  # fmt: skip


def _fit(search: Search, fit: Fit) -> dict[str, Any]:
    """A protocol, how far WCLL and its rivals are from print under it, and under ours in the same settings."""
    settings = search.settings(fit.protocol)
    return {
        "protocol": fit.protocol,
        "loss": show_name(fit.protocol.loss),
        "distance": fit.distance,
        "cells": fit.cells,
        "rivals": search.rival_distance(fit.protocol),
        "ours": search.distance(CHOSEN, settings).distance,
        "our_rivals": search.rival_distance(CHOSEN, settings),
        "chosen": fit.protocol == CHOSEN,
    }


def _made(found: Reproduction) -> list[tuple[str, str]]:
    """How results came about: each part's command and time, and what made them."""
    parts = [(part.results.made, f"{part.results.trials} trials, {len(part.results.runs)} runs, ")
             for part in found.parts.values()]  # fmt: skip
    parts += [(found.search.made, "")] if found.search else []
    lines = []
    for about, size in parts:
        versions = ", ".join(f"{name} {about[name]}" for name in ("wcll", "torch", "numpy", "python"))
        commit = (
            f"commit {about['commit']}".replace("+", " with changes") if about["commit"] else "an installed package"
        )
        place = f"{about['seconds']:.0f} s of training on {about['device']}; {versions}; {commit}"
        lines.append((str(about["command"]), size + place))
    return lines
