"""Suites that are too large, too deep, or no text at all: one line, before anything is expanded."""

from __future__ import annotations

import os
import re

import pytest

from small import SMALL, suite_toml
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.experiments import load_suite, parse_suite


def one_line(arguments, capsys):
    """What a command that fails says."""
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("wcll: error: ")
    assert said.count("\n") == 1
    return said


def test_runs_are_counted_before_they_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rates = [i * 1e-6 for i in range(1, 1001)]
    for trials in (3, 200000):
        text = suite_toml(trials=trials, grid=dict.fromkeys(("lr", "bias", "beta"), rates))
        (tmp_path / "large.toml").write_text(text)
        assert "line 17: grid: expected at most 200000 runs, got 8000000000 in every trial" in one_line(
            ["run", "large.toml"], capsys
        )
    (tmp_path / "large.toml").write_text(suite_toml(trials=10**9))
    assert "line 3: trials: expected a whole number from 1 to 200000" in one_line(["run", "large.toml"], capsys)
    (tmp_path / "large.toml").write_text(suite_toml(trials=12501))
    assert "line 3: trials: expected at most 200000 runs, got 200016" in one_line(["run", "large.toml"], capsys)


def test_rows_and_columns_are_counted_before_they_meet(tmp_path, capsys):
    rows = "".join(f'[[rows]]\nloss = "wcll"\ntitle = "{i}"\n' for i in range(500))
    columns = "".join(f'[[columns]]\np = {i + 1}\ntitle = "{i}"\n' for i in range(500))
    (tmp_path / "large.toml").write_text(f'settings = {{dataset = "digits", lr = 1.0}}\n{rows}{columns}')
    assert "expected at most 200000 runs, got 250000" in one_line(["run", str(tmp_path / "large.toml")], capsys)


@pytest.mark.parametrize("command", ["run", "report", "demo"])
@pytest.mark.parametrize("trials", ["1000000000", "9" * 30])
def test_trials_are_counted_before_they_are_made(command, trials, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    suite = [] if command == "demo" else ["digits"]
    assert "--trials" in one_line([command, *suite, "--trials", trials], capsys)
    assert "trials: expected at most 200000 runs" in one_line([command, *suite, "--trials", "150000"], capsys)
    assert list(tmp_path.iterdir()) == []


def test_seeds_from_python_are_counted():
    import wcll

    for seeds in (range(10**12), range(10**30), 10**9):
        with pytest.raises(InputError, match="trials: expected"):
            wcll.run("digits", store=None, trials=seeds)


DEEP = {
    "p = 2": ["p = " + "9" * 5000, "p = 0x" + "f" * 5000, "p = " + "[" * 5000 + "]" * 5000, "p = " + "[" * 90 + "]" * 90,
              "p = " + "{a=" * 400 + "1" + "}" * 400],
    'loss = "pc"': ["loss = " + "[" * 300 + "]" * 300, "loss = 0x" + "f" * 5000],
    "lr = [0.001, 0.01]": ["lr = [0x" + "f" * 5000 + "]", "lr = 1e-3\na" + ".a" * 3000 + " = 1"],
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, news in DEEP.items() for new in news], ids=range(9))
def test_long_numbers_and_deep_lists_are_one_line(old, new, tmp_path, capsys):
    (tmp_path / "deep.toml").write_text(SMALL.replace(old, new))
    said = one_line(["run", str(tmp_path / "deep.toml")], capsys)
    assert "deep.toml" in said
    assert len(said) < 1000


def test_a_long_chain_of_suites_is_one_line(tmp_path, capsys):
    (tmp_path / "0.toml").write_text(SMALL)
    for i in range(1, 1201):
        (tmp_path / f"{i}.toml").write_text(f'extends = "{i - 1}.toml"')
    assert load_suite(str(tmp_path / "5.toml")).title == "Small"
    assert "expected at most" in one_line(["run", str(tmp_path / "1200.toml")], capsys)


def test_a_suite_is_a_plain_file_of_text(tmp_path, capsys):
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "huge.toml").write_bytes(b"#" + b"x" * 2**20)
    for name, expected in {
        "folder": "which is a folder",
        "pipe": "got a pipe",
        "zero": "got a device",
        "binary": "expected UTF-8 text",
        "huge": "at most 1.05 MB",
    }.items():
        assert expected in one_line(["run", str(tmp_path / f"{name}.toml")], capsys)
        (tmp_path / "own.toml").write_text(f'extends = "{name}.toml"')
        assert expected in one_line(["report", str(tmp_path / "own.toml")], capsys)


@pytest.mark.parametrize(
    "before",
    [
        '# a comment with """ in it',
        "# a comment with ''' in it",
        "about = \"a # and ''' in text\"",
        'about = \'""" # in text\'',
        'about = """one line\\""" still"""  # and """',
        'about = """\n# inside\n"""""',
        'about = "escaped \\" # quote"',
        "# a line \u0085 or \u2028 two for others",
    ],
)
def test_lines_are_counted_as_toml_counts_them(before):
    text = f"{before}\n{SMALL}".replace("p = 2", "p = 0.5")
    number = text[: text.index("p = 0.5")].count("\n") + 1
    with pytest.raises(InputError, match=re.escape(f"suite, line {number}: p: expected")):
        parse_suite(text, "suite")
