"""What is said of a model: the data, what was believed of labels, estimates with intervals, alarms and limits."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from wcll import __version__
from wcll.labels.diagnostics import POINTS, label_worth
from wcll.owndata.learning import Learnt
from wcll.owndata.preprocessing import Held
from wcll.owndata.sources import Samples, counts_of

LIMITS = (
    "No true label was used: every figure is an estimate from complementary labels, and rests on the Q above.",
    "Figures are for samples like those of training; where classes are more or less frequent, they are others.",
    'A figure that "can\'t be checked" is true if Q is; labels can contradict a Q, but never confirm one.',
    "Digests in this folder show damage, not forgery: load models only from people you trust.",
)
UNSURE = 12  #: samples that are named
FEW = 1e-12  #: of a share, below which it is none


def card_of(samples: Samples, learnt: Learnt, command: str) -> dict[str, Any]:
    """Everything for JSON; the page and the Markdown say the same."""
    model = learnt.own.classifier
    estimate, selection = getattr(model, "estimate_", None), getattr(model, "selection_", None)
    return {
        "made": {
            "command": command,
            "wcll": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "seconds": round(learnt.seconds, 1),
            "resumed_after_epoch": learnt.resumed_at,
            "processes": learnt.processes,
        },
        "data": data_summary(samples, learnt),
        "belief": str(model.belief_),
        "transition": model.transition_.round(6).tolist(),
        "classes": class_table(samples, learnt),
        "training": {
            "loss": model.loss if isinstance(model.loss, str) else "own",
            "model": model.fitted_.model,
            "chosen": None if selection is None else next(row for row in selection if row["chosen"]),
            "candidates": selection,
            "epochs": model.n_iter_,
            "temperature": model.temperature_,
            "last_loss": model.history_[-1]["loss"],
            "report": model.report().splitlines(),
        },
        "estimate": None if estimate is None else estimate.to_dict(),
        "confusion": None if estimate is None or estimate.warning else estimate.joint.round(6).tolist(),
        "notes": list(learnt.notes),
        "alarms": alarms_of(learnt),
        "limits": list(LIMITS),
        "label_next": label_next(learnt),
        "least_sure": least_sure(samples, learnt),
    }


def alarms_of(learnt: Learnt) -> list[str]:
    """What speaks against the labels, or against what was assumed of them."""
    lines = list(learnt.alarms)
    estimate = getattr(learnt.own.classifier, "estimate_", None)
    if estimate is not None and estimate.warning is not None and estimate.warning not in lines:
        lines.append(estimate.warning)
    return lines


def data_summary(samples: Samples, learnt: Learnt) -> dict[str, Any]:
    """How many samples, features and labels there are."""
    counts, kinds = samples.counts or counts_of(samples), learnt.own.preprocessing.kinds
    found: dict[str, Any] = {
        "source": samples.path.name if samples.kind != "images" else samples.path.parent.name,
        "kind": samples.kind,
        "samples": counts.n,
        "sampled": None if samples.counts is None else len(samples),
        "labels": counts.named.total(),
        "labels_per_sample": [counts.least, counts.most],
        "groups": None if samples.groups is None else len(set(samples.groups)),
        "shape": list(learnt.x.shape[1:]),
        "stamp": samples.stamp,
    }
    if kinds and isinstance(samples.features, dict):
        found["columns"] = [_column(name, kind, samples) for name, kind in kinds.items()]
    return found


def _column(name: str, kind: str, samples: Samples) -> dict[str, Any]:
    assert isinstance(samples.features, dict)
    if samples.counts is None:
        held = Held.of(samples.features[name], kind)
        missing, different = len(samples) - held.there, held.different
    else:
        missing, different = samples.counts.columns[name]
    found = {"name": name, "kind": kind, "missing": missing}
    return {**found, "categories": different} if kind == "text" else found


def class_table(samples: Samples, learnt: Learnt) -> list[dict[str, Any]]:
    """By class: how often it is named, its share by label counts, by the model, and among its predictions."""
    model = learnt.own.classifier
    counts = (samples.counts or counts_of(samples)).named
    belief, by_model = model.belief_, getattr(model, "prior_", None)
    possible = belief.prior is not None and np.all((belief.prior >= 0) & (belief.prior <= 1))  # else Q is wrong
    by_counts = belief.prior if belief.prior_source == "estimated" and possible else None  # a family may assume it
    predicted = Counter(map(str, model.predict(learnt.x)))
    return [
        {
            "name": str(name),
            "named": counts[str(name)],
            "share_by_counts": None if by_counts is None else round(float(by_counts[k]), 4),
            "share_by_model": None if by_model is None else round(float(by_model[k]), 4),
            "predicted": round(predicted[str(name)] / len(learnt.x), 4),
        }
        for k, name in enumerate(model.classes_)
    ]


def label_next(learnt: Learnt) -> list[str]:
    """What further labels would be good for."""
    model = learnt.own.classifier
    lines = []
    estimate = getattr(model, "estimate_", None)
    few = (
        [] if estimate is None else [name for name, one in estimate.figures.items() if one.verdict == "too few labels"]
    )
    if few:
        lines.append(f"Too few labels to judge: {', '.join(few[:6])}{' and others' if len(few) > 6 else ''}.")
    prior = getattr(model, "prior_", None)
    if prior is not None and (prior > FEW).all():
        worth = label_worth(model.transition_, prior)
        for one in worth.judging[1:2]:
            lines.append(
                f"A model that is right in {100 * one.accuracy:.0f} % is judged to ± {100 * POINTS:.0f} points by "
                f"about {one.labels} complementary labels, or {one.true_labels} true ones, that were not trained on."
            )
    if estimate is not None and not model.belief_.known:
        lines.append(
            "Samples with a true and a complementary label would measure Q (transition_from_pairs): 300 are enough for "
            "three classes, and often too few for six or more."
        )
    lines.append("Among samples, those that the model is least sure of tell it most: they are listed.")
    return lines


def least_sure(samples: Samples, learnt: Learnt) -> list[dict[str, Any]]:
    """Samples whose two likeliest classes are nearest to each other: a label that rules out one of these decides."""
    model = learnt.own.classifier
    if not hasattr(model, "predict_proba"):
        return []
    chances = model.predict_proba(learnt.x)
    order = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    pairs = np.take_along_axis(chances, order, axis=1)
    return [
        {
            "index": int(i),
            "name": samples.names[i],
            "classes": [str(model.classes_[k]) for k in order[i]],
            "chances": pairs[i].round(4).tolist(),
        }
        for i in np.argsort(pairs[:, 0] - pairs[:, 1], kind="stable")[:UNSURE]
    ]


def markdown(card: dict[str, Any], literal: Any) -> str:
    """The card as Markdown; ``literal`` makes text mean nothing to it."""
    data = card["data"]
    lines = [f"# Model card: {literal(str(data['source']))}", "", *map(literal, _data_lines(data)), ""]
    if card["alarms"]:
        lines += ["## Alarms", "", *(f"- {literal(line)}" for line in card["alarms"]), ""]
    lines += ["## What is believed of labels", "", f"{literal(card['belief'])}.", ""]
    heads = ("class", "named", "share by counts", "share by model", "predicted")
    rows = [
        (
            literal(one["name"]),
            str(one["named"]),
            *(_percent(one[k]) for k in ("share_by_counts", "share_by_model", "predicted")),
        )
        for one in card["classes"]
    ]
    lines += [*_table(heads, rows), "", "## Training", ""]
    training = card["training"]
    lines += [literal(line) + "  " for line in training["report"]]
    lines += ["", "## How good it is", ""]
    if card["estimate"] is None:
        lines += ["Not estimated: `wcll evaluate` does it with labels that were not trained on.", ""]
    else:
        figures = card["estimate"]["figures"]
        rows = [
            (literal(name), *(_percent(one[k]) for k in ("value", "low", "high")), one["verdict"])
            for name, one in figures.items()
        ]
        lines += [literal(f"From {card['estimate']['labels']} labels that models had not seen; 95 % intervals."), ""]
        lines += [*_table(("figure", "estimate", "from", "to", "verdict"), rows), ""]
    for title, name in (("Notes", "notes"), ("Limits", "limits"), ("What to label next", "label_next")):
        lines += [f"## {title}", "", *(f"- {literal(line)}" for line in card[name] or ["none"]), ""]
    rows = [
        (
            literal(one["name"]),
            *(f"{literal(k)} ({_percent(p)})" for k, p in zip(one["classes"], one["chances"], strict=True)),
        )
        for one in card["least_sure"]
    ]
    lines += [*_table(("sample", "likeliest", "next"), rows), ""] if rows else []
    made = card["made"]
    lines += ["## How this was made", "", f"- command: {literal(made['command'])}"]
    lines += [f"- {name}: {literal(str(made[name]))}" for name in made if name != "command"]
    return "\n".join(lines) + "\n"


def _data_lines(data: dict[str, Any]) -> list[str]:
    several = data["labels_per_sample"]
    each = str(several[0]) if several[0] == several[1] else f"{several[0]} to {several[1]}"
    lines = [f"{data['samples']} samples with {data['labels']} complementary labels ({each} a sample)."]
    if columns := data.get("columns"):
        words = {"number": "of numbers", "date": "of dates", "text": "of categories"}
        parts = [f"{n} {words[kind]}" for kind in words if (n := sum(one["kind"] == kind for one in columns))]
        missing = sum(one["missing"] for one in columns)
        lines.append(f"Columns: {', '.join(parts)}; {missing} missing values.")
        lines.append(f"{features_in_words(data)}.")
    else:
        lines.append(f"Each of shape {tuple(data['shape'])}.")
    if (sampled := data["sampled"]) is not None:
        lines.append(
            f"Samples were streamed: {sampled} of them, drawn by the seed, stand for all in choices, in estimates, "
            "in alarms, in shares by the model and in predictions. Counts of labels and columns are of all; epochs of "
            "candidates are of those, epochs of the training of all."
        )
    if data["groups"] is not None:
        lines.append(f"{data['groups']} groups, each on one side of every split.")
    return lines


def features_in_words(data: dict[str, Any], most: int | None = None) -> str:
    """Name the columns that are used as features, at most so many of them."""
    names = [one["name"] for one in data["columns"]]
    more = f" and {len(names) - most} more" if most is not None and len(names) > most else ""
    return f"Features: {', '.join(names[:most])}{more}"


def data_lines(card: dict[str, Any]) -> list[str]:
    """The data in words."""
    return _data_lines(card["data"])


def _percent(share: float | None) -> str:
    return "-" if share is None or share != share else f"{100 * share:.1f} %"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
