"""Annotators against one another: those who differ are found, those who do not are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from wcll.labels.diagnostics import compare_annotators
from wcll.labels.encoding import label_records


def drawn(seed, annotators=8, labels=60, classes=5, odd=None):
    """Labels of annotators who are alike, but perhaps for the first."""
    rng = np.random.default_rng(seed)
    ybar, who = rng.integers(0, classes, annotators * labels), np.repeat(np.arange(annotators), labels)
    if odd is not None:
        ybar[:labels] = rng.choice(classes, labels, p=odd)
    return compare_annotators(label_records(ybar, list(map(str, range(classes))), who))


def test_the_statistic_is_that_of_a_table_of_two_rows():
    first = next(one for one in drawn(0) if one.annotator == "3")
    rng = np.random.default_rng(0)
    ybar = rng.integers(0, 5, 480)
    own, rest = np.bincount(ybar[180:240], minlength=5), np.bincount(np.delete(ybar, slice(180, 240)), minlength=5)
    assert first.p_value == pytest.approx(chi2_contingency([own, rest]).pvalue)
    assert first.distance == pytest.approx(np.abs(own / 60 - rest / 420).sum() / 2)


def test_one_who_differs_is_found_and_comes_first():
    found = drawn(1, odd=[0.6, 0.1, 0.1, 0.1, 0.1])
    assert found[0].annotator == "0"
    assert found[0].differs
    assert found[0].most == "0"
    assert not any(one.differs for one in found[1:])
    assert found == drawn(1, odd=[0.6, 0.1, 0.1, 0.1, 0.1])


def test_one_who_differs_does_not_make_the_others_look_odd():
    """With hundreds of labels each, the odd one among the others would give every one of them away."""
    accused = [
        {one.annotator for one in drawn(seed, annotators=3, labels=2000, odd=[0.6, 0.1, 0.1, 0.1, 0.1]) if one.differs}
        for seed in range(40)
    ]
    assert np.mean([found == {"0"} for found in accused]) >= 0.95


def test_two_who_differ_both_do():
    found = drawn(0, annotators=2, labels=500, odd=[0.6, 0.1, 0.1, 0.1, 0.1])
    assert [one.differs for one in found] == [True, True]
    assert found[0].distance == found[1].distance > 0.3


@pytest.mark.parametrize("labels", [6, 60])  # few labels are compared with tables drawn anew, many with chi-square
def test_those_who_are_alike_are_not_accused(labels):
    accused = [any(one.differs for one in drawn(seed, labels=labels)) for seed in range(100)]
    assert np.mean(accused) <= 0.05


def test_chances_of_few_labels_are_uniform_at_least():
    chances = [one.p_value for seed in range(60) for one in drawn(seed, labels=6)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(chances) <= level) <= level + 4 * np.sqrt(level / len(chances))


def test_too_few_labels_and_nobody_else():
    alone = compare_annotators(label_records([0, 1, 2, 0, 1, 2], annotators=["x"] * 6))
    assert (alone[0].p_value, alone[0].distance, alone[0].differs) == (None, 0.0, False)
    few = compare_annotators(label_records([0, 1, 2, 0, 1, 2], annotators=["x"] * 5 + ["y"]))
    assert {one.annotator: one.p_value is None for one in few} == {"x": False, "y": True}


def test_many_classes_are_pooled():
    rng = np.random.default_rng(0)
    ybar = rng.integers(0, 900, 4000)
    ybar[:400] = rng.integers(0, 90, 400)
    found = compare_annotators(label_records(ybar, annotators=np.arange(4000) // 400))
    assert [one.annotator for one in found if one.differs] == ["0"]


def test_a_class_that_was_named_once_accuses_nobody():
    """Somebody has to have named it; the chi-square distribution would find that impossible."""
    ybar = np.arange(1000) % 2
    ybar[7] = 2
    found = compare_annotators(label_records(ybar, annotators=np.arange(1000) // 5))
    assert not any(one.differs for one in found)
    assert found[0].annotator == "1"
    assert 0.001 < found[0].p_value < 0.02
