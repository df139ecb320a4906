"""A row: one finished run, its schema, and its provenance (code, versions, machine)."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import wcll
from wcll._validation import BoolArray, FloatArray, IntArray, choice, transition_matrix
from wcll.evaluation import METRICS
from wcll.evaluation.metrics import Confusion, check_metric, class_of
from wcll.evaluation.selection import zero_one_risk
from wcll.exceptions import InputError
from wcll.experiments.trial import FIELDS, LEFT_OPEN, SETTINGS, Trial, key_of, whole
from wcll.labels import Belief
from wcll.losses import LOSSES
from wcll.losses.registry import AUTO, spec_of


@dataclass(frozen=True)
class Row:
    """One finished run: its choices, what it reached (fractions in [0, 1]), how, and where."""

    key: str
    config: dict[str, Any]
    metrics: dict[str, float]  #: of the last epoch
    history: dict[str, Any]  #: counts and scores by epoch (None where nobody looked) and by checkpoint
    provenance: dict[str, Any]  #: seconds, versions, commit, device, data

    def to_dict(self) -> dict[str, Any]:
        """Plain tables, for JSON."""
        return asdict(self)

    @property
    def epochs(self) -> int:
        """How many epochs were trained."""
        return len(self.history["correct"])

    @property
    def class_names(self) -> list[str]:
        """The names of its classes, or their numbers, for data of many classes or runs of earlier versions."""
        numbers = [str(k) for k in range(len(self.history["sizes"]))]
        names: list[str] = self.provenance["data"].get("classes", numbers)
        return names if len(names) == len(numbers) else numbers

    @property
    def rare(self) -> list[int]:
        """The classes of which training has fewer samples than of the mean class."""
        return [int(k) for k in np.flatnonzero(_rare(np.array(self.history["sizes"])))]

    @property
    def looked_at(self) -> list[int]:
        """The epochs after which test and held-out samples were looked at, counted from 1."""
        return [epoch for epoch, correct in enumerate(self.history["correct"], 1) if correct is not None]

    def confusion(self, checkpoint: int) -> Confusion:
        """The test confusion at a checkpoint, counted from 0."""
        return Confusion(np.array(self.history["confusion"][checkpoint]))

    def curve(self, metric: str) -> FloatArray:
        """A metric after every epoch, NaN where nobody looked; macro-F1 needs whole tables: at checkpoints only."""
        nobody = [math.nan] * len(self.history["test_sizes"])
        correct = [nobody if counts is None else counts for counts in self.history["correct"]]
        recall = np.array(correct) / np.maximum(self.history["test_sizes"], 1)
        sizes = np.array(self.history["test_sizes"], dtype=np.float64)
        if check_metric("metric", metric) == "accuracy":
            accuracy: FloatArray = recall @ (sizes / sizes.sum())
            return accuracy
        if metric == "macro_f1":
            raise InputError("metric", "one that is kept for every epoch", repr(metric))
        kept = (sizes > 0) & self._classes_of(metric)
        mean: FloatArray = recall[:, kept].mean(axis=1) if kept.any() else np.full(len(recall), np.nan)
        return mean

    def _classes_of(self, metric: str) -> BoolArray:
        """Those whose recall is averaged; a class that there is not is none."""
        sizes = np.array(self.history["sizes"])
        if (one := class_of(metric)) is not None:
            own: BoolArray = np.arange(len(sizes)) == one
            return own
        if metric == "minority_recall":
            return _rare(sizes)
        assert metric == "balanced_accuracy", f"{metric} is no mean of recalls"
        return np.ones(len(sizes), dtype=bool)

    def value(self, metric: str, epoch: int) -> float:
        """A metric after an epoch, counted from 1, that was looked at."""
        known = self.checkpoints if metric == "macro_f1" else self.looked_at
        if epoch not in known:
            raise InputError("epoch", f"one after which {metric} is known: {', '.join(map(str, known))}", epoch)
        if metric != "macro_f1":
            return float(self.curve(metric)[epoch - 1])
        return self.confusion(self.history["checkpoints"].index(epoch)).macro_f1

    @property
    def checkpoints(self) -> list[int]:
        """The epochs at which held-out labels were looked at."""
        epochs: list[int] = self.history["checkpoints"]
        return epochs

    def best_epoch(self, metric: str) -> int:
        """The epoch of the highest TEST figure that is known, for oracles; macro-F1 is at checkpoints only."""
        if metric != "macro_f1":
            return int(np.argmax(np.nan_to_num(self.curve(metric), nan=-1.0))) + 1
        return self.checkpoints[int(np.argmax([self.value(metric, epoch) for epoch in self.checkpoints]))]

    @property
    def diverged(self) -> bool:
        """Whether the run lost its way: losses or likelihoods that are no numbers."""
        scores = self.history["log_likelihood"]
        seen = [scores[epoch - 1] for epoch in self.looked_at] if scores else []
        return None in self.history["train_loss"] or None in seen

    @property
    def by_likelihood(self) -> bool:
        """Whether the loss gives class probabilities, so that held-out likelihoods can be compared."""
        return spec_of(self.config["loss"]).link == "softmax"

    def held_out_scores(self) -> FloatArray:
        """What selection minimises at the checkpoints: -log (pQ)_ybar, or the 0-1 risk where p is no probability."""
        if self.history["log_likelihood" if self.config["loss"] == AUTO else "held_out"] is None:
            raise InputError("select", "'last' for runs without validation labels", "'label-free'")
        if not self.by_likelihood:
            return zero_one_risk(self.history["held_out"], self.judge.transition)
        scores = [self.history["log_likelihood"][epoch - 1] for epoch in self.history["checkpoints"]]
        return -np.array([math.nan if score is None else score for score in scores])

    @property
    def judge(self) -> Belief:
        """What selection was told of Q and the class shares."""
        return Belief.from_dict(self.history["judge"])


def _rare(sizes: IntArray) -> BoolArray:
    """Classes smaller than the mean."""
    smaller: BoolArray = sizes < sizes.mean()
    return smaller


HISTORY = (
    *("sizes", "judge", "train_labels", "test_sizes", "checkpoints", "correct", "confusion"),
    *("train_loss", "log_likelihood", "log_likelihood_se", "held_out"),
)
PARTS = ("config", "metrics", "history", "provenance")
TEXTS, NUMBERS = ("commit", "wcll", "torch", "numpy", "python", "device"), ("seconds", "together", "threads")
SOURCES = ("given", "assumed", "estimated", "true", "known")  #: "known" is what "true" was called once
LARGEST = 2**53  #: no number in a row is larger
ESTIMATED = ("family", "basis", "standard_error", "shares_error", "measured")  #: of a belief, where there is such


def check_row(row: Row) -> None:
    """Fail unless every part of a row can be used; its names may be those of another version's losses and models."""
    if not isinstance(row.key, str):
        raise InputError("key", "text", type(row.key).__name__)
    for part in PARTS:
        if not isinstance(getattr(row, part), dict):
            raise InputError(part, "a table", type(getattr(row, part)).__name__)
    _check_settings(row.config, row.key)
    for name, value in row.metrics.items():
        _number(f"metrics.{name}", value, most=1)
    _check_provenance(row.provenance)
    _check_history(row)


def check_names(row: Row) -> None:
    """Fail unless a checked row has the settings of a trial, as it writes them, and figures that are known here."""
    for name in row.metrics:
        choice("metrics", name, METRICS)
    trial_of(row.config)


def trial_of(config: Mapping[str, Any]) -> Trial:
    """The trial whose settings these are, as it writes them; fails unless it would write the same."""
    chosen = LEFT_OPEN if config["loss"] == AUTO else ()
    for field in (field for field in fields(Trial) if field.name not in chosen):
        if field.name not in config and not (field.default is None or FIELDS[field.name].nullable):
            raise InputError(f"config.{field.name}", "a value", "none")
    settings = {name: config.get(name) for name in SETTINGS}
    for name in ("loss", "model"):
        if not isinstance(config[f"{name}_options"], dict) or not isinstance(config[name], str):
            raise InputError(f"config.{name}_options", "a table", _short(config[f"{name}_options"]))
        unsaid = spec_of(config["loss"]).recorded_defaults if name == "loss" else {}
        settings[name] = {**unsaid, **config[f"{name}_options"], "name": config[name]}
    trial = replace(Trial.of(settings), loss_revision=whole("config.loss_revision", config["loss_revision"]))
    same = trial.config()
    for name in {**config, **same}:
        wanted, got = (json.dumps(part.get(name)) for part in (same, config))
        if wanted != got or name not in same:
            raise InputError(f"config.{name}", wanted if name in same else "no such setting", _short(got))
    return trial


def _check_settings(config: Mapping[str, Any], key: str) -> None:
    if key != key_of(config):
        raise InputError("key", "that of the settings", repr(key))
    for name in ("dataset", "loss"):
        _text(f"config.{name}", config.get(name))
    for name, low in (("seed", 0), ("epochs", 1)):
        whole(f"config.{name}", config.get(name), low)
    if not isinstance(config.get("classes", []), list):
        raise InputError("config.classes", "a list", _short(config["classes"]))


def _check_provenance(made: Mapping[str, Any]) -> None:
    for name in ("seconds", "data"):
        if name not in made:
            raise InputError(f"provenance.{name}", "a value", "none")
    for name, value in made.items():
        if name in {"key", *FIELDS, *METRICS}:
            raise InputError("provenance", "names of its own", repr(name))
        if name == "data":
            _check_data(value)
        elif name in NUMBERS or (name not in TEXTS and isinstance(value, int | float)):
            _number(f"provenance.{name}", value, integer=name in NUMBERS[1:])
        else:
            _text(f"provenance.{name}", value)


def _check_data(data: Any) -> None:
    if not isinstance(data, dict):
        raise InputError("provenance.data", "a table", type(data).__name__)
    for name, value in {"fingerprint": None, "stamp": "", **data}.items():
        if name == "classes":
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise InputError("provenance.data.classes", "a list of names", _short(value))
        elif name in ("fingerprint", "stamp") or not isinstance(value, int | float):
            _text(f"provenance.data.{name}", value)
    if not isinstance(data.get("official"), bool):
        raise InputError("provenance.data.official", "true or false", _short(data.get("official")))


def _check_history(row: Row) -> None:
    """Counts of as many classes, epochs and checkpoints as there are, which fit each other."""
    history, epochs = row.history, row.config["epochs"]
    if lacking := [name for name in HISTORY if name not in history]:
        raise InputError("history", "all its parts", f"none of {', '.join(lacking)}")
    k = len(history["sizes"]) if isinstance(history["sizes"], list) else 0
    named = row.config.get("classes")
    if k < 2 or (named is not None and len(named) != k):
        raise InputError("history.sizes", "one size a class", _short(history["sizes"]))
    for name in ("sizes", "train_labels"):
        _counts(history, name, k)
    test = _counts(history, "test_sizes", k)
    if not test.any():
        raise InputError("history.test_sizes", "some test samples", "none")
    compared = _check_checkpoints(history["checkpoints"], epochs)
    correct = _counts_by_epoch(row, compared, k)
    if (correct > test).any():
        raise InputError("history.correct", "at most as many as were tested", "more")
    tables = _counts(history, "confusion", len(compared), k, k)
    if (tables.sum(axis=2) != test).any() or (np.diagonal(tables, axis1=1, axis2=2) != correct[compared - 1]).any():
        raise InputError("history.confusion", "as many as were tested, and were correct", "others")
    _check_scores(row, compared, k)
    _check_judge(history["judge"], k)


def _check_checkpoints(values: Any, epochs: int) -> IntArray:
    compared = _whole_numbers("history.checkpoints", values)
    rising = compared.ndim == 1 and compared.size and compared[0] >= 1 and (np.diff(compared) > 0).all()
    if not rising or compared[-1] != epochs:
        raise InputError("history.checkpoints", f"rising epochs up to {epochs}", _short(values))
    return compared


def _looked_at(row: Row, compared: IntArray) -> list[int]:
    """The epochs, counted from 0, after which the settings say that samples were looked at."""
    seldom = row.config.get("evaluate") == "checkpoints"
    return [int(epoch) - 1 for epoch in compared] if seldom else list(range(row.config["epochs"]))


def _counts_by_epoch(row: Row, compared: IntArray, k: int) -> IntArray:
    """What was correct after every epoch, 0 where nobody looked."""
    values, looked_at = row.history["correct"], _looked_at(row, compared)
    if not isinstance(values, list) or len(values) != row.config["epochs"]:
        raise InputError("history.correct", f"{row.config['epochs']} lists of counts", _short(values))
    if [epoch for epoch, counts in enumerate(values) if counts is not None] != looked_at:
        raise InputError("history.correct", f"counts of {len(looked_at)} epochs", "others")
    whole = np.zeros((len(values), k), dtype=np.int64)
    whole[looked_at] = _counts({"correct": [values[epoch] for epoch in looked_at]}, "correct", len(looked_at), k)
    return whole


def _check_scores(row: Row, compared: IntArray, k: int) -> None:
    """Losses after every epoch and likelihoods (None where they were no numbers), and what was held out."""
    history, epochs = row.history, row.config["epochs"]
    _floats(history, "train_loss", epochs)
    for name in ("log_likelihood", "log_likelihood_se"):
        if history[name] is not None:
            _floats(history, name, epochs)
            if any(history[name][epoch] is not None for epoch in set(range(epochs)) - set(_looked_at(row, compared))):
                raise InputError(f"history.{name}", "none where nobody looked", "some")
    if history["held_out"] is None:
        if row.config.get("validation") and row.config["loss"] != AUTO:  # which learns from all labels in the end
            raise InputError("history.held_out", "tables of the held-out labels", "none")
        return
    if not _counts(history, "held_out", len(compared), k, k).any(axis=(1, 2)).all():
        raise InputError("history.held_out", "some labels", "none")
    if history["log_likelihood"] is None and row.config["loss"] in LOSSES and row.by_likelihood:
        raise InputError("history.log_likelihood", "one a epoch", "none")


def _check_judge(judge: Any, k: int) -> None:
    """What Belief.from_dict reads."""
    if not isinstance(judge, dict):
        raise InputError("history.judge", "a table", type(judge).__name__)
    needed = ("transition", "transition_source", "prior", "prior_source")
    for name in judge:
        choice("history.judge", name, (*needed, "totals", *ESTIMATED))
    for name in needed:
        if name not in judge:
            raise InputError(f"history.judge.{name}", "a value", "none")
    for name in ("transition_source", "prior_source"):
        choice(f"history.judge.{name}", judge[name], SOURCES)
    transition_matrix(_shaped("history.judge.transition", judge["transition"], (k, k)))
    if judge["prior"] is not None:
        _shaped("history.judge.prior", judge["prior"], (k,))
    _check_estimated(judge, k)
    if judge.get("totals") is not None:
        totals = _shaped("history.judge.totals", judge["totals"], (k,))
        if (totals < 0).any() or not totals.any():
            raise InputError("history.judge.totals", "label counts", _short(judge["totals"]))


def _check_estimated(judge: dict[str, Any], k: int) -> None:
    """What is said of where Q comes from, and of how sure it is."""
    if not isinstance(judge.get("measured", False), bool):
        raise InputError("history.judge.measured", "true or false", _short(judge["measured"]))
    for name in ("family", "basis"):
        if judge.get(name) is not None:
            _text(f"history.judge.{name}", judge[name])
    for name, shape in (("standard_error", (k, k)), ("shares_error", (k,))):
        if judge.get(name) is not None and (_shaped(f"history.judge.{name}", judge[name], shape) < 0).any():
            raise InputError(f"history.judge.{name}", "standard errors", _short(judge[name]))


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(name, "text", _short(value))


def _number(name: str, value: Any, *, most: float = LARGEST, integer: bool = False) -> None:
    kinds = (int,) if integer else (int, float)
    if type(value) not in kinds or not 0 <= value <= most:
        raise InputError(name, f"a {'whole ' if integer else ''}number from 0", _short(value))


def _counts(history: Mapping[str, Any], name: str, *shape: int) -> IntArray:
    counts = _whole_numbers(f"history.{name}", history[name])
    if counts.shape != shape or counts.min() < 0 or counts.max() > LARGEST:
        size = " x ".join(map(str, shape))
        raise InputError(f"history.{name}", f"{size} counts", f"shape {counts.shape}, or numbers that are none")
    return counts


def _whole_numbers(name: str, values: Any) -> IntArray:
    array = _array(name, values)
    if array.dtype.kind != "i":
        raise InputError(name, "whole numbers", _short(values))
    return array


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        if isinstance(values, list):
            return np.array(values)
    except (ValueError, OverflowError):  # lists of different lengths
        pass
    raise InputError(name, "a list of numbers", _short(values))


def _floats(history: Mapping[str, Any], name: str, epochs: int) -> None:
    values = history[name]
    right = isinstance(values, list) and len(values) == epochs
    if not right or not all(v is None or (type(v) in (int, float) and abs(v) <= 1e300) for v in values):
        raise InputError(f"history.{name}", f"{epochs} numbers", _short(values))


def _shaped(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    array = _array(name, values)
    if array.dtype.kind not in "if" or array.shape != shape or not np.isfinite(array).all():
        raise InputError(name, f"{' x '.join(map(str, shape))} numbers", _short(values))
    return array


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def provenance(device: torch.device) -> dict[str, str | int]:
    """Commit, versions and device of this process."""
    return {
        "commit": commit(),
        **versions(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }


def versions() -> dict[str, str]:
    """What a result may depend on beside its settings and data."""
    return {
        "wcll": wcll.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


@cache
def code() -> str:
    """A digest of the package's source: of its files' names and what they hold."""
    root, digest = Path(wcll.__file__).parent, blake2b(digest_size=12)
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def commit() -> str:
    """The commit of the source tree that runs, with ``+`` if it was changed since; empty for an installed package."""
    root = Path(wcll.__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True)
    return run.stdout.strip()
