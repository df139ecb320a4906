"""HTML reports of a classifier, and of a model that was trained on a user's own data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll import __version__
from wcll.estimator import ComplementaryClassifier
from wcll.evaluation import LabelFreeConfusion
from wcll.owndata.card import data_lines
from wcll.owndata.learning import Learnt
from wcll.owndata.sources import Samples
from wcll.report.label_report import MOST_DRAWN_CLASSES, MOST_ROWS, Section, percent
from wcll.report.render import line_panel, render, share_panel, transition_panel
from wcll.report.suite_report import png

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
    title, panels, sections = "Report of a model", label_panels(model), [chosen_section(model), quality_section(model)]
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


THUMBNAIL = 96  #: pixels a side, at most

Panel = tuple[str, str, str]


@dataclass(frozen=True)
class Thumbnail:
    """An image that the model is not sure of."""

    pixels: NDArray[np.uint8]  #: (height, width) or (height, width, 3)
    name: str
    words: str

    @property
    def source(self) -> str:
        """The image itself, as pages hold it."""
        return f"data:image/png;base64,{b64encode(png(self.pixels)).decode()}"


def own_page(samples: Samples, learnt: Learnt, card: dict[str, Any]) -> str:
    """What the model card says, with figures, and the samples that the model is least sure of."""
    made = [("command", card["made"]["command"])]
    made += [(name, str(value)) for name, value in card["made"].items() if name != "command"]
    return render(
        "own.html",
        title=f"Model of {card['data']['source']}",
        about=_about(learnt),
        panels=_panels(learnt, streamed=card["data"]["sampled"] is not None),
        sections=list(_own_sections(learnt, card)),
        made=made,
        examples=_thumbnails(samples, card),
    )


def _about(learnt: Learnt) -> str:
    """What it is, and how good it seems."""
    if (estimate := getattr(learnt.own.classifier, "estimate_", None)) is None:
        return ABOUT
    if estimate.warning is not None:
        return f"{ABOUT} Its accuracy cannot be estimated: {estimate.warning}."
    figure = estimate.accuracy
    seems = f"{percent(figure.value)} ({percent(figure.low)} to {percent(figure.high)}): {figure.verdict}"
    return f"{ABOUT} Its accuracy, from labels that models had not seen, is estimated as {seems}."


def _panels(learnt: Learnt, *, streamed: bool) -> list[Panel]:
    model = learnt.own.classifier
    names = [str(name) for name in model.classes_]
    panels: list[Panel] = []
    if len(names) <= MOST_DRAWN_CLASSES:
        if (prior := getattr(model, "prior_", None)) is not None:
            caption = "As the model tells it of the training samples; the dashed line is an equal share."
            figure = share_panel("class balance", prior.tolist(), names, 1 / len(names), marked=False)
            panels.append(("Class balance, estimated", caption, figure))
        panels += label_panels(model)
        estimate = getattr(model, "estimate_", None)
        if estimate is not None and estimate.warning is None:
            joint = estimate.joint.clip(0)
            shares = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-12)
            caption = "Rows are true classes, columns predictions, of labels that models had not seen; true if Q is."
            panels.append(("Confusion, estimated", caption, transition_panel("confusion", shares, names, "predicted")))
    losses = [float(row["loss"]) for row in model.history_]
    caption, warm_up = "Of the training samples.", int(getattr(model, "chosen_", {}).get("warm_up", 0))
    if warm_up:
        when = f"In the first {warm_up} epochs"
        if streamed:
            when = f"In its first steps, as many as {warm_up} epochs of those that stand for all have,"
        caption += f" {when} a term is part of it that keeps classes from being given up."
    panels.append(("Loss by epoch", caption, line_panel("loss", losses)))
    return panels


def _own_sections(learnt: Learnt, card: dict[str, Any]) -> Iterator[Section]:
    model = learnt.own.classifier
    if card["alarms"]:
        yield Section("Alarms", tuple(card["alarms"]))
    yield Section("Data", tuple(data_lines(card)), *_classes(card), ("class",))
    yield chosen_section(model)
    yield quality_section(model)
    yield Section("Notes", tuple(card["notes"]) or ("None.",))
    heads = ("sample", "is it NOT", "or NOT")
    rows = [(one["name"], *_guesses(one)) for one in card["least_sure"]]
    yield Section("What to label next", tuple(card["label_next"]), heads, tuple(rows), heads)
    yield Section("Limits", tuple(card["limits"]))


def _guesses(one: dict[str, Any]) -> list[str]:
    """The two likeliest classes of a sample, with their chances."""
    chances = [percent(chance).replace(" ", "\N{NO-BREAK SPACE}") for chance in one["chances"]]
    return [f"{name} ({chance})" for name, chance in zip(one["classes"], chances, strict=True)]


def _classes(card: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    heads = ("class", "labels that name it", "share by label counts", "share by the model", "predicted")
    keys = ("share_by_counts", "share_by_model", "predicted")
    rows = [
        (one["name"], str(one["named"]), *("-" if one[key] is None else percent(one[key]) for key in keys))
        for one in card["classes"]
    ]
    return heads, tuple(rows[:MOST_ROWS])


def _thumbnails(samples: Samples, card: dict[str, Any]) -> list[Thumbnail]:
    """Images of bytes, small enough for a page; none of other data."""
    images = samples.features
    if not isinstance(images, np.ndarray) or images.ndim != 4 or images.dtype != np.uint8:
        return []
    if images.shape[1] not in (1, 3):
        return []
    found = []
    for one in card["least_sure"]:
        step = max(-(-max(images.shape[2:]) // THUMBNAIL), 1)
        pixels = np.ascontiguousarray(images[one["index"]].transpose(1, 2, 0)[::step, ::step])
        plain = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
        found.append(Thumbnail(plain, one["name"], " or ".join(_guesses(one))))
    return found
