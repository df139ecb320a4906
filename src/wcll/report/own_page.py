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
from wcll.report.figures import line_panel, share_panel, transition_panel
from wcll.report.label_page import MOST_DRAWN_CLASSES
from wcll.report.label_sections import MOST_ROWS, Section, percent
from wcll.report.model_page import chosen_section, label_panels, quality_section
from wcll.report.render import render

ABOUT = "A classifier that was learnt from complementary labels (“this is NOT a …”). No true label was used."
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
