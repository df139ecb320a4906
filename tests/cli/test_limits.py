"""What is too large is said before memory is taken; Ctrl-C and an end of memory are one line at any time."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from small import SMALL, heeds_control_c, suite_toml
from wcll.cli.app import run


def one_line(arguments, capsys):
    """What a command that fails says."""
    assert run(arguments) == 2, arguments
    said = capsys.readouterr().err
    assert said.startswith("wcll: error: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 29 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: 4 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RecursionError("maximum recursion depth exceeded"),
    ],
)
def test_an_end_of_memory_is_one_line(error, monkeypatch, capsys):
    def failing():
        raise error

    monkeypatch.setattr("wcll.cli.experiments.method_rows", failing)
    assert "memory" in one_line(["methods"], capsys)


def test_other_errors_are_not_called_an_end_of_memory(monkeypatch):
    def failing():
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("wcll.cli.experiments.method_rows", failing)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        run(["methods"])


@pytest.mark.parametrize("kind", ["uniform", "inverse-size"])
def test_labels_of_very_many_classes(kind, tmp_path, capsys):
    np.save(tmp_path / "y.npy", np.arange(60_000))
    said = one_line(
        ["simulate", str(tmp_path / "y.npy"), "--out", str(tmp_path / "o.csv"), "--transition", kind], capsys
    )
    assert "expected at most 10000 classes, got 60000" in said


def test_several_labels_of_many_samples(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("wcll._memory.free_memory", lambda: 10**6)
    np.save(tmp_path / "y.npy", np.arange(3000) % 300)
    arguments = ["simulate", str(tmp_path / "y.npy"), "--out", str(tmp_path / "o.csv")]
    assert "which is free, got matrices of 300 classes" in one_line(arguments, capsys)
    np.save(tmp_path / "y.npy", np.arange(300_000, dtype=np.uint32).astype(np.uint8) % 30)
    assert "which is free, got masks of 300000 samples" in one_line([*arguments, "--n-labels", "2"], capsys)


def test_the_bounds_of_many_classes_need_no_matrix(capsys):
    assert run(["bound", "--classes", "100000", "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)
    assert case["bounds"][0]["scale"] == pytest.approx(np.log(10**5) * 1e-5, rel=1e-3)
    assert "--classes" in one_line(["bound", "--classes", "1000000000"], capsys)


@pytest.mark.parametrize("draws", ["1000000000000", "100000000", "9" * 25])
def test_draws_of_the_simulation_are_counted(draws, capsys):
    assert "draws" in one_line(["bound", "simulate", "--draws", draws], capsys)


@pytest.mark.parametrize("arguments", [
    ["-p", "1e308"], ["-p", "1e-308"], ["-p", "1e20"], ["--norm", "1e308"], ["--norm", "1e-320"], ["--radius", "1e308"],
    ["--norm", "1e200", "--radius", "1e200"], ["--norm", "1e-200", "--radius", "1e-200"], ["--delta", "1e-320"],
    ["--layer-norm", "1e200", "--layer-norm", "1e200"], ["--layer-norm", "1e-200", "--layer-norm", "1e-200"],
    ["--gap", "1e-320"], ["--gap", "1e-300"], ["--layer-norm", "1e308"], ["--radius", "1e-320"], ["--delta", "1"],
    ["--norm", "1e307"], ["--delta", "0.9999999999999999999"],
], ids="-".join)  # fmt: skip
def test_bounds_that_no_number_can_hold_are_errors(arguments, capsys):
    one_line(["bound", *arguments], capsys)


@pytest.mark.parametrize(
    "arguments", [["--gap", "1e308"], ["--delta", "1e-300"], ["-p", "1e6"], ["-p", "1e-6"]], ids="-".join
)
def test_bounds_at_the_ends_of_what_is_allowed_are_numbers(arguments, capsys):
    assert run(["bound", *arguments, "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    for bound in case["bounds"]:
        assert all(0 < value < float("inf") for value in bound["terms"].values())
        assert bound.get("labels_needed", 1) >= 1


SIZES = [
    {"name": "mlp", "hidden": 10**9},
    {"name": "mlp", "hidden": 10**6, "layers": 10**6},
    {"name": "mlp", "hidden": 1, "layers": 10**6},
    {"name": "cnn9", "width": 10**6},
    {"name": "resnet18", "width": 10**6},
]


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize("model", SIZES, ids=range(5))
def test_models_are_counted_before_they_are_made(model, more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.toml").write_text(suite_toml(columns=[{"title": "large", "model": model}]))
    said = one_line(["run", "large.toml", "--trials", "1", *more], capsys)
    assert "model: expected at most" in said or "layers: expected at most 1000" in said or "hidden" in said
    assert [path.name for path in tmp_path.iterdir()] == ["large.toml"]


def test_epochs_whose_predictions_do_not_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.toml").write_text(suite_toml(epochs=10**9))
    assert run(["run", "long.toml", "--trials", "1"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("wcll: error: --memory: expected at least ")
    (tmp_path / "long.toml").write_text(suite_toml(n_majority=10**9))
    assert "n_majority" in one_line(["run", "long.toml", "--trials", "1"], capsys)


@pytest.mark.parametrize(
    ("option", "values"),
    {
        "--threads": ["99999999999", "9" * 30, "0"],
        "--processes": ["99999999999", "9" * 30],
        "--memory": ["1", "9" * 5000, "0.0000001"],
        "--together": ["0", "9" * 5000],
    }.items(),
)
def test_numbers_of_workers(option, values, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    for value in values:
        said = capsys.readouterr().err if run(["run", "small.toml", "--trials", "1", option, value]) == 2 else ""
        assert "wcll: error: " in said, value
        assert option.strip("-") in said
        assert "Traceback" not in said
        assert " 0 " not in said.replace("runs, 0 of", "") or value == "0"


STOPPED_WHILE_LOADING = """
import os, signal, sys
def hook(event, given):
    if event == "import" and given[0] == os.environ["MODULE"]:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
from wcll.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "wcll.cli.app", "numpy", "torch", "torch.cuda", "rich.console"])
def test_ctrl_c_while_everything_is_still_loaded(module, monkeypatch):
    monkeypatch.setenv("MODULE", module)
    command = [sys.executable, "-c", STOPPED_WHILE_LOADING, "bound"]
    child = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=heeds_control_c)
    assert (child.returncode, child.stderr) == (130, "wcll: stopped\n")


@pytest.mark.parametrize("command", [["demo"], ["bound", "simulate", "--draws", "2"], ["simulate", "y.npy", "--force"]])
def test_what_is_no_plain_file_is_not_replaced(command, tmp_path, monkeypatch, capsys):
    """A device would be gone for everybody."""
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", np.arange(9) % 3)
    os.mkfifo("pipe.csv")
    Path("link.csv").symlink_to("pipe.csv")
    for name in ("pipe.csv", "link.csv"):
        assert "which is none" in one_line([*command, "--out", name], capsys)
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)


def test_bounds_of_a_suite_train_only_what_fits(tmp_path, capsys):
    (tmp_path / "long.toml").write_text(suite_toml(epochs=10**9))
    said = one_line(["bound", "--suite", str(tmp_path / "long.toml")], capsys)
    assert "--suite: expected at most" in said
    assert "give --norm" in said
