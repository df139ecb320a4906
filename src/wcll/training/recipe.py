"""How runs are trained beside their loss, rate and length: views of images, optimiser, schedule, averages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from wcll._validation import choice, non_negative, share
from wcll.exceptions import InputError

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
