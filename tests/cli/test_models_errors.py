"""Bad data and bad models: one line, exit code 2, and nothing half-written."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from own_files import QUICK, columns, digits, write_all, write_csv
from wcll._files import MODEL, PREPROCESSING
from wcll.cli.app import run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data, and a model of them."""
    folder = tmp_path_factory.mktemp("own")
    files = write_all(folder, 60)
    assert run(["train", str(files["csv"]), "--ignore", "label", *QUICK, "--out", str(folder / "model")]) == 0
    return folder


def values():
    images, true, ruled_out = digits(60)
    return {**columns(images), "not_label": ruled_out, "label": true}


def line_of(words, capsys):
    """The one line that a command fails with."""
    capsys.readouterr()
    assert run([str(word) for word in words]) == 2
    said = capsys.readouterr().err.splitlines()
    errors = [line for line in said if line.startswith("wcll: error: ")]
    assert len(errors) == 1
    assert said[-1] == errors[0]
    return errors[0]


def with_cell(column, row, cell):
    found = values()
    found[column][row] = cell
    return found


TABLES = {
    "missing label": (with_cell("not_label", 4, ""), [], "expected a label of every row, got none of row 5 (1 without)"),
    "no class": (with_cell("not_label", 4, "zer"), ["--classes", "zero,one,two"], "labels among zero, one, two, got 'zer' in row 5"),
    "all classes": (with_cell("not_label", 4, "zero|one|two"), [], "all 3 ruled out of row 5"),
    "one class": ({**values(), "not_label": ["zero"] * 60}, [], "labels of at least two classes, got zero"),
    "names": ({**values(), "name": [f"x{i}" for i in range(60)]}, [], "60 different texts in 60 rows of column 'name', such as 'x0'; leave it out: --ignore name"),
    "a true label": ({**values(), "verdict": values()["label"]}, [], "column 'verdict' holds names of classes, such as 'zero'; is it a true label? leave it out: --ignore verdict"),
    "a true label of half the rows": ({**values(), "verdict": ["?" if i % 2 else one for i, one in enumerate(values()["label"])]}, [], "column 'verdict' holds names of classes, such as 'zero'; is it a true label? leave it out: --ignore verdict (--feature verdict keeps it)"),
    "a true label in capitals": ({**values(), "verdict": [one.upper() for one in values()["label"]]}, [], "column 'verdict' holds names of classes"),
    "a true label of one class": ({**values(), "verdict": ["zero" if one == "zero" else "" for one in values()["label"]]}, [], "column 'verdict' holds names of classes, such as 'zero'; is it a true label?"),
    "codes by their name": ({**values(), "True Label": [i % 7 for i in range(60)]}, [], "got column 'True Label', a usual name of true labels; is it one? leave it out: --ignore 'True Label' (--feature 'True Label' keeps it)"),
    "a category by its name": ({**values(), "class_label": [i % 7 for i in range(60)]}, ["--category", "class_label"], "got column 'class_label', a usual name of true labels; is it one? leave it out: --ignore class_label (--feature class_label keeps it)"),
    "no such feature": (values(), ["--feature", "nosuch"], "--feature: expected the name of a column of features, got 'nosuch'"),
    "labels twice": ({**values(), "item": list(range(60))}, ["--labels", "labels.csv"], "--labels: expected data without labels of their own, got column 'not_label'; leave it out: --ignore not_label"),
    "infinity": (with_cell("p5", 7, "inf"), [], "finite numbers in column 'p5', got infinity in row 8"),
    "no column": (values(), ["--not-label", "nolabel"], "--not-label: expected one of the columns"),
    "two purposes": (values(), ["--group", "not_label"], "expected a column for one purpose, got 'not_label' twice"),
    "no group": (with_cell("ink", 3, ""), ["--group", "ink"], "a value in every row of column 'ink', the group, got none in row 4"),
    "items differ": ({**values(), "item": ["a", "a", *map(str, range(58))]}, ["--item", "item"], "one value of column 'p2' for item 'a', got"),
    "no features": ({"not_label": values()["not_label"]}, [], "at least one column of features"),
    "category": (values(), ["--category", "nosuch"], "--category: expected the name of a column of features, got 'nosuch'"),
    "loss": (values(), ["--loss", "forwar"], "did you mean 'forward'?"),
    "model": (values(), ["--model", "liner"], "did you mean 'linear'?"),
    "transition": (values(), ["--transition", "popular"], "did you mean 'popularity'?"),
    "budget": (values(), ["--loss", "wcll"], "--budget: expected --loss auto beside it"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_cannot_be_learnt_from(name, tmp_path, capsys):
    made, options, expected = TABLES[name]
    data = write_csv(tmp_path / "data.csv", made)
    ignore = ["--ignore", "label"] if "label" in made else []
    assert expected in line_of(["train", data, *ignore, *QUICK, *options, "--out", tmp_path / "model"], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,a,not_label\n1,2,x\n", "columns of different names, got 'a' 2 times"),
        ("a;b;not_label\n1;2;x\n", "columns separated by commas"),
        ("a,not_label\n1\n", "2 cells in every line, as in the first, got 1 in line 2"),
        ("a,not_label\n", "at least one row, got none"),
        ("", "a header line with the names of columns, got none"),
        ("a,,not_label\n1,2,x\n", "a name of every column, got none of column 2"),
        ('a,not_label\n"1,x\n', "a CSV file with a header line"),
    ],
)
def test_files_that_are_no_tables(text, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(text)
    assert expected in line_of(["train", tmp_path / "data.csv", *QUICK, "--out", tmp_path / "model"], capsys)


def test_other_files(place, tmp_path, capsys):
    (tmp_path / "x.parquet").write_text("no table")
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2)))
    (tmp_path / "empty").mkdir()
    for name, expected in (
        ("x.parquet", "a whole .parquet file"),
        ("x.npz", "an array ybar, got none"),
        ("empty", "a folder without manifest.csv"),
        ("nosuch.csv", "No such file"),
        ("x.txt", "a .csv, .parquet or .npz file, or a folder of images"),
    ):
        assert expected in line_of(["train", tmp_path / name, *QUICK, "--out", tmp_path / "model"], capsys)


def test_new_data_that_do_not_fit_the_model(place, tmp_path, capsys):
    out = tmp_path / "out.csv"

    def refused(made, *options):
        write_csv(tmp_path / "new.csv", made)
        return line_of(["predict", place / "model", tmp_path / "new.csv", "-o", out, *options], capsys)

    odd = with_cell("ink", 3, "none")
    assert "categories of column 'ink' among little, much, got 'none' in row 4; --unknown-category ignore" in refused(
        odd
    )
    assert "a number, got text such as 'clay' in column 'p5'" in refused(with_cell("p5", 3, "clay"))
    assert "a date such as 2024-05-31, got text such as 'May' in column 'day'" in refused(with_cell("day", 3, "May"))
    assert "got no 'p2'" in refused({name: some for name, some in values().items() if name != "p2"})
    assert "a table with columns" in line_of(["predict", place / "model", place / "train.npz", "-o", out], capsys)
    assert not out.exists()
    write_csv(tmp_path / "new.csv", odd)
    words = ["predict", place / "model", tmp_path / "new.csv", "-o", out, "--unknown-category", "ignore"]
    assert run([str(word) for word in words]) == 0
    assert "a column that is no feature" in line_of(
        ["evaluate", place / "model", tmp_path / "new.csv", "--true-label", "ink"], capsys
    )
    write_csv(tmp_path / "new.csv", with_cell("label", 3, "seven"))
    assert "labels among the model's classes, one, two, zero, got 'seven' in row 4" in line_of(
        ["evaluate", place / "model", tmp_path / "new.csv", "--true-label", "label"], capsys
    )


def change_text(name, old, new):
    def change(folder):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(old, new, 1))

    return change


DAMAGE = {
    "bit": (lambda folder: flip(folder / MODEL, -3), "an unchanged model file"),
    "short": (lambda folder: cut(folder / MODEL), "an unchanged model file"),
    "gone": (lambda folder: (folder / MODEL).unlink(), "a saved model"),
    "numbers": (change_text(PREPROCESSING, b'"mean": [\n', b'"mean": [\n 1e3,\n'), "contents that do not match their digest"),
    "json": (lambda folder: cut(folder / PREPROCESSING), "JSON that wcll train wrote"),
    "foreign": (lambda folder: (folder / PREPROCESSING).write_text("[1]"), "a file of format 'wcll-own-1'"),
    "version": (change_text(PREPROCESSING, b"wcll-own-1", b"wcll-own-9"), "a file of format 'wcll-own-1', got wcll-own-9"),
    "nothing": (lambda folder: (folder / PREPROCESSING).unlink(), "without preprocessing.json"),
}  # fmt: skip


def flip(path, place):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_and_foreign_models(name, place, tmp_path, capsys):
    damage, expected = DAMAGE[name]
    shutil.copytree(place / "model", tmp_path / "model")
    damage(tmp_path / "model")
    words = ["predict", tmp_path / "model", place / "train.csv", "-o", tmp_path / "out.csv"]
    assert expected in line_of(words, capsys)
    assert not (tmp_path / "out.csv").exists()


def test_forged_entries_are_checked_one_by_one(place, tmp_path, capsys):
    """Whoever writes a right digest, too, is still refused what cannot be."""
    from wcll.owndata.folder import _digest

    shutil.copytree(place / "model", tmp_path / "model")
    path = tmp_path / "model" / PREPROCESSING
    for change in (
        {"preprocessing": {}},
        {"kind": "music"},
        {"roles": {}},
        {"size": [0, 1]},
        {"colour": 3},
        {"stamp": None},
    ):
        content = {**json.loads(path.read_text()), **change}
        content.pop("digest")
        forged = tmp_path / "forged"
        shutil.copytree(tmp_path / "model", forged)
        (forged / PREPROCESSING).write_text(json.dumps({**content, "digest": _digest(content)}))
        words = ["predict", forged, place / "train.csv", "-o", tmp_path / "out.csv"]
        assert "entries that can be used" in line_of(words, capsys)
        shutil.rmtree(forged)


def test_folders_that_are_not_replaced(place, tmp_path, capsys):
    data = place / "train.csv"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("")
    for name, expected in (
        ("mine", "which holds other files"),
        ("file", "expected a folder"),
        ("nosuch/model", "a folder that can be written"),
    ):
        for force in ([], ["--force"]):
            assert expected in line_of(["train", data, *QUICK, "--out", tmp_path / name, *force], capsys)
    assert (tmp_path / "mine" / "thesis.txt").exists()
    shutil.copytree(place / "model", tmp_path / "model")
    assert "add --force" in line_of(["train", data, *QUICK, "--out", tmp_path / "model"], capsys)
    words = ["train", data, "--ignore", "label", *QUICK, "--seed", "1", "--out", tmp_path / "model", "--force"]
    assert run([str(word) for word in words]) == 0
    assert (tmp_path / "model" / MODEL).read_bytes() != (place / "model" / MODEL).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "model"]


def test_an_image_that_cannot_be_decoded_is_named_or_counted(place, tmp_path, capsys):
    shutil.copytree(place / "train", tmp_path / "images")
    (tmp_path / "images" / "7.png").write_bytes(b"\x89PNG no")
    words = ["train", tmp_path / "images", *QUICK, "--out", tmp_path / "model"]
    assert "7.png: expected an image that can be read" in line_of(words, capsys)
    assert not (tmp_path / "model").exists()
    assert run([str(word) for word in [*words, "--skip-bad"]]) == 0
    note = "1 of 60 images cannot be decoded and are left out, first 7.png"
    assert note in capsys.readouterr().err
    assert note in (tmp_path / "model" / "page.html").read_text()
    assert note in (tmp_path / "model" / "card.md").read_text()
    manifest = tmp_path / "images" / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("3.png", "../x.png", 1))
    assert "paths inside its folder, got '../x.png'" in line_of([*words, "--force"], capsys)


def test_images_of_different_sizes(place, tmp_path, capsys):
    from PIL import Image

    shutil.copytree(place / "train", tmp_path / "images")
    Image.new("L", (20, 10), 128).save(tmp_path / "images" / "7.png")
    words = ["train", tmp_path / "images", *QUICK, "--out", tmp_path / "model"]
    assert "an image of 8 x 8 pixels as 0.png, got 20 x 10 pixels" in line_of(words, capsys)
    assert run([str(word) for word in [*words, "--size", "6x5"]]) == 0
    out = tmp_path / "out.csv"
    assert run(["predict", str(tmp_path / "model"), str(tmp_path / "images"), "-o", str(out)]) == 0
    assert len(out.read_text().splitlines()) == 61


def test_cells_of_output_are_no_formulas(tmp_path):
    made = values()
    made["not_label"] = [{"zero": "=cmd()", "one": "@x", "two": "+1x"}[name] for name in made["not_label"]]
    made["who"] = [f"-{i}x" for i in range(60)]
    data = write_csv(tmp_path / "data.csv", made)
    words = ["train", data, "--ignore", "label", "--item", "who", *QUICK, "--out", tmp_path / "model"]
    assert run([str(word) for word in words]) == 0
    out = tmp_path / "out.csv"
    assert run(["predict", str(tmp_path / "model"), str(data), "--item", "who", "-o", str(out)]) == 0
    cells = [cell for line in out.read_text().splitlines() for cell in line.split(",")]
    assert "'=cmd()" in cells
    assert not [cell for cell in cells if cell[0] in "=+-@"]
