"""Stamps: finished runs stand for the data that they have read, and for no others under the same name."""

from __future__ import annotations

import gzip
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import wcll
from tiny_data import (
    EVERY_READER,
    save_image,
    write_idx,
    write_manifest,
)
from wcll.datasets import DATASETS, checksums, load_dataset
from wcll.datasets.folders import user_cache
from wcll.datasets.idx import FILES
from wcll.exceptions import InputError
from wcll.experiments import Row, Store

SUITE = """
title = "Small"
settings = {dataset = "%s", labels = "uniform", model = "linear", epochs = 1, lr = 0.01}
columns = [{title = "small"}]
rows = [{loss = "forward", assume = "uniform"}]
tables = [{select = "last"}]
"""

READERS = EVERY_READER
every_reader = pytest.mark.parametrize("name", READERS)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def run(name, data, store):
    """What is said of a suite on these data."""
    said: list[str] = []
    wcll.run(
        wcll.experiments.parse_suite(SUITE % name, "s"), store=store, data=data, trials=1, device="cpu", say=said.append
    )
    return said[0]


def files(data):
    return sorted(path for path in data.rglob("*") if path.is_file())


def change(path):
    """Other bytes, but the same size and time."""
    status, content = path.stat(), path.read_bytes()
    os.remove(path)
    path.write_bytes(bytes(byte ^ 1 for byte in content))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def is_accepted(name, data, stamp):
    """Whether a store whose one finished run has this stamp is taken for one of these data."""
    store = data.parent / "accepted.sqlite"
    store.unlink(missing_ok=True)
    suite = wcll.experiments.parse_suite(SUITE % name, "s")
    (trial,) = suite.all_trials(range(1))
    seen = {"fingerprint": "", "official": False} | ({} if stamp is None else {"stamp": stamp})
    with Store(store) as opened:
        opened.add([Row(trial.key, trial.config(), {}, {}, {"data": seen})])
    try:
        wcll.run(suite, store=store, data=data, trials=1, device="cpu")
    except InputError:
        return False
    return True


def still_same(name, data, stamp):
    try:
        return wcll.datasets.load.same_data(name, {stamp}, data)
    except InputError:  # it cannot even be read
        return False


@pytest.mark.parametrize("name", ["own", "ddsm", "tiny-imagenet"])
def test_an_image_that_was_replaced_is_not_taken_for_the_old(name, data, tmp_path):
    if name == "tiny-imagenet":
        READERS[name](data)
    else:
        write_manifest(data / name, labels=("normal", "benign", "cancer") * 8)
    store = tmp_path / "s.sqlite"
    assert "0 of them" in run(name, data, store)
    assert "nothing is left to do" in run(name, data, store)
    image = next(path for path in files(data) if path.suffix in (".png", ".JPEG"))
    size = (64, 64, 3) if name == "tiny-imagenet" else (6, 5)
    save_image(image, *size)
    with pytest.raises(InputError, match="got one that was changed"):
        run(name, data, store)


@every_reader
def test_every_file_that_is_read_counts(name, data):
    READERS[name](data)
    stamp = load_dataset(name, data).stamp
    assert is_accepted(name, data, stamp)
    read = [path for path in files(data) if path.name != "val_2.JPEG"]
    assert read
    for path in read:
        change(path)
        assert not still_same(name, data, stamp), path
        change(path)
        assert still_same(name, data, stamp), path


@every_reader
def test_a_copy_is_the_same_data(name, data, tmp_path):
    READERS[name](data)
    other = tmp_path / "elsewhere" / "data"
    shutil.copytree(data, other, copy_function=shutil.copyfile)
    for path in files(other):
        os.utime(path, ns=(1, 1))
    stamp = load_dataset(name, data).stamp
    assert stamp
    assert load_dataset(name, other).stamp == stamp
    assert is_accepted(name, other, stamp)


@every_reader
def test_runs_without_a_stamp_are_accepted(name, data):
    READERS[name](data)
    assert is_accepted(name, data, "")
    assert is_accepted(name, data, None)


@pytest.mark.parametrize(("name", "file"), [("own.npz", "own.npz"), ("own", "own/manifest.csv")])
def test_stamps_of_earlier_versions(name, file, data):
    """They were the size and the time of change."""
    READERS[name](data)
    status = (data / file).stat()
    stamp = f"{status.st_size}-{status.st_mtime_ns}"
    assert is_accepted(name, data, stamp)
    os.utime(data / file, ns=(1, 1))
    assert not is_accepted(name, data, stamp)


def test_runs_of_several_versions_in_one_store(data, tmp_path):
    READERS["own.npz"](data)
    old, new = f"{(data / 'own.npz').stat().st_size}-", load_dataset("own.npz", data).stamp
    old += str((data / "own.npz").stat().st_mtime_ns)
    assert wcll.datasets.load.same_data("own.npz", {"", old, new}, data)
    assert not wcll.datasets.load.same_data("own.npz", {old, new, "another"}, data)


def test_a_folder_among_the_files_of_a_set(data, monkeypatch):
    """Every file in it counts, unless the set says what it opens."""
    folder = READERS["kmnist"](data)
    (folder / "more" / "deep").mkdir(parents=True)
    (folder / "more" / "deep" / "a.txt").write_text("a")
    spec = DATASETS["kmnist"]
    monkeypatch.setitem(DATASETS._items, "kmnist", replace(spec, files=(*spec.files, "more")))
    stamp = load_dataset("kmnist", data).stamp
    assert wcll.datasets.load.same_data("kmnist", {stamp}, data)
    (folder / "more" / "deep" / "a.txt").write_text("b")
    assert not wcll.datasets.load.same_data("kmnist", {stamp}, data)


def test_packed_and_unpacked_files_are_the_same_data(data):
    folder = write_idx(data / "mnist")
    stamp = load_dataset("mnist", data).stamp
    for name in FILES:
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress((folder / name).read_bytes()))
        (folder / name).unlink()
    assert load_dataset("mnist", data).stamp == stamp


def test_runs_of_named_data_that_are_not_here_are_shown(data):
    assert is_accepted("mnist", data, "of another machine")
    assert is_accepted("digits", data, "")


def test_files_are_read_once_for_their_stamp(data, monkeypatch):
    READERS["own"](data)
    seen: list[Path] = []
    whole = checksums.content_digest
    monkeypatch.setattr(checksums, "content_digest", lambda path: seen.append(path) or whole(path))
    stamp = load_dataset("own", data).stamp
    assert len(seen) == 4
    assert load_dataset("own", data).stamp == stamp
    assert wcll.datasets.load.same_data("own", {stamp}, data)
    assert len(seen) == 4
    assert len((user_cache() / "checksums.json").read_text().splitlines()) < 10  # one entry, not one a file


def test_what_is_not_read_does_not_count(data):
    READERS["own"](data)
    stamp = load_dataset("own", data).stamp
    (data / "own" / "notes.txt").write_text("not in the manifest")
    assert load_dataset("own", data).stamp == stamp


def test_files_that_change_while_they_are_read(data, monkeypatch):
    folder = READERS["mnist"](data)
    spec = DATASETS["mnist"]
    read = spec.read

    def slow(place):
        content = read(place)
        write_idx(folder)
        return content

    monkeypatch.setitem(DATASETS._items, "mnist", replace(spec, read=slow))
    with pytest.raises(InputError, match="files that stay as they are while they are read"):
        load_dataset("mnist", data)
