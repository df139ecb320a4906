"""Pipelines come back from their folder as they were, or are refused by name before anything is written."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from wcll import ComplementaryClassifier
from wcll.checks import InputError, InputTypeError
from wcll.owndata.folder import write_content
from wcll.owndata.pipelines import load_pipeline, save_pipeline

RNG = np.random.default_rng(0)
N = 40
Y = np.arange(N) % 3
FRAME = pd.DataFrame(
    {
        "size": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(5, 2, N)),
        "weight": RNG.normal(size=N) * 1e-3,
        "soil": RNG.choice(["clay", "loam", "sand"], N),
        "rings": RNG.integers(1, 4, N),
    }
)
NUMBERS = FRAME[["size", "weight"]].to_numpy()


def classifier():
    return ComplementaryClassifier("forward", model="linear", max_epochs=2, lr=0.05, random_state=0, device="cpu")


def columns(*parts, **more):
    return ColumnTransformer(list(parts), **more)


def both(**more):
    """The usual one: numbers and text, each in its way."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return columns(("numbers", numbers, ["size", "weight"]), ("text", text, ["soil"]), **more)


PIPELINES = {
    "scaler": ([StandardScaler()], FRAME[["weight", "rings"]]),
    "scaler without mean": ([SimpleImputer(), StandardScaler(with_mean=False)], NUMBERS),
    "scaler without deviation": ([SimpleImputer(), StandardScaler(with_std=False)], NUMBERS.astype(np.float32)),
    "imputer with a constant": ([SimpleImputer(strategy="constant", fill_value=-1, add_indicator=True)], NUMBERS),
    "imputer of an empty column": ([SimpleImputer(add_indicator=True)], np.column_stack([NUMBERS, np.full(N, np.nan)])),
    "empty column kept": ([SimpleImputer(keep_empty_features=True)], np.column_stack([NUMBERS, np.full(N, np.nan)])),
    "encoder": ([OneHotEncoder(dtype=np.float32)], FRAME[["soil", "rings"]]),
    "encoder of given categories": ([OneHotEncoder(categories=[["clay", "loam", "sand", "silt"]])], FRAME[["soil"]]),
    "columns": ([both()], FRAME),
    "columns with a remainder": ([both(remainder="passthrough"), StandardScaler(with_mean=False)], FRAME),
    "columns by position": ([columns(("a", SimpleImputer(), [0]), ("b", "passthrough", slice(1, 2)))], NUMBERS),
    "columns that are dropped": ([columns(("a", "drop", ["soil", "size"]), remainder="passthrough")], FRAME),
    "columns by kind": ([columns(("a", OneHotEncoder(sparse_output=False), make_column_selector("soil")))], FRAME),
    "nothing": (["passthrough"], FRAME[["weight"]]),
}


def fitted(steps, x):
    named = [(f"step {i}", step) for i, step in enumerate(steps)]
    return Pipeline([*named, ("last", classifier())]).fit(x, Y)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize(("steps", "x"), PIPELINES.values(), ids=PIPELINES.keys())
def test_what_is_loaded_predicts_the_same_bit_for_bit(steps, x, tmp_path):
    pipeline = fitted(steps, x)
    save_pipeline(pipeline, tmp_path / "p")
    loaded = load_pipeline(tmp_path / "p")
    np.testing.assert_array_equal(loaded.predict_proba(x), pipeline.predict_proba(x))
    np.testing.assert_array_equal(loaded.predict(x), pipeline.predict(x))
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    np.testing.assert_array_equal(loaded.fit(x, Y).predict_proba(x), pipeline.predict_proba(x))  # settings are the same
    save_pipeline(loaded, tmp_path / "p")  # a saved one may be replaced


def test_columns_are_found_by_name_and_unknown_categories_are_as_they_were(tmp_path):
    pipeline = fitted([both()], FRAME)
    save_pipeline(pipeline, tmp_path)
    new = FRAME[["rings", "soil", "weight", "size"]].head(4).assign(soil=["chalk", "clay", None, "sand"], size=np.nan)
    loaded = load_pipeline(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(new), pipeline.predict_proba(new))
    assert loaded[:-1].get_feature_names_out().tolist() == pipeline[:-1].get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="columns are missing"):
        loaded.predict(new.drop(columns="soil"))


NEW_PROCESS = """
import sys, numpy as np, pandas as pd
from wcll.owndata.pipelines import load_pipeline
folder = sys.argv[1]
np.save(f"{folder}/after.npy", load_pipeline(f"{folder}/p").predict_proba(pd.read_parquet(f"{folder}/x.parquet")))
"""


def test_in_a_new_process(tmp_path):
    pipeline = fitted([both(remainder="passthrough")], FRAME)
    save_pipeline(pipeline, tmp_path / "p")
    FRAME.to_parquet(tmp_path / "x.parquet")
    subprocess.run([sys.executable, "-c", NEW_PROCESS, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "after.npy"), pipeline.predict_proba(FRAME))
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["model.safetensors", "pipeline.json"]


TEXT = FRAME[["soil"]]
GAPS = TEXT.assign(soil=[None, *TEXT["soil"][1:]])


@pytest.mark.parametrize(
    ("steps", "x", "message"),
    [
        ([MinMaxScaler()], FRAME[["weight"]], "steps among SimpleImputer.*got MinMaxScaler; others cannot be saved"),
        ([FunctionTransformer()], FRAME[["weight"]], "got FunctionTransformer"),
        ([OneHotEncoder(drop="first")], TEXT, "settings that can be written, got OneHotEncoder with drop='first'"),
        ([OneHotEncoder(min_frequency=2)], TEXT, "OneHotEncoder with min_frequency=2"),
        ([OneHotEncoder(handle_unknown="infrequent_if_exist")], TEXT, "with handle_unknown='infrequent_if_exist'"),
        ([OneHotEncoder()], GAPS, "OneHotEncoder's categories of numbers, or of text alone, got others; impute"),
        ([SimpleImputer(missing_values=-1)], FRAME[["weight"]], "SimpleImputer with missing_values=-1"),
        ([columns(("a", MinMaxScaler(), [0]))], FRAME[["weight"]], "got MinMaxScaler"),
        ([columns(("a", StandardScaler(), [0]), remainder=StandardScaler())], NUMBERS[:, 1:], "with remainder=Standard"),
        ([columns(("a", StandardScaler(), [0]), transformer_weights={"a": 2})], NUMBERS[:, 1:], "with transformer_weights="),
        ([make_pipeline(StandardScaler(), memory="m")], FRAME[["weight"]], "Pipeline with memory='m'"),
        ([StandardScaler().set_output(transform="pandas")], FRAME[["weight"]], "StandardScaler without set_output"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_by_name(steps, x, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        save_pipeline(fitted(steps, x), tmp_path / "p")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "p").exists()


def test_what_is_no_such_pipeline_is_refused(tmp_path):
    with pytest.raises(InputTypeError, match="pipeline: expected a Pipeline of scikit-learn, got StandardScaler"):
        save_pipeline(StandardScaler(), tmp_path / "p")
    with pytest.raises(InputError, match="pipeline: expected a ComplementaryClassifier as the last step, got Standard"):
        save_pipeline(make_pipeline(StandardScaler()), tmp_path / "p")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"folder: expected an empty one, or a saved pipeline, got .* with mine\.txt"):
        save_pipeline(fitted([StandardScaler()], FRAME[["weight"]]), tmp_path)
    with pytest.raises(
        InputError, match=r"folder: expected one that save_pipeline wrote, got .* without pipeline\.json"
    ):
        load_pipeline(tmp_path)


def test_damaged_and_tampered_folders_are_refused(tmp_path):
    save_pipeline(fitted([both()], FRAME), tmp_path)
    path, model = tmp_path / "pipeline.json", tmp_path / "model.safetensors"
    whole, weights = path.read_text(), model.read_bytes()
    for text, message in (
        ("{", "JSON that save_pipeline wrote, got something else"),
        (whole.replace("clay", "chalk"), "an unchanged file, got contents that do not match their digest"),
        (whole.replace("wcll-pipeline-1", "wcll-pipeline-9"), "a file of format 'wcll-pipeline-1'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            load_pipeline(tmp_path)
    path.write_text(whole)
    model.write_bytes(weights[:-1] + b"\0\0")
    with pytest.raises(InputError, match="model: expected an unchanged model file"):
        load_pipeline(tmp_path)


def places(node, at=()):
    """Every place of nested lists and dictionaries."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def test_whatever_is_written_instead_is_one_line_or_a_pipeline(tmp_path):
    save_pipeline(fitted([both(remainder="passthrough")], FRAME), tmp_path)
    path, lines = tmp_path / "pipeline.json", []
    content = json.loads(path.read_text())
    del content["digest"]
    for i, place in enumerate(places(content["steps"])):
        for value in ((None, 10**9, []), (-1, "x", {}), ([[1]], True, 0.5))[i % 3]:
            changed = json.loads(json.dumps(content))
            node = changed["steps"]
            for key in place[:-1]:
                node = node[key]
            node[place[-1]] = value
            write_content(path, changed)
            try:
                load_pipeline(tmp_path)
            except InputError as error:
                lines.append(str(error))
    assert len(lines) > 100
    assert all("\n" not in line and "pipeline.json: expected" in line for line in lines)
