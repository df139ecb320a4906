"""Q as training estimates it where label counts are not enough: from repeated labels, or with a model of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch

from wcll.estimator import ComplementaryClassifier
from wcll.exceptions import InputTypeError
from wcll.labels import to_mask, transition_from_repeated
from wcll.labels.cross_fitting import FEW_EPOCHS, IMAGE_EPOCHS, IMAGE_ROUNDS, ROUNDS, WARM_UP
from wcll.labels.encoding import inclusion_shares
from wcll.labels.families import EstimatedTransition
from wcll.models import MODELS, Family
from wcll.running.containers import View, Weak
from wcll.suites.trial import Trial
from wcll.transition_estimation import RATE, transition_with_model

#: Estimates of the data that are in use: runs that share data share what is costly.
_MADE: WeakKeyDictionary[Weak, dict[object, EstimatedTransition]] = WeakKeyDictionary()


def estimate_of(view: View, device: torch.device) -> Callable[[Trial], EstimatedTransition]:
    """Estimates Q for trials on these data, from what their training may see: samples and complementary labels."""

    def estimate(trial: Trial) -> EstimatedTransition:
        if not isinstance(view.data, Weak):
            raise InputTypeError("assume", "complementary labels to estimate Q from", type(view.data).__name__)
        made = _MADE.setdefault(view.data, {})
        how = (trial.batch_size, trial.weight_decay, trial.dtype, trial.recipe)
        settings = (trial.model, trial.model_options, _rate(trial), *how)
        what = (trial.assume, trial.seed, *(settings if trial.assume == "model" else ()))
        if what not in made:
            find = _with_model if trial.assume == "model" else _from_repeated
            made[what] = find(trial, view.data, view, device)
        return made[what]

    return estimate


def _from_repeated(trial: Trial, data: Weak, view: View, device: torch.device) -> EstimatedTransition:
    """Of labels that were drawn without replacement losses are told the inclusion shares."""
    mask = to_mask(data.ybar, view.n_classes)
    found = transition_from_repeated(mask, view.n_classes, draws=0, random_state=trial.seed)
    sizes = set(mask.sum(axis=1).tolist())
    if len(sizes) > 1:
        return found
    return replace(found, transition=inclusion_shares(found.transition, sizes.pop()))


def _rate(trial: Trial) -> float:
    """Networks for images learn at the trial's own rate; for small models one does for all, and serves all."""
    return trial.lr if MODELS[trial.model].family is Family.IMAGE else RATE


def _with_model(trial: Trial, data: Weak, view: View, device: torch.device) -> EstimatedTransition:
    """Cross-fitted models of the trial's own kind, for few epochs."""
    images = MODELS[trial.model].family is Family.IMAGE
    epochs, rounds = (IMAGE_EPOCHS, IMAGE_ROUNDS) if images else (FEW_EPOCHS, ROUNDS)
    model = ComplementaryClassifier(
        "forward",
        model={"name": trial.model, **dict(trial.model_options)},
        lr=_rate(trial),
        max_epochs=min(epochs, trial.epochs),
        warm_up=WARM_UP,
        batch_size=trial.batch_size,
        weight_decay=trial.weight_decay,
        training=trial.recipe.named(),
        dtype=trial.dtype,
        device=str(device),
        classes=list(range(view.n_classes)),
    )
    x = (data.x / view.scale).to(getattr(torch, trial.dtype)).numpy()
    return transition_with_model(x, data.ybar, model, rounds=rounds, random_state=trial.seed)
