"""Complementary labels in files of every kind, and files that are none."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from wcll.datasets.label_files import read_label_file
from wcll.exceptions import InputError
from wcll.labels import make_complementary

TABLE = """item,not_label,other,who
1,cat,dog,x
1,cat,,y
2,"bird, big",dog,x
3,dog,cat,y
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(TABLE)
    return path


def test_one_label_a_row(table):
    records = read_label_file(table, labels=["not_label"])
    assert records.classes == ("bird, big", "cat", "dog")
    assert records.label.tolist() == [1, 1, 0, 2]
    assert records.sample.tolist() == [0, 1, 2, 3]
    assert records.annotator is None
    assert read_label_file(table).label.tolist() == [1, 1, 0, 2]  # the usual name of the column


def test_rows_of_an_item_are_one_sample(table):
    records = read_label_file(table, labels=["not_label"], item="item", annotator="who")
    assert records.sample.tolist() == [0, 0, 1, 2]
    assert records.replacement
    assert (records.annotator.tolist(), records.annotators) == ([0, 1, 0, 1], ("x", "y"))


def test_several_columns_some_of_them_empty(table):
    records = read_label_file(
        table, labels=["not_label", "other"], annotator="who", classes=["cat", "dog", "bird, big", "elk"]
    )
    assert records.classes[-1] == "elk"
    assert records.sample.tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert records.label.tolist() == [0, 1, 0, 2, 1, 1, 0]
    assert records.annotator.tolist() == [0, 0, 1, 0, 0, 1, 1]


def test_numbers_are_sorted_as_numbers(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("not_label\n" + "\n".join(map(str, [10, 9, 2, 2])) + "\n\n")
    assert read_label_file(path).classes == ("2", "9", "10")


def test_parquet_is_read_as_the_same_table(table, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(table)
    frame["number"] = [1.0, None, 2.0, 3.0]
    frame.to_parquet(tmp_path / "labels.parquet")
    for options in ({"labels": ["not_label"], "item": "item", "annotator": "who"}, {"labels": ["not_label", "other"]}):
        own, other = read_label_file(tmp_path / "labels.parquet", **options), read_label_file(table, **options)
        assert (own.classes, own.annotators) == (other.classes, other.annotators)
        np.testing.assert_array_equal(own.label, other.label)
        np.testing.assert_array_equal(own.sample, other.sample)
    numbers = read_label_file(tmp_path / "labels.parquet", labels=["item", "number"])
    assert numbers.label.tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_parquet_without_its_package(tmp_path, monkeypatch):
    (tmp_path / "labels.parquet").write_text("x")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"pip install 'wcll\[parquet\]'"):
        read_label_file(tmp_path / "labels.parquet")


def test_arrays(tmp_path):
    path, y = tmp_path / "labels.npz", np.arange(40) % 4
    mask = make_complementary(y, n_labels=2, random_state=0)
    np.savez(path, ybar=mask, classes=["a", "b", "c", "d"])
    records = read_label_file(path)
    assert records.classes == ("a", "b", "c", "d")
    np.testing.assert_array_equal(records.counts, mask.sum(axis=0))
    np.savez(path, ybar=np.array([[0, 1], [3, 3]], np.uint8), annotators=[["x", "y"], ["y", "z"]])
    records = read_label_file(path)
    assert (records.classes, records.annotators) == (("0", "1", "2", "3"), ("x", "y", "z"))
    np.savez(path, ybar=np.array([2, 0, 1]), classes=np.array([10, 20, 30]))  # as `wcll simulate` writes them
    assert [read_label_file(path).classes[k] for k in read_label_file(path).label] == ["30", "10", "20"]
    np.savez(path, ybar=np.array(["b", "a"]))
    assert read_label_file(path, classes=["b", "a", "c"]).label.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TABLE, {"labels": ["label"]}, "--not-label: expected one of the columns 'item', 'not_label', 'other', 'who', got 'label'"),
        (TABLE, {"item": "id"}, "--item: expected one of the columns 'item', 'not_label', 'other', 'who', got 'id'"),
        (TABLE, {"annotator": "by"}, "--annotator: expected one of the columns"),
        (TABLE, {"annotator": "not_label"}, "a column of its own"),
        (TABLE, {"labels": ["who", "who"]}, "a column of its own"),
        (TABLE, {"labels": ["other"]}, "expected a label in every row, got an empty one in row 2"),
        (TABLE, {"classes": ["cat", "dog"]}, "labels among cat, dog, got 'bird, big'"),
        ("a,b\n1,2\n", {}, "--not-label: expected one of the columns 'a', 'b', got none; say which column has labels"),
        ("not_label,not_label\n1,2\n", {}, "one column 'not_label'"),
        ("not_label,item\n1,1\n2, \n", {"item": "item"}, "an item in every row, got an empty one in row 2"),
        ("not_label,b\n,\n", {"labels": ["not_label", "b"]}, "empty ones in row 1"),
        ("not_label\n", {}, "at least one row of labels, got none"),
        ("", {}, "a table with columns"),
        ("not_label\ncat\ncat\n", {}, "labels of at least two classes, got one class, 'cat'"),
        ("not_label,b\ncat,dog\ndog,cat\n", {"labels": ["not_label", "b"]}, "every class for sample 0; list every class in --classes"),
        ('not_label\n"cat\n', {}, "a CSV file with a header line"),
    ],
)  # fmt: skip
def test_bad_tables_are_one_line(text, options, message, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_label_file(path, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"x": [1]}, {}, "expected an array ybar, got none"),
        ({"ybar": [1.5]}, {}, "whole numbers, text or truth values"),
        ({"ybar": np.zeros((0,), int)}, {}, "one label a sample"),
        ({"ybar": [0, 1]}, {"labels": ["ybar"]}, "--not-label: expected none for an .npz file"),
        ({"ybar": [0, 1], "classes": ["a", "b"]}, {"classes": ["a", "b"]}, "--classes: expected none, as the file has its own"),
        ({"ybar": [0, 1], "classes": ["a", "a"]}, {}, "each once"),
        ({"ybar": [0, 5], "classes": ["a", "b"]}, {}, "class indices below 2"),
        ({"ybar": [0, 1], "annotators": [1]}, {}, "2 samples as in ybar"),
        ({"ybar": np.ones((3, 3), bool)}, {}, "at least one class left"),
    ],
)  # fmt: skip
def test_bad_arrays_are_one_line(arrays, options, message, tmp_path):
    np.savez(tmp_path / "labels.npz", **arrays)
    with pytest.raises(InputError) as caught:
        read_label_file(tmp_path / "labels.npz", **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name", ["labels.txt", "labels", "nosuch.csv", "garbage.npz", "garbage.parquet", "garbage.csv"]
)
def test_files_of_another_kind(name, tmp_path):
    (tmp_path / "labels.txt").write_text("a")
    for ending in ("npz", "parquet", "csv"):
        (tmp_path / f"garbage.{ending}").write_bytes(bytes(range(256)))
    with pytest.raises(InputError) as caught:
        read_label_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_memory_is_asked_for_before_it_is_taken(table, tmp_path, monkeypatch):
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 100)
    with pytest.raises(InputError, match="which is free"):
        read_label_file(table)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_several_labels_in_a_cell(tmp_path, ending):
    """As ``wcll train`` takes them."""
    path = tmp_path / f"labels.{ending}"
    if ending == "csv":
        path.write_text('not_label,who\ncat|dog,x\n"[""bird"", ""dog""]",y\nelk,x\n')
    else:
        pyarrow = pytest.importorskip("pyarrow")
        cells = {"not_label": [["cat", "dog"], ["bird", "dog"], ["elk"]], "who": ["x", "y", "x"]}
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.table(cells), path)
    records = read_label_file(path, annotator="who")
    assert records.classes == ("bird", "cat", "dog", "elk")
    assert records.label.tolist() == [1, 2, 0, 2, 3]
    assert records.sample.tolist() == [0, 0, 1, 1, 2]
    assert records.annotator.tolist() == [0, 0, 1, 1, 0]


def test_a_class_whose_name_looks_like_several(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("not_label\na|b\nc\na|b\n")
    assert read_label_file(path, classes=["a|b", "c", "d"]).label.tolist() == [0, 1, 0]
