"""Samples whose complementary labels are given: who trains, who is held out, and what true labels tell of Q."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.datasets import Dataset, Split
from wcll.exceptions import InputError
from wcll.labels import to_mask
from wcll.labels.transition import uniform_transition
from wcll.running.sides import Draw, Labelled, pick_groups, tested_side
from wcll.suites.trial import Trial


def draw_given(trial: Trial, dataset: Dataset) -> Draw:
    """All samples that are not tested, with the labels that they have; held-out ones are drawn blindly.

    True labels decide nothing here but which samples can be tested. Where they are all known, Q is counted from those
    of the training samples, for comparison with what is believed of it.
    """
    pool, test = tested_side(trial, dataset)
    if not test.known:
        lacking = f"{int((test.y < 0).sum())} of {len(test)} without"
        remedy = "give x_test and y_test, or true labels of all samples"
        raise InputError(f"dataset {trial.dataset!r}", "true labels of test samples", lacking, remedy)
    if pool.ybar is None:
        raise InputError(f"dataset {trial.dataset!r}", "complementary labels, for labels = 'given'", "none")
    aside = _held_out(trial, pool)
    rows, k = np.arange(len(pool)), len(dataset.classes)
    train = Labelled(rows[~aside], pool.ybar[~aside])
    valid = Labelled(rows[aside], pool.ybar[aside]) if trial.validation else None
    known = pool.y[~aside] if pool.known else None
    sizes = np.ones(k, np.int64) if known is None else np.bincount(known, minlength=k)
    matrix = None if known is None else _counted(known, to_mask(train.ybar, k))
    return Draw(pool, test, train, valid, sizes, matrix, sizes / sizes.sum())


def _held_out(trial: Trial, pool: Split) -> BoolArray:
    """A share of the samples, whole groups at a time, whatever their classes."""
    if not trial.validation:
        return np.zeros(len(pool), dtype=np.bool_)
    alike = replace(pool, y=np.zeros_like(pool.y))
    return pick_groups(alike, trial.validation / (1 + trial.validation), stream(trial.seed, "validation"))


def _counted(y: IntArray, mask: BoolArray) -> FloatArray:
    """The share of each label among those of the samples of each class; of a class that has none, equal shares."""
    k = mask.shape[1]
    counts = np.zeros((k, k))
    np.add.at(counts, y, mask)
    some = counts.sum(axis=1, keepdims=True)
    matrix: FloatArray = np.where(some > 0, counts / np.maximum(some, 1), uniform_transition(k))
    return matrix
