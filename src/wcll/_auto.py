"""Model selection by held-out complementary labels: Q, labels of near samples, model and length of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from math import ceil
from time import monotonic
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.model_selection import GroupKFold, KFold
from torch import Tensor

from wcll._neighbors import N_NEIGHBORS, components, label_shares, nearest_neighbors
from wcll._random import stream
from wcll._validation import BoolArray, FloatArray, IntArray
from wcll.evaluation import LabelFreeConfusion, complementary_table, label_free_confusion
from wcll.exceptions import InputError
from wcll.labels import Belief, check_table
from wcll.labels.counts import label_totals
from wcll.labels.cross_fitting import transition_from_predictions
from wcll.labels.encoding import to_mask
from wcll.labels.families import EARLY, FAMILIES, EstimatedTransition
from wcll.labels.label_model import q_in_words
from wcll.losses import LOSSES, Context, Targets
from wcll.losses.registry import LIKELIHOOD
from wcll.models.registry import Family, ModelChoice, family_of
from wcll.training import Engine, Recipe, RunGroup, RunLoss, Training, make_engine, torch_threads, train
from wcll.training.distributed import ranks
from wcll.training.recipe import PLAIN
from wcll.training.runs import training_threads

LOSS = LIKELIHOOD  #: the likelihood of labels under Q: the one loss whose held-out value says how good a model is
LINEAR_LR, NETWORK_LR = 1e-2, 1e-3  #: Adam's learning rates
OWN_LRS = (5e-4, 2e-3, 1e-2)  #: candidates for a user's own module, of which nothing is known
LINEAR_STEPS, NETWORK_STEPS = 1500, 2000  #: the longest trainings
CHECKPOINT_STEPS = (150, 200, 350, 500, 700, 1000, 1500, 2000)  #: after which models are compared
WARM_UP_STEPS, MANY_SAMPLES = 300, 500  #: with popularity's Q; a third of these steps for fewer samples
EM_ROUNDS, EM_STEPS, EM_WARM_UP = 6, 400, 100  #: of cross-fitted models, and steps of each of them
EM_SAMPLES = 100  #: training samples of a fold from which on Q is estimated with models
IMAGE_EPOCHS, IMAGE_ROUNDS = 20, 2  #: the same of networks for images, which learn more and cost more
EM_VARIANTS = (("popularity", False), ("popularity", True), ("popularity-noise", False))
ALTERNATIVES = ("uniform", "inverse-size")  #: families of Q beside popularity
BETTER_BY = 2.0  #: standard errors by which another Q must be better than popularity
NETWORK_BETTER_BY = 1.0  #: standard errors by which a network must be better than a linear model
NOISE = 0.5  #: standard errors: a longer training that is no farther behind is preferred
FOLDS, LARGE, FOLDS_OF_LARGE = 5, 5000, 2  #: folds that are used, of five; fewer from so many samples on
MAX_SEARCHED = 50_000  #: samples among which is searched: of more, a random part
MAX_HELD_OUT, MAX_OUTPUTS = 10_000, 2_000_000  #: held-out samples of a fold, and samples times classes
MAX_ESTIMATED = 30_000_000  #: samples times classes up to which Q is estimated with models
MIN_SAMPLES = 25  #: of fewer none are held out, and nothing is selected
MIN_GROUPS = 4
MAX_SEED = 2**32  #: of scikit-learn's splits
MAX_COPIES = 0.05  #: the share of samples from which on copies of a row, as in tables of categories, are other samples
TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0, 10.0)
LOWEST, HIGHEST = 0.05, 20.0  #: bounds of the temperature of the model that is returned
SEARCH_COST = 20 * LINEAR_STEPS  #: steps of single models that a search takes, about
STACKED = 8  #: candidates that are trained at once, about
QUIET = 10.0  #: seconds after which progress is logged again
MIN_PIXELS = 16  #: a side of images that networks for them are taken for
TINY = float(np.finfo(np.float64).tiny)

Log = Callable[[str], None]
Variant = tuple[str, bool]  #: the family where EM starts, and whether its models learn from own labels alone


def training_for(shape: tuple[int, ...], device: torch.device) -> str | dict[str, Any] | None:
    """Return how samples of a shape are trained on where neither model nor training is given.

    Images on a GPU are for networks with strong training; those without colour, which may be of letters or digits, are
    not mirrored. On a CPU that would take hours: there they are features like any others (None).
    """
    if device.type != "cuda" or len(shape) not in (2, 3) or min(shape[-2:]) < MIN_PIXELS:
        return None
    colour = len(shape) == 3 and shape[0] > 1
    return "strong" if colour else {"name": "strong", "flip": False, "test_flip": False}


@dataclass(frozen=True)
class SearchConfig:
    """Settings that are fixed before anything is selected; None is to be selected."""

    n_classes: int
    weight_decay: float
    batch_size: int
    dtype: torch.dtype
    device: torch.device
    seed: int
    model: ModelChoice | None = None
    lr: float | None = None
    transition: Any = None
    neighbors: int | None = None
    own_labels_only: bool = False  #: of candidates; labels of near samples still serve to estimate Q
    warm_up: float | None = None
    max_epochs: int | None = None
    recipe: Recipe = PLAIN
    budget: int | None = None  #: about how many steps of single models the search may take
    max_time: float | None = None  #: seconds
    classes: NDArray[Any] | None = None  #: their names

    @property
    def share(self) -> float:
        """The part of the usual steps that ``budget`` allows."""
        return 1.0 if self.budget is None else min(self.budget / SEARCH_COST, 1.0)

    @property
    def n_neighbors(self) -> int:
        """Number of neighbours that are tried, with the sample itself."""
        return N_NEIGHBORS if self.neighbors is None else self.neighbors

    def epochs(self, n: int, steps: int) -> int:
        """The epochs that so many steps take with n samples."""
        return max(2, ceil(self.share * steps / max(n // self.batch_size, 1)))

    def warm_up_epochs(self, n: int, epochs: int) -> int:
        """Epochs with popularity's Q at the beginning: fewer than all."""
        if self.warm_up is not None:
            return min(ceil(self.warm_up), epochs - 1)
        steps = WARM_UP_STEPS if n >= MANY_SAMPLES else WARM_UP_STEPS // 3
        return min(ceil(steps / max(n // self.batch_size, 1)), epochs // 3)

    def checkpoints(self, n: int, epochs: int, warm_up: int) -> tuple[int, ...]:
        """The epochs after the warm-up at which models are compared; schedules of learning rates end with the last."""
        if self.recipe.scheduled:
            return (epochs,)
        per_epoch = max(n // self.batch_size, 1)
        known = {round(steps / per_epoch) for steps in CHECKPOINT_STEPS}
        if epochs <= 2 * warm_up or not any(warm_up < epoch < epochs for epoch in known):
            known = set(range(warm_up + 1, epochs, max((epochs - warm_up) // 6, 1)))
        return tuple(sorted({epoch for epoch in known if warm_up < epoch < epochs} | {epochs}))


@dataclass(frozen=True)
class Pool:
    """Samples that may be trained on."""

    x: Tensor  #: on the CPU
    labels: IntArray | BoolArray
    weight: FloatArray
    groups: IntArray | None = None
    neighbor_features: NDArray[Any] | None = None  #: in which distances are measured; None: there are no neighbours

    def take(self, rows: IntArray) -> Pool:
        """Return some of them."""
        groups, features = (
            None if values is None else values[rows] for values in (self.groups, self.neighbor_features)
        )
        return Pool(self.x[torch.as_tensor(rows)], self.labels[rows], self.weight[rows], groups, features)

    def __len__(self) -> int:
        return len(self.labels)

    def label_totals(self, n_classes: int) -> FloatArray:
        """Return label counts; half a label more of each class if some class was never named."""
        totals = label_totals(self.labels, n_classes, self.weight)
        return totals if totals.all() else totals + 0.5

    def grouped(self) -> Pool:
        """Return the same samples, with copies of a row in one group."""
        return replace(self, groups=_together(self))

    def near_shares(self, config: SearchConfig) -> FloatArray | None:
        """Return the share of each label among the nearest neighbours of each sample, if there are any."""
        if self.neighbor_features is None:
            return None
        index = nearest_neighbors(self.neighbor_features, config.n_neighbors, seed=config.seed)
        return label_shares(self.labels, config.n_classes, index, self.weight)


@dataclass(frozen=True)
class Fold:
    """Samples to train on, and held-out samples to compare by; neighbours are found among the former."""

    train: Pool
    held_out: Pool
    near: FloatArray | None

    def half(self, rows: IntArray, others: IntArray, config: SearchConfig) -> Fold:
        """Return a part of the training samples, and another one that is held out."""
        part = self.train.take(rows)
        return Fold(part, self.train.take(others), part.near_shares(config))


@dataclass(frozen=True)
class Candidate:
    """A Q, and whether models learn from own labels alone."""

    transition: Any  #: as an estimator takes it; None if it is estimated
    matrices: tuple[FloatArray, ...]  #: of each fold
    own_labels: bool
    variant: Variant | None = None  #: how Q was estimated, if it was


@dataclass(frozen=True)
class Schedule:
    """A model, and how long it is trained."""

    model: ModelChoice
    lr: float
    epochs: int
    warm_up: int
    checkpoints: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CandidateResult:
    """Held-out likelihoods of a trained candidate."""

    candidate: Candidate
    model: ModelChoice
    lr: float
    warm_up: int
    epochs: tuple[int, ...]  #: of the checkpoints
    logits: tuple[FloatArray, ...]  #: of each fold's held-out samples, (checkpoints, n, k)
    scorers: tuple[HeldOutScorer, ...] = field(repr=False)

    @cached_property
    def losses(self) -> FloatArray:
        """-log P(labels) of held-out samples, weighted, at each checkpoint's best temperature: (checkpoints, n)."""
        each = [
            scorer.losses(logits, matrix)
            for scorer, logits, matrix in zip(self.scorers, self.logits, self.candidate.matrices, strict=False)
        ]
        tempered = np.concatenate(each, axis=2)  # (temperatures, checkpoints, n)
        best = tempered.mean(axis=2).argmin(axis=0)
        found: FloatArray = tempered[best, np.arange(tempered.shape[1])]
        return found

    @cached_property
    def best(self) -> int:
        """The checkpoint: the longest training that is not behind the best one but for noise."""
        first = int(self.losses.mean(axis=1).argmin())
        behind = self.losses - self.losses[first]
        error = behind.std(axis=1) / np.sqrt(behind.shape[1])
        return int(np.flatnonzero(behind.mean(axis=1) <= NOISE * error)[-1])

    @property
    def score(self) -> float:
        """The mean log-likelihood of held-out labels."""
        return -float(self.losses[self.best].mean())

    @property
    def epoch(self) -> int:
        """Number of epochs at the selected checkpoint."""
        return self.epochs[self.best]

    def better_than(self, other: CandidateResult, errors: float) -> bool:
        """Return whether it is better by more than so many standard errors, on the held-out samples that both have."""
        n = min(self.losses.shape[1], other.losses.shape[1])
        gain = other.losses[other.best][:n] - self.losses[self.best][:n]
        return bool(gain.mean() > errors * gain.std() / np.sqrt(n))

    def table(self) -> IntArray:
        """Count held-out labels, one per sample, against predictions."""
        parts = [s.table(logits[self.best]) for s, logits in zip(self.scorers, self.logits, strict=False)]
        total: IntArray = np.sum(parts, axis=0)
        return total

    def row(self, selected: CandidateResult, belief: Belief, neighbors: int, *, cut: bool) -> dict[str, Any]:
        """Return a row of ``selection_``."""
        return {
            "model": self.model if isinstance(self.model, str | dict) else "own",
            "lr": self.lr,
            "transition": q_in_words(belief.transition_source, belief.family, belief.basis),
            "neighbors": 1 if self.candidate.own_labels else neighbors,
            "epoch": self.epoch,
            "score": self.score,
            "samples": self.losses.shape[1],
            "chosen": self is selected,
            "cut": cut,
        }


class HeldOutScorer:
    """Held-out labels, and how likely models make them."""

    def __init__(self, held_out: Pool, n_classes: int) -> None:
        self.held_out, self.n_classes = held_out, n_classes
        self.mask = to_mask(held_out.labels, n_classes).astype(np.float64)
        self.weight = held_out.weight / held_out.weight.mean()

    def losses(
        self, logits: FloatArray, matrix: FloatArray, temperatures: Sequence[float] = TEMPERATURES
    ) -> FloatArray:
        """-log P(labels) times weights, (temperatures, checkpoints, n); several labels of a sample are independent."""
        log_likelihood = self.mask @ np.log(np.maximum(matrix, TINY)).T
        with np.errstate(invalid="ignore"):
            each = [logsumexp(log_softmax(logits / t, axis=-1) + log_likelihood, axis=-1) for t in temperatures]
        found = -np.stack(each) * self.weight
        losses: FloatArray = np.nan_to_num(found, nan=1e9, posinf=1e9)
        return losses

    def temperature(self, logits: FloatArray, matrix: FloatArray) -> float:
        """Return the temperature that makes held-out labels likeliest."""
        found = minimize_scalar(
            lambda log: float(self.losses(logits[None], matrix, [float(np.exp(log))]).mean()),
            bounds=(np.log(LOWEST), np.log(HIGHEST)),
            method="bounded",
        )
        return float(np.exp(found.x))

    def table(self, logits: FloatArray) -> IntArray:
        """Count labels against predictions."""
        return complementary_table(self.held_out.labels, logits.argmax(-1), self.n_classes)


@dataclass(frozen=True, eq=False)
class Selection:
    """Result of the search."""

    selected: CandidateResult
    transition: Any  #: as an estimator takes it
    neighbors: int  #: that are tried; 1 if there are none
    results: tuple[CandidateResult, ...]
    beliefs: tuple[Belief, ...]  #: of each result
    temperature: float
    estimate: LabelFreeConfusion | None  #: from held-out labels, of models that had not seen them
    weight_decay: float
    cut: bool = False  #: whether the time was over before the search was

    @property
    def settings(self) -> dict[str, Any]:
        """Selected settings, as arguments of the estimator."""
        return {
            "model": self.selected.model,
            "lr": self.selected.lr,
            "max_epochs": self.selected.epoch,
            "weight_decay": self.weight_decay,
            "transition": self.transition,
            "warm_up": self.selected.warm_up,
            "neighbors": 1 if self.selected.candidate.own_labels else self.neighbors,
        }

    def table(self) -> list[dict[str, Any]]:
        """Return a row per candidate, the likeliest first."""
        rows = [
            one.row(self.selected, belief, self.neighbors, cut=self.cut)
            for one, belief in zip(self.results, self.beliefs, strict=True)
        ]
        return sorted(rows, key=lambda row: (-row["samples"], -row["score"]))


def choose(pool: Pool, config: SearchConfig, log: Log = lambda line: None) -> Selection:
    """Select Q, neighbours, model and length by the likelihood of held-out complementary labels.

    1. Split the samples into folds. Groups, and copies of a row, lie in one fold. Find neighbours, and estimate Q, on
       the training part of each fold alone.
    2. Train linear models in one stack: one for each candidate for Q, with labels of near samples and with own labels.
    3. Take labels of near samples unless own labels are likelier. Take popularity's Q unless another one is better by
       two standard errors, or labels contradict popularity and not the other.
    4. Train a network with that Q on the first fold. Take it if it is better by one standard error.
    5. Estimate Q again on all samples, if it was estimated; fit a temperature, and estimate the accuracy.
    """
    deadline = Deadline(config.max_time, log)
    if not pool.weight.all():
        pool = pool.take(np.flatnonzero(pool.weight))
    if len(pool) > MAX_SEARCHED:
        log(f"the search takes {MAX_SEARCHED} of {len(pool)} samples at random; all are trained on")
        pool = pool.take(
            np.sort(stream(config.seed, "neighbors", "search").choice(len(pool), MAX_SEARCHED, replace=False))
        )
    searched_with = _search_model(config, pool)
    linear = family_of(searched_with) is Family.LINEAR
    if config.n_neighbors > 1 and (linear or config.neighbors is not None or pool.neighbor_features is not None):
        given = pool.x.numpy() if pool.neighbor_features is None else pool.neighbor_features
        pool = replace(pool, neighbor_features=components(given, seed=config.seed))
    pool = pool.grouped()
    folds = make_folds(pool, config, network=not linear)
    candidates = _candidates(folds, searched_with, config, deadline)
    results = _train(folds, candidates, searched_with, config, deadline)
    selected = _select_transition(results, config)
    log(f"{_describe(selected)}, held-out log-likelihood {selected.score:.4f}")
    if (networks := _networks(searched_with, config)) and not (config.model is None and deadline.stops()):
        trained = [
            result
            for model, lr in networks
            for result in _train(folds[:1], [selected.candidate], model, config, deadline, lr)
        ]
        best = max(trained, key=lambda one: one.score)
        log(f"{_describe(best)}, held-out log-likelihood {best.score:.4f}")
        results += trained
        if config.model is not None or best.better_than(selected, NETWORK_BETTER_BY):
            selected = best
    return _finished(pool, selected, results, searched_with, config, deadline)


def make_folds(pool: Pool, config: SearchConfig, *, network: bool = False) -> list[Fold]:
    """Split samples into folds of which the training parts have equally many samples."""
    wanted = 1 if network else FOLDS if len(pool) < LARGE else FOLDS_OF_LARGE
    parts = max(FOLDS, ceil(len(pool) / MAX_HELD_OUT))
    if pool.groups is None:
        splits = KFold(parts, shuffle=True, random_state=config.seed % MAX_SEED).split(pool.labels)
    else:
        if (n_groups := len(np.unique(pool.groups))) < MIN_GROUPS:
            raise InputError("groups", f"at least {MIN_GROUPS} groups, for splits", n_groups)
        kind = GroupKFold(min(parts, n_groups), shuffle=True, random_state=config.seed % MAX_SEED)
        splits = kind.split(pool.labels, groups=pool.groups)
    rows = list(islice(splits, wanted))
    n = min(len(part) for part, _ in rows)
    rng, fewer = (stream(config.seed, "neighbors", what) for what in ("folds", "held-out"))
    folds = []
    for rows_of_part, held_out in rows:
        part = pool.take(np.sort(rng.permutation(rows_of_part)[:n]))
        compared = np.sort(fewer.permutation(held_out)[: max(MAX_OUTPUTS // config.n_classes, MIN_SAMPLES)])
        folds.append(Fold(part, pool.take(compared), part.near_shares(config)))
    return folds


def _together(pool: Pool) -> IntArray | None:
    """Return groups of samples that lie in one fold: those that users name, and copies of a row; None if none."""
    digests = [blake2b(row, digest_size=8).digest() for row in pool.x.flatten(1).numpy()]
    copies: IntArray = np.unique(np.array(digests), return_inverse=True)[1]
    frequent = np.bincount(copies)[copies] > MAX_COPIES * len(pool)
    copies = np.unique(np.where(frequent, len(pool) + np.arange(len(pool)), copies), return_inverse=True)[1]
    if copies.max() + 1 == len(pool):
        return pool.groups
    if pool.groups is None:
        return copies
    n_groups = int(pool.groups.max()) + 1
    links = coo_array((np.ones(len(pool)), (pool.groups, n_groups + copies)), shape=(n_groups + len(pool),) * 2)
    joined = np.unique(connected_components(links, directed=False)[1][pool.groups], return_inverse=True)[1]
    return joined if joined.max() + 1 >= MIN_GROUPS else pool.groups


def _search_model(config: SearchConfig, pool: Pool) -> ModelChoice:
    """Return the model with which Q is searched: linear, but for images, or modules, that it can't learn from."""
    if config.model is None:
        return "linear"
    family = family_of(config.model)
    return "linear" if family is Family.DENSE or (family is Family.OWN and pool.x.ndim == 2) else config.model


def _networks(searched_with: ModelChoice, config: SearchConfig) -> list[tuple[ModelChoice, float]]:
    """Return networks and learning rates that are tried once Q is selected."""
    model: ModelChoice = "mlp" if config.model is None else config.model
    rates = OWN_LRS if config.lr is None and family_of(model) is Family.OWN else (_lr(model, config),)
    return [] if config.model is searched_with else [(model, lr) for lr in rates]


def _candidates(folds: Sequence[Fold], model: ModelChoice, config: SearchConfig, deadline: Deadline) -> list[Candidate]:
    """Return every Q that is to be compared, with labels of near samples.

    Popularity, and the estimate whose models learn from own labels, are compared with own labels as well.
    """
    near, k = folds[0].near is not None, config.n_classes
    kinds = [True] if config.own_labels_only or not near else [False] if config.neighbors is not None else [False, True]
    if config.transition is not None:
        matrices = tuple(Belief.of(config.transition, fold.train.label_totals(k)).transition for fold in folds)
        return [Candidate(config.transition, matrices, own) for own in kinds]
    found = []
    for family in (EARLY, *ALTERNATIVES):
        matrices = tuple(Belief.of(family, fold.train.label_totals(k)).transition for fold in folds)
        found += [Candidate(family, matrices, own) for own in (kinds if family == EARLY else kinds[:1])]
    if len(folds[0].train) >= EM_SAMPLES and k * len(folds[0].train) <= MAX_ESTIMATED:
        variants = [variant for variant in EM_VARIANTS if near or not variant[1]]
        for variant, matrices in zip(variants, _estimated(folds, variants, model, config, deadline), strict=False):
            found += [Candidate(None, matrices, own, variant) for own in (kinds if variant[1] else kinds[:1])]
    return found


def _estimated(
    folds: Sequence[Fold],
    variants: Sequence[Variant],
    model: ModelChoice,
    config: SearchConfig,
    deadline: Deadline,
) -> list[tuple[FloatArray, ...]]:
    """Estimate Q on each fold by EM with cross-fitted models, for each variant; nothing if the time is over."""
    rng, k = stream(config.seed, "neighbors", "halves"), config.n_classes
    images = family_of(model) is Family.IMAGE
    halves, size = [], len(folds[0].train) // 2
    for fold in folds:
        order, lower, upper = _split_in_half(fold.train, rng)
        for rows, others in ((order[:lower], order[lower:]), (order[upper:], order[:upper])):
            halves.append((others, fold.half(rows, others, config)))
    starts = [[FAMILIES[start].fit(fold.train.label_totals(k)).transition for fold in folds] for start, _ in variants]
    matrices = [list(some) for some in starts]
    epochs = IMAGE_EPOCHS if images else config.epochs(size, EM_STEPS)
    epochs = min(epochs, config.max_epochs or epochs)
    warm_up = min(ceil(EM_WARM_UP / max(size // config.batch_size, 1)), epochs // 3)
    schedule = Schedule(model, _lr(model, config), epochs, warm_up, (epochs,))
    for number in range(max(1, round(config.share * (IMAGE_ROUNDS if images else EM_ROUNDS)))):
        deadline.progress(f"estimating Q, round {number + 1}")
        candidates = [
            Candidate(None, tuple(some[h // 2] for h in range(len(halves))), own)
            for some, (_, own) in zip(matrices, variants, strict=True)
        ]
        parts, again = [half for _, half in halves], replace(config, seed=config.seed + number)
        logits = _logits(parts, candidates, schedule, again, deadline, halves=True)
        if deadline.stops() or not logits:
            return []
        for v, some in enumerate(matrices):
            for f, fold in enumerate(folds):
                chances = np.empty((len(fold.train), k))
                for h in (2 * f, 2 * f + 1):
                    others, half = halves[h]
                    chances[others] = softmax(_tempered(logits[h][v], half.held_out, some[f], k), axis=-1)
                labels, weight = fold.train.labels, fold.train.weight
                some[f] = transition_from_predictions(chances, labels, starts[v][f], sample_weight=weight)
    return [tuple(some) for some in matrices]


def _split_in_half(pool: Pool, rng: np.random.Generator) -> tuple[IntArray, int, int]:
    """Return samples in random order, the end of the first half, and the beginning of the last; no group is split."""
    n = len(pool)
    if pool.groups is None:
        return rng.permutation(n), n // 2, n - n // 2
    place = rng.permutation(int(pool.groups.max()) + 1)[pool.groups]
    order: IntArray = np.argsort(place, kind="stable")
    bounds = np.flatnonzero(np.diff(place[order])) + 1
    middle = int(bounds[np.abs(bounds - n // 2).argmin()]) if len(bounds) else n // 2
    return order, middle, middle


def _tempered(logits: FloatArray, held_out: Pool, matrix: FloatArray, n_classes: int) -> FloatArray:
    """Return the logits of the last checkpoint at the temperature that makes held-out labels likeliest."""
    losses = HeldOutScorer(held_out, n_classes).losses(logits[-1:], matrix).mean(axis=(1, 2))
    tempered: FloatArray = logits[-1] / TEMPERATURES[int(losses.argmin())]
    return tempered


def _train(
    folds: Sequence[Fold],
    candidates: Sequence[Candidate],
    model: ModelChoice,
    config: SearchConfig,
    deadline: Deadline,
    lr: float | None = None,
) -> list[CandidateResult]:
    """Train candidates on all folds, in one stack, and score them by held-out labels."""
    n, rate = len(folds[0].train), _lr(model, config) if lr is None else lr
    steps = LINEAR_STEPS if family_of(model) is Family.LINEAR else NETWORK_STEPS
    epochs = config.max_epochs or config.epochs(n, steps)
    warm_up = config.warm_up_epochs(n, epochs)
    checkpoints = config.checkpoints(n, epochs, warm_up)
    logits = _logits(folds, candidates, Schedule(model, rate, epochs, warm_up, checkpoints), config, deadline)
    scorers = tuple(HeldOutScorer(fold.held_out, config.n_classes) for fold in folds)
    done = logits[0].shape[1]
    return [
        CandidateResult(one, model, rate, warm_up, checkpoints[:done], tuple(some[i] for some in logits), scorers)
        for i, one in enumerate(candidates)
    ]


def _logits(
    folds: Sequence[Fold],
    candidates: Sequence[Candidate],
    schedule: Schedule,
    config: SearchConfig,
    deadline: Deadline,
    *,
    halves: bool = False,
) -> list[FloatArray]:
    """Train candidates on each fold and return logits of its held-out samples, (candidates, checkpoints, n, k).

    ``halves`` serve to estimate Q: when the time is over, they stop at once, and nothing is returned.
    """
    if family_of(schedule.model) is Family.OWN and len(candidates) > 1:  # such modules are trained one by one
        parts = [_logits(folds, [one], schedule, config, deadline, halves=halves) for one in candidates]
        done = min(part[0].shape[1] if part else 0 for part in parts)
        return [np.concatenate([part[f][:, :done] for part in parts]) for f in range(len(folds))] if done else []
    engine = _engine(folds, candidates, schedule, config)
    held_out = [engine.prepare(fold.held_out.x) for fold in folds]
    logits: list[list[FloatArray]] = [[] for _ in folds]

    def observe(engine: Engine) -> bool:
        if engine.epoch in schedule.checkpoints:
            for f, prepared in enumerate(held_out):
                logits[f].append(engine.predict(f, prepared).double().cpu().numpy())
        deadline.progress(f"training {_name(schedule.model)}, epoch {engine.epoch} of {schedule.epochs}")
        return engine.epoch < schedule.epochs and (bool(logits[0]) or halves) and deadline.stops()

    x = folds[0].train.x
    with torch_threads(training_threads(schedule.model, x, config.n_classes, config.batch_size)):
        train(engine, schedule.epochs, [observe])
    return [np.stack(some, axis=1) for some in logits] if logits[0] else []


def _engine(folds: Sequence[Fold], candidates: Sequence[Candidate], schedule: Schedule, config: SearchConfig) -> Engine:
    """Return an engine that trains the candidates of all folds in step."""
    spec, groups, k = LOSSES[LOSS], [], config.n_classes
    n = min(len(fold.train) for fold in folds)
    weighted = any(np.ptp(fold.train.weight) > 0 for fold in folds)
    for f, fold in enumerate(folds):
        pool, weight = fold.train, fold.train.weight / fold.train.weight.mean()
        scaled = torch.as_tensor(weight, dtype=config.dtype) if weighted else None
        near = None if fold.near is None else torch.as_tensor(fold.near, dtype=config.dtype)
        targets = replace(Targets.of(torch.as_tensor(pool.labels), k, scaled), near=near)
        early = Context(transition=Belief.of(EARLY, pool.label_totals(k)).transition)
        losses = []
        for i, one in enumerate(candidates):
            loss = RunLoss(spec, (), Context(transition=one.matrices[f]), i, i + 1, own_labels=one.own_labels)
            losses.append(loss.after(schedule.warm_up, early) if schedule.warm_up else loss)
        groups.append(RunGroup(pool.x, targets, config.seed, [schedule.lr] * len(candidates), losses).head(n))
    training = Training(
        model=schedule.model,
        n_classes=k,
        scale=1.0,
        batch_size=config.batch_size,
        weight_decay=config.weight_decay,
        dtype=config.dtype,
        device=config.device,
        epochs=schedule.epochs,
        recipe=config.recipe,
    )
    return make_engine(groups, training)


def _select_transition(results: Sequence[CandidateResult], config: SearchConfig) -> CandidateResult:
    """Select labels of near samples or own ones, then Q: popularity unless another one is clearly better."""
    given = config.transition is not None  # else the Q of a candidate is a name, or None
    base = [one for one in results if given or one.candidate.transition == EARLY]
    first = max(base, key=lambda one: one.score)
    rivals = [one for one in results if one not in base]
    if better := [one for one in rivals if one.better_than(first, BETTER_BY)]:
        return max(better, key=lambda one: one.score)
    return _uncontradicted(first, rivals)


def _uncontradicted(first: CandidateResult, rivals: Sequence[CandidateResult]) -> CandidateResult:
    """Return popularity, or the likeliest family that labels do not contradict while they contradict popularity.

    Popularity takes classes to be about equally frequent. So uniform labels of rare classes contradict it.
    """
    families = [one for one in rivals if one.candidate.transition in ALTERNATIVES]
    if not families or first.scorers[0].held_out.labels.ndim == 2 or not _contradicted(first):
        return first
    fitting = [one for one in families if not _contradicted(one) and not first.better_than(one, 1.0)]
    return max(fitting, key=lambda one: one.score) if fitting else first


def _contradicted(result: CandidateResult) -> bool:
    """Return whether held-out labels reject the family of a candidate."""
    totals = np.sum([scorer.mask.sum(axis=0) for scorer in result.scorers], axis=0) + 0.5
    return check_table(result.table(), Belief.of(result.candidate.transition, totals)).contradicted


def _finished(
    pool: Pool,
    selected: CandidateResult,
    results: Sequence[CandidateResult],
    model: ModelChoice,
    config: SearchConfig,
    deadline: Deadline,
) -> Selection:
    """Estimate Q on all samples, if it was estimated on folds; a temperature and the accuracy by held-out labels."""
    transitions = {id(one): _as_given(one.candidate, len(pool)) for one in results}
    if (variant := selected.candidate.variant) is not None and not deadline.stops():
        estimates = _estimated([Fold(pool, pool.take(np.arange(0)), None)], [variant], model, config, deadline)
        if estimates:
            transitions[id(selected)] = _as_given(replace(selected.candidate, matrices=estimates[0]), len(pool))
    totals = pool.label_totals(config.n_classes)
    beliefs = tuple(Belief.of(transitions[id(one)], totals) for one in results)
    belief = Belief.of(transitions[id(selected)], totals)
    scorer, logits = selected.scorers[0], selected.logits[0][selected.best]
    return Selection(
        selected=selected,
        transition=transitions[id(selected)],
        neighbors=config.n_neighbors,
        results=tuple(results),
        beliefs=beliefs,
        temperature=scorer.temperature(logits, selected.candidate.matrices[0]),
        estimate=_accuracy(selected, belief, config),
        weight_decay=config.weight_decay,
        cut=deadline.cut,
    )


def _accuracy(selected: CandidateResult, belief: Belief, config: SearchConfig) -> LabelFreeConfusion | None:
    """Estimate the accuracy from held-out labels: one per sample, of equal weights, or nothing is estimated."""
    held_out = [scorer.held_out for scorer in selected.scorers]
    weighted = any(np.ptp(part.weight) > 0 for part in held_out)
    if held_out[0].labels.ndim == 2 or weighted or np.linalg.matrix_rank(belief.transition) < config.n_classes:
        return None
    return label_free_confusion(selected.table(), belief, classes=config.classes)


def _as_given(candidate: Candidate, n: int) -> Any:
    """Return the Q of a candidate as an estimator takes it."""
    if candidate.variant is None:
        return candidate.transition
    matrix = candidate.matrices[0]
    error = np.sqrt(matrix * (1 - matrix) * len(matrix) / n)  # of shares of so many labels of known, equal classes
    return EstimatedTransition(matrix, error, None, f"labels and models of {n} samples", candidate.variant[0])


def _lr(model: ModelChoice, config: SearchConfig) -> float:
    if config.lr is not None:
        return config.lr
    return LINEAR_LR if family_of(model) is Family.LINEAR else NETWORK_LR


def _describe(result: CandidateResult) -> str:
    labels = "own labels" if result.candidate.own_labels else "labels of near samples"
    q = result.candidate.transition
    named = "Q estimated" if result.candidate.variant is not None else q if isinstance(q, str) else "Q given"
    return f"{_name(result.model)}, {named}, {labels}, {result.epoch} epochs"


def _name(model: ModelChoice) -> str:
    return model if isinstance(model, str) else str(model["name"]) if isinstance(model, dict) else "model"


MEANING = {
    "ok": "narrow interval and a measured Q. Report it together with its interval.",
    "too few labels": "the interval is wider than 30 points. Collect more held-out labels.",
    "can't be checked": "correct only if Q is correct. Measure Q (transition_from_pairs) or test on true labels.",
}


def in_words(
    table: Sequence[dict[str, Any]],
    belief: Belief,
    estimate: LabelFreeConfusion | None,
    temperature: float,
    purity: float | None = None,
) -> str:
    """Describe what was selected and why, what it assumes, and how accurate it seems."""
    (selected,), others = [row for row in table if row["chosen"]], [row for row in table if not row["chosen"]]
    lines = []
    if estimate is not None and estimate.warning is not None:
        lines.append(f"Warning: {estimate.warning}.")
    lines += [
        f"Selected: {_settings(selected)}, {selected['epoch']} epochs (of {len(table)} candidates)",
        f"  held-out log-likelihood of complementary labels: {selected['score']:.4f} per sample, "
        f"{selected['samples']} samples",
    ]
    if comparable := [row for row in others if row["samples"] == selected["samples"]]:
        other = comparable[0]
        relation = "likelier, but within noise" if other["score"] > selected["score"] else "next best"
        lines.append(f"  {relation}: {_settings(other)}, {other['score']:.4f}, {other['transition']}")
    if (n_neighbors := selected.get("neighbors", 1)) > 1:
        of_class = "" if purity is None else f"; about {100 * purity:.0f} % of these are of its class (estimated)"
        nearest = f"{n_neighbors - 1} nearest samples"
        lines.append(f"  each sample is trained with its own label and those of its {nearest}{of_class}")
    if selected["cut"]:
        lines.append(
            "  max_time ended the search early: another run may select differently; budget gives repeatable results"
        )
    lines.append(f"Assumed: {belief}")
    if estimate is not None and estimate.warning is None:
        figure = estimate.accuracy
        interval = f"{100 * figure.low:.1f} to {100 * figure.high:.1f}"
        lines.append(f"Estimated accuracy: {100 * figure.value:.1f} %, 95 % interval {interval} (held-out labels)")
        lines.append(f"  {figure.verdict}: {MEANING[figure.verdict]}")
    lines.append(f"Calibration: temperature {temperature:.2f}, fitted to the same held-out labels")
    return "\n".join(lines)


def _settings(row: dict[str, Any]) -> str:
    """A candidate as users would name it."""
    model = row["model"]
    if isinstance(model, dict):
        options = ", ".join(f"{key}={value}" for key, value in model.items() if key != "name")
        model = f"{model['name']} ({options})" if options else model["name"]
    labels = "" if row.get("neighbors", 1) > 1 else ", own labels only"
    return f"{model}, learning rate {row['lr']:g}{labels}"


class Deadline:
    """The end of the time for a search, and its progress."""

    def __init__(self, seconds: float | None, log: Log) -> None:
        self.end = None if seconds is None else monotonic() + seconds
        self.cut = False  #: whether anything was left out for lack of time
        self.log, self.logged = log, monotonic()

    def progress(self, what: str) -> None:
        """Log what is being done, unless something was logged a short time ago."""
        if monotonic() - self.logged >= QUIET:
            self.logged = monotonic()
            self.log(what)

    def stops(self) -> bool:
        """Return whether the time is over; of several processes that train together, by the clock of the first."""
        if self.end is None:
            return False
        over, who = monotonic() >= self.end, ranks()
        over = over if who is None else who.first_says(over)
        self.cut = self.cut or over
        return over
