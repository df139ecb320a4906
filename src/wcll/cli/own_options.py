"""What ``wcll train``, ``predict`` and ``evaluate`` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from wcll.cli.messages import tell
from wcll.exceptions import InputError

DATA = "A table (.csv, .parquet), arrays (.npz), or a folder of images with manifest.csv (path, not_label[, group])."

DataArgument = Annotated[Path, typer.Argument(help=DATA)]
ModelArgument = Annotated[Path, typer.Argument(help="The folder that wcll train wrote.")]
NotLabelOption = Annotated[
    list[str] | None,
    typer.Option(help="Column with a class that the row is NOT (several as cat|dog); may come again."),
]
ItemOption = Annotated[
    str | None, typer.Option(help="Column that says which sample a row is of, if several are of one.")
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(help="Another table that has the labels: columns item and not_label, as labels import makes."),
]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out images that cannot be decoded; they are counted.")
]
Unknown = Literal["error", "ignore"]
UnknownOption = Annotated[
    Unknown, typer.Option("--unknown-category", help="What a category is that training did not have.")
]


def class_list(text: str | None) -> tuple[str, ...] | None:
    """Names of classes, separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise InputError("--classes", "at least two names, each once, separated by commas", repr(text))
    return names


def tell_notes(notes: tuple[str, ...]) -> None:
    """A line each, on standard error."""
    for line in notes:
        tell(f"wcll: note: {line}")
