"""Beyond the paper: suites with its settings, and the page that their results make."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from wcll.cli.app import run
from wcll.experiments import load_suite
from wcll.paper.comparison import published, read_part
from wcll.paper.page import (
    AUTO,
    BEYOND,
    LIMIT,
    METHODS,
    OPTIONS,
    OURS,
    SETTINGS,
    Line,
    auto_table,
    best_published,
    beyond_figures,
    lines,
    mean_gain,
    methods_table,
    options_table,
    read_beyond,
    render_beyond,
)
from wcll.paper.protocols import IMAGES
from wcll.report.result_tables import Cell

RESULTS = Path(__file__).parents[2] / "results"
with_results = pytest.mark.skipif(not (RESULTS / "beyond").is_dir(), reason="results are not beside the package")


def test_every_printed_setting_of_images_is_there():
    printed = {(one.dataset, one.p, one.minority) for one in published() if one.dataset != "mnist"}
    found = set()
    for name in SETTINGS:
        suite = load_suite(name)
        assert [row.title for row in suite.rows] == [OURS, LIMIT]
        for column in suite.columns:
            best = best_published(suite.candidates(column, suite.rows[0], 0)[0])
            found.add((best.dataset, best.p, best.minority))
    assert found == printed


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_ours_is_told_no_truth(name):
    suite = load_suite(name)
    for trial in suite.all_trials([0]):
        if trial.loss == "forward":
            assert trial.assume == "popularity"
            assert not trial.sees_truth
            assert trial.recipe.optimiser == trial.optimiser


def test_options_are_changed_one_at_a_time():
    suite = load_suite(OPTIONS)
    ours, *others = (suite.candidates(suite.columns[0], row, 0)[0] for row in suite.rows)
    for trial in others[:-2]:  # the last two are the paper's training, and the limit
        before, after = ours.config(), trial.config()
        differ = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        beside = {"weight_decay", "optimiser"} if trial.optimiser != "adamw" else {"balance"}
        assert len(differ - beside) == 1, differ


@with_results
def test_the_page_has_every_setting_that_was_run():
    found = read_beyond(RESULTS / "beyond")
    paths = {name: RESULTS / "paper" / f"{name}.json" for name in IMAGES}
    reproduced = {name: read_part(path, load_suite(name), partial=True).begun for name, path in paths.items()}
    page = render_beyond(found, reproduced)
    for name in SETTINGS:
        for line in lines(found[name], reproduced) if name in found else ():
            assert f"| {line.setting} | {line.printed.text()} (" in page
            assert f"{line.gain:+.1f}" in page
    for name in BEYOND:
        assert (f"`{name}`" in page) == (name not in found)
    assert "Every setting of the first 3 tables was run" in page
    assert "## CIFAR-10, first five classes" in page
    assert page.count("(not the official file)") >= page.count("## ") - 1  # every table names its data
    assert all(text.startswith("<svg") for text in beyond_figures(found).values())


@with_results
def test_strong_training_is_compared_with_plain_training_at_the_last_epoch_of_both():
    found = read_beyond(RESULTS / "beyond")
    paths = {name: RESULTS / "paper" / f"{name}.json" for name in IMAGES}
    reproduced = {name: read_part(path, load_suite(name), partial=True).begun for name, path in paths.items()}
    page = render_beyond(found, reproduced)
    column, method = "p = 5, class 0", "forward, Q from counts"
    plain = reproduced["table2-cifar10"].rates[5e-5].cell(method, column, "accuracy")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {column} |"))
    assert row.split(" | ")[3] == plain.text()
    gains = [100 * (line.ours.mean - line.plain_last.mean) for line in lines(found[SETTINGS[0]], reproduced)]
    assert f"{min(gains):+.1f} to {max(gains):+.1f} from plain training at the last epoch of both" in page


@with_results
def test_options_are_compared_trial_by_trial():
    part = read_beyond(RESULTS / "beyond")[OPTIONS]
    rows = {row[0]: row[1:] for row in options_table(part)["rows"]}
    (column,) = part.columns
    ours, other = (part.cell("last epoch", name, column).values for name in (OURS, "without consistency"))
    changes = [100 * (other[seed] - ours[seed]) for seed in sorted(ours)]
    assert len(changes) >= 3
    error = statistics.stdev(changes) / len(changes) ** 0.5
    assert rows["without consistency"][1] == f"{statistics.fmean(changes):+.1f} ± {error:.1f}"
    assert rows[OURS][1] == ""


@with_results
def test_methods_stand_beside_what_the_papers_training_makes_of_them():
    found = read_beyond(RESULTS / "beyond")
    paths = {name: RESULTS / "paper" / f"{name}.json" for name in IMAGES}
    reproduced = {name: read_part(path, load_suite(name), partial=True).begun for name, path in paths.items()}
    table = methods_table(found[METHODS], found[SETTINGS[0]], reproduced)
    rows = {row[0]: row[1:] for row in table["rows"]}
    column = found[METHODS].columns[0]
    assert table["head"][1:3] == [f"{column}, plain", f"{column}, strong"]
    plain = reproduced["table4-cifar10"].cell("fair", "wcll", column)
    strong = found[METHODS].cell(found[METHODS].suite.tables[-1].title, "wcll", column)
    assert rows["WCLL"][0] == f"{100 * plain.mean:.1f} ± {100 * plain.std:.1f}"
    assert rows["WCLL"][1] == f"{100 * strong.mean:.1f}"
    assert f"n = 1; plain: {len(plain.values)}." in table["note"]
    ours = found[SETTINGS[0]].cell("last epoch", OURS, column).values
    assert rows[OURS][1] == f"{100 * statistics.fmean(ours[seed] for seed in strong.values):.1f}"


@with_results
def test_the_default_stands_beside_ours_in_the_same_trials():
    found = read_beyond(RESULTS / "beyond")
    if AUTO not in found:
        pytest.skip("the default has not been run on images since its search changed")
    auto, ours = auto_table(found[AUTO], found[SETTINGS[0]])["rows"]
    for place, column in enumerate(found[AUTO].columns, 1):
        values = found[AUTO].cell("last epoch", "auto", column).values
        others = found[SETTINGS[0]].cell("last epoch", OURS, column).values
        assert auto[place] == f"{100 * statistics.fmean(values.values()):.1f}"
        assert ours[place] == f"{100 * statistics.fmean(others[seed] for seed in values):.1f}"


def test_gains_are_averaged_over_settings_before_their_spread_over_trials():
    """Settings share what is hard about a trial: 4 and 0 points ahead in its two trials, whatever the settings."""
    printed = next(iter(published()))
    cells = [
        Cell({0: value, 1: value - 0.04}, ()) for value in (0.01 * printed.mean + 0.03, 0.01 * printed.mean + 0.05)
    ]
    found = [Line("s", printed, None, cell, None, cell) for cell in cells]
    assert mean_gain(found) == "+2.0 ± 2.0"
    once = [replace(line, ours=Cell({0: line.ours.values[0]}, ())) for line in found]
    assert mean_gain(once) == "+4.0"


def test_without_data_nothing_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("WCLL_DATA", raising=False)
    assert run(["paper", "run", "beyond", "--results", "r"]) == 2
    error = capsys.readouterr().err
    assert "cifar10" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "r").exists()
