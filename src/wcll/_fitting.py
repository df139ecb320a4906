"""A fit: check X and y once, train, and return a frozen fitted state."""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from wcll._memory import check_memory
from wcll._neighbors import (
    Scaling,
    column_scaling,
    components,
    label_purity,
    label_shares,
    nearest_neighbors,
    standardized,
)
from wcll._random import stream_seed, whole_seed
from wcll._validation import (
    FloatArray,
    IntArray,
    as_array,
    choice,
    distribution,
)
from wcll.exceptions import InputError, InputTypeError, LabelWarning, short
from wcll.labels import Belief
from wcll.labels.counts import label_totals
from wcll.labels.encoding import NamedLabels, declared_categories, encode_labels, said_of, to_pairs
from wcll.labels.families import EARLY
from wcll.labels.goodness_of_fit import check_samples, corrected_twice, doubts
from wcll.labels.transition import normalised
from wcll.labels.weights import WEIGHTINGS, ClassWeights, PiSource, weights_of_marginal
from wcll.losses import LossSpec, Targets
from wcll.losses.registry import Link
from wcll.models.registry import (
    Family,
    ModelChoice,
    RunStack,
    Turns,
    UserStack,
    alone,
    check_size,
    folded,
    predict_logits,
    unfolded,
)
from wcll.training import Engine, RunGroup, RunLoss, Training, dtype_and_device, make_engine, torch_threads, train
from wcll.training.recipe import recipe_of
from wcll.training.runs import Feed, all_finite, threads_for, training_threads

LOG = logging.getLogger("wcll")
#: Fitted attributes that scikit-learn, or images, need on the classifier itself.
INPUTS = ("n_features_in_", "feature_names_in_", "image_shape_", "image_bytes_")
MAX_OFFSET = 1e5  #: of a mean in standard deviations; from there on float32 is off by a hundredth of one
CHUNK_SIZE = 4096  #: training samples whose probabilities are added up together


def check_features(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Features of shape (n, d), or images (n, ...), as finite floating-point numbers.

    Images of unsigned bytes become numbers in [0, 1]; whether they were bytes is remembered from ``fit``. Sparse
    matrices of SciPy are made dense, if that fits into memory. Sets or checks ``n_features_in_`` (and the names of a
    table's columns) as scikit-learn does.
    """
    if isinstance(X, torch.Tensor | np.ma.MaskedArray | list | tuple):
        X = as_array("X", X)
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    if isinstance(X, np.ndarray) and X.ndim > 2:
        array = _check_images(estimator, X, reset=reset)
    else:
        if reset:  # an earlier fit may have been on images
            vars(estimator).pop("image_shape_", None)
        dtype = estimator.dtype if reset else estimator.fitted_.dtype
        if issparse(X) or hasattr(X, "sparse"):  # as tables of pandas have it whose columns are sparse
            _check_dense_size(X, dtype)
        _refuse_text(X)
        try:
            checked = validate_data(
                estimator, X, reset=reset, accept_sparse="csr", ensure_all_finite=False, dtype="numeric"
            )
            array = _dense(checked, dtype) if issparse(checked) else checked
        except TypeError as error:
            raise InputTypeError("X", "numbers in an array or a table", str(error).splitlines()[0]) from None
        except (ValueError, OverflowError) as error:
            raise InputError("X", "numbers in an array or a table, as in fit", str(error)) from None
    if array.dtype.kind not in "biuf":
        raise InputTypeError("X", "real numbers", array.dtype)
    kind = np.float32 if array.dtype.kind in "bu" or array.dtype in (np.float16, np.float32) else np.float64
    plain = np.require(array.astype(kind, copy=False), requirements=["C", "W"])  # as torch wants it
    _refuse_missing(plain, names)
    return plain


def _check_dense_size(X: Any, dtype: str) -> None:
    """Fail, before anything is made, if a sparse matrix would not fit as a dense one.

    Beside each number there is room for another in float64, as predictions take it.
    """
    if X.ndim != 2:
        raise InputError("X", "a matrix of shape (n, d)", f"shape {X.shape}")
    n, d = map(int, X.shape)
    what = f"{n} samples of {d} features as dense numbers, which models take,"
    check_memory(
        "X", what, (np.dtype(dtype).itemsize + 8) * n * d, "take fewer features, or some of the rows at a time"
    )


def _dense(checked: Any, dtype: str) -> NDArray[Any]:
    """Sparse numbers as dense ones in the dtype of the model; if it cannot hold them, in their own, to say which."""
    with np.errstate(over="ignore"):
        wanted = checked.astype(dtype)
    array: NDArray[Any] = (wanted if np.isfinite(wanted.data).all() else checked).toarray()
    return array


def _refuse_text(X: Any) -> None:
    """Text is no number, even if it looks like one; arrays of objects and tables may hold some."""
    if not hasattr(X, "dtypes") and getattr(getattr(X, "dtype", None), "kind", None) != "O":
        return
    array = np.asarray(X)
    if array.dtype == object and any(isinstance(value, str | bytes) for value in array.ravel()):
        raise InputTypeError("X", "numbers", "text")


def _check_images(estimator: Any, array: NDArray[Any], *, reset: bool) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise InputTypeError("X", "real numbers", array.dtype)
    if array.size == 0:
        raise InputError("X", "images with pixels", f"shape {array.shape}")
    shape, is_bytes = array.shape[1:], array.dtype == np.uint8
    if reset:
        estimator.n_features_in_ = int(np.prod(shape))
        estimator.image_shape_, estimator.image_bytes_ = shape, is_bytes
    elif not hasattr(estimator, "image_shape_"):
        raise InputError("X", f"a table of {estimator.n_features_in_} features, as in fit", f"shape {array.shape}")
    elif shape != estimator.image_shape_:
        raise InputError("X", f"images of shape {estimator.image_shape_}", shape)
    elif is_bytes != estimator.image_bytes_:
        expected = "unsigned bytes" if estimator.image_bytes_ else "numbers that are not unsigned bytes"
        raise InputTypeError("X", f"{expected}, as in fit", array.dtype, "their scale would differ")
    return array / np.float32(255) if is_bytes else array


def _refuse_missing(array: NDArray[Any], names: list[str] | None) -> None:
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = np.argwhere(bad)[0]
    kind = "NaN" if np.isnan(array[tuple(place)]) else "infinity"
    column = f"column {place[1]}" + (f" ({names[place[1]]!r})" if names else "") if array.ndim == 2 else "a pixel"
    raise InputError("X", "finite numbers", f"{kind} in {column}, row {place[0]}", "drop or impute missing values")


def to_tensor(features: NDArray[Any], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Features as a tensor; numbers that the dtype cannot hold are an error."""
    tensor = torch.as_tensor(features, dtype=dtype, device=device)
    if not all_finite(tensor):
        largest = float(np.abs(features).max())
        raise InputError("X", f"numbers that {dtype} can hold", f"{largest:g}", "scale X or use dtype='float64'")
    return tensor


def called(y: Any) -> str | None:
    """What a column of pandas is called, if it has a name: messages call labels so."""
    column = y.iloc[:, 0] if hasattr(y, "iloc") and np.shape(y)[1:] == (1,) else y
    name = getattr(column, "name", None)
    return short(name) if isinstance(name, str) and name.strip() else None


def check_labels(y: Any, classes: Any, n: int | None = None) -> NamedLabels:
    """Complementary labels in any of their forms, of ``n`` samples if that is known."""
    with said_of(called(y), "y", "ybar"):
        labels = _read_labels(y, classes)
        if n not in (None, len(labels)):
            raise InputError("y", f"{n} labels, one for each sample of X", len(labels))
    return labels


def _read_labels(y: Any, classes: Any) -> NamedLabels:
    """A column is flattened with scikit-learn's warning."""
    if y is None:
        raise InputError("y", "labels (fit requires y to be passed, but the target y is None)", None)
    if isinstance(y, torch.Tensor):
        if y.is_meta or y.is_nested or y.layout != torch.strided or y.dtype == torch.bfloat16:
            kind = "no data" if y.is_meta else "nested" if y.is_nested else f"{y.dtype}, {y.layout}"
            raise InputTypeError("y", "a dense tensor of whole numbers or a boolean mask", kind)
        y = as_array("y", y)
    if hasattr(y, "toarray"):
        raise InputTypeError("y", "an array or a list of labels", type(y).__name__)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not np.ma.is_masked(y):
        classes = declared_categories(y) if classes is None else classes
        y = column_or_1d(y, warn=True)
    labels = encode_labels(y, classes)
    if labels.index is not None and labels.classes.dtype.kind == "f":
        try:
            check_classification_targets(labels.classes)
        except ValueError as error:
            raise InputError("y", "class names as text or whole numbers", str(error)) from None
    return labels


@dataclass(frozen=True)
class Samples:
    """What a user hands to ``fit``, checked."""

    features: NDArray[Any]
    labels: NamedLabels
    weight: FloatArray
    inputs: Mapping[str, Any] = field(default_factory=dict)  #: ``n_features_in_`` and the like, by name

    def split(self) -> Samples:
        """Label sets as pairs of sample and label, for losses that take one label a sample."""
        assert self.labels.mask is not None
        sample, label, share = to_pairs(self.labels.mask)
        labels = NamedLabels(self.labels.classes, label, None)
        return replace(self, features=self.features[sample], labels=labels, weight=self.weight[sample] * share)


class Stream(Protocol):
    """Samples that do not fit into memory: how many, what their labels are, and some of them that stand for all."""

    @property
    def n(self) -> int:
        """How many there are."""

    @property
    def totals(self) -> FloatArray:
        """How often each class is a label; of several labels of a sample, each counts as its share."""

    @property
    def x(self) -> NDArray[Any]:
        """Features of those that stand for all."""

    @property
    def y(self) -> Any:
        """Their labels."""

    @property
    def groups(self) -> NDArray[Any] | None:
        """Their groups, if there are any."""

    def feed(self, *, pairs: bool, batch_size: int, seed: int, dtype: str) -> Feed:
        """All of them, for an engine; label sets as pairs of sample and label, if asked for."""


def check_target_prior(value: Any, n_classes: int) -> FloatArray | None:
    """Class shares that predictions are to be for: equal ones, or a user's own; None for those of training."""
    if value is None:
        return None
    if isinstance(value, str):
        choice("target_prior", value, ["balanced"])
        return np.full(n_classes, 1 / n_classes)
    shares = distribution("target_prior", value, n_classes)
    if not shares.all():
        remedy = "give a class that is not expected a small share"
        raise InputError("target_prior", "shares above 0", f"0 for class {int(shares.argmin())}", remedy)
    return normalised(shares)


def check_groups(groups: Any, n: int) -> IntArray | None:
    """Groups of samples as numbers; None if there are none."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.ndim != 1 or len(names) != n:
        raise InputError("groups", f"{n} groups, one for each sample of X", f"shape {names.shape}")
    try:
        member: IntArray = np.unique(names, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise InputTypeError("groups", "names or numbers", "a mixture of both") from None
    return member


def check_neighbor_features(features: Any, X: Any) -> NDArray[Any] | None:
    """Features in which neighbours are found, one row per sample of X; None if there are none."""
    if features is None:
        return None
    array, n = as_array("neighbor_features", features), X.shape[0] if hasattr(X, "shape") else len(X)
    if array.dtype.kind not in "biuf":
        raise InputTypeError("neighbor_features", "numbers", array.dtype)
    if array.ndim != 2 or len(array) != n or not array.size:
        raise InputError("neighbor_features", f"numbers of shape ({n}, m), a row per sample", f"shape {array.shape}")
    with np.errstate(over="ignore"):
        if not np.isfinite(array.astype(np.float32)).all():
            raise InputError(
                "neighbor_features", "finite numbers that float32 can hold", "NaN, infinity or larger ones"
            )
    return array


def seed_of(random_state: Any) -> int:
    """A seed from an integer, a generator of NumPy's either kind, or fresh entropy."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if random_state is None or isinstance(random_state, np.random.RandomState) or random_state is np.random:
        return int(check_random_state(random_state).randint(2**31 - 1))
    return whole_seed(random_state)


@dataclass(frozen=True)
class FittedState:
    """All that a fit leaves behind. The classifier takes it at once, when at least one epoch is over."""

    classes: NDArray[Any]
    network: RunStack
    model: ModelChoice
    dtype: str
    link: Link
    mirrored: bool  #: predictions are means over images and their mirror images
    belief: Belief
    label_totals: FloatArray
    history: list[dict[str, Any]]
    n_iter: int
    seed: int
    inputs: Mapping[str, Any]  #: ``n_features_in_`` and the like, by name
    engine: Mapping[str, torch.Tensor] = field(default_factory=dict)  #: to go on from; without it from the weights
    scaling: Scaling | None = None  #: of features in training; the network has taken it over
    temperature: float = 1.0
    optional: Mapping[str, Any] = field(default_factory=dict)  #: attributes that not every fit leaves, by name

    @property
    def transition(self) -> FloatArray:
        """The matrix Q that the model assumes."""
        return self.belief.transition

    @property
    def weights(self) -> ClassWeights | None:
        """The class weights."""
        return self.belief.weights

    def outputs(self, features: NDArray[Any], device: str) -> torch.Tensor:
        """Return the network's outputs in double precision, for the class priors of training."""
        dtype, where = dtype_and_device(self.dtype, device)
        network = self.network.to(where)
        turn = alone if network.family is Family.OWN else nullcontext  # what it draws is not of a fit's stream
        with torch_threads(threads_for(network, min(len(features), network.family.at_once))), turn():
            x = to_tensor(features, dtype, where)
            views = [x, x.flip(-1)] if self.mirrored else [x]
            return torch.stack([predict_logits(network, view, precise=True)[0].double() for view in views]).mean(0)

    def shift(self, target_prior: Any) -> FloatArray | None:
        """Return log target - log prior, by which logarithms of probabilities change; None without a target."""
        target = check_target_prior(target_prior, len(self.classes))
        if target is None:
            return None
        prior: FloatArray | None = self.optional.get("prior")
        if prior is None:
            expected = "None for a model that learnt no class probabilities, or was saved before their mean was kept"
            raise InputError("target_prior", expected, repr(target_prior))
        change: FloatArray = np.log(target) - np.log(np.maximum(prior, np.finfo(np.float64).tiny))
        return change


@dataclass(frozen=True)
class FitEpoch:
    """What a callback is told after an epoch of ``fit``."""

    epoch: int  #: how many are done, counted over warm starts
    loss: float  #: the mean over the epoch's batches
    seconds: float
    _fit: Fit

    def classifier(self) -> Any:
        """The classifier as it is now, to predict with, to score or to save; training goes on without it."""
        if self._fit.engine.epoch != self.epoch:
            raise RuntimeError("training has gone on: ask for the classifier in the callback of its epoch")
        state = self._fit.state(copied=True)
        copies = {
            name: copy.deepcopy(getattr(state, name)) for name in ("classes", "label_totals", "belief", "history")
        }
        return copy.copy(self._fit.how)._set_fitted(replace(state, **copies))


Callback = Callable[[FitEpoch], bool | None]


class Fit:
    """One training of a classifier, from checked samples and resolved settings to a :class:`FittedState`.

    Making it changes nothing that the classifier has; :meth:`train` trains, and :meth:`state` is what was reached.
    ``how`` is a classifier whose settings are resolved, ``before`` the state that training goes on from.
    """

    engine: Engine

    def __init__(
        self,
        how: Any,
        loss: tuple[LossSpec, dict[str, Any]],
        samples: Samples,
        before: FittedState | None,
        *,
        part: bool = False,
        stream: Stream | None = None,
        optional: Mapping[str, Any] | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.how, self.before, self.part, self.stream = how, before, part, stream
        self.spec, self.options = loss
        self.all_labels = samples  #: label sets are not split, as warnings are about labels
        split = samples.labels.mask is not None and not self.spec.several
        self.samples = samples.split() if split else samples
        self.optional = dict(optional or {})
        self.seed = before.seed if before else seed_of(how.random_state)
        self.classes = before.classes if before else self.samples.labels.classes
        self.history = [*before.history] if before else []
        self.temperature = before.temperature if before else temperature
        self.label_totals = self._label_totals()
        unseen = 0.5 if part and not self.label_totals.all() else 0.0  # half a label each, until every class was named
        belief = Belief.of(how.transition, self.label_totals + unseen)
        self.belief = belief.with_weights(self._class_weights(belief))
        self.scaling: Scaling | None = before.scaling if before else None
        self.epochs_before = 0
        self.index: IntArray | None = None  #: nearest neighbours

    def _label_totals(self) -> FloatArray:
        counted = None if self.stream is None else self.stream.totals
        if counted is None:
            counted = label_totals(self.samples.labels.values, len(self.classes), self.samples.weight)
        return counted + (self.before.label_totals if self.part and self.before else 0.0)

    def _class_weights(self, belief: Belief) -> ClassWeights | None:
        """Return the weights that were asked for, from the shares of the labels."""
        scheme, marginal = self.how.weights, belief.marginal
        if isinstance(scheme, ClassWeights):
            return scheme
        if callable(self.how.loss) and not (scheme is None or (isinstance(scheme, str) and scheme == "auto")):
            raise InputError("weights", "none or 'auto' for a loss of your own, which is not told any", repr(scheme))
        if isinstance(scheme, str) and choice("weights", scheme, ["auto", *WEIGHTINGS]) == "auto":
            scheme = self.spec.auto_weights
        if scheme is None:
            return None
        pi: PiSource = "recovered"
        if isinstance(scheme, str) and not marginal.all():
            pi = "observed"  # which a warning says
        assert belief.totals is not None
        return weights_of_marginal(scheme, marginal, float(belief.totals.sum()), pi=pi)

    def warn(self, *, stacklevel: int) -> None:
        """Warn, in a line each, of what is wrong with labels, classes and Q, as far as can be seen before training."""
        samples = self.all_labels
        lines = [*doubts(self.label_totals, self.belief, self.classes)]
        if "transition" in self.spec.context:
            lines += corrected_twice(self.belief)
        found = check_samples(samples.labels.values, self.belief, self.classes, weight=samples.weight)
        for line in [*lines, found.warning] if found.contradicted else lines:
            warnings.warn(line, LabelWarning, stacklevel=stacklevel + 1)

    def train(self, epochs: int, *, near: NDArray[Any] | None, given_weight: Any, stacklevel: int) -> None:
        """Train for so many epochs, and call the classifier's callbacks after each."""
        training, samples = self._training(epochs), self.samples
        check_size(training.model, samples.features.shape[1:], training.n_classes, dtype=training.dtype)
        own = callable(self.how.loss)  # it may do something else at every step: nothing is recorded or left out
        fastest = training_threads(training.model, samples.features, training.n_classes, training.batch_size)
        with torch_threads(fastest) as threads:
            if self.before is None:
                self.scaling = self._scaling(stacklevel=stacklevel + 1)
            self.index = self._neighbor_index(near) if self.how.neighbors > 1 else None
            group = self._run_group(training.dtype)
            if np.ptp(samples.weight) > 0:
                _check_uses_weights(group.losses[0], training.like, samples, given=given_weight)
            if self.stream is not None and training.feed is not None:
                group = group.streamed(training.feed)
            self.engine = make_engine([group], training, plain=own)
            if self.before is not None and not self.engine.load_state(self.before.engine):
                LOG.info("kept by another kind of engine: the optimiser starts anew from the weights that were reached")
                self.engine.load_parameters(0, unfolded(self.before.network.state_dict(), self.scaling))
                self.engine.epoch = self.before.n_iter
            self.epochs_before = self.engine.epoch
            self._run_epochs(self.epochs_before + epochs, threads, stacklevel=stacklevel + 1)

    @property
    def begun(self) -> bool:
        """Whether an epoch is over."""
        return hasattr(self, "engine") and self.engine.epoch > self.epochs_before

    def _training(self, epochs: int) -> Training:
        how, before = self.how, self.before
        dtype, device = dtype_and_device(how.dtype, how.device)
        epochs_before = before.n_iter if before else 0
        own = callable(how.loss) or not isinstance(how.model, str | dict)  # such may draw from torch's global stream
        model: ModelChoice = how.model
        if before is not None and isinstance(before.network, UserStack):
            module = _copied(before.network.module)  # with all that it has become
            model = lambda shape, n_classes: module  # noqa: E731
        recipe = recipe_of(how.training)
        if self.part:  # nobody knows how many will come
            recipe = replace(recipe, schedule="constant")
        training = Training(
            model=model,
            n_classes=len(self.classes),
            scale=1.0,
            batch_size=how.batch_size,
            weight_decay=how.weight_decay,
            dtype=dtype,
            device=device,
            epochs=epochs_before + epochs,
            recipe=recipe,
            mean_losses=True,
            turn=Turns(stream_seed(self.seed, "dropout", epochs_before), device).turn if own else nullcontext,
        )
        if self.stream is None:
            return training
        pairs = not self.spec.several
        feed = self.stream.feed(pairs=pairs, batch_size=how.batch_size, seed=self.seed, dtype=how.dtype)
        return replace(training, feed=feed)

    def _scaling(self, *, stacklevel: int) -> Scaling | None:
        """Return mean and deviation of columns if features are standardised."""
        scaling = column_scaling(self.samples.features, always=True) if self.how.standardize else None
        ratio = np.zeros(1) if scaling is None or self.how.dtype == "float64" else np.abs(scaling[0]) / scaling[1]
        if ratio.max() > MAX_OFFSET:
            line = f"X: the mean of column {ratio.argmax()} is {ratio.max():.2g} times its standard deviation, so that "
            line += "float32 rounds its differences; subtract a constant from it or use dtype='float64'"
            warnings.warn(line, RuntimeWarning, stacklevel=stacklevel + 1)
        return scaling

    def _neighbor_index(self, features: NDArray[Any] | None) -> IntArray:
        """Return the nearest neighbours of each sample, in given features or in those that are trained on."""
        if features is None:
            features = standardized(self.samples.features, self.scaling)
        weighted, seed = np.flatnonzero(self.samples.weight), self.seed
        return nearest_neighbors(components(features, seed=seed), self.how.neighbors, seed=seed, among=weighted)

    def _run_group(self, dtype: torch.dtype) -> RunGroup:
        """Return the one run that is to be trained."""
        how, weight = self.how, self.samples.weight
        needed = np.ptp(weight) > 0 or callable(how.loss)  # a user's loss may count on them
        scaled = torch.as_tensor(weight / weight.mean(), dtype=dtype) if needed else None
        labels = torch.as_tensor(self.samples.labels.values)
        targets = Targets.of(labels, len(self.classes), scaled, float(weight.mean()))
        loss = RunLoss(self.spec, tuple(self.options.items()), self.spec.told(self.belief), 0, 1)
        if how.warm_up and self.belief.totals is not None:
            early = self.spec.told(Belief.of(EARLY, self.belief.totals).with_weights(self.belief.weights))
            loss = loss.after(how.warm_up, early)
        x = to_tensor(standardized(self.samples.features, self.scaling), dtype, torch.device("cpu"))
        if self.index is not None:
            shares = label_shares(self.samples.labels.values, len(self.classes), self.index, weight)
            targets = replace(targets, near=torch.as_tensor(shares, dtype=dtype))
        return RunGroup(x, targets, self.seed, [how.lr], [loss])

    def _run_epochs(self, epochs: int, threads: int, *, stacklevel: int) -> None:
        start, verbose = time.perf_counter(), self.how.verbose

        def record(engine: Engine) -> bool:
            nonlocal start
            loss = float(engine.mean_losses(0))  # a GPU is waited for here, so the time is the epoch's
            end = FitEpoch(engine.epoch, loss, time.perf_counter() - start, self)
            self.history.append({"epoch": end.epoch, "loss": end.loss, "seconds": end.seconds})
            if verbose and end.epoch % verbose == 0:
                print(f"epoch {end.epoch}: loss {end.loss:.4f}", flush=True)
            with torch_threads(threads):
                stop = [callback(end) for callback in self.how.callbacks]  # every one is called
            start = time.perf_counter()
            return any(stop)

        train(self.engine, epochs, [record])
        if not np.isfinite(self.history[-1]["loss"]):
            line = "training diverged: the loss is not finite; lower lr"
            warnings.warn(line, RuntimeWarning, stacklevel=stacklevel + 1)

    def state(self, *, copied: bool = False) -> FittedState:
        """Return what was reached; a copy of it, if training goes on."""
        network, scaling = self.engine.export(0), self.scaling
        if copied or scaling is not None:  # the engine's own is for standardised features
            network = copy.deepcopy(network)
        if scaling is not None:
            network.load_state_dict(folded(network.state_dict(), scaling))
        state = FittedState(
            classes=self.classes,
            network=network,
            model=self.how.model,
            dtype=self.how.dtype,
            link=self.spec.link,
            mirrored=recipe_of(self.how.training).test_flip,
            belief=self.belief,
            label_totals=self.label_totals,
            history=self.history,
            n_iter=self.engine.epoch,
            seed=self.seed,
            inputs=self.samples.inputs,
            engine={name: tensor.clone() for name, tensor in self.engine.state().items()},
            scaling=scaling,
            temperature=self.temperature,
            optional=self.optional,
        )
        optional = dict(self.optional)
        if self.spec.link == "softmax":
            optional["prior"] = self._class_priors(state)
        labels = self.samples.labels.index
        if self.index is not None and labels is not None and not copied:
            optional["neighbor_purity"] = label_purity(labels, self.index, self.belief.transition, optional["prior"])
        return replace(state, optional=optional)

    def _class_priors(self, state: FittedState) -> FloatArray:
        """Return the mean of the model's probabilities over these samples, and those of earlier parts of a stream."""
        totals, weight = np.zeros(len(self.classes)), self.samples.weight
        for i in range(0, len(weight), CHUNK_SIZE):
            logits = state.outputs(self.samples.features[i : i + CHUNK_SIZE], self.how.device) / self.temperature
            totals += weight[i : i + CHUNK_SIZE] @ logits.softmax(-1).cpu().numpy()
        if self.part and self.before is not None and "prior" in self.before.optional:
            totals += self.before.optional["prior"] * (self.label_totals.sum() - weight.sum())
        return normalised(totals)


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
    """Return a copy, or the module itself if it holds what cannot be copied, such as outputs of its last step."""
    try:
        return copy.deepcopy(module)
    except Exception:  # whatever a user's attributes raise
        return module
