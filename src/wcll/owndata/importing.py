"""Labels in one plain table: item, not_label, annotator, offered, time and, if asked for, true_label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wcll._files import csv_line, replacing
from wcll._validation import extra
from wcll.exceptions import InputError
from wcll.owndata.annotation_tools import Label

SCHEMA = ("item", "not_label", "annotator", "offered", "time")
TRUE = "true_label"


def kept_labels(labels: Sequence[Label], true_labels: bool) -> list[Label]:
    """Those that are written: true ones only if they are asked for."""
    return [label for label in labels if label.not_label or (true_labels and label.true_label)]


def write_labels(path: Path, labels: Sequence[Label], true_labels: bool) -> None:
    """A ``.csv`` file, where several offered options are written ``cat|dog``, or a ``.parquet`` file with lists."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError("--out", "a .csv or .parquet file", path.name)
    names = (*SCHEMA, TRUE) if true_labels else SCHEMA
    with replacing(path, "--out") as draft:
        if path.suffix == ".csv":
            with draft.open("w", encoding="utf-8", newline="") as file:
                file.write(csv_line(names))
                file.writelines(csv_line(_cells(label, names)) for label in labels)
        else:
            _write_parquet(draft, labels, names)


def _cells(label: Label, names: Sequence[str]) -> list[str]:
    values = {**vars(label), "offered": "|".join(label.offered)}
    return [values[name] for name in names]


def _write_parquet(path: Path, labels: Sequence[Label], names: Sequence[str]) -> None:
    parquet = extra("pyarrow.parquet", "parquet")
    import pyarrow

    kinds = {name: pyarrow.list_(pyarrow.string()) if name == "offered" else pyarrow.string() for name in names}
    columns = {name: [getattr(label, name) or None for label in labels] for name in names}
    columns["offered"] = [list(label.offered) for label in labels]
    table = pyarrow.table(columns, schema=pyarrow.schema(list(kinds.items())))
    parquet.write_table(table, path)
