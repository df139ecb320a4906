"""What the documentation of the losses says of their ranges, their gradients and their pitfalls."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.datasets import load_digits

import wcll.functional as F  # noqa: N812
from wcll.exceptions import InputError
from wcll.labels import make_complementary, observed_marginal
from wcll.losses.registry import partial_risks
from wcll.losses.targets import prepare
from wcll.testing import example_labels, example_logits

K, N = 10, 2000
EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture
def f():
    return example_logits(N, K, scale=5.0)


@pytest.fixture
def ybar():
    return example_labels(N, K, several=False)


def gradient(loss, f, ybar):
    leaf = f.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(leaf, ybar), leaf)
    return found


@pytest.mark.parametrize(
    ("loss", "low", "high"),
    [
        (F.pc, -(K - 1) * (K - 2) / 2, K * (K - 1) / 2),
        (F.exp, (K - 1) / math.e, K - 1),
        (F.mae, 0, 2 * (K - 1)),
        (F.scl_exp, 1, math.e),
        (F.l_uw, math.log(1 + (K - 1) * math.exp(-1 / (K - 1))), math.log(1 + (K - 1) * math.e)),
    ],
)
def test_ranges(loss, low, high, ybar):
    values = loss(example_logits(N, K, scale=200.0), ybar, reduction="none")
    label = torch.nn.functional.one_hot(ybar, K).bool()
    lowest = loss(torch.where(label, -500.0, torch.zeros(N, K, dtype=torch.float64)), ybar, reduction="none")
    highest = loss(torch.where(label, 500.0, torch.zeros(N, K, dtype=torch.float64)), ybar, reduction="none")
    torch.testing.assert_close(lowest, torch.full_like(lowest, low), **EXACT)
    torch.testing.assert_close(highest, torch.full_like(highest, high), **EXACT)
    assert values.min() > low - 1e-9
    assert values.max() < high + 1e-9


def test_the_squared_error_of_one_label(f, ybar):
    p = f.softmax(-1)
    expected = 2 * (K - 1) * p.gather(-1, ybar[:, None])[:, 0] + p.square().sum(-1) - 1
    torch.testing.assert_close(F.mse(f, ybar, reduction="none"), expected, **EXACT)


def test_generalised_cross_entropy_lies_between(f, ybar):
    torch.testing.assert_close(2 * F.gce(f, ybar, q=1.0), F.mae(f, ybar), **EXACT)
    torch.testing.assert_close(F.gce(f, ybar, q=1e-9), F.free(f, ybar), rtol=1e-5, atol=1e-5)


def test_estimators_that_can_be_negative_and_one_without_a_bound(f, ybar):
    for loss in (F.gce, F.phuber, F.mse, F.free):
        assert loss(f, ybar, reduction="none").min() < 0
    assert F.free(1000 * f, ybar, reduction="none").min() < -1e5
    assert F.phuber(1000 * f, ybar, reduction="none").min() > -(K - 2) * (1 + math.log(10))


def test_gradients_where_the_model_is_sure_and_wrong():
    sure, label = torch.zeros(1, K, dtype=torch.float64), torch.tensor([0])
    sure[0, 0] = 50
    for loss in (F.pc, F.exp, F.mae, F.mse, F.gce, F.scl_exp, F.l_uw, F.l_w):
        assert gradient(loss, sure, label).norm() < 1e-10
    for loss in (F.log, F.scl_nl, F.free, F.op):
        assert gradient(loss, sure, label).norm() > 1


def test_small_gradients_and_small_weights_of_an_untrained_model():
    untrained, label = torch.zeros(1, K, dtype=torch.float64), torch.tensor([0])
    small, large = (gradient(loss, untrained, label).norm() for loss in (F.l_uw, F.log))
    assert float(small) == pytest.approx(float(large) / K)
    assert float(F.op_w(untrained, label)) == pytest.approx(float(F.op(untrained, label)) / K**2, rel=1e-3)


def test_a_label_that_is_impossible_for_every_class():
    never = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    assert F.forward(torch.zeros(1, 3), torch.tensor([2]), transition=never) == torch.inf


def share_with_negative_risks(n, marginal):
    """How many of 100 batches have a negative partial risk for a model that knows nothing."""
    found = 0
    for seed in range(100):
        f = torch.zeros(n, K, dtype=torch.float64)
        batch = prepare(f, example_labels(n, K, several=False, seed=seed), marginal=marginal)
        found += bool((partial_risks(f, batch, "ce", None) < 0).any())
    return found / 100


def test_without_a_marginal_an_untrained_model_has_negative_risks():
    assert share_with_negative_risks(256, None) > 0.95
    assert share_with_negative_risks(10_000, None) < 0.05
    assert share_with_negative_risks(256, torch.full((K,), 1 / K, dtype=torch.float64)) == 0


UNTRAINED = torch.zeros(256, K, dtype=torch.float64)
EVEN = {"weight": [1.0] * K, "pi": [1 / K] * K}


@pytest.mark.parametrize(("reading", "share"), [("algorithm1", 0.0), ("eq9", 1.0)])
def test_an_untrained_model_pays_a_penalty_by_eq9_only(reading, share):
    batches = [example_labels(256, K, several=False, seed=seed) for seed in range(100)]
    assert all(len(labels.unique()) == K for labels in batches)
    given = {**EVEN, "reading": reading}
    pays = [F.wcll_penalty(UNTRAINED, b, **given) > F.wcll(UNTRAINED, b, **given) + 1e-12 for b in batches]
    assert sum(map(bool, pays)) / len(batches) == pytest.approx(share, abs=0.05)


def test_where_the_penalty_bounds_the_loss(ybar):
    def at(scale, **options):
        ruled_out = torch.where(torch.nn.functional.one_hot(ybar, K).bool(), -scale, 0.0).double()
        return float(F.wcll_penalty(ruled_out, ybar, **EVEN, **options))

    assert min(at(1e6, strength=s) for s in (0.0, 0.9)) < -1e4
    assert min(at(1e6), at(1e6, strength=2.0)) >= 0
    assert at(1e6, bound=0.3) == pytest.approx(-0.3 * K)
    assert min(at(scale, strength=0.1, power=2.0) for scale in (1.0, 10.0, 100.0, 1e6)) > -K / 0.4


def test_a_gradient_through_adaptive_weights_would_raise_what_is_negative(ybar):
    """Where label 0 has been ruled out its bracket is negative, and more weight on it lowers the loss."""
    sure = torch.where(torch.nn.functional.one_hot(ybar, K).bool(), -9.0, 0.0).double().requires_grad_()
    weight = torch.ones(K, dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(F.wcll(sure, ybar, weight=weight, reading="eq9"), weight)
    assert (slope < 0).all()


@pytest.mark.parametrize("loss", [F.ga, F.ncll], ids=["ga", "ncll"])
def test_ascent_needs_a_marginal(loss):
    logits, ybar = torch.zeros(2, 3), torch.tensor([0, 1])
    with pytest.raises(TypeError, match="marginal"):
        loss(logits, ybar)
    with pytest.raises(InputError, match=r"^marginal: expected the shares of the labels .*, got None; wcll.labels"):
        loss(logits, ybar, marginal=None)


@pytest.mark.parametrize("loss", [F.ga, F.ncll], ids=["ga", "ncll"])
def test_with_a_batchs_own_shares_ascent_falls_below_chance(loss):
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.from_numpy(digits.target)
    ybar = torch.from_numpy(make_complementary(digits.target, random_state=0))
    accuracy = {}
    for name in ("own shares", "marginal"):
        generator = torch.Generator().manual_seed(0)
        weight = torch.zeros(64, K, requires_grad=True)
        optimiser = torch.optim.Adam([weight], lr=0.01)
        for _ in range(10):
            for rows in torch.randperm(len(x), generator=generator).split(64):
                optimiser.zero_grad()
                shares = observed_marginal(ybar if name == "marginal" else ybar[rows], K).value
                loss(x[rows] @ weight, ybar[rows], marginal=shares).backward()
                optimiser.step()
        accuracy[name] = float(((x @ weight).argmax(-1) == y).float().mean())
    assert accuracy["own shares"] < 1 / K < accuracy["marginal"], accuracy
