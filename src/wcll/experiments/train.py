"""Training of runs: models see complementary labels only, and their predictions are recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, nan
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from wcll import _auto
from wcll._random import stream
from wcll._validation import BoolArray, IntArray
from wcll.estimator import ComplementaryClassifier
from wcll.evaluation import checkpoints
from wcll.evaluation.label_free import tables_of
from wcll.exceptions import InputError, InputTypeError, LabelWarning
from wcll.experiments.grouping import Job, now
from wcll.experiments.task import Ordinary, View, Weak, loss_context, own_belief
from wcll.experiments.trial import Role, Trial
from wcll.labels import Belief, transition_from_repeated
from wcll.labels.cross_fitting import FEW_EPOCHS, IMAGE_EPOCHS, IMAGE_ROUNDS, ROUNDS, WARM_UP
from wcll.labels.encoding import inclusion_shares, to_mask
from wcll.labels.families import EARLY, EstimatedTransition
from wcll.losses import LOSSES, Targets
from wcll.losses.registry import AUTO, softmax
from wcll.models import MODELS
from wcll.models.registry import Family
from wcll.training import Engine, RunGroup, RunLoss, Training, make_engine
from wcll.training import train as run_epochs
from wcll.training.augmentation import Standard
from wcll.training.engine import Observer
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


CPU = torch.device("cpu")
IMAGES_AT_ONCE = 2  #: networks for images that are tried out at a time: a few samples may be gigabytes in them
TOLD = 1.0  #: seconds at least between two parts of an epoch that are told
Progress = Callable[[int], None]  #: told how many epochs of runs were just done
Within = Callable[[float], None]  #: told how much of the present epoch of its runs is done
Seen = tuple[Job, View]  #: runs, and all that their training may see


@dataclass
class Recording:
    """What a stack of runs leaves behind; axes are (runs, ...), of lists (epochs, runs, ...)."""

    judges: list[Belief]  #: by which each run is judged
    parameters: dict[str, Tensor] = field(default_factory=dict)  #: at the end, (runs, ...)
    losses: list[Tensor] = field(default_factory=list)  #: of the last batch of every epoch
    #: Of the unlabelled test images, one byte each, after those epochs that are looked at (``Trial.looked_at``).
    predicted: list[Tensor] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)  #: held-out log-likelihood and its standard error, likewise
    tables: dict[int, Tensor] = field(default_factory=dict)  #: epoch -> N[ybar, prediction] of each run


class Saves(Protocol):
    """Keeps a training, so that another process can go on with it."""

    def load(self, engine: Engine, recordings: Sequence[Recording], device: torch.device) -> None:
        """Put both where they were."""

    def after_epoch(self, engine: Engine, recordings: Sequence[Recording]) -> bool:
        """Save from time to time; True ends a training, which is saved then."""


def train(
    jobs: Sequence[Seen],
    device: torch.device,
    *,
    progress: Progress = lambda done: None,
    within: Within = lambda part: None,
    plain: bool = False,
    saves: Saves | None = None,
    samples: int | None = None,
    planned: int = 0,
) -> list[Recording]:
    """Train jobs of equal shape in step, and record predictions after every epoch that is looked at.

    ``plain`` trains each by a plain loop with autograd; else the fastest engine for the model and the device does.
    ``samples`` trains on the first so many only, to measure time; ``planned`` says how many epochs of such runs there
    will be in all, if that is known. What ``saves`` ends early has fewer epochs. ``progress`` is told of every epoch
    that is over, ``within`` from time to time of one that takes long.
    """
    epochs, runs = jobs[0][0].first.epochs, sum(len(job.trials) for job, _ in jobs)
    groups = [run_group(*seen, device).head(samples) for seen in jobs]
    engine = make_engine(groups, replace(training_of(*jobs[0], device), planned=planned), plain=plain)
    recorders = [_Recorder(engine, i, view, job) for i, (job, view) in enumerate(jobs)]
    recordings = [recorder.recording for recorder in recorders]
    if saves:
        saves.load(engine, recordings, device)
    progress(engine.epoch * runs)
    engine.after_step = _now_and_then(lambda part: within(part * runs))
    observers: list[Observer] = [*recorders, lambda engine: progress(runs)]
    if saves:
        observers.append(lambda engine: saves.after_epoch(engine, recordings))
    run_epochs(engine, epochs, observers)
    for i, recording in enumerate(recordings):
        recording.parameters = engine.parameters(i)
    return recordings


def _now_and_then(tell: Within) -> Within:
    """Tells of parts, but not of those that follow too soon; that an epoch is over, others tell."""
    told = now()

    def heard(part: float) -> None:
        nonlocal told
        if part < 1 and now() - told >= TOLD:
            told = now()
            tell(part)

    return heard


def try_out(job: Job, view: View, device: torch.device) -> None:
    """One step of every run on a few samples, so that settings that cannot work fail now; nothing of it is kept."""
    try:
        cheap = Job(tuple(replace(t, assume=EARLY) if t.assume == "model" else t for t in job.trials))
        for part in cheap.cut(IMAGES_AT_ONCE) if job.image else [cheap]:
            engine = make_engine([run_group(part, view, device).head(8)], training_of(part, view, device), plain=True)
            engine.run_epoch()
            engine.predict(0, engine.prepare(view.unlabelled[:2]))
    except InputError:
        raise
    except (MemoryError, RuntimeError, TypeError, OverflowError) as error:
        argument = f"model {job.first.model!r}, batch_size {job.first.batch_size}"
        raise InputError(argument, "settings that can be trained", f"{type(error).__name__}: {error}") from None


class _Recorder:
    """Looks at the runs of one job after its epochs; on a GPU nothing waits for what it sees."""

    def __init__(self, engine: Engine, index: int, view: View, job: Job) -> None:
        trial, device = job.first, engine.training.device
        self.index, self.n_classes, self.held_out = index, view.n_classes, view.valid is not None
        self.recording = Recording(judges=_judges(job, view, device))
        self.looked_at, self.compared = set(trial.looked_at), set(checkpoints(trial.epochs))
        self.test = engine.prepare(view.unlabelled)
        if view.valid is not None:
            self.valid = engine.prepare(view.valid.x)
            self.ybar = torch.as_tensor(_one_each(view.valid.ybar, trial.seed), device=device)
            labels = torch.as_tensor(view.valid.ybar, device=device)
            judges = self.recording.judges if view.judge is None else self.recording.judges[:1]
            matrices = [torch.as_tensor(one.transition, dtype=torch.float64, device=device) for one in judges]
            each = [_likelihood(labels, matrix) for matrix in matrices]
            self.likelihood = torch.stack(each) if view.judge is None else each[0]

    def __call__(self, engine: Engine) -> None:
        """Record what the runs predict now."""
        recording = self.recording
        recording.losses.append(engine.last_losses(self.index))
        if engine.epoch not in self.looked_at:
            return
        recording.predicted.append(engine.classify(self.index, self.test))
        if not self.held_out:
            return
        logits = engine.predict(self.index, self.valid)
        recording.scores.append(_held_out_scores(logits, self.likelihood))
        if engine.epoch in self.compared:
            recording.tables[engine.epoch] = tables_of(self.ybar, logits.argmax(-1), self.n_classes)


def training_of(job: Job, view: View, device: torch.device) -> Training:
    """What all runs of a job share."""
    first = job.first
    return Training(
        model={"name": first.model, **dict(first.model_options)},
        n_classes=view.n_classes,
        scale=view.scale,
        batch_size=first.batch_size,
        weight_decay=first.weight_decay,
        dtype=getattr(torch, first.dtype),
        device=device,
        epochs=first.epochs,
        recipe=first.recipe,
    )


def run_group(job: Job, view: View, device: torch.device = CPU) -> RunGroup:
    """The runs of a job as engines take them."""
    labels = _labels(view.data, job.first)
    targets = Targets.of(torch.as_tensor(labels), view.n_classes)
    losses, rates, x = list(_run_losses(job, view, labels, device)), [trial.lr for trial in job.trials], view.data.x
    standard = Standard.of(x, view.scale) if job.first.normalise else None  # of what is learnt from, and nothing else
    return RunGroup(x, targets, job.first.seed, rates, losses, standard)


def _labels(data: Weak | Ordinary, trial: Trial) -> IntArray | BoolArray:
    """The labels that a loss may see: true ones only for the upper limit."""
    if isinstance(data, Weak) and not trial.ordinary:
        return data.ybar
    if isinstance(data, Ordinary) and trial.ordinary:
        return data.y
    kind = "ordinary" if trial.ordinary else "complementary"
    raise InputTypeError("data", f"{kind} labels for loss {trial.loss!r}", type(data).__name__)


def _run_losses(job: Job, view: View, labels: IntArray | BoolArray, device: torch.device) -> Iterator[RunLoss]:
    """Runs beside each other that differ in their rate alone share one evaluation of the loss."""
    stop = 0
    for _, same in groupby(job.trials, key=lambda trial: replace(trial, lr=1.0).of_role(Role.OWN)):
        trials = list(same)
        start, stop = stop, stop + len(trials)
        first, estimate = trials[0], estimate_of(view, device)
        context = loss_context(first, labels, view.declared, estimate)
        loss = RunLoss(LOSSES[first.loss], first.loss_options, context, start, stop)
        if first.warm_up:
            early = loss_context(replace(first, assume=EARLY), labels, view.declared)
            loss = loss.after(first.warm_up, early, first.balance or 0.0)
        yield loss


def _judges(job: Job, view: View, device: torch.device) -> list[Belief]:
    """By which Q each run is judged: all by the task's, or each by its own."""
    if view.judge is not None:
        return [view.judge] * len(job.trials)
    labels, estimate = _labels(view.data, job.first), estimate_of(view, device)
    return [own_belief(trial, labels, view.declared, estimate) for trial in job.trials]


def _one_each(labels: IntArray | BoolArray, seed: int) -> IntArray:
    """One of the labels of every sample, by chance: such labels follow the inclusion shares, and are independent."""
    if labels.ndim == 1:
        return labels.astype(np.int64)
    chance = stream(seed, "validation", "one").random(labels.shape)
    chosen: IntArray = np.where(labels, chance, -1.0).argmax(axis=1)
    return chosen


def _likelihood(labels: Tensor, matrix: Tensor) -> Tensor:
    """How likely each class makes the labels of each sample, (n, k): Q[y, ybar], or the product over several."""
    if labels.ndim == 1:
        return matrix.T[labels]
    return torch.exp(labels.double() @ matrix.clamp_min(torch.finfo(torch.float64).tiny).log().T)


def _held_out_scores(logits: Tensor, likelihood: Tensor) -> Tensor:
    """For each run the mean of log (pQ)_ybar over the held-out labels, and its standard error: (runs, 2)."""
    chance = (softmax(logits.double()) * likelihood).sum(-1)
    score = chance.clamp_min(torch.finfo(torch.float64).tiny).log()
    error = score.std(-1, correction=0) / likelihood.shape[-2] ** 0.5
    return torch.stack([score.mean(-1), error], -1)


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
        raise InputTypeError("data", f"complementary labels for loss {AUTO!r}", type(data).__name__)
    return data


def _numbers(trial: Trial, x: torch.Tensor, scale: float) -> np.ndarray:
    """Samples as its users have them: numbers, one row a sample unless its model is for images."""
    rows = x if MODELS[trial.model].family is Family.IMAGE else x.flatten(1)
    return (rows / scale).to(getattr(torch, trial.dtype)).numpy()
