"""No command replaces a file without ``--force``, writes onto what it reads, or into the folder of a model."""

from __future__ import annotations

import csv
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import wcll
from own_files import QUICK, write_all, write_csv, write_export
from small import suite_toml
from wcll.cli.app import run
from wcll.experiments import load_suite

RESULTS = Path(wcll.__file__).parents[2] / "results" / "paper"
ONE = suite_toml(trials=1, epochs=1)

#: Commands, to which the name of their file is added: its ending is beside them.
COMMANDS = {
    "predict": (["predict", "model", "train.csv", "-o"], ".csv"),
    "export": (["export", "model", "--onnx"], ".onnx"),
    "labels import": (["labels", "import", "export.json", "--item", "file", "-o"], ".csv"),
    "labels describe": (["labels", "describe", "train.csv", "--not-label", "not_label", "--out"], ".html"),
    "simulate": (["simulate", "y.npy", "--out"], ".csv"),
    "report": (["report", "one.toml", "--store", "s.sqlite", "--out"], ".html"),
    "results export": (["results", "export", "--store", "s.sqlite"], ".json"),
    "bound simulate": (["bound", "simulate", "--draws", "2", "--out"], ".json"),
    "bound counterexample": (["bound", "counterexample", "--draws", "1", "--out"], ".json"),
    "demo": (["demo", "--out"], ".html"),
    "paper report": (["paper", "report", "--results", str(RESULTS), "--out"], ".html"),
}
SLOW = {"demo", "paper report"}  #: tried where nothing is computed; their own tests have the rest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Data, a model of them, a suite and its results."""
    folder = tmp_path_factory.mktemp("made")
    files = write_all(folder, 60)
    np.save(folder / "y.npy", np.arange(60) % 3)
    write_export(folder / "export.json", [f"{i}.png" for i in range(60)], ["zero", "one", "two"] * 20)
    (folder / "one.toml").write_text(ONE)
    assert run(["train", str(files["csv"]), "--ignore", "label", *QUICK, "--out", str(folder / "model")]) == 0
    assert run(["train", str(files["images"]), *QUICK, "--out", str(folder / "eyes")]) == 0
    assert run(["run", str(folder / "one.toml"), "--store", str(folder / "s.sqlite")]) == 0
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy of them, in which commands run."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files, also through links."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(words, folder, capsys):
    """The one line that a command fails with, before anything is written."""
    before = contents(folder)
    capsys.readouterr()
    assert run([str(word) for word in words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert contents(folder) == before
    return line


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_replaced_with_force_alone(name, place, capsys):
    words, ending = COMMANDS[name]
    target = place / f"mine{ending}"
    target.write_text("years of work")
    said = refused([*words, target], place, capsys)
    assert "expected a new file, got" in said
    assert f"mine{ending}, which exists; add --force to replace it" in said
    if name not in SLOW:
        assert run([*words, str(target), "--force"]) == 0
        assert target.read_bytes() != b"years of work"


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_written_into_a_model(name, place, capsys):
    words, ending = COMMANDS[name]
    (place / "other.unfinished").mkdir()
    (place / "other.unfinished" / "state.safetensors").touch()
    (place / "link").symlink_to("model")
    targets = [f"model/new{ending}", f"link/new{ending}", f"other.unfinished/new{ending}"]
    for target in targets:
        for force in ([], ["--force"]):
            assert "a file outside of models" in refused([*words, target, *force], place, capsys)
    assert "a file outside of models" in refused(["predict", "model", "train.csv", "-o", "model/history.csv", "--force"],
                                                 place, capsys)  # fmt: skip


def test_a_folder_without_weights_is_no_model(place):
    (place / "other").mkdir()
    (place / "other" / "preprocessing.json").write_text("{}")
    assert run(["simulate", "y.npy", "--out", "other/y.csv"]) == 0


def test_results_are_not_kept_in_a_model(place, capsys):
    assert "a file outside of models" in refused(["run", "one.toml", "--store", "model/s.sqlite"], place, capsys)


@pytest.mark.parametrize("part", ["table2", "images", "all"])
@pytest.mark.parametrize("folder", ["model", "model/results", "m.unfinished/results"])
def test_results_of_the_paper_are_not_written_into_a_model(part, folder, place, capsys, monkeypatch):
    monkeypatch.setattr("wcll.cli.paper.load_suite", lambda name: pytest.fail("runs are prepared"))
    (place / "m.unfinished").mkdir()
    (place / "m.unfinished" / "state.safetensors").touch()
    line = refused(["paper", "run", part, "--store", "new.sqlite", "--results", folder], place, capsys)
    assert "--results: expected a file outside of models" in line


INPUTS = {
    "the table": (["predict", "model", "train.csv"], "train.csv"),
    "a manifest": (["predict", "eyes", "train", "-o"], "train/manifest.csv"),
    "an image": (["predict", "eyes", "train", "-o"], "train/odd.csv"),
    "the table of labels": (["labels", "import", "export.csv", "-o"], "export.csv"),
    "labels that are described": (["labels", "describe", "train.html", "--out"], "train.html"),
    "what a file is checked on": (["export", "model", "--check", "check.onnx", "--onnx"], "check.onnx"),
    "ordinary labels": (["simulate", "train.csv", "--column", "label", "--out"], "train.csv"),
    "the suite": (["report", "one.toml", "--store", "s.sqlite", "--out"], "one.toml"),
}


@pytest.mark.parametrize("kind", ["itself", "symlink", "hard link", "another way"])
@pytest.mark.parametrize("name", INPUTS)
def test_what_a_command_reads_is_not_replaced(name, kind, place, capsys):
    words, source = INPUTS[name]
    words = words if words[-1].startswith("-") else [*words, "-o"]
    for one in ("train/odd.csv", "export.csv", "train.html", "check.onnx"):
        (place / one).write_text("one of the files that are read")
    target = place / source
    if kind != "itself":
        target = place / f"elsewhere{target.suffix}"
        if kind == "symlink":
            target.symlink_to(place / source)
        elif kind == "hard link":
            os.link(place / source, target)
        else:  # what is read is itself a link
            (place / source).rename(target)
            (place / source).symlink_to(target)
    for force in ([], ["--force"]):
        line = refused([*words, target, *force], place, capsys)
        assert "expected another file than those that are read, got" in line
        assert "--force" not in line


def test_a_matrix_is_not_replaced_by_labels(place, capsys):
    np.save("q.npy", np.full((3, 3), 0.5) - np.eye(3) / 2)
    os.link("q.npy", "q.csv")
    words = ["simulate", "y.npy", "--transition", "q.npy", "--out", "q.csv", "--force"]
    assert "another file than those that are read" in refused(words, place, capsys)


def test_a_new_file_beside_images_is_none_of_them(place):
    assert run(["predict", "eyes", "train", "-o", "train/predicted.csv"]) == 0
    assert (place / "train" / "predicted.csv").is_file()


def test_every_file_of_an_export_in_parts_is_new(place, capsys):
    (place / "rows-2.json").write_text("mine")
    words = ["results", "export", "rows.json", "--store", "s.sqlite", "--shard", "20kB"]
    assert "rows-2.json, which exists; add --force" in refused(words, place, capsys)
    assert run([*words, "--force"]) == 0
    assert (place / "rows-2.json").read_text() != "mine"
    assert not (place / "rows.json").exists()


@pytest.fixture
def read_once(paper_results, monkeypatch):
    """The paper's results, which take seconds to read: from memory."""
    monkeypatch.setattr("wcll.cli.paper.read_reproduction", lambda folder: paper_results)


@pytest.mark.usefixtures("read_once")
def test_every_figure_of_the_paper_s_page_is_new(place, capsys):
    words = ["paper", "report", "--results", str(RESULTS), "--out", "paper.md"]
    (place / "figures").write_text("no folder")
    assert "figures, which is none" in refused(words, place, capsys)
    (place / "figures").unlink()
    assert run(words) == 0
    first = min((place / "figures").iterdir())
    (place / "paper.md").unlink()
    assert f"{first.name}, which exists; add --force" in refused(words, place, capsys)


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("words", [["demo"], ["paper", "report", "--results", str(RESULTS)]])
def test_a_page_that_nobody_named_replaces_its_own_kind_alone(words, place, capsys, monkeypatch):
    """Without --out, a page that the same command wrote is replaced, as the command is given again and again."""
    suite = load_suite("demo")
    rows = (replace(suite.rows[0], settings={**suite.rows[0].settings, "budget": 300}), *suite.rows[1:])
    short = replace(suite, settings={**suite.settings, "epochs": 1}, rows=rows)
    monkeypatch.setattr("wcll.cli.experiments.load_suite", lambda name: short)
    name = "wcll-demo.html" if words == ["demo"] else "wcll-paper.html"
    words = [*words, "--trials", "1"] if words == ["demo"] else words
    (place / name).write_text("<!doctype html>\n<title>mine</title>")
    assert f"{name}, which exists; add --force" in refused(words, place, capsys)
    (place / name).unlink()
    for _ in range(2):
        assert run(words) == 0
    assert "</html>" in (place / name).read_text()
    shutil.copy(name, "copy.html")
    assert "copy.html, which exists; add --force" in refused([*words, "--out", "copy.html"], place, capsys)


def test_a_link_that_leads_nowhere_is_replaced(place):
    (place / "a.csv").symlink_to("a.csv")
    assert run(["simulate", "y.npy", "--out", "a.csv"]) == 0
    assert (place / "a.csv").read_text().startswith("index,ybar\n")


# --- train -----------------------------------------------------------------------------------------------------------

TRAIN = ["train", "train.csv", "--ignore", "label", *QUICK, "--out"]


@pytest.mark.parametrize("kind", ["file", "link", "broken link", "others'", "a name of ours", "a link of our name"])
def test_a_folder_of_others_is_not_trained_in(kind, place, capsys):
    """Only what a training wrote is deleted; whatever else is there is refused before anything is read."""
    folder, others = place / "m.unfinished", place / "others"
    others.mkdir()
    (others / "epoch-best.safetensors").write_bytes(b"mine")
    (others / "epoch-3.safetensors").write_bytes(b"mine")
    (others / "images-mine.npy").write_bytes(b"mine")
    if kind == "file":
        folder.write_text("mine")
    elif kind == "link":
        folder.symlink_to("others")
    elif kind == "broken link":
        folder.symlink_to("nowhere")
    else:
        folder.mkdir()
        if kind == "others'":
            (folder / "epoch-best.safetensors").write_bytes(b"mine")
        elif kind == "a name of ours":
            (folder / "epoch-3.safetensors").write_bytes(b"mine")
        else:
            (folder / "state.safetensors").symlink_to("../others/epoch-3.safetensors")
    for more in ([], ["--force"], ["--resume"]):
        line = refused([*TRAIN, "m", *more], place, capsys)
        assert "--out: expected" in line
        assert "m.unfinished" in line
    assert not (place / "m").exists()


def test_an_empty_folder_will_do_and_others_files_stay(place):
    (place / "m.unfinished").mkdir()
    assert run([*TRAIN, "m"]) == 0
    assert not (place / "m.unfinished").exists()


@pytest.mark.parametrize("kind", ["another model's", "a folder of ours", "a link", "another's settings"])
def test_a_folder_that_only_looks_like_a_model_is_not_replaced(kind, place, capsys):
    folder = place / "m"
    shutil.copytree(place / "model", folder)
    if kind == "another model's":
        for path in folder.iterdir():
            path.unlink()
        (folder / "preprocessing.json").write_text('{"tokens": 3}')
        (folder / "model.safetensors").write_bytes(b"another's weights")
    elif kind == "another's settings":
        (folder / "preprocessing.json").write_text('["wcll-own-1"]')
    else:
        (folder / "card.md").unlink()
        if kind == "a link":
            (folder / "card.md").symlink_to("../train.csv")
        else:
            (folder / "card.md").mkdir()
            (folder / "card.md" / "thesis.txt").write_text("years of work")
    assert "which holds other files" in refused([*TRAIN, "m", "--force"], place, capsys)


def test_a_damaged_model_may_be_replaced(place):
    path = place / "model" / "preprocessing.json"
    path.write_bytes(path.read_bytes()[:-100])
    assert run([*TRAIN, "model", "--force"]) == 0
    assert run(["predict", "model", "train.csv", "-o", "p.csv"]) == 0


def test_a_model_is_not_replaced_by_one_that_is_trained_on_its_files(place, capsys):
    line = refused(["train", "model/history.csv", "--not-label", "epoch", *QUICK, "--out", "model", "--force"],
                   place, capsys)  # fmt: skip
    assert "expected another folder than those that are read" in line
    np.save("q.npy", np.full((3, 3), 0.5) - np.eye(3) / 2)
    shutil.copy("q.npy", "model/history.csv")
    Path("q.npy").unlink()
    Path("q.npy").symlink_to("model/history.csv")
    line = refused([*TRAIN, "model", "--force", "--loss", "forward", "--transition", "q.npy"], place, capsys)
    assert "expected another folder than those that are read" in line


def test_files_that_come_into_a_model_meanwhile_stay(place, monkeypatch):
    from wcll.cli import models

    plain = models.learn

    def slow(*given, **more):
        (place / "model" / "notes.txt").write_text("written while the next model was trained")
        return plain(*given, **more)

    monkeypatch.setattr(models, "learn", slow)
    assert run([*TRAIN, "model", "--force", "--seed", "1"]) == 0
    assert (place / "model" / "notes.txt").read_text() == "written while the next model was trained"
    assert [path.name for path in place.iterdir() if path.name.startswith(".")] == []


def test_images_of_a_stream_are_decoded_beside_others_files(place):
    """A stream of images keeps them in the folder of the training, and deletes earlier ones of its own."""
    folder = place / "m.unfinished"
    words = ["train", "train", "--stream", *QUICK, "--out", "m"]
    folder.mkdir()
    old, mine = folder / "images-0123456789abcdef.npy", folder / "images-mine.npy"
    np.save(old, np.zeros(3))
    np.save(mine, np.zeros(3))
    (folder / "epoch-best.safetensors").write_bytes(b"mine")
    assert run(words) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["epoch-best.safetensors", "images-mine.npy"]


def test_class_names_are_no_formulas(place):
    """As in the files of the other commands, names that a spreadsheet would run begin with an apostrophe."""
    write_csv(place / "names.csv", {"label": ["=cmd()", "+", "@x", "plain", "-1", "a,b"] * 10})
    assert run(["simulate", "names.csv", "--out", "out.csv"]) == 0
    with open("out.csv", newline="") as file:
        cells = [row["ybar"] for row in csv.DictReader(file)]
    assert set(cells) == {"'=cmd()", "'+", "'@x", "plain", "-1", "a,b"}
    assert run(["simulate", "names.csv", "--n-labels", "2", "--out", "two.csv"]) == 0
    with open("two.csv", newline="") as file:
        assert not [row for row in csv.DictReader(file) if row["ybar"][0] in "=+@"]


def test_a_suite_deletes_no_checkpoints_of_others(place):
    """Beside the store, trainings under way are saved; what others have put there stays."""
    folder = place / "new.sqlite.checkpoints"
    folder.mkdir()
    for name in ("best.safetensors", "best.safetensors.index.json"):
        (folder / name).write_bytes(b"another's weights")
    (folder / f"{'0' * 24}.safetensors").write_bytes(b"a damaged one of ours")
    assert run(["run", "one.toml", "--store", "new.sqlite"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["best.safetensors", "best.safetensors.index.json"]
