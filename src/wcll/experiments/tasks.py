"""From a data set with true labels to what each party gets of it; from here on no training code can see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from wcll.checks import BoolArray, FloatArray, InputError, IntArray, inverse_transition
from wcll.datasets import Dataset, Split
from wcll.evaluation import Judge
from wcll.experiments.containers import Clean, Declared, Ordinary, Task, Weak
from wcll.experiments.trial import Trial
from wcll.labels.draw import make_complementary
from wcll.labels.imbalance import imbalance_counts, long_tailed_counts, make_imbalance, pick_by_class, step_counts
from wcll.labels.transition import make_transition, noisy_transition, normalised
from wcll.labels.weights import ClassWeights, resample, weights_of_marginal
from wcll.losses import LOSSES, Context
from wcll.streams import stream
from wcll.training.context import assume

TEST_SHARE = 0.25


def make_task(trial: Trial, dataset: Dataset) -> Task:
    """Draw imbalance and complementary labels of one trial; each draw has its own stream of the trial's seed."""
    if trial.classes is not None:
        dataset = dataset.only(trial.classes)
    draw = draw_samples(trial, dataset)
    matrix = make_transition(trial.labels, draw.sizes, random_state=trial.seed)
    matrix = noisy_transition(matrix, rate=trial.noise) if trial.noise else matrix
    if trial.judge == "true":
        inverse_transition(matrix)  # a singular one cannot judge: say so before any training
    y = draw.pool.y[draw.train]
    ybar = np.asarray(make_complementary(y, matrix, random_state=trial.seed), dtype=np.int64)
    rows = _resampled_rows(trial, y, ybar)
    train = Weak(torch.as_tensor(draw.pool.x[draw.train[rows]]), ybar[rows])
    return Task(
        train=train,
        valid=_held_out(trial, draw, matrix) if trial.validation else None,
        test=Clean(torch.as_tensor(draw.test.x), draw.test.y.copy()),
        limit=Ordinary(train.x, y[rows]) if trial.ordinary else None,
        judge=_judge(trial, ybar, draw.sizes, matrix),
        declared=Declared(draw.sizes, matrix),
        scale=dataset.scale,
        data={"fingerprint": dataset.fingerprint, "official": dataset.official, "stamp": dataset.stamp},
    )


@dataclass(frozen=True)
class Draw:
    """Which samples do what."""

    pool: Split
    test: Split
    train: IntArray  #: rows of the pool
    valid: IntArray  #: rows of the pool
    sizes: IntArray  #: training samples of each class


def draw_samples(trial: Trial, dataset: Dataset) -> Draw:
    """Samples for testing, training and validation; groups (the images of a patient) stay on one side throughout."""
    pool, test = dataset.train, dataset.test
    if test is None:
        share = TEST_SHARE if trial.test_share is None else trial.test_share
        chosen = pick_groups(pool, share, stream(trial.seed, "test"))
        pool, test = pool.take(~chosen), pool.take(chosen)
    k, rng = len(dataset.classes), stream(trial.seed, "validation")
    every = np.arange(len(pool.y))
    aside = np.zeros(len(pool.y), dtype=bool)
    if pool.groups is not None and trial.validation:
        aside = pick_groups(pool, trial.validation / (1 + trial.validation), rng)
    have = np.bincount(pool.y[~aside], minlength=k)
    if not have.all():
        raise InputError(f"dataset {trial.dataset!r}", "training samples of every class",
                         f"none of class {dataset.classes[int(have.argmin())]!r}")  # fmt: skip
    sizes, held_out = class_sizes(trial, have, grouped=bool(aside.any()))
    kept = every[~aside][make_imbalance(pool.y[~aside], sizes, random_state=trial.seed)]
    left = every[aside] if aside.any() else np.setdiff1d(every, kept)
    held_out = np.minimum(held_out, np.bincount(pool.y[left], minlength=k)) if aside.any() else held_out
    valid = left[pick_by_class(pool.y[left], held_out, rng)] if trial.validation else left[:0]
    return Draw(pool, test, kept, valid, sizes)


def class_sizes(trial: Trial, have: IntArray, *, grouped: bool = False) -> tuple[IntArray, IntArray]:
    """Training and held-out samples of each class; without ``n_majority``, as many as there are.

    With groups, held-out samples were set aside before; else they come from what training leaves.
    """
    most = trial.n_majority or int(have.max())
    while True:
        sizes = _sizes(trial, have, most)
        held_out = np.maximum(np.rint(sizes * trial.validation), 1).astype(np.int64) * (trial.validation > 0)
        short = np.flatnonzero(sizes + (0 if grouped else held_out) > have)
        if not short.size:
            return sizes, held_out
        k = int(short[0])
        if trial.n_majority or most == 1:
            wanted = f"{sizes[k]} to train and {held_out[k]} to validate of class {k}"
            raise InputError("n_majority", f"at most {have[k]} samples of class {k} in {trial.dataset}", wanted,
                             "ask for fewer, or set validation lower")  # fmt: skip
        most = min(most - 1, int(most * have[k] / (sizes[k] + held_out[k])) + 1)


def _sizes(trial: Trial, have: IntArray, most: int) -> IntArray:
    k, p = len(have), trial.p or 1.0
    if trial.imbalance == "eq6":
        sizes = imbalance_counts(n_majority=most, n_classes=k, minority=trial.minority or (), p=p)
    elif trial.imbalance == "long-tailed":
        sizes = long_tailed_counts(n_majority=most, n_classes=k, p=p)
    elif trial.imbalance == "step":
        sizes = step_counts(n_majority=most, n_classes=k, p=p)
    elif trial.n_majority:
        sizes = np.full(k, most)
    else:  # the classes as they are
        sizes = np.rint(have * (most / have.max())).astype(np.int64)
    return np.maximum(sizes, 1)


def pick_groups(pool: Split, share: float, rng: np.random.Generator) -> BoolArray:
    """A share of the samples of every class, whole groups at a time (without groups: samples)."""
    groups = np.arange(len(pool.y)) if pool.groups is None else pool.groups
    _, first, member, count = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    label = pool.y[first]
    chosen = np.zeros(len(first), dtype=bool)
    for k in np.unique(label):
        order = rng.permutation(np.flatnonzero(label == k))
        before = np.cumsum(count[order]) - count[order]
        chosen[order[before + count[order] / 2 <= share * count[order].sum()]] = True
    if not chosen.any():
        raise InputError("test_share", "a share that leaves samples for testing", share)
    picked: BoolArray = chosen[member]
    return picked


def loss_context(trial: Trial, task: Task, labels: IntArray) -> Context:
    """What the loss of a trial is told: what its labels tell, and what the trial says is declared."""
    totals = np.bincount(labels, minlength=task.n_classes).astype(np.float64)
    told = task.declared.transition if trial.assume == "true" else trial.assume
    spec = LOSSES[trial.loss]
    return assume(totals, told, _weights(trial, totals, task.declared.sizes), loss=trial.loss).context(spec)


def _weights(trial: Trial, totals: FloatArray, sizes: IntArray) -> ClassWeights | None:
    scheme = trial.weights
    if scheme == "auto":
        scheme = "wcll" if trial.loss == "wcll" else None
    if scheme is None:
        return None
    options: dict[str, Any] = {k: getattr(trial, k) for k in ("pi", "bias", "beta") if getattr(trial, k) is not None}
    marginal, n = normalised(totals), float(totals.sum())
    return weights_of_marginal(scheme, marginal, n, sizes=sizes, random_state=trial.seed, **options)


def _held_out(trial: Trial, draw: Draw, matrix: FloatArray) -> Weak:
    """Samples that training left out, labelled by the same Q from a stream of their own."""
    y, rng = draw.pool.y[draw.valid], stream(trial.seed, "validation", "labels")
    ybar = np.asarray(make_complementary(y, matrix, random_state=rng), dtype=np.int64)
    return Weak(torch.as_tensor(draw.pool.x[draw.valid]), ybar)


def _resampled_rows(trial: Trial, y: IntArray, ybar: IntArray) -> IntArray:
    """Which training samples are used, and how often."""
    every = np.arange(len(y))
    if trial.resample is None:
        return every
    strategy: Any
    strategy, _, by_y = trial.resample.partition("-")
    rows, _ = resample(every, ybar, by=y if by_y else None, strategy=strategy, random_state=trial.seed)
    return rows


def _judge(trial: Trial, ybar: IntArray, sizes: IntArray, matrix: FloatArray) -> Judge:
    """What selection is told, from the labels as they were drawn: held-out ones are not resampled."""
    totals = np.bincount(ybar, minlength=len(sizes)).astype(np.float64)
    if trial.judge == "true":
        return Judge.known(matrix, sizes / sizes.sum())
    return Judge.inverse_size(totals) if trial.judge == "inverse-size" else Judge.uniform(totals)
