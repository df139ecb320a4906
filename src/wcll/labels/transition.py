"""The transition matrix Q: uniform, biased, noisy or a user's own; label distributions that follow from it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from wcll._random import RandomState, stream
from wcll._validation import (
    FloatArray,
    Functions,
    IntArray,
    check_sum,
    choice,
    class_indices,
    class_weights_array,
    distribution,
    matrix_size,
    numeric,
    share,
    transition_matrix,
    whole,
)
from wcll.exceptions import InputError


def round_to_total(parts: FloatArray, total: int) -> IntArray:
    """Round non-negative ``parts`` to integers in proportion that sum to ``total`` (largest remainder)."""
    with np.errstate(all="ignore"):
        exact = _few(parts * (total / parts.sum()))
    counts: IntArray = np.floor(exact).astype(np.int64)
    short = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:short]] += 1
    return counts


def pick_by_class(labels: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """Sorted indices with ``wanted[k]`` samples of label k, drawn without replacement."""
    have = np.bincount(labels, minlength=len(wanted))
    short = np.flatnonzero(wanted > have)
    if short.size:
        k = int(short[0])
        raise InputError("counts", f"at most {have[k]} samples of class {k}", int(wanted[k]), "ask for fewer samples")
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]  # grouped by label, shuffled within a group
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(have) - have, have)
    return np.sort(by_class[rank < wanted[labels[by_class]]])


def _few(sizes: FloatArray) -> FloatArray:
    """Class sizes that whole numbers can say."""
    if not (np.isfinite(sizes).all() and sizes.max(initial=0) < 2**53):
        raise InputError("n, p", "class sizes below 2**53", f"{sizes.max(initial=0):g}")
    return sizes


class Generator(Protocol):
    """Builds Q from the ordinary class sizes; a generator ignores what it does not need."""

    def __call__(self, sizes: FloatArray, *, random_state: RandomState) -> FloatArray: ...


TRANSITIONS: Functions[Generator] = Functions("transition")

BIAS_SHARES = {"weak": (0.45, 0.30, 0.25), "strong": (0.75, 0.24, 0.01)}


def uniform_transition(n_classes: int) -> FloatArray:
    """Every wrong class is equally likely: ``Q = (11' - I) / (K - 1)``.

    >>> uniform_transition(3)
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    matrix_size(n_classes)
    return (1.0 - np.eye(n_classes)) / (n_classes - 1)


def complementary_prior(sizes: ArrayLike) -> FloatArray:
    r"""The share of each class among complementary labels that the paper declares (Eq. 7).

    .. math:: \pi_j = \frac{1/\alpha_j}{\sum_i 1/\alpha_i}

    >>> complementary_prior([1000, 2000, 2000])
    array([0.5 , 0.25, 0.25])
    """
    alpha = numeric("sizes", sizes)
    if alpha.ndim != 1 or not np.isfinite(alpha).all() or (alpha <= 0).any():
        raise InputError("sizes", "one positive class size a class", np.array2string(alpha, threshold=12))
    with np.errstate(over="ignore"):
        return normalised(check_sum("sizes", 1.0 / alpha))


def inverse_size_transition(sizes: ArrayLike) -> FloatArray:
    r"""The selector that Eq. 7 suggests: :math:`Q_{yj} = \pi_j / (1 - \pi_y)` for :math:`j \ne y`.

    Its marginal is :math:`\alpha^\top Q`, which is not Eq. 7 itself: the smallest classes are named even more often.
    """
    return transition_from_pi(complementary_prior(sizes))


def transition_from_pi(pi: FloatArray) -> FloatArray:
    """``Q[y, j]`` proportional to ``pi[j]`` over the wrong classes j."""
    shares = numeric("pi", pi)
    class_weights_array("pi", shares, matrix_size(shares.size))
    if np.count_nonzero(shares) < 2:
        raise InputError("pi", "at least two positive shares", "one")
    weights = np.broadcast_to(shares, (len(shares), len(shares))) * (1.0 - np.eye(len(shares)))
    return normalised(weights)


def normalised(values: FloatArray) -> FloatArray:
    """Rows that sum to 1."""
    rows: FloatArray = values / values.sum(axis=-1, keepdims=True)
    return rows


def biased_transition(n_classes: int, *, strength: str = "weak", random_state: RandomState = None) -> FloatArray:
    """Annotators with habits: for each class some wrong classes are named more often than others.

    The wrong classes of each y, in an order drawn once, are cut into at most three near-equal groups that share the
    mass .45/.30/.25 (``"weak"``) or .75/.24/.01 (``"strong"``), renormalised where there are fewer groups.
    """
    shares = np.array(BIAS_SHARES[choice("strength", strength, BIAS_SHARES)])
    matrix = uniform_transition(n_classes)
    rng = stream(random_state, "labels", "transition")
    for y in range(n_classes):
        others = rng.permutation(np.delete(np.arange(n_classes), y))
        groups = np.array_split(others, min(3, n_classes - 1))
        mass = shares[: len(groups)] / shares[: len(groups)].sum()
        for group, part in zip(groups, mass, strict=True):
            matrix[y, group] = part / len(group)
    return matrix


def shifted_transition(matrix: ArrayLike, *, distance: float, random_state: RandomState = None) -> FloatArray:
    """A Q that is off: in every row the share ``distance`` of the labels moves from some wrong classes to the others.

    The total variation distance of each row from what it was is ``distance`` exactly. Of the wrong classes of each y,
    in an order drawn once, the first half (or as many as have enough) give, and the others take, each in proportion to
    what it has; a row in which no class is left to take stays as it is.
    """
    if not 0 <= distance < 1:
        raise InputError("distance", "a share from 0 to below 1", distance)
    moved = transition_matrix(matrix).copy()
    rng = stream(random_state, "labels", "shift")
    for y, row in enumerate(moved):
        named = rng.permutation(np.flatnonzero((row > 0) & (np.arange(len(row)) != y)))
        most = int(np.searchsorted(row[named].cumsum(), distance)) + 1
        giving, taking = np.split(named, [max(most, len(named) // 2)])
        if len(taking) and distance:
            row[giving] *= 1 - distance / row[giving].sum()
            row[taking] *= 1 + distance / row[taking].sum()
    return moved


def noisy_transition(matrix: ArrayLike, *, rate: float) -> FloatArray:
    """Mistakes: a share ``rate`` of the labels names the true class, ``Q = (1 - rate) matrix + rate I``."""
    share("rate", rate)
    clean = transition_matrix(matrix)
    return (1.0 - rate) * clean + rate * np.eye(len(clean))


def select_by_marginal(
    ybar: ArrayLike, target: ArrayLike, *, n: int | None = None, random_state: RandomState = None
) -> IntArray:
    """Sorted indices of labels whose counts follow ``target`` to rounding; as many as possible, or ``n``.

    The other way to an imbalanced set of complementary labels: draw them uniformly, then keep some. Here the
    marginal is exact, while the labels of a class are no longer a fixed distribution given y; :func:`selected_joint`
    is what they tend to.
    """
    shares = numeric("target", target)
    shares = distribution("target", shares, shares.size)
    labels = class_indices("ybar", ybar, len(shares))
    have = np.bincount(labels, minlength=len(shares))
    if n is not None:
        whole("n", n)
    most = int(np.floor((have[shares > 0] / shares[shares > 0]).min() + 1e-9))
    while n is None and (round_to_total(shares, most) > have).any():  # rounding up may ask for one too many
        most -= 1
    wanted = round_to_total(shares, most if n is None else n)
    return pick_by_class(labels, wanted, stream(random_state, "labels", "kept"))


def selected_joint(transition: ArrayLike, target: ArrayLike, prior: ArrayLike) -> FloatArray:
    r"""P(y, ybar) of labels that :func:`select_by_marginal` keeps of many that were drawn by Q.

    .. math:: P_{yj} = p_y Q_{yj} \frac{t_j}{\sum_i p_i Q_{ij}}

    with class shares p (``prior``) before and label shares t (``target``) after. Both P(ybar | y) and P(y) move: as its
    own samples do not name it, a class that the kept labels name often is itself kept less.

    >>> joint = selected_joint(uniform_transition(3), [0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3])
    >>> joint
    array([[0.   , 0.125, 0.125],
           [0.25 , 0.   , 0.125],
           [0.25 , 0.125, 0.   ]])
    >>> joint.sum(axis=1)
    array([0.25 , 0.375, 0.375])
    """
    matrix = transition_matrix(transition)
    shares = distribution("target", target, len(matrix))
    drawn = distribution("prior", prior, len(matrix))[:, None] * matrix
    marginal = drawn.sum(axis=0)
    if ((shares > 0) & (marginal == 0)).any():
        k = int(((shares > 0) & (marginal == 0)).argmax())
        raise InputError("target", f"no share of the label {k}, which is never drawn", f"{shares[k]:g}")
    rate = np.divide(shares, marginal, out=np.zeros_like(shares), where=marginal > 0)
    joint: FloatArray = drawn * rate
    return joint


TRANSITIONS.put("uniform", lambda sizes, **seed: uniform_transition(len(sizes)))
TRANSITIONS.put("inverse-size", lambda sizes, **seed: inverse_size_transition(sizes))
TRANSITIONS.put(
    "inverse-size-off", lambda sizes, **seed: shifted_transition(inverse_size_transition(sizes), distance=0.2, **seed)
)
TRANSITIONS.put("biased-weak", lambda sizes, **seed: biased_transition(len(sizes), strength="weak", **seed))
TRANSITIONS.put("biased-strong", lambda sizes, **seed: biased_transition(len(sizes), strength="strong", **seed))


def make_transition(kind: str | ArrayLike, sizes: ArrayLike, *, random_state: RandomState = None) -> FloatArray:
    """Q by name (see ``TRANSITIONS``), for ordinary class sizes ``sizes``; or the user's own matrix, checked."""
    alpha = numeric("sizes", sizes)
    if alpha.ndim != 1:
        raise InputError("sizes", "one class size a class", f"shape {alpha.shape}")
    if isinstance(kind, str):
        return TRANSITIONS[kind](alpha, random_state=random_state)
    return transition_matrix(kind, len(alpha))
