"""Complementary labels that come with the data: in every form the same, true labels optional, one line for bad ones."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_data import write_npz
from wcll.checks import InputError
from wcll.datasets import Dataset, Split, load_dataset
from wcll.datasets.base import fingerprint

X = np.arange(36, dtype=np.uint8).reshape(4, 3, 3)
Y = np.array([0, 1, 2, 1])
ONE = np.array([1, 2, 0, 0])
MASK = np.array([[0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 1]], bool)


def made(split, test=None):
    return Dataset("made", ("a", "b", "c"), split, test, 255.0, False, fingerprint(split, test), "here")


# A split.


@pytest.mark.parametrize("ybar", [None, ONE, MASK], ids=["none", "one", "several"])
def test_some_samples_keep_their_labels(ybar):
    split = Split(X, Y, np.array(list("ppqq")), ybar)
    for which in (np.array([3, 1]), np.array([False, True, False, True])):
        some = split.take(which)
        np.testing.assert_array_equal(some.x, X[which])
        np.testing.assert_array_equal(some.groups, split.groups[which])
        if ybar is None:
            assert some.ybar is None
        else:
            np.testing.assert_array_equal(some.ybar, ybar[which])
            assert some.ybar.dtype == ybar.dtype


def test_whether_true_labels_are_known():
    assert Split(X, Y).known is True
    assert Split(X, np.array([0, 1, -1, 1]), ybar=ONE).known is False
    assert Split(X, np.array([0, 1, -1, 1]), ybar=ONE).take(np.array([0, 1])).known is True


def test_fingerprints_without_given_labels_are_those_of_before(tmp_path):
    """Results are pinned to them."""
    assert made(Split(X, Y)).fingerprint == "747a987f4859854c"
    assert load_dataset(str(write_npz(tmp_path / "a.npz", x=X, y=Y))).fingerprint == "747a987f4859854c"
    names = {"y": np.array(list("bacb")), "y_test": np.array(["d", "a"]), "classes": np.array(list("dcba"))}
    path = write_npz(tmp_path / "b.npz", x=X / 7, x_test=X[:2] / 7, groups=np.arange(4), **names)
    assert load_dataset(str(path)).fingerprint == "2a7e160586dc7e72"
    data = load_dataset(str(write_npz(tmp_path / "c.npz", x=X, y=np.array([-1, 1, -1, 1]))))
    assert (data.fingerprint, data.classes) == ("22a26efa8d6f071c", ("-1", "1"))  # no class is special there
    assert load_dataset("digits").fingerprint == "00d5057829703b75"


def test_fingerprints_follow_given_labels():
    other = MASK.copy()
    other[0] = [0, 0, 1]
    splits = [Split(X, Y, None, ybar) for ybar in (None, ONE, ONE[::-1], MASK, other)]
    assert len({fingerprint(split, None) for split in splits}) == 5
    assert len({fingerprint(splits[0], split) for split in splits}) == 5


def test_fewer_pixels_keep_given_labels():
    data = made(Split(X, Y, None, MASK), Split(X, Y))
    small = data.reduced(1)
    np.testing.assert_array_equal(small.train.ybar, MASK)
    assert small.test.ybar is None
    assert small.fingerprint != data.fingerprint
    assert small.fingerprint != made(Split(X, Y), Split(X, Y)).reduced(1).fingerprint


@pytest.mark.parametrize("ybar", [ONE, MASK], ids=["one", "several"])
def test_given_labels_stay_with_all_classes(ybar):
    with pytest.raises(InputError) as caught:
        made(Split(X, Y, None, ybar)).only([0, 1])
    assert str(caught.value) == (
        "classes: expected all classes of dataset 'made', whose complementary labels are given, got [0, 1]; "
        "labels of classes that are left out would lose their meaning"
    )


def test_samples_are_chosen_by_known_labels():
    unknown = Split(X, np.array([0, 1, -1, 1]))
    for data in (made(unknown), made(Split(X, Y), unknown)):
        with pytest.raises(InputError) as caught:
            data.only([0, 1])
        assert str(caught.value) == "classes: expected true labels of every sample in dataset 'made', got 1 without"
