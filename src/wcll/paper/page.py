"""The report: every published number beside ours, a verdict on every claim, and how it all came about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wcll.paper.claims import judge_all
from wcll.paper.factors import LOOKS, factors_printed, nearest
from wcll.paper.findings import contradictions, findings
from wcll.paper.fitting import MARGIN
from wcll.paper.images import FACTORS
from wcll.paper.kept import Kept
from wcll.paper.named import NAMED
from wcll.paper.part import CLOSE, Beside, Part, mean_absolute
from wcll.paper.published import published, show_name
from wcll.paper.reproduction import LATER, TABLES, Reproduction
from wcll.paper.result_files import command_today
from wcll.paper.search import CHOSEN, GENERATORS, SIZES
from wcll.paper.verdicts import AGREEMENT, DEPENDS, FAILS, HOLDS, UNTOLD, Claim
from wcll.report.render import curves_panel, render, sheet
from wcll.report.result_tables import pick_all, told_notes

OVERFITTING = ("free", "nn", "wcll", "log")  #: rows of which accuracy is shown epoch by epoch
SHADES = (2.0, 5.0, 10.0)  #: points of difference at which the colour changes
VERDICTS = (HOLDS, FAILS, DEPENDS, UNTOLD)


def render_report(found: Reproduction, ending: str) -> str:
    """The report as one HTML page (``.html``) or as Markdown (``.md``)."""
    return render(f"paper{ending}", package="wcll.paper", **contents(found))


def figure_files(found: Reproduction) -> dict[str, str]:
    """The figures that Markdown shows, as SVG files by name."""
    names = [show_name(method) for method in found.parts["figure3"].methods]
    title = "Accuracy on the imbalanced class by epoch, mean and standard deviation"
    files = {"figure3.svg": sheet(title, all_panels(found), names)}
    if panels := overfitting_panels(found):
        files["overfitting.svg"] = sheet("Accuracy by epoch", panels, [show_name(method) for method in OVERFITTING])
    return files


def contents(found: Reproduction) -> dict[str, Any]:
    """All that a template shows."""
    claims, figure, fits = judge_all(found), found.parts["figure3"], found.fits
    shown = [found.parts[name] for name in (*TABLES, "bases", "sizes", *LATER) if name in found.parts]
    return {
        "title": "Does the paper hold?",
        "claims": claims,
        "verdicts": count_verdicts(claims),
        "findings": findings(found),
        "contradictions": contradictions(),
        "numbers": headline(found),
        "shade": _shade,
        "name": show_name,
        "command": command_today,
        "tables": [_about(part) for part in (*shown, *found.on_images)],
        "images": found.on_images,
        "factors": found.images.get(FACTORS),
        "looks": [table for tables in LOOKS.values() for table in tables],
        "factors_printed": factors_printed(),
        "factors_nearest": nearest(found.images[FACTORS]) if FACTORS in found.images else {},
        "costs": found.selection_costs,
        "fits": fits,
        "margin": MARGIN,
        "agreement": AGREEMENT,
        "named": NAMED,
        "run": found.named,
        "panels": all_panels(found),
        "overfitting": overfitting_panels(found),
        "overfitting_methods": OVERFITTING,
        "figure": figure,
        "search": found.search,
        "chosen": CHOSEN,
        "generators": GENERATORS,
        "sizes": SIZES,
        "made": [
            *found.parts.values(),
            *found.images.values(),
            *found.named.values(),
            *([found.search] if found.search else []),
        ],
    }


def count_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    """How many claims there are of each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def headline(found: Reproduction) -> dict[str, Any]:
    """How many numbers come back: WCLL's own, by which the protocol was chosen, and those that chose nothing."""
    fitted = [one for one in found.beside if one.printed.method == "wcll"]
    others = [one for one in found.beside if one.printed.method != "wcll"]
    return {
        "published": len(published()),
        "on_images": sum(len(some) for part in found.images.values() for some in part.all_beside.values()),
        "elsewhere": sum(one.dataset != "mnist" for one in published()),
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
    agreement = {column: [part.rank_agreement(how, column) for how in ("paper", "fair")] for column in part.columns}
    ranks = [(column, *both) for column, both in agreement.items() if not np.isnan(both).any()]  # run, and printed
    return {
        "part": part,
        "lines": lines,
        **_counts(beside),
        "mean_absolute": mean_absolute(beside),
        "ranks": ranks if len(beside) > 3 * len(ranks) else [],  # fewer have no order
        "marks": "".join(line.mark for line in lines),
        "told": [note.replace("wcll", "WCLL") for note in told_notes(part.suite, choice=True)],
        "theirs": max((one.printed.trials for one in beside), default=0),
    }


def _shade(beside: Beside | None) -> str:
    """A class for the size of a difference: near, off, far, or very far."""
    if beside is None:
        return ""
    return ("near", "off", "far", "wrong")[sum(abs(beside.difference) > limit for limit in SHADES)]


def overfitting_panels(found: Reproduction) -> list[tuple[str, str]]:
    """Test accuracy by epoch on CIFAR-10, of methods that estimate an unbiased risk and of others."""
    if (images := found.images.get("table2-cifar10")) is None:
        return []
    return _panels(images, images.printed_columns, OVERFITTING, accuracy=True)


def all_panels(found: Reproduction) -> list[tuple[str, str]]:
    """The curves of every setting of figure 3 with their titles: MNIST's, and those of CIFAR-10 that were run."""
    figure = found.parts["figure3"]
    panels = _panels(figure, figure.columns, figure.methods)
    if (images := found.images.get("table2-cifar10")) is not None:
        more = _panels(images, images.printed_columns, figure.methods)
        panels += [(f"CIFAR-10, {column}", panel) for column, panel in more]
    return panels


def _curve(run: Kept, accuracy: bool) -> tuple[float, ...]:
    return run.accuracies if accuracy else run.recalls


def _panels(
    part: Part, columns: Sequence[str], methods: Sequence[str], *, accuracy: bool = False
) -> list[tuple[str, str]]:
    """The curves of some settings, as far as there are runs."""
    picks = pick_all(part.suite, part.suite.tables[0], part.runs, range(part.trials))
    panels = []
    for column in columns:
        curves = {
            show_name(method): np.array([_curve(picked.run, accuracy) for picked in picks[method, column].values()])
            for method in methods
        }
        what = "accuracy" if accuracy else "accuracy on the imbalanced class"
        if all(curve.size for curve in curves.values()):
            panels.append((column, curves_panel(f"{column}: {what} by epoch", curves)))
    return panels
