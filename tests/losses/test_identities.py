"""Equalities between losses, and unbiasedness by exact enumeration over labels."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

import wcll.functional as F  # noqa: N812
from wcll.labels import class_weights, imbalance_counts, inverse_size_transition, observed_marginal, uniform_transition
from wcll.labels.transition import complementary_prior
from wcll.labels.weights import eq13
from wcll.losses import Targets
from wcll.losses.registry import BASES, partial_risks
from wcll.losses.targets import prepare
from wcll.testing import example_logits as logits
from wcll.testing import example_transition as random_transition

K, N = 6, 20
SHARES = [0.1, 0.2, 0.1, 0.3, 0.2, 0.1]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture
def f():
    return logits(N, K)


@pytest.fixture
def ybar():
    return torch.from_numpy(np.random.default_rng(0).integers(0, K, N))


def test_forward_with_uniform_labels_is_scl_nl_is_log(f, ybar):
    negative_learning = F.scl_nl(f, ybar)
    forward = F.forward(f, ybar, transition=uniform_transition(K))
    torch.testing.assert_close(forward - math.log(K - 1), negative_learning, **EXACT)
    torch.testing.assert_close(F.log(f, ybar), (K - 1) * negative_learning, **EXACT)


def test_exp_is_scaled_scl_exp(f, ybar):
    torch.testing.assert_close(F.exp(f, ybar), (K - 1) / math.e * F.scl_exp(f, ybar), **EXACT)


def test_mae_estimator_is_linear_in_the_labels_probability(f, ybar):
    p = f.softmax(-1).gather(-1, ybar[:, None]).squeeze(-1)
    torch.testing.assert_close(F.mae(f, ybar, reduction="none"), 2 * (K - 1) * p, **EXACT)


def test_free_class_form_is_its_sample_form_on_the_full_batch(f, ybar):
    marginal = observed_marginal(ybar.numpy(), K).value
    torch.testing.assert_close(F.free(f, ybar, marginal=marginal), F.free(f, ybar), **EXACT)


def test_l_w_is_l_uw_times_a_bounded_weight(f, ybar):
    p = f.softmax(-1).gather(-1, ybar[:, None]).squeeze(-1)
    factor = 1 + (1 - p) / (K - 1)
    torch.testing.assert_close(F.l_w(f, ybar, reduction="none"), factor * F.l_uw(f, ybar, reduction="none"), **EXACT)
    assert factor.min() >= 1
    assert factor.max() <= 1 + 1 / (K - 1)


def test_l_uw_is_bounded_below():
    sure = torch.full((1, 10), -50.0, dtype=torch.float64)
    sure[0, 3] = 50.0
    lowest = math.log(1 + 9 * math.exp(-1 / 9))
    assert float(F.l_uw(torch.zeros(1, 10, dtype=torch.float64), torch.tensor([0]))) >= lowest
    assert lowest == pytest.approx(2.203, abs=5e-4)


def test_free_with_the_uniform_matrix_is_free(f, ybar):
    for loss in (F.free, F.nn, partial(F.ga, marginal=SHARES), partial(F.ncll, marginal=SHARES)):
        torch.testing.assert_close(loss(f, ybar, transition=uniform_transition(K)), loss(f, ybar), **EXACT)


def test_ncll_with_mae_is_ga_with_mae_and_needs_no_weights_when_uniform(f, ybar):
    ncll = partial(F.ncll, marginal=SHARES)
    torch.testing.assert_close(ncll(f, ybar), F.ga(f, ybar, marginal=SHARES, base="mae"), **EXACT)
    torch.testing.assert_close(ncll(f, ybar, base="weighted-mae"), ncll(f, ybar), **EXACT)


def test_wcll_with_equal_weights_is_free_and_weighted_free_is_wcll(f, ybar):
    weight = [0.5, 1, 2, 1, 1, 0.1]
    torch.testing.assert_close(F.wcll(f, ybar, weight=[1.0] * K, reading="eq9"), F.free(f, ybar), **EXACT)
    torch.testing.assert_close(F.wcll(f, ybar, weight=weight, reading="eq9"), F.free(f, ybar, weight=weight), **EXACT)


@pytest.mark.parametrize("seed", range(5))
def test_eq9_equals_algorithm1_on_a_full_batch_with_its_own_marginal(seed):
    rng = np.random.default_rng(seed)
    ybar = np.concatenate([np.arange(K), rng.integers(0, K, 50)])
    weights = class_weights("wcll", ybar, K, pi="observed")
    f, labels = logits(len(ybar), K, seed=seed), torch.from_numpy(ybar)
    eq9 = F.wcll(f, labels, weight=weights, reading="eq9")
    algorithm1 = F.wcll(f, labels, weight=weights, pi=weights.pi, reading="algorithm1")
    torch.testing.assert_close(eq9, algorithm1, **EXACT)


@pytest.fixture
def weighted():
    return {"weight": [0.5, 1.0, 2.0, 0.7, 1.3, 0.9], "pi": SHARES}


def wcll_risks(f, ybar, **given):
    """The partial risk of every class: WCLL with all other base losses 0."""
    only = torch.eye(K, dtype=torch.float64)
    return torch.stack([F.wcll(f, ybar, **given, base=lambda z, e=e: BASES["ce"](z) * e) for e in only])


@pytest.mark.parametrize("reading", ["algorithm1", "eq9"])
@pytest.mark.parametrize("scale", [0.1, 5.0])
def test_the_penalty_has_known_corrections_as_cases(f, ybar, weighted, reading, scale):
    given = {**weighted, "reading": reading}
    risks = wcll_risks(scale * f, ybar, **given)
    penalty = partial(F.wcll_penalty, scale * f, ybar, **given)
    torch.testing.assert_close(penalty(strength=0.0), F.wcll(scale * f, ybar, **given), **EXACT)
    torch.testing.assert_close(penalty(), risks.clamp(min=0).sum(), **EXACT)
    torch.testing.assert_close(penalty(strength=2.0), risks.abs().sum(), **EXACT)
    torch.testing.assert_close(penalty(bound=0.2), risks.clamp(min=-0.2).sum(), **EXACT)
    torch.testing.assert_close(penalty(bound=0.2, strength=2.0), ((risks + 0.2).abs() - 0.2).sum(), **EXACT)
    squares = 3 * risks.clamp(max=0).square().sum()
    torch.testing.assert_close(penalty(strength=3.0, power=2.0), risks.sum() + squares, **EXACT)


def test_by_eq9_without_weights_the_penalty_is_nn(f, ybar):
    plain = {"weight": [1.0] * K, "reading": "eq9"}
    torch.testing.assert_close(F.wcll_penalty(5 * f, ybar, **plain), F.nn(5 * f, ybar), **EXACT)
    torch.testing.assert_close(F.wcll_penalty(5 * f, ybar, **plain, bound=0.3), F.nn(5 * f, ybar, beta=0.3), **EXACT)


def followed(f, weight, mix):
    weight = torch.tensor(weight, dtype=torch.float64)
    return (1 - mix) * weight + mix * weight.sum() * f.softmax(-1).mean(-2)


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_adaptive_weights_are_held_in_the_gradient(f, ybar, weighted, mix):
    weight, leaf = weighted["weight"], f.requires_grad_()
    held = followed(f, weight, mix).detach()
    pairs = [F.wcll_adaptive(leaf, ybar, weight=weight, mix=mix), F.wcll(leaf, ybar, weight=held, reading="eq9")]
    torch.testing.assert_close(*pairs, **EXACT)
    torch.testing.assert_close(*(torch.autograd.grad(loss, leaf)[0] for loss in pairs), **EXACT)


def test_a_model_that_knows_the_balance_has_the_weights_of_eq13(ybar):
    """Outputs that are the class shares everywhere: Eqs. 7 and 13 make weights of them that are the shares again."""
    sizes = imbalance_counts(n_majority=1000, n_classes=K, minority=[1], p=4)
    f = torch.as_tensor(sizes / sizes.sum()).log().expand(N, K)
    declared = eq13(complementary_prior(sizes))
    learnt = F.wcll_adaptive(f, ybar, weight=[1 / K] * K, mix=1.0)
    torch.testing.assert_close(learnt, F.wcll(f, ybar, weight=declared, reading="eq9"), **EXACT)


def test_a_set_of_labels_is_the_mean_over_its_labels(f):
    sets = torch.zeros(N, K, dtype=torch.bool)
    sets[:, 1] = sets[:, 4] = True
    one, four = torch.full((N,), 1), torch.full((N,), 4)
    for loss in (F.free, F.scl_nl, F.scl_exp):
        torch.testing.assert_close(loss(f, sets), (loss(f, one) + loss(f, four)) / 2, **EXACT)


def test_forward_takes_a_set_as_one_observation(f):
    """Bayes: a second label is judged by the posterior that the first one leaves."""
    q = torch.as_tensor(random_transition(K))
    sets = torch.zeros(N, K, dtype=torch.bool)
    sets[:, 1] = sets[:, 4] = True
    one, four = torch.full((N,), 1), torch.full((N,), 4)
    first = F.forward(f, one, transition=q, reduction="none")
    posterior = f.log_softmax(-1) + q[:, 1].log()
    second = F.forward(posterior, four, transition=q, reduction="none")
    torch.testing.assert_close(F.forward(f, sets, transition=q, reduction="none"), first + second, **EXACT)


def test_forward_of_candidates_is_their_mass(f):
    """All classes but the candidates are ruled out: under uniform labels what counts is the candidates' probability."""
    sets = torch.ones(N, K, dtype=torch.bool)
    sets[:, :2] = False
    mass = -f.softmax(-1)[:, :2].sum(-1).log()
    loss = F.forward(f, sets, transition=uniform_transition(K), reduction="none")
    torch.testing.assert_close(loss - (K - 2) * math.log(K - 1), mass, **EXACT)


def test_logit_adjustment_is_cross_entropy_on_moved_logits(f, ybar):
    share = torch.tensor([0.3, 0.05, 0.25, 0.2, 0.1, 0.1], dtype=torch.float64)
    torch.testing.assert_close(F.logit_adjusted(f, ybar, marginal=share, tau=0), F.cross_entropy(f, ybar), **EXACT)
    for tau in (0.5, 1.0, 2.0):
        moved = F.logit_adjusted(f - tau * share.log(), ybar, marginal=share, tau=tau)
        torch.testing.assert_close(moved, F.cross_entropy(f, ybar), **EXACT)
    torch.testing.assert_close(F.logit_adjusted(f, ybar, marginal=[1 / K] * K), F.cross_entropy(f, ybar), **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_logit_adjustment_without_samples_of_a_class(f, dtype):
    """It learns from every sample that this is not the class, and even a label of it has a finite loss."""
    share, labels = [0.0, 0.2, 0.2, 0.2, 0.2, 0.2], torch.arange(N) % (K - 1) + 1
    leaf = f.to(dtype).requires_grad_()
    loss = F.logit_adjusted(leaf, labels, marginal=share)
    (gradient,) = torch.autograd.grad(loss, leaf)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert (gradient[:, 0] > 0).all()
    assert F.logit_adjusted(leaf, labels - 1, marginal=share).isfinite()


# Unbiasedness: expectations over ybar given y, summed exactly.


def expected_given_y(loss, f, transition):
    """E[loss(x, ybar) | y] for every sample x and class y, by summing over ybar: (n, k)."""
    per_label = torch.stack([loss(f, torch.full((len(f),), j)) for j in range(f.shape[-1])], -1)
    return per_label @ torch.as_tensor(transition).mT


@pytest.mark.parametrize("base", list(BASES))
def test_free_is_the_ordinary_risk_for_uniform_labels(f, base):
    mean = expected_given_y(lambda z, y: F.free(z, y, base=base, reduction="none"), f, uniform_transition(K))
    torch.testing.assert_close(mean, BASES[base](f), **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_free_is_the_ordinary_risk_for_a_random_transition(f, seed):
    q = random_transition(K, seed)
    mean = expected_given_y(lambda z, y: F.free(z, y, transition=q, reduction="none"), f, q)
    torch.testing.assert_close(mean, BASES["ce"](f), **EXACT)


@pytest.mark.parametrize("uniform", [True, False], ids=["uniform", "random Q"])
def test_partial_risks_have_the_ordinary_partial_risks_as_expectation(uniform):
    """Three samples with true classes y: the mean over all K^3 label triples, each with its probability."""
    k, y = 4, [0, 2, 2]
    q = uniform_transition(k) if uniform else random_transition(k, 1)
    f = logits(3, k)
    expected = torch.zeros(k, dtype=torch.float64)
    for triple in np.ndindex(k, k, k):
        chance = math.prod(q[true, label] for true, label in zip(y, triple, strict=True))
        if chance:
            batch = prepare(f, torch.tensor(triple))
            expected += chance * partial_risks(f, batch, "ce", None if uniform else q)
    ordinary = torch.zeros(k, dtype=torch.float64)
    for i, true in enumerate(y):
        ordinary[true] += BASES["ce"](f)[i, true] / 3
    torch.testing.assert_close(expected, ordinary, **EXACT)


def test_pc_is_the_pairwise_risk_up_to_a_constant(f):
    """For uniform labels E[PC | y] = sum_{k != y} sigmoid(f_k - f_y) + const, whatever the surrogate."""
    for surrogate, g in (("sigmoid", torch.sigmoid), ("ramp", lambda z: 0.5 * (1 + z).clamp(0, 2))):
        mean = expected_given_y(
            lambda z, y, s=surrogate: F.pc(z, y, surrogate=s, reduction="none"), f, uniform_transition(K)
        )
        risk = torch.stack([g(f - f[:, [y]]).sum(-1) for y in range(K)], -1)
        difference = mean - risk
        torch.testing.assert_close(difference, difference[0, 0].expand_as(difference), **EXACT)


SETTINGS = [(10, [0], 2), (10, [0], 5), (10, [0, 2, 4, 6, 8], 5), (5, [0, 1, 2, 3], 10)]


def eq9_error(k, minority, p, pi):
    """How far E[Eq. 9 | y] is from c (K-1) l_y / (1 - pi_y), as coefficients of l_0 ... l_{K-1}, relative to l_y's."""
    sizes = imbalance_counts(n_majority=1000, n_classes=k, minority=minority, p=p)
    q, declared = inverse_size_transition(sizes), complementary_prior(sizes)
    used = declared if pi == "declared" else sizes / sizes.sum() @ q
    one = torch.zeros(1, k, dtype=torch.float64)
    coefficients = torch.empty(k, k, dtype=torch.float64)
    for j in range(k):  # with the base loss l = e_j the expectation is the coefficient of l_j
        base = torch.eye(k, dtype=torch.float64)[j]
        per_y = expected_given_y(
            lambda z, y, e=base: F.wcll(
                z, y, weight=eq13(used), reading="eq9", base=lambda f: e.expand_as(f), reduction="none"
            ),
            one,
            q,
        )
        coefficients[:, j] = per_y[0]
    target = torch.as_tensor((k - 1) / (1 / used).sum() / (1 - used))
    return float(((coefficients - target.diag()).abs() / target[:, None]).max())


@pytest.mark.parametrize(("k", "minority", "p"), SETTINGS)
def test_eq9_with_declared_pi_is_unbiased(k, minority, p):
    assert eq9_error(k, minority, p, "declared") < 1e-10


@pytest.mark.parametrize(
    ("k", "minority", "p"),
    SETTINGS,
    ids=[
        f"K={k},p={p},{len(m)} minority: error {eq9_error(k, m, p, 'observed'):.0%} of the target"
        for k, m, p in SETTINGS
    ],
)
def test_eq9_with_observed_pi_is_biased(k, minority, p):
    error = eq9_error(k, minority, p, "observed")
    assert error > 0.01, f"largest relative error of Eq. 9 with the observed marginal: {error:.1%}"


def test_targets_are_sliced_batch_by_batch(f, ybar):
    targets = Targets.of(ybar, K, torch.rand(N, dtype=torch.float64))
    rows = torch.tensor([3, 7, 1])
    part = targets[rows]
    assert torch.equal(part.index, ybar[rows])
    torch.testing.assert_close(
        F.log(f[rows], part), F.log(f[rows], Targets.of(ybar[rows], K, targets.sample_weight[rows]))
    )
