"""``wcll evaluate``: how good a model is, from labels that it was not trained on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from wcll.cli.output import console, grid
from wcll.cli.own_options import (
    DataArgument,
    ItemOption,
    LabelsOption,
    ModelArgument,
    NotLabelOption,
    SkipOption,
    UnknownOption,
    tell_notes,
)
from wcll.exceptions import InputError
from wcll.owndata.folder import OwnModel
from wcll.owndata.sources import Roles, Samples, read_samples
from wcll.owndata.using import Evaluated
from wcll.owndata.using import evaluate as evaluated

ENOUGH = "give it a part: thousands of rows tell as much as can be told"  #: of data that do not fit into memory


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    not_label: NotLabelOption = None,
    true_label: Annotated[
        str | None, typer.Option(help="Column of true labels: for this evaluation, and for nothing else.")
    ] = None,
    item: ItemOption = None,
    labels: LabelsOption = None,
    unknown: UnknownOption = "error",
    skip_bad: SkipOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Estimate accuracy from complementary labels, with intervals and verdicts; or measure it with true ones."""
    own = OwnModel.load(model)
    samples = _read(own, data, Roles(tuple(not_label or ()), item, None, true_label), skip_bad, labels)
    found = evaluated(own, samples, ignore_unknown=unknown == "ignore")
    tell_notes(found.notes)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
        return
    _print_evaluation(found)


def _read(own: OwnModel, data: DataArgument, roles: Roles, skip_bad: bool, labels: Path | None) -> Samples:
    """Samples with labels: complementary ones in the columns that training had, unless others are named.

    Rows of one item are one sample, as labels of one item are one witness.
    """
    if roles.true_label is not None and roles.true_label in own.preprocessing.kinds:
        raise InputError("--true-label", "a column that is no feature of the model", repr(roles.true_label))
    needed = bool(roles.not_label or labels) or roles.true_label is None
    reading = own.reading(labels=needed, optional=needed, skip_bad=skip_bad)
    reading = replace(reading, labels_in=labels, usual_item=own.roles.item, too_large=ENOUGH)
    if data.suffix != ".npz":
        usual = own.roles.not_label if needed and labels is None else ()
        classes = tuple(map(str, own.classifier.classes_))
        roles = replace(roles, not_label=roles.not_label or usual, classes=classes)
    return read_samples(data, roles, reading)


def _print_evaluation(found: Evaluated) -> None:
    screen = console()
    if found.complementary is not None:
        screen.print(str(found.complementary), soft_wrap=True)
    true = found.confusion
    if true is None:
        return
    screen.print(f"Measured with {int(true.counts.sum())} true labels.", soft_wrap=True)
    figures = {"accuracy": true.accuracy, "balanced accuracy": true.balanced_accuracy, "macro F1": true.macro_f1}
    figures |= {f"recall of {name}": r for name, r in zip(found.classes, true.recall.tolist(), strict=True)}
    rows = [(name, "-" if value != value else f"{value:.3f}") for name, value in figures.items()]
    screen.print(grid(("figure", "measured"), rows, right=("measured",)))
