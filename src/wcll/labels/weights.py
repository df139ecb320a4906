"""Class weights for complementary labels: Eq. 13, its variants and the usual baselines; and resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import (
    FloatArray,
    Functions,
    as_array,
    choice,
    class_indices,
    class_weights_array,
    distribution,
    entry,
    is_number,
    positive,
    same_length,
    share,
)
from wcll.exceptions import InputError, InputTypeError
from wcll.labels.counts import observed_marginal, solve_pi
from wcll.labels.encoding import Classes, indexed
from wcll.labels.transition import complementary_prior, pick_by_class

PiSource = Literal["declared", "observed", "recovered"]
PI_SOURCES: tuple[PiSource, ...] = ("declared", "observed", "recovered")

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class ClassWeights:
    """One weight a class, of mean 1 over the training labels, and how it came about."""

    values: FloatArray
    scheme: str
    pi: FloatArray | None = None  #: the pi of Eq. 13
    pi_source: PiSource | None = None  #: where that pi came from

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.values, dtype=dtype)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and names, for JSON."""
        pi = None if self.pi is None else self.pi.tolist()
        return {"values": self.values.tolist(), "scheme": self.scheme, "pi": pi, "pi_source": self.pi_source}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> ClassWeights:
        """What :meth:`to_dict` wrote."""
        plain_values, pi = entry(plain, "values", list), entry(plain, "pi", list | None)
        values = class_weights_array("values", plain_values, len(plain_values))
        source = entry(plain, "pi_source", str | None)
        return ClassWeights(
            values,
            entry(plain, "scheme", str),
            None if pi is None else distribution("pi", pi, len(values)),
            None if source is None else choice("pi_source", source, PI_SOURCES),  # type: ignore[arg-type]
        )


@dataclass(frozen=True)
class WeightContext:
    """What a weighting scheme may use; every scheme takes what it needs."""

    marginal: FloatArray  # observed shares of the labels
    n: float  # how many labels
    pi_source: PiSource = "recovered"
    sizes: ArrayLike | None = None
    bias: float = 0.0
    beta: float = 0.999
    random_state: RandomState = None

    @cached_property
    def pi(self) -> FloatArray:
        """The pi of Eq. 13, from where the user says; worked out only if a scheme asks."""
        if choice("pi", self.pi_source, PI_SOURCES) == "observed":
            return self.marginal
        if self.pi_source == "recovered":
            return solve_pi(self.marginal)
        if self.sizes is None:
            raise InputError("sizes", "ordinary class sizes for pi='declared'", None)
        pi = complementary_prior(self.sizes)
        if len(pi) != len(self.marginal):
            raise InputError("sizes", f"{len(self.marginal)} class sizes", len(pi))
        return pi


WEIGHTINGS: Functions[Callable[[WeightContext], FloatArray]] = Functions("weights")
BY_PI = ("wcll", "wcll-bias")  #: schemes that are made of pi


def eq13(pi: ArrayLike) -> FloatArray:
    r"""The paper's weights :math:`\omega_j = (1/\pi_j) / \sum_i (1/\pi_i)` (Eq. 13); they sum to 1.

    >>> eq13([0.5, 0.25, 0.25])
    array([0.2, 0.4, 0.4])
    """
    return complementary_prior(pi)  # the same map as Eq. 7, from sizes to shares


@WEIGHTINGS.add("wcll")
def _wcll(context: WeightContext) -> FloatArray:
    return _inverse(context.pi)


@WEIGHTINGS.add("wcll-bias")
def _wcll_bias(context: WeightContext) -> FloatArray:
    """Table 5: every pi_j is off by the same bias."""
    if not (is_number(context.bias) and abs(context.bias) <= 1 and (context.pi + context.bias > 0).all()):
        raise InputError("bias", "one that leaves every pi positive", context.bias)
    return _inverse(context.pi + context.bias)


@WEIGHTINGS.add("wcll-random")
def _wcll_random(context: WeightContext) -> FloatArray:
    """Table 5: Uniform(0, 1) for each class, normalised."""
    return stream(context.random_state, "labels", "weights").random(len(context.marginal))


@WEIGHTINGS.add("inverse-frequency")
def _inverse_frequency(context: WeightContext) -> FloatArray:
    return _inverse(context.marginal)


@WEIGHTINGS.add("effective-number")
def _effective_number(context: WeightContext) -> FloatArray:
    r""":math:`(1 - \beta) / (1 - \beta^{n_j})` with the label counts (Cui et al., CVPR 2019)."""
    share("beta", context.beta)
    weights = np.zeros_like(context.marginal)
    seen = context.marginal > 0
    weights[seen] = (1 - context.beta) / (1 - context.beta ** (context.n * context.marginal[seen]))
    return weights


def class_weights(
    scheme: str | ArrayLike,
    ybar: Any,
    n_classes: int | None = None,
    *,
    pi: PiSource = "recovered",
    sizes: ArrayLike | None = None,
    bias: float = 0.0,
    beta: float = 0.999,
    random_state: RandomState = None,
    sample_weight: ArrayLike | None = None,
    classes: Classes = None,
) -> ClassWeights:
    r"""Weights a class, scaled so that their mean over the training labels is 1: :math:`\sum_k \bar p_k w_k = 1`.

    Parameters
    ----------
    scheme : str or array of shape (K,)
        ``"wcll"`` (Eq. 13), ``"wcll-bias"`` and ``"wcll-random"`` (the paper's table 5), ``"inverse-frequency"``,
        ``"effective-number"``, or any non-negative weights.
    ybar : labels of the training set
        Class indices, lists of them, or a mask, of ``n_classes``; or names among ``classes``.
    pi : {"recovered", "observed", "declared"}
        The pi of Eq. 13: the fixed point under the inverse-size assumption, the observed shares, or Eq. 7 of the
        ``sizes`` that the user declares. Only ``"declared"`` and ``"recovered"`` make Eq. 9 unbiased for labels of
        the inverse-size selector.
    sizes : array of shape (K,), optional
        Ordinary class sizes (or shares), for ``pi="declared"``.
    bias, beta
        Options of ``"wcll-bias"`` and ``"effective-number"``.

    A class that never occurs as a label has weight 0 under observed shares: no sample asks for it.

    >>> class_weights("wcll", np.array([0, 0, 1, 2]), 3, pi="observed").values
    array([0.66666667, 1.33333333, 1.33333333])
    """
    marginal = observed_marginal(ybar, n_classes, sample_weight=sample_weight, classes=classes).value
    n = float(len(ybar) if sample_weight is None else np.sum(sample_weight))
    return weights_of_marginal(scheme, marginal, n, pi=pi, sizes=sizes, bias=bias, beta=beta, random_state=random_state)


def weights_of_marginal(
    scheme: str | ArrayLike, marginal: FloatArray, n: float, *, pi: PiSource = "recovered", **options: Any
) -> ClassWeights:
    """:func:`class_weights`, with its options, from the shares ``marginal`` of ``n`` labels that come in parts."""
    if not isinstance(scheme, str):
        own = class_weights_array("weights", scheme, len(marginal))
        return ClassWeights(_mean_one(own, marginal), "array")
    context = WeightContext(marginal, n, pi, **options)
    values = _mean_one(WEIGHTINGS[scheme](context), marginal)
    if "pi" not in vars(context):  # the scheme did not ask for it
        return ClassWeights(values, scheme)
    return ClassWeights(values, scheme, context.pi, pi)


def _inverse(shares: FloatArray) -> FloatArray:
    return np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)


def _mean_one(weights: FloatArray, marginal: FloatArray) -> FloatArray:
    mean = float(marginal @ weights)
    positive("weights: mean over the training labels", mean)
    return weights / mean


def resample(
    X: Rows,
    ybar: ArrayLike,
    *,
    by: ArrayLike | None = None,
    strategy: Literal["over", "under"] = "over",
    random_state: RandomState = None,
    classes: Classes = None,
) -> tuple[Rows, Any]:
    """Balance a training set by repeating or dropping samples (the paper's table 6).

    Parameters
    ----------
    X : array of n rows
    ybar : array of n labels (indices, or a mask of shape (n, K))
    by : array of shape (n,), optional
        The label to balance; the default is ``ybar``. True labels here are for experiments that ask what an oracle
        would gain.
    strategy : {"over", "under"}
        ``"over"`` repeats random samples up to the largest class, ``"under"`` drops random samples down to the
        smallest class that occurs.
    classes : sequence, optional
        The names of all classes, if labels are names.

    Returns
    -------
    X, ybar : the rows kept or repeated, in shuffled order
    """
    labels = np.atleast_1d(as_array("ybar", ybar))
    sparse = hasattr(X, "toarray") or getattr(X, "is_sparse", False)
    if sparse or not np.iterable(X) or not (hasattr(X, "iloc") or hasattr(X, "__getitem__")):
        raise InputTypeError("X", "rows in an array, a table or a list", type(X).__name__)
    same_length("X", len(X), "ybar", len(labels))  # type: ignore[arg-type]
    if by is None and labels.ndim != 1:
        raise InputError("by", "one label a sample to balance when ybar is a mask", None)
    key, name = (labels, "ybar") if by is None else (by, "by")
    key = class_indices(name, indexed(name, key, classes))
    same_length("ybar", len(labels), "by", len(key))
    choice("strategy", strategy, ("over", "under"))
    rng = stream(random_state, "imbalance", "resample")
    counts = np.bincount(key)
    if strategy == "under":
        kept = rng.permutation(pick_by_class(key, np.where(counts > 0, counts[counts > 0].min(), 0), rng))
    else:
        kept = rng.permutation(_repeat_to_largest(key, counts, rng))
    return _rows(X, kept), labels[kept]


def _rows(X: Any, rows: Any) -> Any:
    """Rows of an array, a tensor, a table or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return [X[row] for row in rows] if isinstance(X, list) else X[rows]


def _repeat_to_largest(key: Any, counts: Any, rng: np.random.Generator) -> Any:
    """Every sample once, and random repeats of each class up to the size of the largest."""
    missing = np.where(counts > 0, counts.max() - counts, 0)
    by_class = np.argsort(key, kind="stable")
    start = np.repeat(np.cumsum(counts) - counts, missing)
    drawn = (rng.random(len(start)) * np.repeat(counts, missing)).astype(np.int64)
    return np.concatenate([np.arange(len(key)), by_class[start + drawn]])
