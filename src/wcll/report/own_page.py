"""One self-contained page about a model that was trained on a user's own data."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll.owndata.card import data_lines
from wcll.owndata.learning import Learnt
from wcll.owndata.sources import Samples
from wcll.report.demo_page import png
from wcll.report.figures import confusion_panel, line_panel, share_panel
from wcll.report.label_page import MOST_CLASSES
from wcll.report.label_sections import MOST_ROWS, Section, percent
from wcll.report.model_page import chosen_section, label_panels, quality_section
from wcll.report.render import render

ABOUT = "A classifier that was learnt from complementary labels (“this is NOT a …”). No true label was used."
UNSURE = 12  #: samples that are shown
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
    unsure = _unsure(samples, learnt)
    made = [("command", card["made"]["command"])]
    made += [(name, str(value)) for name, value in card["made"].items() if name != "command"]
    return render(
        "own.html",
        title=f"Model of {card['data']['source']}",
        about=ABOUT,
        panels=_panels(learnt),
        sections=list(_sections(learnt, card, unsure)),
        made=made,
        examples=_thumbnails(samples, unsure),
    )


def _panels(learnt: Learnt) -> list[Panel]:
    model = learnt.own.classifier
    names = [str(name) for name in model.classes_]
    panels: list[Panel] = []
    if len(names) <= MOST_CLASSES:
        if (prior := getattr(model, "prior_", None)) is not None:
            caption = "As the model tells it of the training samples; the dashed line is an equal share."
            figure = share_panel("class balance", prior.tolist(), names, 1 / len(names))
            panels.append(("Class balance, estimated", caption, figure))
        panels += label_panels(model)
        if (estimate := getattr(model, "estimate_", None)) is not None:
            joint = estimate.joint.clip(0)
            shares = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-12)
            caption = "Rows are true classes, columns predictions, of labels that models had not seen; true if Q is."
            panels.append(("Confusion, estimated", caption, confusion_panel("estimated", shares, names)))
    losses = [float(row["loss"]) for row in model.history_]
    panels.append(("Loss by epoch", "Of the training samples.", line_panel("loss", losses)))
    return panels


def _sections(
    learnt: Learnt, card: dict[str, Any], unsure: list[tuple[int, str, tuple[str, ...]]]
) -> Iterator[Section]:
    model = learnt.own.classifier
    yield Section("Data", tuple(data_lines(card)), *_classes(card), ("class",))
    if hasattr(model, "selection_"):
        yield chosen_section(model)
    yield quality_section(model)
    for title, name in (("Alarms", "alarms"), ("Notes", "notes")):
        yield Section(title, tuple(card[name]) or ("None.",))
    heads = ("sample", "likeliest", "chance", "next", "chance of that", "say whether it is")
    rows = tuple((name, *cells) for _, name, cells in unsure)
    left = ("sample", "likeliest", "next", "say whether it is")
    yield Section("What to label next", tuple(card["label_next"]), heads, rows, left)
    yield Section("Limits", tuple(card["limits"]))


def _classes(card: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    heads = ("class", "labels that name it", "share by label counts", "share by the model", "predicted")
    keys = ("share_by_counts", "share_by_model", "predicted")
    rows = [
        (one["name"], str(one["named"]), *("-" if one[key] is None else percent(one[key]) for key in keys))
        for one in card["classes"]
    ]
    return heads, tuple(rows[:MOST_ROWS])


def _unsure(samples: Samples, learnt: Learnt) -> list[tuple[int, str, tuple[str, ...]]]:
    """Samples whose two likeliest classes are nearest to each other, and which label would decide."""
    model = learnt.own.classifier
    if not hasattr(model, "predict_proba"):
        return []
    chances = model.predict_proba(learnt.x)
    order = np.argsort(chances, axis=1)[:, ::-1][:, :2]
    pairs = np.take_along_axis(chances, order, axis=1)
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for i in np.argsort(pairs[:, 0] - pairs[:, 1], kind="stable")[:UNSURE]:
        first, second = (str(model.classes_[k]) for k in order[i])
        cells = (first, percent(pairs[i, 0]), second, percent(pairs[i, 1]), f"not {first}, or not {second}")
        found.append((int(i), samples.names[i], cells))
    return found


def _thumbnails(samples: Samples, unsure: list[tuple[int, str, tuple[str, ...]]]) -> list[Thumbnail]:
    """Images of bytes, small enough for a page; none of other data."""
    images = samples.features
    if not isinstance(images, np.ndarray) or images.ndim != 4 or images.dtype != np.uint8:
        return []
    if images.shape[1] not in (1, 3):
        return []
    found = []
    for i, name, cells in unsure:
        step = max(-(-max(images.shape[2:]) // THUMBNAIL), 1)
        pixels = np.ascontiguousarray(images[i].transpose(1, 2, 0)[::step, ::step])
        words = f"{cells[0]} ({cells[1]}) or {cells[2]} ({cells[3]})"
        found.append(Thumbnail(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels, name, words))
    return found
