"""One self-contained page about the health of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wcll.labels.diagnostics import LabelHealth
from wcll.report.figures import share_panel, transition_panel
from wcll.report.label_sections import sections
from wcll.report.render import render

MOST_DRAWN_CLASSES = 30  #: beyond, bars and matrices are too small to read


def label_page(health: LabelHealth, source: str, made: Sequence[tuple[str, str]]) -> str:
    """The page: figures of label shares and of Q, then every section; ``made`` says how it came about.

    Pages are passed on, so that annotators have numbers there instead of names.
    """
    title = f"Label health: {source}"
    about = "What complementary labels (“this is NOT a …”) say of themselves. No true label was used."
    if health.annotators is not None:
        about += " Annotators have numbers here; what the command prints has their names, in the same order."
    found = sections(_without_names(health))
    return render("labels.html", title=title, about=about, panels=_panels(health), sections=found, made=made)


def _without_names(health: LabelHealth) -> LabelHealth:
    if health.annotators is None:
        return health
    numbered = tuple(replace(one, annotator=f"annotator {i}") for i, one in enumerate(health.annotators, 1))
    return replace(health, annotators=numbered)


def _panels(health: LabelHealth) -> list[tuple[str, str, str]]:
    """Figures with their titles and captions."""
    if len(health.classes) > MOST_DRAWN_CLASSES:
        return []
    names, shares = health.classes, health.shares.value
    limit = "The dashed line is the most that uniform labels allow; classes beyond it are marked."
    panels = [("Share of each label", limit, share_panel("share of each label", shares.tolist(), names, health.limit))]
    if health.repeated is not None:
        told = "told by the labels" if health.repeated.found.identified else "not told by the labels alone"
        caption = f"Rows are true classes, columns labels in the same order; darker is more. It is {told}."
        panels.append(("Q, estimated", caption, transition_panel("Q", health.repeated.found.transition, names)))
    return panels
