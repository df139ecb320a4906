"""Labels one by one, from every form that they come in."""

from __future__ import annotations

import numpy as np
import pytest

from wcll.exceptions import InputError
from wcll.labels.encoding import label_records, label_sets


def test_every_form_gives_the_same_records():
    lists = [["a", "b"], ["c", "b"]]
    index = np.array([[0, 1], [2, 1]])
    mask = np.array([[True, True, False, False], [False, True, True, False]])
    names = ["a", "b", "c", "d"]
    for ybar in (lists, np.array(lists), index, mask):
        records = label_records(ybar, names)
        assert records.classes == ("a", "b", "c", "d")
        assert records.counts.tolist() == [1, 2, 1, 0]
        assert records.sample.tolist() == [0, 0, 1, 1]
        assert not records.replacement
    assert label_records(np.array([0, 3, 3])).classes == ("0", "1", "2", "3")
    assert label_records(["b", "a"]).classes == ("a", "b")


def test_sets_are_those_of_label_sets():
    rng = np.random.default_rng(0)
    ybar = rng.integers(0, 5, (300, 3))
    own, other = label_records(ybar).sets(), label_sets(ybar, 5)
    order, expected = (np.lexsort(sets.counts.T) for sets in (own, other))
    np.testing.assert_array_equal(own.counts[order], other.counts[expected])
    np.testing.assert_array_equal(own.weight[order], other.weight[expected])
    assert own.replacement == other.replacement


def test_every_sample_weighs_the_same_in_the_shares():
    mean, error = label_records([["a"], ["b", "b", "c"]]).marginal
    np.testing.assert_allclose(mean, [1 / 2, 1 / 3, 1 / 6])
    np.testing.assert_allclose(error, np.abs([1 - 0.5, 2 / 3 - 1 / 3, 1 / 3 - 1 / 6]) / np.sqrt(2))


def test_annotators_of_labels_and_of_samples():
    by_label = label_records([["a", "b"], ["c"]], annotators=[["x", "y"], ["x"]])
    assert by_label.annotator.tolist() == [0, 1, 0]
    by_sample = label_records([["a", "b"], ["b", "b"]], annotators=["y", "x"])
    assert by_sample.annotator.tolist() == [1, 1, 0, 0]
    assert by_sample.annotators == ("x", "y")


@pytest.mark.parametrize(
    ("ybar", "classes", "annotators", "message"),
    [
        ([], None, None, "ybar: expected one label a sample"),
        (["a", "a"], None, None, "one class, 'a', for every sample"),
        (["a", "b"], ["a", "c"], None, "ybar: expected classes among a, c, got 'b'"),
        ([0, 2], ["a", "b"], None, "class indices below 2"),
        ([-1, 2], None, None, "class indices from 0"),
        ([0, 10**6], None, None, "at most 10000 classes"),
        ([["a", "b"], ["a", "c"], ["a", "b"]], ["a", "b"], None, "classes among a, b"),
        ([["a", "b"], ["a"]], None, None, "every class for sample 0"),
        ([["a", "b"], []], None, None, "a list of labels for every sample"),
        (np.zeros((2, 2, 2), int), None, None, "shape (2, 2, 2)"),
        (np.array([True, False]), None, None, "a mask of shape (n, K)"),
        (np.eye(3, dtype=bool), ["a", "b"], None, "3 names, one a column of the mask"),
        (["a", "b"], None, ["x"] * 3, "annotators: expected 2 samples"),
        ([float("nan"), 1.5], None, None, "a label for every sample"),
    ],
)  # fmt: skip
def test_bad_labels_are_one_line(ybar, classes, annotators, message):
    with pytest.raises(InputError) as caught:
        label_records(ybar, classes, annotators)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sample_may_name_every_class_where_labels_are_drawn_independently():
    records = label_records([["a", "b"], ["a", "a"]])
    assert records.everything_named.tolist() == [0]
