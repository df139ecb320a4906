"""Tables in Parquet: which columns are features, labels in all their forms, and one line for what cannot be used."""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_data import write_npz, write_parquet
from wcll.datasets import load_dataset, parquet
from wcll.datasets.load import same_data
from wcll.datasets.parquet import read_parquet
from wcll.exceptions import InputError, MissingExtraError

arrow = pytest.importorskip("pyarrow")
files = pytest.importorskip("pyarrow.parquet")

AGE = [30.5, 41.0, 28.0, 55.5]
NOT = ["b", "a", "c", "a"]
MASK = [[False, True, False], [True, False, True], [False, False, True], [True, False, False]]
LISTS = [["b"], ["c", "a"], ["c"], ["a"]]


def loaded(path, **columns):
    return load_dataset(str(write_parquet(path, **columns)))


def error(path, **columns):
    with pytest.raises(InputError) as caught:
        loaded(path, **columns)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


# What comes out.


def test_a_table(tmp_path):
    data = loaded(
        tmp_path / "mine.parquet", not_label=NOT, age=AGE, size=[4, 3, 2, 1], smokes=[True, False, True, True]
    )
    assert (data.name, data.classes, data.scale, data.test, data.official) == ("mine", tuple("abc"), 1.0, None, False)
    assert data.train.x.tolist() == [[30.5, 4, 1], [41, 3, 0], [28, 2, 1], [55.5, 1, 1]]
    assert data.train.x.dtype == np.float64
    assert data.train.x.flags.writeable
    assert data.train.ybar.tolist() == [1, 0, 2, 0]
    assert data.train.ybar.dtype == data.train.y.dtype == np.int64
    assert data.train.y.tolist() == [-1] * 4
    assert not data.train.known
    assert data.train.groups is None
    assert data.place == str(tmp_path / "mine.parquet")


def test_true_labels_alone(tmp_path):
    data = loaded(tmp_path / "a.parquet", age=AGE, label=[10, 9, -1, 10], group=["p", "p", "q", "r"])
    assert data.classes == ("-1", "9", "10")
    assert data.train.y.tolist() == [2, 1, 0, 2]
    assert data.train.ybar is None
    assert data.train.groups.tolist() == ["p", "p", "q", "r"]
    same = write_npz(tmp_path / "a.npz", x=np.array(AGE)[:, None], y=np.array([10, 9, -1, 10]))
    assert load_dataset(str(same)).fingerprint == data.fingerprint


def test_true_labels_beside_given_ones(tmp_path):
    data = loaded(tmp_path / "a.parquet", age=AGE, not_label=NOT, label=["d", None, "", "b"])
    assert data.classes == tuple("abcd")
    assert data.train.y.tolist() == [3, -1, -1, 1]
    none = loaded(tmp_path / "b.parquet", age=AGE, not_label=NOT, label=[None] * 4)
    assert none.train.y.tolist() == [-1] * 4
    assert none.classes == tuple("abc")
    numbers = loaded(tmp_path / "c.parquet", age=AGE, not_label=[2, 0, 1, 0], label=[1, None, -1, 2])
    assert numbers.train.y.tolist() == [1, -1, -1, 2]


@pytest.mark.parametrize("kind", ["float", "halffloat"])
def test_narrow_features_stay_narrow(tmp_path, kind):
    narrow = arrow.array(np.array(AGE, np.float32 if kind == "float" else np.float16))
    data = loaded(tmp_path / "a.parquet", a=narrow, b=narrow, not_label=NOT)
    assert data.train.x.dtype == np.float32
    assert data.train.x[:, 1].tolist() == AGE
    wide = loaded(tmp_path / "b.parquet", a=narrow, b=AGE, not_label=NOT)
    assert wide.train.x.dtype == np.float64


SEVERAL = {
    "lists": {"not_label": LISTS},
    "lists that repeat": {"not_label": [["b", "b"], ["a", "c", "a"], ["c", None], ["a", ""]]},
    "large lists": {"not_label": arrow.array(LISTS, arrow.large_list(arrow.large_string()))},
    "lists of one size": {
        "not_label": arrow.array([["b", None], ["c", "a"], ["c", "c"], ["", "a"]], arrow.list_(arrow.string(), 2))
    },
    "columns": {"not_label_1": ["b", "a", "c", None], "not_label_2": [None, "c", None, "a"]},
    "columns from anywhere": {"not_label_7": ["b", "a", "", "a"], "not_label_03": ["b", "c", "c", ""]},
    "categories": {
        "not_label_1": arrow.array(["b", "a", "c", None]).dictionary_encode(),
        "not_label_2": arrow.DictionaryArray.from_arrays(arrow.array([0, 2, None, 1]), ["b", "a", "c"]),
    },
    "lists in columns": {"not_label_1": LISTS, "not_label_2": [None, [], ["c"], [None]]},
}


@pytest.mark.parametrize("form", SEVERAL)
def test_several_labels_a_row(tmp_path, form):
    data = loaded(tmp_path / "a.parquet", age=AGE, **SEVERAL[form])
    assert data.classes == tuple("abc")
    assert data.train.ybar.dtype == bool
    assert data.train.ybar.tolist() == MASK
    assert data.train.x.tolist() == [[age] for age in AGE]


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 2, 0],
        [[1], [0, 0], [2, -1], [0, None]],
        arrow.array([1, 0, 2, 0], arrow.uint8()),
        [1.0, 0.0, 2.0, 0.0],
        arrow.array(np.array([1, 0, 2, 0], np.float16)),
        ["1", "0", "2", "0"],
        arrow.array(["1", "0", "2", "0"], arrow.large_string()),
        arrow.array([1, 0, 2, 0]).dictionary_encode(),
        arrow.DictionaryArray.from_arrays([2, 0, 1, 0], ["0", "2", "1", "unused"]),
    ],
    ids=["ints", "lists", "bytes", "floats", "halves", "text", "large text", "categories", "unused category"],
)
def test_types_of_labels(tmp_path, labels):
    data = loaded(tmp_path / "a.parquet", age=AGE, not_label=labels)
    assert data.classes == ("0", "1", "2")
    assert data.train.ybar.tolist() == [1, 0, 2, 0]


@pytest.mark.skipif(not hasattr(arrow, "string_view"), reason="Arrow has one more type of text since version 16")
def test_text_that_is_viewed(tmp_path):
    labels = arrow.array(LISTS, arrow.list_(arrow.string_view()))
    data = loaded(
        tmp_path / "a.parquet", age=AGE, not_label=labels, label=arrow.array(list("acba"), arrow.string_view())
    )
    assert data.train.ybar.tolist() == MASK
    assert data.train.y.tolist() == [0, 2, 1, 0]


def test_whole_numbers_that_became_floats(tmp_path):
    """As pandas writes them where some are missing."""
    first, second = [1.0, 0.0, 2.0, float("nan")], [None, 2.0, None, 0.0]
    data = loaded(tmp_path / "a.parquet", age=AGE, not_label_1=first, not_label_2=second)
    assert data.classes == ("0", "1", "2")
    assert data.train.ybar.tolist() == MASK


@pytest.mark.parametrize("index", ["__index_level_0__", "patient"])
def test_the_index_of_pandas_is_no_feature(tmp_path, index):
    pandas = pytest.importorskip("pandas")
    name = None if index.startswith("__") else index
    frame = pandas.DataFrame({"age": AGE, "not_label": NOT}, index=pandas.Index([7, 3, 5, 1], name=name))
    frame.to_parquet(tmp_path / "a.parquet")
    assert index in files.ParquetFile(tmp_path / "a.parquet").schema_arrow.names
    assert load_dataset(str(tmp_path / "a.parquet")).train.x.tolist() == [[age] for age in AGE]
    frame.set_index("not_label").to_parquet(tmp_path / "b.parquet")  # labels are labels wherever they are
    assert load_dataset(str(tmp_path / "b.parquet")).train.ybar.tolist() == [1, 0, 2, 0]


def test_names_with_dots_and_of_nothing(tmp_path):
    data = loaded(
        tmp_path / "a.parquet",
        **{"a": AGE, "a.b": [1, 2, 3, 4], "": [5, 6, 7, 8], "label.x": [0, 0, 0, 9]},
        not_label=NOT,
    )
    assert data.train.x[:, 1:].tolist() == [[1, 5, 0], [2, 6, 0], [3, 7, 0], [4, 8, 9]]


@pytest.mark.parametrize("groups", [["p", "p", "q", "r"], [7, 7, 9, 8], ["p", "p", "", "r"]])
def test_groups(tmp_path, groups):
    data = loaded(tmp_path / "a.parquet", age=AGE, not_label=NOT, group=groups)
    assert data.train.groups.tolist() == list(map(str, groups))


def test_rows_keep_their_order_over_parts_of_a_file(tmp_path, monkeypatch):
    """Each part has a dictionary of its own."""
    rng = np.random.default_rng(0)
    n = 5000
    ybar = rng.integers(0, 4, n)
    lists = [[f"k{k}", *([f"k{(k + 1) % 4}"] if i % 3 else [])] for i, k in enumerate(ybar)]
    table = arrow.table({"i": np.arange(n), "not_label": lists, "label": [f"k{(k + 2) % 4}" for k in ybar]})
    files.write_table(table, tmp_path / "a.parquet", row_group_size=1300)
    monkeypatch.setattr(parquet, "BATCH", 1)
    data = load_dataset(str(tmp_path / "a.parquet"))
    assert data.train.x[:, 0].tolist() == list(range(n))
    np.testing.assert_array_equal(data.train.y, (ybar + 2) % 4)
    expected = np.zeros((n, 4), bool)
    expected[np.arange(n), ybar] = True
    more = np.arange(n) % 3 > 0
    expected[more, (ybar[more] + 1) % 4] = True
    np.testing.assert_array_equal(data.train.ybar, expected)


def test_a_file_is_found_and_stamped_as_others(tmp_path):
    write_parquet(tmp_path / "a.parquet", age=AGE, not_label=NOT)
    data = load_dataset("a.parquet", tmp_path)
    assert data.stamp
    assert same_data("a.parquet", {data.stamp}, tmp_path)
    write_parquet(tmp_path / "a.parquet", age=AGE, not_label=NOT[::-1])
    assert not same_data("a.parquet", {data.stamp}, tmp_path)
    assert load_dataset("a.parquet", tmp_path).fingerprint != data.fingerprint


def test_tables_need_an_extra(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet", age=AGE, not_label=NOT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow: expected an installed package, .*'wcll\[parquet\]'"):
        load_dataset(str(path))


# What is wrong with a table, in one line.


BAD = {
    "text": (
        {"town": list("wxyz")},
        "expected numbers in every column but not_label, label and group, got type string in column town",
    ),
    "category": (
        {"town": arrow.array(list("wxyz")).dictionary_encode()},
        "expected numbers in every column but not_label, label and group, got type dictionary<values=string, "
        "indices=int32, ordered=0> in column town",
    ),
    "list": ({"pixels": [[1], [2], [3], [4]]}, "expected numbers in every column but not_label, label and group, got type list"),
    "struct": ({"pair": [{"a": 1}] * 4}, "expected numbers in every column but not_label, label and group, got type struct"),
    "date": (
        {"day": arrow.array([1, 2, 3, 4], arrow.date32())},
        "expected numbers in every column but not_label, label and group, got type date32[day] in column day",
    ),
    "nothing": ({"day": [None] * 4}, "expected numbers in every column but not_label, label and group, got type null in column day"),
    "null": (
        {"size": [1, 2, None, 4]},
        "expected a number in every row of column size, got none in row 2 (the first is 0)",
    ),
    "nan": (
        {"size": [1, 2.5, 3, float("nan")]},
        "expected a number in every row of column size, got nan in row 3 (the first is 0)",
    ),
    "infinity": (
        {"size": [1, float("inf"), 3, 4]},
        "expected a number in every row of column size, got inf in row 1 (the first is 0)",
    ),
    "no label": (
        {"not_label": ["a", None, "b", "c"]},
        "expected at least one label of every sample in not_label, got none of row 1 (the first is 0)",
    ),
    "blank label": (
        {"not_label": ["a", "b", "b", ""]},
        "expected at least one label of every sample in not_label, got none of row 3 (the first is 0)",
    ),
    "empty list": (
        {"not_label": [["a"], ["b"], [], ["c"]]},
        "expected at least one label of every sample in not_label, got none of row 2 (the first is 0)",
    ),
    "no list": (
        {"not_label": [None, ["b"], ["a"], ["c"]]},
        "expected at least one label of every sample in not_label, got none of row 0 (the first is 0)",
    ),
    "every class": (
        {"not_label": [["a"], ["b"], ["a", "b", "c"], ["c"]]},
        "expected a class that not_label does not rule out, got all 3 ruled out of row 2 (the first is 0)",
    ),
    "one class": ({"not_label": ["a"] * 4}, "expected labels of at least two classes, got a"),
    "no class": ({"not_label": [None] * 4}, "expected labels of at least two classes, got none"),
    "blank name": (
        {"not_label": ["a", "b", " ", "c"]},
        "expected names of classes that are text, none of them blank, got ' '",
    ),
    "fractions": ({"not_label": [0.0, 1.5, 2.0, 1.0]}, "expected whole numbers or text in column not_label, got 1.5"),
    "infinite": ({"not_label": [0.0, 1.0, 2.0, float("inf")]}, "expected whole numbers or text in column not_label, got inf"),
    "truths": ({"not_label": [True, False, True, True]}, "expected whole numbers or text in column not_label, got type bool"),
    "list of truths": ({"not_label": [[True, False]] * 4}, "expected whole numbers or text in column not_label, got type list<element: bool>"),
    "bytes": ({"not_label": [b"a", b"b", b"c", b"a"]}, "expected whole numbers or text in column not_label, got type binary"),
    "deep list": ({"not_label": [[["a"]], [["b"]], [], []]}, "expected whole numbers or text in column not_label, got type list"),
    "list of truth": ({"label": [["a"], ["b"], ["c"], []]}, "expected whole numbers or text in column label, got type list"),
    "list of groups": ({"group": [[1], [2], [3], []]}, "expected whole numbers or text in column group, got type list"),
    "no group": ({"group": ["p", "q", None, "q"]}, "expected a group in every row, got none in row 2 (the first is 0)"),
    "numbers beside names": (
        {"not_label": [1, 0, 2, 0], "label": ["a", None, "0", "b"]},
        "expected names or numbers as labels, got numbers in not_label and 'a' in label",
    ),
    "both": ({"not_label_1": NOT}, "expected a column not_label, or not_label_1, not_label_2, ..., got both"),
    "slip": (
        {"not_label_x": [1, 2, 3, 4]},
        "expected columns not_label, not_label_1, not_label_2, ..., label or group, got 'not_label_x'",
    ),
    "capital": (
        {"Label": [1, 2, 3, 4]},
        "expected columns not_label, not_label_1, not_label_2, ..., label or group, got 'Label'",
    ),
    "blank": (
        {"group ": [1, 2, 3, 4]},
        "expected columns not_label, not_label_1, not_label_2, ..., label or group, got 'group '",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables(tmp_path, kind):
    columns, message = BAD[kind]
    assert error(tmp_path / "a.parquet", **{"age": AGE, "not_label": NOT, **columns}).startswith(message)


def test_tables_that_lack_something(tmp_path):
    path = tmp_path / "a.parquet"
    assert error(path, age=AGE) == "expected a column not_label or label, got none"
    assert error(path, age=AGE, group=NOT) == "expected a column not_label or label, got none"
    assert error(path, not_label=NOT) == "expected at least one column of numbers beside the labels, got none"
    assert (
        error(path, age=arrow.array([], arrow.int64()), label=arrow.array([], arrow.int64()))
        == "expected at least one row, got none"
    )
    assert (
        error(path, age=AGE, label=["a", None, "b", "a"])
        == "expected a label in every row, got none in row 1 (the first is 0)"
    )
    assert error(path, age=AGE, label=["a", "b", "", "a"]).startswith("expected names of classes that are text")


def test_two_columns_of_one_name(tmp_path):
    table = arrow.Table.from_arrays([arrow.array(AGE)] * 2 + [arrow.array(NOT)], names=["age", "age", "not_label"])
    files.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="expected columns of different names, got age 2 times"):
        load_dataset(str(tmp_path / "a.parquet"))


def test_files_that_are_no_tables(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", age=AGE, not_label=NOT)
    whole = path.read_bytes()
    for content in (b"", b"text", b"PAR1", whole[:-1], whole[:100], whole[4:], b"PAR1" + bytes(100) + b"PAR1"):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_dataset(str(path))
        assert str(caught.value).startswith(f"{path}: expected a whole .parquet file, got ")
        assert "\n" not in str(caught.value)


# Memory.


def test_tables_that_do_not_fit(tmp_path, monkeypatch):
    """A column of one value is a small file."""
    path = write_parquet(tmp_path / "a.parquet", a=np.zeros(20_000), not_label=np.arange(20_000) % 2)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**5)
    with pytest.raises(InputError, match=r"expected at most 100 kB, which is free, got 20000 rows of 1 features of "):
        load_dataset(str(path))


def test_a_long_name_is_kept_once(tmp_path, monkeypatch):
    """In the file it is, too; copies would take 200 MB."""
    n, long = 2000, "b" * 100_000
    path = write_parquet(tmp_path / "a.parquet", a=np.zeros(n), not_label=[["a", long][i % 2] for i in range(n)])
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**6)
    before = arrow.default_memory_pool().max_memory()
    data = read_parquet(path)
    assert data.train.ybar.tolist() == [i % 2 for i in range(n)]
    assert arrow.default_memory_pool().max_memory() - before < 10**7


# The same labels in other words.


@st.composite
def masks(draw):
    n, k = draw(st.integers(2, 6)), draw(st.integers(2, 5))
    rows = st.lists(st.booleans(), min_size=k, max_size=k).filter(lambda row: any(row) and not all(row))
    mask = np.array(draw(st.lists(rows, min_size=n, max_size=n)))
    return np.vstack([mask, np.eye(k, dtype=bool)])  # every class has a name


@settings(max_examples=20, deadline=None)
@given(mask=masks(), order=st.randoms(use_true_random=False))
def test_lists_columns_names_and_masks_say_the_same(mask, order):
    n, k = mask.shape
    x = np.arange(float(n))
    listed = [[*map(int, np.flatnonzero(row)), *([None] * (k - row.sum()))] for row in mask]
    for row in listed:
        order.shuffle(row)
    columns = {f"not_label_{j + 1}": [row[j] for row in listed] for j in range(k)}
    shuffled = list(columns.items())
    order.shuffle(shuffled)
    named = [[None if label is None else f"name {label}" for label in row] for row in listed]
    tables = [{"not_label": listed}, columns, dict(shuffled), {"not_label": named}]
    with tempfile.TemporaryDirectory() as folder:
        found = [loaded(Path(folder, f"{i}.parquet"), x=x, **table) for i, table in enumerate(tables)]
        found.append(load_dataset(str(write_npz(Path(folder, "a.npz"), x=x[:, None], y=np.full(n, -1), ybar=mask))))
    assert len({data.fingerprint for data in found}) == 1
    assert len({data.classes for data in found[:3]}) == 1
    assert found[3].classes == tuple(f"name {i}" for i in range(k))


def test_bytes_of_a_footer(tmp_path):
    """None stops the whole program: some of what a damaged file says of its columns ends Arrow's process."""
    path = write_parquet(tmp_path / "a.parquet", a=[1.5, 2.5, 3.5], not_label=[["b"], ["c", "a"], ["a"]])
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(footer, footer + 250):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with suppress(InputError):
            read_parquet(path)
    path.write_bytes(whole)
    assert read_parquet(path).classes == ("a", "b", "c")


def test_long_lists_that_do_not_fit(tmp_path, monkeypatch):
    lists = [["a", "b"] * 3000, ["b", "c"], ["a"]]
    path = write_parquet(tmp_path / "a.parquet", a=[1.5, 2.5, 3.5], not_label=lists)
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**5)
    with pytest.raises(
        InputError, match=r"expected at most 100 kB, which is free, got 6003 labels in column not_label"
    ):
        load_dataset(str(path))
