"""Orthogonal samples: their deviation by slow sums, and what the bounds say of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import wcll
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.paper.bound_study import Counterexample, OrthogonalWorld, literal_deviation, measure
from wcll.theory import Problem, corrected_lemma, lemma1, linear_complexity_of, norm_seen_later, theorem1

RESULTS = Path(wcll.__file__).parents[2] / "results" / "bounds-counterexample.json"
SMALL = OrthogonalWorld(classes=4, n=30, norm=2.0, each=5)  # more samples than directions: many come again


def loss(outputs, label):
    """Eq. 9 with weights 1/K, by loops."""
    k = len(outputs)
    total = math.log(sum(math.exp(one) for one in outputs))
    return (sum(total - one for one in outputs) - (k - 1) * (total - outputs[label])) / k


def risks(world, weights, samples, labels):
    """Empirical and true risk of weights (classes, directions): sums over samples, and over all pairs."""
    empirical = sum(loss(weights[:, d], z) for d, z in zip(samples, labels, strict=True)) / len(samples)
    pairs = [(d, z) for d in range(world.directions) for z in range(world.classes) if z != d % world.classes]
    return empirical, sum(loss(weights[:, d], z) for d, z in pairs) / len(pairs)


def weights_of(world, samples, labels):
    """The model of the description, with all of its weights."""
    c = np.zeros((world.classes, world.directions))
    for d, z in zip(samples, labels, strict=True):
        c[:, d] -= 1
        c[z, d] += world.classes - 1
    return world.norm * c / np.linalg.norm(c, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", [SMALL, OrthogonalWorld(classes=3, n=7, norm=5.0, each=40)])
def test_the_deviation_is_that_of_a_model_in_the_class(world, seed):
    samples, labels = world.draw(seed)
    weights = weights_of(world, samples, labels)
    assert np.linalg.norm(weights, axis=1) == pytest.approx(world.norm)
    empirical, true = risks(world, weights, samples, labels)
    low, high = world.largest_deviation(samples, labels)
    assert low == pytest.approx(abs(empirical - true), abs=1e-12)
    assert low < high


@pytest.mark.parametrize("seed", range(3))
def test_no_model_deviates_by_more(seed):
    """Climbing from many models, both ways."""
    samples, labels = SMALL.draw(seed)
    drawn = np.zeros((SMALL.directions, SMALL.classes))
    np.add.at(drawn, (samples, labels), 1 / SMALL.n)
    joint = 1 - np.eye(SMALL.classes)[np.arange(SMALL.directions) % SMALL.classes]
    difference = torch.tensor(drawn - joint / joint.sum())
    rng = np.random.default_rng(seed)
    weights = torch.tensor(rng.normal(size=(40, SMALL.classes, SMALL.directions)), requires_grad=True)
    signs, best = torch.tensor([1.0, -1.0]).repeat(20), 0.0
    for step in range(200):
        within = SMALL.norm * weights / weights.norm(dim=-1, keepdim=True)
        losses = -within.mT.log_softmax(-1)
        tables = (losses.sum(-1, keepdim=True) - (SMALL.classes - 1) * losses) / SMALL.classes
        values = signs * (tables * difference).sum((-2, -1))
        best = max(best, float(values.detach().max()))
        (gradient,) = torch.autograd.grad(values.sum(), weights)
        with torch.no_grad():
            weights += 3 * 0.98**step * gradient / gradient.norm(dim=-1, keepdim=True)
    low, high = SMALL.largest_deviation(samples, labels)
    assert 0.95 * low < best <= high


def test_the_closed_form_for_samples_that_differ():
    """Label counts are all that matters then."""
    world = OrthogonalWorld(classes=5, n=200, norm=3.0)
    samples, labels = world.draw(0)
    assert len(set(samples.tolist())) == 200
    counts = np.bincount(labels, minlength=5)
    lengths = np.sqrt(9.0 * counts + 200 - counts)
    total = 3 * lengths.sum()
    for k in range(5):
        others = sum(math.exp(-3 / lengths[j]) for j in range(5) if j != k)
        total += counts[k] * (math.log(math.exp(9 / lengths[k]) + others) - math.log(5))
    assert world.largest_deviation(samples, labels)[0] == pytest.approx(total / 1000, abs=1e-6)


def test_draws():
    world = OrthogonalWorld(classes=4, n=40_000, each=5)
    samples, labels = world.draw(0)
    assert set(samples.tolist()) == set(range(20))
    assert not (samples % 4 == labels).any()  # no label names the true class
    shares = np.bincount(4 * (samples % 4) + labels, minlength=16).reshape(4, 4) / 40_000
    assert shares == pytest.approx((1 - np.eye(4)) / 12, abs=0.008)
    assert all(np.array_equal(a, b) for a, b in zip(world.draw(0), (samples, labels), strict=True))


def test_what_lemma_1_asks_for():
    """Losses, complexity and shares are within what its constants say."""
    problem = SMALL.problem()
    samples, labels = SMALL.draw(0)
    weights = weights_of(SMALL, samples, labels)
    losses = -torch.tensor(weights.T).log_softmax(-1)
    assert 0 <= float(losses.min()) <= float(losses.max()) <= problem.largest_loss
    value, _ = linear_complexity_of(np.eye(SMALL.directions)[samples], norm=SMALL.norm, draws=500, random_state=0)
    assert value <= problem.complexity
    assert (problem.pi_max, problem.omega_max) == (pytest.approx(1 / 4), pytest.approx(1 / 4))


def test_the_printed_bound_is_violated_and_the_corrected_one_holds():
    found = measure(OrthogonalWorld(n=2000), range(3))
    assert found.violated == found.held == 3
    assert min(found.at_least) > 1.2 * found.printed
    assert max(found.at_most) < 1.1 * min(found.at_least)
    root = math.sqrt(2000)
    limit = math.log(1 + 399 * math.exp(6))
    by_hand = (1 + 399 / 400**2) * (2 * math.sqrt(2) * 3 + limit * math.sqrt(2 * math.log(80))) / root
    assert found.printed == pytest.approx(by_hand)
    assert found.mean == pytest.approx(3 * math.sqrt(400) / root, rel=0.05)
    assert found.excess_at_most < theorem1(OrthogonalWorld(n=2000).problem()).value  # which is not refuted
    assert Counterexample.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_few_classes_are_no_counterexample():
    found = measure(OrthogonalWorld(classes=10, n=2000), range(3))
    assert (found.violated, found.held) == (0, 3)


def test_no_model_is_much_better_than_another():
    rng = np.random.default_rng(0)
    for seed in range(5):
        weights = rng.normal(size=(SMALL.classes, SMALL.directions)) * rng.choice([1, 100], SMALL.directions)
        weights *= SMALL.norm / np.linalg.norm(weights, axis=1, keepdims=True)
        _, true = risks(SMALL, weights, *SMALL.draw(seed))
        assert abs(true - math.log(4) / 4) <= SMALL.excess_at_most / 2


@pytest.mark.parametrize("k", [2, 3, 10])
def test_to_the_letter(k):
    """Eq. 12 of outputs of 0, by the library's reading of it, and Eq. 11 by loops."""
    shares, labels = np.full(k, 1 / k), torch.arange(5 * k) % k
    eq12 = float(wcll.functional.wcll(torch.zeros(5 * k, k).double(), labels, weight=shares, pi=shares, reading="eq12"))
    eq11 = sum(shares[j] * (-(k - 1) * shares[j] + shares.sum()) * math.log(k) for j in range(k))
    assert literal_deviation(k) == pytest.approx(eq11 - eq12)


def test_to_the_letter_the_bound_fails():
    bound = lemma1(Problem.linear(np.ones(10), 19_000, norm=1.0, radius=1.0))
    assert bound.value < literal_deviation(10)


@pytest.mark.parametrize(
    ("norm", "expected"), [(0.3, (1, 0.04)), (1.0, (1, 0.04)), (1.1, (2, 0.02)), (2.0, (2, 0.02)), (11.1, (16, 0.0025))]
)
def test_norms_that_are_seen_later(norm, expected):
    assert norm_seen_later(norm, 0.08) == pytest.approx(expected)


def test_norms_that_are_seen_later_share_delta():
    shares = [norm_seen_later(2.0**j, 0.05)[1] for j in range(40)]
    assert sum(shares) == pytest.approx(0.05)
    with pytest.raises(InputError, match="norm: expected a number above 0"):
        norm_seen_later(0.0, 0.05)


@pytest.mark.skipif(not RESULTS.exists(), reason="the result files are not beside the package")
def test_the_stored_counterexample():
    plain = json.loads(RESULTS.read_text())["counterexample"]
    found, world = Counterexample.from_dict(plain), OrthogonalWorld()
    assert found.to_dict() == {**plain, **{name: tuple(plain[name]) for name in ("seeds", "at_least", "at_most")}}
    assert (found.classes, found.n, found.norm, found.seeds) == (world.classes, world.n, world.norm, tuple(range(20)))
    assert (found.violated, found.held) == (20, 20)
    assert found.printed == pytest.approx(lemma1(world.problem()).value)
    assert found.corrected == pytest.approx(corrected_lemma(world.problem()).value)
    assert world.largest_deviation(*world.draw(7)) == pytest.approx((found.at_least[7], found.at_most[7]), rel=1e-9)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.paper.bound_study.OrthogonalWorld", lambda: OrthogonalWorld(n=500))
    out = tmp_path / "c.json"
    assert run(["bound", "counterexample", "--draws", "2", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "violated in 2 of 2 draws" in shown
    assert "holds in 2 of 2 draws" in shown
    stored = json.loads(out.read_text())
    assert stored["made"]["command"] == "wcll bound counterexample --draws 2"
    assert stored["counterexample"]["violated"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["counterexample", "--draws", "0"], "--draws"),
        (["counterexample", "--out", "/no/such/x.json"], "--out: expected a folder that can be written"),
        (["--delta", "0.05", "counterexample"], "--delta: expected no command beside it, got counterexample"),
    ],
)
def test_bad_options(arguments, message, capsys):
    assert run(["bound", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
