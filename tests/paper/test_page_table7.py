"""Table 7: mammograms, whose three figures a method stand beside the printed ones."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from wcll.cli.app import run
from wcll.cli.paper import ALONE
from wcll.cli.paper import SUITES as COMMANDS
from wcll.experiments import load_suite
from wcll.experiments.suite import load_base
from wcll.paper.comparison import METHODS, Kept, fields_of, make_part, metrics_of, published, read_part

Image = pytest.importorskip("PIL.Image")


def small(name="table7"):
    """Three methods, a narrow network and two epochs, on images of 16 pixels a side."""
    suite = load_suite(name)
    narrow = {"pixels": 8, "test_per_class": 5, "model": {"name": "cnn9", "width": 1}, "epochs": 2, "batch_size": 16}
    rows = tuple(row for row in suite.rows if row.title in ("pc", "exp", "ordinary labels"))
    return dataclasses.replace(suite, settings={**suite.settings, **narrow}, rows=rows)


@pytest.fixture(scope="module")
def mammograms(tmp_path_factory):
    """Noise in place of breasts, two images a case."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    lines = ["path,label,case"]
    for label, cases in (("normal", 20), ("benign", 12), ("cancer", 12)):
        (folder / "ddsm-thumbs" / label).mkdir(parents=True)
        for case in range(cases):
            for side in ("left", "right"):
                path = f"{label}/{case}-{side}.png"
                Image.fromarray(rng.integers(0, 256, (16, 16), dtype=np.uint8)).save(folder / "ddsm-thumbs" / path)
                lines.append(f"{path},{label},{label}-{case}")
    (folder / "ddsm-thumbs" / "manifest.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_its_protocol():
    suite = load_suite("table7")
    assert suite.trials >= 5
    for trial in suite.all_trials([0]):
        assert (trial.dataset, trial.model, trial.model_options, trial.pixels) == ("ddsm", "cnn9", (), 64)
        assert (trial.imbalance, trial.shares, trial.test_per_class) == ("shares", (0.61, 0.19, 0.2), 100)
        assert (trial.labels, trial.judge, trial.pi, trial.noise) == ("inverse-size", "inverse-size", "declared", 0)
        assert (trial.epochs, trial.batch_size, trial.weight_decay, trial.optimiser) == (100, 256, 1e-4, "adam")
    assert suite.grid == {"lr": [5e-5, 5e-6]}
    assert dict(suite.tables[0].at) == {"lr": 5e-5}
    for words in ("260", "501 normals", "100 a class", "no case is on both sides", "confounded with the scanner"):
        assert words in suite.about


def test_methods_for_images():
    rows = load_base("_image_methods").rows
    assert tuple(row.title for row in rows[:10]) == METHODS
    assert [row.title for row in rows[10:]] == ["wcll, Algorithm 1", "forward, Q from counts", "ordinary labels"]


def test_every_number_of_table_7_has_a_cell():
    part = make_part(load_suite("table7"), 0, [], "")
    assert [len(some) for some in part.all_printed.values()] == [10, 6, 10]
    assert {one for some in part.all_printed.values() for one in some.values()} == {
        one for one in published() if one.table == 7
    }
    assert part.all_printed["recall_1"]["wcll", "DDSM"].mean == 76.54
    assert not any(part.all_beside.values())


def test_all_is_without_it():
    assert "table7" in ALONE
    assert not set(ALONE) & set(COMMANDS)


def test_the_command_prints_and_keeps_three_figures(mammograms, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.paper.load_suite", small)
    options = ["--data", str(mammograms), "--store", str(tmp_path / "s.sqlite"), "--processes", "1", "--trials", "1"]
    assert run(["paper", "run", "table7", "--dry-run", *options]) == 0
    assert re.search(r"6 runs, .* 6 left", capsys.readouterr().out)
    assert run(["paper", "run", "table7", "--results", str(tmp_path), *options]) == 0
    shown = capsys.readouterr()
    assert "left" in shown.err
    assert re.search(r"method +total +benign +cancer\n", shown.out)
    cell = r"\d+\.\d[°§]*"
    assert re.search(rf"PC +34\.6 / {cell} +4\.2 / {cell} +25\.4 / {cell}\n", shown.out)
    assert re.search(rf"EXP +38\.[89] / {cell} +{cell} +28\.1 / {cell}\n", shown.out)  # no benign in print
    assert "of 5 within 2 points" in shown.out
    assert "confounded with the scanner" in " ".join(shown.out.split())
    part = read_part(tmp_path / "table7.json", small())
    for method in part.methods:
        total, *recalls = (
            part.cell("paper", method, "DDSM", metric).mean
            for metric in ("accuracy", "recall_0", "recall_1", "recall_2")
        )
        assert total == pytest.approx(sum(recalls) / 3, abs=1e-4)
        assert part.cell("fair", method, "DDSM", "recall_2").values.keys() == {0}


def test_what_is_kept_is_what_tables_show():
    metrics = metrics_of(load_suite("table7"))
    assert metrics == ("accuracy", "balanced_accuracy", "minority_recall", "recall_0", "recall_1", "recall_2")
    figures = {epoch: dict.fromkeys(metrics, epoch / 10) for epoch in (1, 2, 3)}
    one = Kept("k", False, 1.0, 3, 2, 1, figures)
    assert len(one.to_list()) == len(fields_of(metrics)) - 1  # no curve
    assert Kept.from_list(one.to_list(), metrics) == one
    for wrong in (one.to_list()[:-1], [*one.to_list(), 1.0], [*one.to_list()[:-1], 2.0]):
        with pytest.raises((ValueError, TypeError)):
            Kept.from_list(wrong, metrics)
    with pytest.raises((ValueError, TypeError)):
        Kept.from_list(one.to_list())  # of other metrics
