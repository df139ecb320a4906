"""The scikit-learn classifier: fit on features and complementary labels, predict classes, score and evaluate."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from wcll import __version__, _auto
from wcll._fitting import (
    INPUTS,
    LOG,
    Callback,
    Fit,
    FittedState,
    Samples,
    Stream,
    called,
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
    standardized,
)
from wcll._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    choice,
    finite_array,
    non_negative,
    positive,
    sample_weights,
    whole,
)
from wcll.evaluation import LabelFreeConfusion, complementary_table, label_free_accuracy, label_free_confusion
from wcll.evaluation.label_free import warn_of_contradiction
from wcll.exceptions import InputError, InputTypeError, LabelWarning
from wcll.labels import Belief
from wcll.labels.counts import label_totals, observed_marginal
from wcll.labels.families import EARLY
from wcll.labels.goodness_of_fit import asked_by_features, asked_by_predictions
from wcll.labels.weights import ClassWeights
from wcll.losses import LOSSES, LossSpec
from wcll.losses.registry import AUTO
from wcll.models.registry import Family, ModelChoice, RunStack, family_of, named
from wcll.persistence import Saved, check_finite, header_of, open_model, write_model
from wcll.training import dtype_and_device
from wcll.training.recipe import recipe_of, usual, usual_model

FROM_SEARCH = ("chosen", "selection", "estimate")  #: what a search leaves
FOLDABLE = (Family.LINEAR, Family.DENSE)  #: models whose first layer can take over the scaling of features
BATCH_SIZE = 256  #: samples of a step, if nothing else is said
MIN_TO_SCALE = 30  #: samples of a first part; the standard deviation of fewer is off by more than 13 %
#: What is taken where a user names a loss and nothing else: the paper's setting.
PAPER: dict[str, Any] = {
    **{"model": "linear", "lr": 5e-4, "max_epochs": 100, "weight_decay": 1e-4, "warm_up": 0},
    **{"neighbors": 1, "standardize": False},
}


def _ask(samples: Samples, belief: Belief, groups: NDArray[Any] | None, *, stacklevel: int) -> str | None:
    """Warn, in one line, if the labels may be true ones, and return the line."""
    question = asked_by_features(samples.features, samples.labels.values, belief.transition, groups)
    if question is not None:
        warnings.warn(question, LabelWarning, stacklevel=stacklevel)
    return question


def _has_probabilities(self: Any) -> bool:
    state = getattr(self, "fitted_", None)
    link = state.link if state else self._loss()[0].link
    if link != "softmax":
        raise AttributeError(f"predict_proba: loss {self.loss!r} learns scores, not class probabilities")
    return True


class FittedAttribute:
    """An attribute that ``fit`` leaves: read from the fitted state, where no one but ``fit`` changes it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name.removesuffix("_")

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        state = vars(model).get("fitted_")
        if hasattr(state, self.name):
            return getattr(state, self.name)
        if state is None or self.name not in state.optional:
            raise AttributeError(f"{self.name}_: there is none {'before fit' if state is None else 'after this fit'}")
        return state.optional[self.name]

    def __set__(self, model: Any, value: Any) -> None:
        raise AttributeError(f"{self.name}_: fit alone sets it")


def from_fit() -> Any:
    """Declare a fitted attribute, whose type is that of the annotation."""
    return FittedAttribute()


class ComplementaryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    fitted_: FittedState
    classes_: NDArray[Any] = from_fit()
    network_: RunStack = from_fit()
    belief_: Belief = from_fit()
    transition_: FloatArray = from_fit()
    weights_: ClassWeights | None = from_fit()
    label_totals_: FloatArray = from_fit()
    history_: list[dict[str, Any]] = from_fit()
    n_iter_: int = from_fit()
    temperature_: float = from_fit()
    scaling_: Scaling | None = from_fit()
    prior_: FloatArray = from_fit()
    chosen_: dict[str, Any] = from_fit()
    selection_: list[dict[str, Any]] = from_fit()
    estimate_: LabelFreeConfusion | None = from_fit()
    neighbor_purity_: float | None = from_fit()

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
        return self._fit(X, y, sample_weight, groups, near=near)

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
        return self._fit(stream.x, stream.y, None, stream.groups, stream=stream)

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One epoch on these data; label counts add up over calls.

        The first call needs ``classes`` (or the estimator's own): a part may lack some. As parts may be the same labels
        again, their counts are not asked whether they contradict Q; ``score`` asks. With ``loss="auto"`` nothing is
        chosen from a part: unless an earlier ``fit`` has chosen, ``forward`` is trained, told popularity.
        """
        go_on = hasattr(self, "fitted_")
        known = self.classes_ if go_on else self.classes if classes is None else classes
        if known is None:
            raise InputError("classes", "every class, in the first call of partial_fit", None)
        if go_on and classes is not None and not np.array_equal(classes, self.classes_):
            raise InputError("classes", f"the classes of the first call, {self.classes_.tolist()}", list(classes))
        return self._fit(X, y, sample_weight, classes=known, part=True)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any = None,
        *,
        classes: Any = None,
        near: NDArray[Any] | None = None,
        stream: Stream | None = None,
        part: bool = False,
    ) -> Self:
        """Check everything once, search where settings are left open, train, and take the fitted state in the end.

        What fails before an epoch is over changes nothing; a training that is interrupted leaves what it reached.
        """
        before = getattr(self, "fitted_", None)
        before = before if before and (part or self.warm_start) else None
        searches = self._is_auto() and before is None and not part
        chosen = before.optional.get("chosen") if before and self._is_auto() else None
        how = self._resolved(chosen)
        if near is not None and (self.neighbors if searches else how.neighbors) == 1:
            raise InputError("neighbor_features", "None where neighbors is 1", f"shape {near.shape}", "set neighbors")
        epochs = 1 if part else whole("max_epochs", how.max_epochs)
        loss = how._check_settings(before)
        if searches and not (self.weights is None or (isinstance(self.weights, str) and self.weights == "auto")):
            raise InputError("weights", "none or 'auto' for loss='auto'", repr(self.weights), "name a loss")
        samples = self._check_samples(X, y, sample_weight, classes, before, part)
        member = check_groups(groups, len(samples.features))
        optional, temperature = dict[str, Any](), 1.0
        if before is not None and self._is_auto():
            optional = {name: before.optional[name] for name in FROM_SEARCH if name in before.optional}
        if searches:
            how, optional, temperature = self._search(how, samples, member, near, stream)
            loss, epochs = how._check_settings(None), whole("max_epochs", how.max_epochs)
        fit = Fit(how, loss, samples, before, part=part, stream=stream, optional=optional, temperature=temperature)
        if not part:  # the parts of a stream may be the same labels again
            if not optional:  # else it was asked before the search
                _ask(samples, fit.belief, member, stacklevel=4)
            fit.warn(stacklevel=3)
        try:
            fit.train(epochs, near=near, given_weight=sample_weight, stacklevel=3)
        finally:
            if fit.begun:
                self._set_fitted(fit.state())
        return self

    def _set_fitted(self, state: FittedState) -> Self:
        """Take a fitted state; settings, and what callbacks may have set, stay."""
        for name in INPUTS:
            self.__dict__.pop(name, None)
        self.__dict__.update(state.inputs, fitted_=state)
        return self

    def _search(
        self, how: Self, samples: Samples, groups: IntArray | None, near: NDArray[Any] | None, stream: Stream | None
    ) -> tuple[Self, dict[str, Any], float]:
        """Return resolved settings, what a search leaves (choice, candidates, estimate), and the temperature.

        No true label is used. Of too few samples nothing is selected, and nothing is left.
        """
        totals = label_totals(samples.labels.values, len(samples.labels.classes), samples.weight)
        question = _ask(samples, Belief.of(how.transition, totals + 0.5), groups, stacklevel=5)
        _, device = dtype_and_device(self.dtype, self.device)
        if self.model is None and self.training is None:
            open_training = copy.copy(self)
            open_training.training = _auto.training_for(samples.features.shape[1:], device)
            how = open_training._resolved()
            how._check_settings(None)
        if (weighted := int(np.count_nonzero(samples.weight))) < _auto.MIN_SAMPLES:
            few = f"{weighted} samples are too few to select by"
            warnings.warn(f"{few}: {_auto.LOSS} with popularity's Q is trained", LabelWarning, stacklevel=4)
            return how, {}, 1.0
        seed = seed_of(self.random_state)
        selected, scaling = self._selected(samples, how, seed, groups, near, stream)
        chosen = {
            "loss": _auto.LOSS,
            "training": how.training,
            **selected.settings,
            **self._lengths(selected.settings, len(samples.features), stream),
            "standardize": scaling is not None,
        }
        estimate = selected.estimate
        if estimate is not None and estimate.warning is None and question is not None:
            estimate = estimate.withdrawn(question)
        how = self._resolved(chosen)
        how.random_state = seed
        return how, {"chosen": chosen, "selection": selected.table(), "estimate": estimate}, selected.temperature

    def _selected(
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

    def _is_auto(self) -> bool:
        """Whether all that is not given is to be chosen."""
        return isinstance(self.loss, str) and self.loss == AUTO

    def _resolved(self, chosen: Mapping[str, Any] | None = None) -> Self:
        """Return a copy in which every setting has a value: a given one, one that was chosen, or the usual one."""
        new, settings = copy.copy(self), dict(PAPER)
        if self._is_auto():
            settings |= {"lr": 2e-3, "transition": EARLY}
            new.loss = _auto.LOSS
            for name, value in (chosen or {}).items():
                setattr(new, name, value)
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

    def _check_samples(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, before: FittedState | None, part: bool
    ) -> Samples:
        """Check X, y and weights, once in a fit."""
        known = before.classes if before else self.classes if classes is None else classes
        checked = copy.copy(self)  # takes what scikit-learn says of X
        features = check_features(checked, X, reset=before is None)
        labels = check_labels(y, known, len(features))
        weight, n_classes = sample_weights(sample_weight, len(features)), len(labels.classes)
        check_target_prior(self.target_prior, n_classes)
        if part and before is None and self.standardize and len(features) < MIN_TO_SCALE:
            expected = f"at least {MIN_TO_SCALE} samples in the first partial_fit with standardize=True"
            raise InputError("X", expected, len(features), "fewer do not show the scale of a column")
        if not part:  # parts of a stream may well have few samples, or one label only
            if len(features) < n_classes:
                got = f"n_samples = {len(features)}"
                raise InputError("X", f"at least as many samples as classes, {n_classes}", got)
            observed_marginal(labels.values, n_classes, sample_weight=weight)
        inputs = {name: value for name, value in vars(checked).items() if name in INPUTS}
        return Samples(features, labels, weight, inputs)

    # Predicting

    def _features(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return check_features(self, X, reset=False)

    def _outputs(self, features: NDArray[Any]) -> torch.Tensor:
        return self.fitted_.outputs(features, self.device)

    def _shift(self) -> FloatArray | None:
        """Return by what logarithms of probabilities change for ``target_prior``; None without one."""
        return self.fitted_.shift(self.target_prior)

    def _scores(self, X: Any) -> torch.Tensor:
        """Outputs for the class shares that predictions are for; over the temperature, logarithms of probabilities."""
        return self._shifted(self._outputs(self._features(X)))

    def _shifted(self, logits: torch.Tensor) -> torch.Tensor:
        """Return outputs for the class shares that predictions are for."""
        shift = self._shift()
        return logits if shift is None else logits + self.temperature_ * torch.as_tensor(shift, device=logits.device)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each sample, were classes as frequent as ``target_prior`` says."""
        index = self._scores(X).argmax(-1).cpu().numpy()
        names: NDArray[Any] = self.classes_[index]
        return names

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, shape (n, k); only for losses that learn them.

        They are calibrated to complementary labels under ``belief_``, for the training samples' class shares or those
        of ``target_prior``: after ``loss="auto"`` their temperature is the one that makes held-out labels likeliest,
        before the model was fitted to these as well; else it is 1, and what training reached is all. Held-out labels
        tell how well: :func:`wcll.evaluation.label_free_reliability`.
        """
        proba: FloatArray = (self._scores(X) / self.temperature_).softmax(-1).cpu().numpy()
        return proba

    def as_trained(self, probabilities: ArrayLike) -> FloatArray:
        """What :meth:`predict_proba` gives, moved back to the class shares of the training samples.

        Complementary labels like those of training judge these and no others.
        """
        check_is_fitted(self)
        found = finite_array("probabilities", probabilities, (len(np.atleast_1d(probabilities)), len(self.classes_)))
        shift = self._shift()
        if shift is None:
            return found
        back: FloatArray = softmax(np.log(np.maximum(found, np.finfo(np.float64).tiny)) - shift, axis=1)
        return back

    def decision_function(self, X: Any) -> FloatArray:
        """Scores, shape (n, k); for two classes the difference of the second and the first, shape (n,)."""
        scores: FloatArray = self._scores(X).cpu().numpy()
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of a linear model, shape (k, d): a row a class, also for two classes."""
        weight = self._linear("coef_")["layer.weight"][0]
        if self.fitted_.mirrored:  # the mean over a sample and its mirror image is linear as well
            shape = getattr(self, "image_shape_", (self.n_features_in_,))
            weight = (weight + weight.view(-1, *shape).flip(-1).flatten(1)) / 2
        coefficients: FloatArray = weight.cpu().numpy()
        return coefficients

    @property
    def intercept_(self) -> FloatArray:
        """Constants of a linear model, shape (k,), for the class shares that predictions are for."""
        constants: FloatArray = self._linear("intercept_")["layer.bias"][0].cpu().numpy()
        shift = self._shift()
        return constants if shift is None else constants + self.temperature_ * shift

    def _linear(self, name: str) -> dict[str, torch.Tensor]:
        """Parameters of a linear model, copied; an AttributeError for others, as ``hasattr`` wants it."""
        if not hasattr(self, "fitted_"):
            raise AttributeError(f"{name}: the model is not fitted yet")
        if self.network_.family is not Family.LINEAR:
            model = self.fitted_.model
            kind = repr(named(model, "model")[0]) if isinstance(model, str | dict) else "your own"
            raise AttributeError(f"{name}: only linear models have one, and this is {kind}")
        return {key: value.to(torch.float64, copy=True) for key, value in self.network_.state_dict().items()}

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """An estimate of accuracy from complementary labels ``y``: unbiased if the assumed Q is right.

        Plain accuracy against complementary labels would reward the worst model. Do not compare different
        ``transition`` by it: each would be judged under its own assumption. For true labels use
        ``sklearn.metrics.accuracy_score(y_true, model.predict(X))``. With a ``target_prior`` these predictions are
        judged as they are, on samples like those of ``y``, where others would be right more often.

        Labels that contradict Q make it meaningless, which a :class:`wcll.LabelWarning` says; with predictions,
        held-out labels show more wrong Qs than label counts do in ``fit``. That nothing is said does not mean that Q is
        right: some wrong Qs no label can show. Labels that the model has learnt by heart
        may contradict even a Q that is right.
        """
        features = self._features(X)
        predicted = self._shifted(self._outputs(features)).argmax(-1).cpu().numpy()
        labels = check_labels(y, self.classes_, len(predicted)).values
        score = label_free_accuracy(labels, predicted, self.transition_, sample_weight=sample_weight)[0]
        if (question := self._question(features, labels, predicted)) is not None:
            warnings.warn(question, LabelWarning, stacklevel=2)
        else:
            warn_of_contradiction(labels, predicted, self.belief_, self.classes_, weight=sample_weight)
        return score

    def evaluate(self, X: Any, y: Any) -> LabelFreeConfusion:
        """Accuracy, balanced accuracy, F1 and recalls from complementary labels ``y`` that were not trained on.

        Each figure has a 95 % interval and a verdict, and rests on ``belief_``; whether the labels contradict that is
        said as well. "Ok" needs a Q that was measured (``transition_from_pairs``, ``transition_from_repeated``): no
        label can confirm one that is assumed, and figures that rest on it "can't be checked". One label a sample:
        several of one sample are no independent witnesses. ``print`` shows all. Accuracy is that on samples like those
        of ``y``, whatever ``target_prior`` says.
        """
        features = self._features(X)
        predicted = self._shifted(self._outputs(features)).argmax(-1).cpu().numpy()
        labels = check_labels(y, self.classes_, len(predicted)).values
        if labels.ndim == 2:
            expected, several = "one label a sample", "a mask, or several of a sample"
            raise InputError(called(y) or "y", expected, several, "take one of each sample; score takes sets")
        found = label_free_confusion(
            complementary_table(labels, predicted, len(self.classes_)), self.belief_, classes=self.classes_
        )
        question = self._question(features, labels, predicted)
        return found if question is None else found.withdrawn(question)

    def _question(self, features: NDArray[Any], labels: IntArray | BoolArray, predicted: IntArray) -> str | None:
        """Ask whether labels are true ones, if most name the prediction, or if neighbours predict them too well.

        A Q that was estimated with models may have learned true labels: that of popularity is the measure then.
        """
        belief, question = self.belief_, None
        if belief.basis is not None and belief.totals is not None and not belief.known:
            belief = Belief.of("popularity", belief.totals + 0.5)
        if labels.ndim == 1:
            question = asked_by_predictions(complementary_table(labels, predicted, len(self.classes_)))
        return question or asked_by_features(features, labels, belief.transition)

    def encode(self, y: Any) -> IntArray | BoolArray:
        """Complementary labels as class indices, or as a mask."""
        check_is_fitted(self)
        return check_labels(y, self.classes_).values

    # Files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier to one safetensors file, with its settings as JSON; nothing is pickled."""
        check_is_fitted(self)
        header = header_of(self.fitted_, self.get_params(deep=False), __version__)
        tensors = self.network_.state_dict()
        check_finite("model", tensors)
        write_model(path, tensors, header)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return a classifier that :meth:`save` wrote, on this machine's device.

        It predicts as it did; training goes on with a fresh optimiser.
        """
        with open_model(path) as file:
            saved = Saved.of(file.header, cls._get_param_names())
            model = cls(**saved.settings)
            state = saved.state(file, seed_of(model.random_state), model.device)
            state.shift(model.target_prior)  # a target that cannot be had is said of the file
        return model._set_fitted(state)

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
        lr = self._resolved().lr
        spec, options = self._loss()
        loss = "your own loss" if callable(self.loss) else f"{spec.name}{f' {options}' if options else ''}"
        model = self.fitted_.model
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

    def _check_settings(self, before: FittedState | None) -> tuple[LossSpec, dict[str, Any]]:
        """Every setting that training uses, before anything is touched; then the loss."""
        whole("batch_size", self.batch_size)
        largest = float(np.finfo(choice("dtype", self.dtype, ("float32", "float64"))).max)
        if max(positive("lr", self.lr), non_negative("weight_decay", self.weight_decay)) >= largest:
            got = f"lr {self.lr:g} and weight_decay {self.weight_decay:g}"
            raise InputError("lr, weight_decay", f"numbers that {self.dtype} can hold", got)
        if before and self.classes is not None and not np.array_equal(self.classes, before.classes):
            remedy = "set warm_start=False to start anew"
            raise InputError(
                "classes", f"those that training began with, {before.classes.tolist()}", self.classes, remedy
            )
        non_negative("verbose", self.verbose)
        non_negative("warm_up", self.warm_up)
        if not isinstance(self.callbacks, Sequence) or not all(map(callable, self.callbacks)):
            raise InputTypeError("callbacks", "a sequence of functions", type(self.callbacks).__name__)
        for name in ("model", "dtype"):
            if before and getattr(self, name) != getattr(before, name):
                began = f"{getattr(before, name)!r}, with which training began"
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
