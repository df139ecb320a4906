"""``wcll run``, ``report`` and ``results`` as a user sees them."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from small import FORWARD, LINEAR_MODEL, PC, WCLL, linear_toml, suite_toml
from wcll.cli.app import run
from wcll.experiments import Store

SHORT = {"trials": 2, "epochs": 2}
WIDE = {"title": "mlp", "model": {"name": "mlp", "hidden": 20000, "dropout": 0.2}}
ONE = suite_toml(**SHORT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    (path / "one.toml").write_text(ONE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert run(["run", "one.toml", "--store", "s.sqlite"]) == 0
    return path


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def fails(arguments, capsys):
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("ending", ["html", "md", "tex", "csv"])
def test_report_in_every_format(ending, capsys):
    assert run(["report", "one.toml", "--store", "s.sqlite", "--out", f"r.{ending}"]) == 0
    with open(f"r.{ending}") as file:
        assert "forward" in file.read()


def test_report_prints_what_run_printed(capsys):
    assert run(["run", "one.toml", "--store", "s.sqlite"]) == 0
    first = capsys.readouterr().out
    assert run(["report", "one.toml", "--store", "s.sqlite"]) == 0
    assert capsys.readouterr().out == first
    assert "linear, accuracy %" in first
    assert run(["report", "one.toml", "--store", "s.sqlite", "--trials", "3"]) == 0
    assert "(2 of 3)" in capsys.readouterr().out


def test_report_of_another_ending(capsys):
    assert "--out (ending): expected one of '.html'" in fails(
        ["report", "one.toml", "--store", "s.sqlite", "--out", "r.doc"], capsys
    )


def test_a_store_is_not_replaced_by_what_is_made_of_it(folder, capsys):
    for command in (
        ["report", "one.toml", "--out", "own.html"],
        ["results", "export", "own.json"],
        ["results", "export", "own.csv"],
    ):
        store = folder / command[-1]
        store.write_bytes((folder / "s.sqlite").read_bytes())
        assert "a store of results" in fails([*command, "--store", store.name], capsys)
        assert store.read_bytes() == (folder / "s.sqlite").read_bytes()


def test_list_and_filter(capsys):
    assert run(["results", "--store", "s.sqlite"]) == 0
    assert "32 runs" in capsys.readouterr().out
    assert run(["results", "--store", "s.sqlite", "--where", "loss=wcll", "--where", "lr=0.010", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 4
    assert all(row["loss"] == "wcll" and row["lr"] == 0.01 for row in rows)
    assert "did you mean 'loss'" in fails(["results", "--store", "s.sqlite", "--where", "los=wcll"], capsys)
    assert "--where: expected name=value" in fails(["results", "--store", "s.sqlite", "--where", "loss"], capsys)


def test_export_and_import_are_lossless(capsys):
    for name in ("all.json", "all.json.gz"):
        assert run(["results", "export", name, "--store", "s.sqlite"]) == 0
        assert run(["results", "import", name, "--store", f"{name}.sqlite"]) == 0
        assert "32 of 32 runs were new" in capsys.readouterr().err
        with Store(Path("s.sqlite")) as a, Store(Path(f"{name}.sqlite")) as b:
            assert {r.key: r.to_dict() for r in a.rows()} == {r.key: r.to_dict() for r in b.rows()}
    assert run(["results", "import", "all.json", "--store", "s.sqlite"]) == 0
    assert "0 of 32 runs were new" in capsys.readouterr().err


def test_flat_exports(capsys):
    assert run(["results", "export", "flat.csv", "--store", "s.sqlite", "--where", "loss=pc"]) == 0
    with open("flat.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 8
    assert {line["loss"] for line in lines} == {"pc"}
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run(["results", "export", "flat.parquet", "--store", "s.sqlite"]) == 0
    table = parquet.read_table("flat.parquet")
    assert table.num_rows == 32
    assert "accuracy" in table.column_names


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_shards(ending, folder, capsys):
    assert run(["results", "export", f"part.{ending}", "--store", "s.sqlite", "--shard", "20kB"]) == 0
    parts = sorted(folder.glob(f"part-*.{ending}"))
    assert all(part.stat().st_size <= 20_000 for part in parts)
    if ending == "json":
        assert len(parts) > 1
        rows = [row for part in parts for row in json.loads(part.read_text())]
        assert len({row["key"] for row in rows}) == 32
    capsys.readouterr()
    assert "--shard: expected at least" in fails(
        ["results", "export", "x.json", "--store", "s.sqlite", "--shard", "300"], capsys
    )
    assert "--shard: expected a size such as 15MB" in fails(
        ["results", "export", "x.json", "--store", "s.sqlite", "--shard", "big"], capsys
    )
    assert not (folder / "x.json").exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"[", "a.json"),
        (b"{}", "b.json"),
        (b'[{"a": 1}]', "c.json"),
        (b'[{"key": "k", "config": {}, "metrics": {}, "history": {}, "provenance": {}}]', "h.json"),
        (b"xx", "d.json.gz"),
        (b"\x1f\x8b\x08\x00" + b"\x07" * 40, "i.json.gz"),
        (b"[" * 100_000, "j.json"),
        (gzip.compress(b"[{}]", mtime=0)[:-9], "e.json.gz"),
        (b"3", "f.json"),
        (b"\xff", "g.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_hold_no_rows(content, name, folder, capsys):
    (folder / name).write_bytes(content)
    expected = "a whole gzip file" if name.endswith(".gz") else "rows that 'wcll results export' wrote"
    assert expected in fails(["results", "import", name, "--store", "new.sqlite"], capsys)
    assert not (folder / "new.sqlite").exists()


def test_other_endings(capsys):
    assert "file ending: expected one of '.json'" in fails(
        ["results", "export", "x.txt", "--store", "s.sqlite"], capsys
    )
    assert "which keeps whole rows" in fails(["results", "import", "flat.csv", "--store", "s.sqlite"], capsys)


def test_dry_run_writes_nothing(folder, capsys):
    before = sorted(folder.iterdir())
    assert run(["run", "one.toml", "--store", "none.sqlite", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "32 runs, 0 of them in none.sqlite, 32 left" in shown
    assert "8 groups of 2 to 6 runs that train together" in shown
    assert "MiB on" in shown
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"dataset": "mnist"}, "dataset 'mnist': expected train-images-idx3-ubyte.gz"),
        ({"dataset": "digit"}, "dataset: expected one of"),
        ({"n_majority": 600}, "n_majority: expected at most"),
        ({"minority": [10]}, "minority: expected classes from 0 to 9"),
    ],
)
def test_data_that_cannot_be_used_leave_no_store(setting, message, folder, capsys, monkeypatch):
    monkeypatch.delenv("WCLL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    (folder / "bad.toml").write_text(suite_toml(**SHORT, **setting))
    assert message in fails(["run", "bad.toml", "--store", "bad.sqlite"], capsys)
    assert not (folder / "bad.sqlite").exists()


def test_unknown_devices(capsys):
    assert "device: expected 'auto', 'cpu' or 'cuda'" in fails(["run", "one.toml", "--device", "tpu"], capsys)


def test_options_before_the_command_count(folder, capsys):
    assert run(["results", "--store", "s.sqlite", "--where", "loss=pc", "export", "before.json"]) == 0
    assert len(json.loads((folder / "before.json").read_text())) == 8
    assert run(["results", "--store", "other.sqlite", "import", "before.json"]) == 0
    assert (folder / "other.sqlite").exists()
    capsys.readouterr()
    assert "--json: expected no command beside it" in fails(["results", "--json", "export", "x.json"], capsys)


def test_titles_are_text_whatever_they_look_like(folder, capsys):
    rows = [WCLL, PC, FORWARD, {"title": "a [/b] [ours] <i>|", "loss": "cross-entropy"}]
    (folder / "odd.toml").write_text(suite_toml(**SHORT, title="[/x]", rows=rows))
    assert run(["run", "odd.toml", "--store", "s.sqlite"]) == 0
    assert "a [/b] [ours] <i>|" in capsys.readouterr().out
    for ending in ("html", "md"):
        assert run(["report", "odd.toml", "--store", "s.sqlite", "--out", f"odd.{ending}"]) == 0
    assert "&lt;i&gt;" in (folder / "odd.html").read_text()
    assert r"\<i\>\|" in (folder / "odd.md").read_text()


def test_own_data_that_changed_are_not_taken_for_the_old(folder, capsys):
    rng = np.random.default_rng(0)
    np.savez(folder / "own.npz", x=rng.random((300, 4)), y=rng.integers(0, 3, 300))
    (folder / "own.toml").write_text(suite_toml(**SHORT, dataset="own.npz", n_majority=30))
    assert run(["run", "own.toml", "--store", "own.sqlite"]) == 0
    assert "not the official file" in capsys.readouterr().out
    assert run(["run", "own.toml", "--store", "own.sqlite"]) == 0
    assert "nothing is left to do" in capsys.readouterr().err
    np.savez(folder / "own.npz", x=rng.random((310, 4)), y=rng.integers(0, 3, 310))
    assert "got one that was changed" in fails(["run", "own.toml", "--store", "own.sqlite"], capsys)


def test_a_unit_that_fails_does_not_keep_the_others(folder, capsys, monkeypatch):
    """A class that is never named cannot be weighted: which seeds it hits is not known beforehand."""
    from wcll.exceptions import InputError
    from wcll.experiments import worker

    plain = worker.run_jobs

    def failing(jobs, *rest, **options):
        if jobs[0][0].first.seed == 0 and not jobs[0][0].first.ordinary:
            raise InputError("ybar", "every class to occur", "none of class 3")
        return plain(jobs, *rest, **options)

    monkeypatch.setattr(worker, "run_jobs", failing)
    assert run(["run", "one.toml", "--store", "partly.sqlite"]) == 2
    assert "ybar: expected every class to occur" in capsys.readouterr().err.splitlines()[-1]
    with Store(Path("partly.sqlite")) as store:
        assert len(list(store.rows())) == 32 - 12


def test_several_processes_make_the_same_table(folder, capsys):
    (folder / "linear.toml").write_text(linear_toml(**SHORT))
    assert run(["run", "linear.toml", "--store", "alone.sqlite"]) == 0
    expected = capsys.readouterr().out
    assert run(["run", "linear.toml", "--store", "two.sqlite", "--processes", "2", "--together", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out == expected
    with Store(Path("two.sqlite")) as store:
        assert len(list(store.rows())) == 32


def test_errors_of_workers_are_one_line_and_come_last(folder, capsys):
    (folder / "wide.toml").write_text(suite_toml(**SHORT, columns=[LINEAR_MODEL, WIDE]))
    assert run(["run", "wide.toml", "--store", "wide.sqlite", "--memory", "60MB", "--processes", "2"]) == 2
    error = capsys.readouterr().err
    assert "--memory: expected at least" in error.splitlines()[-1]
    assert "Traceback" not in error
    with Store(Path("wide.sqlite")) as store:
        assert {row.config["model"] for row in store.rows()} == {"linear"}  # the others were not kept from running


def test_a_memory_that_is_no_size_leaves_no_store(folder, capsys):
    assert "--memory: expected a size" in fails(["run", "one.toml", "--store", "no.sqlite", "--memory", "4XB"], capsys)
    assert not (folder / "no.sqlite").exists()
