"""A trial: one training as a frozen set of choices, whose hash is the key of its result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from wcll._validation import FloatArray, choice, numeric, transition_matrix
from wcll.datasets.arrays import read_array
from wcll.datasets.folders import data_folders
from wcll.evaluation.selection import checkpoints
from wcll.exceptions import InputError
from wcll.labels.families import FAMILIES, told_by_counts
from wcll.labels.label_model import Source, q_in_words
from wcll.labels.transition import TRANSITIONS
from wcll.labels.weights import BY_PI, PI_SOURCES, WEIGHTINGS
from wcll.losses import LOSSES, LossSpec
from wcll.losses.registry import AUTO, spec_of
from wcll.models import MODELS
from wcll.models.registry import Family, named
from wcll.training.recipe import OPTIMISERS, PLAIN, Recipe, recipe_of, usual

Options = tuple[tuple[str, Any], ...]
Reader = Callable[[str, Any], Any]  #: of a setting's name and its value as written


class Role(Enum):
    """What a setting decides, and so which runs may train together."""

    DATA = "data"  #: which samples and labels there are
    SHARED = "shared"  #: what all runs share that train together
    OWN = "own"  #: what is each run's own


@dataclass(frozen=True)
class Setting:
    """How a field of a trial is declared."""

    role: Role
    read: Reader | None  #: None for fields that follow from others
    tunable: bool  #: a grid may vary it: candidates stay comparable by the same held-out labels at the same checkpoints
    nullable: bool  #: "none" means none


def setting(
    role: Role, read: Reader | None = None, default: Any = MISSING, *, tunable: bool = False, nullable: bool = False
) -> Any:
    """A field of a trial."""
    return field(default=default, metadata={"setting": Setting(role, read, tunable, nullable)})


IMBALANCES = ("eq6", "long-tailed", "step", "shares", "none")
BY_LABEL = ("ybar", "ybar-inverse")  #: what is imbalanced where samples are kept by their complementary labels
IMBALANCED = ("y", "selector", *BY_LABEL)
BELIEFS = (*told_by_counts(), "true")
ESTIMATES = ("repeated", "model", "pairs")  #: Qs that a loss may be told which take more than label counts
RESAMPLINGS = ("over", "under", "over-by-y", "under-by-y")
EVALUATED = ("epochs", "checkpoints")  #: when test and held-out samples are looked at: every time, or where it counts
DTYPES = ("float32", "float64")
NORMALISED = ("standard",)  #: every channel's mean and standard deviation over the training samples
ROUNDED = 1e-2  #: how far from 1 rows of a printed Q may sum
LARGEST = 10**6  #: no rate, decay or ratio is larger, and no count a thousand times larger


def number(key: str, value: Any, low: float, *, above: bool = False, below: float = float("inf")) -> float:
    """A number from ``low`` (or above it) to at most LARGEST (or below ``below``)."""
    top = min(LARGEST, below)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not low <= value <= top or (above and value == low) or value == below:
        start = f"above {low:g}" if above else f"from {low:g}"
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a number {start} to {'below ' if top == below else ''}{top:g}", got)
    return float(value) + 0.0  # 0 and -0 are the same, and have the same key


def whole(key: str, value: Any, low: int = 1, most: int = 1000 * LARGEST) -> int:
    """A whole number from ``low`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= most:
        got = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:40]}..."
        raise InputError(key, f"a whole number from {low} to {most}", got)
    return value


positive = partial(number, low=0, above=True)
ratio = partial(number, low=1)
share = partial(number, low=0, below=1)
from_zero = partial(number, low=0)
any_number = partial(number, low=-LARGEST)
natural = partial(whole, low=0)


def class_list(key: str, value: Any) -> tuple[int, ...]:
    """Class ids, each once."""
    if not isinstance(value, list | tuple) or not value:
        raise InputError(key, "a list of class ids", repr(value))
    ids = tuple(natural(key, k) for k in value)
    if len(set(ids)) < len(ids):
        raise InputError(key, "each class once", list(ids))
    return ids


def classes(key: str, value: Any) -> tuple[int, ...]:
    """Two or more class ids, each once."""
    ids = class_list(key, value)
    if len(ids) < 2:
        raise InputError(key, "at least two classes", list(ids))
    return ids


def shares(key: str, value: Any) -> tuple[float, ...]:
    """Two or more numbers above 0 as shares of their sum: [61, 19, 20] and [0.61, 0.19, 0.2] mean the same."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise InputError(key, "a list of shares, one a class", repr(value), "for example shares = [61, 19, 20]")
    parts = [positive(key, part) for part in value]
    return tuple(round(part / sum(parts), 12) for part in parts)


def matrix(key: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Q as rows of chances, or read from a file: ``"file.npy"``, or ``"file.npz:name"`` for one of several arrays.

    Rows that sum to 1 but for the rounding of printed numbers are rescaled. What counts is what is in it: the rows are
    part of a run's key, and where they were read from is not.
    """
    rows = numeric(key, _read_matrix(key, value) if isinstance(value, str) else value)
    sums = rows.sum(axis=-1, keepdims=True) if rows.ndim == 2 else np.ones(1)
    rows = transition_matrix(rows / sums if (np.abs(sums - 1) < ROUNDED).all() else rows)
    return tuple(tuple(float(chance) for chance in row) for row in rows)


def _read_matrix(key: str, value: str) -> FloatArray:
    """From a file, which is looked for here and in the folders of data."""
    name, _, array = value.partition(":")
    places = [folder / name for folder in (Path(), *data_folders(None))]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise InputError(key, "rows of chances, or a file of them, here or in a folder of data", repr(value))
    return numeric(key, read_array(path, array))


def text(key: str, value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(key, "a name", repr(value))
    return value


def one_of(*allowed: str) -> Callable[[str, Any], str]:
    """A reader of one of these names."""
    return lambda key, value: choice(key, value, allowed)


def imbalance_of(key: str, value: Any) -> str | None:
    """The default, "y", is None: it leaves keys as they were before there was a choice."""
    name = choice(key, value, IMBALANCED)
    return None if name == "y" else name


def folds(key: str, value: Any) -> int:
    """Two or more."""
    return whole(key, value, low=2)


def labels_per_sample(key: str, value: Any) -> int | None:
    """The default, 1, is None, likewise."""
    number = whole(key, value)
    return None if number == 1 else number


def evaluate(key: str, value: Any) -> str | None:
    """The default, "epochs", is None, likewise."""
    name = choice(key, value, EVALUATED)
    return None if name == "epochs" else name


def loss(key: str, value: Any) -> tuple[str, Options]:
    """A loss, and those of its options that differ from their defaults."""
    name, options = _with_options(key, value)
    return name, _changed(f"option of loss {name!r}", options, spec_of(name).options)


def model(key: str, value: Any) -> tuple[str, Options]:
    """A model, and those of its options that differ from their defaults."""
    name, options = _with_options(key, value)
    return name, _changed(f"option of model {name!r}", options, MODELS.options(name))


def training(key: str, value: Any) -> Recipe:
    """A recipe; options that are not named are as the recipe of that name has them."""
    if not isinstance(value, str | dict):
        raise InputError(key, 'a name, or { name = "strong", option = ... } with its options', repr(value))
    return recipe_of(value)


def _with_options(key: str, value: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, str | dict):
        raise InputError(key, 'a name, or { name = "...", option = ... } with its options', repr(value))
    return named(value, key)


def _changed(argument: str, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> Options:
    """Options that differ from their defaults, each of its default's type: what means the same has the same key."""
    for option in options:
        choice(argument, option, defaults)
    typed = {option: _like(f"{argument}, {option}", value, defaults[option]) for option, value in options.items()}
    return tuple(sorted((option, value) for option, value in typed.items() if value != defaults[option]))


def _like(argument: str, value: Any, default: Any) -> Any:
    if isinstance(default, float):
        return any_number(argument, value)
    if isinstance(default, int):
        return whole(argument, value, most=LARGEST)
    return text(argument, value)


#: What a loss may be told that others must find out.
FACTS = ("the true Q", "the true classes of a few samples", "the selector's family", "the class sizes")
#: What ``loss = "auto"`` chooses, or has no use for: where a suite sets it for all its rows, it is not about this one.
LEFT_OPEN = ("lr", "epochs", "evaluate", "assume", "warm_up", "balance", "weights", "pi", "bias", "beta")


@dataclass(frozen=True)
class Trial:
    """Everything that a result depends on. A field that is None is not used, and not part of the key.

    So a field that is added later with the default None leaves the keys of earlier results as they are.
    """

    #: A data set by its name, or the path of an .npz or .parquet file or of a folder of images.
    dataset: str = setting(Role.DATA, text)
    #: What is trained: a loss, "auto", or an ordinary one as the limit.
    loss: str = setting(Role.OWN, loss)
    #: The learning rate; "auto" chooses its own.
    lr: Any = setting(Role.OWN, positive, tunable=True)  # a number, but for loss = "auto", which has none
    seed: int = setting(Role.DATA, natural)
    #: Keep these classes, in this order.
    classes: tuple[int, ...] | None = setting(Role.DATA, classes, None)
    #: Where there is no official test set (default: a quarter).
    test_share: float | None = setting(Role.DATA, share, None)
    #: There, too: so many samples of every class instead of a share.
    test_per_class: int | None = setting(Role.DATA, whole, None)
    #: There, too: so many parts, each of which is the test set of some trials in turn.
    folds: int | None = setting(Role.DATA, folds, None)
    #: Images are reduced to so many pixels a side, by averaging blocks of pixels.
    pixels: int | None = setting(Role.DATA, whole, None)
    #: How the class sizes differ: some classes p times rarer, by powers, half and half, or shares.
    imbalance: str = setting(Role.DATA, one_of(*IMBALANCES), "none")
    #: The ratio of majority to minority.
    p: float | None = setting(Role.DATA, ratio, None)
    #: Of each class, for imbalance = "shares".
    shares: tuple[float, ...] | None = setting(Role.DATA, shares, None)
    #: The rare classes.
    minority: tuple[int, ...] | None = setting(Role.DATA, class_list, None)
    #: Samples of a majority class (default: as many as there are).
    n_majority: int | None = setting(Role.DATA, whole, None)
    #: What is imbalanced if not the true classes: the selector, or labels as kept.
    imbalance_of: str | None = setting(Role.DATA, imbalance_of, None)
    #: How complementary labels are drawn.
    labels: str = setting(Role.DATA, one_of(*TRANSITIONS, "matrix", "given"), "uniform")
    #: Q itself, for labels = "matrix".
    matrix: tuple[tuple[float, ...], ...] | None = setting(Role.DATA, matrix, None)
    #: Different labels that every sample gets (default: one).
    labels_per_sample: int | None = setting(Role.DATA, labels_per_sample, None)
    #: The share of labels that wrongly name the true class.
    noise: float = setting(Role.DATA, share, 0.0)
    #: Training samples whose true class is known besides, for assume = "pairs".
    pairs: int | None = setting(Role.DATA, whole, None)
    #: Held-out samples for selection, as a share of the training set.
    validation: float = setting(Role.DATA, share, 1 / 9)
    #: Samples are repeated or left out until labels (or, for comparison, true classes) are balanced.
    resample: str | None = setting(Role.DATA, one_of(*RESAMPLINGS), None, nullable=True)
    loss_options: Options = setting(Role.OWN, default=())
    loss_revision: int = setting(Role.OWN, default=1)
    #: The Q that the loss is told: assumed uniform, recovered from counts, estimated, or the true one.
    assume: str = setting(Role.OWN, one_of(*BELIEFS, *ESTIMATES), "uniform", tunable=True)
    #: Epochs at the beginning in which the loss is told popularity's Q instead, which only counts are needed for.
    warm_up: int | None = setting(Role.OWN, whole, None, tunable=True, nullable=True)
    #: How strongly it is kept from giving up classes meanwhile (default: not at all).
    balance: float | None = setting(Role.OWN, from_zero, None, tunable=True, nullable=True)
    #: Class weights: "auto" are those that the loss comes with.
    weights: str | None = setting(Role.OWN, one_of("auto", *WEIGHTINGS), "auto", tunable=True, nullable=True)
    #: Where the weights' pi comes from.
    pi: str = setting(Role.OWN, one_of(*PI_SOURCES), "recovered", tunable=True)
    #: Added to pi for weights = "wcll-bias".
    bias: float | None = setting(Role.OWN, any_number, None, tunable=True)
    #: Of weights = "effective-number".
    beta: float | None = setting(Role.OWN, share, None, tunable=True)
    #: The Q that selection is told: one for all runs, or each run's own, which its loss is told.
    judge: str = setting(Role.DATA, one_of(*BELIEFS, "own"), "uniform")
    #: What is fitted, with its options.
    model: str = setting(Role.SHARED, model, "linear", tunable=True)
    model_options: Options = setting(Role.SHARED, default=())
    #: The recipe's, unless it is given here.
    optimiser: str = setting(Role.SHARED, one_of(*OPTIMISERS), "adam")
    #: L2 decay, or that of AdamW.
    weight_decay: float = setting(Role.SHARED, from_zero, 1e-4, tunable=True)
    #: Samples a step.
    batch_size: int = setting(Role.SHARED, whole, 256, tunable=True)
    #: How long all runs train.
    epochs: int = setting(Role.SHARED, whole, 100)
    #: Of parameters and features.
    dtype: str = setting(Role.SHARED, one_of(*DTYPES), "float32", tunable=True)
    #: Whether models are looked at after every epoch, or at the checkpoints, where they are compared, only.
    evaluate: str | None = setting(Role.SHARED, evaluate, None)
    #: How the pixels of images become numbers: from 0 to 1, or with the mean and the spread of each channel taken out.
    normalise: str | None = setting(Role.SHARED, one_of(*NORMALISED), None, tunable=True, nullable=True)
    #: How networks are trained beside all this: "plain", as in the paper (None), "strong", or with other options.
    training: Recipe | None = setting(Role.SHARED, training, None)
    #: For loss = "auto": the work of the search, in training steps (default: 30,000).
    budget: int | None = setting(Role.OWN, whole, None)

    @staticmethod
    def of(settings: Mapping[str, Any]) -> Trial:
        """A trial from the settings of a suite: checked, numbers as what they mean, options split from names."""
        for key in settings:
            choice("setting", key, SETTINGS)
        auto = is_auto(settings)
        if auto:
            settings = {key: value for key, value in settings.items() if key not in LEFT_OPEN}
        for key in ("dataset", "loss", "seed") if auto else ("dataset", "loss", "lr", "seed"):
            if settings.get(key) is None:
                raise InputError(key, "a value", "none", "every run needs one")
        values: dict[str, Any] = {"lr": None, "epochs": 1} if auto else {}  # one: what it ends with is all that is kept
        for key, value in settings.items():
            values[key] = None if value is None else read_setting(key, value)
        for key in ("loss", "model"):
            if key in values:
                values[key], values[f"{key}_options"] = values[key]
        values["loss_revision"] = spec_of(values["loss"]).revision
        _settle_training(values, settings)
        trial = Trial(**values)
        trial._check_together()
        return trial

    def _check_together(self) -> None:
        self._check_shares()
        self._check_labels()
        if self.imbalance not in ("none", "shares") and self.p is None:
            raise InputError("p", f"a ratio for imbalance = {self.imbalance!r}", "none")
        if self.imbalance == "eq6" and not self.minority:
            raise InputError("minority", "classes for imbalance = 'eq6'", "none", "for example minority = [0]")
        if self.imbalance == "none" and (self.p is not None or self.minority or self.imbalance_of):
            given = "imbalance_of" if self.imbalance_of else "p or minority"
            raise InputError("imbalance", f"'eq6', 'long-tailed' or 'step' where {given} is given", "'none'")
        if self.imbalance_of == "selector" and self.labels == "uniform":
            heeds = "a selector that heeds class sizes for imbalance_of = 'selector'"
            raise InputError("labels", heeds, "'uniform'", "for example labels = 'inverse-size'")
        if self.imbalance_of in BY_LABEL and self.n_majority is None:
            number = f"a number for imbalance_of = {self.imbalance_of!r}"
            raise InputError("n_majority", number, "none", "how many could be kept depends on the draw")
        if self.normalise and MODELS[self.model].family is not Family.IMAGE:
            images = " or ".join(repr(name) for name, model in MODELS.items() if model.family is Family.IMAGE)
            remedy = f"it is for images, in model {images}"
            raise InputError("normalise", f"'none' for model {self.model!r}", repr(self.normalise), remedy)
        self._check_warm_up()
        self._check_auto()
        if self.weights not in (None, "auto") and not self.spec.weighted:
            raise InputError("weights", f"none for loss {self.loss!r}, which is not a mean over samples", self.weights)

    def _check_auto(self) -> None:
        """What is for ``loss = "auto"`` alone, and what is not for it."""
        if not self.auto and self.budget is not None:
            raise InputError("budget", f"none but for loss {AUTO!r}", self.budget)
        for name in ("resample", "normalise"):
            if self.auto and getattr(self, name) is not None:
                raise InputError(name, f"'none' for loss {AUTO!r}", repr(getattr(self, name)))

    def _check_warm_up(self) -> None:
        """It is for losses that are told a Q, and comes to an end."""
        if self.balance is not None and (self.warm_up is None or "balance" not in self.spec.options):
            able = " or ".join(repr(name) for name, spec in LOSSES.items() if "balance" in spec.options)
            raise InputError("balance", f"none but in a warm_up of loss {able}", self.balance)
        if self.warm_up is None:
            return
        if "transition" not in self.spec.context:
            raise InputError("warm_up", f"none for loss {self.loss!r}, which is told no Q", self.warm_up)
        if self.warm_up >= self.epochs:
            raise InputError("warm_up", f"fewer than the {self.epochs} epochs", self.warm_up)

    def _check_labels(self) -> None:
        """What is said of labels fits together."""
        if self.judge == "own" and self.ordinary:
            remedy = "set another judge in this row"
            raise InputError("judge", f"a family, as loss {self.loss!r} believes nothing of Q", "'own'", remedy)
        if (self.matrix is None) == (self.labels == "matrix"):
            expected, got = ("rows of chances for labels = 'matrix'", "none") if self.matrix is None else (
                "none, or labels = 'matrix'", f"one beside labels = {self.labels!r}"
            )  # fmt: skip
            raise InputError("matrix", expected, got)
        if (self.pairs is None) == (self.assume == "pairs"):
            expected, got = ("a number for assume = 'pairs'", "none") if self.pairs is None else (
                "none, or assume = 'pairs'", f"{self.pairs} beside assume = {self.assume!r}"
            )  # fmt: skip
            raise InputError("pairs", expected, got)
        if self.labels == "given":
            self._check_given()
        if self.labels_per_sample is None:
            if self.assume == "repeated" and self.labels != "given":
                raise InputError("labels_per_sample", "two or more for assume = 'repeated'", "one")
            return
        if not self.spec.several and not self.ordinary:
            raise InputError("labels_per_sample", f"one for loss {self.loss!r}", self.labels_per_sample)
        clashes = {"imbalance_of": self.imbalance_of in BY_LABEL, "resample": self.resample is not None}
        for name in (name for name, clash in clashes.items() if clash):
            raise InputError(name, "none for several labels a sample", repr(getattr(self, name)))

    def _check_given(self) -> None:
        """Labels that are given are as they are: nothing is drawn, so nothing is said of how."""
        plain = {"imbalance": "none", "n_majority": None, "noise": 0.0, "labels_per_sample": None}
        for name, value in plain.items():
            if getattr(self, name) != value:
                raise InputError(name, "none for labels = 'given', which are taken as they are", getattr(self, name))
        if self.pi == "declared" and self.weighting in BY_PI:
            raise InputError("pi", "'recovered' or 'observed' for labels = 'given'", "'declared'")

    def _check_shares(self) -> None:
        """Shares stand for themselves: a ratio or minority classes beside them, or two sizes of a test set, clash."""
        if self.imbalance == "shares" and self.shares is None:
            raise InputError("shares", "one a class for imbalance = 'shares'", "none", "for example [61, 19, 20]")
        if self.imbalance == "shares" and (self.p is not None or self.minority):
            raise InputError("p" if self.minority is None else "minority", "none beside shares", "one")
        if self.shares is not None and self.imbalance != "shares":
            raise InputError("imbalance", "'shares' where shares are given", repr(self.imbalance))
        ways = [name for name in ("test_share", "test_per_class", "folds") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise InputError(ways[0], f"none beside {ways[1]}", getattr(self, ways[0]))

    def of_role(self, *roles: Role) -> tuple[Any, ...]:
        """The values of all fields of some roles: equal for trials that agree in them."""
        return tuple(getattr(self, name) for name, declared in FIELDS.items() if declared.role in roles)

    def config(self) -> dict[str, Any]:
        """Plain values in the order of the fields, without those that are not used."""
        values = {name: getattr(self, name) for name in FIELDS}
        values["loss_options"] = self.spec.recorded(dict(self.loss_options))
        values["model_options"] = dict(self.model_options)
        values["training"] = None if self.training is None else self.training.changed()
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None}

    @property
    def recipe(self) -> Recipe:
        """How it is trained, the paper's way if nothing else is said."""
        return self.training or PLAIN

    @cached_property
    def key(self) -> str:
        """The identity of the result."""
        return key_of(self.config())

    @property
    def spec(self) -> LossSpec:
        """What is known of its loss."""
        return spec_of(self.loss)

    @property
    def auto(self) -> bool:
        """Whether loss, Q, rate and epochs are chosen by the labels that it gets."""
        return self.loss == AUTO

    @property
    def weighting(self) -> str | None:
        """The scheme of its class weights, if it has any."""
        return self.spec.auto_weights if self.weights == "auto" else self.weights

    @property
    def told(self) -> list[str]:
        """What its loss is told that others must find out."""
        takes_q = "transition" in self.spec.context
        sizes = [FACTS[-1]] if self.weighting in BY_PI and self.pi == "declared" else []
        return (_told_of_q(self.assume) if takes_q else []) + sizes

    @property
    def selection_told(self) -> list[str]:
        """What the choice of rates and epochs is told."""
        return [] if self.auto else _told_of_q(self.assume if self.judge == "own" else self.judge)

    @property
    def selection_belief(self) -> str:
        """Where the Q of that choice comes from, in words."""
        if self.judge == "own" or self.auto:
            return "by each run's own Q"
        source: Source = "true" if self.judge == "true" else FAMILIES[self.judge].source
        return q_in_words(source, self.judge)

    @property
    def looked_at(self) -> Sequence[int]:
        """The epochs after which test and held-out samples are looked at, counted from 1."""
        return range(1, self.epochs + 1) if self.evaluate is None else checkpoints(self.epochs)

    @property
    def ordinary(self) -> bool:
        """Whether the loss learns from true labels: the upper limit."""
        return self.spec.labels == "ordinary"

    @property
    def sees_truth(self) -> bool:
        """Whether true labels shape its training in any way: such a run does not compete with the others."""
        return self.ordinary or (self.resample or "").endswith("by-y")


#: How each field is declared, and those of them that a suite may set.
FIELDS: dict[str, Setting] = {field.name: field.metadata["setting"] for field in fields(Trial)}
SETTINGS = [name for name, declared in FIELDS.items() if declared.read]
TUNABLE = [name for name in SETTINGS if FIELDS[name].tunable]


def is_auto(settings: Mapping[str, Any]) -> bool:
    """Whether settings, as they are written, ask for ``loss = "auto"``."""
    loss = settings.get("loss")
    return (loss.get("name") if isinstance(loss, dict) else loss) == AUTO


def read_setting(key: str, value: Any) -> Any:
    """The value of a setting as a trial keeps it."""
    declared = FIELDS[key]
    assert declared.read is not None
    return None if declared.nullable and value == "none" else declared.read(key, value)


def _settle_training(values: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """What is given beside a recipe wins over it; the paper's own is None, as it was before there were others."""
    recipe = values.get("training") or PLAIN
    if "optimiser" in values:
        recipe = replace(recipe, optimiser=values["optimiser"])
    elif recipe.optimiser != PLAIN.optimiser:
        values["optimiser"] = recipe.optimiser
    values["training"] = None if recipe == PLAIN else recipe
    decay = usual(settings.get("training") or "plain").get("weight_decay")
    if decay is not None:
        values.setdefault("weight_decay", decay)


def _told_of_q(belief: str) -> list[str]:
    """What one is told who believes this of Q; uniform labels are what one assumes without a word."""
    of_q, pairs, family, _ = FACTS
    told = {"uniform": [], "true": [of_q], "repeated": [], "model": [], "pairs": [pairs]}
    return told.get(belief, [family])


def key_of(config: Mapping[str, Any]) -> str:
    """The hash of a configuration."""
    return blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=12).hexdigest()
