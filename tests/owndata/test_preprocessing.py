"""Columns become numbers, the same before and after they were written as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from wcll.exceptions import InputError
from wcll.owndata.columns import Column
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.transformers import new_encoder, plain_transformer, rebuilt_transformer

HERE = Path("t.csv")


def table(**columns: list[str]) -> dict[str, Column]:
    return {name: Column(HERE, name, cells) for name, cells in columns.items()}


SOME = table(
    size=["1.5", "NA", "3", "4"],
    when=["2024-01-01", "2024-01-03T12:00", "", "2023-12-31"],
    soil=["clay", "", "loam", "clay"],
)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", " 2.5 ", "nan", "-1e3"], "number"),
        (["2024-05-31", "2024-06-01 12:30", "n/a"], "date"),
        (["1", "x"], "text"),
        (["", "NA"], "number"),
        (["none", "1"], "text"),
        (["31.05.2024"], "text"),
    ],
)
def test_kinds_of_cells(column, kind):
    assert Column(HERE, "c", column).kind == kind


def test_numbers_dates_and_categories():
    fitted, x, notes = Preprocessing.fit(SOME)
    assert notes == []
    assert dict(fitted.kinds) == {"size": "number", "when": "date", "soil": "text"}
    imputed = SimpleImputer(add_indicator=True).fit_transform([[1.5], [np.nan], [3], [4]])
    assert np.allclose(x[:, [0, 2]], StandardScaler().fit_transform(imputed), atol=1e-6)
    assert x[:, 4:].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]  # "", clay, loam
    assert fitted.n_features == x.shape[1] == 7


def test_what_was_written_transforms_alike_bit_for_bit():
    fitted, x, _ = Preprocessing.fit(SOME)
    again = Preprocessing.from_dict(json.loads(json.dumps(fitted.to_dict())))
    new = table(soil=["loam", ""], when=["", "2025-01-01"], size=["", "7"], more=["1", "2"])
    assert np.array_equal(again.transform(SOME), x)
    assert np.array_equal(again.transform(new), fitted.transform(new))
    assert again.to_dict() == fitted.to_dict()


def test_random_numbers_are_rebuilt_exactly():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4)) * 10.0 ** rng.integers(-8, 9, 4)
    x[rng.random(x.shape) < 0.1] = np.nan
    imputer = SimpleImputer(add_indicator=True).fit(x)
    scaler = StandardScaler().fit(imputer.transform(x))
    for one, given in ((imputer, x), (scaler, imputer.transform(x))):
        again = rebuilt_transformer(json.loads(json.dumps(plain_transformer(one))))
        assert np.array_equal(again.transform(given), one.transform(given))


def test_transformers_that_are_not_listed_are_refused_by_name():
    with pytest.raises(
        InputError, match="transformer: expected one of SimpleImputer, StandardScaler, OneHotEncoder, got MinMaxScaler"
    ):
        plain_transformer(MinMaxScaler().fit([[0.0], [1.0]]))
    with pytest.raises(InputError, match=r"transformer: expected one of .*, got 'FunctionTransformer'"):
        rebuilt_transformer({"name": "FunctionTransformer"})


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(with_mean=False),
        SimpleImputer(add_indicator=True, strategy="median"),
        SimpleImputer(),
        OneHotEncoder(),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32, drop="first"),
    ],
)
def test_settings_that_would_be_lost_are_refused(transformer):
    """As pipelines refuse them: what comes back would transform otherwise."""
    with pytest.raises(
        InputError, match=f"expected settings that can be written, got {type(transformer).__name__} with"
    ):
        plain_transformer(transformer.fit(np.array([[1.0], [2.0]])))


@pytest.mark.parametrize(
    "plain",
    [
        {"name": "StandardScaler", "mean": [0.0], "scale": [0.0]},
        {"name": "StandardScaler", "mean": [0.0], "scale": [1.0, 1.0]},
        {"name": "StandardScaler", "mean": ["x"], "scale": [1.0]},
        {"name": "StandardScaler", "mean": [float("nan")], "scale": [1.0]},
        {"name": "SimpleImputer", "statistics": [1.0], "flagged": [1]},
        {"name": "SimpleImputer", "statistics": [1.0], "flagged": [True]},
        {"name": "OneHotEncoder", "categories": [[]]},
        {"name": "OneHotEncoder", "categories": [["b", "a"]]},
        {"name": "OneHotEncoder", "categories": [[1]]},
        {"name": "OneHotEncoder"},
        {},
        [],
    ],
)
def test_entries_that_cannot_be(plain):
    with pytest.raises(InputError):
        rebuilt_transformer(plain)


def test_steps_that_do_not_fit_together_are_refused():
    good = Preprocessing.fit(SOME)[0].to_dict()
    scaler = plain_transformer(StandardScaler().fit(np.zeros((2, 3))))
    encoder = plain_transformer(new_encoder().fit([["a", "b"]]))
    bad = [{"steps": []}, {"steps": [scaler]}, {"steps": [scaler, scaler]}, {"encoder": encoder}, {"encoder": scaler}]
    bad += [{"encoder": None}, {"columns": []}, {"columns": good["columns"] + good["columns"][:1]}]
    for change in bad:
        with pytest.raises(InputError):
            Preprocessing.from_dict({**good, **change})


def test_a_column_without_values_is_left_out_and_said():
    fitted, _, notes = Preprocessing.fit(table(a=["1", "2"], b=["", "NA"]))
    assert list(fitted.kinds) == ["a"]
    assert notes == ["column 'b' holds no value, and is left out"]


def test_parts_of_categories_that_are_missing_or_unknown():
    fitted, _, _ = Preprocessing.fit(table(soil=["clay", "loam"] * 3))
    assert fitted.transform(table(soil=[""])).tolist() == [[0, 0]]
    with pytest.raises(InputError, match="'soil' among clay, loam, got 'peat' in row 2; --unknown-category ignore"):
        fitted.transform(table(soil=["clay", "peat"]))
    assert fitted.transform(table(soil=["clay", "peat"]), ignore_unknown=True).tolist() == [[1, 0], [0, 0]]
