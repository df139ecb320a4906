"""From a data set with true labels to what each party gets of it; from here on no training code can see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray, inverse_transition
from wcll.datasets import Dataset, Split
from wcll.exceptions import InputError
from wcll.labels import Belief, to_mask, transition_from_pairs
from wcll.labels.counts import label_totals
from wcll.labels.families import EstimatedTransition
from wcll.labels.weights import resample, weights_of_marginal
from wcll.losses import LOSSES, Context
from wcll.running.containers import Clean, Declared, Ordinary, Task, Weak
from wcll.running.sampling import draw_samples
from wcll.running.sides import Draw, Labelled
from wcll.suites.trial import Trial

Estimate = Callable[[Trial], EstimatedTransition]
MOST_NAMED = 100  #: classes whose names every run keeps, for pages that show them


def make_task(trial: Trial, dataset: Dataset) -> Task:
    """Draw samples and complementary labels of one trial, and give each party its part."""
    if trial.classes is not None:
        dataset = dataset.only(trial.classes)
    if trial.pixels is not None:
        dataset = dataset.reduced(trial.pixels)
    draw = draw_samples(trial, dataset)
    if trial.ordinary and not draw.pool.known:
        raise InputError(f"dataset {trial.dataset!r}", f"true labels of all samples, for loss {trial.loss!r}", "some")
    if trial.judge == "true":
        inverse_transition(_known_q(draw.transition))  # a singular one cannot judge: say so before any training
    y, ybar = draw.pool.y[draw.train.rows], draw.train.ybar
    used = _resampled_rows(trial, y, ybar)
    train = _weak(draw.pool, Labelled(draw.train.rows[used], ybar[used]))
    return Task(
        train=train,
        valid=None if draw.valid is None else _weak(draw.pool, draw.valid),
        test=Clean(torch.as_tensor(draw.test.x), draw.test.y.copy()),
        limit=Ordinary(train.x, y[used]) if trial.ordinary else None,
        judge=_judge(trial, draw),
        declared=Declared(draw.sizes, draw.transition, _of_pairs(trial, draw)),
        scale=dataset.scale,
        data={
            "fingerprint": dataset.fingerprint,
            "official": dataset.official,
            "stamp": dataset.stamp,
            **({"classes": list(dataset.classes)} if len(dataset.classes) <= MOST_NAMED else {}),
        },
    )


def _weak(pool: Split, some: Labelled) -> Weak:
    groups = None if pool.groups is None else pool.groups[some.rows]
    return Weak(torch.as_tensor(pool.x[some.rows]), some.ybar, groups)


def loss_context(
    trial: Trial, labels: IntArray | BoolArray, declared: Declared, estimate: Estimate | None = None
) -> Context:
    """What the loss of a trial is told: what its labels tell, and what the trial says is declared.

    ``estimate`` makes a Q that takes more than label counts, if the trial assumes one.
    """
    belief = own_belief(trial, labels, declared, estimate)
    weights = None
    if trial.weighting is not None:
        given = {name: getattr(trial, name) for name in ("pi", "bias", "beta")}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        options |= {"sizes": declared.sizes, "random_state": trial.seed}
        weights = weights_of_marginal(trial.weighting, belief.marginal, float(len(labels)), **options)
    return LOSSES[trial.loss].told(belief.with_weights(weights))


def own_belief(
    trial: Trial, labels: IntArray | BoolArray, declared: Declared, estimate: Estimate | None = None
) -> Belief:
    """What a trial assumes of Q, as its labels, and what is declared, tell it."""
    told: Any = declared.of_pairs if trial.assume == "pairs" else trial.assume
    if trial.assume == "true":
        told = _known_q(declared.transition)
    elif trial.assume in ("repeated", "model"):
        assert estimate is not None
        told = estimate(trial)
    return Belief.of(told, label_totals(labels, len(declared.sizes), np.ones(len(labels))))


def _known_q(transition: FloatArray | None) -> FloatArray:
    """The true Q, if anybody knows it."""
    if transition is None:
        raise InputError("transition", "true labels of every training sample, which tell the true Q", "none")
    return transition


def _of_pairs(trial: Trial, draw: Draw) -> EstimatedTransition | None:
    """Q by the true classes of a few training samples, which were drawn once and for all; each label counts."""
    if trial.pairs is None:
        return None
    k, y = len(draw.sizes), draw.pool.y[draw.train.rows]
    known = np.flatnonzero(y >= 0)
    if trial.pairs > len(known):
        raise InputError("pairs", f"at most the {len(known)} training samples whose class is known", trial.pairs)
    mask = to_mask(draw.train.ybar, k)
    some = known[stream(trial.seed, "labels", "pairs").permutation(len(known))[: trial.pairs]]
    sample, label = np.nonzero(mask[some])
    return transition_from_pairs(y[some][sample], label, k, totals=mask.sum(axis=0))


def _resampled_rows(trial: Trial, y: IntArray, ybar: IntArray | BoolArray) -> IntArray:
    """Which training samples are used, and how often."""
    every = np.arange(len(y))
    if trial.resample is None:
        return every
    strategy: Any
    strategy, _, by_y = trial.resample.partition("-")
    rows, _ = resample(every, ybar, by=y if by_y else None, strategy=strategy, random_state=trial.seed)
    return rows


def _judge(trial: Trial, draw: Draw) -> Belief | None:
    """What selection is told, from the labels as they were drawn: held-out ones are not resampled."""
    if trial.judge == "own":
        return None
    if trial.judge == "true":
        return Belief.true(_known_q(draw.transition), draw.shares)
    return Belief.of(trial.judge, label_totals(draw.train.ybar, len(draw.sizes), np.ones(len(draw.train.ybar))))
