"""The benchmarks of the default: who gets which labels, parts of the work, and summaries of made-up runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from wcll import ComplementaryClassifier
from wcll.datasets import load_dataset
from wcll.experiments.task import make_task
from wcll.labels.transition import uniform_transition
from wcll.losses import LOSSES, Targets

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "worlds.py").exists(), reason="the benchmarks are not beside the package")

SEED = 3


@pytest.fixture(autouse=True)
def beside(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def runs():
    import default_runs

    return default_runs


@pytest.fixture
def worlds(monkeypatch):
    import worlds

    monkeypatch.setattr(worlds, "EPOCHS", 2)
    monkeypatch.setattr(worlds, "STEPS", 2)
    worlds.suite.cache_clear()
    yield worlds
    worlds.suite.cache_clear()


@pytest.fixture
def paper(monkeypatch):
    pytest.importorskip("pandas")
    import annotators
    import auto

    monkeypatch.setattr(annotators, "DRAWS", 20)
    return auto


def world(worlds, title):
    return next(one for one in worlds.suite().columns if one.title == title)


# Settings


def test_there_are_24_worlds_and_some_beside_them(worlds):
    titles = [one.title for one in worlds.worlds()]
    beside = [one.title for one in worlds.worlds([worlds.FURTHER])]
    assert len(titles) == 24
    assert len({*titles, *beside}) == 30
    assert [one.title for one in worlds.suite().columns if one.title not in beside] == titles
    settings = [{name: value for name, value in one.settings.items() if name != "epochs"} for one in worlds.worlds()]
    assert all(settings.count(one) == 1 for one in settings)


@pytest.mark.parametrize("name", ["biased", "popular"])
def test_annotators_with_habits_are_always_the_same(worlds, name):
    first, second = getattr(worlds, name)(), getattr(worlds, name)()
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first.sum(axis=1), 1)
    assert not first.diagonal().any()
    assert first.max() > 5 * first[first > 0].min()


def test_popular_classes_are_so_whatever_the_true_one_is(worlds):
    others = worlds.popular()[[0, *range(3, 10)]]
    odds = others[:, 1] / others[:, 2]
    np.testing.assert_allclose(odds, odds[0])


def test_epochs_are_sixty_or_fifteen_hundred_steps(worlds, monkeypatch):
    monkeypatch.undo()
    assert worlds.epochs_of(20_000) == 60
    assert worlds.epochs_of(1150) == 375  # four steps an epoch


@pytest.mark.parametrize(
    "title",
    ["digits, uniform, balanced", "digits, inverse-size, balanced", "digits, biased, p = 5, classes 0, 2, 4, 6, 8"],
)
def test_everyone_gets_the_same_images_and_labels(worlds, title):
    column, suite, dataset = world(worlds, title), worlds.suite(), load_dataset("digits")
    drawn = worlds.draw_of(column, SEED)
    for row in suite.rows[:: len(worlds.METHODS) - 1]:
        for trial in suite.candidates(column, row, SEED):
            task = make_task(trial, dataset)
            np.testing.assert_array_equal(torch.cat([task.train.x, task.valid.x]).flatten(1) / 16, drawn.x)
            np.testing.assert_array_equal(np.concatenate([task.train.ybar, task.valid.ybar]), drawn.ybar)
            np.testing.assert_array_equal(task.test.y, drawn.y_test)
    assert np.bincount(drawn.y_test).tolist() == [45] * 10


def test_true_labels_do_not_reach_the_default(worlds, runs, monkeypatch):
    class Fake:
        def __init__(self, **told):
            assert told == {"random_state": SEED, "device": "cpu"}

        def fit(self, x, ybar):
            seen.append((x, ybar))
            return self

        def predict(self, x):
            return np.zeros(len(x), dtype=int)

    seen = []
    monkeypatch.setattr(runs, "ComplementaryClassifier", Fake)
    drawn = worlds.draw_of(world(worlds, "digits, uniform, p = 5, class 0"), SEED)
    line = runs.run_default(drawn, SEED)
    ((x, ybar),) = seen
    assert x is drawn.x
    assert ybar is drawn.ybar
    assert line["accuracy"] == pytest.approx(10)
    assert line["accuracy_as_trained"] == pytest.approx(100 * 1 / 46)  # class 0 has a fifth of the images


# Parts of the work


@pytest.mark.parametrize("of", [1, 7, 16, 200])
def test_parts_are_a_partition(worlds, of):
    asked = worlds.columns(["digits", "mnist"], beside=False)
    parts = [worlds.work(asked, range(5), f"{i + 1}/{of}") for i in range(of)]
    found = [(column.title, seed) for part in parts for column, seed in part]
    assert len(found) == len(set(found)) == 24 * 5
    dear = [sum(column.settings["dataset"] == "mnist" for column, _ in part) for part in parts]
    assert max(dear) - min(dear) <= 1


def test_worlds_that_are_asked_for(worlds):
    assert len(worlds.columns(["digits"], beside=False)) == 12
    assert len(worlds.columns(["digits", "mnist"], beside=True)) == 30


@pytest.mark.parametrize("part", ["0/4", "5/4"])
def test_parts_that_there_are_not(runs, part):
    with pytest.raises(SystemExit, match="from 1/4 to 4/4"):
        runs.part_of([1, 2], part)


def test_what_a_file_has_is_not_written_again(runs, tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    lines = [{"part": "p", "setting": "s", "seed": i, "method": "m", "accuracy": 1.0} for i in (0, 1, 1)]
    runs.append(path, runs.new(lines[:1], path))
    runs.append(path, runs.new(lines, path))
    assert runs.read([path, tmp_path / "none.jsonl"]) == lines[:2]


# Runs


def test_constant_choices_are_what_the_classifier_does_with_them(worlds):
    column = world(worlds, "digits, biased, p = 5, class 0")
    drawn = worlds.draw_of(column, SEED)
    rows = [row for row in worlds.suite().rows if row.settings["model"] == "linear"]
    found = worlds.last_epochs(drawn, column, rows, SEED, "cpu")
    assert len(found) == len(rows) * len(worlds.CONSTANT)
    options = {"model": "linear", "max_epochs": 2, "weight_decay": worlds.DECAY, "random_state": SEED, "device": "cpu"}
    for name, told in worlds.METHODS.items():
        i = [row.title for row in rows].index(f"{name}, linear")
        for j, rate in enumerate(worlds.CONSTANT):
            model = ComplementaryClassifier(told["loss"], transition=told.get("assume"), lr=rate, **options)
            right = model.fit(drawn.x, drawn.ybar).predict(drawn.x_test) == drawn.y_test
            assert found[2 * i + j] == pytest.approx(100 * right.mean(), abs=0.5), name  # an image or two of rounding


def test_log_is_nine_times_forward_correction_told_uniform_labels():
    logits, ybar = torch.randn(1, 30, 10, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 10
    targets, q = Targets.of(ybar, 10), torch.tensor(uniform_transition(10), dtype=torch.float32)
    log, forward = LOSSES["log"].function(logits, targets), LOSSES["forward"].function(logits, targets, transition=q)
    torch.testing.assert_close(forward - log / 9, torch.full((1,), float(np.log(9))))


def test_choices_without_true_labels(worlds, tmp_path, monkeypatch):
    small = replace(worlds.suite(), rows=worlds.suite().rows[:2])
    monkeypatch.setattr(worlds, "suite", lambda: small)
    columns = [world(worlds, "digits, uniform, p = 5, classes 0, 2, 4, 6, 8")]
    lines = list(worlds.of_chosen(columns, [SEED], tmp_path / "S.sqlite", device="cpu"))
    assert [line["method"] for line in lines] == ["wcll, linear, chosen", "wcll, Eq. 9, linear, chosen"]
    assert all(0 < line["accuracy"] < 100 and line["seed"] == SEED for line in lines)
    monkeypatch.undo()


# Summaries


def made_up(part, setting, method, values, **more):
    return [
        {"part": part, "setting": setting, "seed": seed, "method": method, "accuracy": value, **more}
        for seed, value in enumerate(values)
    ]


STEADY = np.array([0.0, 0.1, -0.1, 0.2, -0.2])


def test_the_summary_of_worlds(worlds):
    titles = ["first", "second", "third"]
    lines = []
    for title, auto in zip(titles, (80, 71, 50), strict=True):
        lines += made_up("worlds", title, "auto", auto + STEADY)
        lines += made_up("worlds", title, "log, mlp, 0.002", 75 + STEADY[::-1])
        lines += made_up("worlds", title, "wcll, mlp, chosen", 60 + STEADY[::-1])
        lines += made_up("worlds", title, "wcll, linear, chosen", 40 + STEADY)
    found = list(worlds.summary(lines, [*titles, "not yet run"]))
    assert "best 75.0 (log, mlp, 0.002): +5.0" in found[0]
    assert ["NOT WITHIN" in line for line in found[:3]] == [False, True, True]
    assert "wcll, mlp, chosen: +20.0, p = " in found[0]
    assert found[3] == "significantly below WCLL (Holm): 1 of 3"
    assert found[4] == "auto: within in 1 of 3; constant choices as often: log, mlp, 0.002"
    assert [line.split()[0] for line in found[6:8]] == ["log,", "auto"]
    assert "3 of 3  75.0  +0.0" in found[6]
    assert "1 of 3  67.0  -25.0" in found[7]


def test_a_wide_spread_is_near_enough(worlds):
    best = dict(enumerate(80 + STEADY))
    assert not worlds.within(dict(enumerate(76 + STEADY)), best)
    assert worlds.within(dict(enumerate(76 + 50 * STEADY)), best)
    assert worlds.within({0: 77.5}, {0: 80.0})


def test_a_summary_of_nothing(worlds):
    assert list(worlds.summary([], ["first"])) == ["0 of 1 worlds have been run"]


def test_coverage(runs):
    told = {"verdict": "ok", "accuracy_as_trained": 70.0}
    lines = made_up("worlds", "a", "auto", [90.0, 90.0], estimate=[72.0, 65.0, 79.0], **told)
    lines += made_up(
        "worlds", "b", "auto", [90.0], estimate=[90.0, 80.0, 100.0], **{**told, "verdict": "too few labels"}
    )
    lines += made_up("worlds", "c", "auto", [90.0])
    found = list(runs.coverage(lines))[2:]
    assert [line.split()[0] for line in found] == ["all", "ok", "too"]
    assert "2 runs: 100 % (0 %), half-width 7.0 points, on average +2.0 off" in found[1]
    assert "1 runs: 0 % (100 %), half-width 10.0 points, on average +20.0 off" in found[2]
    assert not list(runs.coverage([]))


def test_the_share_of_the_gap_that_is_closed(paper):
    lines = []
    for title in paper.settings():
        lines += made_up("paper", title, "auto", 88 + STEADY, best=70.0, seconds=1.0)
        lines += made_up("rivals", title, "wcll", 70 + STEADY)
        lines += made_up("rivals", title, "wcll, Algorithm 1", 72 + STEADY)
        lines += made_up("rivals", title, "ordinary labels", 92 + STEADY)
    found = list(paper.summary(lines))
    assert len(found) == 1 + 12 + 3 + 1
    assert "88.0 ± 0.2 (n=5)  best published 72.3: +15.7" not in found[1]  # what the lines say counts
    assert (
        "best published 70.0: +18.0, least +17.8; wcll, Algorithm 1 72.0, ordinary labels 92.0: 80 % [80, 80]"
        in found[1]
    )
    assert found[-2] == "table2 and table3: 80 % [80, 80] of the gap closed"


def test_rivals_are_both_readings_and_the_limit(paper):
    suites = [paper.rivals(name) for name in paper.SUITES]
    assert {tuple(row.title for row in suite.rows) for suite in suites} == {
        ("wcll", "wcll, Algorithm 1", "ordinary labels")
    }


# Ingredients


@pytest.fixture
def ingredients(worlds):
    import ingredients

    return ingredients


def test_ingredients_are_taken_from_worlds_of_the_digits(ingredients, worlds):
    titles = [one.title for one in ingredients.settings()]
    assert len(titles) == 6
    assert all(title.startswith("digits, ") for title in titles)
    assert not set(ingredients.SEEDS) & set(worlds.SEEDS)
    options = set(ComplementaryClassifier().get_params())
    assert all(set(told) <= options for told in ingredients.VARIANTS.values())


def test_every_variant_is_fitted_to_the_same_draw(ingredients):
    asked, names = ingredients.settings()[-1:], ["linear", "Q: uniform", "no weight decay"]
    done = {(ingredients.PART, asked[0].title, SEED, "Q: uniform")}
    lines = list(ingredients.runs(asked, [SEED], names, done, budget=20))
    assert [line["method"] for line in lines] == ["linear", "no weight decay"]
    assert [line["told"] for line in lines] == [
        {"model": "linear", "budget": 20},
        {"model": "linear", "weight_decay": 0.0, "budget": 20},
    ]
    assert {line["chosen"]["model"] for line in lines} == {"linear"}
    assert all(0 < line["accuracy"] < 100 for line in lines)


def test_the_summary_of_ingredients(ingredients):
    lines = []
    for title, linear in (("a", 80), ("b", 60)):
        lines += made_up("ingredients", title, "linear", linear + STEADY, seconds=1.0)
        lines += made_up("ingredients", title, "Q: uniform", linear - 4 + STEADY, seconds=2.0)
    lines += made_up("ingredients", "b", "mlp", [61.0], seconds=3.0)
    found = list(ingredients.summary(lines))
    assert found[0].startswith("the default, linear: 70.0 % over 10 draws of 2 worlds")
    assert found[1].split() == ["Q:", "uniform", "-4.0", "±", "0.0", "(10", "draws,", "2", "s", "a", "fit)"]
    assert [line.split()[:2] for line in found[2:4]] == [["a", "-4.0"], ["b", "-4.0"]]
    assert "+1.0  (1 draws, 3 s a fit)" in found[4]
    assert len(found) == 6


# Adversarial cases


def test_adversarial_cases_go_on_where_they_stopped(worlds, tmp_path, monkeypatch, capsys):
    import adversarial

    small = replace(adversarial.CASES["unscaled, linear"], options={"model": "linear", "budget": 20})
    monkeypatch.setitem(adversarial.CASES, "unscaled, linear", small)
    path = tmp_path / "runs.jsonl"

    def run(*options):
        asked = ["--out", str(path), "--cases", "unscaled, linear", *options]
        monkeypatch.setattr("sys.argv", ["adversarial.py", *asked])
        adversarial.main()
        return worlds.read([path]), capsys.readouterr().out.splitlines()

    one = run("--draws", "1", "--only", "plain")[0]
    assert len({line["method"] for line in one}) == len(one) == 8  # raw and standardised features
    lines, _ = run("--draws", "1", "--label", "before")
    assert lines[:-1] == one
    assert lines[-1]["method"] == "before"
    again, table = run("--draws", "0")
    assert again == lines
    assert all(line["purity"] > 0.8 and line["seconds"] > 0 for line in lines)
    assert all(0 <= line["min_recall"] <= line["balanced_accuracy"] < 100 for line in lines)
    assert [row.split("(")[0].strip() for row in table[1:]] == ["unscaled, linear", "unscaled, linear, standardised"]
    for row, plain in zip(table[1:], (one[:4], one[4:]), strict=True):
        best = max(line["accuracy"] for line in plain)
        own = lines[-1]["accuracy"]
        assert row.split("|")[1].split() == [f"{own:.1f}", f"{best:.1f}", f"{own - best:+.1f}"]


def test_adversarial_labels_are_as_the_cases_say(worlds):
    import adversarial

    drawn = {name: adversarial.CASES[name].draw(SEED) for name in ("never named", "copies", "purity 0.5, biased")}
    assert 0 not in drawn["never named"][0].ybar
    rows = np.column_stack([drawn["copies"][0].x, drawn["copies"][0].ybar]).reshape(-1, 5, 65)
    assert (rows == rows[:, :1]).all()
    assert drawn["purity 0.5, biased"][1] == pytest.approx(0.5, abs=0.03)


def test_times_are_of_interleaved_repeats():
    import default_times

    order = []
    times, found = default_times.measure(
        {"one": lambda: order.append("one"), "two": lambda: order.append("two") or 2}, 2
    )
    assert list(times) == ["one", "two"]
    assert order == ["one", "two"] * 2
    assert found == {"one": None, "two": 2}


def test_the_variants_of_digits_are_fitted(capsys, monkeypatch):
    import default_times

    monkeypatch.setattr(default_times, "STEPS", 4)
    work = default_times.variants(default_times.digits())
    assert len(work) == 9
    named = {name: one for name, one in work.items() if "default" not in name}
    times, found = default_times.measure(named, 1)
    assert min(times.values()) > 0
    assert found["fit, mlp"].n_iter_ == 1


def test_two_versions_of_the_default_are_compared_on_the_draws_that_both_have(worlds):
    titles = [one.title for one in worlds.worlds() if one.title.startswith("digits")][:2]
    lines = [
        {"setting": title, "seed": seed, "method": worlds.AUTO, "accuracy": 50.0 + 10 * seed + 5 * new}
        for new in (0, 1)
        for title in titles
        for seed in range(3)
    ]
    earlier, later = lines[:6], lines[6:]
    said = list(worlds.comparison(later[:-1], earlier[1:]))
    assert len(said) == 4
    assert {line.split("  ")[-1].strip() for line in said[:2]} == {
        "70.0, earlier 65.0: +5.0, s.e. 0.0 (n=2)",
        "60.0, earlier 55.0: +5.0, s.e. 0.0 (n=2)",
    }
    assert said[-1] == "all: +5.0 points, s.e. 0.0 over 4 draws, ahead in 4"
