"""The paper on images: suites, the order of runs, and results that grow from call to call."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from itertools import product

import numpy as np
import pytest

from small import run_suite
from wcll.cli import paper
from wcll.cli.app import run
from wcll.datasets import load_dataset
from wcll.datasets.cifar import CIFAR10_FILES
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.paper.comparison import METHODS, Part, grown, keys_of, make_part, published, read_part, write_part
from wcll.paper.protocols import FACTORS, IMAGES, Growing, stages

DATASETS = ("cifar10", "tiny-imagenet", "ddsm")


def test_every_published_number_on_images_has_a_cell():
    matched = set()
    for name in IMAGES:
        part = make_part(load_suite(name), 0, [], "")
        matched |= {one for printed in part.all_printed.values() for one in printed.values()}
        assert set(METHODS) < set(part.methods)
    assert matched == {one for one in published() if one.dataset in DATASETS}


def test_what_is_open_is_searched_one_factor_at_a_time():
    suite = load_suite(FACTORS)
    assert len(list(suite.all_trials())) <= 60
    base, *others = suite.columns
    assert base.settings == {}
    usual = {trial.key for trial in load_suite("table2-cifar10").all_trials([0])}
    (same,) = (column for column in others if "as in the tables" in column.title)
    assert all(trial.key in usual for row in suite.rows for trial in suite.candidates(same, row, 0))
    assert all(len(column.settings.keys() - {"judge"}) <= 2 for column in others)


def tiny(name):
    """Two settings and two methods of a suite, in a second."""
    suite = load_suite(name)
    settings = {"n_majority": 40, "epochs": 2, "batch_size": 16, "model": {"name": "cnn9", "width": 1}}
    return dataclasses.replace(
        suite,
        trials=min(suite.trials, 2),
        settings={**suite.settings, **settings},
        columns=suite.columns[:2],
        rows=tuple(row for row in suite.rows if row.title in ("wcll", "log")),
    )


def test_every_cell_is_run_once_before_any_is_run_twice():
    suites = [tiny("table2-cifar10"), dataclasses.replace(tiny("table3-cifar10"), trials=1)]
    seen = [(stage, name, trial) for stage in stages(suites) for name, some in stage.trials.items() for trial in some]
    assert [stage.title for stage in stages(suites)] == [
        f"Images, trial {seed} at {lr}" for seed, lr in product((1, 2), ("5e-05", "5e-06"))
    ]
    for i, (seed, lr) in enumerate(product((0, 1), (5e-5, 5e-6))):
        stage = list(stages(suites))[i]
        found = [(trial.seed, trial.lr) for some in stage.trials.values() for trial in some]
        assert found == [(seed, lr)] * (8 if seed == 0 else 4)
    wanted = {trial.key for suite in suites for trial in suite.all_trials()}
    assert {trial.key for _, _, trial in seen} == wanted
    assert len(seen) == len(wanted)
    assert list(stages([])) == []


def test_what_the_paper_prints_comes_first():
    """p = 10 is announced for CIFAR-10 and not printed in tables 2 and 3."""
    suite = load_suite("table3-cifar10")
    found = list(stages([suite, load_suite("table7")]))  # of three and of five trials
    ratios = [{trial.p for trial in stage.trials.get(suite.name, ())} for stage in found]
    assert ratios == [{5.0}] * 6 + [set()] * 4 + [{10.0}] * 6
    assert [stage.title for stage in found][9:11] == [
        "Images, trial 5 at 5e-06",
        "Images, trial 1 at 5e-05, what is not printed",
    ]
    wanted = {trial.key for stage in found for trial in stage.trials.get(suite.name, ())}
    assert wanted == set(keys_of(suite, 3))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A few noisy images of five classes in CIFAR-10's format."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    (folder / "cifar-10-batches-bin").mkdir()
    for name in CIFAR10_FILES:
        y = np.repeat(np.arange(5, dtype=np.uint8), 12)
        pixels = rng.integers(0, 100, (60, 3072)) + 30 * y[:, None]
        records = np.concatenate([y[:, None], pixels.astype(np.uint8)], axis=1)
        (folder / "cifar-10-batches-bin" / name).write_bytes(records.tobytes())
    return folder


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(paper, "load_suite", tiny)
    monkeypatch.setattr(paper, "IMAGES", ("table2-cifar10", "table3-cifar10"))


def images(tmp_path, data, *options):
    return run(
        [
            "paper",
            "run",
            "images",
            "--data",
            str(data),
            "--results",
            str(tmp_path / "results"),
            "--processes",
            "1",
            *options,
        ]
    )


def runs_of(tmp_path, name):
    return [line[0] for line in json.loads((tmp_path / "results" / f"{name}.json").read_text())["runs"]]


def test_results_grow_and_what_they_have_is_not_run_again(short, tmp_path, data, capsys):
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert images(tmp_path, data, "--trials", "1", *store) == 0
    assert runs_of(tmp_path, "table2-cifar10") == keys_of(tiny("table2-cifar10"), 1)
    assert "One trial." in capsys.readouterr().out
    fresh = ["--store", str(tmp_path / "t.sqlite")]  # another machine, which has the result files alone
    assert images(tmp_path, data, "--trials", "2", *fresh) == 0
    shown = capsys.readouterr()
    assert "trial 1" not in shown.err
    assert shown.err.count("8 runs, 0 of them") == 2  # a second trial of two tables, at each of two rates
    assert runs_of(tmp_path, "table2-cifar10") == keys_of(tiny("table2-cifar10"), 2)
    assert images(tmp_path, data, "--trials", "2", *fresh) == 0
    assert "runs" not in capsys.readouterr().err
    made = json.loads((tmp_path / "results" / "table2-cifar10.json").read_text())["made"]
    assert made["command"] == "wcll paper run images --trials 2"
    assert made["data"] == ["cifar10 (not the official file)"]


def test_data_that_are_not_there_are_left_for_another_machine(short, tmp_path, data, capsys, monkeypatch):
    monkeypatch.setattr(paper, "IMAGES", ("table3-cifar10", "table2-tiny-imagenet"))
    monkeypatch.delenv("WCLL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = ["--store", str(tmp_path / "s.sqlite"), "--trials", "1"]
    assert images(tmp_path, data, *store) == 0
    assert "tiny-imagenet: not found, so its runs are left for a machine that has it" in capsys.readouterr().err
    assert sorted(path.stem for path in (tmp_path / "results").iterdir()) == [FACTORS, "table3-cifar10"]
    assert images(tmp_path, data, *store, "--only", "tiny-imagenet") == 2
    assert "dataset 'tiny-imagenet': expected" in capsys.readouterr().err


def test_out_of_time_leaves_what_is_finished(short, tmp_path, data, capsys, monkeypatch):
    store = ["--store", str(tmp_path / "s.sqlite")]
    monkeypatch.setattr(paper, "STAGE", 1e9)  # no second stage begins in a call
    codes = []
    while len(codes) < 10 and (not codes or codes[-1]):
        codes.append(images(tmp_path, data, "--max-time", "1h", *store))
    assert codes == [3, 3, 3, 3, 3, 0]  # one stage of the tables' four and the factors' two each
    shown = capsys.readouterr()
    at = [f"trial {seed} at {lr}" for seed, lr in product((1, 2), ("5e-05", "5e-06"))]
    wanted = [*at, *(f"{one}, what is not printed" for one in at[:2])]  # of what the paper leaves open one trial
    assert re.findall(r"^Images, (.*?): ", shown.err, re.MULTILINE) == wanted
    assert shown.err.count("out of time: the same command goes on from here") == 5
    assert "(0 of 1)" in shown.out  # the fair protocol needs both rates
    whole = tmp_path / "whole"
    assert run(["paper", "run", "images", "--data", str(data), "--results", str(whole), *store]) == 0
    for name in (FACTORS, "table2-cifar10", "table3-cifar10"):
        grew, once = (json.loads((folder / f"{name}.json").read_text()) for folder in (tmp_path / "results", whole))
        assert grew["runs"] == once["runs"]
        assert grew["version"] == once["version"]


def test_a_part_of_the_results_is_read_only_where_it_will_do(tmp_path, data):
    suite = tiny("table3-cifar10")
    rows = run_suite(suite, [0], load=partial(load_dataset, data=data))
    half = {key: rows[key] for key in list(rows)[:3]}
    part = grown(None, suite, half, "wcll paper run images")
    assert grown(part, suite, half, "") is part
    assert grown(None, suite, {}, "") is None
    path = tmp_path / "table3-cifar10.json"
    with pytest.raises(InputError, match="expected all 8 runs of table3-cifar10, got 5 missing"):
        write_part(part, path)
    write_part(part, path, partial=True)
    assert list(read_part(path, suite, partial=True).runs) == list(part.runs)
    with pytest.raises(InputError, match="those of another version"):
        read_part(path, suite)
    other = dataclasses.replace(suite, settings={**suite.settings, "epochs": 3})
    with pytest.raises(InputError, match="those of another version"):
        Growing([other], tmp_path)
    more = grown(part, suite, rows, "wcll paper run images")
    assert isinstance(more, Part)
    assert more.made["seconds"] == pytest.approx(sum(row.provenance["seconds"] for row in rows.values()), abs=0.2)


def test_a_try_with_fewer_epochs_leaves_no_result_file(short, tmp_path, data, capsys):
    options = ["--only", "cifar10", "--trials", "1", "--epochs", "1", "--data", str(data)]
    options += ["--store", str(tmp_path / "s.sqlite"), "--processes", "1"]
    assert run(["paper", "run", "table3", *options]) == 0
    assert "51.0 / " in capsys.readouterr().out  # the printed number
    assert run(["paper", "run", "table3", *options, "--results", str(tmp_path / "r")]) == 2
    assert "--epochs: expected none with --results, got 1" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
    assert run(["paper", "run", "table3", "--only", "cifar100"]) == 2
    assert "--only: expected one of 'cifar10', 'mnist'" in capsys.readouterr().err


def test_settings_that_were_not_begun_are_left_out_and_named():
    suite = load_suite("table2-cifar10")
    first = suite.candidates(suite.columns[0], suite.rows[0], 0)[0]
    part = Part(suite, 1, {first.key: None}, {}).begun
    assert part.columns == [suite.columns[0].title]
    assert part.left == tuple(column.title for column in suite.columns[1:])
    assert Part(suite, 1, {}, {}).begun.columns == [column.title for column in suite.columns]  # nothing begun: all
