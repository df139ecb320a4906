"""The command line as a user sees it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from small import LINEAR, PATIENCE, start
from wcll.cli.app import COMMANDS, run
from wcll.exceptions import InputError, InputTypeError
from wcll.labels import inverse_size_transition, uniform_transition
from wcll.losses import LOSSES


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "y.npy"
    np.save(path, np.repeat(np.arange(5), 400))
    return path


def test_methods_json_lists_the_registry(capsys):
    assert run(["methods", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 22
    assert {row["name"] for row in rows} == set(LOSSES)
    wcll = next(row for row in rows if row["name"] == "wcll")
    assert wcll["needs"] == ["weight"]
    assert wcll["table1"]["class_imbalance"]
    assert wcll["options"] == {"reading": "algorithm1", "base": "ce"}
    assert all(row["revision"] >= 1 and row["link"] in ("softmax", "sigmoid", "scores") for row in rows)


def test_methods_table(capsys):
    assert run(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in LOSSES)


def test_no_arguments_show_the_help(capsys):
    assert run([]) == 0
    assert "simulate" in capsys.readouterr().out


def test_the_help_lists_every_command(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out.split("Commands:")[1]
    listed = dict(line.split(maxsplit=1) for line in shown.strip().splitlines())
    assert listed == {name: text for name, (_, text) in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_of_its_own(name, capsys):
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: wcll {name} [OPTIONS]")
    assert "completion" not in shown


def test_simulate_npz(labels, tmp_path, capsys):
    out = tmp_path / "ybar.npz"
    counts = [100, 100, 400, 400, 400]
    y = np.repeat(np.arange(5), counts)
    np.save(labels, y)
    arguments = ["simulate", str(labels), "--out", str(out), "--transition", "inverse-size"]
    assert run([*arguments, "--seed", "3", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    data = np.load(out)
    sizes = np.array(counts)
    assert data["index"].tolist() == list(range(1400))
    assert (data["ybar"] != y).all()
    assert summary["n"] == 1400
    assert summary["counts"]["value"] == pytest.approx(np.bincount(data["ybar"]))
    prior = summary["inverse_size"]["prior"]
    z = (np.array(prior["value"]) - sizes / 1400) / np.array(prior["standard_error"])
    assert np.abs(z).max() < 4
    np.testing.assert_allclose(
        summary["prior_under_transition"]["value"],
        summary["marginal"]["value"] @ np.linalg.inv(inverse_size_transition(sizes)),
    )


def test_simulate_names_in_csv(tmp_path, capsys):
    path, out = tmp_path / "y.csv", tmp_path / "ybar.csv"
    path.write_text("id,label\n" + "".join(f"{i},{name}\n" for i, name in enumerate(["cat", "dog", "bird"] * 50)))
    assert run(["simulate", str(path), "--out", str(out), "--n-labels", "2"]) == 0
    assert "150 samples, 3 classes" in capsys.readouterr().out
    rows = out.read_text().splitlines()
    assert rows[0] == "index,ybar"
    assert rows[1:3] == ["0,bird;dog", "1,bird;cat"]
    assert len(rows) == 151


def test_simulate_is_a_function_of_the_seed(labels, tmp_path, capsys):
    outs = [tmp_path / f"{i}.csv" for i in range(3)]
    for out, seed in zip(outs, ("1", "1", "2"), strict=True):
        assert run(["simulate", str(labels), "--out", str(out), "--seed", seed]) == 0
    first, second, third = (out.read_text() for out in outs)
    assert first == second != third
    index, ybar = np.loadtxt(outs[0], delimiter=",", skiprows=1, dtype=int).T
    assert (ybar != np.load(labels)[index]).all()


def test_simulate_with_a_matrix_of_ones_own(labels, tmp_path):
    np.save(tmp_path / "q.npy", uniform_transition(5))
    out = tmp_path / "o.csv"
    assert run(["simulate", str(labels), "--out", str(out), "--transition", str(tmp_path / "q.npy")]) == 0


def bad(tmp_path, labels):
    """Arguments that cannot be used, and what is said."""
    floats, text, broken = tmp_path / "f.npy", tmp_path / "t.csv", tmp_path / "b.npy"
    empty, objects = tmp_path / "e.csv", tmp_path / "o.npy"
    np.save(floats, np.array([0.5, 1.5]))
    text.write_text("a,b\n1,2\n,3\n")
    broken.write_bytes(b"\x93NUMPY\x01\x00")
    empty.write_text("")
    np.save(objects, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    headless, semicolons, marked = tmp_path / "h.csv", tmp_path / "s.csv", tmp_path / "m.csv"
    headless.write_text("1\n2\n")
    semicolons.write_text("a;b\n1;2\n")
    marked.write_text("label\na;b\nc\nd\n")
    blank, double = tmp_path / "blank.csv", tmp_path / "double.csv"
    blank.write_text("label\na\n\nb\nc\n\n")
    double.write_text("label,label\na,b\nb,a\n")
    large, dates = tmp_path / "l.npy", tmp_path / "d.npy"
    np.save(large, np.array([1e30, 2.0]))
    np.save(dates, np.array(["2020-01-01"], dtype="datetime64[D]"))
    existing = tmp_path / "there.csv"
    existing.write_text("mine")
    y, out = str(labels), ["--out", str(tmp_path / "new.csv")]
    return [
        (["simulate", str(tmp_path / "no.npy"), *out], "no.npy: expected a file, got No such file or directory"),
        (["simulate", str(tmp_path), *out], "labels: expected a .npy or .csv file"),
        (["simulate", str(floats), *out], "expected class labels, got fractions"),
        (["simulate", str(broken), *out], "expected a NumPy .npy file"),
        (["simulate", str(objects), *out], "expected a NumPy .npy file"),
        (["simulate", str(empty), *out], "expected a header line and at least one row"),
        (["simulate", str(text), *out], "--column: expected one of 'a', 'b', got none; say which column has labels"),
        (["simulate", str(text), *out, "--column", "c"], "--column: expected one of 'a', 'b', got 'c'"),
        (["simulate", str(headless), *out], "expected a header line with the names of columns, got '1'"),
        (["simulate", str(semicolons), *out], "expected columns separated by commas"),
        (["simulate", str(large), *out], "numbers too large to be labels"),
        (["simulate", str(dates), *out], "expected whole numbers or text, got datetime64[D]"),
        (["simulate", str(marked), *out, "--n-labels", "2"], "class names without ';'"),
        (["simulate", y, *out, "--column", "a"], "--column: expected none for a .npy file"),
        (
            ["simulate", str(text), "--out", str(text), "--column", "b", "--force"],
            "--out: expected another file than those that are read",
        ),
        (["simulate", str(text), *out, "--column", "a"], "a label in every row, got an empty one in line 3"),
        (["simulate", str(blank), *out], "a label in every row, got an empty one in line 3"),
        (["simulate", str(double), *out], "expected one column 'label', got 2; rename the others"),
        (["simulate", y, "--out", str(existing)], "which exists; add --force"),
        (["simulate", y, "--out", str(tmp_path)], "--out: expected a file, got"),
        (["simulate", y, "--out", str(tmp_path / "x.txt")], "--out: expected a .csv or .npz file, got x.txt"),
        (["simulate", y, "--out", str(tmp_path / "no" / "x.csv")], "--out: expected a folder that can be written"),
        (["simulate", y, *out, "--transition", "unifrom"], "did you mean 'uniform'?"),
        (["simulate", y, *out, "--transition", str(floats)], "transition: expected a square matrix"),
        (["simulate", y, *out, "--n-labels", "5"], "n_labels: expected from 1 to 4"),
        (["simulate", y, *out, "--seed", "x"], "--seed"),
        (["simulat"], "No such command 'simulat'. Did you mean 'simulate'?"),
        (["simulate"], "Missing"),
        (["methods", "--jsn"], "No such option"),
    ]


def test_bad_input_is_one_line_and_exit_code_2(tmp_path, labels, capsys):
    cases = bad(tmp_path, labels)
    before = sorted(tmp_path.iterdir())
    for arguments, message in cases:
        assert run(arguments) == 2, arguments
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert message in captured.err, arguments
        assert "Traceback" not in captured.err
        assert sorted(tmp_path.iterdir()) == before, f"{arguments} left something behind"
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_failed_write_leaves_nothing(labels, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    out = tmp_path / "x.npz"
    assert run(["simulate", str(labels), "--out", str(out)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [labels]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(labels, tmp_path, capsys):
    folder = tmp_path / "ro"
    folder.mkdir(mode=0o500)
    assert run(["simulate", str(labels), "--out", str(folder / "x.csv")]) == 2
    assert "a folder that can be written" in capsys.readouterr().err


def test_the_installed_command_exits_with_2():
    process = subprocess.run([sys.executable, "-m", "wcll", "nope"], capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr.startswith("wcll: error:")


#: A demo of a small suite that gets Control-C as soon as an epoch of it is trained.
STOPPED = """
import contextlib, os, signal, sys
from wcll.cli import experiments as demo, main
def under_way(done, total):
    if 0 < done < total:
        print("training", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGINT)
demo.SUITE, demo.progress_bar = sys.argv.pop(), lambda what: contextlib.nullcontext(under_way)
main()
"""


def test_ctrl_c_is_one_line_and_leaves_nothing(tmp_path, tmp_path_factory):
    suite = tmp_path_factory.mktemp("suite") / "small.toml"
    suite.write_text(LINEAR)
    child = start(STOPPED, "demo", "--trials", "1", "--out", str(tmp_path / "x.html"), str(suite))
    _, error = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, error
    assert error == "training\nwcll: stopped\n"
    assert list(tmp_path.iterdir()) == []


def test_missing_extra_names_its_remedy():
    from wcll._validation import extra
    from wcll.exceptions import MissingExtraError

    with pytest.raises(MissingExtraError, match=r"pip install 'wcll\[images\]'"):
        extra("no_such_module_of_images", "images")


@pytest.mark.parametrize("kind", [InputError, InputTypeError])
def test_errors_travel_between_processes(kind):
    error = kind("argument", "this", 3, "do that")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


@pytest.mark.parametrize(
    ("given", "found"), [({}, "10000"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None"), ({"GOMP_SPINCOUNT": "7"}, "7")]
)
def test_waiting_threads_soon_leave_the_cores_to_others(given, found):
    kept = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    program = "import os, wcll; print(os.environ.get('GOMP_SPINCOUNT'))"
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, env=kept | given, capture_output=True, text=True, timeout=PATIENCE)
    assert process.stdout.split()[-1] == found
