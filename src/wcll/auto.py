"""Everything chosen without a true label: what is believed of Q, the model, its rate, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from math import ceil
from time import monotonic
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.model_selection import GroupKFold, KFold
from torch import Tensor

from wcll.checks import BoolArray, FloatArray, InputError, IntArray
from wcll.crossfit import FEW_EPOCHS, IMAGE_EPOCHS, IMAGE_ROUNDS, ROUNDS, WARM_UP, ModelTransition, cross_fitted
from wcll.evaluation import LabelFreeConfusion, checkpoints, complementary_table, label_free_confusion, smoothed
from wcll.labels import Belief, check_table, to_mask
from wcll.labels.beliefs import q_in_words
from wcll.labels.families import EARLY
from wcll.labels.statistics import label_totals
from wcll.losses import LOSSES, Targets
from wcll.losses.chosen import AUTO as AUTO
from wcll.losses.chosen import LIKELIHOOD
from wcll.models import Family, ModelChoice, family_of
from wcll.training import PLAIN, Engine, Recipe, RunGroup, RunLoss, Training, make_engine, train
from wcll.training.ranks import ranks

LOSS = LIKELIHOOD  #: of labels under Q: the one loss whose held-out value says how good a model is
RATES = (5e-4, 2e-3, 1e-2)
MODELS: tuple[ModelChoice, ...] = ("linear", "mlp")
RATE = RATES[1]  #: where nothing can be chosen: in parts of a stream
EPOCHS, STEPS = 60, 1500  #: that candidates are trained for, at least
ALL = 1000 / 60  #: how often that all of it takes, of one model: where there are many samples, ten fits of 100 epochs
FEW_STEPS = 400  #: of cross-fitted models, if these are more than a few epochs
WARM_UP_STEPS = 300  #: in which no class is given up, if these are more than a few epochs
FOLDS = 5  #: parts of the samples, each predicted by models that have not seen it
SHORT = 3  #: candidates at most that are trained for all of them
OUT = 2.0  #: standard errors behind the best on the first at which a candidate is not among these
MOST_HELD_OUT = 20_000  #: samples in all folds
QUIET = 10.0  #: seconds after which it is said again what is being done
OTHERS = ("uniform", "inverse-size")  #: families that are tried where labels contradict popularity
FURTHER = 2  #: times the best epoch there, up to which they are trained
LEAST = 25  #: samples, of fewer of which none are held out, and nothing is chosen
LEAST_GROUPS = 4  #: one to choose by, and some on either side of what models are cross-fitted on
LOWEST, HIGHEST = 0.05, 20.0  #: temperatures that are tried

LEAST_PIXELS = 16  #: a side of images that networks for them are taken for

Say = Callable[[str], None]


def training_for(shape: tuple[int, ...], device: torch.device) -> str | dict[str, Any] | None:
    """How samples of a shape are trained on where nothing is said of model or training.

    Images on a GPU are for networks that are trained strongly; those without colour, which may be of letters or digits,
    are not mirrored. On a CPU that would take hours: there they are taken as any other numbers (None).
    """
    if device.type != "cuda" or len(shape) not in (2, 3) or min(shape[-2:]) < LEAST_PIXELS:
        return None
    colour = len(shape) == 3 and shape[0] > 1
    return "strong" if colour else {"name": "strong", "flip": False, "test_flip": False}


@dataclass(frozen=True)
class Given:
    """What is settled before anything is chosen."""

    n_classes: int
    models: Sequence[ModelChoice]
    rates: Sequence[float]
    weight_decay: float
    batch_size: int
    dtype: torch.dtype
    device: torch.device
    seed: int
    warm_up: int
    recipe: Recipe = PLAIN  #: how models are trained
    transition: Any = None  #: Q as a user gives it; None is to be found
    epochs: int = EPOCHS
    rounds: int = ROUNDS  #: of estimates of Q
    max_time: float | None = None  #: seconds
    classes: NDArray[Any] | None = None  #: their names

    @property
    def looked_at(self) -> tuple[int, ...]:
        """The epochs among which one is chosen: where rates follow a schedule, models are done at its end."""
        return (self.epochs,) if self.recipe.scheduled else tuple(checkpoints(self.epochs))

    @staticmethod
    def lengths(n: int, batch_size: int, budget: int | None) -> tuple[int, int]:
        """How many epochs and rounds ``n`` samples are worth, or as many as ``budget`` run-steps leave."""
        steps = max(n // batch_size, 1)
        epochs = max(EPOCHS, ceil(STEPS / steps))
        share = 1.0 if budget is None else budget / (ALL * epochs * steps)
        return max(2, round(epochs * share)), max(1, min(ROUNDS, round(ROUNDS * share)))

    @staticmethod
    def warm_up_of(n: int, batch_size: int, epochs: int) -> int:
        """In how many epochs of a training with ``n`` samples no class is given up: a third at most."""
        return min(max(WARM_UP, ceil(WARM_UP_STEPS / max(n // batch_size, 1))), epochs // 3)


@dataclass(frozen=True)
class Pool:
    """Samples that may be learnt from."""

    x: Tensor  #: on the CPU
    labels: IntArray | BoolArray
    weight: FloatArray
    groups: IntArray | None = None

    def take(self, rows: IntArray) -> Pool:
        """Some of them."""
        groups = None if self.groups is None else self.groups[rows]
        return Pool(self.x[torch.as_tensor(rows)], self.labels[rows], self.weight[rows], groups)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Tried:
    """Runs of a candidate, one a fold: how likely they make labels that they have not seen, at checkpoints."""

    model: ModelChoice
    rate: float
    belief: Belief
    warm_up: int
    epochs: tuple[int, ...]
    each: FloatArray  #: -log (pQ)_ybar of held-out samples, (checkpoints, n)
    weight: FloatArray  #: of these samples
    logits: FloatArray  #: (checkpoints, n, k)
    contradicted: bool = False  #: whether held-out labels contradict its Q, so that another was tried

    @cached_property
    def scores(self) -> FloatArray:
        """The mean at each checkpoint, averaged with its neighbours'."""
        with np.errstate(invalid="ignore"):
            means = self.each @ self.weight / self.weight.sum()
        return np.nan_to_num(smoothed(means), nan=np.inf)

    @property
    def best(self) -> int:
        """The place of its best checkpoint."""
        return int(np.argmin(self.scores))

    @property
    def score(self) -> float:
        """Its score there."""
        return float(self.scores[self.best])

    def behind(self, other: Tried, errors: float = 1.0) -> bool:
        """Whether it is behind another by more than so many standard errors of the difference."""
        behind = (self.each[self.best] - other.each[other.best]) * (self.weight / self.weight.mean())
        return not behind.mean() <= errors * behind.std() / np.sqrt(len(behind))

    def joined(self, others: Sequence[Tried]) -> Tried:
        """The same with the runs of further folds, up to the checkpoint that all of them have."""
        runs = [self, *others]
        last = min(len(run.epochs) for run in runs)
        return replace(
            self,
            epochs=self.epochs[:last],
            each=np.concatenate([run.each[:last] for run in runs], axis=1),
            weight=np.concatenate([run.weight for run in runs]),
            logits=np.concatenate([run.logits[:last] for run in runs], axis=1),
        )

    def row(self, chosen: Tried, cut: bool) -> dict[str, Any]:
        """For a table."""
        return {
            "model": self.model if isinstance(self.model, str | dict) else "own",
            "lr": self.rate,
            "transition": q_in_words(self.belief.transition_source, self.belief.family, self.belief.basis),
            "epoch": self.epochs[self.best],
            "score": -self.score,
            "samples": self.each.shape[1],
            "chosen": self is chosen,
            "cut": cut,
            "contradicted": self.contradicted,
        }


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, by what, and how good it seems."""

    chosen: Tried
    told: Any  #: Q, as an estimator takes it
    tried: tuple[Tried, ...]
    temperature: float  #: that makes held-out labels likeliest
    estimate: LabelFreeConfusion | None  #: from held-out labels, for the chosen model before it saw them
    weight_decay: float
    cut: bool = False  #: whether the time was over before all was tried

    @property
    def epoch(self) -> int:
        """How long it is trained."""
        return self.chosen.epochs[self.chosen.best]

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen, as an estimator takes it."""
        return {
            "model": self.chosen.model,
            "lr": self.chosen.rate,
            "max_epochs": self.epoch,
            "weight_decay": self.weight_decay,
            "transition": self.told,
            "warm_up": self.chosen.warm_up,
        }

    def table(self) -> list[dict[str, Any]]:
        """A row a candidate, those that were tried on most samples first, and of these the likeliest."""
        order = sorted(self.tried, key=lambda one: (-one.each.shape[1], one.score))
        return [one.row(self.chosen, self.cut) for one in order]


def choose(pool: Pool, given: Given, say: Say = lambda line: None) -> Selection:
    """Choose Q, model, rate and epoch by the likelihood of held-out complementary labels.

    1. Samples are split into folds, whole groups at a time. Candidates (models and rates, those of a model in one
       stack) are trained on all but the first, told the Q that is given, or popularity's. At every checkpoint the
       held-out labels' -log (pQ)_ybar is averaged with its neighbours'.
    2. If no Q is given, it is estimated from the training labels with cross-fitted models of the kind that learnt best
       in short time (:func:`wcll.crossfit.cross_fitted`). Unless that is popularity again, candidates are trained once
       more, told the estimate after a warm-up; it is taken unless held-out labels speak against it.
    3. Those candidates that are hardly behind are trained for the other folds as well: a fold alone has too few labels
       to tell rates and epochs apart.
    4. The candidate and checkpoint that make the labels of all folds likeliest are taken. Popularity takes classes to
       be about equally frequent, so that uniform labels of rare classes, say, contradict it. Where labels contradict
       popularity and no Q is given, ``OTHERS`` are asked: the likeliest of those that labels do not contradict is told
       to the same candidate, which is taken unless held-out labels speak against it.
    5. A temperature is taken by the same labels, and an estimate of accuracy. All of it is of models that have not seen
       these labels.

    Weight decay is not among the candidates: 1e-3 costs 8 points on the digits, 1e-2 27, and none at all makes no
    difference to 1e-4 (``benchmarks/results/ingredients.txt``).
    """
    clock = _Clock(given.max_time, say)
    (rows, part), *further = split(pool, given.seed)
    rest, first = pool.take(rows), _Judge(pool.take(part), given.n_classes, given.classes)
    told = EARLY if given.transition is None else given.transition
    belief = Belief.of(told, _totals(rest, given.n_classes))
    tried = list(_candidates(rest, first, belief, given, clock))
    chosen = min(tried, key=lambda one: one.score)
    say(f"{_name(chosen)}: epoch {chosen.epochs[chosen.best]}, held-out log-likelihood {-chosen.score:.4f}")
    if given.transition is None:
        found = _estimated(rest, tried, given, clock)
        if found is not None and (found.chosen.number or found.chosen.start != EARLY):
            better = Belief.of(found, _totals(rest, given.n_classes))
            again = list(_candidates(rest, first, better, replace(given, models=[chosen.model]), clock))
            second = min(again, key=lambda one: one.score)
            say(f"{_name(second)}, told Q from {found.basis}: held-out log-likelihood {-second.score:.4f}")
            tried += again
            if not second.behind(chosen):
                chosen, told = second, found
    short = _short_list(tried, chosen)
    parts, finalists = _on_further(pool, further, short, given, clock)
    judge = _Judge(pool.take(np.concatenate([part, *parts])), given.n_classes, given.classes)
    chosen = min(finalists, key=lambda one: one.score)
    say(f"{_name(chosen)}: epoch {chosen.epochs[chosen.best]} of {len(judge.held)} held-out samples")
    estimate = judge.estimate(chosen)
    tried = [*finalists, *(one for one in tried if one not in short)]
    if told is EARLY and given.transition is None and estimate is not None and estimate.check.contradicted:
        other = _told_another(pool, [(rows, part), *further], chosen, judge, given, clock)
        if other is not None:
            say(f"{_name(other)}, told {other.belief.family} labels: held-out log-likelihood {-other.score:.4f}")
            tried = [other, *(replace(one, contradicted=one.belief is chosen.belief) for one in tried)]
            chosen, told, estimate = other, str(other.belief.family), judge.estimate(other)
    return Selection(
        chosen=chosen,
        told=told,
        tried=tuple(tried),
        temperature=judge.temperature(chosen.logits[chosen.best], chosen.belief.transition),
        estimate=estimate,
        weight_decay=given.weight_decay,
        cut=clock.over,
    )


def in_words(
    table: Sequence[dict[str, Any]], belief: Belief, estimate: LabelFreeConfusion | None, temperature: float
) -> str:
    """What was chosen, why, how sure that is, and what was assumed."""
    (chosen,), others = [row for row in table if row["chosen"]], [row for row in table if not row["chosen"]]
    lines = [
        f"Of {len(table)} candidates: {chosen['model']} at a rate of {chosen['lr']:g} for {chosen['epoch']} epochs, "
        f"by the likelihood of the complementary labels of {chosen['samples']} samples in models that had not seen "
        f"them ({chosen['score']:.4f} on average, in logarithms)."
    ]
    if others:
        next_best = others[0]
        lines.append(
            f"The best of the others is {next_best['model']} at {next_best['lr']:g} with {next_best['score']:.4f}, "
            f"told {next_best['transition']}."
        )
    if any(row.get("contradicted") for row in others):
        lines.append(f"Held-out labels contradict popularity, which was tried first, and not {belief.family} labels.")
    if chosen.get("cut"):
        lines.append("Time was over before all was tried, so that another run may choose otherwise.")
    lines.append(f"Assumed: {belief}.")
    if estimate is not None and estimate.warning is not None:
        lines.insert(0, f"Warning: {estimate.warning}.")
    elif estimate is not None:
        figure = estimate.accuracy
        lines.append(
            f"On held-out labels, before it saw them, its accuracy is estimated as {100 * figure.value:.1f} % "
            f"({100 * figure.low:.1f} to {100 * figure.high:.1f}): {figure.verdict}."
        )
    lines.append(f"Probabilities are those at a temperature of {temperature:.2f}, by the same labels.")
    return "\n".join(lines)


def split(pool: Pool, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Which samples are trained on and which choices are made by, fold by fold; groups stay on one side."""
    wanted = max(FOLDS, ceil(FOLDS * len(pool) / MOST_HELD_OUT))
    if pool.groups is None:
        parts = KFold(wanted, shuffle=True, random_state=seed).split(pool.labels)
    else:
        if (found := len(np.unique(pool.groups))) < LEAST_GROUPS:
            raise InputError("groups", f"at least {LEAST_GROUPS} groups, for splits", found)
        kind = GroupKFold(min(wanted, found), shuffle=True, random_state=seed)
        parts = kind.split(pool.labels, groups=pool.groups)
    return list(islice(parts, FOLDS))


class _Judge:
    """Held-out labels, and how likely models make them."""

    def __init__(self, held: Pool, n_classes: int, classes: NDArray[Any] | None) -> None:
        self.held, self.n_classes, self.classes = held, n_classes, classes
        self.mask = to_mask(held.labels, n_classes).astype(np.float64)
        self.share = held.weight / held.weight.sum()

    def each(self, logits: FloatArray, matrix: FloatArray, temperature: float = 1.0) -> FloatArray:
        """-log (pQ)_ybar of each sample; of several labels the product of their chances."""
        tiny = np.finfo(np.float64).tiny
        log_labels = self.mask @ np.log(np.maximum(matrix, tiny)).T
        with np.errstate(invalid="ignore"):
            each: FloatArray = -logsumexp(log_softmax(logits / temperature, axis=-1) + log_labels, axis=-1)
        return each

    def temperature(self, logits: FloatArray, matrix: FloatArray) -> float:
        """The one that makes held-out labels likeliest."""
        found = minimize_scalar(
            lambda log: float(self.share @ self.each(logits, matrix, float(np.exp(log)))),
            bounds=(np.log(LOWEST), np.log(HIGHEST)),
            method="bounded",
        )
        return float(np.exp(found.x))

    def estimate(self, tried: Tried) -> LabelFreeConfusion | None:
        """How good a candidate is, from labels that it has not seen; one a sample, all alike, or nothing is said."""
        weighted = np.ptp(self.held.weight) > 0  # intervals are of counts
        if self.held.labels.ndim == 2 or weighted or np.linalg.matrix_rank(tried.belief.transition) < self.n_classes:
            return None
        return label_free_confusion(self.table(tried), tried.belief, classes=self.classes)

    def table(self, tried: Tried) -> IntArray:
        """Held-out labels, one a sample, against predictions."""
        return complementary_table(self.held.labels, tried.logits[tried.best].argmax(-1), self.n_classes)


class _OutOfTimeError(Exception):
    """An estimate of Q is given up."""


class _Clock:
    """Says when it is time to come to an end, and from time to time what is being done."""

    def __init__(self, seconds: float | None, say: Say) -> None:
        self.end = None if seconds is None else monotonic() + seconds
        self.say, self.said = say, monotonic()

    def doing(self, what: str) -> None:
        """Say so, unless something was said a short time ago."""
        if monotonic() - self.said >= QUIET:
            self.said = monotonic()
            self.say(what)

    @property
    def over(self) -> bool:
        """Whether it is; where several processes train together, by the clock of the first."""
        if self.end is None:
            return False
        over, who = monotonic() >= self.end, ranks()
        return over if who is None else who.first_says(over)


def _candidates(
    rest: Pool, judge: _Judge, belief: Belief, given: Given, clock: _Clock, last: int | None = None
) -> Iterator[Tried]:
    """All rates of every model, trained as one stack; of a user's own module one after the other."""
    epochs = last or given.epochs
    for model, rates in _stacks(given):
        looked_at, kept = given.looked_at, list[FloatArray]()
        engine = _engine(rest, model, rates, belief, given, epochs, given.warm_up, given.seed)
        held, trying = engine.prepare(judge.held.x), f"trying {_words(model)}"

        def look(
            engine: Engine, held: Tensor = held, at: Any = looked_at, kept: Any = kept, trying: str = trying
        ) -> bool:
            if engine.epoch in at:
                kept.append(engine.predict(0, held).double().cpu().numpy())
            clock.doing(f"{trying}, epoch {engine.epoch} of {epochs}")
            return clock.over and bool(kept)

        train(engine, epochs, [look])
        for i, rate in enumerate(rates):
            logits = np.stack([one[i] for one in kept])
            each = np.stack([judge.each(one, belief.transition) for one in logits])
            yield Tried(model, rate, belief, given.warm_up, looked_at[: len(kept)], each, judge.held.weight, logits)


def _short_list(tried: Sequence[Tried], best: Tried) -> list[Tried]:
    """The candidates told the same Q that are not surely behind the best, which is one of them."""
    rivals = [one for one in tried if one.belief is best.belief and not one.behind(best, OUT)]
    return sorted({best, *rivals}, key=lambda one: one.score)[:SHORT]


def _on_further(
    pool: Pool, folds: Sequence[tuple[IntArray, IntArray]], short: Sequence[Tried], given: Given, clock: _Clock
) -> tuple[list[IntArray], list[Tried]]:
    """What was held out, and candidates with runs for it, until well past where they were best on the first."""
    last = min(given.epochs, FURTHER * max(one.epochs[one.best] for one in short))
    found: dict[Tried, list[Tried]] = {one: [] for one in short}
    parts: list[IntArray] = []
    for number, (rows, part) in enumerate(folds, 2):
        clock.doing(f"fold {number} of {len(folds) + 1}")
        rest, judge = pool.take(rows), _Judge(pool.take(part), given.n_classes, given.classes)
        runs: dict[Tried, Tried] = {}
        for model in given.models:
            if same := [one for one in short if one.model is model]:
                these = replace(given, models=[model], rates=[one.rate for one in same])
                runs |= zip(same, _candidates(rest, judge, same[0].belief, these, clock, last), strict=True)
        if clock.over:
            break  # runs that were cut short say nothing of later epochs
        parts.append(part)
        for one, run in runs.items():
            found[one].append(run)
    return parts, [one.joined(runs) for one, runs in found.items()]


def _told_another(
    pool: Pool,
    folds: Sequence[tuple[IntArray, IntArray]],
    chosen: Tried,
    judge: _Judge,
    given: Given,
    clock: _Clock,
) -> Tried | None:
    """The chosen candidate, told another family that labels do not contradict; None if none is better."""
    (rows, part), *further = folds
    rest, table = pool.take(rows), judge.table(chosen)
    beliefs = [Belief.of(family, _totals(rest, given.n_classes)) for family in OTHERS]
    beliefs = [one for one in beliefs if not check_table(table, one).contradicted]
    if clock.over or not beliefs:
        return None
    logits = chosen.logits[chosen.best]
    belief = min(beliefs, key=lambda one: float(judge.share @ judge.each(logits, one.transition)))
    these = replace(given, models=[chosen.model], rates=[chosen.rate])
    first = _Judge(pool.take(part), given.n_classes, given.classes)
    (other,) = _candidates(rest, first, belief, these, clock)
    _, (other,) = _on_further(pool, further, [other], these, clock)
    if other.each.shape[1] < chosen.each.shape[1] or other.behind(chosen):  # the time is over, or it is worse
        return None
    return None if check_table(judge.table(other), belief).contradicted else other


def _stacks(given: Given) -> Iterator[tuple[ModelChoice, Sequence[float]]]:
    for model in given.models:
        together = family_of(model) is not Family.OWN
        yield from ((model, rates) for rates in ([given.rates] if together else [[rate] for rate in given.rates]))


def _estimated(rest: Pool, tried: Sequence[Tried], given: Given, clock: _Clock) -> ModelTransition | None:
    """Q from the training labels, with models of the kind that learnt best in short time; None if the time is over."""
    if clock.over:
        return None
    half = len(rest) // 2
    steps = max(half // given.batch_size, 1)
    images = all(family_of(model) is Family.IMAGE for model in given.models)
    least, rounds = (IMAGE_EPOCHS, min(IMAGE_ROUNDS, given.rounds)) if images else (FEW_EPOCHS, given.rounds)
    few = min(max(least, ceil(FEW_STEPS / steps)), given.epochs)
    place = int(np.searchsorted(tried[0].epochs, min(ceil(few / 2), tried[0].epochs[-1])))
    able = [one for one in tried if one.rate >= RATE] or tried  # too slow a model finds no Q but the one it was told
    quick = min(able, key=lambda one: float(one.scores[place]))
    together = family_of(quick.model) is not Family.OWN  # several rates, as their mean is steadier
    rates = [one.rate for one in able if one.model is quick.model] if together else [quick.rate]
    warm_up = given.warm_up_of(half, given.batch_size, few)
    numbers = count(1)

    def predict(matrix: FloatArray, inside: IntArray, part: IntArray, seed: int) -> FloatArray:
        told = Belief.given(matrix, _totals(rest, given.n_classes))
        engine = _engine(rest.take(inside), quick.model, rates, told, given, few, warm_up, seed)
        clock.doing(f"estimating how labels are chosen, model {next(numbers)}")
        train(engine, few, [lambda engine: clock.over])
        if clock.over:
            raise _OutOfTimeError
        logits = engine.predict(0, engine.prepare(rest.x[torch.as_tensor(part)]))
        return logits.double().softmax(-1).mean(0).cpu().numpy()

    seeds = np.random.RandomState(given.seed)
    mask = to_mask(rest.labels, given.n_classes)
    try:
        return cross_fitted(mask, predict, seeds, sample_weight=rest.weight, groups=rest.groups, rounds=rounds)
    except _OutOfTimeError:
        return None


def _engine(
    pool: Pool,
    model: ModelChoice,
    rates: Sequence[float],
    belief: Belief,
    given: Given,
    epochs: int,
    warm_up: int,
    seed: int,
) -> Engine:
    """Runs of one model at some rates."""
    spec, weight = LOSSES[LOSS], pool.weight
    scaled = torch.as_tensor(weight / weight.mean(), dtype=given.dtype) if np.ptp(weight) > 0 else None
    targets = Targets.of(torch.as_tensor(pool.labels), given.n_classes, scaled, float(weight.mean()))
    loss = RunLoss(spec, (), spec.told(belief), 0, len(rates))
    if warm_up:
        loss = loss.after(warm_up, spec.told(Belief.of(EARLY, _totals(pool, given.n_classes))))
    training = Training(
        model=model,
        n_classes=given.n_classes,
        scale=1.0,
        batch_size=given.batch_size,
        weight_decay=given.weight_decay,
        dtype=given.dtype,
        device=given.device,
        epochs=epochs,
        recipe=given.recipe,
    )
    return make_engine([RunGroup(pool.x, targets, seed, list(rates), [loss])], training)


def _totals(pool: Pool, n_classes: int) -> FloatArray:
    """Label counts; half a label each where some class was never named, as others of its samples may be held out."""
    totals = label_totals(pool.labels, n_classes, pool.weight)
    return totals if totals.all() else totals + 0.5


def _name(tried: Tried) -> str:
    return f"{_words(tried.model)} at {tried.rate:g}"


def _words(model: ModelChoice) -> str:
    return model if isinstance(model, str) else str(model["name"]) if isinstance(model, dict) else "model"
