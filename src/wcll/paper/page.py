"""The report: every published number beside ours, a verdict on every claim, and how it all came about."""

from __future__ import annotations

from typing import Any

import numpy as np

from wcll.paper.claims import judge_all
from wcll.paper.findings import contradictions, findings
from wcll.paper.fitting import MARGIN
from wcll.paper.named import NAMED
from wcll.paper.part import CLOSE, Beside, Part, mean_absolute
from wcll.paper.published import show_name
from wcll.paper.reproduction import LATER, TABLES, Reproduction
from wcll.paper.search import CHOSEN, GENERATORS, SIZES
from wcll.paper.verdicts import DEPENDS, FAILS, HOLDS, UNTOLD
from wcll.report.figures import curves_panel, sheet
from wcll.report.render import render
from wcll.report.tables import pick_all, told_notes

SHADES = (2.0, 5.0, 10.0)  #: points of difference at which the colour changes
VERDICTS = {HOLDS: "hold", FAILS: "do not hold", DEPENDS: "depend on what the paper does not say", UNTOLD: UNTOLD}


def render_report(found: Reproduction, ending: str) -> str:
    """The report as one HTML page (``.html``) or as Markdown (``.md``)."""
    return render(f"paper{ending}", package="wcll.paper", **contents(found))


def figure3(found: Reproduction) -> str:
    """Figure 3's panels of MNIST as one SVG file."""
    figure = found.parts["figure3"]
    names = [show_name(method) for method in figure.methods]
    return sheet("Accuracy on the imbalanced class by epoch, mean and standard deviation", _panels(figure), names)


def contents(found: Reproduction) -> dict[str, Any]:
    """All that a template shows."""
    claims, figure, fits = judge_all(found), found.parts["figure3"], found.fits
    shown = [found.parts[name] for name in (*TABLES, "bases", "sizes", *LATER) if name in found.parts]
    return {
        "title": "Does the paper hold? WCLL on MNIST",
        "claims": claims,
        "verdicts": [(text, sum(claim.verdict == kind for claim in claims)) for kind, text in VERDICTS.items()],
        "findings": findings(found),
        "contradictions": contradictions(),
        "numbers": headline(found),
        "shade": _shade,
        "name": show_name,
        "tables": [_about(part) for part in shown],
        "costs": found.selection_costs,
        "fits": fits,
        "margin": MARGIN,
        "named": NAMED,
        "run": found.named,
        "panels": _panels(figure),
        "figure": figure,
        "search": found.search,
        "chosen": CHOSEN,
        "generators": GENERATORS,
        "sizes": SIZES,
        "made": [*found.parts.values(), *found.named.values(), *([found.search] if found.search else [])],
    }


def headline(found: Reproduction) -> dict[str, Any]:
    """How many numbers come back: WCLL's own, by which the protocol was chosen, and those that chose nothing."""
    fitted = [one for one in found.beside if one.printed.method == "wcll"]
    others = [one for one in found.beside if one.printed.method != "wcll"]
    return {
        "published": len(found.beside) + len(found.missing),
        "fitted": _counts(fitted),
        "others": _counts(others),
        "measured": len(found.beside),
        "wcll": f"{mean_absolute(found.wcll):.1f}",
        "settings": len(found.wcll),
        "points": f"{CLOSE:g}",
    }


def _counts(beside: list[Beside]) -> dict[str, int]:
    """How many numbers were measured, and how many of them are near."""
    return {
        "measured": len(beside),
        "close": sum(one.close for one in beside),
        "within": sum(one.within_spread for one in beside),
    }


def _about(part: Part) -> dict[str, Any]:
    """A part with what is said of it below its table."""
    beside, lines = list(part.beside.values()), part.tables["fair"].lines
    ranks = [(column, *(part.rank_agreement(how, column) for how in ("paper", "fair"))) for column in part.columns]
    return {
        "part": part,
        "lines": lines,
        **_counts(beside),
        "mean_absolute": mean_absolute(beside),
        "ranks": ranks if len(beside) > 3 * len(part.columns) else [],  # fewer have no order
        "marks": "".join(line.mark for line in lines),
        "told": [note.replace("wcll", "WCLL") for note in told_notes(part.suite, choice=True)],
        "theirs": max((one.printed.trials for one in beside), default=0),
    }


def _shade(beside: Beside | None) -> str:
    """A class for the size of a difference: near, off, far, or very far."""
    if beside is None:
        return ""
    return ("near", "off", "far", "wrong")[sum(abs(beside.difference) > limit for limit in SHADES)]


def _panels(figure: Part) -> list[tuple[str, str]]:
    """The curves of every setting, with their title."""
    picks = pick_all(figure.suite, figure.suite.tables[0], figure.runs, range(figure.trials))
    panels = []
    for column in figure.columns:
        curves = {
            show_name(method): np.array([picked.run.recalls for picked in picks[method, column].values()])
            for method in figure.methods
        }
        panels.append((column, curves_panel(f"{column}: accuracy on the imbalanced class by epoch", curves)))
    return panels
