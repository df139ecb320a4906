"""Train/test splits of a trial; groups are never split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.datasets import Dataset, Split
from wcll.exceptions import InputError
from wcll.experiments.trial import Trial

TEST_SHARE = 0.25


@dataclass(frozen=True)
class Labelled:
    """Rows of the pool and their complementary labels."""

    rows: IntArray
    ybar: IntArray | BoolArray  #: class indices, or a mask where samples have several


@dataclass(frozen=True)
class Draw:
    """Which samples do what, and how their labels came about."""

    pool: Split
    test: Split
    train: Labelled
    valid: Labelled | None
    sizes: IntArray  #: alpha, the class sizes that the imbalance declares
    transition: FloatArray | None  #: P(ybar | y) of the labels; None: nobody knows
    shares: FloatArray  #: P(y) of the samples


def tested_side(trial: Trial, dataset: Dataset) -> tuple[Split, Split]:
    """What may be trained on, and what is tested: the data set's own test set, a fold, so many a class, or a share."""
    if trial.folds is not None:
        chosen = _fold(trial, dataset)
    elif trial.test_per_class is not None:
        return _test_of(trial.test_per_class, dataset, stream(trial.seed, "test"))
    elif dataset.test is not None:
        return dataset.train, dataset.test
    else:
        share = TEST_SHARE if trial.test_share is None else trial.test_share
        chosen = pick_groups(dataset.train, share, stream(trial.seed, "test"))
    return dataset.train.take(~chosen), dataset.train.take(chosen)


def _fold(trial: Trial, dataset: Dataset) -> BoolArray:
    """The part of the samples, whole groups at a time, that is this trial's turn: the same parts for every seed."""
    pool, folds = dataset.train, trial.folds or 1
    if dataset.test is not None:
        raise InputError("folds", "a data set without a test set of its own", repr(dataset.name))
    groups = np.arange(len(pool)) if pool.groups is None else pool.groups
    names, member = np.unique(groups, return_inverse=True)
    if len(names) < folds:
        raise InputError("folds", f"at most {len(names)}, as {dataset.name} has samples or groups", folds)
    turn = stream(0, "test").permutation(len(names)) % folds
    chosen: BoolArray = turn[member] == trial.seed % folds
    return chosen


def _test_of(n: int, dataset: Dataset, rng: np.random.Generator) -> tuple[Split, Split]:
    """The pool without the groups that are tested, and ``n`` test samples of every class."""
    if dataset.test is not None:
        raise InputError("test_per_class", "a data set without a test set of its own", repr(dataset.name))
    have = np.bincount(dataset.train.y, minlength=len(dataset.classes))
    if have.min() < n:
        rarest = dataset.classes[int(have.argmin())]
        raise InputError("test_per_class", f"at most {have.min()}, as class {rarest!r} of {dataset.name} has", n)
    tested, left = pick_per_class(dataset.train, n, rng)
    return dataset.train.take(left), dataset.train.take(tested)


def pick_per_class(pool: Split, n: int, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """``n`` samples of every class, whole groups at a time, and what is in none of their groups.

    Groups are taken in one random order. Where the last of a class has more samples than are wanted, the surplus is in
    neither part.
    """
    groups = np.arange(len(pool.y)) if pool.groups is None else pool.groups
    names, member = np.unique(groups, return_inverse=True)
    rank = rng.permutation(len(names))[member]
    tested = np.zeros(len(pool.y), dtype=bool)
    for k in np.unique(pool.y):
        rows = np.flatnonzero(pool.y == k)
        tested[rows[np.argsort(rank[rows], kind="stable")[:n]]] = True
    left: BoolArray = ~np.isin(member, member[tested])
    return tested, left


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
