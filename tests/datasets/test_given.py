"""Complementary labels that come with the data: in every form the same, true labels optional, one line for bad ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_data import write_manifest, write_npz
from wcll.cli.app import run
from wcll.datasets import Dataset, Split, load_dataset
from wcll.datasets.base import fingerprint
from wcll.exceptions import InputError

X = np.arange(36, dtype=np.uint8).reshape(4, 3, 3)
Y = np.array([0, 1, 2, 1])
ONE = np.array([1, 2, 0, 0])
LETTERS = np.array(list("abc"))
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


# Arrays.


def write_given(path, **arrays):
    """A file of arrays with complementary labels alone, unless others are named."""
    np.savez(path, **{"x": X, **arrays})
    return str(path)


def loaded(path, **arrays):
    return load_dataset(write_given(path, **arrays))


def error(path, **arrays):
    with pytest.raises(InputError) as caught:
        loaded(path, **arrays)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_one_label_a_sample(tmp_path):
    data = loaded(tmp_path / "a.npz", ybar=ONE)
    assert data.classes == ("0", "1", "2")
    assert data.train.ybar.tolist() == ONE.tolist()
    assert data.train.ybar.dtype == data.train.y.dtype == np.int64
    assert data.train.y.tolist() == [-1] * 4
    assert not data.train.known
    assert (data.test, data.scale) == (None, 255.0)
    column = loaded(tmp_path / "b.npz", ybar=ONE[:, None].astype(np.uint8))
    assert column.train.ybar.tolist() == ONE.tolist()
    assert column.fingerprint == data.fingerprint


def test_several_labels_a_sample(tmp_path):
    listed = np.array([[1, -1, -1], [2, 0, 2], [-1, 0, 0], [0, 2, -1]])
    names = np.array([["b", ""], ["a", "c"], ["", "a"], ["c", "a"]])
    for i, arrays in enumerate(
        [{"ybar": listed}, {"ybar": MASK}, {"ybar": names}, {"ybar": names, "classes": np.array(list("abc"))}]
    ):
        data = loaded(tmp_path / f"{i}.npz", **arrays)
        assert data.train.ybar.dtype == bool
        assert data.train.ybar.tolist() == MASK.tolist()
        assert data.classes == (("0", "1", "2") if i < 2 else ("a", "b", "c"))


def test_true_labels_beside_given_ones(tmp_path):
    data = loaded(tmp_path / "a.npz", ybar=ONE, y=Y)
    assert data.train.known
    assert data.train.y.tolist() == Y.tolist()
    data = loaded(tmp_path / "b.npz", ybar=ONE, y=np.array([0, -1, 3, -1]))
    assert data.train.y.tolist() == [0, -1, 3, -1]
    assert data.classes == ("0", "1", "2", "3")
    data = loaded(tmp_path / "c.npz", ybar=np.array(list("bcab")), y=np.array(["", "a", "", "e"]))
    assert data.train.y.tolist() == [-1, 0, -1, 3]
    assert data.classes == ("a", "b", "c", "e")
    wrong = loaded(tmp_path / "d.npz", ybar=Y, y=Y)  # a label may be wrong: true ones are not asked
    assert wrong.train.ybar.tolist() == Y.tolist()


def test_numbers_may_be_text(tmp_path):
    data = loaded(tmp_path / "a.npz", ybar=ONE, y=np.array(["0", "", "10", "1"]))
    assert data.classes == ("0", "1", "2", "10")
    assert data.train.y.tolist() == [0, -1, 3, 1]
    names = {"y": np.array(["b", "", "c", "a"]), "classes": LETTERS}  # then numbers are positions
    assert loaded(tmp_path / "b.npz", ybar=ONE, **names).train.ybar.tolist() == ONE.tolist()
    alone = write_npz(tmp_path / "c.npz", x=X, y=Y, x_test=X[:1], y_test=np.array(["cat"]))
    assert load_dataset(str(alone)).classes == ("0", "1", "2", "cat")  # as ever where no labels are given


def test_test_samples_have_true_labels(tmp_path):
    data = loaded(tmp_path / "a.npz", ybar=ONE, x_test=X[:2], y_test=np.array([4, 0]), groups=np.array(list("ppqq")))
    assert data.test.known
    assert data.test.ybar is None
    assert data.test.y.tolist() == [3, 0]
    assert data.classes == ("0", "1", "2", "4")
    assert data.train.groups.tolist() == list("ppqq")


def test_classes_that_no_label_names(tmp_path):
    data = loaded(tmp_path / "a.npz", ybar=np.array([0, 0, 1, 0]), classes=np.array(list("wxyz")))
    assert data.classes == tuple("wxyz")
    assert data.train.ybar.tolist() == [0, 0, 1, 0]
    assert loaded(tmp_path / "b.npz", ybar=np.pad(MASK, ((0, 0), (0, 1)))).classes == tuple("0123")


BAD = {
    "kind": (
        {"ybar": ONE / 1},
        "expected ybar of whole numbers or text, shape (n,) or (n, m), or a mask of type bool, shape (n, k), "
        "got float64, shape (4,)",
    ),
    "flat mask": ({"ybar": MASK[:, 0]}, "expected ybar of whole numbers or text, shape (n,) or (n, m), or a mask"),
    "deep": ({"ybar": np.zeros((4, 2, 2), int)}, "expected ybar of whole numbers or text, shape (n,) or (n, m)"),
    "no axis": ({"ybar": np.array(1)}, "expected ybar of whole numbers or text, shape (n,) or (n, m)"),
    "length": ({"ybar": ONE[:3]}, "expected 4 rows in ybar, one a sample of x, got shape (3,)"),
    "length of mask": ({"ybar": MASK[:3]}, "expected 4 rows in ybar, one a sample of x, got shape (3, 3)"),
    "one class": ({"ybar": np.zeros(4, int)}, "expected labels of at least two classes, got 0"),
    "one name": ({"ybar": np.array(["a"] * 4)}, "expected labels of at least two classes, got a"),
    "one in classes": (
        {"ybar": np.array(["a"] * 4), "classes": LETTERS[:1]},
        "expected labels of at least two classes, got a",
    ),
    "one column": ({"ybar": MASK[:, :1]}, "expected labels of at least two classes, got 0"),
    "no class": ({"ybar": np.full(4, -1)}, "expected labels of at least two classes, got none"),
    "no label": (
        {"ybar": np.array([1, 2, -1, 0])},
        "expected at least one label of every sample in ybar, got none of sample 2",
    ),
    "no name": (
        {"ybar": np.array([["a", "b"], ["", ""], ["c", ""], ["c", "b"]])},
        "expected at least one label of every sample in ybar, got none of sample 1",
    ),
    "no column": (
        {"ybar": np.zeros((4, 0), int), "y": Y},
        "expected at least one label of every sample in ybar, got none of sample 0",
    ),
    "empty row": (
        {"ybar": np.vstack([MASK[:3], MASK[3:] & False])},
        "expected at least one label of every sample in ybar, got none of sample 3",
    ),
    "every class": (
        {"ybar": np.array([[0, 1, -1], [2, -1, -1], [0, 1, 2], [1, 1, 1]])},
        "expected a class that ybar does not rule out, got all 3 ruled out of sample 2; a mask is of type bool",
    ),
    "every column": (
        {"ybar": np.vstack([MASK[:1], MASK[1:] | MASK[:1]])},
        "expected a class that ybar does not rule out, got all 3 ruled out of sample 1",
    ),
    "unknown name": (
        {"ybar": np.array(["a", "b", "d", "a"]), "classes": LETTERS},
        "expected labels in ybar among a, b, c, got d in sample 2",
    ),
    "unknown number": (
        {"ybar": np.array([[0, 1], [1, -1], [-1, 3], [0, 0]]), "classes": LETTERS},
        "expected labels in ybar among 0, 1, 2, got 3 in sample 2",
    ),
    "negative": (
        {"ybar": np.array([0, 1, -2, 1]), "classes": LETTERS},
        "expected labels in ybar among 0, 1, 2, got -2 in sample 2",
    ),
    "blank": (
        {"ybar": np.array(["a", "b", " ", "a"])},
        "expected names of classes that are text, none of them blank, got ' '",
    ),
    "unknown truth": (
        {"ybar": ONE, "y": np.array([0, -1, 4, 1]), "classes": LETTERS},
        "expected labels in y among 0, 1, 2, got 4 in sample 2",
    ),
    "names beside a mask": (
        {"ybar": MASK, "y": np.array(list("abca"))},
        "expected labels in y among 0, 1, 2, got a in sample 0",
    ),
    "numbers beside names": (
        {"ybar": ONE, "y": np.array(["", "cat", "dog", "cat"])},
        "expected names or numbers as labels, got numbers in ybar and 'cat' in y",
    ),
    "names beside numbers": (
        {"ybar": np.array(["1", "cat", "", "dog"]), "y": Y},
        "expected names or numbers as labels, got numbers in y and 'cat' in ybar",
    ),
    "names in the test": (
        {"ybar": ONE, "x_test": X[:1], "y_test": np.array(["cat"])},
        "expected names or numbers as labels, got numbers in ybar and 'cat' in y_test",
    ),
    "columns": (
        {"ybar": MASK, "classes": np.array(list("abcd"))},
        "expected a mask ybar of 4 columns, one a class, got shape (4, 3)",
    ),
    "mask of numbers": (
        {"ybar": MASK.astype(int), "classes": LETTERS},
        "expected class indices in ybar, or a mask of type bool, got 0 and 1 of type int64",
    ),
    "mask of numbers beside truth": (
        {"ybar": MASK.astype(np.uint8), "y": Y},
        "expected class indices in ybar, or a mask of type bool, got 0 and 1 of type uint8",
    ),
    "mask of numbers alone": (
        {"ybar": MASK.astype(int)},
        "expected a class that ybar does not rule out, got all 2 ruled out of sample 0; a mask is of type bool",
    ),
    "test of no class": (
        {"ybar": ONE, "x_test": X[:2], "y_test": np.array([1, -1])},
        "expected labels in y_test among 0, 1, 2, got -1 in sample 1",
    ),
    "test without name": (
        {"ybar": np.array(list("abca")), "x_test": X[:2], "y_test": np.array(["a", ""])},
        "expected labels in y_test among a, b, c, got an empty one in sample 1",
    ),
    "test alone": ({"ybar": ONE, "x_test": X[:2]}, "expected x_test and y_test together, got x_test alone"),
    "truth of another length": (
        {"ybar": ONE, "y": Y[:3]},
        "expected 4 values in y, one a sample of x, got shape (3,)",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_arrays(tmp_path, kind):
    arrays, message = BAD[kind]
    assert error(tmp_path / "a.npz", **arrays).startswith(message)


def test_labels_alone_are_no_data(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, ybar=ONE)
    with pytest.raises(InputError, match=r"expected arrays x and y, got no x$"):
        load_dataset(str(path))


def test_labels_that_do_not_fit(tmp_path, monkeypatch):
    """Many labels of a sample, or many classes: what is made of them is larger than the file."""
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**5)
    many = np.tile(np.arange(3000, dtype=np.int16), (4, 1))
    assert "expected at most 100 kB, which is free, got 12000 labels in ybar of 576 kB" in error(
        tmp_path / "a.npz", ybar=many
    )
    few, names = np.array([[0, 1], [1, 2], [2, 0], [1, 3]]), np.arange(30_000, dtype=np.uint16)
    message = error(tmp_path / "b.npz", ybar=few, classes=names)
    assert "expected at most 100 kB, which is free, got a mask of 4 samples and 30000 classes of 120 kB" in message
    one = loaded(tmp_path / "c.npz", ybar=few[:, 0], classes=names)  # which needs no mask
    assert one.train.ybar.tolist() == [0, 1, 2, 1]


# The same labels in other words.


@st.composite
def masks(draw):
    n, k = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    rows = st.lists(st.booleans(), min_size=k, max_size=k).filter(lambda row: any(row) and not all(row))
    return np.array(draw(st.lists(rows, min_size=n, max_size=n)))


def in_words(mask, order, blank, names):
    """Each row's labels in any order, some of them twice, and gaps where there are no more."""
    width = 2 * mask.shape[1] + 1
    rows = []
    for row in mask:
        labels = [names[k] for k in np.flatnonzero(row)]
        labels += [labels[0]] * (len(labels) % 2)
        rows.append([*labels, *[blank] * (width - len(labels))])
        order.shuffle(rows[-1])
    return np.array(rows)


def canonical(mask):
    return mask.argmax(axis=1).tolist() if (mask.sum(axis=1) == 1).all() else mask.tolist()


@settings(max_examples=40, deadline=None)
@given(mask=masks(), order=st.randoms(use_true_random=False))
def test_masks_lists_and_names_say_the_same(mask, order):
    k = mask.shape[1]
    classes = np.array([f"class {chr(97 + i)}" for i in range(k)])
    forms = [mask, in_words(mask, order, -1, range(k)), in_words(mask, order, "", classes)]
    if (mask.sum(axis=1) == 1).all():
        forms += [mask.argmax(axis=1), classes[mask.argmax(axis=1)]]
    x = np.arange(2.0 * len(mask)).reshape(len(mask), 2)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, ybar in enumerate(forms):
            data = loaded(Path(folder, f"{i}.npz"), x=x, ybar=ybar, classes=classes)
            assert data.train.ybar.tolist() == canonical(mask)
            assert data.classes == tuple(classes)
            found.append((data.fingerprint, data.train.ybar.dtype))
    assert len(set(found)) == 1


@settings(max_examples=20, deadline=None)
@given(mask=masks(), order=st.randoms(use_true_random=False))
def test_the_order_of_label_columns_says_nothing(mask, order):
    listed = in_words(mask, order, -1, range(mask.shape[1]))
    columns = list(range(listed.shape[1]))
    order.shuffle(columns)
    x = np.zeros((len(mask), 1))
    with tempfile.TemporaryDirectory() as folder:
        classes = np.arange(mask.shape[1])
        one = loaded(Path(folder, "a.npz"), x=x, ybar=listed, classes=classes)
        other = loaded(Path(folder, "b.npz"), x=x, ybar=listed[:, columns], classes=classes)
    assert one.fingerprint == other.fingerprint
    assert one.train.ybar.tolist() == other.train.ybar.tolist()


# Folders of images.


def write_table(folder, table):
    write_manifest(folder, labels=("a", "b", "c"))
    for other, own in (("a/0.png", "0.png"), ("b/1.png", "1.png"), ("c/2.png", "2.png")):
        (folder / other).rename(folder / own)
    (folder / "manifest.csv").write_text(table)
    return str(folder)


def test_a_table_of_labels_that_are_ruled_out(tmp_path):
    data = load_dataset(write_table(tmp_path / "own", "path,not_label\n0.png,dog\n1.png,cat\n2.png,eel\n"))
    assert data.classes == ("cat", "dog", "eel")
    assert data.train.ybar.tolist() == [1, 0, 2]
    assert data.train.ybar.dtype == np.int64
    assert data.train.y.tolist() == [-1, -1, -1]
    assert (data.test, data.train.groups) == (None, None)


def test_a_table_with_several_labels_a_row(tmp_path):
    table = "case,not_label,path,label\np,10|9,0.png,\np, 9 | 9|,1.png,2\nq,2,2.png,\n"
    data = load_dataset(write_table(tmp_path / "own", table))
    assert data.classes == ("2", "9", "10")
    assert data.train.ybar.tolist() == [[False, True, True], [False, True, False], [True, False, False]]
    assert data.train.y.tolist() == [-1, 0, -1]
    assert data.train.groups.tolist() == ["p", "p", "q"]


def test_names_of_a_table_are_compared_without_blanks(tmp_path):
    table = "path,label,not_label\n0.png, a,b \n1.png,b, a | c\n2.png,,b\n"
    data = load_dataset(write_table(tmp_path / "own", table))
    assert data.classes == ("a", "b", "c")
    assert data.train.y.tolist() == [0, 1, -1]


def test_a_registered_set_may_have_given_labels(tmp_path):
    write_manifest(tmp_path / "ddsm", not_label=["cancer", "benign", "cancer|normal"])
    data = load_dataset("ddsm", tmp_path)
    assert data.train.ybar.tolist() == [[False, False, True], [False, True, False], [True, False, True]]
    assert data.train.y.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("path,not_label\n0.png,a\n1.png,\n", "expected a not_label in every row, got an empty one in row 2"),
        ("path,not_label\n0.png,a\n1.png\n", "expected a not_label in every row, got an empty one in row 2"),
        (
            "path,not_label\n0.png,a\n1.png,b\n2.png, | \n",
            "expected at least one label of every sample in not_label, got none of row 3",
        ),
        ("path,not_label\n0.png,a\n1.png,a\n", "expected labels of at least two classes, got a"),
        (
            "path,not_label\n0.png,a|c\n1.png,b|a|c\n",
            "expected a class that not_label does not rule out, got all 3 ruled out of row 2",
        ),
        ("path,not_label,not_label\n0.png,a,b\n", "expected one column not_label, got 2; rename the others"),
        ("path,not_label,case\n0.png,a,\n", "expected a case in every row, got an empty one in row 1"),
        ("path,not_label\n0.png,a\0\n", "expected text, got a NUL in the not_label of row 1"),
        ("not_label\na\n", "expected columns path and label, got not_label"),
        ("path,not_label\n", "expected at least one row, got none"),
    ],
)
def test_bad_tables(tmp_path, table, message):
    folder = write_table(tmp_path / "own", table)
    with pytest.raises(InputError) as caught:
        load_dataset(folder)
    assert str(caught.value) == f"{tmp_path / 'own' / 'manifest.csv'}: {message}"


def test_names_that_a_registered_set_does_not_have(tmp_path):
    folder = write_manifest(tmp_path / "ddsm", not_label=["cancer", "benign|norml", "cancer|normal"])
    with pytest.raises(InputError) as caught:
        load_dataset("ddsm", tmp_path)
    expected = "expected labels among normal, benign, cancer, got 'norml' for cancer/1.png"
    assert str(caught.value) == f"{folder / 'manifest.csv'}: {expected}"


# Who takes true labels for granted.


def test_suites_that_draw_labels_need_true_ones(tmp_path, capsys):
    write_given(tmp_path / "own.npz", ybar=ONE)
    suite = tmp_path / "suite.toml"
    suite.write_text(
        'settings = {dataset = "own.npz", labels = "uniform", model = "linear", epochs = 1, lr = 0.01}\n'
        'title = "Own"\ncolumns = [{title = "own"}]\nrows = [{loss = "forward", assume = "uniform"}]\n'
        'tables = [{select = "last"}]\n'
    )
    arguments = ["run", str(suite), "--data", str(tmp_path), "--store", str(tmp_path / "s.sqlite"), "--device", "cpu"]
    assert run(arguments) == 2
    said = capsys.readouterr().err
    expected = "wcll: error: dataset 'own.npz': expected true labels of every sample, from which labels are drawn, got 4 without"
    assert expected in said
    assert "Traceback" not in said
