"""Training: it is given complementary labels, and test images without labels, and records what models predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from wcll.checks import InputError, InputTypeError, IntArray
from wcll.evaluation import Judge, checkpoints
from wcll.evaluation.confusion import tables_of
from wcll.losses import LOSSES, Context
from wcll.losses.softmax import softmax
from wcll.running.containers import Ordinary, Weak
from wcll.suites.trial import Trial
from wcll.training.engines import Engine, RunGroup, RunLoss, Training, make_engine

Progress = Callable[[int], None]  #: told how many epochs of runs were just done


@dataclass(frozen=True)
class Job:
    """Trials that share data and shape, and all that their training may see."""

    trials: Sequence[Trial]
    contexts: Sequence[Context]
    data: Weak | Ordinary
    valid: Weak | None
    unlabelled: Tensor  #: the test images: nothing here holds their labels
    judge: Judge
    scale: float  #: by which samples are divided

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.judge.transition)


@dataclass
class Recording:
    """What a stack of runs leaves behind; axes are (epochs, runs, ...)."""

    parameters: dict[str, Tensor] = field(default_factory=dict)  #: at the end, (runs, ...)
    losses: list[Tensor] = field(default_factory=list)  #: of each epoch's last batch
    predicted: list[Tensor] = field(default_factory=list)  #: of the unlabelled test images, one byte each
    scores: list[Tensor] = field(default_factory=list)  #: held-out log-likelihood and its standard error
    tables: dict[int, Tensor] = field(default_factory=dict)  #: epoch -> N[ybar, prediction] of each run


class Saves(Protocol):
    """Keeps a training, so that another process can go on with it."""

    def load(self, engine: Engine, recordings: Sequence[Recording], device: torch.device) -> int:
        """Put both where they were; returns how many epochs they have."""

    def maybe_save(self, epoch: int, engine: Engine, recordings: Sequence[Recording]) -> None:
        """Save, from time to time."""


def train(
    jobs: Sequence[Job],
    device: torch.device,
    *,
    progress: Progress = lambda done: None,
    plain: bool = False,
    saves: Saves | None = None,
) -> list[Recording]:
    """Train jobs of equal shape in step, and record predictions after every epoch.

    ``plain`` trains each by a plain loop with autograd; else the fastest engine for the model and the device does.
    """
    first, runs = jobs[0].trials[0], sum(len(job.trials) for job in jobs)
    engine = make_engine([_group(job) for job in jobs], _training(jobs[0], device), plain=plain)
    recorders = [_Recorder(engine, i, job, device) for i, job in enumerate(jobs)]
    recordings = [recorder.recording for recorder in recorders]
    done = saves.load(engine, recordings, device) if saves else 0
    progress(done * runs)
    for epoch in range(done + 1, first.epochs + 1):
        engine.run_epoch()
        for recorder in recorders:
            recorder.after(epoch)
        progress(runs)
        if saves and epoch < first.epochs:
            saves.maybe_save(epoch, engine, recordings)
    return [recorder.finish() for recorder in recorders]


def try_out(job: Job, device: torch.device) -> None:
    """One step of every run, so that settings that cannot work fail now; nothing of it is kept."""
    try:
        engine = make_engine([_group(job)], _training(job, device), plain=True)
        engine.run_epoch()
        engine.predict(0, engine.prepare(job.unlabelled[:2]))
    except InputError:
        raise
    except (MemoryError, RuntimeError, TypeError, OverflowError) as error:
        first = job.trials[0]
        raise InputError(f"model {first.model!r}, batch_size {first.batch_size}", "settings that can be trained",
                         f"{type(error).__name__}: {error}") from None  # fmt: skip


def head(data: Weak | Ordinary, n: int) -> Weak | Ordinary:
    """The first samples."""
    if isinstance(data, Weak):
        return Weak(data.x[:n], data.ybar[:n])
    return Ordinary(data.x[:n], data.y[:n])


class _Recorder:
    """Looks at the runs of one job after every epoch; on a GPU nothing waits for what it sees."""

    def __init__(self, engine: Engine, index: int, job: Job, device: torch.device) -> None:
        self.engine, self.index, self.job = engine, index, job
        self.recording = Recording()
        self.compared = set(checkpoints(job.trials[0].epochs))
        self.test = engine.prepare(job.unlabelled)
        if job.valid is not None:
            self.valid = engine.prepare(job.valid.x)
            self.ybar = torch.as_tensor(job.valid.ybar, device=device)
            matrix = torch.as_tensor(job.judge.transition, dtype=torch.float64, device=device)
            self.likelihood = matrix.T[self.ybar]  # Q[:, ybar]: (n, k)

    def after(self, epoch: int) -> None:
        """Record what the runs predict now."""
        engine, recording = self.engine, self.recording
        recording.losses.append(engine.last_losses(self.index))
        recording.predicted.append(engine.classify(self.index, self.test))
        if self.job.valid is None:
            return
        logits = engine.predict(self.index, self.valid)
        recording.scores.append(_held_out_scores(logits, self.likelihood))
        if epoch in self.compared:
            recording.tables[epoch] = tables_of(self.ybar, logits.argmax(-1), self.job.n_classes)

    def finish(self) -> Recording:
        """The recording, with the parameters that the runs ended with."""
        self.recording.parameters = self.engine.parameters(self.index)
        return self.recording


def _training(job: Job, device: torch.device) -> Training:
    first = job.trials[0]
    return Training(
        model={"name": first.model, **dict(first.model_options)},
        n_classes=job.n_classes,
        scale=job.scale,
        batch_size=first.batch_size,
        weight_decay=first.weight_decay,
        dtype=getattr(torch, first.dtype),
        device=device,
        epochs=first.epochs,
    )


def _group(job: Job) -> RunGroup:
    labels = torch.as_tensor(_labels(job.data, job.trials[0]))
    rates = [trial.lr for trial in job.trials]
    return RunGroup(job.data.x, labels, job.trials[0].seed, rates, list(_run_losses(job)))


def _labels(data: Weak | Ordinary, trial: Trial) -> IntArray:
    """The labels that a loss may see: true ones only for the upper limit."""
    if isinstance(data, Weak) and not trial.ordinary:
        return data.ybar
    if isinstance(data, Ordinary) and trial.ordinary:
        return data.y
    kind = "ordinary" if trial.ordinary else "complementary"
    raise InputTypeError("data", f"{kind} labels for loss {trial.loss!r}", type(data).__name__)


def _run_losses(job: Job) -> Iterator[RunLoss]:
    """Runs beside each other that differ in their rate alone share one evaluation of the loss."""
    stop = 0
    same = groupby(job.trials, key=lambda t: (t.loss, t.loss_options, t.assume, t.weights, t.pi, t.bias, t.beta))
    for (loss, options, *_), run in same:
        start, stop = stop, stop + len(list(run))
        yield RunLoss(LOSSES[loss], options, job.contexts[start], start, stop)


def _held_out_scores(logits: Tensor, likelihood: Tensor) -> Tensor:
    """For each run the mean of log (pQ)_ybar over the held-out labels, and its standard error: (runs, 2)."""
    chance = (softmax(logits.double()) * likelihood).sum(-1)
    score = chance.clamp_min(torch.finfo(torch.float64).tiny).log()
    error = score.std(-1, correction=0) / len(likelihood) ** 0.5
    return torch.stack([score.mean(-1), error], -1)
