"""Text of others is shown, not obeyed: on the terminal, in spreadsheets, in Markdown and in LaTeX."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.text import Text

from small import FORWARD, LINEAR_MODEL, MLP, PC, TABLE, WCLL, finished, suite_toml
from wcll.cli import tell
from wcll.cli.app import run
from wcll.cli.console import console, grid
from wcll.experiments import Store, parse_suite

STORED = Path(__file__).parents[1] / "experiments" / "stored"
ESCAPE = "\x1b]0;title\x07\x1b[2Jred\x9b31m\u202e"
ODD_LIMIT = {"title": "=cmd()|<b>\x1b[2J & [x](y) `c` *d*", "loss": "cross-entropy"}
ODD = suite_toml(
    title="Small \x1b[31m",
    trials=1,
    columns=[LINEAR_MODEL, {**MLP, "title": "@sum\x07"}],
    rows=[WCLL, PC, FORWARD, ODD_LIMIT],
    tables=[{"title": "-1+<img src=x>|\x1b[5m", **TABLE}],
)


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """A suite with odd titles, and a store of its runs."""
    monkeypatch.chdir(tmp_path)
    Path("odd.toml").write_text(ODD)
    with Store(Path("s.sqlite")) as store:
        store.add([finished(trial) for trial in parse_suite(ODD, "odd").all_trials()])


def harmless(text):
    return not any(
        (ord(letter) < 32 and letter != "\n") or 127 <= ord(letter) < 160 or letter == "\u202e" for letter in text
    )


def test_nothing_that_is_printed_is_obeyed(capsys):
    tell(f"a {ESCAPE}\nb")
    console().print(f"c {ESCAPE}", Text(f"d {ESCAPE}"))
    console().print(grid([f"head {ESCAPE}"], [[f"cell {ESCAPE}"], [Text(ESCAPE)]], title=Text(f"title {ESCAPE}")))
    shown = capsys.readouterr()
    assert harmless(shown.out + shown.err)
    assert r"a \x1b]0;title\x07\x1b[2Jred\x9b31m\u202e\nb" in shown.err
    for text in ("c", "d", "head", "cell", "title"):
        assert rf"{text} \x1b]0;" in shown.out


def test_titles_and_keys_are_not_obeyed(odd, capsys):
    for command in (["run", "odd.toml"], ["report", "odd.toml"], ["run", "odd.toml", "--trials", "2", "--dry-run"]):
        assert run([*command, "--store", "s.sqlite"]) == 0
        shown = capsys.readouterr()
        assert harmless(shown.out + shown.err)
        assert r"\x1b[" in shown.out
    assert run(["report", f"none{ESCAPE}.toml"]) == 2
    assert run(["results", "--store", f"none{ESCAPE}.sqlite"]) == 2
    assert run([f"--none{ESCAPE}"]) == 2
    assert harmless(capsys.readouterr().err)


def test_reports_as_csv_have_no_formulas(odd, capsys):
    assert run(["report", "odd.toml", "--store", "s.sqlite", "--out", "r.csv"]) == 0
    with open("r.csv", newline="") as file:
        lines = list(csv.reader(file))
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)
    assert {line[0][:4] for line in lines[1:]} == {"'-1+"}
    assert any(line[2].startswith("'=cmd()") for line in lines)
    assert any(line[3].startswith("'@sum") for line in lines)
    assert float(lines[1][5]) == 0.5


def test_exports_as_csv_have_no_formulas(odd, capsys):
    row = finished(replace(next(iter(parse_suite(ODD, "odd").all_trials())), dataset="=HYPERLINK(1)", bias=-0.5))
    with Store(Path("f.sqlite")) as store:
        store.add([row])
    assert run(["results", "export", "x.csv", "--store", "f.sqlite"]) == 0
    with open("x.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["dataset"] == "'=HYPERLINK(1)"
    assert line["bias"] == "-0.5"


def test_markdown_has_no_html_and_no_more_columns_than_meant(odd, capsys):
    assert run(["report", "odd.toml", "--store", "s.sqlite", "--out", "r.md"]) == 0
    text = Path("r.md").read_text()
    assert harmless(text)
    assert r"=cmd()\|\<b\>" in text
    assert r"\[x](y) \`c\` \*d\*" in text
    assert r"-1+\<img src=x\>\|" in text
    lines = [line.replace(r"\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {6}


def test_latex_is_escaped(odd, capsys):
    assert run(["report", "odd.toml", "--store", "s.sqlite", "--out", "r.tex"]) == 0
    text = Path("r.tex").read_text()
    assert harmless(text)
    assert r"{[}x{]}(y)" in text  # \\ followed by [ would be a length
    assert r"\& " in text


#: Commands in one process; their exit codes come last.
ONE_AFTER_ANOTHER = """
import json, sys
from wcll.cli.app import run
print([run([*command, "--store", "old.sqlite"]) for command in json.loads(sys.argv[1])])
"""


@pytest.fixture
def read_only(tmp_path):
    """A prefix for commands that see the folder of a store on a disk that cannot be written."""
    for name in ("old.toml", "old.sqlite"):
        shutil.copy(STORED / name, tmp_path / name)
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        yield []
        tmp_path.chmod(0o700)
        return
    code = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'
    prefix = ["unshare", "-m", "sh", "-c", code, str(tmp_path)]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"root may write everywhere, and nothing can be mounted here: {error}")
    yield prefix


def test_a_store_that_cannot_be_written_can_be_read(read_only, tmp_path, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    commands = [
        ["results"],
        ["results", "export", str(out / "x.json")],
        ["report", "old.toml", "--out", str(out / "x.csv")],
        ["results", "remove", "--all"],
    ]
    child = [*read_only, sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)]
    done = subprocess.run(child, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "8 runs" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 2]", done.stderr
    assert json.loads((out / "x.json").read_text())
    assert (out / "x.csv").read_text() == (STORED / "old.csv").read_text()
    refused = done.stderr.splitlines()[-1]
    assert done.stderr.count("wcll: error: ") == 1
    assert refused.startswith("wcll: error: --store: expected a folder in which files can be locked")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.sqlite", "old.toml"]


def test_a_store_that_cannot_be_written_and_is_not_wholly_written(read_only, tmp_path):
    """What a killed process left beside it cannot be read there: that is said, not left out."""
    tmp_path.chmod(0o700)
    (tmp_path / "old.sqlite-wal").write_bytes(b"x" * 100)
    tmp_path.chmod(0o500)
    child = [*read_only, sys.executable, "-m", "wcll", "results", "--store", "old.sqlite"]
    done = subprocess.run(child, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "copy it, together with old.sqlite-wal, to a folder that can be written" in done.stderr
