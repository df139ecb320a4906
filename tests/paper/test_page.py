"""The paper's numbers beside ours: result files, tables, claims, the search, the report."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

import wcll
from browser import look_at, needs_browser
from small import run_suite
from wcll.cli.app import run
from wcll.cli.paper import SUITES as COMMANDS
from wcll.cli.paper import print_part
from wcll.datasets import load_dataset
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.experiments.task import make_task
from wcll.losses import LOSSES
from wcll.paper import protocols as searching
from wcll.paper.claims import judge_all
from wcll.paper.comparison import (
    METHODS,
    Kept,
    find,
    keep,
    keys_of,
    make_part,
    mean_absolute,
    published,
    read_part,
    show_name,
    write_part,
)
from wcll.paper.page import findings, headline, render_report
from wcll.paper.protocols import CHOSEN
from wcll.paper.reproduction import (
    DEPENDS,
    FAILS,
    HOLDS,
    LATER,
    SUITES,
    TABLES,
    UNTOLD,
    Reproduction,
)
from wcll.report.result_tables import build_table, choose

ROOT = Path(wcll.__file__).parents[2]
RESULTS = ROOT / "results" / "paper"
STORED = Path(__file__).parent / "stored"
needs_mnist = pytest.mark.skipif("WCLL_DATA" not in os.environ, reason="needs MNIST: set WCLL_DATA")
needs_results = pytest.mark.skipif(not RESULTS.exists(), reason="the result files are not beside the package")


def small(name="table2"):
    """Two settings and three methods of a suite, in a few seconds."""
    suite = load_suite(name)
    settings = {"n_majority": 60, "epochs": 8, "batch_size": 64, "dtype": "float64"}
    return dataclasses.replace(
        suite,
        trials=2,
        settings={**suite.settings, **settings},
        grid={"lr": [5e-4, 1e-2]} if suite.grid else {},
        columns=suite.columns[:2],
        rows=tuple(row for row in suite.rows if row.title in ("pc", "wcll", "ordinary labels")),
    )


@pytest.fixture(scope="session")
def rows(small_mnist):
    return run_suite(small(), range(2), torch.device("cpu"), load=partial(load_dataset, data=small_mnist))


@pytest.fixture(scope="session")
def found(paper_results):
    return paper_results


# --- what is published -----------------------------------------------------------------------------------------------


def test_every_published_number_is_there_once():
    numbers = published()
    assert len(numbers) == 232
    places = {(one.table, one.dataset, one.p, one.minority, one.method) for one in numbers}
    assert len(places) == 232
    assert {one.table for one in numbers} == {2, 3, 4, 5, 6, 7}
    assert sum(one.dataset == "mnist" for one in numbers) == 96
    assert find(4, "mnist", 5.0, "0 2 4 6 8", "log").text() == "9.80 ± 0.00"
    assert find(4, "mnist", 5.0, "0 2 4 6 8", "ncll") is None


def test_every_published_number_of_mnist_has_a_cell():
    """Found by settings, not by titles: a suite with another p would lose its numbers."""
    matched = set()
    for name in TABLES:
        suite = load_suite(name)
        part = make_part(suite, 0, [], "")
        matched |= set(part.printed.values())
        assert not part.beside  # nothing is measured yet
        assert all(trial.dataset == "mnist" for trial in suite.all_trials([0]))
        assert {suite.trials} == {one.trials for one in part.printed.values()}
    assert matched == {one for one in published() if one.dataset == "mnist"}


def test_all_ten_methods_are_in_every_cell_of_tables_2_3_4_and_6():
    for name in ("table2", "table3", "table4", "table6"):
        assert set(METHODS) <= {row.title for row in load_suite(name).rows}


@pytest.mark.parametrize("name", SUITES)
def test_the_paper_protocol(name):
    """What the report says of the runs, of every one of them."""
    for trial in load_suite(name).all_trials([0]):
        told = (trial.labels, trial.judge, trial.noise)
        assert name == "family" or told == ("inverse-size", "inverse-size", 0)
        assert (trial.imbalance, trial.pi) == ("eq6", "declared")
        assert (trial.epochs, trial.batch_size, trial.weight_decay, trial.optimiser) == (100, 256, 1e-4, "adam")
        assert trial.validation == 1 / 9
        assert trial.imbalance_of is None
        assert name == "sizes" or trial.n_majority == 2000
        assert name == "bases" or trial.model == "linear"
    assert dict(load_suite(name).tables[0].at) == {"lr": 5e-4}


def test_figure_3_shows_runs_of_table_2():
    figure = {trial.key for trial in load_suite("figure3").all_trials()}
    assert len(figure) == 6 * 4 * 5
    assert figure <= {trial.key for trial in load_suite("table2").all_trials()}


# --- what is kept of runs, and its files -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["label-free", "oracle"])
def test_what_is_kept_chooses_what_rows_choose(how, rows):
    suite = small()
    for column in suite.columns:
        for row in suite.rows:
            candidates = [rows[trial.key] for trial in suite.candidates(column, row, 0)]
            picked = choose(candidates, how, "accuracy")
            one = choose([keep(candidate) for candidate in candidates], how, "accuracy")
            assert (one.run.key, one.epoch) == (picked.run.key, picked.epoch)
            for metric in ("accuracy", "balanced_accuracy", "minority_recall"):
                assert one.value(metric) == pytest.approx(picked.value(metric), abs=1e-5)
            assert choose([keep(candidates[0])], "last", "accuracy").epoch == 8


def test_tables_of_what_is_kept_are_those_of_rows(rows):
    """One pipeline: the same cells, marks and notes, but for what only whole rows can tell."""
    part = make_part(small(), 2, list(rows.values()), "")
    for spec in small().tables:
        kept, whole = part.tables[spec.title], build_table(small(), spec, rows, range(2))
        assert kept.heads == whole.heads
        assert [note for note in whole.notes[1:] if "official" not in note] == list(kept.notes[1:])
        for a, b in zip(kept.lines, whole.lines, strict=True):
            assert (a.title, a.mark) == (b.title, b.mark)
            assert [cell.text() for cell in a.cells] == [cell.text() for cell in b.cells]


def test_what_is_kept_survives_its_file(rows):
    row = next(iter(rows.values()))
    whole = keep(row, curves=2)
    assert Kept.from_list(json.loads(json.dumps(whole.to_list()))) == whole
    assert len(whole.recalls) == len(whole.accuracies) == 8
    lost = dataclasses.replace(whole, score=float("inf"), diverged=True, recalls=(), accuracies=())
    assert Kept.from_list(json.loads(json.dumps(lost.to_list()))) == lost


@needs_results
@pytest.mark.parametrize("name", [name for name in SUITES if name not in LATER])
def test_result_files_are_written_as_they_were(name, tmp_path, found):
    write_part(found.parts[name], tmp_path / "x.json")
    assert (tmp_path / "x.json").read_bytes() == (RESULTS / f"{name}.json").read_bytes()


def test_result_files_come_back(rows, tmp_path):
    part = make_part(small(), 2, list(rows.values()), "wcll paper run table2")
    write_part(part, tmp_path / "table2.json")
    again = read_part(tmp_path / "table2.json", small())
    assert again.runs == part.runs
    assert again.made["command"] == "wcll paper run table2"
    assert again.made["data"] == ["mnist (not the official file)"]
    assert again.tables == part.tables
    assert again.beside == part.beside


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"epochs": 9}},
        {"settings": {"n_majority": 61}},
        {"grid": {"lr": [5e-4, 2e-2]}},
        {"rows": slice(0, 2)},
        {"columns": slice(0, 1)},
    ],
    ids=str,
)
def test_runs_of_another_version_are_refused(changed, rows, tmp_path):
    write_part(make_part(small(), 2, list(rows.values()), ""), tmp_path / "table2.json")
    suite = small()
    ((part, value),) = changed.items()
    old = getattr(suite, part)
    new = old[value] if isinstance(value, slice) else {**old, **value}
    with pytest.raises(
        InputError,
        match=r"table2.json: expected runs of the suite table2 as it is now, got those of another version; make them again with: wcll paper run table2 --results",
    ):
        read_part(tmp_path / "table2.json", dataclasses.replace(suite, **{part: new}))


def test_rows_that_a_suite_got_since_are_named_and_left_out(rows, tmp_path):
    """Nothing of them was run: all else is as it was. A row of which some runs are there is another version."""
    write_part(make_part(small(), 2, list(rows.values()), "wcll paper run table2"), tmp_path / "table2.json")
    (new,) = [row for row in load_suite("table2").rows if row.title == "wcll, Algorithm 1"]
    grown = dataclasses.replace(small(), rows=(*small().rows, new))
    part = read_part(tmp_path / "table2.json", grown)
    assert part.lacking == ("wcll, Algorithm 1",)
    assert part.methods == [row.title for row in small().rows]
    assert part.tables == read_part(tmp_path / "table2.json", small()).tables
    text = (tmp_path / "table2.json").read_text()
    some = small().candidates(small().columns[1], small().rows[0], 1)[0].key
    (tmp_path / "table2.json").write_text(re.sub(rf'\n\["{some}"[^\n]*', "", text))
    with pytest.raises(InputError, match="another version"):
        read_part(tmp_path / "table2.json", grown)


def test_runs_of_another_revision_of_a_loss_are_refused(rows, tmp_path, monkeypatch):
    write_part(make_part(small(), 2, list(rows.values()), ""), tmp_path / "table2.json")
    monkeypatch.setitem(LOSSES._items, "pc", dataclasses.replace(LOSSES["pc"], revision=2))
    with pytest.raises(InputError, match="another version"):
        read_part(tmp_path / "table2.json", small())


def shortened_run(text):
    plain = json.loads(text)
    plain["runs"][0].pop()
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:200], "a file that 'wcll paper' wrote"),
        (lambda text: text.replace('"table2"', '"table3"'), "those of something else"),
        (lambda text: "[]", "those of something else"),
        (lambda text: text.replace('"trials"', '"trail"'), "a number of trials that is none"),
        (lambda text: re.sub(r"\n\[[^\n]*\],\n", "\n", text, count=1), "another version"),
        (lambda text: re.sub(r'\["\w{24}"', '["' + "0" * 24 + '"', text, count=1), "another version"),
        (shortened_run, "ValueError"),
    ],
)
def test_damaged_result_files(damage, message, rows, tmp_path):
    path = tmp_path / "table2.json"
    write_part(make_part(small(), 2, list(rows.values()), ""), path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError, match=message):
        read_part(path, small())


def test_fewer_trials_do_not_replace_more(rows, tmp_path):
    write_part(make_part(small(), 2, list(rows.values()), ""), tmp_path / "table2.json")
    first = {trial.key for trial in small().all_trials([0])}
    fewer = make_part(small(), 1, [row for row in rows.values() if row.key in first], "")
    with pytest.raises(InputError, match=r"--results: expected a file of at most 1 trials to replace, got .* of 2"):
        write_part(fewer, tmp_path / "table2.json")
    assert read_part(tmp_path / "table2.json", small()).trials == 2


def test_incomplete_results_are_not_written(rows, tmp_path):
    some = list(rows.values())[:-1]
    with pytest.raises(InputError, match="--results: expected all 24 runs of table2, got 1 missing"):
        write_part(make_part(small(), 2, some, ""), tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


# --- the command -----------------------------------------------------------------------------------------------------


def test_a_small_cell_is_what_it_was(small_mnist, tmp_path, capsys, monkeypatch):
    """From files in MNIST's format through the command line to the text of the table, against stored runs."""
    monkeypatch.setattr("wcll.cli.paper.load_suite", small)
    options = ["--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1"]
    assert (
        run(["paper", "run", "table2", "--only", "mnist", "--trials", "2", "--results", str(tmp_path), *options]) == 0
    )
    shown = capsys.readouterr()
    assert "left" in shown.err
    print_part(read_part(STORED / "table2.json", small()))
    assert shown.out == capsys.readouterr().out
    assert re.search(r"PC +66\.0 / \d+\.\d ± \d+\.\d° +69\.7 / ", shown.out)  # the paper's beside ours
    fresh = read_part(tmp_path / "table2.json", small())
    assert [run.key for run in fresh.runs.values()] == keys_of(small(), 2)
    assert run(["paper", "run", "table2", "--trials", "1", *options]) == 0
    assert "nothing is left to do" in capsys.readouterr().err


def test_figure_3_prints_the_imbalanced_class_and_keeps_curves(small_mnist, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.paper.load_suite", small)
    options = ["--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1"]
    assert run(["paper", "run", "figure3", "--trials", "1", "--results", str(tmp_path), *options]) == 0
    assert "minority recall in percent" in capsys.readouterr().out
    curves = [one.recalls for one in read_part(tmp_path / "figure3.json", small("figure3")).runs.values()]
    assert {len(curve) for curve in curves} == {8}


def test_several_names_are_one_plan(small_mnist, tmp_path, capsys, monkeypatch):
    """Runs that table 2 and figure 3 share are counted once; what is named twice is run once."""
    monkeypatch.setattr("wcll.cli.paper.load_suite", small)
    options = ["--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1", "--trials", "1"]
    counts = []
    for names in (["table2"], ["figure3"], ["table2", "figure3", "table2"]):
        assert run(["paper", "run", *names, "--only", "mnist", "--dry-run", *options]) == 0
        counts.append(int(re.search(r"(\d+) runs, 0 of them", capsys.readouterr().out)[1]))
    assert max(counts[:2]) <= counts[2] <= counts[0] + counts[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "table8"], "NAMES: expected one of 'table2'"),
        (["run", "table6", "--only", "cifar10"], "--only: expected one of 'mnist', got 'cifar10'"),
        (["run", "table2", "--trials", "0"], "--trials"),
        (["run", "table2", "--results", "/dev/null/x"], "--results: expected a folder"),
        (["run", "table2", "--results", "new", "--data", "/no/such"], "/no/such"),
        (["run", "table2", "--data", "/no/such"], "/no/such"),
        (["report", "--results", "/no/such"], "--results: expected a folder of result files, got /no/such"),
        (["report", "--out", "x.pdf"], r"--out (ending): expected one of '.html', '.md', got '.pdf'"),
        (["report", "--out", "/no/such/x.html"], "--out: expected a folder that can be written"),
    ],
)
def test_bad_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_files_that_happen_to_be_here_do_not_replace_suites(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("table2", "_methods", "_mnist"):
        (tmp_path / name).write_text("trials = 99")
    assert load_suite("table2").trials == 5
    assert len(load_suite("table2").rows) == 20


def test_all_is_all(capsys):
    assert tuple(COMMANDS) == SUITES
    assert run(["paper", "run", "all", "--trials", "1", "--dry-run", "--only", "cifar100"]) == 2  # heeds its options
    assert "--only: expected one of 'cifar10', 'mnist', 'tiny-imagenet'" in capsys.readouterr().err


@needs_mnist
@needs_results
def test_a_real_cell_is_what_the_result_file_says(found, tmp_path):
    """Another machine and arithmetic: near, not equal."""
    table = load_suite("table2")
    one = dataclasses.replace(
        table, columns=table.columns[:1], rows=tuple(r for r in table.rows if r.title in ("pc", "log", "wcll")), grid={},
        settings={**table.settings, "lr": 5e-4},
    )  # fmt: skip
    for row in run_suite(one, [0], torch.device("cpu")).values():
        stored = found.parts["table2"].runs[row.key]
        assert row.metrics["accuracy"] == pytest.approx(stored.value("accuracy", 100), abs=0.015)


@needs_results
def test_a_cpu_and_another_torch_give_the_same_table():
    """Two trials of table 5: after the last epoch, where labels choose and at best, run by run."""
    gpu, cpu = (read_part(RESULTS.parent / folder / "table5.json", load_suite("table5")) for folder in ("paper", "cpu"))
    assert (gpu.made["device"], cpu.made["device"]) == ("NVIDIA H200", "x86_64")
    assert gpu.made["torch"] != cpu.made["torch"]
    assert gpu.made["commit"] == cpu.made["commit"]
    assert len(cpu.runs) == 128
    for key, one in cpu.runs.items():
        other = gpu.runs[key]
        assert (one.chosen, one.best) == (other.chosen, other.best)
        for epoch, figures in one.figures.items():
            assert figures == pytest.approx(other.figures[epoch], abs=2e-4)


# --- the comparison and the claims -----------------------------------------------------------------------------------


def test_names():
    assert [show_name(name) for name in ("ml-cll", "wcll, Eq. 12", "wcll random weights")] == [
        "ML-CLL", "WCLL, Eq. 12", "WCLL random weights"]  # fmt: skip


def test_wcll_is_within_two_points(found):
    assert len(found.wcll) == 12
    assert mean_absolute(found.wcll) <= 2
    assert len(found.beside) == 96
    on_images = sum(len(some) for part in found.images.values() for some in part.all_beside.values())
    assert len(found.missing) == 232 - 96 - on_images
    assert not any(one.dataset == "mnist" for one in found.missing)


def test_the_full_number_of_trials_on_the_official_files(found):
    for name, part in found.parts.items():
        assert part.trials == load_suite(name).trials
        assert part.made["data"] == ["mnist"]
        assert all(table.complete for table in part.tables.values())


def test_rank_agreement(found):
    table = found.parts["table2"]
    column = table.columns[0]
    pairs = [
        (one.mean, table.cell("fair", method, column).mean)
        for (method, place), one in table.printed.items()
        if place == column
    ]
    assert table.rank_agreement("fair", column) == pytest.approx(kendalltau(*zip(*pairs, strict=True)).statistic)
    same = dataclasses.replace(table)
    same.printed.update(
        {place: dataclasses.replace(one.printed, mean=100 * one.ours.mean) for place, one in table.beside.items()}
    )
    assert same.rank_agreement("paper", column) == pytest.approx(1)


def test_every_claim_has_a_verdict_and_evidence(found):
    claims = judge_all(found)
    assert len(claims) == 27
    assert {claim.verdict for claim in claims} <= {HOLDS, FAILS, DEPENDS, UNTOLD}
    assert all(len(claim.evidence) > 40 for claim in claims)
    (best,) = [claim for claim in claims if "most accurate" in claim.statement]
    assert best.verdict == DEPENDS
    assert "What decides is the rate" in best.evidence


def test_fitted_numbers_stand_apart(found):
    numbers = headline(found)
    assert numbers["fitted"]["measured"] + numbers["others"]["measured"] == 96
    assert numbers["fitted"]["close"] / 15 > 0.8 > 0.2 > numbers["others"]["close"] / 81


def test_a_report_of_one_trial(found):
    parts = {name: dataclasses.replace(part, trials=1) for name, part in found.parts.items()}
    once = Reproduction(parts, found.search)
    text = render_report(once, ".md")
    assert "nan points" not in text
    assert "1 trial. The paper has 5." in text


def test_the_report_without_the_search(found):
    alone = Reproduction(found.parts, None)
    for ending in (".md", ".html"):
        text = render_report(alone, ending)
        assert "The search for the protocol" not in text
        assert "Every number" in text


def test_findings_are_computed_from_the_published_numbers(found):
    texts = {finding.title: finding.text for finding in findings(found)}
    assert "the gain is 12.56 points" in texts["“+17.56 %” on DDSM"]
    reused = texts["The same number for 5 trials and for 10"]
    assert "72.30 ± 1.23 stands in table 2 for 5 trials, in table 5 for 10 trials" in reused
    assert "71.40 ± 1.62 stands in table 2" in reused
    assert "24 of the 26" in texts["The test set of DDSM"]
    assert "exactly this share" in texts["LOG, 9.80 ± 0.00"]


@needs_mnist
def test_a_plain_logarithm_does_not_fail_in_table_4():
    """What the finding on LOG's 9.80 says: softmax, sum, logarithm, one after the other, and nothing breaks here."""
    table = load_suite("table4")
    trial = table.candidates(table.columns[0], table.rows[0], 0)[0]
    task = make_task(trial, load_dataset("mnist"))
    x, ybar = task.train.x.flatten(1).float() / 255, torch.as_tensor(task.train.ybar)
    model = torch.nn.Linear(784, 10)
    adam = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-4)
    for _ in range(40):
        for batch in torch.randperm(len(x)).split(256):
            others = model(x[batch]).softmax(-1).scatter(1, ybar[batch, None], 0.0).sum(-1)
            adam.zero_grad()
            (-9 * others.log().mean()).backward()
            adam.step()
    found = model(task.test.x.flatten(1).float() / 255).argmax(-1).numpy()
    assert (found == task.test.y).mean() > 0.4
    assert np.argmax(np.full(10, np.nan)) == 0  # while outputs that are not numbers are "class 0"


# --- the search ------------------------------------------------------------------------------------------------------


def test_the_search_has_what_mnist_has_images_for():
    base = searching.base_suite()
    sizes = {(generator, size): len(suite.columns) for generator, size, suite in searching.variants(base)}
    assert len(sizes) == 20
    assert {count for (generator, _), count in sizes.items() if "named more" not in generator} == {12}
    assert [sizes["uniform labels, rare classes named more", size] for size in searching.SIZES] == [12, 12, 11, 8]
    keys = [trial.key for trial in searching.search_trials(base, 1)]
    assert len(set(keys)) == len(keys) == 11_280


def test_the_searchs_distance(found):
    base = found.search.base
    off = {(CHOSEN, column.title): searching.printed_mean(CHOSEN.loss, column) + 3 for column in base.columns}
    fit = searching.Search(base, 3, off, {}).distance(CHOSEN)
    assert fit.distance == pytest.approx(3)
    assert fit.cells == 12
    assert searching.printed_mean("log", base.columns[0]) is None  # not printed in table 2


def test_the_search_agrees_with_the_tables(found):
    """Its runs have no held-out labels; the training sets are the same, so are the first three trials."""
    for column, one in zip(found.search.base.columns, found.wcll, strict=True):
        first = 100 * np.mean([one.ours.values[seed] for seed in range(3)])
        assert found.search.figures[CHOSEN, column.title] == pytest.approx(first, abs=0.7)


def test_search_files_come_back_or_are_refused(found, tmp_path, monkeypatch):
    listed = searching.search_trials(found.search.base, found.search.trials)
    every = [SimpleNamespace(key=trial.key) for trial in listed]
    monkeypatch.setattr(searching, "search_trials", lambda base, trials: every)  # to list them takes seconds
    searching.write_search(found.search, "wcll paper run search", tmp_path / "search.json")
    assert searching.read_search(tmp_path / "search.json").figures == found.search.figures
    text = (tmp_path / "search.json").read_text()
    plain = json.loads(text)
    for figures in ([], plain["figures"][1:], [*plain["figures"][:-1], plain["figures"][-1][:-1]], "x"):
        (tmp_path / "search.json").write_text(json.dumps({**plain, "figures": figures}))
        with pytest.raises(InputError, match="a file that 'wcll paper' wrote"):
            searching.read_search(tmp_path / "search.json")
    (tmp_path / "search.json").write_text(text)
    monkeypatch.undo()
    monkeypatch.setattr(searching, "SIZES", (1000, 2000))
    with pytest.raises(InputError, match="another version"):
        searching.read_search(tmp_path / "search.json")


def test_the_search_command(small_mnist, tmp_path, capsys, monkeypatch):
    """From the command to its file and back, with one way to draw labels and few images."""
    whole = searching.base_suite()
    tiny = dataclasses.replace(
        whole,
        columns=whole.columns[:2],
        rows=whole.rows[:6],
        settings={**whole.settings, "epochs": 2, "batch_size": 64},
    )
    monkeypatch.setattr(searching, "base_suite", lambda: tiny)
    monkeypatch.setattr(searching, "SIZES", (60,))
    monkeypatch.setattr(searching, "GENERATORS", {searching.INVERSE_SIZE: {"labels": "inverse-size"}})
    options = ["--trials", "1", "--data", str(small_mnist), "--store", str(tmp_path / "s.sqlite"), "--processes", "1"]
    assert run(["paper", "run", "search", "--dry-run", *options]) == 0
    assert "48 runs" in capsys.readouterr().out
    assert run(["paper", "run", "search", "--only", "mnist", "--results", str(tmp_path / "new"), *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10
    found = searching.read_search(tmp_path / "new" / "search.json")
    assert found.trials == 1
    assert len(found.figures) == 2 * 6 * 4 * 2
    last, best = (found.figures[searching.Protocol(searching.INVERSE_SIZE, 60, "pc", 5e-4, e), tiny.columns[0].title]
                  for e in searching.EPOCHS)  # fmt: skip
    assert 0 <= last <= best <= 100


def test_a_search_in_which_nothing_is_near(found):
    far = dict.fromkeys(found.search.figures, 50.0)
    text = render_report(Reproduction(found.parts, dataclasses.replace(found.search, figures=far)), ".md")
    assert "Among them" not in text


def test_only_what_could_be_run_everywhere_is_compared_with_all(found):
    search = found.search
    for protocol, _ in search.together(CHOSEN.loss):
        assert len(search.settings(dataclasses.replace(protocol, loss=CHOSEN.loss))) == 12
    few = next(p for p, _ in search.figures if "named more" in p.generator and p.size == 3000 and p.loss == CHOSEN.loss)
    assert len(search.settings(few)) == 8
    assert search.distance(CHOSEN, search.settings(few)).cells == 8


# --- the report ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def page(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("paper") / "page.html"
    path.write_text(render_report(found, ".html"))
    return path


def test_the_report_has_every_published_number(found, page):
    markdown, html = render_report(found, ".md"), page.read_text()
    assert all("data: mnist" in text for text in (markdown, html))
    for one in found.beside:
        name, printed = re.escape(show_name(one.printed.method)), one.printed.text()
        assert re.search(rf"\| {re.escape(one.column)} \| {name}[†‡]* \| {re.escape(printed)} \| ", markdown)
        assert printed in html
        assert f'<span class="apart">{one.difference:+.1f}</span>' in html
    assert "Told the class sizes: WCLL" in markdown
    assert "PC† " in markdown
    assert "http" not in html.replace("http://www.w3.org", "")  # one file, nothing loaded
    assert html.count("<polyline") == 12 * 4


@needs_results
def test_the_report_refuses_old_rows(tmp_path, capsys, monkeypatch):
    def changed(name):
        suite = load_suite(name)
        return dataclasses.replace(suite, settings={**suite.settings, "n_majority": 1999})

    monkeypatch.setattr("wcll.paper.reproduction.load_suite", changed)
    out = tmp_path / "page.html"
    assert run(["paper", "report", "--results", str(RESULTS), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "table2.json: expected runs of the suite table2 as it is now, got those of another version" in error
    assert error.count("\n") == 1
    assert not out.exists()


@needs_results
def test_the_report_command(found, page, tmp_path, capsys, monkeypatch):
    assert run(["paper", "report", "--results", str(RESULTS), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text() == page.read_text()
    monkeypatch.setattr("wcll.cli.paper.read_reproduction", lambda results: found)  # the same: to read it takes seconds
    assert run(["paper", "report", "--results", str(RESULTS), "--out", str(tmp_path / "page.md")]) == 0
    monkeypatch.undo()
    assert "Does the paper hold?" in (tmp_path / "page.md").read_text()
    figure = ElementTree.fromstring((tmp_path / "figures" / "figure3.svg").read_text())
    assert len(figure.findall(".//{*}polyline")) == 9 * 4
    assert run(["paper", "report", "--results", str(tmp_path), "--out", str(tmp_path / "x.md")]) == 2
    assert "make it with: wcll paper run table2 --results" in capsys.readouterr().err


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desktop"])
def test_page_in_a_browser(page, width, dark, tmp_path):
    seen = look_at(page, width, dark, tmp_path)
    assert seen["inner"] == width
    assert seen["overflow"] <= 0
    assert seen["drawn"] == 12
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150
    assert seen["shaded"] > 110  # numbers on coloured cells
