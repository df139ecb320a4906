"""The bounds: constants, terms, complexities, and whether they hold where everything is known."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wcll
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.experiments.task import make_task
from wcll.labels import imbalance_counts
from wcll.paper import bound_study as sim
from wcll.report.render import loglog_figure
from wcll.theory import (
    LOSS_KINDS,
    Problem,
    corrected_lemma,
    corrected_theorem,
    cross_entropy_limit,
    finite_class,
    labels_needed,
    lemma1,
    linear_complexity,
    linear_complexity_of,
    mlp_complexity,
    theorem1,
)

ROOT = Path(wcll.__file__).parents[2]
RESULTS = ROOT / "results" / "bounds.json"


@pytest.fixture
def rng():
    """Every test draws the same numbers, whichever ran before it."""
    return np.random.default_rng(0)


def table2(n=19_000, **changes):
    sizes = imbalance_counts(n_majority=2000, n_classes=10, minority=[0], p=2)
    return Problem.linear(sizes, n, **{"norm": 1.0, "radius": 1.0, **changes})


# --- the constants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_lambda_of_cross_entropy(k, rng):
    """No gradient of the complementary loss is longer, and some nearly are."""
    problem = Problem.linear(np.ones(k), 10, norm=1, radius=1)
    logits = torch.tensor(rng.normal(size=(2000, k)) * rng.choice([0.1, 1, 5, 30], size=(2000, 1)), requires_grad=True)
    labels = torch.tensor(rng.integers(0, k, 2000))
    losses = -logits.log_softmax(-1)
    complementary = losses.sum(-1) - (k - 1) * losses.gather(-1, labels[:, None])[:, 0]
    (gradient,) = torch.autograd.grad(complementary.sum(), logits)
    longest = float(gradient.norm(dim=-1).max())
    assert longest <= problem.vector_lipschitz + 1e-12
    assert longest > 0.999 * problem.vector_lipschitz
    assert problem.vector_lipschitz == pytest.approx(math.sqrt(k * (k - 1)))
    assert problem.contraction == pytest.approx(min(math.sqrt(2 * k * (k - 1)), max(k - 2, 1) + math.sqrt(2)))


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_lambda_of_margin_and_lipschitz_losses(k):
    """Margin losses: coefficients -(K-2) and K-1 ones on different outputs; any others: the triangle inequality."""
    margin, any_other = (
        Problem.linear(np.ones(k), 10, norm=1, radius=1, loss=kind, lipschitz=3.0, largest_loss=1.0)
        for kind in ("margin", "lipschitz")
    )
    coefficients = np.ones(k)
    coefficients[0] -= k - 1
    assert margin.vector_lipschitz == pytest.approx(3 * np.linalg.norm(coefficients))
    assert margin.contraction == pytest.approx(min(3 * math.sqrt(2) * np.linalg.norm(coefficients), 3 * max(k - 2, 1)))
    assert any_other.vector_lipschitz == pytest.approx(3 * np.abs(coefficients).sum())
    assert any_other.contraction == pytest.approx(math.sqrt(2) * any_other.vector_lipschitz)


@pytest.mark.parametrize("k", [3, 4, 10])
def test_contraction_of_linear_losses(k, rng):
    """phi = identity, whose supremum has a closed form: kappa covers Eq. 9, the printed bracket does not from K = 4 on."""
    x = rng.normal(size=(200, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = rng.integers(0, k, 200)
    coefficients = np.ones((200, k))
    coefficients[np.arange(200), labels] -= k - 1
    signs = rng.choice([-1.0, 1.0], size=(2000, 200))
    one_output = np.linalg.norm(signs @ x, axis=1).mean() / 200
    of_losses = sum(np.linalg.norm((signs * coefficients[:, j]) @ x, axis=1).mean() for j in range(k)) / 200
    problem = Problem.linear(np.ones(k), 200, norm=1, radius=1, loss="margin", lipschitz=1.0, largest_loss=1.0)
    assert of_losses <= 1.02 * problem.contraction * k * one_output  # Monte Carlo
    printed = lemma1(problem).ingredients["pi_K (K-1) + K"] * one_output
    assert (of_losses > printed) == (k > 3)


@given(st.integers(2, 12), st.floats(0.01, 20), st.data())
def test_the_range_of_the_loss(k, p, data):
    """No weighted complementary loss of losses in [0, 2] is outside, and some are at its ends."""
    problem = Problem.linear([1, *[p] * (k - 1)], 10, norm=1, radius=1, loss="margin", lipschitz=1.0, largest_loss=2.0)
    omega = np.array([1, *[p] * (k - 1)]) / (1 + p * (k - 1))
    losses = np.array(data.draw(st.lists(st.floats(0, 2), min_size=k, max_size=k)))
    values = omega * (losses.sum() - (k - 1) * losses)
    high, low = omega.max() * (k - 1) * 2, -omega.max() * (k - 2) * 2
    assert ((low - 1e-9 <= values) & (values <= high + 1e-9)).all()
    assert problem.width == pytest.approx(high - low)


@pytest.mark.parametrize(("k", "reach"), [(2, 1.0), (4, 2.0), (10, 1.0), (10, 0.1), (10, 20.0)])
def test_the_range_of_cross_entropy(k, reach, rng):
    """Corners of the box of outputs, and random points in it, with every label's weight."""
    shares = np.array([1.0, *[3.0] * (k - 1)])
    problem = Problem.linear(shares, 10, norm=reach, radius=1.0)
    omega = shares / shares.sum()
    corners = np.array(np.meshgrid(*[[-reach, reach]] * k)).reshape(k, -1).T if k <= 10 else None
    outputs = np.concatenate([corners, rng.uniform(-reach, reach, size=(2000, k))])
    losses = np.logaddexp.reduce(outputs, axis=1)[:, None] - outputs
    values = omega * (losses.sum(axis=1, keepdims=True) - (k - 1) * losses)
    assert np.ptp(values) == pytest.approx(problem.width)
    assert problem.width <= omega.max() * (2 * k - 3) * problem.largest_loss + 1e-9


def test_the_largest_cross_entropy():
    assert cross_entropy_limit(10, 0.0) == pytest.approx(math.log(10))
    outputs = np.array([-3.0, *[3.0] * 9])
    assert cross_entropy_limit(10, 3.0) == pytest.approx(np.logaddexp.reduce(outputs) - outputs[0])


# --- the terms -------------------------------------------------------------------------------------------------------


def test_table_2_as_printed_by_hand():
    problem = table2()
    pi, omega = 2 / 11, 2 / 19  # Eq. 7: one part of 2 and nine of 1; Eq. 13: nine of 2 and one of 1
    assert (problem.pi_max, problem.omega_max) == (pytest.approx(pi), pytest.approx(omega))
    limit, rademacher, bracket = math.log(1 + 9 * math.e**2), 1 / math.sqrt(19_000), pi * 9 + 10
    found = lemma1(problem)
    assert found.terms["complexity"] == pytest.approx(2 * omega * math.sqrt(2) * bracket * rademacher)
    assert found.ingredients["I"] == pytest.approx(2 * omega * limit * bracket)
    assert found.terms["deviation"] == pytest.approx(2 * omega * limit * bracket * math.sqrt(math.log(80) / 38_000))
    assert found.confidence == 0.975
    assert found.value == pytest.approx(sum(found.terms.values()))


def test_table_2_corrected_by_hand():
    problem = table2(delta=0.1)
    omega, rademacher = 2 / 19, 1 / math.sqrt(19_000)
    high, low = 17 + math.log(math.e + 9 / math.e), -17 + math.log(1 / math.e + 9 * math.e)
    found = corrected_lemma(problem)
    assert found.terms["complexity"] == pytest.approx(2 * omega * (8 + math.sqrt(2)) * 10 * rademacher)
    assert found.terms["deviation"] == pytest.approx(omega * (high - low) * math.sqrt(math.log(20) / 38_000))
    assert found.confidence == 0.9


def test_networks_have_bounds_too():
    shares = [1, *[2] * 9]
    problem = Problem.network(shares, 19_000, norms=[3.0, 2.0], radius=0.5)
    assert problem.complexity == pytest.approx(mlp_complexity([3.0, 2.0], 0.5, 19_000))
    assert problem.reach == pytest.approx(3.0)
    assert corrected_lemma(problem).value > corrected_lemma(Problem.linear(shares, 19_000, norm=6.0, radius=0.5)).value


@pytest.mark.parametrize(("lemma", "theorem"), [(lemma1, theorem1), (corrected_lemma, corrected_theorem)])
def test_the_theorem_is_twice_the_lemma(lemma, theorem):
    problem = table2()
    assert theorem(problem).value == pytest.approx(2 * lemma(problem).value)
    # as the paper writes its second term: sqrt(2 I^2 log / N) = 2 sqrt(I^2 log / (2N))
    largest = lemma1(problem).ingredients["I"]
    assert theorem1(problem).terms["deviation"] == pytest.approx(math.sqrt(2 * largest**2 * math.log(80) / 19_000))


def test_every_term_falls_with_the_root_of_n():
    for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem):
        few, many = statement(table2()), statement(table2().at(100 * 19_000))
        assert {name: value / 10 for name, value in few.terms.items()} == pytest.approx(many.terms)
    assert table2().at(400).complexity == pytest.approx(table2(n=400).complexity)


def test_labels_needed():
    problem = table2()
    for statement in (lemma1, corrected_theorem):
        value = statement(problem).value
        n = labels_needed(value, problem.n, 0.1)
        assert statement(problem.at(n)).value <= 0.1 < statement(problem.at(n - 1)).value
    for gap, message in ((0.0, "gap: expected a number above 0"), (1e-300, "gap: expected one that at most 1e")):
        with pytest.raises(InputError, match=message):
            labels_needed(1.0, 10, gap)


def test_the_risk_of_zero_outputs():
    """Against the loss itself, on every pair of a class and a label."""
    problem = table2()
    sizes = imbalance_counts(n_majority=2000, n_classes=10, minority=[0], p=2)
    matrix = wcll.labels.transition.make_transition("inverse-size", sizes)
    joint = torch.tensor(sizes / sizes.sum())[:, None] * torch.tensor(matrix)
    weight = sizes / sizes.sum()  # Eq. 13
    labels = torch.arange(10).expand(10, -1)
    loss = wcll.functional.wcll(
        torch.zeros(10, 10, 10, dtype=torch.float64), labels, weight=weight, reading="eq9", reduction="none"
    )
    assert problem.scale == pytest.approx(float((joint * loss).sum()))


def test_verdicts():
    assert corrected_lemma(table2(n=10)).vacuous
    assert corrected_lemma(table2(n=10)).verdict.startswith("vacuous")
    assert corrected_lemma(table2(n=10_000)).verdict.startswith("of little use")
    assert replace(table2(), inverse_size=False).scale is None
    assert corrected_lemma(table2(n=10**7)).verdict == "informative"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: table2(norm=0.0), "norm: expected a number above 0"),
        (lambda: table2(delta=1.5), "delta: expected a probability between 0 and 1"),
        (lambda: table2(n=0), "n: expected a whole number from 1"),
        (lambda: table2(lipschitz=1.0), "lipschitz, largest_loss: expected none for cross-entropy"),
        (lambda: table2(loss="margin"), "lipschitz, largest_loss: expected both, for loss = 'margin'"),
        (lambda: table2(loss="hinge"), "loss: expected one of"),
        (lambda: Problem.linear([1.0], 10, norm=1, radius=1), "sizes: expected sizes of at least two classes, got 1"),
        (lambda: mlp_complexity([], 1.0, 10), "norms: expected one norm a layer, got none"),
        (lambda: linear_complexity_of(np.zeros(3), norm=1), "X: expected samples of shape"),
        (lambda: finite_class(table2(), 0), "members: expected a whole number from 1"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()
    assert set(LOSS_KINDS) == {"cross-entropy", "margin", "lipschitz"}


# --- complexities ----------------------------------------------------------------------------------------------------


def test_monte_carlo_is_below_the_closed_form_and_near_it(rng):
    x = rng.normal(size=(400, 5))
    value, error = linear_complexity_of(x, norm=2.0, draws=400, random_state=0)
    on_data = 2.0 * math.sqrt((x**2).sum()) / 400
    assert value - 3 * error <= on_data <= linear_complexity(2.0, float(np.linalg.norm(x, axis=1).max()), 400)
    assert value > 0.8 * on_data
    assert value == linear_complexity_of(x, norm=2.0, draws=400, random_state=0)[0]


def test_monte_carlo_against_all_signs(rng):
    x = rng.normal(size=(8, 3))
    signs = np.array([[1 if code >> i & 1 else -1 for i in range(8)] for code in range(256)])
    exact = 1.5 / 8 * np.linalg.norm(signs @ x, axis=1).mean()
    value, error = linear_complexity_of(x, norm=1.5, draws=4000, random_state=1)
    assert value == pytest.approx(exact, abs=4 * error)


def test_networks():
    one = mlp_complexity([2.0], radius=3.0, n=100)
    assert one == pytest.approx(0.6 * (math.sqrt(2 * math.log(2)) + 1))
    assert one > linear_complexity(2.0, 3.0, 100)
    assert mlp_complexity([2.0, 3.0], 1.0, 100) == pytest.approx(6 / 10 * (math.sqrt(4 * math.log(2)) + 1))


def test_a_network_never_beats_its_bound(rng):
    """Random and aligned two-layer networks on given samples: their correlation with signs stays below."""
    x = rng.normal(size=(50, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    best = []
    for _ in range(50):
        signs = rng.choice([-1, 1], 50)
        inner = rng.normal(size=(300, 6, 4))
        inner[0] = np.outer(np.ones(6), signs @ x)
        inner /= np.linalg.norm(inner, axis=(1, 2), keepdims=True)
        features = np.maximum(np.einsum("mhd,nd->mhn", inner, x), 0) @ signs
        best.append(np.linalg.norm(features, axis=1).max() / 50)
    assert np.mean(best) < mlp_complexity([1.0, 1.0], 1.0, 50)


# --- the simulation --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=sim.LABELS)
def world(request):
    return sim.World.draw(request.param)


def test_the_world(world):
    assert world.joint.sum() == pytest.approx(1)
    assert np.linalg.norm(world.x, axis=1).max() <= 1 + 1e-12
    assert np.linalg.norm(world.models(50), axis=-1).max() <= world.norm
    assert not world.joint[np.arange(len(world.y)), world.y].any()  # no label names the true class
    assert world.omega @ np.ones(world.classes) == pytest.approx(1)
    drawn = world.draws(1000, 3)
    assert drawn.sum(axis=(1, 2)) == pytest.approx([1, 1, 1])
    assert np.array_equal(drawn, world.draws(1000, 3))


def test_risks_are_those_of_the_librarys_loss(world):
    """Sums over points and labels, against wcll's Eq. 9 on every pair."""
    models = torch.as_tensor(world.models(5))
    points, labels = np.indices(world.joint.shape).reshape(2, -1)
    logits = (models @ torch.as_tensor(world.x).T).mT[:, points]
    loss = wcll.functional.wcll(
        logits, torch.as_tensor(labels).expand(5, -1), weight=world.omega, reading="eq9", reduction="none"
    )
    expected = loss @ torch.as_tensor(world.joint[points, labels])
    risk = sim.Risk(world, world.joint[None])
    torch.testing.assert_close(risk.value(models[None])[0], expected)
    torch.testing.assert_close(
        torch.as_tensor((sim._loss_tables(world, models.numpy()) * world.joint).sum((1, 2))), expected
    )
    leaf = models[None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(risk.value(leaf).sum(), leaf)
    torch.testing.assert_close(risk.gradient(models[None]), gradient)


def test_the_climb_finds_the_top(world, monkeypatch):
    drawn = world.draws(1000, 10)
    found = sim.largest_deviation(world, drawn)
    monkeypatch.setattr(sim, "STEPS", 200)
    more = sim.largest_deviation(world, drawn, starts=20, seed=1)
    assert (found >= 0.97 * more).all()
    assert found.mean() >= 0.995 * more.mean()
    assert (found >= sim.finite_deviation(world, drawn, world.models(2000, seed=2))).all()


def test_the_descent_finds_the_bottom(world, monkeypatch):
    drawn = world.draws(300, 4)
    trained = sim._descend(world, drawn)
    assert float(trained.norm(dim=-1).max()) <= world.norm + 1e-9
    risk = sim.Risk(world, drawn)
    least = risk.value(trained)[:, 0]
    others = torch.as_tensor(world.models(3000)).expand(4, -1, -1, -1)
    assert (risk.value(others).amin(-1) >= least).all()
    monkeypatch.setattr(sim, "DESCENT", 3 * sim.DESCENT)
    torch.testing.assert_close(sim.Risk(world, drawn).value(sim._descend(world, drawn))[:, 0], least, atol=1e-9, rtol=0)


@pytest.mark.parametrize("labels", sim.LABELS)
@pytest.mark.parametrize("kind", ["finite", "linear"])
def test_deviations_fall_with_the_root_of_n(labels, kind):
    trend = sim.simulate(labels, kind, draws=60, sizes=(100, 1000, 10_000, 100_000))
    assert trend.slope == pytest.approx(-0.5, abs=0.05)
    assert trend.slope_low < trend.slope < trend.slope_high
    for point in trend.points:
        assert point.held == 60
        assert point.median_ratio > 1
        if kind == "finite":
            assert point.corrected == finite_class(sim.World.draw(labels).problem(point.n), sim.MEMBERS).value
    assert sim.Trend.from_dict(json.loads(json.dumps(trend.to_dict()))) == trend


@pytest.mark.parametrize(
    ("kind", "printed", "corrected"),
    [
        ("finite", lemma1, lambda problem: finite_class(problem, sim.MEMBERS)),
        ("linear", lemma1, corrected_lemma),
        ("excess", theorem1, corrected_theorem),
    ],
)
def test_what_a_point_says(kind, printed, corrected):
    problem = sim.World.draw("uniform").problem(400)
    old, new = printed(problem).value, corrected(problem).value
    small, large = min(old, new), max(old, new)
    values = np.array([0.1 * small, 0.2 * small, 0.5 * (small + large), 2 * large])
    point = sim._point(problem, kind, values)
    assert (point.printed, point.corrected) == (old, new)
    assert {point.held, point.held_printed} == {2, 3}
    assert point.held == (3 if new > old else 2)
    assert point.median_ratio == pytest.approx(np.median(new / values))
    assert point.mean == pytest.approx(values.mean())
    assert point.low < point.high
    assert sim._point(problem.at(1), kind, values).vacuous
    assert not sim._point(problem.at(10**9), kind, values).vacuous


def test_the_slopes_interval_covers():
    """Of 60 simulated trends with a known slope about 95 % have it in their interval."""
    sizes, rng = (100, 1000, 10_000), np.random.default_rng(3)
    covered = 0
    for seed in range(60):
        values = np.array([n**-0.5 * rng.lognormal(0, 0.5, 200) for n in sizes])
        _, low, high = sim.log_slope(sizes, values, seed=seed)
        covered += low <= -0.5 <= high
    assert 51 <= covered <= 60
    assert covered < 60 or high - low < 0.1


def test_unknown_kinds():
    with pytest.raises(InputError, match=r"kind: expected one of .* did you mean 'linear'"):
        sim.simulate("uniform", "lineer")


def test_slope_of_a_known_trend():
    sizes = (10, 100, 1000)
    values = np.array([[n**-0.7] * 5 for n in sizes])
    assert sim.log_slope(sizes, values) == pytest.approx((-0.7, -0.7, -0.7))


@pytest.mark.skipif(not RESULTS.exists(), reason="the result files are not beside the package")
def test_the_stored_simulation():
    stored = json.loads(RESULTS.read_text())
    trends = [sim.Trend.from_dict(plain) for plain in stored["trends"]]
    assert {(trend.labels, trend.kind) for trend in trends} == {(a, b) for a in sim.LABELS for b in sim.KINDS}
    for trend in trends:
        assert trend.draws == 1000
        assert [point.n for point in trend.points] == list(sim.SIZES)
        assert all(point.held == 1000 for point in trend.points)
        if trend.kind != "excess":
            assert abs(trend.slope + 0.5) <= 0.05
        for point in trend.points:  # the bounds of today
            old, new = sim._statements(sim.World.draw(trend.labels).problem(point.n), trend.kind)
            assert (point.printed, point.corrected) == (pytest.approx(old.value), pytest.approx(new.value))
            assert point.vacuous == new.vacuous
    again = sim.simulate("inverse-size", "finite", draws=1000)
    (same,) = [trend for trend in trends if (trend.labels, trend.kind) == ("inverse-size", "finite")]
    assert again.points[0].mean == pytest.approx(same.points[0].mean, rel=1e-9)
    assert again.slope == pytest.approx(same.slope, abs=1e-9)


@pytest.mark.skipif(not RESULTS.exists(), reason="the result files are not beside the package")
def test_the_stored_bounds_of_table_2():
    for case in json.loads((RESULTS.parent / "bounds-table2.json").read_text()):
        problem = Problem(**{**case["problem"], "pi": tuple(case["problem"]["pi"])})
        found = [statement(problem) for statement in (lemma1, corrected_lemma, theorem1, corrected_theorem)]
        assert [one.value for one in found] == pytest.approx([one["value"] for one in case["bounds"]])
        assert [one.verdict for one in found] == [one["verdict"] for one in case["bounds"]]


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_every_term(capsys):
    assert run(["bound", "--gap", "0.1"]) == 0
    out = capsys.readouterr().out
    for name in ("omega_K", "pi_K", "L_phi", "L_f", "I", "Lambda", "sum_k R_N(F_k)", "delta"):
        assert f"{name} = " in out
    assert out.count("labels bring it down to 0.1") == 4
    assert re.search(r"sum +0\.135943 +informative", out)


def test_the_command_as_json(capsys):
    options = ["--classes", "5", "-p", "10", "--n", "4000", "--delta", "0.01"]
    assert run(["bound", "--json", "--gap", "1", *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    expected = corrected_lemma(Problem.linear([1, 10, 10, 10, 10], 4000, norm=1.0, radius=1.0, delta=0.01))
    assert found["bounds"][1]["value"] == pytest.approx(expected.value)
    assert found["bounds"][1]["labels_needed"] == labels_needed(expected.value, 4000, 1.0)


def test_the_bounds_of_a_suite(capsys):
    assert run(["bound", "--suite", "digits", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    suite = load_suite("digits")
    assert len(found) == len({column.settings["p"] for column in suite.columns})
    for case, column in zip(found, suite.columns, strict=True):
        row = next(row for row in suite.rows if row.settings["loss"] == "wcll")
        task = make_task(suite.candidates(column, row, 0)[0], load_dataset("digits"))
        radius = math.sqrt(float(((task.train.x.double() / 16) ** 2).flatten(1).sum(1).max()) + 1)
        problem = case["problem"]
        assert problem["n"] == len(task.train.x)
        assert f"samples of norm at most {radius:.2f}" in case["note"]
        assert "so seen after the data: no bound holds for it as it stands" in case["note"]
        norm = problem["reach"] / radius
        assert 0.1 < norm < 100
        assert problem["complexity"] == pytest.approx(norm * radius / math.sqrt(problem["n"]))
        assert case["bounds"][0]["scale"] is not None
    assert run(["bound", "--suite", "digits", "--norm", "2", "--json"]) == 0
    note = json.loads(capsys.readouterr().out)[0]["note"]
    assert "norm at most 2, as given" in note
    assert "seen after" not in note


OWN = """
[settings]
dataset = "digits"
imbalance = "eq6"
p = 3
minority = [0]
n_majority = 50
labels = "uniform"
lr = 1e-3
epochs = 2
[[rows]]
loss = "wcll"
[[columns]]
title = "one"
[[columns]]
title = "the same"
minority = [1]
[[columns]]
title = "fewer"
n_majority = 40
"""


def test_columns_of_a_suite_that_are_alike_are_shown_once(capsys, tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    assert run(["bound", "--suite", str(tmp_path / "own.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [case["title"] for case in found] == ["own, one", "own, fewer"]
    assert all(one["scale"] is None for case in found for one in case["bounds"])  # uniform labels


@pytest.mark.parametrize("change", [('loss = "wcll"', 'loss = "pc"'), ("lr = 1e-3", 'lr = 1e-3\nmodel = "mlp"')])
def test_suites_that_the_bounds_are_not_about(change, capsys, tmp_path):
    (tmp_path / "own.toml").write_text(OWN.replace(*change))
    assert run(["bound", "--suite", str(tmp_path / "own.toml")]) == 2
    assert "--suite: expected a row of loss 'wcll' with a linear model" in capsys.readouterr().err


def test_simulate(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sim, "DESCENT", 50)
    monkeypatch.setattr(sim, "SIZES", (100, 1000))
    out = tmp_path / "b.json"
    assert run(["bound", "simulate", "--draws", "5", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("log-log slope") == 6
    assert "5 of 5" in shown
    assert len(json.loads(out.read_text())["trends"]) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--norm", "0"], "norm: expected a number above 0"),
        (["--delta", "2"], "delta: expected a probability"),
        (["-p", "0"], "--p: expected a ratio from 1e-06 to 1e+06"),
        (["--norm", "nan"], "norm: expected a number above 0"),
        (["--n", str(10**30)], "--n"),
        (["--gap", "1e-300"], "gap: expected one that at most"),
        (["--gap", "nan"], "--gap: expected a number above 0"),
        (["--suite", "digits", "--n", "10"], "--n: expected none beside --suite"),
        (["--layer-norm", "2", "--norm", "1"], "--norm: expected none beside --layer-norm"),
        (["--json", "simulate"], "--json: expected no command beside it, got simulate"),
        (["--delta", "0.05", "simulate"], "--delta: expected no command beside it, got simulate"),
        (["-p", "2", "--suite", "digits"], "--p: expected none beside --suite"),
        (["--suite", "digit"], "did you mean 'digits'"),
        (["--gap", "0"], "gap: expected a number above 0"),
        (["simulate", "--out", "/no/such/x.json"], "--out: expected a folder that can be written"),
    ],
)
def test_bad_options(arguments, message, capsys):
    assert run(["bound", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


def test_figures_are_well_formed():
    lines = {"measured <mean>": [1.0, 0.1], "corrected": [20.0, 2.0]}
    svg = loglog_figure("A & B", [10, 1000], lines, ([0.5, 0.05], [2.0, 0.2]))
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == "A & B"
    assert svg.count("<polyline") == 2
    assert "measured &lt;mean&gt;" in svg
    for x, y in (([10], [1.0]), ([10, 100], [10.0, 10.0])):
        assert "nan" not in loglog_figure("edge", x, {"one": y})
