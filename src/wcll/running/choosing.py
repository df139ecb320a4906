"""Runs whose loss is ``"auto"``: the classifier as its users get it, on the labels that a suite draws."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import ceil, nan

import numpy as np
import torch

from wcll import _auto
from wcll.estimator import ComplementaryClassifier
from wcll.exceptions import InputTypeError, LabelWarning
from wcll.labels.families import EARLY
from wcll.models import MODELS, Family
from wcll.running.containers import View, Weak
from wcll.running.train import Recording
from wcll.suites.trial import Trial


def choose_and_train(trial: Trial, view: View, device: torch.device) -> Recording:
    """Fit the classifier to all labels of a trial, those that others hold out among them, and see what it predicts.

    It is told the trial's model, batches, decay and training. What is kept is one epoch: the one that it ends with, and
    how likely the labels of its own folds were for models that had not seen them.
    """
    parts = [_weak(view.data)] if view.valid is None else [_weak(view.data), view.valid]
    groups = [part.groups for part in parts if part.groups is not None]
    model = ComplementaryClassifier(
        model={"name": trial.model, **dict(trial.model_options)},
        batch_size=trial.batch_size,
        weight_decay=trial.weight_decay,
        training=trial.recipe.named(),
        dtype=trial.dtype,
        budget=trial.budget,
        classes=range(view.n_classes),
        random_state=trial.seed,
        device=str(device),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelWarning)  # tables compare what methods make of any labels
        model.fit(
            np.concatenate([_numbers(trial, part.x, view.scale) for part in parts]),
            np.concatenate([part.ybar for part in parts]),
            groups=np.concatenate(groups) if groups else None,
        )
    scores = [row["score"] for row in getattr(model, "selection_", []) if row["chosen"]]
    return Recording(
        judges=[model.belief_],
        parameters=model.network_.state_dict(),
        losses=[torch.tensor([model.history_[-1]["loss"]])],
        predicted=[torch.as_tensor(model.predict(_numbers(trial, view.unlabelled, view.scale))).unsqueeze(0)],
        scores=[torch.tensor([[score, nan]]) for score in scores],
    )


def stand_in(trial: Trial, view: View) -> Trial:
    """One training that takes about as long as all of those that are compared: to try, and to measure, what is slow."""
    steps = _auto.SEARCH_COST if trial.budget is None else min(trial.budget, _auto.SEARCH_COST)
    epochs = max(ceil(steps / max(len(view.data.x) // trial.batch_size, 1)), 1)
    return replace(
        trial, loss=_auto.LOSS, lr=_auto.LINEAR_LR, assume=EARLY, epochs=epochs, evaluate="checkpoints", budget=None
    )


def _weak(data: object) -> Weak:
    if not isinstance(data, Weak):
        raise InputTypeError("data", f"complementary labels for loss {_auto.AUTO!r}", type(data).__name__)
    return data


def _numbers(trial: Trial, x: torch.Tensor, scale: float) -> np.ndarray:
    """Samples as its users have them: numbers, one row a sample unless its model is for images."""
    rows = x if MODELS[trial.model].family is Family.IMAGE else x.flatten(1)
    return (rows / scale).to(getattr(torch, trial.dtype)).numpy()
