"""``wcll predict``: classes of new samples, by a model that ``wcll train`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wcll._files import check_output, replacing
from wcll.cli.messages import show
from wcll.cli.output import ForceOption
from wcll.cli.own_options import (
    DataArgument,
    ItemOption,
    ModelArgument,
    SkipOption,
    UnknownOption,
    tell_notes,
)
from wcll.exceptions import InputError
from wcll.owndata.folder import OwnModel
from wcll.owndata.sources import Roles
from wcll.owndata.using import predictions


def predict(
    model: ModelArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .csv file that predictions go to.")],
    item: ItemOption = None,
    unknown: UnknownOption = "error",
    skip_bad: SkipOption = False,
    force: ForceOption = False,
) -> None:
    """Write the likeliest class of every sample, and how likely each class is."""
    check_output(out, "--out", model, data, force=force)
    if out.suffix != ".csv":
        raise InputError("--out", "a .csv file", out.name)
    own = OwnModel.load(model)
    reading = own.reading(labels=False, skip_bad=skip_bad)
    n, notes = 0, tuple[str, ...]()
    with replacing(out, "--out") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        for part in predictions(own, data, Roles(item=item), reading, ignore_unknown=unknown == "ignore"):
            file.writelines(part.lines(heads=not n))
            n, notes = n + len(part.samples), part.samples.notes
    tell_notes(notes)
    show(f"{n} predictions: {out}")
