"""Predictions of a model in a folder, and what labels that it has not seen say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wcll._files import csv_line
from wcll._random import stream
from wcll._validation import FloatArray
from wcll.datasets.base import some_names
from wcll.evaluation import LabelFreeConfusion
from wcll.evaluation.metrics import Confusion
from wcll.exceptions import InputError
from wcll.owndata.folder import OwnModel
from wcll.owndata.parts import ParquetRows
from wcll.owndata.sources import Reading, Roles, Samples, image_parts, read_samples


@dataclass(frozen=True, eq=False)
class Predicted:
    """Classes of samples and, where the loss learns them, probabilities."""

    samples: Samples
    classes: tuple[str, ...]
    index: Any  #: of classes
    probabilities: FloatArray | None

    def lines(self, *, heads: bool = True) -> Iterator[str]:
        """As CSV: the sample, its class, how sure that is, and the probability of every class; with a header line."""
        chances = self.probabilities
        if heads:
            more = [] if chances is None else ["probability", *(f"p({name})" for name in self.classes)]
            yield csv_line([self.samples.named, "predicted", *more])
        for i, name in enumerate(self.samples.names):
            found = [name, self.classes[int(self.index[i])]]
            shares = [] if chances is None else [chances[i].max(), *chances[i]]
            yield csv_line([*found, *(f"{float(p):.6g}" for p in shares)])


def predict(own: OwnModel, samples: Samples, *, ignore_unknown: bool = False) -> Predicted:
    """The likeliest class of every sample."""
    model = own.classifier
    x = own.features(samples, ignore_unknown=ignore_unknown)
    classes = tuple(map(str, model.classes_))
    place = {name: k for k, name in enumerate(classes)}
    index = np.array([place[str(name)] for name in model.predict(x)], np.int64)
    chances = model.predict_proba(x) if hasattr(model, "predict_proba") else None
    return Predicted(samples, classes, index, chances)


def predictions(
    own: OwnModel, path: Path, roles: Roles, reading: Reading, *, ignore_unknown: bool = False
) -> Iterator[Predicted]:
    """The likeliest class of every sample of some data; of Parquet files and of images, a part at a time.

    Rows of one item may lie anywhere in a file, so that with ``roles.item`` all of it is read.
    """
    for samples in _parts(own, path, roles, reading):
        yield predict(own, samples, ignore_unknown=ignore_unknown)


def _parts(own: OwnModel, path: Path, roles: Roles, reading: Reading) -> Iterator[Samples]:
    if path.is_dir():
        yield from image_parts(path, roles, reading)
        return
    wanted = own.preprocessing.kinds
    if path.suffix == ".parquet" and roles.item is None:
        rows = ParquetRows.all_of(path)
        if there := [name for name in wanted if name in rows.names]:  # else what is wrong is said below
            for part in rows.only(there).read():
                names = [str(part.first + i) for i in range(len(part))]
                yield Samples("table", path, "row", names, part.table(there))
            return
    yield read_samples(path, roles, reading)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What labels say of predictions: complementary ones, true ones, or both."""

    complementary: LabelFreeConfusion | None
    confusion: Confusion | None
    classes: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        true = self.confusion
        return {
            "complementary": None if self.complementary is None else self.complementary.to_dict(),
            "true": None
            if true is None
            else {
                "labels": int(true.counts.sum()),
                "accuracy": true.accuracy,
                "balanced_accuracy": true.balanced_accuracy,
                "macro_f1": true.macro_f1,
                "recall": {name: _known(r) for name, r in zip(self.classes, true.recall.tolist(), strict=True)},
                "confusion": true.counts.tolist(),
            },
            "notes": list(self.notes),
        }


def _known(value: float) -> float | None:
    return None if value != value else value


def evaluate(own: OwnModel, samples: Samples, *, ignore_unknown: bool = False, seed: int = 0) -> Evaluated:
    """Judge predictions by the labels that samples have."""
    predicted = predict(own, samples, ignore_unknown=ignore_unknown)
    notes, found, confusion = list(samples.notes), None, None
    if samples.stamp and samples.stamp == own.stamp:
        notes.append("the model was trained on these very data: all figures are too good")
    if samples.not_labels is not None:
        labels = _one_each(samples, predicted.classes, seed, notes)
        x = own.features(samples, ignore_unknown=ignore_unknown)
        found = own.classifier.evaluate(x, labels)
    if samples.true is not None:
        confusion = _confusion(samples, predicted, notes)
    return Evaluated(found, confusion, predicted.classes, tuple(notes))


def _one_each(samples: Samples, classes: tuple[str, ...], seed: int, notes: list[str]) -> Any:
    """One label of every sample, of several one that is drawn: those of one sample are no independent witnesses."""
    assert samples.not_labels is not None
    for name, names in zip(samples.names, samples.not_labels, strict=True):
        if odd := [one for one in names if one not in classes]:
            got = f"{odd[0]!r} in {samples.named} {name}"
            raise InputError(str(samples.path), f"labels among the model's classes, {some_names(classes)}", got)
    if any(len(names) > 1 for names in samples.not_labels):
        notes.append("of samples with several labels one is drawn, as they are no independent witnesses")
    rng = stream(seed, "test", "evaluate")
    return np.array([names[int(rng.integers(len(names)))] for names in samples.not_labels])


def _confusion(samples: Samples, predicted: Predicted, notes: list[str]) -> Confusion:
    assert samples.true is not None
    place = {name: k for k, name in enumerate(predicted.classes)}
    if odd := [(one, name) for one, name in zip(samples.true, samples.names, strict=True) if one and one not in place]:
        got = f"{odd[0][0]!r} in {samples.named} {odd[0][1]}"
        raise InputError("--true-label", f"labels among the model's classes, {some_names(predicted.classes)}", got)
    known = np.array([bool(one) for one in samples.true])
    if not known.any():
        raise InputError("--true-label", "at least one true label", "none")
    if not known.all():
        notes.append(
            f"{int((~known).sum())} samples have no true label, and are left out of what is measured with them"
        )
    true = np.array([place[one] for one in samples.true if one])
    return Confusion.of(true, predicted.index[known], len(place))
