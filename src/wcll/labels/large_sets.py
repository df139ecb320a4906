"""Q from large sets of labels, in which each class is or is not: what no product of single draws describes."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from wcll._validation import BoolArray, FloatArray
from wcll.labels.transition import normalised

STEPS = 300  #: of EM
STRENGTH = 0.05  #: how much it leans to popularity, as a share of the samples of a class
OWN = 0.05  #: how often a class is taken to be in sets of its own samples at first, over how often it is in any
EQUAL = 0.2  #: of the samples: how much class shares lean towards equal ones
LEAST = 1e-6  #: nothing is quite impossible, or sure


def transition_from_large_sets(mask: BoolArray, weight: FloatArray) -> FloatArray:
    r"""How often each class is in the sets of samples of class y, over all that is in them: rows that sum to 1.

    EM for a mixture in which the classes of a set S are in it or not independently of each other, given y,

    .. math:: P(S \mid y) = \prod_{j \in S} s_{yj} \prod_{j \notin S} (1 - s_{yj}) ,

    leaning to popularity. Labels that were drawn one by one are not independent so: of few labels a sample, this finds
    classes that are not there, and :func:`wcll.labels.transition_from_repeated` is for them. Of many, each of which
    may have been drawn several times, it is close.

    >>> rng = np.random.default_rng(0)
    >>> true = np.where(np.eye(4), 0.02, [[0.9, 0.3, 0.6, 0.4]])
    >>> true[0], y = [0.02, 0.8, 0.2, 0.9], rng.integers(0, 4, 4000)
    >>> found = transition_from_large_sets(rng.random((4000, 4)) < true[y], np.ones(4000))
    >>> bool(np.abs(found - normalised(true)).sum(axis=1).max() / 2 < 0.1)
    True
    """
    k, sets, total = mask.shape[1], mask.astype(np.float64), weight.sum()
    popular = weight @ sets / total
    lean = np.where(np.eye(k, dtype=bool), OWN * popular, popular)
    chance, prior, seen = lean, np.full(k, 1 / k), STRENGTH * total / k
    for _ in range(STEPS):
        inside = np.clip(chance, LEAST, 1 - LEAST)
        outside = np.log1p(-inside)
        joint = sets @ (np.log(inside) - outside).T + outside.sum(axis=1) + np.log(prior)
        share = softmax(joint, axis=1) * weight[:, None]
        members = share.sum(axis=0)
        chance = (share.T @ sets + seen * lean) / (members + seen)[:, None]
        prior = normalised(members + EQUAL * total / k)
    return normalised(chance)
