"""Training on a user's own samples: the estimator with what the command line gives, watched and kept on the way."""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wcll import __version__
from wcll._validation import choice, positive
from wcll.estimator import BATCH_SIZE, ComplementaryClassifier
from wcll.exceptions import InputError
from wcll.labels import FAMILIES
from wcll.losses import LOSSES
from wcll.losses.registry import AUTO
from wcll.models import MODELS
from wcll.owndata.folder import OwnModel
from wcll.owndata.mapped import ImageStream
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import Roles, Samples, labels_of
from wcll.owndata.streaming import TableStream
from wcll.owndata.unfinished import Unfinished
from wcll.persistence import plain_setting
from wcll.training import dtype_and_device
from wcll.training.distributed import Ranks, ranks
from wcll.training.recipe import RECIPES

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What a user may say of the training; the rest is chosen."""

    loss: str = "auto"
    model: str | None = None
    transition: Any = None  #: a name of a family, or a matrix
    lr: float | None = None
    epochs: int | None = None
    budget: int | None = None
    max_time: float | None = None
    seed: int = 0
    device: str = "auto"
    training: str | None = None  #: "plain" or "strong"
    batch_size: int = BATCH_SIZE

    def classifier(self, classes: tuple[str, ...]) -> ComplementaryClassifier:
        """A new one."""
        return ComplementaryClassifier(
            self.loss,
            model=self.model,
            classes=list(classes),
            transition=self.transition,
            lr=self.lr,
            max_epochs=self.epochs,
            budget=self.budget,
            max_time=self.max_time,
            random_state=self.seed,
            device=self.device,
            training=self.training,
            batch_size=self.batch_size,
        )


@dataclass(frozen=True, eq=False)
class Learnt:
    """A model, the numbers that it was fitted to, and what is to be said of how it came about."""

    own: OwnModel
    x: NDArray[Any]
    notes: tuple[str, ...]  #: of the data
    alarms: tuple[str, ...]  #: of the labels
    seconds: float
    resumed_at: int = 0  #: the epoch, if it went on from one
    processes: int = 1  #: that trained together


def learn(
    samples: Samples,
    roles: Roles,
    settings: Settings,
    *,
    categories: tuple[str, ...] = (),
    size: tuple[int, int] | None = None,
    unfinished: Path | None = None,
    resume: bool = False,
    say: Say = lambda line: None,
    stream: TableStream | ImageStream | None = None,
) -> Learnt:
    """Fit preprocessing and classifier; with ``unfinished``, a folder, so that a killed training can go on.

    With a ``stream``, ``samples`` stand for all that it has, and all are learnt from.
    """
    start, classes = time.perf_counter(), samples.all_classes()
    if stream is None:
        preprocessing, x, notes = Preprocessing.fit(samples.features, categories)
    else:
        preprocessing, x, notes = stream.preprocessing, stream.x, list(stream.notes)
    new = settings.classifier(classes)
    key = _key(x, samples, classes, settings) + ("" if stream is None else stream.key)
    kept = None if unfinished is None else Unfinished(unfinished, key)
    model = kept.resumed(new) if kept is not None and resume else None
    at = 0 if model is None else model.n_iter_
    who = ranks()
    writes = who is None or who.number == 0
    if who is not None:
        _check_alike(who, key, at)
    if not at:
        say(f"{_many(samples)}, {len(classes)} classes; {_doing(settings)}")
    if kept is not None and writes:
        _announce(kept, resume, at, say)
    fitted = new if model is None else model
    fitted.callbacks = [kept] if kept is not None and writes else []
    with warnings.catch_warnings(record=True) as caught, _told_of_choices(say):
        warnings.simplefilter("always")
        if stream is None:
            groups = None if samples.groups is None else np.array(samples.groups)
            fitted.fit(x, labels_of(samples), groups=groups)
        else:
            fitted.fit_stream(stream)
    fitted.callbacks = new.callbacks = []
    if kept is not None and model is not None:
        fitted = kept.settle(fitted, new)
    colour = bool(x.ndim == 4 and x.shape[1] == 3) if samples.kind == "images" else None
    own = OwnModel(fitted, preprocessing, samples.kind, roles, colour, size, samples.stamp)
    alarms = (*samples.doubts, *dict.fromkeys(" ".join(str(one.message).split()) for one in caught))
    count = 1 if who is None else who.count
    return Learnt(own, x, (*samples.notes, *notes), alarms, time.perf_counter() - start, at, count)


def check_settings(settings: Settings) -> None:
    """What can be told wrong before any data are read."""
    if isinstance(settings.transition, str):
        choice("--transition", settings.transition, FAMILIES)
    if settings.loss != AUTO:
        choice("--loss", settings.loss, [AUTO, *(name for name, spec in LOSSES.items() if spec.labels != "ordinary")])
        for option, value in (("--budget", settings.budget), ("--max-time", settings.max_time)):
            if value is not None:
                raise InputError(option, "--loss auto beside it, which it limits", f"--loss {settings.loss}")
    if settings.model is not None:
        choice("--model", settings.model, MODELS)
    if settings.training is not None:
        choice("--training", settings.training, RECIPES)
    if settings.lr is not None:
        positive("--lr", settings.lr)
    dtype_and_device("float32", settings.device)


def _many(samples: Samples) -> str:
    counts = samples.counts
    return f"{len(samples)} samples" if counts is None else f"{counts.n} samples, of which {len(samples)} stand for all"


def _doing(settings: Settings) -> str:
    """What is to come, which may take minutes."""
    if settings.loss != AUTO:
        return f"fitting {settings.loss}"
    return "choosing by labels that models have not seen" + ("" if settings.max_time else " (--max-time 60s limits it)")


class _Saying(logging.Handler):
    """Says what is logged."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.INFO)
        self.say = say

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self.say(record.getMessage())


@contextmanager
def _told_of_choices(say: Say) -> Iterator[None]:
    """Within it, what the classifier tells of its choices is said, too."""
    handler, log = _Saying(say), logging.getLogger("wcll")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


def _announce(kept: Unfinished, resume: bool, at: int, say: Say) -> None:
    if at:
        say(f"going on after epoch {at} of {kept.total}")
        return
    if resume:
        say("nothing was kept to go on from: training starts anew")
    kept.clear(keep_images=True)

    def begun(model: ComplementaryClassifier) -> None:
        chosen = f"{model.model} at a rate of {model.lr:g}" if isinstance(model.model, str) else "the model"
        say(f"fitting {chosen} for {model.max_epochs} epochs to all samples")

    kept.begun = begun


def _check_alike(who: Ranks, key: str, at: int) -> None:
    """Fail unless all processes have the same data and settings, and go on from the same epoch."""
    if not who.alike(key):
        remedy = "every machine needs the same files, options and version"
        raise InputError("data", "the same in all processes", "others", remedy)
    if not who.alike(str(at)):
        got = "one that only some of them see"
        raise InputError("--resume", "an unfinished training that all processes see", got, "share the folder of --out")


def _key(x: NDArray[Any], samples: Samples, classes: tuple[str, ...], settings: Settings) -> str:
    """Of all that a training depends on; it may go on elsewhere."""
    plain = {name: plain_setting(name, value) for name, value in asdict(settings).items() if name != "device"}
    hasher = blake2b(digest_size=16)
    hasher.update(json.dumps([__version__, plain, classes, samples.not_labels, samples.groups]).encode())
    hasher.update(f"{x.dtype.str} {x.shape}".encode())
    hasher.update(np.ascontiguousarray(x).data)
    return hasher.hexdigest()
