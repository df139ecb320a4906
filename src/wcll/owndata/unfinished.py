"""A training under way, kept beside the folder that it will become: one that was killed goes on from there.

What was chosen and where the optimiser stands are written at the ends of epochs, every few seconds. A training that is
killed while it still chooses starts anew, and chooses the same, as all of it follows from its seed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wcll._files import STATE, UNFINISHED
from wcll._fitting import FitEpoch
from wcll._validation import entry
from wcll.estimator import ComplementaryClassifier
from wcll.evaluation import LabelFreeConfusion, label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import Belief, EstimatedTransition
from wcll.persistence import open_model, read_model, write_model

EVERY = 5.0  #: seconds between two saves
SAVED = r"(?:state|epoch-[0-9]+)\.safetensors"  #: names of what is saved
IMAGES = r"images-[0-9a-f]{16}\.npy"  #: that were decoded for a training, by a digest of where they come from
ESTIMATED = ("transition", "standard_error", "shares", "shares_error")  #: arrays of an estimate of Q

Plain = dict[str, Any]


class Unfinished:
    """The files of a training under way; called after every epoch, it saves what is needed to go on."""

    def __init__(self, folder: Path, key: str = "", every: float = EVERY) -> None:
        self.folder, self.key, self.every = folder, key, every
        self.total: int | None = None  #: epochs in all
        self._saved: float | None = None
        self.begun: Callable[[ComplementaryClassifier], None] = lambda model: None  #: told once what was chosen

    @staticmethod
    def beside(out: Path) -> Path:
        """Where the files of a training lie whose model will be ``out``."""
        return out.absolute().with_name(f"{out.absolute().name}{UNFINISHED}")

    def check(self) -> None:
        """Fail if the folder is one of others: what is not of a training must not be replaced or deleted."""
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            raise self._foreign("a file or a link")
        there = [*self.folder.iterdir()] if self.folder.exists() else []
        plain, named = own_files(self.folder, SAVED, IMAGES, drafts=True), _names(SAVED, IMAGES, drafts=True)
        for path in there:
            if named.fullmatch(path.name) and not (path in plain and _is_saved(path)):
                raise self._foreign(f"one with a {path.name} that no training wrote")
        if there and not plain:
            raise self._foreign(f"one that holds {min(there).name}")

    def _foreign(self, got: str) -> InputError:
        expected = f"{self.folder.name} beside it to be a folder in which wcll train has saved a training, or not there"
        return InputError("--out", expected, got, "move it away, or name another folder")

    def __call__(self, end: FitEpoch) -> None:
        """Save if it is time, and there is more to come."""
        if self._saved is not None and time.monotonic() - self._saved < self.every:
            return
        taken = end.classifier()
        if self._saved is None:
            self.begun(taken)
        if self.total is None:
            self.total = int(taken.max_epochs)
        if end.epoch < self.total:
            self._save(taken, end.epoch)
        self._saved = time.monotonic()

    def _save(self, taken: ComplementaryClassifier, epoch: int) -> None:
        self.folder.mkdir(exist_ok=True)
        model = self.folder / f"epoch-{epoch}.safetensors"
        taken.save(model)
        header = {"key": self.key, "epoch": epoch, "total": self.total, "model": model.name}
        header |= {"chosen": _plain_q(taken), "estimate": _plain_estimate(getattr(taken, "estimate_", None))}
        write_model(self.folder / STATE, taken.fitted_.engine, header)  # from now on it goes on from here
        for old in own_files(self.folder, SAVED, drafts=True):
            if old.name not in (STATE, model.name):
                old.unlink(missing_ok=True)

    @property
    def there(self) -> bool:
        """Whether a training can go on."""
        return (self.folder / STATE).is_file()

    def clear(self, *, keep_images: bool = False) -> None:
        """Forget what was saved, and nothing else that may lie there; images that were decoded may be needed still."""
        for path in own_files(self.folder, *([SAVED] if keep_images else [SAVED, IMAGES]), drafts=True):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # not there, or others' files are in it
            self.folder.rmdir()

    def resumed(self, new: ComplementaryClassifier) -> ComplementaryClassifier | None:
        """A classifier that goes on where the training was, when it is fitted; None if nothing was saved."""
        if not self.there:
            return None
        header, state = read_model(self.folder / STATE)
        if entry(header, "key", str) != self.key:
            expected = "the data and settings that the training began with"
            raise InputError("--resume", expected, "others", "leave --resume out to start anew")
        self.total, epoch = entry(header, "total", int), entry(header, "epoch", int)
        model = ComplementaryClassifier.load(self.folder / Path(entry(header, "model", str)).name)
        model.set_params(**{**new.get_params(deep=False), "warm_start": True})
        left, optional = self.total - epoch, dict(model.fitted_.optional)
        if "chosen" in optional:
            chosen = {**optional["chosen"], "max_epochs": left}
            if (found := entry(header, "chosen", dict | None)) is not None:
                chosen["transition"] = _estimated(found)
            optional |= {"chosen": chosen, "estimate": _estimate(header.get("estimate"), model.classes_)}
        else:
            model.max_epochs = left
        model.fitted_ = replace(model.fitted_, engine=state, n_iter=epoch, optional=optional)
        return model

    def settle(self, model: ComplementaryClassifier, new: ComplementaryClassifier) -> ComplementaryClassifier:
        """A resumed classifier, once it is fitted, with the settings of one that never stopped."""
        model.set_params(**new.get_params(deep=False))
        if hasattr(model, "chosen_"):
            model.chosen_["max_epochs"] = self.total
        return model


def own_files(folder: Path, *kinds: str, drafts: bool = False) -> list[Path]:
    """Return the plain files of a folder, unless it is a link, with names of these kinds; ``drafts`` of them, too."""
    names = _names(*kinds, drafts=drafts)
    there = [*folder.iterdir()] if folder.is_dir() and not folder.is_symlink() else []
    return [path for path in there if names.fullmatch(path.name) and path.is_file() and not path.is_symlink()]


def _names(*kinds: str, drafts: bool) -> re.Pattern[str]:
    """Names of these kinds, and with ``drafts`` those that files have until they are whole."""
    some = "|".join(kinds)
    return re.compile(rf"{some}|\.(?:{some})\.[a-z0-9_]{{8}}" if drafts else some)


def _is_saved(path: Path) -> bool:
    """Return whether a file of ours may be deleted by its name, or is a model that says that this package wrote it."""
    if not re.fullmatch(SAVED, path.name):
        return True
    try:
        with open_model(path):
            return True
    except InputError:
        return False


def _plain_q(taken: ComplementaryClassifier) -> Plain | None:
    """An estimate of Q that was chosen, with all that a belief is formed from."""
    found = getattr(taken, "chosen_", {}).get("transition")
    if not isinstance(found, EstimatedTransition):
        return None
    arrays = {name: getattr(found, name) for name in ESTIMATED}
    plain = {name: None if value is None else np.asarray(value).tolist() for name, value in arrays.items()}
    return {**plain, "basis": found.basis, "family": found.family}


def _estimated(plain: Plain) -> EstimatedTransition:
    arrays = {name: None if plain.get(name) is None else np.array(plain[name], np.float64) for name in ESTIMATED}
    return EstimatedTransition(
        np.asarray(arrays["transition"]),
        arrays["standard_error"],
        arrays["shares"],
        entry(plain, "basis", str),
        entry(plain, "family", str),
        shares_error=arrays["shares_error"],
    )


def _plain_estimate(found: LabelFreeConfusion | None) -> Plain | None:
    """The table that an estimate of accuracy was made of, and the belief."""
    if found is None:
        return None
    table = np.rint(found.n * (found.belief.transition.T @ found.joint)).astype(int)
    return {"table": table.tolist(), "belief": found.belief.to_dict(), "warning": found.warning}


def _estimate(plain: Mapping[str, Any] | None, classes: Any) -> LabelFreeConfusion | None:
    if plain is None:
        return None
    with suppress(InputError):
        found = label_free_confusion(plain["table"], Belief.from_dict(plain["belief"]), classes=classes)
        warning = plain.get("warning")
        return found if warning is None else found.withdrawn(entry(plain, "warning", str))
    return None
