"""The scikit-learn face: fit on features and complementary labels, predict classes."""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from wcll import _auto
from wcll._fitting import (
    Samples,
    Stream,
    check_features,
    check_groups,
    check_labels,
    check_neighbor_features,
    check_target_prior,
    seed_of,
    to_tensor,
)
from wcll._neighbors import (
    Scaling,
    column_scaling,
    components,
    label_purity,
    label_shares,
    nearest_neighbors,
    standardized,
)
from wcll._random import stream_seed
from wcll._validation import FloatArray, IntArray, choice, non_negative, positive, sample_weights, whole
from wcll.evaluation import LabelFreeConfusion
from wcll.exceptions import InputError, InputTypeError, LabelWarning
from wcll.keeping import KeptClassifier
from wcll.labels import Belief
from wcll.labels.counts import label_totals, observed_marginal
from wcll.labels.families import EARLY
from wcll.labels.goodness_of_fit import asked_by_features, check_samples, corrected_twice, doubts
from wcll.labels.transition import normalised
from wcll.labels.weights import WEIGHTINGS, ClassWeights, PiSource, weights_of_marginal
from wcll.losses import LOSSES, LossSpec, Targets
from wcll.models.base import Family, ModelChoice, Turns, UserStack, check_size, family_of, folded, named, unfolded
from wcll.training import Engine, RunGroup, RunLoss, Training, dtype_and_device, make_engine, torch_threads, train
from wcll.training.recipe import recipe_of, usual, usual_model
from wcll.training.runs import training_threads

LOG = logging.getLogger("wcll")


@dataclass(frozen=True)
class FitEpoch:
    """What a callback is told after an epoch of ``fit``."""

    epoch: int  #: how many are done, counted over warm starts
    loss: float  #: the mean over the epoch's batches
    seconds: float
    _model: ComplementaryClassifier
    _engine: Engine
    _samples: Samples

    def classifier(self) -> ComplementaryClassifier:
        """The classifier as it is now, to predict with, to score or to save; training goes on without it."""
        if self._engine.epoch != self.epoch:
            raise RuntimeError("training has gone on: ask for the classifier in the callback of its epoch")
        taken = copy.copy(self._model)
        for name in ("classes_", "label_totals_", "belief_", "history_"):
            setattr(taken, name, copy.deepcopy(getattr(taken, name)))
        taken.transition_, taken.weights_ = taken.belief_.transition, taken.belief_.weights
        return taken._taken_from(self._engine, self._samples, copied=True)


Callback = Callable[[FitEpoch], bool | None]

#: What only some fits leave.
SOMETIMES = (
    "image_shape_",
    "image_bytes_",
    "feature_names_in_",
    "chosen_",
    "selection_",
    "estimate_",
    "prior_",
    "neighbor_purity_",
)
FOLDABLE = (Family.LINEAR, Family.DENSE)  #: models whose first layer can take over the scaling of features
BATCH_SIZE = 256  #: samples of a step, if nothing else is said
MIN_TO_SCALE = 30  #: samples of a first part; the standard deviation of fewer is off by more than 13 %
MAX_OFFSET = 1e5  #: of a mean in standard deviations; from there on float32 is off by a hundredth of one
AT_ONCE = 4096  #: training samples whose probabilities are added up together
#: What is taken where a user names a loss and nothing else: the paper's setting.
PAPER: dict[str, Any] = {
    **{"model": "linear", "lr": 5e-4, "max_epochs": 100, "weight_decay": 1e-4, "warm_up": 0},
    **{"neighbors": 1, "standardize": False},
}


def _check_uses_weights(loss: RunLoss, like: torch.Tensor, samples: Samples, *, given: Any) -> None:
    """Fail if weights, ``given`` or those of several labels of a sample, would have no effect."""
    if loss.uses_sample_weights(like, sets=samples.labels.mask is not None):
        return
    what, remedy = (
        "a loss that does not use sample weights",
        "multiply the loss of each sample by targets.sample_weight",
    )
    if given is None:
        raise InputError("y", f"one label per sample for {what}", "several, which are pairs with weights", remedy)
    got = f"numbers from {samples.weight.min():g} to {samples.weight.max():g}"
    raise InputError("sample_weight", f"None for {what}", got, remedy)


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy, or the module itself if it holds what cannot be copied, such as outputs of its last step."""
    try:
        return copy.deepcopy(module)
    except Exception:  # whatever a user's attributes raise
        return module


def _ask(samples: Samples, belief: Belief, groups: NDArray[Any] | None, *, stacklevel: int) -> str | None:
    """Warn, in one line, if the labels may be true ones, and return the line."""
    question = asked_by_features(samples.features, samples.labels.values, belief.transition, groups)
    if question is not None:
        warnings.warn(question, LabelWarning, stacklevel=stacklevel)
    return question


class ComplementaryClassifier(KeptClassifier):
    """A classifier that learns from complementary labels: what a sample is NOT.

    Parameters
    ----------
    loss : str, dict or callable
        ``"auto"`` chooses: see Notes. Or a loss of ``wcll methods``, or ``{"name": "wcll", "reading": "algorithm1"}``
        with options, or a function of logits (1, n, k) and :class:`wcll.losses.Targets` to a loss of shape (1,).
        ``"wcll"`` alone is the paper's method in its setting.
    model : str, dict, torch module or callable, optional
        ``"linear"``, ``"mlp"``, ``"cnn9"``, ``"resnet18"`` (images: X of shape (n, channels, height, width)), options
        as ``{"name": "mlp", "hidden": 200}``, a torch module (copied, trained from the weights it has), or a function
        ``(input_shape, n_classes) -> module``. None is ``"linear"``, or for ``loss="auto"`` the better of it and
        ``"mlp"`` (for images on a GPU ``cnn9``: see ``training``). What modules and losses of your own draw from
        torch's global stream comes from one that ``random_state`` seeds, also while other threads fit or predict; draws
        of other threads of yours, outside this class, cannot be kept apart from it.
    classes : sequence, optional
        Every class, if some may never occur as a label; in the order of outputs. Without it, the categories of a
        categorical column of pandas are what is declared, also those that no sample has; of any other labels the
        classes are those that occur, sorted.
    transition : None, a name of ``wcll.labels.FAMILIES``, an estimate of Q, or array of shape (k, k)
        The assumed ``Q[y, ybar]``. None is uniform, or for ``loss="auto"`` what labels and models tell;
        ``"popularity"``, ``"inverse-size"`` and others recover it from the label counts;
        :func:`~wcll.labels.transition_from_pairs`, ``transition_from_repeated`` and
        :func:`wcll.transition_estimation.transition_with_model` estimate it.
    warm_up : int or float, optional
        Epochs at the beginning that are trained with popularity's Q, and in which ``forward`` does not stop predicting
        any class (its ``balance``). Without them a model may exchange classes with similar rows of Q, or lose a rare
        class. None is 0; for ``loss="auto"`` 300 steps, 100 for fewer than 500 samples, and a third of all at most.
    weights : None, "auto", str or array of shape (k,)
        Class weights: ``"auto"`` is Eq. 13 from the recovered pi for the loss ``wcll``, none for others; or
        ``"inverse-frequency"``, ``"effective-number"``, ``"wcll"``, or your own. They are for samples that were kept or
        dropped by their label; a Q corrects the choice of labels already, and both together correct twice.
    target_prior : None, "balanced" or array of shape (k,)
        How frequent classes are where predictions are for: as among the training samples, all alike, or your own
        shares, in the order of classes. Predictions are moved from ``prior_`` to it; training is not touched, so it may
        be set after ``fit``, too. Rare classes gain recall by it and others lose; accuracy on samples like those of
        training can only fall, if the model is right.
    training : {"plain", "strong"} or dict, optional
        ``"plain"`` is the paper's: Adam at one rate, samples as they are. ``"strong"`` is for networks for images:
        views of them (moved, mirrored), mixup, consistency with what the model says of another view, AdamW with a rate
        that rises and falls, an average of weights, and the mean over an image and its mirror image in predictions.
        ``{"name": "strong", "flip": False}`` changes options of :class:`wcll.training.Recipe`: digits, say, are not to
        be mirrored (``test_flip`` neither). None is "plain", or for ``loss="auto"`` "strong" with a convolutional
        ``model``, and on a GPU for images of 16 pixels a side or more (not mirrored if they have no colour).
    lr, max_epochs, weight_decay : optional
        Adam with L2 decay. None is the paper's 5e-4, 100 epochs and 1e-4. For ``loss="auto"`` the learning rate is 1e-2
        for a linear model and 1e-3 for a network, and the length is selected, up to 1500 or 2000 steps (or
        ``max_epochs``). For ``training="strong"`` 1e-3, 80 epochs (or 1500 steps) and 0.05, and nothing is chosen among
        them; ``model`` is then ``cnn9``, if none is given, and without drop-out, unless ``{"name": "cnn9", "dropout":
        0.25}`` says otherwise (with drop-out, rare classes are given up).
    batch_size : int
    neighbors : int, optional
        Train each sample with the complementary labels of its nearest samples, so many with itself; only for
        ``forward``. None is 1, its own labels; for ``loss="auto"`` 10, unless held-out labels prefer 1.
    standardize : bool, optional
        Train a linear model or an mlp on features of mean 0 and deviation 1. The first layer of the fitted model takes
        them as they are. Training that continues keeps the first fit's scaling. None is False; for ``loss="auto"`` True
        where ranges of columns differ 30-fold.
    budget : int, optional
        For ``loss="auto"``: the work of the search. 30,000 (None) is all of it; 3000 makes its trainings a tenth as
        long. It counts steps and no time, so that results repeat.
    max_time : float, optional
        For ``loss="auto"``: seconds after which the search ends, and the best candidate so far is fitted to all
        samples. Results then depend on the machine: ``report`` says if time was over.
    dtype : {"float32", "float64"}
    device : str
        ``"auto"`` takes a GPU if there is one; else as torch names it. On a GPU, convolutional models of this package
        compute in bfloat16 where they are trained in float32; their parameters stay float32.
    random_state : int, RandomState or None
    warm_start : bool
        Go on from the last fit instead of starting anew.
    verbose : int
        Print a line every ``verbose`` epochs, and what ``loss="auto"`` is doing; if 0, the logger "wcll" is told that.
    callbacks : sequence of callables
        Called after every epoch with a :class:`FitEpoch`: its number, loss and seconds, and the classifier as it is
        then; one that returns True ends training, as :class:`wcll.evaluation.EarlyStopping` does.

    Attributes
    ----------
    classes_ : array of shape (k,)
    history_ : list of dict
        A row an epoch: ``epoch``, ``loss``, ``seconds``.
    belief_ : wcll.labels.Belief
        What was believed of the labels: Q, class shares and weights, each with its source; ``print`` says it in words.
    transition_ : array of shape (k, k)
        Its Q.
    weights_ : ClassWeights or None
        Its class weights, and which pi they were made from.
    selection_ : list of dict
        After ``loss="auto"``: a row per candidate, the likeliest first: ``model``, ``lr``, ``transition``,
        ``neighbors``, ``epoch``, ``score`` (mean log-likelihood of held-out labels), ``samples`` (how many these are),
        ``chosen``, and ``cut`` if ``max_time`` was over before the search was.
    chosen_ : dict
        After ``loss="auto"``: the settings that were chosen, as they could be given.
    neighbor_purity_ : float or None
        If ``neighbors`` were used: the share of them that are of the sample's own class, estimated from the labels and
        Q. None where labels say too little for that.
    temperature_ : float
        By which ``predict_proba`` divides logits: 1, or after ``loss="auto"`` what makes held-out labels likeliest.
    prior_ : array of shape (k,)
        The class shares of the training samples as the model tells them: the mean of its probabilities, with sample
        weights, over calls of ``partial_fit`` that of all parts; only for losses that learn probabilities.
    estimate_ : LabelFreeConfusion or None
        After ``loss="auto"``: estimates of the selected model on held-out labels, as :meth:`evaluate` gives them. None
        where samples have several labels, or weights that differ, or where Q has no inverse.
    coef_, intercept_ : arrays of shape (k, d) and (k,)
        Of a linear model: scores are ``X @ coef_.T + intercept_``, for the class shares of ``target_prior``. A row a
        class, also for two classes, where scikit-learn has one row: ``decision_function`` is then the difference of
        both. Images count as flattened, and their unsigned bytes as scaled. Other models have none.
    n_features_in_, n_iter_ : int

    Notes
    -----
    ``loss="auto"`` selects by the likelihood of held-out complementary labels; no true label is used.

    1. Samples are split into five folds, of which two are used from 5000 samples on. Groups, and copies of a row, lie
       in one fold. Nearest neighbours are found, and Q is estimated with cross-fitted linear models, on the training
       part of each fold alone.
    2. Linear models are trained with each Q (popularity, uniform, inverse-size, estimates) on labels of near samples,
       and with popularity and one estimate on own labels, in one stack. Popularity is taken unless another Q is better
       by two standard errors, or unless held-out labels reject popularity and not another family that is as likely.
    3. An mlp is trained with that Q, and taken if it is better by one standard error.
    4. What was selected is fitted to all samples, with Q estimated once more from all of them.

    Of more than 50,000 samples the search takes so many at random, and so many may be neighbours.
    Whatever is given (``model``, ``lr``, ``weight_decay``, ``transition``, ``warm_up``) is taken as it is.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from wcll.labels import make_complementary
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> ybar = make_complementary(y, random_state=0)        # for each sample, a class that it is not
    >>> model = ComplementaryClassifier("log", lr=0.05, random_state=0).fit(X, ybar)
    >>> bool((model.predict(X) == y).mean() > 0.85)
    True
    """

    model: Any  # these eight may be left open; a copy that learns has them settled
    lr: Any
    max_epochs: Any
    weight_decay: Any
    warm_up: Any
    neighbors: Any
    standardize: Any
    training: Any
    estimate_: LabelFreeConfusion | None

    def __init__(  # noqa: PLR0913
        self,
        loss: str | dict[str, Any] | Callable[..., torch.Tensor] = "auto",
        *,
        model: ModelChoice | None = None,
        classes: Sequence[Any] | None = None,
        transition: str | ArrayLike | None = None,
        warm_up: int | None = None,
        weights: str | ArrayLike | None = "auto",
        target_prior: str | ArrayLike | None = None,
        lr: float | None = None,
        max_epochs: int | None = None,
        batch_size: int = BATCH_SIZE,
        weight_decay: float | None = None,
        neighbors: int | None = None,
        standardize: bool | None = None,
        training: str | dict[str, Any] | None = None,
        budget: int | None = None,
        max_time: float | None = None,
        dtype: str = "float32",
        device: str = "auto",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.loss = loss
        self.model = model
        self.classes = classes
        self.transition = transition
        self.warm_up = warm_up
        self.weights = weights
        self.target_prior = target_prior
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.neighbors = neighbors
        self.standardize = standardize
        self.training = training
        self.budget = budget
        self.max_time = max_time
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.callbacks = callbacks

    # Learning

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        neighbor_features: ArrayLike | None = None,
    ) -> Self:
        """Learn from features and complementary labels.

        Parameters
        ----------
        X : array of shape (n, d), or images (n, channels, height, width), whose unsigned bytes are scaled to [0, 1]
            Or a table, or a sparse matrix of SciPy, which is made dense if that fits into memory.
        y : complementary labels
            Names or integers of shape (n,); or lists of several a sample; or a mask of shape (n, k) of "not these".
        sample_weight : array of shape (n,), optional
            Without ``neighbors`` an integer weight equals repetition; the scale does not matter. Weights that differ
            are refused for a loss that does not use them, as a function of your own may not.
        groups : array of shape (n,), optional
            For ``loss="auto"``: samples of one group, such as images of one patient, are on one side of every split.
        neighbor_features : array of shape (n, m), optional
            Features in which nearest neighbours are found, such as outputs of a pretrained network; X by default.

        Warns
        -----
        LabelWarning
            In one line each: if label counts contradict the assumed Q, so that no class shares could have given them;
            if a declared class is never a label; if an entry Q[y, y] is the largest of its row; if Q and class weights
            correct for the same; if a quick classifier predicts labels so well that they may be true labels.
        """
        near = check_neighbor_features(neighbor_features, X)
        chooses = self._chooses()
        if near is not None and (self.neighbors if chooses else self._settled().neighbors) == 1:
            raise InputError("neighbor_features", "None where neighbors is 1", f"shape {near.shape}", "set neighbors")
        if chooses:
            return self._choose(X, y, sample_weight, groups, near=near)
        epochs = whole("max_epochs", self._settled().max_epochs)
        return self._learn(X, y, sample_weight, self.classes, epochs, part=False, near=near, groups=groups)

    def fit_stream(self, stream: Stream) -> Self:
        """Learn from samples that do not fit into memory, as ``wcll train --stream`` reads them.

        What is chosen, what is warned of, ``estimate_`` and ``prior_`` are of the samples that stand for all. Label
        counts are those of all, and so are class weights, and Q, where it is recovered from counts. An epoch is a pass
        over all samples: of ``loss="auto"`` there are as many as take the steps that were chosen, one at least.
        """
        if self.neighbors not in (None, 1):
            raise InputError("neighbors", "None or 1 for data that are streamed", self.neighbors)
        if self.standardize or (self.warm_start and getattr(self, "scaling_", None) is not None):
            raise InputError("standardize", "None or False, also in an earlier fit, for data that are streamed", True)
        if self._chooses():
            return self._choose(stream.x, stream.y, None, stream.groups, stream)
        epochs = whole("max_epochs", self._settled().max_epochs)
        return self._learn(
            stream.x, stream.y, None, self.classes, epochs, part=False, stream=stream, groups=stream.groups
        )

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One epoch on these data; label counts add up over calls.

        The first call needs ``classes`` (or the estimator's own): a part may lack some. As parts may be the same labels
        again, their counts are not asked whether they contradict Q; ``score`` asks. With ``loss="auto"`` nothing is
        chosen from a part: unless an earlier ``fit`` has chosen, ``forward`` is trained, told popularity.
        """
        go_on = hasattr(self, "network_")
        known = self.classes_ if go_on else self.classes if classes is None else classes
        if known is None:
            raise InputError("classes", "every class, in the first call of partial_fit", None)
        if go_on and classes is not None and not np.array_equal(classes, self.classes_):
            raise InputError("classes", f"the classes of the first call, {self.classes_.tolist()}", list(classes))
        return self._learn(X, y, sample_weight, known, 1, part=True)

    def _choose(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        stream: Stream | None = None,
        near: NDArray[Any] | None = None,
    ) -> Self:
        """Choose what was left open without a true label, and learn with it."""
        blank = copy.copy(self)
        blank.__dict__.pop("chosen_", None)  # of an earlier fit
        new = blank._settled()
        new._check_settings(go_on=False)
        if not (self.weights is None or (isinstance(self.weights, str) and self.weights == "auto")):
            raise InputError("weights", "none or 'auto' for loss='auto'", repr(self.weights), "name a loss")
        samples = new._check_samples(X, y, sample_weight, self.classes, go_on=False, part=False)
        totals = label_totals(samples.labels.values, len(samples.labels.classes), samples.weight)
        checked_groups = check_groups(groups, len(samples.features))
        question = _ask(samples, Belief.of(new.transition, totals + 0.5), checked_groups, stacklevel=4)
        _, device = dtype_and_device(self.dtype, self.device)
        if self.model is None and self.training is None:
            blank.training = _auto.training_for(samples.features.shape[1:], device)
            new = blank._settled()
            new._check_settings(go_on=False)
        if (weighted := int(np.count_nonzero(samples.weight))) < _auto.MIN_SAMPLES:
            few = f"{weighted} samples are too few to select by"
            warnings.warn(f"{few}: {_auto.LOSS} with popularity's Q is trained", LabelWarning, stacklevel=3)
            blank._learn(X, y, sample_weight, self.classes, new.max_epochs, part=False, stream=stream, near=near)
            self._become(blank)
            return self
        seed = seed_of(self.random_state)
        found, scaling = self._searched(samples, new, seed, checked_groups, near, stream)
        told = copy.copy(self)
        told.random_state = seed
        told.chosen_ = {
            "loss": _auto.LOSS,
            "training": new.training,
            **found.settings,
            **self._lengths(found.settings, len(samples.features), stream),
            "standardize": scaling is not None,
        }
        told.selection_, told.estimate_ = found.table(), found.estimate
        if told.estimate_ is not None and told.estimate_.warning is None and question is not None:
            told.estimate_ = told.estimate_.withdrawn(question)
        before = getattr(self, "network_", None)
        try:
            told._learn(
                X,
                y,
                sample_weight,
                self.classes,
                told.chosen_["max_epochs"],
                part=False,
                temperature=found.temperature,
                stream=stream,
                near=near,
            )
        finally:
            if getattr(told, "network_", None) is not before:
                self._become(told)
        return self

    def _searched(
        self,
        samples: Samples,
        new: Self,
        seed: int,
        groups: IntArray | None,
        near: NDArray[Any] | None,
        stream: Stream | None,
    ) -> tuple[_auto.Selection, Scaling | None]:
        """Return what is selected on samples, and the scaling of their features; ``new`` has the settings."""
        strong = usual(new.training)  # nothing, if it is plain
        n, budget = len(samples.features), None if self.budget is None else whole("budget", self.budget)
        epochs = None if self.max_epochs is None else whole("max_epochs", self.max_epochs)
        if stream is not None:
            epochs = None  # those are passes over all samples
        elif epochs is not None:
            epochs = ceil(epochs * max(n / _auto.MAX_SEARCHED, 1.0))  # of those that are searched with
        elif budget is None and strong:
            epochs = max(strong["max_epochs"], ceil(_auto.LINEAR_STEPS / max(n // self.batch_size, 1)))
        dtype, device = dtype_and_device(self.dtype, self.device)
        config = _auto.SearchConfig(
            n_classes=len(samples.labels.classes),
            model=new.model if strong else self.model,
            lr=new.lr if strong else self.lr,
            recipe=recipe_of(new.training),
            weight_decay=new.weight_decay,
            batch_size=self.batch_size,
            dtype=dtype,
            device=device,
            seed=seed,
            transition=self.transition,
            neighbors=self.neighbors,
            own_labels_only=stream is not None,
            warm_up=self.warm_up,
            max_epochs=epochs,
            budget=budget,
            max_time=None if self.max_time is None else positive("max_time", self.max_time),
            classes=samples.labels.classes,
        )
        scaling = None
        if self.standardize is not False and stream is None and family_of(config.model or "linear") in FOLDABLE:
            scaling = column_scaling(samples.features, always=self.standardize is True)
        x = to_tensor(standardized(samples.features, scaling), dtype, torch.device("cpu"))
        pool = _auto.Pool(x, samples.labels.values, samples.weight, groups, near)
        return _auto.choose(pool, config, print if self.verbose else LOG.info), scaling

    def _lengths(self, settings: dict[str, Any], n: int, stream: Stream | None) -> dict[str, float]:
        """Return epochs and warm-up of a training on all samples: as many steps as were selected on some of them."""
        epochs, warm_up = settings["max_epochs"], settings["warm_up"]
        ratio = (n if stream is None else stream.n) / min(n, _auto.MAX_SEARCHED)
        if ratio <= 1:
            return {"max_epochs": epochs, "warm_up": warm_up}
        passes = max(min(ceil(epochs / ratio), self.max_epochs or epochs), 1)
        if stream is None:
            return {"max_epochs": passes, "warm_up": min(ceil(warm_up / ratio), passes - 1)}
        return {"max_epochs": passes, "warm_up": min(warm_up / ratio, passes / 3)}  # it may end within a pass

    def _chooses(self) -> bool:
        """Whether a fit begins with choosing, and does not go on from an earlier one."""
        return self._is_auto() and not (self.warm_start and hasattr(self, "network_"))

    def _is_auto(self) -> bool:
        """Whether all that is not given is to be chosen."""
        return isinstance(self.loss, str) and self.loss == _auto.AUTO

    def _settled(self) -> Self:
        """A copy in which everything is settled that may be left open."""
        new, settings = copy.copy(self), dict(PAPER)
        if self._is_auto():
            settings |= {"lr": 2e-3, "transition": EARLY}
            new.loss = _auto.LOSS
            for name, value in getattr(self, "chosen_", {}).items():
                setattr(new, name, value)
        else:
            for name in ("chosen_", "selection_", "estimate_"):  # of an earlier fit
                new.__dict__.pop(name, None)
        if new.training is None:
            image = self._is_auto() and new.model is not None and family_of(new.model) is Family.IMAGE
            new.training = "strong" if image else "plain"
        elif not isinstance(new.training, str | dict):
            raise InputTypeError("training", "a name, or a dict of options", type(new.training).__name__)
        for name, value in (settings | usual(new.training)).items():
            if getattr(new, name) is None:
                setattr(new, name, value)
        new.model = usual_model(new.model, new.training)
        return new

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        classes: Any,
        epochs: int,
        *,
        part: bool,
        temperature: float = 1.0,
        stream: Stream | None = None,
        near: NDArray[Any] | None = None,
        groups: Any = None,
    ) -> Self:
        """Learn on a copy that takes this one's place once an epoch is over: what fails before changes nothing."""
        go_on = hasattr(self, "network_") and (part or self.warm_start)
        new = self._settled()
        spec, options = new._check_settings(go_on)
        samples = new._check_samples(X, y, sample_weight, self.classes_ if go_on else classes, go_on, part)
        one_each = samples.split() if samples.labels.mask is not None and not spec.several else samples
        new._start(one_each, spec, go_on, part, stream)
        if not go_on:
            new.temperature_ = temperature
        if not part:  # the parts of a stream may be the same labels again
            new._warn_of(samples, spec, check_groups(groups, len(samples.features)))
        samples = one_each
        training = new._training(len(new.classes_), epochs, go_on)
        if part:  # nobody knows how many will come
            training = replace(training, recipe=replace(training.recipe, schedule="constant"))
        if stream is not None:
            pairs = not spec.several
            feed = stream.feed(pairs=pairs, batch_size=self.batch_size, seed=new.seed_, dtype=self.dtype)
            training = replace(training, feed=feed)
        check_size(training.model, samples.features.shape[1:], training.n_classes, dtype=training.dtype)
        own = callable(self.loss)  # a user's loss may do something else at every step: nothing is recorded or left out
        fastest = training_threads(training.model, samples.features, training.n_classes, training.batch_size)
        with torch_threads(fastest) as threads:
            new.scaling_ = new._scaling(samples, go_on)
            index = new._neighbor_index(samples, near) if new.neighbors > 1 else None
            group = new._run_group(samples, spec, options, training.dtype, index)
            if np.ptp(samples.weight) > 0:
                _check_uses_weights(group.losses[0], training.like, samples, given=sample_weight)
            if stream is not None and training.feed is not None:
                group = group.streamed(training.feed)
            engine = make_engine([group], training, plain=own)
            if go_on and not engine.load_state(self.state_):
                LOG.info("kept by another kind of engine: the optimiser starts anew from the weights that were reached")
                engine.load_parameters(0, unfolded(self.network_.state_dict(), new.scaling_))
                engine.epoch = self.n_iter_
            begun = engine.epoch
            try:
                new._train(engine, samples, begun + epochs, threads)
            finally:
                if engine.epoch > begun:
                    self._become(new._taken_from(engine, samples))
        labels = samples.labels.index
        if index is not None and labels is not None:
            self.neighbor_purity_ = label_purity(labels, index, self.transition_, self.prior_)
        return self

    def _become(self, new: ComplementaryClassifier) -> None:
        """Take what another has learned; settings, and what callbacks may have set, stay."""
        settings = self.get_params(deep=False)
        for name in SOMETIMES:
            self.__dict__.pop(name, None)
        self.__dict__.update({name: value for name, value in new.__dict__.items() if name not in settings})

    def _check_samples(self, X: Any, y: Any, sample_weight: Any, classes: Any, go_on: bool, part: bool) -> Samples:
        features = check_features(self, X, reset=not go_on)
        labels = check_labels(y, classes, len(features))
        weight, n_classes = sample_weights(sample_weight, len(features)), len(labels.classes)
        check_target_prior(self.target_prior, n_classes)
        if part and not go_on and self.standardize and len(features) < MIN_TO_SCALE:
            expected = f"at least {MIN_TO_SCALE} samples in the first partial_fit with standardize=True"
            raise InputError("X", expected, len(features), "fewer do not show the scale of a column")
        if not part:  # parts of a stream may well have few samples, or one label only
            if len(features) < n_classes:
                got = f"n_samples = {len(features)}"
                raise InputError("X", f"at least as many samples as classes, {n_classes}", got)
            observed_marginal(labels.values, n_classes, sample_weight=weight)
        return Samples(features, labels, weight)

    def _start(self, samples: Samples, spec: LossSpec, go_on: bool, part: bool, stream: Stream | None) -> None:
        """Set all that is known before training."""
        if not go_on:
            self.seed_, self.classes_ = seed_of(self.random_state), samples.labels.classes
        self.history_ = [*self.history_] if go_on else []
        if not (go_on and part):
            self.__dict__.pop("prior_", None)  # of an earlier fit
        mirrored = recipe_of(self.training).test_flip
        self.fitted_ = {"model": self.model, "dtype": self.dtype, "link": spec.link, "mirrored": mirrored}
        counted = None if stream is None else stream.totals
        totals = label_totals(samples.labels.values, len(self.classes_), samples.weight) if counted is None else counted
        self.label_totals_ = totals + (self.label_totals_ if part and go_on else 0.0)
        unseen = 0.5 if part and not self.label_totals_.all() else 0.0  # half a label each, until every class was named
        belief = Belief.of(self.transition, self.label_totals_ + unseen)
        self.belief_ = belief.with_weights(self._class_weights(belief, spec))
        self.transition_, self.weights_ = self.belief_.transition, self.belief_.weights

    def _warn_of(self, samples: Samples, spec: LossSpec, groups: IntArray | None) -> None:
        """What is wrong with labels, classes and Q, as far as can be told before training: a line each."""
        labels, weight = samples.labels.values, samples.weight
        if not hasattr(self, "chosen_"):  # else it was asked before anything was chosen
            _ask(samples, self.belief_, groups, stacklevel=5)
        lines = [*doubts(self.label_totals_, self.belief_, self.classes_)]
        if "transition" in spec.context:
            lines += corrected_twice(self.belief_)
        found = check_samples(labels, self.belief_, self.classes_, weight=weight)
        for line in [*lines, found.warning] if found.contradicted else lines:
            warnings.warn(line, LabelWarning, stacklevel=4)

    def _training(self, n_classes: int, epochs: int, go_on: bool) -> Training:
        dtype, device = dtype_and_device(self.dtype, self.device)
        begun = self.n_iter_ if go_on else 0
        own = callable(self.loss) or not isinstance(self.model, str | dict)  # such may draw from torch's global stream
        model: ModelChoice = self.model
        if go_on and isinstance(self.network_, UserStack):
            module = _copied(self.network_.module)  # with all that it has become
            model = lambda shape, n_classes: module  # noqa: E731
        return Training(
            model=model,
            n_classes=n_classes,
            scale=1.0,
            batch_size=self.batch_size,
            weight_decay=self.weight_decay,
            dtype=dtype,
            device=device,
            epochs=begun + epochs,
            recipe=recipe_of(self.training),
            mean_losses=True,
            turn=Turns(stream_seed(self.seed_, "dropout", begun), device).turn if own else nullcontext,
        )

    def _scaling(self, samples: Samples, go_on: bool) -> Scaling | None:
        """Return mean and deviation of columns if features are standardised; training that goes on keeps them."""
        if go_on:
            return self.scaling_
        scaling = column_scaling(samples.features, always=True) if self.standardize else None
        ratio = np.zeros(1) if scaling is None or self.dtype == "float64" else np.abs(scaling[0]) / scaling[1]
        if ratio.max() > MAX_OFFSET:
            line = f"X: the mean of column {ratio.argmax()} is {ratio.max():.2g} times its standard deviation, so that "
            line += "float32 rounds its differences; subtract a constant from it or use dtype='float64'"
            warnings.warn(line, RuntimeWarning, stacklevel=4)
        return scaling

    def _run_group(
        self,
        samples: Samples,
        spec: LossSpec,
        options: dict[str, Any],
        dtype: torch.dtype,
        neighbors: IntArray | None = None,
    ) -> RunGroup:
        """The one run that is to be trained."""
        weight = samples.weight
        needed = np.ptp(weight) > 0 or callable(self.loss)  # a user's loss may count on them
        scaled = torch.as_tensor(weight / weight.mean(), dtype=dtype) if needed else None
        labels = torch.as_tensor(samples.labels.values)
        targets = Targets.of(labels, len(self.classes_), scaled, float(weight.mean()))
        loss = RunLoss(spec, tuple(options.items()), spec.told(self.belief_), 0, 1)
        if self.warm_up and self.belief_.totals is not None:
            early = spec.told(Belief.of(EARLY, self.belief_.totals).with_weights(self.weights_))
            loss = loss.after(self.warm_up, early)
        x = to_tensor(standardized(samples.features, self.scaling_), dtype, torch.device("cpu"))
        if neighbors is not None:
            shares = label_shares(samples.labels.values, len(self.classes_), neighbors, weight)
            targets = replace(targets, near=torch.as_tensor(shares, dtype=dtype))
        return RunGroup(x, targets, self.seed_, [self.lr], [loss])

    def _neighbor_index(self, samples: Samples, features: NDArray[Any] | None) -> IntArray:
        """Return the nearest neighbours of each sample, in given features or in those that are trained on."""
        if features is None:
            features = standardized(samples.features, self.scaling_)
        weighted = np.flatnonzero(samples.weight)
        return nearest_neighbors(components(features, seed=self.seed_), self.neighbors, seed=self.seed_, among=weighted)

    def _class_weights(self, belief: Belief, spec: LossSpec) -> ClassWeights | None:
        """The weights that were asked for, from the shares of the labels."""
        scheme, marginal = self.weights, belief.marginal
        if isinstance(scheme, ClassWeights):
            return scheme
        if callable(self.loss) and not (scheme is None or (isinstance(scheme, str) and scheme == "auto")):
            raise InputError("weights", "none or 'auto' for a loss of your own, which is not told any", repr(scheme))
        if isinstance(scheme, str) and choice("weights", scheme, ["auto", *WEIGHTINGS]) == "auto":
            scheme = spec.auto_weights
        if scheme is None:
            return None
        pi: PiSource = "recovered"
        if isinstance(scheme, str) and not marginal.all():
            pi = "observed"  # which a warning says
        assert belief.totals is not None
        return weights_of_marginal(scheme, marginal, float(belief.totals.sum()), pi=pi)

    def _taken_from(self, engine: Engine, samples: Samples, *, copied: bool = False) -> Self:
        """This classifier with what an engine has learned; a copy of it, if training goes on."""
        network = engine.export(0)
        copied = copied or self.scaling_ is not None  # the engine's own is for standardised features
        self.network_, self.n_iter_ = copy.deepcopy(network) if copied else network, engine.epoch
        if self.scaling_ is not None:
            self.network_.load_state_dict(folded(self.network_.state_dict(), self.scaling_))
        self.state_ = {name: tensor.clone() for name, tensor in engine.state().items()}
        if self.fitted_["link"] == "softmax":
            self.prior_ = self._class_shares(samples)
        return self

    def _class_shares(self, samples: Samples) -> FloatArray:
        """The mean of the model's probabilities over these samples, and those of earlier parts of a stream."""
        totals, weight = np.zeros(len(self.classes_)), samples.weight
        for i in range(0, len(weight), AT_ONCE):
            logits = self._outputs(samples.features[i : i + AT_ONCE]) / self.temperature_
            totals += weight[i : i + AT_ONCE] @ logits.softmax(-1).cpu().numpy()
        if hasattr(self, "prior_"):
            totals += self.prior_ * (self.label_totals_.sum() - weight.sum())
        return normalised(totals)

    def _train(self, engine: Engine, samples: Samples, epochs: int, threads: int) -> None:
        start = time.perf_counter()

        def record(engine: Engine) -> bool:
            nonlocal start
            loss = float(engine.mean_losses(0))  # a GPU is waited for here, so the time is the epoch's
            end = FitEpoch(engine.epoch, loss, time.perf_counter() - start, self, engine, samples)
            self.history_.append({"epoch": end.epoch, "loss": end.loss, "seconds": end.seconds})
            if self.verbose and end.epoch % self.verbose == 0:
                print(f"epoch {end.epoch}: loss {end.loss:.4f}", flush=True)
            with torch_threads(threads):
                stop = [callback(end) for callback in self.callbacks]  # every one is called
            start = time.perf_counter()
            return any(stop)

        train(engine, epochs, [record])
        if not np.isfinite(self.history_[-1]["loss"]):
            warnings.warn("training diverged: the loss is not finite; lower lr", RuntimeWarning, stacklevel=4)

    # What was chosen

    def report(self) -> str:
        """Say what was trained or selected, why, how good it seems, and what that assumes of the labels.

        :func:`wcll.report.model_report.model_page` makes a page of it, with all candidates and figures by class.
        """
        check_is_fitted(self)
        if hasattr(self, "selection_"):
            words = _auto.in_words(
                self.selection_,
                self.belief_,
                getattr(self, "estimate_", None),
                self.temperature_,
                getattr(self, "neighbor_purity_", None),
            )
        else:
            words = self._what_was_trained()
        if self.target_prior is None:
            return words
        asked = "balanced" if isinstance(self.target_prior, str) else "given"
        return f"{words}\nPredictions are for {asked} class shares; the estimate is for those of the training samples."

    def _what_was_trained(self) -> str:
        """The report of a model of which nothing was selected."""
        lr = self._settled().lr
        spec, options = self._loss()
        loss = "your own loss" if callable(self.loss) else f"{spec.name}{f' {options}' if options else ''}"
        model = self.fitted_["model"]
        name = named(model, "model")[0] if isinstance(model, str | dict) else "your own model"
        epochs = f"{self.n_iter_} epoch{'' if self.n_iter_ == 1 else 's'}"
        return (
            f"Trained: {loss}, {name}, learning rate {lr:g}, {epochs}; nothing was selected.\n"
            f"Assumed: {self.belief_}.\n"
            "Accuracy was not estimated: evaluate(X, y) does it with labels that were not trained on."
        )

    # Settings

    def _loss(self) -> tuple[LossSpec, dict[str, Any]]:
        """The loss, registered or the user's own function, and its options."""
        if callable(self.loss):
            return LossSpec.own(self.loss), {}
        if self._is_auto():
            return LOSSES[_auto.LOSS], {}
        if not isinstance(self.loss, str | dict):
            raise InputTypeError("loss", "a name, a dict with a name, or a function", type(self.loss).__name__)
        name, options = named(self.loss, "loss")
        spec = LOSSES[name]
        if spec.labels == "ordinary":
            raise InputError(
                "loss", "one for complementary labels", repr(name), "any classifier learns ordinary labels"
            )
        return spec, options

    def _check_settings(self, go_on: bool) -> tuple[LossSpec, dict[str, Any]]:
        """Every setting that training uses, before anything is touched; then the loss."""
        whole("batch_size", self.batch_size)
        largest = float(np.finfo(choice("dtype", self.dtype, ("float32", "float64"))).max)
        if max(positive("lr", self.lr), non_negative("weight_decay", self.weight_decay)) >= largest:
            got = f"lr {self.lr:g} and weight_decay {self.weight_decay:g}"
            raise InputError("lr, weight_decay", f"numbers that {self.dtype} can hold", got)
        if go_on and self.classes is not None and not np.array_equal(self.classes, self.classes_):
            remedy = "set warm_start=False to start anew"
            raise InputError(
                "classes", f"those that training began with, {self.classes_.tolist()}", self.classes, remedy
            )
        non_negative("verbose", self.verbose)
        non_negative("warm_up", self.warm_up)
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise InputTypeError("callbacks", "a sequence of functions", type(self.callbacks).__name__)
        for name in ("model", "dtype"):
            if go_on and getattr(self, name) != self.fitted_[name]:
                began = f"{self.fitted_[name]!r}, with which training began"
                raise InputError(name, began, repr(getattr(self, name)), "set warm_start=False to start anew")
        if not isinstance(self.standardize, bool):
            raise InputTypeError("standardize", "True, False or None", type(self.standardize).__name__)
        if self.standardize and family_of(self.model) not in FOLDABLE:
            expected = "False for a model other than 'linear' and 'mlp'"
            raise InputError("standardize", expected, True, "scale X before fit")
        spec, options = self._loss()
        if whole("neighbors", self.neighbors) > 1 and spec.name != _auto.LOSS:
            expected = f"1 for loss {spec.name!r}, which learns from each sample's own labels"
            raise InputError("neighbors", expected, self.neighbors, f"take {_auto.LOSS!r}")
        if self.target_prior is not None and spec.link != "softmax":
            expected = f"None for loss {spec.name!r}, which learns scores and no class probabilities"
            raise InputError("target_prior", expected, repr(self.target_prior), "take 'forward'")
        return spec, options

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # labels say "not this": agreeing with them is bad
        return tags
