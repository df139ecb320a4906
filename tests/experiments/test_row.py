"""Rows from outside: what an import refuses, whole and in one line, and what a store does not take for a run."""

from __future__ import annotations

import gzip
import json
import random
import resource
import shutil
import subprocess
import sys
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.experiments import Row, Store, load_suite
from wcll.experiments.exchange import export, read_rows
from wcll.experiments.trial import key_of
from wcll.report.result_tables import build_table, to_csv
from wcll.report.suite_report import suite_page

STORED = Path(__file__).parent / "stored"
GONE = object()  #: a field that is taken away


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The rows of a real store, as an export has them."""
    folder = tmp_path_factory.mktemp("border")
    shutil.copy(STORED / "old.sqlite", folder)
    assert run(["results", "export", str(folder / "good.json"), "--store", str(folder / "old.sqlite")]) == 0
    return (folder / "good.json").read_text()


@pytest.fixture
def plain(exported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return json.loads(exported)


def fails(arguments, capsys):
    capsys.readouterr()
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert len(error) < 1000
    return error


def refused(content, capsys, name="bad.json"):
    Path(name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    error = fails(["results", "import", name, "--store", "new.sqlite"], capsys)
    assert not Path("new.sqlite").exists()
    return error


def changed(row, path, value):
    """The row with one part of it replaced; a changed setting brings its own key."""
    *parts, last = path.split(".")
    part = row
    for name in parts:
        part = part[int(name)] if isinstance(part, list) else part[name]
    if value is GONE:
        del part[last]
    else:
        part[int(last) if isinstance(part, list) else last] = value
    if path.startswith("config."):
        row["key"] = key_of(row["config"])
    return row


BROKEN = [
    *(("key", key) for key in (None, 3, ["k"], "", "k" * 24, "ba3e6282fd0b9b1219ead24\n")),
    *((part, value) for part in ("config", "metrics", "history", "provenance") for value in ([], None, "x", 3)),
    *(("provenance.data", value) for value in ([], None, "x", {}, {"fingerprint": "f"}, {"official": True})),
    *(("provenance.data.fingerprint", value) for value in (GONE, [], 3, None)),
    *(("provenance.data.official", value) for value in (GONE, "yes", None, 2)),
    *(("provenance.data.stamp", value) for value in ([], 3, None)),
    *(("provenance.data.classes", value) for value in ("cat", 3, None, [1, 2], ["cat", None])),
    *(("provenance.seconds", value) for value in (GONE, "long", None, -1, True, float("nan"), float("inf"), 10**400)),
    *(("provenance.device", value) for value in ([], {}, 3, None, "\ud800")),
    *(("provenance.threads", value) for value in ([], "x", -1, 0.5)),
    *(("provenance.own", value) for value in ([], {}, None, [[1]])),
    *(
        ("provenance." + name, "x") for name in ("accuracy", "loss", "key")
    ),  # they would hide what they are called after
    *(("metrics.accuracy", value) for value in ("high", None, [], True, -0.1, 1.5, float("nan"))),
    *(("metrics.speed", value) for value in (0.5, [])),
    *(("config.loss", value) for value in (GONE, "los", [], 3, None)),
    *(("config.lr", value) for value in (GONE, "fast", -1, 0, None, [], float("inf"))),
    *(("config.seed", value) for value in (GONE, -1, "0", 0.5, True, None)),
    *(("config.epochs", value) for value in (GONE, 5, 0, "4")),
    *(("config.dataset", value) for value in (GONE, "", [], {}, None)),
    *(("config.classes", value) for value in (3, "01", [0], [0, 1], [0, 0])),
    *(("config.minority", value) for value in (GONE, 3, [], [0, 0], [-1])),
    *(("config.loss_options", value) for value in (GONE, [], {"speed": 3}, None)),
    *(("config.model_options", value) for value in ([], {"hidden": 3})),
    *(("config.loss_revision", value) for value in (GONE, 0, "1", None)),
    ("config.more", 3),
    ("config.weights", 3),
    *((f"history.{name}", GONE) for name in ("sizes", "judge", "checkpoints", "correct", "confusion", "held_out")),
    *(
        (f"history.{name}", value)
        for name in ("sizes", "train_labels", "test_sizes")
        for value in ([], None, 3, [1], "x")
    ),
    *(
        (f"history.{name}.0", value)
        for name in ("sizes", "train_labels", "test_sizes")
        for value in (-1, 0.5, None, "x")
    ),
    ("history.test_sizes", [0] * 10),
    ("history.test_sizes.0", 10**400),
    *(
        ("history.checkpoints", value)
        for value in ([], None, [1, 2, 3], [4, 3, 2, 1], [0, 1, 2, 4], [1, 2, 3, 4, 5], ["4"])
    ),
    *(
        ("history.correct", value)
        for value in ("abc", None, [], [[1]], [[0] * 10] * 5, [[0] * 10] * 3, [["a"] * 10] * 4)
    ),
    *(("history.correct.0.0", value) for value in (-1, 1000, 0.5, None, [])),
    *(("history.confusion", value) for value in (None, [], "x", [[[1]]] * 4, [[[0] * 10] * 10] * 4)),
    *(("history.confusion.0.0.0", value) for value in (-1, 5, 0.5, None)),
    *(("history.train_loss", value) for value in (None, [], "x", [1.0], ["x"] * 4, [float("nan")] * 4, [True] * 4)),
    *(("history.log_likelihood", value) for value in (None, [], [1.0], ["x"] * 4, {"a": 1})),
    *(("history.log_likelihood_se", value) for value in ([], [1.0], ["x"] * 4, 3)),
    *(("history.held_out", value) for value in (None, [], "x", [[[1]]] * 4, [[[0] * 10] * 10] * 4, {})),
    *(("history.held_out.0.0.0", value) for value in (-1, 0.5, "x")),
    *(("history.judge", value) for value in ({}, [], None, "uniform", 3)),
    *((f"history.judge.{name}", GONE) for name in ("transition", "transition_source", "prior", "prior_source")),
    *(("history.judge.transition", value) for value in (None, [], "x", [[1]], [["x"] * 10] * 10, [[1] * 10] * 10)),
    *(("history.judge.transition_source", value) for value in (None, [], "heard")),
    *(("history.judge.prior_source", value) for value in (None, {}, "heard")),
    *(("history.judge.prior", value) for value in ([], [1], "x", ["0.1"] * 10, [None] * 10, 3)),
    *(("history.judge.totals", value) for value in ([], [1], "x", [-1] * 10, [0] * 10, ["1"] * 10)),
    *(("history.judge.family", value) for value in ([], 3, {})),
    ("history.judge.weights", {"a": 1}),
]


@pytest.mark.parametrize(
    ("path", "value"), BROKEN, ids=[f"{p}={'gone' if v is GONE else str(v)[:12]!r}" for p, v in BROKEN]
)
def test_broken_rows_are_refused(path, value, plain):
    Path("bad.json").write_text(json.dumps([changed(plain[1], path, value)]))
    with pytest.raises(InputError, match="rows that 'wcll results export' wrote") as caught:
        list(read_rows(Path("bad.json")))
    assert len(str(caught.value)) < 1000


def test_an_import_of_one_broken_row_imports_nothing(plain, capsys):
    error = refused([plain[0], changed(plain[1], "provenance.data", [])], capsys)
    assert "rows that 'wcll results export' wrote" in error


def test_the_row_and_what_is_wrong_are_named(plain, capsys):
    error = refused([changed(plain[0], "history.correct", "abc")], capsys)
    assert f"the run {plain[0]['key']}" in error
    assert "history.correct" in error
    error = refused([changed(plain[1], "config.loss", "los")], capsys)
    assert "did you mean" in error


@pytest.mark.parametrize(
    "row", [3, None, [], "row", {}, {"key": "k"}, [["key", "k"]]], ids=lambda row: str(row).replace(" ", "")
)
def test_an_import_refuses_what_is_no_row(row, plain, capsys):
    assert "rows that 'wcll results export' wrote" in refused([plain[0], row], capsys)


def test_an_import_refuses_fields_that_it_does_not_know_or_knows_twice(plain, capsys):
    assert "'note'" in refused([{**plain[0], "note": 1}], capsys)
    once = json.dumps([plain[0]])
    twice = once.replace('"metrics": {', '"metrics": {}, "metrics": {', 1)
    assert json.loads(twice) == json.loads(once)
    assert "'metrics' twice" in refused(twice.encode(), capsys)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'[{"key": ' + b"[" * 100_000,
        b"[" + b"1" * 5000 + b"]",
        b"[NaN]",
        b"[{}] x",
        b"[{},]",
        b"[,]",
        b"[{} {}]",
        b"[{}",
        b"",
        b"   ",
        b"\xff\xfe[\x00]\x00",
        b'["\xc3"]',
    ],
    ids=["deep", "deep in a row", "long number", "NaN", "more", "comma", "commas", "no comma", "open", "nothing", "blank",
         "UTF-16", "half a letter"],
)  # fmt: skip
def test_an_import_refuses_other_json(content, plain, capsys):
    assert "rows that 'wcll results export' wrote" in refused(content, capsys)


def test_good_rows_are_imported_whatever_their_layout(plain, capsys):
    shutil.copy(STORED / "old.sqlite", ".")
    Path("pretty.json").write_text("\n" + json.dumps(plain, indent=3) + "\n\n")
    assert run(["results", "import", "pretty.json", "--store", "new.sqlite"]) == 0
    assert "8 of 8 runs were new" in capsys.readouterr().err
    with Store(Path("old.sqlite")) as a, Store(Path("new.sqlite")) as b:
        assert [r.to_dict() for r in a.rows()] == [r.to_dict() for r in b.rows()]
    Path("none.json").write_text(" [ ] ")
    assert run(["results", "import", "none.json", "--store", "new.sqlite"]) == 0


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (3 * 2**30, 3 * 2**30))
from wcll.cli import main
main()
"""


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path):
    """300 MB of blanks in a megabyte: never in memory, which is limited here."""
    with gzip.open(tmp_path / "bomb.json.gz", "wb", compresslevel=1) as file:
        for _ in range(300):
            file.write(b" " * 2**20)
    command = ["results", "import", "bomb.json.gz", "--store", "new.sqlite"]
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, *command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert child.returncode == 2, child.stderr
    assert child.stderr.count("\n") == 1
    assert "expected at most 268 MB, got more; export with --shard" in child.stderr
    assert not (tmp_path / "new.sqlite").exists()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 4 * 2**20


def test_what_is_no_plain_file_is_refused(plain, capsys):
    Path("folder.json").mkdir()
    assert "got a folder" in fails(["results", "import", "folder.json", "--store", "new.sqlite"], capsys)
    assert "No such file" in fails(["results", "import", "none.json", "--store", "new.sqlite"], capsys)


JUNK = [None, True, 0, -1, 0.5, 1e308, 10**30, "", "x", "\x1b", "0", [], [[]], {}, {"a": 1}, [1], [None], 1e-320]


def places(node, path=()):
    """Every place in a row, but for single counts of long lists."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node[:2]) if isinstance(node, list) else ()
    for name, part in items:
        yield from places(part, (*path, name))


def test_what_is_accepted_can_be_used(plain):
    """Rows with a part exchanged at random: each is refused, or good for every table, page and export."""
    suite, rng = load_suite(str(STORED / "old.toml")), random.Random(0)
    everywhere = [path for path in places(plain[0]) if path]
    accepted = 0
    for _ in range(100):
        row = json.loads(json.dumps(plain[0]))
        *parts, last = rng.choice(everywhere)
        reduce(getitem, parts, row)[last] = rng.choice(JUNK)
        Path("one.json").write_text(json.dumps([row]))
        try:
            (good,) = read_rows(Path("one.json"))
        except InputError:
            continue
        accepted += 1
        runs = {one["key"]: Row(**one) for one in plain} | {good.key: good}
        assert to_csv([build_table(suite, spec, runs, range(suite.trials)) for spec in suite.tables])
        assert suite_page(suite, runs, range(suite.trials), "x")
        Path("one.sqlite").unlink(missing_ok=True)
        with Store(Path("one.sqlite")) as store:
            store.add([good])
            assert [vars(again) for again in store.rows()] == [vars(good)]
            for name in ("one.csv", "two.json"):
                assert export(store, [], Path(name), force=True) == (1, [Path(name)])
    assert accepted > 5
