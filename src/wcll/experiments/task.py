"""The data of a trial: who trains on which complementary labels, and with which Q; training sees no true label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray, inverse_transition
from wcll.datasets import Dataset, Split
from wcll.exceptions import InputError
from wcll.experiments.splits import Draw, Labelled, pick_groups, tested_side
from wcll.experiments.trial import BY_LABEL, Trial
from wcll.labels import Belief, transition_from_pairs
from wcll.labels.counts import label_totals
from wcll.labels.encoding import inclusion_shares, to_mask
from wcll.labels.families import EstimatedTransition
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
    uniform_transition,
)
from wcll.labels.weights import resample, weights_of_marginal
from wcll.losses import LOSSES, Context


@dataclass(frozen=True, eq=False)
class Weak:
    """What training and selection get: images and complementary labels."""

    x: Tensor
    ybar: IntArray | BoolArray  #: class indices, or a mask where samples have several
    groups: IntArray | None = None  #: such as patients, where there are such


@dataclass(frozen=True)
class Ordinary:
    """What the upper limit learns from: the training images with their true labels. No other method gets it."""

    x: Tensor
    y: IntArray


@dataclass(frozen=True)
class Clean:
    """What evaluation gets: test images and true labels. Training is given its images alone."""

    x: Tensor
    y: IntArray


@dataclass(frozen=True)
class Declared:
    """What the experimenter declares of the labels, for methods that are told: class sizes and the true Q.

    Of several labels that are drawn without replacement Q has the inclusion shares.
    """

    sizes: IntArray
    transition: FloatArray | None  #: None: nobody knows it
    of_pairs: EstimatedTransition | None = None  #: Q as a few true pairs tell it, for methods that are told these


@dataclass(frozen=True)
class Task:
    """One draw of the data: what each party gets of it."""

    train: Weak
    valid: Weak | None
    test: Clean
    limit: Ordinary | None  #: only for the upper limit
    judge: Belief | None  #: what selection believes of the held-out labels; None: what each run does
    declared: Declared
    scale: float  #: samples are kept as stored; divided by this they are numbers from 0 to 1 (for images)
    data: dict[str, Any]  #: which data: fingerprint, official or not, names of classes

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.declared.sizes)

    @property
    def view(self) -> View:
        """What training may see."""
        data = self.train if self.limit is None else self.limit
        return View(data, self.valid, self.test.x, self.judge, self.declared, self.scale)


@dataclass(frozen=True)
class View:
    """What training may see of a task: no test labels, and true labels of training samples for the upper limit only."""

    data: Weak | Ordinary
    valid: Weak | None
    unlabelled: Tensor  #: the test images
    judge: Belief | None  #: what selection believes of the held-out labels; None: what each run does
    declared: Declared
    scale: float

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.declared.sizes)


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
