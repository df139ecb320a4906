"""Claims on images: made-up runs where a claim holds by construction, where it does not, and too few of them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from made_up import MADE, Figures, everything, kept, noise
from wcll.experiments import load_suite
from wcll.paper.claims import ON_IMAGES, TEST_IMAGES, judge_all, sure_leads
from wcll.paper.comparison import Part
from wcll.paper.page import all_panels, render_report
from wcll.paper.protocols import FACTORS, IMAGES
from wcll.paper.reproduction import DEPENDS, FAILS, HOLDS, UNTOLD, Reproduction
from wcll.report.result_tables import Cell

CIFAR10, TINY, RARE = ON_IMAGES


@cache
def places(name, trials):
    suite = replace(load_suite(name), trials=trials)
    return suite, [
        (trial.key, row.title, column.title, trial)
        for column in suite.columns
        for row in suite.rows
        for seed in range(trials)
        for trial in suite.candidates(column, row, seed)
    ]


def part(name, say, trials=3, without=()):
    """Runs with figures of ``say``, by method and trial; some keys are left out."""
    suite, some = places(name, trials)
    runs = {}
    for key, method, column, trial in some:
        one, off = say(method, trial), noise(method, column, trial.seed, 0.3)
        if (method, column, trial.seed) not in without:
            runs[key] = kept(key, Figures(one.accuracy + off, one.recall + off))
    return Part(suite, trials, runs, MADE)


def found(say, trials=3, without=(), names=IMAGES):
    return Reproduction({}, None, images={name: part(name, say, trials, without) for name in names})


def judged(claim, results):
    return ON_IMAGES[claim](results)


def ahead(*methods, by=20.0):
    """Some methods are ahead of all others."""
    return lambda method, trial: Figures(*[40.0 + by * (method in methods)] * 2)


BOTH = ("wcll", "wcll, Algorithm 1")


@pytest.mark.parametrize("claim", ON_IMAGES)
def test_what_holds_by_construction_holds(claim):
    verdict, evidence = judged(claim, found(ahead(*BOTH)))
    assert verdict == HOLDS
    assert "below in 0" in evidence
    assert "3 trials" in evidence


@pytest.mark.parametrize("claim", ON_IMAGES)
def test_a_rival_that_is_ahead_makes_it_fail(claim):
    assert judged(claim, found(ahead("pc")))[0] == FAILS


@pytest.mark.parametrize("claim", ON_IMAGES)
def test_one_reading_of_the_paper_that_is_ahead_is_not_all(claim):
    def say(method, trial):
        return Figures(*[{"wcll": 60.0, "wcll, Algorithm 1": 20.0}.get(method, 40.0)] * 2)

    assert judged(claim, found(say))[0] == DEPENDS


@pytest.mark.parametrize("claim", [CIFAR10, TINY])
def test_a_rate_at_which_a_rival_is_ahead_is_heeded(claim):
    def say(method, trial):
        return Figures(60.0 if (method in BOTH) == (trial.lr == 5e-5) else 40.0)

    assert judged(claim, found(say))[0] == DEPENDS


@pytest.mark.parametrize("claim", ON_IMAGES)
def test_no_verdict_below_three_trials(claim):
    verdict, evidence = judged(claim, found(ahead(*BOTH), trials=2))
    assert verdict == UNTOLD
    assert "a verdict needs 3 trials of every cell, and some cell has 2" in evidence
    assert judged(claim, Reproduction({}, None))[0] == UNTOLD


@pytest.mark.parametrize("claim", [CIFAR10, RARE])
def test_no_verdict_if_a_cell_lacks_a_trial(claim):
    lacking = found(ahead(*BOTH), without={("pc", "p = 5, class 1", 2)})
    assert judged(claim, lacking)[0] == UNTOLD


def test_no_verdict_if_a_table_is_missing():
    assert judged(CIFAR10, found(ahead(*BOTH), names=("table2-cifar10", "table3-cifar10")))[0] == UNTOLD


def test_what_few_test_images_cannot_tell_is_open():
    """Two points are much over trials, and nothing on 250 images."""
    assert judged(TINY, found(ahead(*BOTH, by=2.0)))[0] == UNTOLD
    assert judged(CIFAR10, found(ahead(*BOTH, by=9.0)))[0] == HOLDS


def test_leads_include_the_error_of_the_test_sample():
    first, second = (Cell(dict(enumerate(values)), ()) for values in ([0.60, 0.61, 0.59], [0.55, 0.56, 0.54]))
    assert sure_leads([(first, second)], 5000) == [1]
    assert sure_leads([(second, first)], 5000) == [-1]
    assert sure_leads([(first, second)], 250) == [0]
    assert sure_leads([(first, first)], 250) == [0]


def test_sizes_of_test_sets_are_those_of_the_files():
    assert TEST_IMAGES == {"cifar10": (5 * 1000, 1000), "tiny-imagenet": (5 * 50, 50)}


def test_the_report_shows_images_as_far_as_they_were_run():
    without = {("pc", "p = 5, class 1", seed) for seed in range(3)} | {("log", "p = 5, class 2", 2)}
    results = found(ahead("wcll"), without=without, names=(FACTORS, "table2-cifar10"))
    results = replace(everything(), search=None, images=results.images)
    for some in (*results.parts.values(), *results.named.values()):
        some.made.update(MADE)
    assert len(all_panels(results)) == 6 + 2  # one panel lacks PC
    for ending in (".md", ".html"):
        text = render_report(results, ending)
        assert "Table 2: one imbalanced class, CIFAR-10" in text
        assert "What the paper leaves open on images" in text
        assert "29 of the 136 published numbers on images are measured so far" in text
        assert "The panels of CIFAR-10: at 5e-5, 2 to 3 trials." in text
        assert "nan" not in re.sub("[Ff]inance", "", text)
    lines = [line for line in render_report(results, ".md").splitlines() if line.startswith("| uniform labels |")]
    assert len(lines) == 1
    assert lines[0].count(" / ") == 9
    assert len(judge_all(results)) > len(ON_IMAGES)
