"""One self-contained page about a model that was chosen without true labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wcll import __version__
from wcll.estimator import ComplementaryClassifier
from wcll.evaluation import LabelFreeConfusion
from wcll.report.figures import share_panel, transition_panel
from wcll.report.label_page import MOST_DRAWN_CLASSES
from wcll.report.label_sections import MOST_ROWS, Section, percent
from wcll.report.render import render

ABOUT = "A classifier that was learnt from complementary labels (“this is NOT a …”). No true label was used."


def model_page(model: ComplementaryClassifier) -> str:
    """What :meth:`ComplementaryClassifier.report` says, with all candidates, figures by class and what they rest on.

    >>> from sklearn.datasets import make_blobs
    >>> from wcll import ComplementaryClassifier
    >>> from wcll.labels import make_complementary
    >>> X, y = make_blobs(300, centers=3, random_state=0)
    >>> model = ComplementaryClassifier(budget=100, random_state=0).fit(X, make_complementary(y, random_state=0))
    >>> page = model_page(model)                                 # Path("report.html").write_text(page)
    """
    made = [("versions", f"wcll {__version__}, numpy {np.__version__}")]
    title, panels, sections = "Report of a model", label_panels(model), list(_sections(model))
    return render("labels.html", title=title, about=ABOUT, panels=panels, sections=sections, made=made)


def label_panels(model: ComplementaryClassifier) -> list[tuple[str, str, str]]:
    """Figures with their titles and captions."""
    names, totals = [str(name) for name in model.classes_], model.label_totals_
    if len(names) > MOST_DRAWN_CLASSES:
        return []
    limit = "The dashed line is the most that uniform labels allow; classes beyond it are marked."
    shares = (totals / totals.sum()).tolist()
    caption = "Rows are true classes, columns labels in the same order; darker is more."
    return [
        ("Share of each label", limit, share_panel("share of each label", shares, names, 1 / (len(names) - 1))),
        ("Q, as it was believed", caption, transition_panel("Q", model.transition_, names)),
    ]


def _sections(model: ComplementaryClassifier) -> Iterator[Section]:
    yield chosen_section(model)
    yield quality_section(model)


def chosen_section(model: ComplementaryClassifier) -> Section:
    """All candidates, the chosen one marked, and why it is; or what was trained, if nothing was selected."""
    if not hasattr(model, "selection_"):
        return Section("What was trained", tuple(model.report().splitlines()))
    heads = ("model", "learning rate", "epochs", "Q", "neighbors", "log-likelihood", "samples")
    rows = tuple(
        (
            f"{row['model']}{', chosen' if row['chosen'] else ''}",
            f"{row['lr']:g}",
            str(row["epoch"]),
            str(row["transition"]),
            str(row.get("neighbors", 1)),
            f"{row['score']:.4f}",
            str(row["samples"]),
        )
        for row in model.selection_
    )
    return Section("What was chosen, and why", tuple(model.report().splitlines()), heads, rows, ("model", "Q"))


def quality_section(model: ComplementaryClassifier) -> Section:
    """Figures with intervals and verdicts, if they were estimated."""
    estimate = getattr(model, "estimate_", None)
    if estimate is None:
        line = "Not estimated here: evaluate(X, y) does it with labels that were not trained on, one a sample."
        return Section("How good it is", (line,))
    return _estimated(estimate)


def _estimated(estimate: LabelFreeConfusion) -> Section:
    about = f"From {estimate.n} complementary labels of samples that models had not seen; 95 % intervals."
    checked = f"Q {estimate.check}." if estimate.warning is None else f"{estimate.warning}."
    rows = [(name, *map(percent, one.shown), one.verdict) for name, one in estimate.figures.items()]
    heads = ("figure", "estimate", "from", "to", "verdict")
    return Section("How good it is", (about, checked), heads, tuple(rows[:MOST_ROWS]), ("figure", "verdict"))
