"""From a data set with true labels to what each party gets of it; from here on no training code can see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from wcll.checks import FloatArray, InputError, IntArray
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
    pool, test = (dataset.train, dataset.test) if dataset.test else split_test(dataset.train, trial)
    n_classes = len(dataset.classes)
    have = np.bincount(pool.y, minlength=n_classes)
    sizes = class_sizes(trial, have)
    held_out = np.rint(sizes * trial.validation).astype(np.int64)
    held_out = np.maximum(held_out, 1) if trial.validation else held_out
    _check_enough(trial.dataset, have, sizes, held_out)
    kept = make_imbalance(pool.y, sizes, random_state=trial.seed)
    matrix = make_transition(trial.labels, sizes, random_state=trial.seed)
    matrix = noisy_transition(matrix, rate=trial.noise) if trial.noise else matrix
    y = pool.y[kept]
    ybar = np.asarray(make_complementary(y, matrix, random_state=trial.seed), dtype=np.int64)
    kept, y, ybar = _resampled(trial, kept, y, ybar)

    def images(split: Split, rows: Any) -> torch.Tensor:
        return torch.as_tensor(split.x[rows])

    train = Weak(images(pool, kept), ybar)
    return Task(
        train=train,
        valid=_held_out(trial, pool, kept, held_out, matrix, images) if trial.validation else None,
        test=Clean(images(test, slice(None)), test.y.copy()),
        limit=Ordinary(train.x, y) if trial.ordinary else None,
        judge=_judge(trial, ybar, sizes, matrix),
        declared=Declared(sizes, matrix),
        scale=dataset.scale,
        data={"fingerprint": dataset.fingerprint, "official": dataset.official},
    )


def class_sizes(trial: Trial, have: IntArray) -> IntArray:
    """How many training samples of each class; without ``n_majority``, as many as leave enough for validation."""
    k = len(have)
    if trial.imbalance == "none":
        relative = np.ones(k) if trial.n_majority else have / have.max()
    elif trial.imbalance == "eq6":
        relative = imbalance_counts(n_majority=10**6, n_classes=k, minority=trial.minority or (), p=trial.p or 1) / 1e6
    elif trial.imbalance == "long-tailed":
        relative = long_tailed_counts(n_majority=10**6, n_classes=k, p=trial.p or 1) / 1e6
    else:
        relative = step_counts(n_majority=10**6, n_classes=k, p=trial.p or 1) / 1e6
    most = trial.n_majority or int((have / relative / (1 + trial.validation)).min())
    return np.maximum(np.rint(relative * most), 1).astype(np.int64)


def split_test(pool: Split, trial: Trial) -> tuple[Split, Split]:
    """A test set where there is no official one: a share of every class, whole groups at a time."""
    groups = np.arange(len(pool.y)) if pool.groups is None else pool.groups
    _, first, member, count = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    label = pool.y[first]
    in_test = np.zeros(len(first), dtype=bool)
    rng = stream(trial.seed, "test")
    share = TEST_SHARE if trial.test_share is None else trial.test_share
    for k in np.unique(label):
        order = rng.permutation(np.flatnonzero(label == k))
        before = np.cumsum(count[order]) - count[order]
        in_test[order[before + count[order] / 2 <= share * count[order].sum()]] = True
    chosen = in_test[member]
    if not chosen.any():
        raise InputError("test_share", "a share that leaves samples for testing", share)
    return Split(pool.x[~chosen], pool.y[~chosen]), Split(pool.x[chosen], pool.y[chosen])


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


Images = Callable[[Split, Any], torch.Tensor]


def _held_out(trial: Trial, pool: Split, kept: IntArray, counts: IntArray, matrix: FloatArray, images: Images) -> Weak:
    """Samples that imbalance left out, labelled by the same Q from the stream of their own."""
    rng = stream(trial.seed, "validation")
    left = np.setdiff1d(np.arange(len(pool.y)), kept)
    rows = left[pick_by_class(pool.y[left], counts, rng)]
    return Weak(images(pool, rows), np.asarray(make_complementary(pool.y[rows], matrix, random_state=rng)))


def _resampled(trial: Trial, kept: IntArray, y: IntArray, ybar: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    if trial.resample is None:
        return kept, y, ybar
    strategy: Any
    strategy, _, by_y = trial.resample.partition("-")
    rows, _ = resample(np.arange(len(kept)), ybar, by=y if by_y else None, strategy=strategy, random_state=trial.seed)
    return kept[rows], y[rows], ybar[rows]


def _judge(trial: Trial, ybar: IntArray, sizes: IntArray, matrix: FloatArray) -> Judge:
    totals = np.bincount(ybar, minlength=len(sizes)).astype(np.float64)
    if trial.judge == "true":
        return Judge.known(matrix, sizes / sizes.sum())
    return Judge.inverse_size(totals) if trial.judge == "inverse-size" else Judge.uniform(totals)


def _check_enough(name: str, have: IntArray, sizes: IntArray, held_out: IntArray) -> None:
    short = np.flatnonzero(sizes + held_out > have)
    if short.size:
        k = int(short[0])
        wanted = f"{sizes[k]} to train and {held_out[k]} to validate of class {k}"
        raise InputError("n_majority", f"at most {have[k]} samples of class {k} in {name}", wanted,
                         "ask for fewer, or set validation lower")  # fmt: skip
