"""Files that are there whole or not at all: what is no plain file is never replaced."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wcll._files import check_folder_target, check_target, replacing, replacing_folder
from wcll.exceptions import InputError


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "nul"])
def test_what_is_no_plain_file_is_not_replaced(tmp_path, kind):
    path = tmp_path / ("a\0b" if kind == "nul" else "out")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/urandom")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(InputError, match=r"--out: expected a (plain )?file"):
        check_target(path, "--out")


def test_a_new_file_an_old_one_and_a_link_to_one(tmp_path):
    (tmp_path / "link").symlink_to("old")
    for name in ("old", "link", "x" * 255):
        with replacing(tmp_path / name, "--out") as draft:
            draft.write_text(name)
        assert (tmp_path / name).read_text() == name
    assert (tmp_path / "old").read_text() == "link"
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_is_left_of_what_failed(tmp_path):
    def write(path: Path) -> None:
        with replacing(path, "--out") as draft:
            draft.write_text("half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_results_is_never_replaced(tmp_path):
    """Whoever names it as the output of a command has taken one file for another, and would lose every run."""
    path = tmp_path / "out.html"
    with closing(sqlite3.connect(path)) as store:
        store.execute("CREATE TABLE runs (key TEXT)")
    before = path.read_bytes()
    check_target(path, "--store", store=True)
    for write in (check_target, lambda *given: replacing(*given).__enter__()):
        with pytest.raises(
            InputError, match=r"--out: expected a file that may be replaced, got .*, a store of results"
        ):
            write(path, "--out")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another_whole_or_not_at_all(tmp_path):
    def write(text: str, fail: bool = False) -> None:
        with replacing_folder(tmp_path / "out", "--out", ("a", "b")) as draft:
            (draft / "a").write_text(text)
            if fail:
                raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write("half", fail=True)
    assert list(tmp_path.iterdir()) == []
    write("one")
    (tmp_path / "out" / "b").write_text("of the old one")
    with pytest.raises(ValueError, match="stop"):
        write("half", fail=True)
    assert (tmp_path / "out" / "a").read_text() == "one"
    write("two")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]
    assert (tmp_path / "out" / "a").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["file", "link", "..", "nosuch/x", "a\0b"])
def test_what_cannot_become_a_folder(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/tmp")
    with pytest.raises(InputError, match="--out: expected"):
        check_folder_target(tmp_path / name, "--out")
