"""Which samples do what, and the complementary labels they are given; each draw has its own stream of the seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.datasets import Dataset, Split
from wcll.exceptions import InputError
from wcll.labels.encoding import inclusion_shares
from wcll.labels.imbalance import imbalance_counts, long_tailed_counts, step_counts
from wcll.labels.sampling import make_complementary
from wcll.labels.transition import (
    complementary_prior,
    make_transition,
    noisy_transition,
    normalised,
    pick_by_class,
    select_by_marginal,
    selected_joint,
)
from wcll.running.given import draw_given
from wcll.running.sides import Draw, Labelled, pick_groups, tested_side
from wcll.suites.settings import BY_LABEL
from wcll.suites.trial import Trial

FEWER = "ask for fewer, or set validation lower"


def draw_samples(trial: Trial, dataset: Dataset) -> Draw:
    r"""Samples for testing, training and validation; groups (the images of a patient) stay on one side throughout.

    The trial's imbalance declares class sizes :math:`\alpha`, of which Q is made; ``imbalance_of`` says what has them:

    - ``y``: the true classes. Class k has :math:`\alpha_k` images, which are labelled by Q.
    - ``selector``: Q alone. Every class has :math:`\max_k \alpha_k` images.
    - ``ybar``: the labels. As many images of every class as there are of the smallest are labelled by Q; of these,
      :math:`\sum_k \alpha_k` are kept, in proportion to :math:`\alpha_{\bar y}`.
    - ``ybar-inverse``: likewise in proportion to :math:`1 / \alpha_{\bar y}`, the shares of Eq. 7.

    What is kept by its label follows another Q than the one it was drawn from, and has other class shares:
    :func:`wcll.labels.selected_joint` has both, for large samples, and they are what ``transition`` and ``shares`` are.
    """
    if trial.labels == "given":
        return draw_given(trial, dataset)
    if not dataset.train.known:
        expected, n = "true labels of every sample, from which labels are drawn", int((dataset.train.y < 0).sum())
        raise InputError(f"dataset {trial.dataset!r}", expected, f"{n} without")
    pool, test, aside, rng = _sides(trial, dataset)
    every, k = np.arange(len(pool.y)), len(dataset.classes)
    have = np.bincount(pool.y[~aside], minlength=k)
    if not have.all():
        absent = dataset.classes[int(have.argmin())]
        raise InputError(f"dataset {trial.dataset!r}", "training samples of every class", f"none of class {absent!r}")
    sizes, held_out = class_sizes(trial, have, grouped=bool(aside.any()))
    matrix = make_transition(_own_matrix(trial, k) or trial.labels, sizes, random_state=trial.seed)
    matrix = noisy_transition(matrix, rate=trial.noise) if trial.noise else matrix
    target = _label_shares(trial, sizes)
    own = [stream(trial.seed, *name) for name in (("imbalance",), ("labels",), ("labels", "kept"))]
    train = _labelled(trial, pool.y, every[~aside], sizes, matrix, target, own)
    valid = None
    if trial.validation:
        left = every[aside] if aside.any() else np.setdiff1d(every, train.rows)
        own = [rng, *(stream(trial.seed, "validation", name) for name in ("labels", "kept"))]
        valid = _labelled(trial, pool.y, left, held_out, matrix, target, own)
    if target is None:
        shares = normalised(_images(trial, sizes).astype(np.float64))
    else:
        joint = selected_joint(matrix, target, np.full(k, 1 / k))
        matrix, shares = normalised(joint), joint.sum(axis=1)
    if trial.labels_per_sample is not None:
        matrix = inclusion_shares(matrix, trial.labels_per_sample)
    return Draw(pool, test, train, valid, sizes, matrix, shares)


def _own_matrix(trial: Trial, k: int) -> list[tuple[float, ...]] | None:
    """The trial's own Q, if it has one of the right size."""
    if trial.matrix is not None and len(trial.matrix) != k:
        raise InputError("matrix", f"{k} rows, one for each class of {trial.dataset}", len(trial.matrix))
    return None if trial.matrix is None else list(trial.matrix)


def _sides(trial: Trial, dataset: Dataset) -> tuple[Split, Split, BoolArray, np.random.Generator]:
    """The pool, the test set, what of the pool is set aside for validation (groups only), and validation's stream."""
    pool, test = tested_side(trial, dataset)
    rng = stream(trial.seed, "validation")
    aside = np.zeros(len(pool.y), dtype=bool)
    if pool.groups is not None and trial.validation:
        aside = pick_groups(pool, trial.validation / (1 + trial.validation), rng)
    return pool, test, aside, rng


def class_sizes(trial: Trial, have: IntArray, *, grouped: bool = False) -> tuple[IntArray, IntArray]:
    """Class sizes as declared, to train and to hold out; without ``n_majority``, as large as samples allow.

    With groups, held-out samples were set aside before; else they come from what training leaves.
    """
    most = trial.n_majority or int(have.max())
    while True:
        sizes = _sizes(trial, have, most)
        held_out = np.maximum(np.rint(sizes * trial.validation), 1).astype(np.int64) * (trial.validation > 0)
        if trial.imbalance_of in BY_LABEL:  # the labels will show whether there are enough of each
            return sizes, held_out
        train, valid = _images(trial, sizes), _images(trial, held_out)
        needed = train + (0 if grouped else valid)
        short = np.flatnonzero(needed > have)
        if not short.size:
            return sizes, held_out
        k = int(short[0])
        if trial.n_majority or most == 1:
            wanted = f"{train[k]} to train and {valid[k]} to validate of class {k}"
            most_there = f"at most {have[k]} samples of class {k} in {trial.dataset}"
            raise InputError("n_majority", most_there, wanted, FEWER)
        most = min(most - 1, int(most * have[k] / needed[k]) + 1)


def _sizes(trial: Trial, have: IntArray, most: int) -> IntArray:
    k, p = len(have), trial.p or 1.0
    if trial.imbalance == "eq6":
        sizes = imbalance_counts(n_majority=most, n_classes=k, minority=trial.minority or (), p=p)
    elif trial.imbalance == "long-tailed":
        sizes = long_tailed_counts(n_majority=most, n_classes=k, p=p)
    elif trial.imbalance == "step":
        sizes = step_counts(n_majority=most, n_classes=k, p=p)
    elif trial.shares is not None:
        sizes = _by_shares(trial.shares, k, most)
    elif trial.n_majority:
        sizes = np.full(k, most)
    else:  # the classes as they are
        sizes = np.rint(have * (most / have.max())).astype(np.int64)
    return np.maximum(sizes, 1)


def _by_shares(shares: Sequence[float], k: int, most: int) -> IntArray:
    """Sizes in proportion to shares, the largest of which is ``most``."""
    if len(shares) != k:
        raise InputError("shares", f"one for each of {k} classes", f"{len(shares)} of them")
    return np.rint(np.asarray(shares) * (most / max(shares))).astype(np.int64)


def _images(trial: Trial, sizes: IntArray) -> IntArray:
    """How many images of each true class there are: the declared sizes, or equally many."""
    return sizes if trial.imbalance_of is None else np.full_like(sizes, sizes.max())


def _label_shares(trial: Trial, sizes: IntArray) -> FloatArray | None:
    """The shares in which labels are kept, where they are."""
    if trial.imbalance_of not in BY_LABEL:
        return None
    return complementary_prior(sizes) if trial.imbalance_of == "ybar-inverse" else normalised(sizes.astype(np.float64))


def _labelled(
    trial: Trial,
    y: IntArray,
    rows: IntArray,
    sizes: IntArray,
    matrix: FloatArray,
    target: FloatArray | None,
    streams: Sequence[np.random.Generator],
) -> Labelled:
    """Some of ``rows`` with labels; ``streams`` draw images, labels, and which of them are kept."""
    have = np.bincount(y[rows], minlength=len(sizes))
    if target is None:
        images, n_labels = np.minimum(_images(trial, sizes), have), trial.labels_per_sample or 1
        return _labelled_by_q(y, rows, images, matrix, streams, n_labels)
    try:
        drawn = _labelled_by_q(y, rows, np.full_like(have, have.min()), matrix, streams)
        kept = select_by_marginal(drawn.ybar, target, n=int(sizes.sum()), random_state=streams[2])
    except InputError as error:
        expected = f"{error.expected} (by complementary label) in {trial.dataset}"
        raise InputError("n_majority", expected, error.got, FEWER) from None
    return Labelled(drawn.rows[kept], drawn.ybar[kept])


def _labelled_by_q(
    y: IntArray,
    rows: IntArray,
    images: IntArray,
    matrix: FloatArray,
    streams: Sequence[np.random.Generator],
    n_labels: int = 1,
) -> Labelled:
    chosen = rows[pick_by_class(y[rows], images, streams[0])]
    return Labelled(chosen, make_complementary(y[chosen], matrix, n_labels=n_labels, random_state=streams[1]))
