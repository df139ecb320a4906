"""Columns of Parquet files by their types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from wcll.exceptions import InputError
from wcll.owndata.sources import Reading, Roles, read_samples
from wcll.owndata.tables import read_table


def written(path, **columns):
    parquet.write_table(pyarrow.table(columns), path / "t.parquet")
    return path / "t.parquet"


def test_types_of_columns(tmp_path):
    moment = datetime(1970, 1, 2, 12, tzinfo=UTC)
    table = read_table(
        written(
            tmp_path,
            whole=[1, None, 3],
            half=pyarrow.array([0.5, None, 2], pyarrow.float32()),
            money=[Decimal("1.25"), None, Decimal("2")],
            yes=[True, None, False],
            day=[date(1970, 1, 3), None, date(1969, 12, 31)],
            when=[moment, None, moment],
            soil=pyarrow.array(["clay", None, "clay"]).dictionary_encode(),
            names=[["a", "b"], [], None],
            nothing=pyarrow.nulls(3),
            raw=[b"a", b"b", b"c"],
        )
    )
    assert {name: column.kind for name, column in table.items()} == {
        **dict.fromkeys(("whole", "half", "money", "nothing"), "number"),
        **dict.fromkeys(("yes", "soil"), "text"),
        **dict.fromkeys(("day", "when"), "date"),
        "names": "list",
        "raw": "other",
    }
    assert np.array_equal(table["money"].numbers(), [1.25, np.nan, 2], equal_nan=True)
    assert np.array_equal(table["day"].dates(), [2, np.nan, -1], equal_nan=True)
    assert np.array_equal(table["when"].dates(), [1.5, np.nan, 1.5], equal_nan=True)
    assert table["yes"].texts() == ["True", "", "False"]
    assert table["whole"].labels() == [("1",), (), ("3",)]
    assert table["names"].labels() == [("a", "b"), (), ()]
    for name in ("names", "raw"):
        with pytest.raises(InputError, match=f"text in column '{name}'"):
            table[name].texts()
    with pytest.raises(InputError, match=r"names or whole numbers in column 'half', got 0\.5"):
        table["half"].labels()


def test_numbers_of_items_stay_different(tmp_path):
    """Floats would take 2**53 and 2**53 + 1 for one item."""
    path = written(tmp_path, item=[2**53, 2**53 + 1], a=[1.0, 2.0], not_label=["x", "y"])
    samples = read_samples(path, Roles(item="item"), Reading())
    assert samples.names == [str(2**53), str(2**53 + 1)]


def test_the_index_of_pandas_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "not_label": ["x", "y"]}, index=["i", "j"])
    frame.to_parquet(tmp_path / "t.parquet")
    assert list(read_samples(tmp_path / "t.parquet", Roles(), Reading()).features) == ["a"]
