"""Q from sets of many labels, each of which may have been given several times."""

from __future__ import annotations

import math

import numpy as np

from wcll.labels import cross_fitting
from wcll.labels.cross_fitting import transition_from_large_sets
from wcll.labels.families import FAMILIES

K = 6


def tv(a, b):
    return np.abs(a - b).sum(axis=1).mean() / 2


def drawn_sets(n, times, seed=0):
    """Labels drawn so many times from a Q whose rows differ, what was said twice being in a set once; and classes."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(K, 1.0), K) * (1 - np.eye(K))
    q /= q.sum(axis=1, keepdims=True)
    y = rng.integers(0, K, n)
    mask = np.zeros((n, K), dtype=bool)
    for _ in range(times):
        mask[np.arange(n), (rng.random(n)[:, None] > q[y].cumsum(axis=1)[:, :-1]).sum(axis=1)] = True
    return mask, y


def slow_step(mask, weight, chance, prior, lean):
    """One step in loops."""
    n, total = len(mask), sum(weight)
    share = [[0.0] * K for _ in range(n)]
    for i in range(n):
        joint = []
        for y in range(K):
            product = prior[y]
            for j in range(K):
                s = min(max(chance[y][j], cross_fitting.LEAST), 1 - cross_fitting.LEAST)
                product *= s if mask[i][j] else 1 - s
            joint.append(product)
        share[i] = [weight[i] * value / math.fsum(joint) for value in joint]
    members = [math.fsum(share[i][y] for i in range(n)) for y in range(K)]
    seen = cross_fitting.STRENGTH * total / K
    new = [
        [
            (math.fsum(share[i][y] for i in range(n) if mask[i][j]) + seen * lean[y][j]) / (members[y] + seen)
            for j in range(K)
        ]
        for y in range(K)
    ]
    shares = [members[y] + cross_fitting.EQUAL * total / K for y in range(K)]
    return new, [one / sum(shares) for one in shares]


def test_it_is_em(monkeypatch):
    mask, _ = drawn_sets(60, 5)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(mask))
    popular = weight @ mask / weight.sum()
    lean = [[popular[j] * (cross_fitting.OWN if j == y else 1.0) for j in range(K)] for y in range(K)]
    chance, prior = lean, [1 / K] * K
    for _ in range(3):
        chance, prior = slow_step(mask.tolist(), weight.tolist(), chance, prior, lean)
    monkeypatch.setattr(cross_fitting, "STEPS", 3)
    slow = np.array(chance) / np.array(chance).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(transition_from_large_sets(mask, weight), slow, atol=1e-12)


def off(seed):
    """How far off it is, over how far off popularity is."""
    mask, y = drawn_sets(4000, 7, seed)
    named = np.stack([mask[y == k].mean(axis=0) for k in range(K)])
    named /= named.sum(axis=1, keepdims=True)
    popularity = FAMILIES["popularity"].fit(mask.sum(axis=0).astype(float)).transition
    return tv(transition_from_large_sets(mask, np.ones(len(mask))), named) / tv(popularity, named)


def test_it_comes_nearer_than_popularity():
    """Now and then classes change places, and it is no nearer; it is never much farther away."""
    found = [off(seed) for seed in range(8)]
    assert np.median(found) < 0.35
    assert max(found) < 1.2
