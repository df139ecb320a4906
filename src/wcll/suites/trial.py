"""One training as a frozen set of choices; its hash is the key of its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from wcll.checks import InputError, choice
from wcll.losses import LOSSES
from wcll.suites.settings import BY_LABEL, NULLABLE, SETTINGS, Options


@dataclass(frozen=True)
class Trial:
    """Everything that a result depends on. A field that is None is not used, and not part of the key.

    So a field that is added later with the default None leaves the keys of earlier results as they are.
    """

    dataset: str
    loss: str
    lr: float
    seed: int
    classes: tuple[int, ...] | None = None  #: keep these classes, in this order
    test_share: float | None = None  #: where there is no official test set (default: a quarter)
    imbalance: str = "none"
    p: float | None = None  #: majority to minority ratio
    minority: tuple[int, ...] | None = None
    n_majority: int | None = None  #: samples of a majority class (default: as many as there are)
    imbalance_of: str | None = None  #: what is imbalanced if not the true classes: the selector, or labels as kept
    labels: str = "uniform"  #: how complementary labels are drawn: a name of TRANSITIONS
    noise: float = 0.0  #: share of labels that wrongly name the true class
    validation: float = 1 / 9  #: held-out samples for selection, as a share of the training set
    resample: str | None = None
    loss_options: Options = ()
    loss_revision: int = 1
    assume: str = "uniform"  #: the Q that the loss is told: assumed uniform, recovered from counts, or the true one
    weights: str | None = "auto"
    pi: str = "recovered"  #: where the weights' pi comes from
    bias: float | None = None
    beta: float | None = None
    judge: str = "uniform"  #: the Q that selection is told
    model: str = "linear"
    model_options: Options = ()
    optimiser: str = "adam"
    weight_decay: float = 1e-4
    batch_size: int = 256
    epochs: int = 100
    dtype: str = "float32"

    @staticmethod
    def of(settings: Mapping[str, Any]) -> Trial:
        """A trial from the settings of a suite: checked, numbers as what they mean, options split from names."""
        for key in settings:
            choice("setting", key, SETTINGS)
        for key in ("dataset", "loss", "lr", "seed"):
            if settings.get(key) is None:
                raise InputError(key, "a value", "none", "every run needs one")
        values: dict[str, Any] = {}
        for key, value in settings.items():
            values[key] = None if value is None or (value == "none" and key in NULLABLE) else SETTINGS[key](key, value)
        for key in ("loss", "model"):
            if key in values:
                values[key], values[f"{key}_options"] = values[key]
        values["loss_revision"] = LOSSES[values["loss"]].revision
        trial = Trial(**values)
        trial._check_together()
        return trial

    def _check_together(self) -> None:
        if self.imbalance != "none" and self.p is None:
            raise InputError("p", f"a ratio for imbalance = {self.imbalance!r}", "none")
        if self.imbalance == "eq6" and not self.minority:
            raise InputError("minority", "classes for imbalance = 'eq6'", "none", "for example minority = [0]")
        if self.imbalance == "none" and (self.p is not None or self.minority or self.imbalance_of):
            given = "imbalance_of" if self.imbalance_of else "p or minority"
            raise InputError("imbalance", f"'eq6', 'long-tailed' or 'step' where {given} is given", "'none'")
        if self.imbalance_of == "selector" and self.labels == "uniform":
            raise InputError("labels", "a selector that heeds class sizes for imbalance_of = 'selector'", "'uniform'",
                             "for example labels = 'inverse-size'")  # fmt: skip
        if self.imbalance_of in BY_LABEL and self.n_majority is None:
            raise InputError("n_majority", f"a number for imbalance_of = {self.imbalance_of!r}", "none",
                             "how many could be kept depends on the draw")  # fmt: skip
        spec = LOSSES[self.loss]
        if self.weights not in (None, "auto") and not spec.weighted:
            raise InputError("weights", f"none for loss {self.loss!r}, which is not a mean over samples", self.weights)

    def config(self) -> dict[str, Any]:
        """Plain values in the order of the fields, without those that are not used."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["loss_options"], values["model_options"] = dict(self.loss_options), dict(self.model_options)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None}

    @property
    def key(self) -> str:
        """The identity of the result."""
        return key_of(self.config())

    @property
    def ordinary(self) -> bool:
        """Whether the loss learns from true labels: the upper limit."""
        return LOSSES[self.loss].labels == "ordinary"

    @property
    def sees_truth(self) -> bool:
        """Whether true labels shape its training in any way: such a run does not compete with the others."""
        return self.ordinary or (self.resample or "").endswith("by-y")


def key_of(config: Mapping[str, Any]) -> str:
    """The hash of a configuration."""
    return blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=12).hexdigest()
