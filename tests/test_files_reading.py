"""Files of others: plain ones alone, and never more of them than was allowed."""

from __future__ import annotations

import gzip
import os

import pytest

from wcll._files import check_file, read_bytes
from wcll.exceptions import InputError


def test_plain_and_packed_files(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"abc"))
    assert read_bytes(tmp_path / "a") == read_bytes(tmp_path / "a.gz") == b"abc"
    assert read_bytes(tmp_path / "a", most=3) == b"abc"


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_more_than_is_allowed(tmp_path, name):
    text = bytes(10**7)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(InputError, match="expected at most 1 MB, got more"):
        read_bytes(tmp_path / name, most=10**6)


def test_a_damaged_gzip_file(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"abc" * 1000)[:-9])
    with pytest.raises(InputError, match="a whole gzip file"):
        read_bytes(tmp_path / "a.gz")


def test_what_is_no_plain_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    cases = {
        tmp_path / "pipe": "a pipe",
        tmp_path: "a folder",
        tmp_path / "none": "No such file",
        tmp_path / "\0": "null",
    }
    for path, got in cases.items():
        with pytest.raises(InputError, match=got):
            check_file(path)
    with pytest.raises(InputError, match="expected a file, got a device"):
        read_bytes(type(tmp_path)("/dev/zero"))
