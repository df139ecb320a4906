"""Exports of annotation tools become one plain table, which ``wcll labels describe`` reads."""

from __future__ import annotations

import csv
import json
import socket

import pytest
from pyarrow import parquet

from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.owndata.annotation_tools import Label, read_export


def choices(names, control="not"):
    return {"type": "choices", "from_name": control, "to_name": "image", "value": {"choices": names}}


def annotation(*results, by=1, **more):
    return {
        "completed_by": by,
        "was_cancelled": False,
        "created_at": "2024-05-31T10:00:00.5Z",
        "result": [*results],
        **more,
    }


STUDIO = [
    {
        "id": 7,
        "data": {"image": "https://example.org/a.png", "options": ["cat", "dog", "elk"]},
        "annotations": [
            annotation(choices(["cat"])),
            annotation(choices(["dog", "elk"]), by={"id": 2, "email": "b@example.org"}),
            annotation(choices(["elk"]), was_cancelled=True),
            annotation({"type": "textarea", "from_name": "note", "value": {"text": ["hm"]}}),
        ],
    },
    {"id": 8, "data": {"image": "=cmd()", "options": [{"value": "cat"}, {"value": "dog"}]}, "annotations": [annotation(choices(["dog"]))]},
    {"id": 9, "data": {}, "annotations": []},
]  # fmt: skip

PRODIGY = [
    {"text": "a", "label": "cat", "answer": "reject", "_annotator_id": "x", "_timestamp": 1717149600, "_input_hash": 11},
    {"text": "a", "label": "dog", "answer": "accept", "_annotator_id": "x", "_timestamp": 1717149601, "_input_hash": 11},
    {"text": "b", "label": "cat", "answer": "ignore", "_session_id": "y"},
    {"text": "b", "options": [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}], "accept": ["dog"], "answer": "reject", "_session_id": "y"},
    {"text": "c", "options": [{"id": "cat"}, {"id": "dog"}], "accept": [], "answer": "reject"},
    {"image": "data:image/png;base64,AAAA", "label": "elk", "answer": "reject", "_input_hash": -5},
]  # fmt: skip


@pytest.fixture
def studio(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(STUDIO))
    return path


@pytest.fixture
def prodigy(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(map(json.dumps, PRODIGY)) + "\n")
    return path


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("an address was looked up")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


def test_label_studio(studio):
    found = read_export(studio)
    when, offered = "2024-05-31T10:00:00.500000+00:00", ("cat", "dog", "elk")
    assert found.labels == [
        Label("7", "cat", "1", offered, when),
        Label("7", "dog", "b@example.org", offered, when),
        Label("7", "elk", "b@example.org", offered, when),
        Label("8", "dog", "1", ("cat", "dog"), when),
    ]
    assert dict(found.skipped) == {"skipped": 1, "without a choice": 1}


def test_prodigy(prodigy):
    found = read_export(prodigy)
    assert found.labels == [
        Label("a", "cat", "x", (), "2024-05-31T10:00:00+00:00"),
        Label("a", "", "x", (), "2024-05-31T10:00:01+00:00", "dog"),
        Label("b", "dog", "y", ("cat", "dog")),
        Label("-5", "elk"),
    ]
    assert dict(found.skipped) == {"ignored": 1, "without a label": 1}


def test_the_table_as_csv_and_parquet(studio, tmp_path, capsys):
    assert run(["labels", "import", str(studio), "-o", str(tmp_path / "l.csv"), "--item", "options"]) == 2
    assert (
        "--item: expected a field that names every item, got none in task 1; fields: image, options"
        in capsys.readouterr().err
    )
    studio.write_text(json.dumps(STUDIO[:2]))
    for ending in ("csv", "parquet"):
        words = ["labels", "import", str(studio), "-o", str(tmp_path / f"l.{ending}"), "--item", "image"]
        assert run(words) == 0
    said = capsys.readouterr()
    assert "4 labels of 2 items by 2 annotators, 3 classes: " in said.out
    assert "1 annotations skipped" in said.err
    with (tmp_path / "l.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["item", "not_label", "annotator", "offered", "time"]
    assert rows[0]["offered"] == "cat|dog|elk"
    assert rows[3]["item"] == "'=cmd()"
    kept = parquet.read_table(tmp_path / "l.parquet").to_pylist()
    assert kept[3]["item"] == "=cmd()"
    assert kept[0]["offered"] == ["cat", "dog", "elk"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("true", [False, True])
def test_describe_reads_what_was_imported(prodigy, tmp_path, ending, true, capsys):
    lines = [
        {"text": str(i), "label": "abc"[(i + i // 9) % 3], "answer": "reject", "_annotator_id": "xy"[i % 2]}
        for i in range(60)
    ]
    lines += [{"text": "60", "label": "a", "answer": "accept"}]
    prodigy.write_text("\n".join(map(json.dumps, lines)))
    out = tmp_path / f"labels.{ending}"
    assert run(["labels", "import", str(prodigy), "-o", str(out), *(["--true-labels"] if true else [])]) == 0
    said = capsys.readouterr()
    assert ("1 true labels are left out" in said.err) != true
    assert run(["labels", "describe", str(out), "--item", "item", "--annotator", "annotator"]) == 0
    assert "60 samples, 60 labels (1 a sample), 3 classes." in capsys.readouterr().out
    header = out.read_text().splitlines()[0] if ending == "csv" else ",".join(parquet.read_schema(out).names)
    assert header == "item,not_label,annotator,offered,time" + (",true_label" if true else "")


def test_several_controls_must_be_told_apart(studio):
    tasks = [{**STUDIO[1], "annotations": [annotation(choices(["dog"]), choices(["good"], "quality"))]}]
    studio.write_text(json.dumps(tasks))
    with pytest.raises(InputError, match="--control: expected one of not, quality, got none"):
        read_export(studio)
    assert [label.not_label for label in read_export(studio, control="quality").labels] == ["good"]
    with pytest.raises(InputError, match="--control: expected one of not, quality, got 'nt'"):
        read_export(studio, control="nt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1]", "a list of tasks, got something else"),
        ('[{"id": 1, "choice": "cat"}]', "tasks with annotations, got none; export as JSON, not JSON-MIN"),
        ('[{"id": 1, "annotations": 3}]', "a list of annotations"),
        ('[{"id": 1, "annotations": [{"result": [3]}]}]', "a list of annotations and of their results, got something else in task 1"),
        ('[{"id": 1, "annotations": [{"result": [{"type": "choices", "value": 3}]}]}]', "a list of choices, got something else in task 1"),
        ('[{"annotations": [{"result": []}]}]', "--item: expected a field that names every item, got none in task 1"),
        ("[" * 100_000, "expected JSON"),
        ('[{"id": 1, "annotations": []}]', "at least one label that says what an item is NOT, got none"),
        ('{"label": "cat"}', "a task with an answer each, got something else in line 1"),
        ('{"text": "a", "label": "cat", "answer": "maybe"}', "an answer accept, reject or ignore, got 'maybe' in line 1"),
        ('{"text": "a", "accept": "cat", "answer": "reject"}', "a list of accepted options, got something else in line 1"),
        ('{"text": "a", "label": "cat", "answer": "accept"}', "NOT, got none (1 true ones)"),
        ('{"text": "a", "label": "\\ud800", "answer": "reject"}', "characters that are none in line 1"),
        ('{"text": "a"\n', "in line 1"),
        ("", "at least one label"),
    ],
)  # fmt: skip
def test_files_that_are_no_exports(text, expected, tmp_path, capsys):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert run(["labels", "import", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line
    assert not (tmp_path / "out.csv").exists()
