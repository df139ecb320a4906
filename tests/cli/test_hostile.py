"""Silly values for every option of every command: a result, or one line of error; never a traceback."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
import typer
from typer.main import get_group

from wcll.cli.app import COMMANDS, run
from wcll.exceptions import InputError
from wcll.experiments import load_suite
from wcll.experiments.run import run as train_now
from wcll.onnx import Checked
from wcll.paper.bound_study import Counterexample, Point, Trend

TINY = """
settings = {dataset = "digits", n_majority = 30, epochs = 1, lr = 0.01}
columns = [{classes = [0, 1, 2]}]
rows = [{loss = "wcll"}]
"""
NUMBERS = ("-1", "0", "1.5", "1e308", "1e-320", "nan", "-inf", "9" * 5000, "9" * 20, "٣")
NAMES = ("", " ", "..", "../x", "~nosuchuser/x", "x" * 5000, "a\nb", "\x1b[31mred", "\udcff", "%s{}")
FILES = ("folder", "pipe", "garbage", "nosuch/x.svg", "garbage/x.json", "pipe.toml")
SILLY = (*NUMBERS, *NAMES, *FILES)
DEVICES = ("/dev/null", "/dev/zero")  #: only for what is read: whoever may write everywhere could replace them
READ = ("suite", "labels", "file", "transition", "data", "folder", "model", "check")

#: What makes a command valid, and quick; names end as their values must.
VALID = {
    "demo": ["--out", "page.html", "--trials", "1"],
    "simulate": ["y.npy", "--out", "ybar.csv", "--force"],
    "run": ["tiny.toml"],
    "report": ["tiny.toml"],
    "paper run": ["table2", "search"],
    "paper report": ["--results", "results"],
    "bound simulate": ["--draws", "2"],
    "train": ["labels.csv", "--not-label", "label", "--loss", "log", "--epochs", "1", "--out", "model", "--force"],
    "predict": ["kept", "labels.csv", "-o", "out.csv"],
    "evaluate": ["kept", "labels.csv", "--not-label", "label"],
    "export": ["kept", "--onnx", "out.onnx"],
    "labels describe": ["labels.csv", "--not-label", "label"],
    "labels import": ["export.jsonl", "-o", "out.csv"],
    "results export": ["rows.json"],
    "results import": ["made.json"],
    "data download": ["digits"],
}


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that can be called, by its words."""
    for name, (place, _) in COMMANDS.items():
        command, group = resolve_name(place), typer.Typer()
        if isinstance(command, typer.Typer):
            group.add_typer(command, name=name)
        else:
            group.command(name)(command)
        found = get_group(group).commands[name]
        yield name, found
        for inner, one in getattr(found, "commands", {}).items():
            yield f"{name} {inner}", one


LEAVES = dict(leaves())
PLACES = [(words, p) for words, command in LEAVES.items() for p in command.params if not getattr(p, "is_flag", False)]


def with_value(words: str, parameter: Any, value: str) -> list[str]:
    """A command that is valid but for one value."""
    rest = list(VALID.get(words, []))
    if parameter.param_type_name == "argument":
        return [*words.split(), value, *rest[1:]] if rest else [*words.split(), value]
    option = parameter.opts[-1]
    if option in rest:
        place = rest.index(option)
        del rest[place : place + 2]
    if words == "bound" and option == "--data":
        rest += ["--suite", "tiny.toml"]
    return [*words.split(), *rest, f"{option}={value}" if option.startswith("--") else option + value]


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {
    "os.mkdir": 0,
    "os.rename": 1,
    "os.remove": 0,
    "os.rmdir": 0,
    "sqlite3.connect": 0,
}  #: which argument is a path
guarded: Path | None = None  #: nothing may be written outside of this folder, while there is one


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuses, before it is done, whatever would change something elsewhere."""
    if guarded is None or not (event == "open" or event in CHANGES):
        return
    target = arguments[CHANGES.get(event, 0)]
    if event == "open" and not (set(str(arguments[1] or "")) & set("wax+") or (arguments[2] or 0) & WRITES):
        return
    if isinstance(target, str | bytes | os.PathLike):
        path = Path(os.path.abspath(os.fsdecode(target)))
        if not path.is_relative_to(guarded) and path != Path("/dev/null"):
            raise AssertionError(f"{event} of {path}, which is outside")
        if path == Path("/dev/null") and event != "open":
            raise AssertionError(f"{event} of {path}")


sys.addaudithook(_guard)


LABELS = "label,1.5\n" + "a,x\nb,y\nc,x\n" * 5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a model, which is copied."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "labels.csv").write_text(LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["train", *VALID["train"], "--out", "kept"]) == 0
    return folder / "kept"


@pytest.fixture
def place(tmp_path, monkeypatch, request, model):
    """A folder with files of all kinds; work is small, or patched away."""
    global guarded
    inside = tmp_path / "inside"
    (inside / "results").mkdir(parents=True)
    monkeypatch.chdir(inside)
    for name in ("HOME", "XDG_CACHE_HOME", "WCLL_DATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("folder", "folder.toml"):
        Path(name).mkdir()
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(name)
    Path("garbage").write_bytes(bytes(range(256)))
    Path("tiny.toml").write_text(TINY)
    np.save("y.npy", np.repeat(np.arange(3), 20))
    Path("labels.csv").write_text(LABELS)
    Path("export.jsonl").write_text('{"text": "a", "label": "b", "answer": "reject"}\n')
    tiny = load_suite("tiny.toml")
    for module in ("experiments", "paper"):
        monkeypatch.setattr(f"wcll.cli.{module}.load_suite", lambda name: tiny)
    train = cache(lambda seeds: train_now(tiny, store=None, trials=seeds, device="cpu"))
    monkeypatch.setattr("wcll.cli.experiments.run", lambda suite, *, trials, **_: train(trials))
    monkeypatch.setattr("wcll.cli.paper.train_with_progress", lambda *_: {})
    monkeypatch.setattr("wcll.cli.paper.protocols.search_trials", lambda *_: [])
    monkeypatch.setattr("wcll.cli.paper.bound_study.simulate", measured)
    monkeypatch.setattr("wcll.cli.paper.bound_study.measure", lambda world, seeds, progress: ORTHOGONAL)
    monkeypatch.setattr("wcll.cli.models.to_onnx", lambda *_, **more: Checked(1, more["tolerance"]))
    monkeypatch.setattr("wcll.cli.data.download_dataset", refused)
    if request.param == "results":
        assert run(["run", "tiny.toml"]) == 0
        assert run(["results", "export", "made.json"]) == 0
    if request.param == "model":
        shutil.copytree(model, "kept")
    guarded = tmp_path
    yield
    guarded = None


ORTHOGONAL = Counterexample(3, 2, 1.0, 9, 0.05, (0,), (0.5,), (0.6,), 0.4, 9.0, 0.1)


def measured(labels: str, kind: str, *, draws: int, seed: int) -> Trend:
    point = Point(100, 1.0, 0.5, 2.0, 3.0, 4.0, draws, draws, 4.0, False)
    return Trend(labels, kind, draws, (point, point), -0.5, -0.6, -0.4)


def refused(*_: object) -> None:
    raise InputError("download", "no network in tests", "one")


#: What is there before a command is tried.
NEEDS = dict.fromkeys(("run", "report", "results"), "results") | dict.fromkeys(
    ("predict", "evaluate", "export"), "model"
)


@pytest.mark.parametrize(("place", "words", "parameter"), [
    pytest.param(NEEDS.get(words.split()[0], ""), words, parameter,
                 id=f"{words}-{parameter.name}".replace(" ", "-"))
    for words, parameter in PLACES
], indirect=["place"])  # fmt: skip
def test_silly_values_are_a_result_or_one_line(words, parameter, place):
    values = (*SILLY, *DEVICES) if parameter.name in READ else SILLY
    found = [fault for value in values if (fault := wrong(with_value(words, parameter, value)))]
    assert not found, "\n".join(found)


def wrong(arguments: list[str]) -> str:
    """What is wrong with how a command ends, in ASCII; nothing if all is well."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors="replace") for _ in range(2)]  # as ``main`` makes them
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            code = run(arguments)
    except Exception as error:
        return ascii((arguments[-1][:60], error))[:600]
    streams[1].seek(0)
    said = streams[1].read()
    errors = [line for line in said.split("\n") if line.startswith("wcll: error: ")]
    last = said.endswith(f"{errors[0]}\n") if errors else True
    well = (code, len(errors)) in ((0, 0), (2, 1)) and last and "Traceback" not in said
    return "" if well else ascii((arguments[-1][:60], code, said[-400:]))
