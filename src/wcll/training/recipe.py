"""The training recipe: optimiser, learning-rate schedule, augmentation, averages, and their values at each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import cos, pi
from typing import Any, NamedTuple

import torch
from scipy.stats import beta
from torch import Tensor

from wcll._validation import choice, non_negative, share
from wcll.exceptions import InputError
from wcll.models.layers import counter_uniform, stream_keys
from wcll.training.augmentation import DRAWS, view_of, without_square

OPTIMISERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "one-cycle", "cosine")
ON_IMAGES = ("crop", "flip", "cutout", "test_flip")  #: options that are about images


@dataclass(frozen=True)
class Recipe:
    """Options of training, each for every loss; those of a batch are a function of (seed, step).

    The defaults are the paper's training: Adam at one rate, images as they are.
    """

    #: Images are moved by up to so many pixels each way; what comes in at an edge is the image, mirrored.
    crop: int = 0
    #: Half of the images are mirrored, left for right.
    flip: bool = False
    #: A square of so many pixels a side is left out of every image, at a place drawn anew.
    cutout: int = 0
    #: Adam with L2 decay, Adam with decay of its own (AdamW), or SGD with Nesterov's momentum 0.9 and L2 decay.
    optimiser: str = "adam"
    #: The rate over all steps: constant; risen in a quarter of them and fallen to nothing; or fallen from the start.
    schedule: str = "constant"
    #: How much of an average of weights is kept at a step; it is what predicts. 0: the weights themselves do.
    ema: float = 0.0
    #: How much the distance counts to what the model itself says of another view, ruled-out classes aside.
    consistency: float = 0.0
    #: Images are mixed two and two, with shares of Beta(mixup, mixup), and their losses likewise.
    mixup: float = 0.0
    #: Predictions are the mean of those of an image and its mirror image.
    test_flip: bool = False

    def __post_init__(self) -> None:
        for name in ("crop", "cutout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1024:
                raise InputError(f"training, {name}", "pixels, from 0 to 1024", repr(value))
        for name in ("flip", "test_flip"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"training, {name}", "true or false", repr(getattr(self, name)))
        choice("training, optimiser", self.optimiser, OPTIMISERS)
        choice("training, schedule", self.schedule, SCHEDULES)
        for name, check in (("ema", share), ("consistency", non_negative), ("mixup", non_negative)):
            object.__setattr__(self, name, check(f"training, {name}", getattr(self, name)))

    @property
    def views(self) -> int:
        """Views of every batch."""
        return 2 if self.consistency else 1

    @property
    def moves(self) -> bool:
        """Whether images are shown in other ways than they are stored."""
        return bool(self.crop or self.flip or self.cutout)

    @property
    def scheduled(self) -> bool:
        """Whether it matters how long the whole training is."""
        return self.schedule != "constant" or bool(self.consistency)

    def changed(self, base: Recipe | None = None) -> dict[str, Any]:
        """The options that differ from another's, by default the paper's, by name."""
        return {name: value for name, value in sorted(asdict(self).items()) if value != getattr(base or PLAIN, name)}

    def named(self) -> dict[str, Any]:
        """As ``training`` takes it: the name of the nearest, and what differs from that."""
        name = min(RECIPES, key=lambda one: len(self.changed(RECIPES[one])))
        return {"name": name, **self.changed(RECIPES[name])}

    def check_samples(self, shape: tuple[int, ...]) -> None:
        """Fail if samples of this shape cannot be trained on in this way."""
        on_images = [name for name in ON_IMAGES if getattr(self, name)]
        if on_images and len(shape) not in (2, 3):
            expected = f"none of {', '.join(on_images)} for samples that are no images"
            raise InputError("training", expected, f"samples of shape {shape}", "name 'plain', or set them to 0")
        if on_images and self.crop >= min(shape[-2:]):
            raise InputError("training, crop", f"fewer pixels than images have, {min(shape[-2:])}", self.crop)


PLAIN = Recipe()
RECIPES = {
    "plain": PLAIN,
    "strong": Recipe(
        crop=4,
        flip=True,
        optimiser="adamw",
        schedule="one-cycle",
        ema=0.998,
        consistency=1.0,
        mixup=0.2,
        test_flip=True,
    ),
}
#: What is usual beside a recipe where nothing is given.
USUAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "strong": {"model": {"name": "cnn9", "dropout": 0.0}, "lr": 1e-3, "max_epochs": 80, "weight_decay": 0.05},
}


def recipe_of(given: str | Mapping[str, Any]) -> Recipe:
    """A recipe by name, or ``{"name": "strong", "ema": 0}`` with options that differ from it; no name is "plain".

    >>> recipe_of({"name": "strong", "crop": 2}).crop
    2
    """
    options = {"name": given} if isinstance(given, str) else dict(given)
    recipe = RECIPES[choice("training", options.pop("name", "plain"), RECIPES)]
    for option in options:
        choice("option of training", option, [field.name for field in fields(Recipe)])
    return replace(recipe, **options)


def usual(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are usual beside it."""
    return USUAL[_name_of(given)]


def usual_model(model: Any, given: str | Mapping[str, Any]) -> Any:
    """A model that is named and nothing else, with the options that it usually has beside a training.

    >>> usual_model("cnn9", "strong"), usual_model("cnn9", "plain")
    ({'name': 'cnn9', 'dropout': 0.0}, 'cnn9')
    >>> usual_model({"name": "cnn9", "width": 32}, "strong")
    {'name': 'cnn9', 'width': 32}
    """
    own = usual(given).get("model", {})
    return own if isinstance(model, str) and own.get("name") == model else model


def _name_of(given: str | Mapping[str, Any]) -> str:
    return choice("training", given if isinstance(given, str) else given.get("name", "plain"), RECIPES)


RISE = 0.25  #: of the steps of "one-cycle", until the rate is at its height
LOW = 0.04  #: the part of the rate at which it begins
RAMP = 0.4  #: of all steps, until consistency counts in full: what a model says at first is not worth much
VIEWS, MIXES = 0, 1  #: layers of draws: those of views, and of shares of mixed images


class Now(NamedTuple):
    """A step's own numbers, each a tensor without axes."""

    rate: Tensor  #: what the rate is multiplied with
    kept: Tensor  #: the part of the average of weights that is kept
    consistency: Tensor  #: how much it counts
    share: Tensor  #: of the first image among two that are mixed


class Course:
    """The steps of a training, prepared epoch by epoch in the same memory, so that a recorded step finds them there.

    All is a function of (seed, step): where a training goes on makes no difference, nor what trains beside it.
    """

    def __init__(
        self,
        recipe: Recipe,
        seed: int,
        *,
        batch: int,
        steps: int,
        epochs: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Of ``steps`` steps an epoch, and so many epochs."""
        self.recipe, self.batch, self.steps, self.length = recipe, batch, steps, steps * epochs
        self.keys = stream_keys([seed], "augment").to(device)
        self.numbers = torch.zeros(steps, len(Now._fields), dtype=dtype, device=device)
        drawn = (steps, recipe.views, batch, DRAWS) if recipe.moves else (0,)
        self.drawn = torch.zeros(drawn, dtype=torch.float32, device=device)

    def prepare(self, epoch: int) -> None:
        """Draw for the steps of an epoch, counted from 0."""
        first = epoch * self.steps
        places = torch.arange(first, first + self.steps, device=self.keys.device)
        mixes = counter_uniform(self.keys, places, MIXES, 1).flatten().tolist() if self.recipe.mixup else []
        rows = [self._numbers(first + i, mixes[i] if mixes else None) for i in range(self.steps)]
        self.numbers.copy_(torch.tensor(rows, dtype=self.numbers.dtype))
        if self.recipe.moves:
            size = self.recipe.views * self.batch * DRAWS
            self.drawn.copy_(counter_uniform(self.keys, places, VIEWS, size).view(self.drawn.shape))

    def at(self, place: int | Tensor) -> Now:
        """The numbers of a step within the prepared epoch; a tensor of one place is looked up on its device."""
        row = self.numbers[place] if isinstance(place, int) else self.numbers.index_select(0, place)[0]
        return Now(*row.unbind())

    def images(self, x: Tensor, rows: Tensor, place: int | Tensor, view: int) -> Tensor:
        """A view of some of the images, as they are stored."""
        if not (self.recipe.crop or self.recipe.flip):
            return x[rows]
        return view_of(x, rows, self._drawn(place, view), crop=self.recipe.crop, flip=self.recipe.flip)

    def finished(self, numbers: Tensor, place: int | Tensor, view: int) -> Tensor:
        """What is done to a view once its pixels are numbers."""
        size = self.recipe.cutout
        return without_square(numbers, self._drawn(place, view), size) if size else numbers

    def _drawn(self, place: int | Tensor, view: int) -> Tensor:
        of_step = self.drawn[place] if isinstance(place, int) else self.drawn.index_select(0, place)[0]
        return of_step[view]

    def _numbers(self, step: int, chance: float | None) -> list[float]:
        recipe, done = self.recipe, min(step / max(self.length, 1), 1.0)
        kept = min(recipe.ema, (1 + step) / (10 + step))  # at first an average of few weights, or it would lag behind
        ramp = min(done / RAMP, 1.0) * recipe.consistency
        share = 1.0 if chance is None else float(beta.ppf(chance, recipe.mixup, recipe.mixup))
        return [rate_at(recipe.schedule, done), kept, ramp, max(share, 1 - share)]


def rate_at(schedule: str, done: float) -> float:
    """What the rate is multiplied with when a part of all steps is done.

    >>> [round(rate_at("one-cycle", done), 2) for done in (0, 0.25, 0.625, 1)]
    [0.04, 1.0, 0.5, 0.0]
    >>> rate_at("constant", 0.3), rate_at("cosine", 0.5)
    (1.0, 0.5)
    """
    if schedule == "constant":
        return 1.0
    if schedule == "one-cycle":
        if done < RISE:
            return LOW + (1 - LOW) * done / RISE
        done = (done - RISE) / (1 - RISE)
    return round((1 + cos(pi * done)) / 2, 12)
