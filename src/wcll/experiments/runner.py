"""Training: it is given complementary labels, and test images without labels, and records what models predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from wcll.checks import FloatArray, InputTypeError, IntArray
from wcll.evaluation import Judge, checkpoints, complementary_table
from wcll.experiments.containers import Ordinary, Weak
from wcll.experiments.trial import Trial
from wcll.losses import LOSSES, Context, Targets
from wcll.models import RunStack, build_model
from wcll.training import LossGroup, RunAdam, Trainer, predict_logits

Progress = Callable[[int], None]  #: told how many epochs of runs were just done


@dataclass
class Recording:
    """What a stack of runs leaves behind; axes are (epochs, runs, ...)."""

    model: RunStack
    losses: list[list[float]] = field(default_factory=list)
    predicted: list[IntArray] = field(default_factory=list)  #: of the unlabelled test images, one byte each
    scores: list[FloatArray] = field(default_factory=list)  #: held-out log-likelihood and its standard error
    tables: dict[int, IntArray] = field(default_factory=dict)  #: epoch -> N[ybar, prediction] of each run


def train(
    trials: Sequence[Trial],
    contexts: Sequence[Context],
    data: Weak | Ordinary,
    valid: Weak | None,
    unlabelled: Tensor,
    judge: Judge,
    *,
    device: torch.device,
    progress: Progress = lambda done: None,
) -> Recording:
    """Train trials that share data and shape, and record predictions after every epoch.

    ``unlabelled`` are the test images: no argument of this function holds their labels.
    """
    first, n_classes = trials[0], len(judge.transition)
    labels = _labels(data, first)
    x, unlabelled = data.x.to(device), unlabelled.to(device)
    trainer = _trainer(trials, contexts, x, n_classes)
    targets = Targets.of(torch.as_tensor(labels), n_classes).to(device)
    recording = Recording(trainer.model)
    compared = set(checkpoints(first.epochs))
    for epoch in range(1, first.epochs + 1):
        recording.losses.append(trainer.run_epoch(x, targets, first.batch_size)["loss"])
        predicted = predict_logits(trainer.model, unlabelled).argmax(-1)
        recording.predicted.append(predicted.cpu().numpy().astype(np.min_scalar_type(n_classes - 1)))
        if valid is not None:
            logits = predict_logits(trainer.model, valid.x.to(device))
            recording.scores.append(_held_out_scores(logits, valid.ybar, judge))
            if epoch in compared:
                guesses = logits.argmax(-1).cpu().numpy()
                recording.tables[epoch] = np.stack([complementary_table(valid.ybar, g, n_classes) for g in guesses])
        progress(len(trials))
    return recording


def _labels(data: Weak | Ordinary, trial: Trial) -> IntArray:
    """The labels that a loss may see: true ones only for the upper limit."""
    if isinstance(data, Weak) and not trial.ordinary:
        return data.ybar
    if isinstance(data, Ordinary) and trial.ordinary:
        return data.y
    kind = "ordinary" if trial.ordinary else "complementary"
    raise InputTypeError("data", f"{kind} labels for loss {trial.loss!r}", type(data).__name__)


def _trainer(trials: Sequence[Trial], contexts: Sequence[Context], x: Tensor, n_classes: int) -> Trainer:
    first = trials[0]
    model = {"name": first.model, **dict(first.model_options)}
    seeds = [trial.seed for trial in trials]
    stack = build_model(model, tuple(x.shape[1:]), n_classes, seeds, x.dtype).to(x.device)
    rates = torch.tensor([trial.lr for trial in trials], dtype=x.dtype, device=x.device)
    optimiser = RunAdam(stack.parameters(), rates, weight_decay=first.weight_decay)
    like = torch.empty(0, n_classes, dtype=x.dtype, device=x.device)
    return Trainer(stack, optimiser, _loss_groups(trials, contexts, like), first.seed)


def _loss_groups(trials: Sequence[Trial], contexts: Sequence[Context], like: Tensor) -> list[LossGroup]:
    """Runs beside each other that differ in their rate alone share one evaluation of the loss."""
    groups = []
    stop = 0
    for _, run in groupby(trials, key=lambda t: (t.loss, t.loss_options, t.assume, t.weights, t.pi, t.bias, t.beta)):
        start, stop = stop, stop + len(list(run))
        trial = trials[start]
        loss = LOSSES[trial.loss].bind(contexts[start].beside(like), **dict(trial.loss_options))
        groups.append(LossGroup(loss, start, stop))
    return groups


def _held_out_scores(logits: Tensor, ybar: IntArray, judge: Judge) -> FloatArray:
    """For each run the mean of log (pQ)_ybar over the held-out labels, and its standard error: (runs, 2)."""
    column = torch.as_tensor(judge.transition, dtype=torch.float64, device=logits.device).T[torch.as_tensor(ybar)]
    chance = (logits.double().softmax(-1) * column).sum(-1)
    score = chance.clamp_min(torch.finfo(torch.float64).tiny).log()
    error = score.std(-1, correction=0) / len(ybar) ** 0.5
    return torch.stack([score.mean(-1), error], -1).cpu().numpy()
