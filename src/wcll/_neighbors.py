"""Nearest neighbours of samples, and the complementary labels among them.

Near samples mostly share their class. So the labels of a sample's neighbours act as repeated labels of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wcll._random import stream
from wcll._validation import FloatArray, IntArray

N_NEIGHBORS = 10  #: with the sample itself, where ``loss="auto"`` looks for them
MAX_COMPONENTS = 40  #: principal components in which distances are measured, if there are more features
MAX_REFERENCES = 50_000  #: samples that may be neighbours; of more, a random part of so many
PCA_ROWS = 10_000  #: samples from which principal components are computed
MAX_COVARIANCE = 2000  #: features up to which their covariance is decomposed
FEW = 3000  #: samples, or features, up to which one thread is faster
MAX_PURITY_ERROR = 0.1  #: standard error beyond which an estimate of purity is of no use
MAX_RATIO = 30.0  #: of the largest range of a column to one of the smallest, from which on scales differ much
LOW = 0.05  #: the quantile of ranges that stands for the smallest; of fewer than 20 columns the smallest itself

Scaling = tuple[FloatArray, FloatArray]  #: mean and standard deviation of columns


def nearest_neighbors(
    points: NDArray[Any], n_neighbors: int, *, seed: int = 0, among: IntArray | None = None
) -> IntArray:
    """Return the nearest samples of each sample, itself first, of shape (n, n_neighbors); distances are Euclidean.

    Other samples than itself are found ``among`` these.

    >>> nearest_neighbors(np.array([[0.0], [1.0], [5.0], [7.0]]), 2).tolist()
    [[0, 1], [1, 0], [2, 3], [3, 2]]
    """
    from sklearn.neighbors import NearestNeighbors  # slow to import

    n = len(points)
    references = np.arange(n) if among is None else among
    if len(references) > MAX_REFERENCES:
        references = np.sort(stream(seed, "neighbors").choice(references, MAX_REFERENCES, replace=False))
    wanted = min(n_neighbors, len(references))
    with threadpool_limits(1 if n < FEW else None):  # several threads cost more than they bring
        search = NearestNeighbors(n_neighbors=wanted, algorithm="brute").fit(points[references])
        found: IntArray = references[search.kneighbors(points, return_distance=False)]
    itself = np.arange(n)[:, None]
    others = np.take_along_axis(found, np.argsort(found == itself, axis=1, kind="stable"), axis=1)[:, : wanted - 1]
    return np.hstack([itself, others])


def components(features: NDArray[Any], *, seed: int = 0) -> NDArray[np.float32]:
    """Return features in which distances are measured: as they are, or their first principal components if many."""
    flat = features.reshape(len(features), -1).astype(np.float32, copy=False)
    if flat.shape[1] <= MAX_COMPONENTS or len(flat) <= MAX_COMPONENTS:
        return flat
    from sklearn.decomposition import PCA

    rows = stream(seed, "neighbors", "components").permutation(len(flat))[:PCA_ROWS]
    solver = "covariance_eigh" if flat.shape[1] <= MAX_COVARIANCE else "randomized"
    with threadpool_limits(1 if flat.shape[1] < FEW else None):
        pca = PCA(MAX_COMPONENTS, svd_solver=solver, random_state=0).fit(flat[rows])
        found: NDArray[np.float32] = pca.transform(flat)
    return found


def label_shares(labels: NDArray[Any], n_classes: int, neighbors: IntArray, weight: FloatArray) -> FloatArray:
    """Return the share of each label among the neighbours of each sample, (n, n_classes).

    ``labels`` are class indices or a mask; each of several labels of a sample counts its share.

    >>> label_shares(np.array([0, 1, 1]), 2, np.array([[0, 1], [1, 2], [2, 1]]), np.ones(3)).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
    """
    own = np.eye(n_classes, dtype=np.float32)[labels] if labels.ndim == 1 else labels / labels.sum(axis=1)[:, None]
    weighted = own * weight[:, None]
    total = np.zeros((len(labels), n_classes))
    for column in neighbors.T:
        total += weighted[column]
    size = total.sum(axis=1, keepdims=True)
    shares: FloatArray = np.where(size > 0, total / np.where(size > 0, size, 1.0), own)
    return shares


def label_purity(labels: IntArray, neighbors: IntArray, matrix: FloatArray, prior: FloatArray) -> float | None:
    r"""Estimate the share of neighbours that are of a sample's own class, from the labels alone.

    A sample and its neighbour have the same label in a share :math:`\sum_{yj} \pi_y Q_{yj}^2` of pairs if their class
    is the same. If the neighbour is any sample, the share is :math:`\sum_j m_j^2` (m: the label marginal). The observed
    share lies between them. Labels that say too little, as uniform ones of few samples do, give None.

    >>> label_purity(np.array([1, 1, 0, 0]), np.array([[0, 1], [1, 0], [2, 3], [3, 2]]), 1 - np.eye(2), np.ones(2) / 2)
    1.0
    """
    if neighbors.shape[1] < 2:
        return None
    same = (labels[neighbors[:, 1:]] == labels[:, None]).mean(axis=1)
    any_sample = float(np.square(np.bincount(labels) / len(labels)).sum())
    span = float((prior @ np.square(matrix)).sum()) - any_sample
    if span <= 0 or same.std() / np.sqrt(len(same)) > MAX_PURITY_ERROR * span:
        return None
    share = min(max((float(same.mean()) - any_sample) / span, 0.0), 1.0)
    return share + (1 - share) * float(np.square(prior).sum())


def column_scaling(features: NDArray[Any], *, always: bool = False) -> Scaling | None:
    """Return mean and standard deviation of columns if their scales differ much, else None.

    The scale of a column is its range. Rarely used pixels have a small deviation and the same range as the others:
    standardised, they would be blown up.
    """
    if features.ndim != 2 and not always:
        return None
    mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    varies = deviation > len(features) * np.finfo(np.float64).eps * np.abs(mean)  # by more than rounding errors
    used = np.ptp(features, axis=0)[varies]
    if not always and (not len(used) or used.max() <= MAX_RATIO * np.quantile(used, LOW, method="lower")):
        return None
    return mean, np.where(varies, deviation, np.maximum(np.abs(mean), 1.0))  # folded loses mean / deviation


def standardized(features: NDArray[Any], scaling: Scaling | None) -> NDArray[Any]:
    """Return features of mean 0 and deviation 1, or as they are."""
    if scaling is None:
        return features
    scaled: NDArray[Any] = ((features - scaling[0]) / scaling[1]).astype(features.dtype)
    return scaled
