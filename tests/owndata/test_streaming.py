"""Tables that are read a part at a time: the same preprocessing, counts, messages and models as in memory."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from own_files import killed_after
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.labels.counts import label_totals
from wcll.owndata import counting, parts
from wcll.owndata.folder import OwnModel
from wcll.owndata.learning import Settings, learn
from wcll.owndata.preprocessing import Preprocessing
from wcll.owndata.sources import Reading, Roles, check_no_truth, counts_of, read_samples
from wcll.owndata.standing import Streaming
from wcll.owndata.streaming import SORTED, read_stream
from wcll.owndata.unfinished import Unfinished
from wcll.owndata.using import predict
from wcll.persistence import read_model

K, NAMES = 4, np.array(["oak", "fir", "elm", "ash"])
ROLES = Roles(("ybar",))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Many parts of a few rows."""
    monkeypatch.setattr(parts, "PART", 1)
    monkeypatch.setattr(parts, "LEAST", 37)


def table(n: int = 600, seed: int = 0) -> dict:
    """Columns of every kind, with signal, and a class that each row is not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    x = rng.standard_normal((n, 3)) + 2 * np.eye(K, 3)[y]
    days = [date(2024, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 99, n)]
    return {
        "a": x[:, 0].astype(np.float32),
        "b": [None if i % 7 == 3 else float(value) for i, value in enumerate(x[:, 1])],
        "far": x[:, 2] + 1e6,
        "whole": rng.integers(0, 5, n),
        "constant": np.full(n, 0.1),
        "day": [None if i % 11 == 5 else day for i, day in enumerate(days)],
        "colour": [None if i % 13 == 2 else ["red", "green", " blue "][k % 3] for i, k in enumerate(y)],
        "flag": (y % 2).astype(bool),
        "empty": pa.nulls(n, pa.float64()),
        "code": rng.integers(0, 3, n),
        "ybar": NAMES[(y + rng.integers(1, K, n)) % K],
        "y": NAMES[y],
    }


def write(path, columns: dict, group: int = 100):
    parquet.write_table(pa.table(columns), path, row_group_size=group)
    return path


def without(columns: dict, *names: str) -> dict:
    return {name: values for name, values in columns.items() if name not in names}


def stream_of(path, roles=ROLES, categories=(), **options):
    return read_stream(path, roles, Reading(), Streaming(**options), categories)


def in_memory(path, roles=ROLES, categories=()):
    samples = read_samples(path, roles, Reading())
    check_no_truth(samples, categories)
    return samples, *Preprocessing.fit(samples.features, categories)


def test_one_pass_gives_the_preprocessing_of_all_rows(tmp_path):
    path = write(tmp_path / "t.parquet", without(table(), "y"))
    samples, fitted, x, notes = in_memory(path, categories=["code"])
    found = stream_of(path, categories=["code"], sample=150)
    one, other = fitted.to_dict(), found.preprocessing.to_dict()
    assert one["columns"] == other["columns"]
    assert one["encoder"] == other["encoder"]
    assert one["steps"][0]["flagged"] == other["steps"][0]["flagged"] != []
    for step, names in ((0, ["statistics"]), (1, ["mean", "scale"])):
        for name in names:
            np.testing.assert_allclose(one["steps"][step][name], other["steps"][step][name], rtol=1e-10)
    assert list(found.notes) == notes == ["column 'empty' holds no value, and is left out"]
    rows = [int(name) - 1 for name in found.samples.names]
    assert len(rows) == 150 == len(set(rows))
    assert rows == sorted(rows)
    assert max(rows) > 500 > 100 > min(rows)
    np.testing.assert_allclose(found.x, x[rows], atol=1e-5)
    assert found.samples.not_labels == [samples.not_labels[i] for i in rows]
    assert found.samples.stamp == samples.stamp


def test_counts_are_those_of_all_rows(tmp_path):
    columns = without(table(), "y")
    columns["ybar"] = [[name] if i % 3 else [name, NAMES[0]] for i, name in enumerate(columns["ybar"])]
    path = write(tmp_path / "t.parquet", columns)
    samples, *_ = in_memory(path)
    found, counts = stream_of(path, sample=100), counts_of(samples)
    assert found.counts.named == counts.named
    assert (found.counts.n, found.counts.least, found.counts.most) == (600, counts.least, counts.most) == (600, 1, 2)
    classes = samples.all_classes()
    mask = np.array([[name in names for name in classes] for names in samples.not_labels])
    np.testing.assert_allclose(found.totals, label_totals(mask, K, np.ones(600)))
    assert found.samples.all_classes() == classes
    assert found.counts.columns["b"] == (86, 0)
    assert found.counts.columns["colour"] == (46, 3)


@pytest.mark.parametrize("most", [4, 1024])
def test_a_table_that_is_sorted_by_class_is_told(most, tmp_path, monkeypatch):
    """Rows of one class would make up a buffer; labels of shuffled rows differ from part to part by chance alone."""
    monkeypatch.setattr(counting, "MOST_PARTS", most)
    monkeypatch.setattr(parts, "LEAST", 200)
    rows = table(4000)
    order = np.argsort(rows["y"], kind="stable")
    columns = {name: rows[name] for name in ("a", "ybar")}
    shuffled = stream_of(write(tmp_path / "shuffled.parquet", columns, 1000))
    ordered = stream_of(write(tmp_path / "sorted.parquet", {k: v[order] for k, v in columns.items()}, 1000))
    assert SORTED not in shuffled.notes
    assert SORTED in ordered.notes


def changed(**more):
    return lambda columns: columns | {name: make(columns) for name, make in more.items()}


def at(row, value):
    return lambda values: [value if i == row else one for i, one in enumerate(values)]


BAD = {
    "no label": (changed(ybar=lambda c: at(412, None)(at(433, None)(c["ybar"]))), ROLES, ()),
    "an infinite number": (changed(a=lambda c: at(377, np.inf)(c["a"])), ROLES, ()),
    "all classes": (changed(ybar=lambda c: at(401, "oak|fir|elm|ash")(c["ybar"])), ROLES, ()),
    "one class": (changed(ybar=lambda c: ["oak"] * 600), ROLES, ()),
    "an unknown class": (
        changed(ybar=lambda c: at(555, "yew")(c["ybar"])),
        Roles(("ybar",), classes=("ash", "elm", "fir", "oak")),
        (),
    ),
    "names of rows": (changed(colour=lambda c: [f"tree {i}" for i in range(600)]), ROLES, ()),
    "lists": (changed(a=lambda c: [[1]] * 600), ROLES, ()),
    "halves as labels": (changed(ybar=lambda c: [0.5] * 600), ROLES, ()),
    "true labels": (lambda c: table(), ROLES, ()),
    "true numbers": (changed(ybar=lambda c: c["whole"] % 3, label=lambda c: c["whole"] % 2), ROLES, ()),
    "no such column": (lambda c: c, Roles(("bar",)), ()),
    "a group without a name": (
        changed(who=lambda c: at(222, None)(["x", "y"] * 300)),
        Roles(("ybar",), group="who"),
        (),
    ),
    "no feature": (lambda c: {"ybar": c["ybar"], "empty": c["empty"]}, ROLES, ()),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_as_in_memory(case, tmp_path):
    change, roles, categories = BAD[case]
    path = write(tmp_path / "t.parquet", change(without(table(), "y")))
    lines = []
    for read in (in_memory, stream_of):
        with pytest.raises(InputError) as caught:
            read(path, roles, categories)
        lines.append(str(caught.value))
    assert lines[0] == lines[1]


def test_numbers_that_turn_out_to_be_names(tmp_path):
    """Whole numbers that floats do not hold are text, also in the parts that have none of them."""
    large = [2**60 + i % 3 if i > 450 else i % 3 for i in range(600)]
    path = write(tmp_path / "t.parquet", without(table(), "y") | {"large": large})
    _, fitted, _, _ = in_memory(path)
    found = stream_of(path)
    assert found.preprocessing.kinds == fitted.kinds
    assert found.preprocessing.kinds["large"] == "text"
    assert found.preprocessing.to_dict()["encoder"] == fitted.to_dict()["encoder"]
    assert len(next(found.feed(pairs=True, batch_size=64, seed=0, dtype="float32").filled(0)).x) == 600


def test_texts_are_not_kept_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "MOST_TEXTS", 50)
    for times, said in ((1, "different texts in .* rows"), (4, "at most 50 categories in a column of a table that is")):
        columns = without(table(), "y") | {"name": [f"n{i // times % 100}" for i in range(600)]}
        with pytest.raises(InputError, match=said):
            stream_of(write(tmp_path / "t.parquet", columns))


@pytest.mark.parametrize("loss", ["forward", "wcll"])
@pytest.mark.parametrize("kind", ["one", "list", "columns"])
def test_one_buffer_learns_what_memory_does(loss, kind, tmp_path):
    """``wcll`` takes one label a sample, so that sets become pairs; ``forward`` takes sets."""
    columns, roles = without(table(), "y"), ROLES
    second = NAMES[(np.arange(600) * 7) % K]
    if kind == "list":
        columns["ybar"] = [
            [a, b] if i % 2 else [a] for i, (a, b) in enumerate(zip(columns["ybar"], second, strict=True))
        ]
    if kind == "columns":
        columns, roles = columns | {"other": second}, Roles(("ybar", "other"))
    path = write(tmp_path / "t.parquet", columns)
    settings = Settings(loss, model="linear", epochs=3, lr=0.01, device="cpu")
    stream = stream_of(path, roles)
    streamed = learn(stream.samples, roles, settings, stream=stream)
    kept = learn(read_samples(path, roles, Reading()), roles, settings)
    one, other = streamed.own.classifier, kept.own.classifier
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(one.label_totals_, other.label_totals_)
    np.testing.assert_allclose(one.belief_.transition, other.belief_.transition)
    assert one.history_[-1]["loss"] == pytest.approx(other.history_[-1]["loss"], rel=1e-5)


def test_a_file_that_changes_on_the_way_is_refused(tmp_path):
    columns = without(table(), "y")
    stream = stream_of(write(tmp_path / "t.parquet", columns))
    write(tmp_path / "t.parquet", columns | {"ybar": ["yew"] * 600})
    settings = Settings("forward", model="linear", epochs=1, lr=0.01, device="cpu")
    with pytest.raises(InputError, match="the labels that it had before"):
        learn(stream.samples, ROLES, settings, stream=stream)
    write(tmp_path / "t.parquet", {name: values[:550] for name, values in columns.items()})
    with pytest.raises(InputError, match=r"the 100 rows that it had before, got 50 rows in group 5"):
        learn(stream.samples, ROLES, settings, stream=stream)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    return write(tmp_path_factory.mktemp("big") / "big.parquet", table(4000), 500)


WORDS = ["--not-label", "ybar", "--ignore", "y", "--model", "linear", "--device", "cpu"]


@pytest.mark.parametrize("how", [["--loss", "forward", "--lr", "0.02", "--epochs", "6"], ["--budget", "2000"]])
def test_in_memory_and_streamed_models_agree(how, big, tmp_path, capsys):
    found = {}
    for name, more in (("memory", []), ("stream", ["--stream", "--sample", "1000", "--buffer", "700"])):
        out = tmp_path / name
        assert run(["train", str(big), *WORDS, *how, *more, "--out", str(out)]) == 0
        capsys.readouterr()
        assert run(["evaluate", str(out), str(big), "--true-label", "y", "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)["true"]["accuracy"]
    assert found["memory"] > 0.6
    assert found["stream"] == pytest.approx(found["memory"], abs=0.04)


def test_a_warm_up_ends_before_a_stream_does(big, tmp_path):
    out = tmp_path / "model"
    assert run(["train", str(big), *WORDS, "--epochs", "3", "--stream", "--sample", "300", "--out", str(out)]) == 0
    chosen = OwnModel.load(out).classifier.chosen_
    assert 0 < chosen["warm_up"] < chosen["max_epochs"]


def test_what_stands_for_all_is_said(big, tmp_path, capsys):
    out, words = tmp_path / "model", [*WORDS, "--budget", "2000", "--group", "whole", "--stream", "--sample", "1000"]
    assert run(["train", str(big), *words, "--out", str(out)]) == 0
    assert "4000 samples, of which 1000 stand for all, 4 classes" in capsys.readouterr().err
    card = json.loads((out / "card.json").read_text())
    assert (card["data"]["samples"], card["data"]["sampled"], card["data"]["groups"]) == (4000, 1000, 5)
    assert card["made"]["command"].endswith("--stream --sample 1000 --out model")
    assert sum(one["named"] for one in card["classes"]) == 4000
    for name in ("card.md", "page.html"):
        assert "1000 of them, drawn by the seed, stand for all" in (out / name).read_text()
    chosen = next(row for row in card["training"]["candidates"] if row["chosen"])
    assert card["training"]["epochs"] == -(-chosen["epoch"] // 4)  # as many steps as were chosen
    assert OwnModel.load(out).classifier.label_totals_.sum() == pytest.approx(4000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t.csv", "--stream"], "--stream: expected a .parquet file"),
        (["big.parquet", "--stream", "--item", "colour"], "--item: expected none for a file that is streamed"),
        (["big.parquet", "--stream", "--labels", "l.csv"], "--labels: expected none for a file that is streamed"),
        (["big.parquet", "--sample", "500"], "--sample: expected --stream beside it"),
        (["big.parquet", "--stream", "--category", "ybar"], "--category: expected the name of a column of features"),
        (["big.parquet", "--stream", "--buffer", "1000000000"], "--buffer: expected at most"),
        (["damaged.parquet", "--stream"], "expected a whole .parquet file"),
    ],
)
def test_what_cannot_be_streamed_is_one_line(words, said, big, tmp_path, capsys):
    write(tmp_path / "big.parquet", without(table(), "y"))
    (tmp_path / "damaged.parquet").write_bytes((tmp_path / "big.parquet").read_bytes()[:-2000])
    (tmp_path / "t.csv").write_text("a,ybar\n1,x\n")
    command = ["train", str(tmp_path / words[0]), *words[1:], "--loss", "wcll", "--out", str(tmp_path / "model")]
    assert run(command) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("wcll: error: ")
    assert said in error
    assert not (tmp_path / "model").exists()


def test_a_table_that_does_not_fit_names_the_way_out(big, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 1000)
    assert run(["train", str(big), *WORDS, "--out", str(tmp_path / "model")]) == 2
    assert "--stream reads it a part at a time" in capsys.readouterr().err


def test_killed_for_real(big, tmp_path, monkeypatch):
    """``kill -9`` after the second pass, then ``--resume``: the weights of a training that nobody stopped."""
    monkeypatch.undo()  # parts as large as in the other process
    words = ["train", str(big), *WORDS, "--loss", "forward", "--epochs", "4", "--stream", "--buffer", "1100"]
    out = tmp_path / "model"
    killed_after(2, [*words, "--out", str(out)])
    assert run([*words[:-1], "1200", "--out", str(out), "--resume"]) == 2  # other buffers are another training
    assert run([*words, "--out", str(out), "--resume"]) == 0
    assert json.loads((out / "card.json").read_text())["made"]["resumed_after_epoch"] == 2
    assert not Unfinished.beside(out).exists()
    assert run([*words, "--out", str(tmp_path / "whole")]) == 0
    (_, one), (_, other) = (read_model(tmp_path / name / "model.safetensors") for name in ("model", "whole"))
    assert {name: tensor.tolist() for name, tensor in one.items()} == {name: t.tolist() for name, t in other.items()}


MEASURES = """
import sys
from pathlib import Path
from wcll.owndata.learning import Settings, learn
from wcll.owndata.sources import Reading, Roles, read_samples
from wcll.owndata.standing import Streaming
from wcll.owndata.streaming import SORTED, read_stream
import pyarrow.parquet, torch
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1000
def train(path, streamed):
    stream = read_stream(path, roles, Reading(), Streaming(sample=1000, buffer=5000)) if streamed else None
    learn(stream.samples if streamed else read_samples(path, roles, Reading()), roles, settings, stream=stream)
roles, settings = Roles(("ybar",)), Settings("log", model="linear", epochs=1, lr=0.01, device="cpu")
small, large = map(Path, sys.argv[1:])
train(small, True)
start = peak()
train(large, True)
streamed = peak()
train(large, False)
print(streamed - start, peak() - start)
"""


def test_memory_is_bounded(tmp_path):
    """A table of 36 MB as numbers: in memory it takes several times that, streamed a part of it."""
    paths = []
    for n in (2_000, 150_000):
        rng = np.random.default_rng(0)
        columns = {f"x{j}": rng.standard_normal(n) for j in range(30)}
        paths.append(write(tmp_path / f"{n}.parquet", columns | {"ybar": rng.integers(0, 3, n)}, 20_000))
    command = [sys.executable, "-c", MEASURES, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    streamed, kept = map(float, done.stdout.split())
    assert kept > 100  # MB: there is something to bound
    assert streamed < kept / 3


def test_predictions_come_a_part_at_a_time(big, tmp_path, capsys, monkeypatch):
    """The same lines as of a table in memory, of a file that would not fit there; rows keep their numbers."""
    out, model = tmp_path / "p.csv", tmp_path / "model"
    assert run(["train", str(big), *WORDS, "--loss", "forward", "--epochs", "2", "--out", str(model)]) == 0
    own = OwnModel.load(model)
    kept = predict(own, read_samples(big, Roles(), own.reading(labels=False)))
    with monkeypatch.context() as patched:
        patched.setattr("wcll._memory.free_memory", lambda: 100_000)
        assert run(["predict", str(model), str(big), "--out", str(out)]) == 0
    assert capsys.readouterr().out.endswith(f"4000 predictions: {out}\n")
    lines = list(csv.reader(out.read_text().splitlines()))
    wanted = [next(csv.reader([line])) for line in kept.lines()]
    assert [line[:2] for line in lines] == [line[:2] for line in wanted]
    numbers = [np.array([line[2:] for line in some[1:]], float) for some in (lines, wanted)]
    np.testing.assert_allclose(*numbers, atol=2e-6)
    odd = write(tmp_path / "odd.parquet", table() | {"colour": at(433, "pink")(table()["colour"])})
    assert run(["predict", str(model), str(odd), "--out", str(tmp_path / "q.csv")]) == 2
    assert "'pink' in row 434" in capsys.readouterr().err
    lacking = write(tmp_path / "lacking.parquet", without(table(), "a"))
    assert run(["predict", str(model), str(lacking), "--out", str(tmp_path / "q.csv")]) == 2
    assert "got no 'a'" in capsys.readouterr().err
    others = write(tmp_path / "others.parquet", {"other": [1.0, 2.0]})
    assert run(["predict", str(model), str(others), "--out", str(tmp_path / "q.csv")]) == 2
    assert "the columns of training" in capsys.readouterr().err
    assert not (tmp_path / "q.csv").exists()
