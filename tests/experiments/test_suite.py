"""Trials and suites: keys, grids, and what is said of a file that is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import wcll
from small import PC, SMALL, WCLL, suite_toml
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.experiments import Trial, load_suite, packaged_suites, parse_suite
from wcll.experiments.grouping import in_step, plan
from wcll.experiments.suite import Axis

LEAST = {"dataset": "digits", "loss": "wcll", "lr": 1e-3, "seed": 0}


def test_the_key_is_a_function_of_meaning():
    trial = Trial.of(LEAST)
    assert trial.key == Trial.of({**LEAST, "lr": 0.001, "noise": 0, "weights": "auto"}).key
    eq6 = {**LEAST, "imbalance": "eq6", "minority": [1]}
    assert Trial.of({**eq6, "p": 2}).key == Trial.of({**eq6, "p": 2.0}).key
    different = [{"lr": 2e-3}, {"seed": 1}, {"loss": {"name": "wcll", "reading": "alg1"}}, {"weights": "none"}]
    different += [{"pi": "declared"}, {"epochs": 7}, {"model": {"name": "mlp", "hidden": 9}}, {"judge": "true"}]
    assert len({trial.key, *(Trial.of({**LEAST, **change}).key for change in different)}) == 1 + len(different)


def test_a_field_that_is_not_used_leaves_no_trace_in_the_key():
    assert not {"p", "minority", "bias", "resample"} & set(Trial.of(LEAST).config())
    assert None not in Trial.of(LEAST).config().values()


def test_shares_that_mean_the_same_have_the_same_key():
    keys = {Trial.of({**LEAST, "imbalance": "shares", "shares": s}).key for s in ([61, 19, 20], [0.61, 0.19, 0.2])}
    assert len(keys) == 1
    assert not {"shares", "test_per_class", "pixels"} & set(Trial.of(LEAST).config())


def test_keys_do_not_change_by_accident():
    """Results of earlier versions are found by these; if this fails, every store is orphaned."""
    eq9 = {**LEAST, "loss": {"name": "wcll", "reading": "eq9"}}
    assert Trial.of(eq9).key == "6160664d86026604c76c4cf9"  # of when Eq. 9 was the default
    assert Trial.of(eq9).config()["loss_options"] == {}
    assert Trial.of(LEAST).config()["loss_options"] == {"reading": "algorithm1"}


def test_every_packaged_suite_reads():
    for name in packaged_suites():
        suite = load_suite(name)
        assert len({trial.key for trial in suite.all_trials()}) == len(list(suite.all_trials()))


ABLATION = Path(__file__).parents[2] / "benchmarks" / "ablation" / "future-work.toml"


@pytest.mark.skipif(not ABLATION.exists(), reason="the benchmarks are not beside the package")
def test_the_ablation_shares_its_settings_with_the_papers_tables():
    """Runs that both have are the same: what it adds is seen beside what the tables show."""
    suite = load_suite(str(ABLATION))
    trials = list(suite.all_trials())
    assert len({trial.key for trial in trials}) == len(trials) == len(suite.rows) * 5 * 4 * 5
    papers = {trial.key for name in ("table2", "table3", "table4", "table6") for trial in load_suite(name).all_trials()}
    shared = {row.title for row in suite.rows for c in suite.columns if suite.candidates(c, row, 0)[0].key in papers}
    assert shared == {"wcll", "wcll, Eq. 9", "nn", "log", "ordinary labels"}
    assert {trial.loss for trial in trials} > {"wcll-penalty", "wcll-adaptive", "forward"}


def test_grid_rows_and_columns_multiply():
    suite = parse_suite(SMALL, "small")
    trials = list(suite.all_trials())
    assert len(trials) == 3 * 2 * 4 * 2
    assert [trial.seed for trial in trials] == sorted(trial.seed for trial in trials)
    assert {trial.model for trial in trials} == {"linear", "mlp"}


def test_a_rows_own_setting_takes_the_place_of_the_grids():
    suite = parse_suite(suite_toml(rows=[WCLL, {**PC, "lr": 5e-3}]), "small")
    assert [t.lr for t in suite.candidates(suite.columns[0], suite.rows[1], 0)] == [5e-3]
    assert [t.lr for t in suite.candidates(suite.columns[0], suite.rows[0], 0)] == [1e-3, 1e-2]


def test_plan_groups_what_shares_data_and_is_blind_to_what_is_left():
    trials = list(parse_suite(SMALL, "small").all_trials())
    jobs = plan(trials, together=64)
    assert sorted(len(job.trials) for job in jobs) == [2] * 6 + [6] * 6  # the limit sees other labels
    assert len(plan(trials, together=1)) == len(trials)
    assert sorted(key for job in jobs for key in job.keys) == sorted(trial.key for trial in trials)
    for job in jobs:
        assert len({(t.seed, t.model, t.dataset, t.ordinary) for t in job.trials}) == 1


def change(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, 1)


BAD = [
    ("title = = 3", "suite.toml: expected TOML, got Invalid value (at line 1, column 9)"),
    (change("p = 2", "q = 2"), "suite.toml, line 9: setting: expected one of"),
    (change("epochs = 12", "epoch = 12"), "line 14: setting: expected one of .* got 'epoch'; did you mean 'epochs'?"),
    (change('loss = "wcll"', 'loss = "wcl"'), "line 29: loss: expected one of .* got 'wcl'; did you mean 'wcll'?"),
    (change('loss = "pc"', 'los = "pc"'), "line 32: setting: .* got 'los'; did you mean 'loss'?"),
    (change("lr = [0.001, 0.01]", "lr = [1e-3, -1]"), "line 18: lr: expected a number above 0 to 1e\\+06, got -1"),
    (change("lr = [0.001, 0.01]", "lr = 1e-3"), "line 18: lr: expected a list of values in \\[grid\\], got 0.001"),
    (change("hidden = 16", "hiden = 16"), "line 26: option of model 'mlp': .* did you mean 'hidden'?"),
    (change("[grid]", "[gird]"), "line 17: key: expected one of .* did you mean 'grid'?"),
    (change('select = "label-free"', 'select = "labelfree"'), "line 45: select: .* did you mean 'label-free'?"),
    (change('"macro_f1"', '"macrof1"'), "line 44: metric: .* did you mean 'macro_f1'?"),
    (change('"macro_f1"', '"recall_01"'), "line 44: metric: .* did you mean 'recall_0'?"),
    (change('"macro_f1"', "3"), "line 44: metric: expected one of .*, got 3"),
    (change('select = "label-free"', 'select = "last"'), "line 43: at: expected a value of lr for select = 'last'"),
    (change("trials = 3", "trials = 0"), "line 3: trials: expected a whole number from 1 to 200000, got 0"),
    (change("minority = [0]\n", ""), "minority: expected classes for imbalance = 'eq6', got none"),
    (change('labels = "inverse-size"', 'labels = "inverse"'), "line 11: labels: .* did you mean 'inverse-size'?"),
    (change("epochs = 12", "seed = 1"), "line 14: setting: expected one of"),
    (change('title = "mlp"', 'title = "linear"'), "line 25: title: expected a different one for each of \\[\\[columns\\]\\]"),
    (SMALL.split("[[rows]]")[0], "suite.toml: expected at least one \\[\\[rows\\]\\] table"),
    (change('assume = "inverse-size"', 'assume = 3'), "line 37: assume: expected one of .*, got 3"),
    (change("[grid]", "[[grid]]"), "line 17: grid: expected a table, \\[grid\\]"),
    (change('loss = "pc"', 'loss = ["pc"]'), "line 32: loss: expected a name, or"),
    (change("lr = [0.001, 0.01]", 'loss = ["pc", "wcll"]'), "line 18: grid: expected one of lr, .* got loss"),
    (change("lr = [0.001, 0.01]", "lr = [1e-3]\nepochs = [2, 3]"), "line 19: grid: expected one of lr, .* got epochs"),
    (change("epochs = 12", "epochs = 12\nlr = 1"), "line 19: lr: expected values in \\[grid\\] or one in \\[settings\\], got both"),
    (change("epochs = 12", "validation = 0"), "line 14: validation: expected held-out labels for select = 'label-free', got 0"),
    (change('select = "label-free"', 'select = "last"\nat = { lr = true }'), "line 46: at lr: expected one of the grid's values"),
    (change('select = "label-free"', 'select = "label-free"\ntitle = 5'), "line 46: title: expected text, got 5"),
    (change("p = 2", "p = 0.5"), "line 9: p: expected a number from 1 to 1e\\+06, got 0.5"),
    (change("p = 2", "p = " + "9" * 400), "line 9: p: expected a number from 1 to 1e\\+06, got 9999"),
    (change("epochs = 12", "epochs = " + "9" * 400), "line 14: epochs: expected a whole number from 1 to 1000000000, got 9999"),
    (change("epochs = 12", "bias = nan"), "line 14: bias: expected a number"),
    (change("epochs = 12", "weight_decay = true"), "line 14: weight_decay: expected a number from 0"),
    (change("dropout = 0.2", 'dropout = "a"'), "line 26: option of model 'mlp', dropout: expected a number"),
    (change('loss = "wcll"', 'loss = { name = "wcll", base = ["ce"] }'), "line 29: option of loss 'wcll', base: expected a name"),
    (change('loss = "wcll"', 'loss = { name = "wcll", reading = "eq99" }'), "reading: expected one of 'algorithm1'"),
    (change("hidden = 16", "hidden = 1000000000"), "line 26: option of model 'mlp', hidden: expected a whole number from 1 to 1000000,"),
    (change("dropout = 0.2", "dropout = 2"), "dropout: expected a share from 0 to below 1, got 2"),
    (change("epochs = 12", 'classes = [3]'), "line 14: classes: expected at least two classes"),
    (change('title = "Small"', 'about = """\n[settings]\nlr = great"""\ntitle = 3'), "line 5: title: expected text, got 3"),
    (change("p = 2", "shares = 3"), r"line 9: shares: expected a list of shares, one a class, got 3; for example shares = \[61, 19, 20\]"),
    (change("p = 2", "shares = [1]"), r"line 9: shares: expected a list of shares, one a class, got \[1\]"),
    (change("p = 2", "shares = [1, 0]"), "line 9: shares: expected a number above 0"),
    (change("epochs = 12", "shares = [1, 2]"), "imbalance: expected 'shares' where shares are given, got 'eq6'"),
    (change('imbalance = "eq6"', 'imbalance = "shares"'), "shares: expected one a class for imbalance = 'shares', got none"),
    (change('imbalance = "eq6"', 'imbalance = "shares"\nshares = [1, 2]'), "minority: expected none beside shares"),
    (change('imbalance = "eq6"\nminority = [0]', 'imbalance = "shares"\nshares = [1, 2]'), "p: expected none beside shares"),
    (change("epochs = 12", "test_per_class = 5\ntest_share = 0.2"), "test_share: expected none beside test_per_class, got 0.2"),
    (change("epochs = 12", "test_per_class = 0"), "line 14: test_per_class: expected a whole number from 1 to"),
    (change("epochs = 12", 'pixels = "64"'), "line 14: pixels: expected a whole number from 1 to 1000000000, got '64'"),
    (change("epochs = 12", "pixels = 3"), "pixels: expected a divisor of 8, the side of the images in dataset 'digits', got 3"),
    (change("n_majority = 60", "n_majority = 6.5"), "line 10: n_majority: expected a whole number from 1 to 1000000000, got 6.5"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=[re.sub(r"\W+", "-", m)[:50] for _, m in BAD])
def test_what_is_wrong_is_said_with_its_line(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.toml").write_text(text)
    assert run(["run", "suite.toml"]) == 2
    error = capsys.readouterr().err
    assert re.search(message.replace("(at line 1, column 9)", r"\(at line 1, column 9\)"), error), error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["suite.toml"]  # no store was made


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("digit", "suite: expected one of .* got 'digit'; did you mean 'digits'?"),
        ("no/such.toml", "suite: expected a file, got no/such.toml, which does not exist"),
    ],
)
def test_unknown_suites(name, message, capsys):
    assert run(["run", name]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_file_that_is_not_text(tmp_path, capsys):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    assert run(["run", str(tmp_path / "x.toml")]) == 2
    assert "expected UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["dataset", "loss", "lr", "seed"])
def test_a_trial_needs_its_parts(missing):
    with pytest.raises(InputError, match=f"{missing}: expected a value, got none"):
        Trial.of({key: value for key, value in LEAST.items() if key != missing})


def test_options_that_mean_the_same_have_the_same_key():
    mlp = {"name": "mlp", "hidden": 9}
    keys = {Trial.of({**LEAST, "model": {**mlp, "dropout": zero}}).key for zero in (0, 0.0)}
    assert keys == {Trial.of({**LEAST, "model": mlp}).key}  # the default, said or not
    assert Trial.of({**LEAST, "loss": {"name": "wcll", "reading": "algorithm1"}}).key == Trial.of(LEAST).key


def test_a_byte_order_mark_and_a_folder(tmp_path, capsys):
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_suite(str(tmp_path / "x.toml")).title == "Small"
    (tmp_path / "d.toml").mkdir()
    assert run(["run", str(tmp_path / "d.toml")]) == 2
    assert "which is a folder" in capsys.readouterr().err


def test_the_guides_suite_reads():
    guide = Path(wcll.__file__).parents[2] / "docs" / "guide" / "suites.md"
    if not guide.exists():
        pytest.skip("the documentation is not beside the package")
    suite = parse_suite(re.search(r"```toml\n(.*?)```", guide.read_text(), re.S)[1], "guide")
    assert [axis.title for axis in (*suite.rows, *suite.columns)] == [
        "wcll",
        "WCLL, mean absolute error",
        "p = 2",
        "p = 5",
    ]


def test_on_a_gpu_only_what_may_be_alike_is_handed_out_together():
    suite = parse_suite(SMALL, "small")
    jobs = plan(list(suite.all_trials()), together=64)
    assert list(in_step(jobs, torch.device("cpu"))) == [[job] for job in jobs]
    bundles = list(in_step(jobs, torch.device("cuda")))
    assert sorted(len(bundle) for bundle in bundles) == [3, 3, 3, 3]  # seeds of two models, and of the limit
    assert sorted(key for bundle in bundles for job in bundle for key in job.keys) == sorted(
        trial.key for trial in suite.all_trials()
    )
    double = plan(list(parse_suite(suite_toml(dtype="float32"), "small").all_trials()), together=64)
    assert len(list(in_step([*jobs, *double], torch.device("cuda")))) == 8  # one precision at a time


# --- suites that extend others ---------------------------------------------------------------------------------------


def written(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return str(folder / f"{name}.toml")  # the last


BASE = """
title = "Base"
about = "Of the base."
trials = 2
[settings]
dataset = "digits"
epochs = 3
n_majority = 50
[grid]
lr = [1e-3, 1e-2]
weight_decay = [0.0, 1e-4]
[[rows]]
loss = "pc"
[[tables]]
title = "chosen"
select = "label-free"
"""


def test_a_suite_takes_the_parts_of_another_and_adds_its_own(tmp_path):
    own = """
extends = "base.toml"
title = "Own"
[settings]
epochs = 5
weight_decay = 1e-5
[grid]
batch_size = [32, 64]
[[columns]]
labels = "inverse-size"
[[rows]]
loss = "wcll"
[[tables]]
title = "last"
at = { lr = 1e-2, batch_size = 32 }
"""
    suite = load_suite(written(tmp_path, base=BASE, own=own))
    assert (suite.name, suite.title, suite.about, suite.trials) == ("own", "Own", "Of the base.", 2)
    assert suite.settings == {"dataset": "digits", "epochs": 5, "n_majority": 50, "weight_decay": 1e-5}
    assert suite.grid == {"lr": [1e-3, 1e-2], "batch_size": [32, 64]}
    assert [row.title for row in suite.rows] == ["pc", "wcll"]
    assert [column.title for column in suite.columns] == ["labels = inverse-size"]
    assert [spec.title for spec in suite.tables] == ["chosen", "last"]
    assert {trial.epochs for trial in suite.all_trials([0])} == {5}
    base = load_suite(str(tmp_path / "base.toml"))
    assert base.columns == (Axis("", {}),)  # by itself it has one column


def test_a_file_of_ones_own_may_extend_a_suite_of_the_package(tmp_path):
    own = 'extends = "table2"\ntrials = 1\n[settings]\nepochs = 2\nlr = 5e-4\n'
    suite = load_suite(written(tmp_path, own=own))
    packaged = load_suite("table2")
    assert suite.rows == packaged.rows
    assert len(list(suite.all_trials())) * 20 == len(list(packaged.all_trials()))
    assert {trial.lr for trial in suite.all_trials()} == {5e-4}


def test_a_grid_takes_the_place_of_a_setting(tmp_path):
    base = BASE.replace("[grid]", "batch_size = 16\n[grid]")
    own = 'extends = "base.toml"\n[grid]\nbatch_size = [32, 64]\n'
    suite = load_suite(written(tmp_path, base=base, own=own))
    assert {trial.batch_size for trial in suite.all_trials([0])} == {32, 64}


def test_an_extended_suite_keeps_the_rows_that_are_asked_for(tmp_path):
    own = 'extends = "table2"\nkeep = ["wcll", "pc"]\n[[rows]]\nloss = "scarce"\n'
    suite = load_suite(written(tmp_path, own=own))
    assert [row.title for row in suite.rows] == ["pc", "wcll", "scarce"]
    whole = {trial.key for trial in load_suite("table2").all_trials([0])}
    assert sum(trial.key in whole for trial in suite.all_trials([0])) == 2 * 6 * 4


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ('keep = ["pc"]\n[[rows]]\nloss = "pc"', "own.toml, line 1: keep: expected titles of rows of the suite that is extended"),
        ('extends = "table2"\nkeep = "pc"', "own.toml, line 2: keep: expected titles of rows .* got 'pc'"),
        ('extends = "table2"\nkeep = []', "own.toml, line 2: keep: expected titles of rows"),
        ('extends = "table2"\nkeep = ["wcl"]', "own.toml, line 2: keep: expected one of 'pc', .*did you mean 'wcll'"),
        ('extends = "table2"\nkeep = [3]', "own.toml, line 2: keep: expected one of"),
        ('extends = 3', "own.toml, line 1: extends: expected the name of a suite, or a .toml file, got 3"),
        ('title = "x"\nextends = "tabel2"', "own.toml, line 2: suite: expected one of .* did you mean 'table2'"),
        ('extends = "no.toml"', "own.toml, line 1: suite: expected a file, got .*no.toml, which does not exist"),
        ('extends = "own.toml"', "own.toml, line 1: extends: expected a suite that does not extend this one in turn"),
        ('extends = "base.toml"\n[[rows]]\nloss = "pc"', "own.toml, line 2: title: expected a different one for each"),
        ('extends = "base.toml"\n[[rows]]\nloss = "pcc"', "own.toml, line 3: loss: expected one of"),
        ('extends = "base.toml"\n[settings]\np = 2', "own.toml, line 2: imbalance: expected 'eq6'"),
        ('extends = "base.toml"\n[settings]\nvalidation = 0', "own.toml, line 3: validation: expected held-out labels"),
        ('extends = "base.toml"\n[[tables]]\ntitle = "chosen"', "own.toml, line 3: title: expected a different one|line 2: at"),
        ('extends = "base.toml"\n[[tables]]\nat = { lr = 3 }', "own.toml, line 3: at lr: expected one of the grid's values"),
        ('extends = "digits"\n[settings]\nlr = 5e-3', "own.toml, line 3: lr: expected 0.01, which the table 'One rate, last epoch' is about, got 0.005"),
        ('extends = "digits"\n[grid]\nlr = [5e-3, 6e-3]', "own.toml, line 3: lr: expected 0.01 among the values, for the table"),
        ('extends = "_mnist"', "own.toml: expected at least one \\[\\[rows\\]\\] table"),
        ('extends = "_paper"\n[settings]\np = 2\nminority = [0]\n[grid]\nbatch_size = [1, 2]\n[[rows]]\nloss = "pc"', "own.toml, line 5: at: expected a value of batch_size"),
    ],
)  # fmt: skip
def test_what_may_be_wrong_with_extending(own, message, tmp_path, capsys):
    assert run(["run", written(tmp_path, base=BASE, own=own), "--store", str(tmp_path / "s.sqlite")]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.count("\n") == 1
    assert not (tmp_path / "s.sqlite").exists()


def test_two_files_that_extend_each_other(tmp_path, capsys):
    path = written(tmp_path, a='extends = "b.toml"', b='extends = "a.toml"')
    assert run(["run", path]) == 2
    assert "does not extend this one in turn" in capsys.readouterr().err


def test_what_is_there_to_be_extended_is_not_run(capsys):
    assert not any(name.startswith("_") for name in packaged_suites())
    assert run(["run", "_methods"]) == 2
    assert "suite: expected one of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "key"), [("table2", "e8a84aee0f9ad78a3ccd9f9b"), ("digits", "3a9ae64fa29bfba23529724a")]
)
def test_keys_of_stored_results_never_change(name, key):
    assert next(load_suite(name).all_trials([0])).key == key


STRONG = {"dataset": "digits", "loss": "log", "lr": 1e-3, "seed": 0, "model": "cnn9", "training": "strong"}


def test_training_is_part_of_the_key_unless_it_is_the_papers():
    plain = Trial.of({key: value for key, value in STRONG.items() if key != "training"})
    assert Trial.of({**STRONG, "training": "plain"}) == plain
    assert "training" not in plain.config()
    strong = Trial.of(STRONG)
    assert (strong.optimiser, strong.weight_decay) == ("adamw", 0.05)
    assert strong.config()["training"]["consistency"] == 1.0
    assert strong.key != plain.key
    same = Trial.of({**STRONG, "training": {"name": "strong", "ema": strong.recipe.ema}})
    assert same.key == strong.key


def test_what_is_given_beside_a_recipe_wins():
    given = Trial.of({**STRONG, "optimiser": "sgd", "weight_decay": 0.0})
    assert (given.recipe.optimiser, given.weight_decay) == ("sgd", 0.0)
    assert Trial.of({**STRONG, "training": {"name": "strong", "optimiser": "sgd"}}).optimiser == "sgd"
    alone = Trial.of({**STRONG, "training": "plain", "optimiser": "adamw"})
    assert alone.recipe.changed() == {"optimiser": "adamw"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (3, 'training: expected a name, or { name = "strong", option = ... } with its options, got 3'),
        ("storng", "did you mean 'strong'"),
        ({"name": "strong", "croup": 1}, "did you mean 'crop'"),
    ],
)
def test_what_is_wrong_with_training_is_said(asked, words):
    with pytest.raises(InputError) as error:
        Trial.of({**STRONG, "training": asked})
    assert words in str(error.value)
