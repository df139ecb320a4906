"""Readers of data: tiny files of every official format, every way they can be broken, and the real ones if at hand."""

from __future__ import annotations

import gzip
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_data import (
    RNG,
    Image,
    bytes_of,
    idx,
    records,
    save_image,
    write_cifar10,
    write_cifar100,
    write_idx,
    write_manifest,
    write_npz,
    write_tiny_imagenet,
)
from wcll.datasets import DATASETS, Dataset, Split, checksums, load_dataset
from wcll.datasets.folders import data_folders, user_cache
from wcll.datasets.idx import FILES
from wcll.exceptions import InputError, InputTypeError, MissingExtraError

REAL = os.environ.get("WCLL_DATA")


def replace_spec(monkeypatch, name, **changes):
    monkeypatch.setitem(DATASETS._items, name, replace(DATASETS[name], **changes))


def error(name, data=None):
    with pytest.raises(InputError) as caught:
        load_dataset(str(name), data)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What comes out.


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "mnist"), ("fashion-mnist", "FashionMNIST/raw"), ("kmnist", "kmnist")]
)
def test_idx(tmp_path, name, folder, packed):
    write_idx(tmp_path / folder, packed)
    data = load_dataset(name, tmp_path)
    assert data.train.x.shape == data.test.x.shape == (10, 4, 4)
    assert data.train.x.dtype == np.uint8
    assert data.train.x.flags.writeable
    assert data.train.y.tolist() == list(range(10))
    assert data.train.y.dtype == np.int64
    assert (len(data.classes), data.scale, data.official) == (10, 255.0, False)
    assert data.place == str(tmp_path / folder)
    assert DATASETS[name].count(tmp_path / folder) == (10, 10)


def test_idx_pixels_are_in_place(tmp_path):
    write_idx(tmp_path / "mnist")
    pixels = np.arange(10 * 2 * 3, dtype=np.uint8).reshape(10, 2, 3)
    (tmp_path / "mnist" / FILES[0]).write_bytes(gzip.compress(idx(pixels)))
    np.testing.assert_array_equal(load_dataset("mnist", tmp_path).train.x, pixels)


def test_cifar10(tmp_path):
    folder = write_cifar10(tmp_path / "cifar-10-batches-bin")
    data = load_dataset("cifar10", tmp_path)
    assert data.train.y.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    assert data.test.y.tolist() == [5, 4]
    raw = np.frombuffer((folder / "data_batch_2.bin").read_bytes(), np.uint8)
    assert data.train.x.shape == (10, 3, 32, 32)
    np.testing.assert_array_equal(data.train.x[2].ravel(), raw[1:3073])
    assert data.classes[0] == "airplane"
    assert not data.official
    assert DATASETS["cifar10"].count(folder) == (10, 2)


def test_cifar100_has_fine_labels(tmp_path):
    folder = write_cifar100(tmp_path / "cifar-100-binary")
    data = load_dataset("cifar100", tmp_path)
    assert data.train.y.tolist() == [99, 3, 0]
    assert data.classes[99] == "class_99"
    raw = np.frombuffer((folder / "train.bin").read_bytes(), np.uint8)
    np.testing.assert_array_equal(data.train.x[1].ravel(), raw[3074 + 2 : 2 * 3074])
    assert DATASETS["cifar100"].count(folder) == (3, 1)
    (folder / "fine_label_names.txt").unlink()
    assert load_dataset("cifar100", tmp_path).classes[99] == "99"


def test_tiny_imagenet(tmp_path):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet-200")
    data = load_dataset("tiny-imagenet", tmp_path)
    assert data.classes == ("newt", "goldfish")  # by sorted number, not by name
    assert data.train.x.shape == (6, 3, 64, 64)
    assert data.train.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test.y.tolist() == [1, 0]
    grey = data.train.x[0]
    np.testing.assert_array_equal(grey[0], grey[1])
    with Image.open(folder / "val" / "images" / "val_0.JPEG") as image:
        np.testing.assert_array_equal(data.test.x[0], np.asarray(image).transpose(2, 0, 1))
    assert DATASETS["tiny-imagenet"].count(folder) == (6, 2)
    (folder / "words.txt").write_text("n01\tcrane, bird\nn02\tcrane, machine\n")
    assert load_dataset("tiny-imagenet", tmp_path).classes == ("crane (n01)", "crane (n02)")


def test_ddsm(tmp_path):
    write_manifest(tmp_path / "ddsm-thumbs", case=["a", "a", "b"], view=[1, 2, 3])
    data = load_dataset("ddsm", tmp_path)
    assert data.classes == ("normal", "benign", "cancer")
    assert data.train.y.tolist() == [0, 2, 1]
    assert data.train.groups.tolist() == ["a", "a", "b"]
    assert data.train.x.shape == (3, 6, 5)
    assert data.test is None
    with Image.open(tmp_path / "ddsm-thumbs" / "cancer" / "1.png") as image:
        np.testing.assert_array_equal(data.train.x[1], np.asarray(image))
    assert DATASETS["ddsm"].count(tmp_path / "ddsm-thumbs") == (3, None)


def test_a_folder_of_ones_own(tmp_path):
    folder = write_manifest(tmp_path / "mine", labels=("10", "9", "-1"))
    save_image(folder / "9" / "1.png", 6, 5, 3)
    data = load_dataset(str(folder))
    assert data.name == "mine"
    assert data.classes == ("-1", "9", "10")  # numbers in their order
    assert data.train.x.shape == (3, 3, 6, 5)  # one in colour: all in colour
    assert data.train.groups is None


def test_arrays_of_ones_own(tmp_path):
    data = load_dataset(str(write_npz(tmp_path / "a.npz", groups=np.array([1, 1, 2, 2]))))
    assert (data.name, data.classes, data.scale, data.official, data.test) == ("a", ("0", "1", "2"), 255.0, False, None)
    assert data.train.groups.tolist() == [1, 1, 2, 2]
    names = np.array(["dog", "cat", "dog", "cat"])
    floats = {"x": RNG.random((4, 2)), "x_test": RNG.random((1, 2)), "y": names, "y_test": np.array(["eel"])}
    data = load_dataset(str(write_npz(tmp_path / "b.npz", **floats)))
    assert (data.classes, data.scale) == (("cat", "dog", "eel"), 1.0)
    assert data.train.y.tolist() == [1, 0, 1, 0]
    assert data.test.y.tolist() == [2]
    data = load_dataset(str(write_npz(tmp_path / "c.npz", **floats, classes=np.array(["eel", "dog", "cat"]))))
    assert data.train.y.tolist() == [1, 2, 1, 2]
    data = load_dataset(
        str(write_npz(tmp_path / "d.npz", classes=np.array(["a", "b", "c", "d"]), x=np.eye(4, dtype=int)))
    )
    assert data.classes == ("a", "b", "c", "d")
    assert data.train.x.dtype == np.float64


def test_digits():
    data = load_dataset("digits")
    assert data.train.x.shape == (1797, 8, 8)
    assert (data.train.x.dtype, data.train.x.max(), data.scale) == (np.uint8, 16, 16.0)
    assert (data.test, data.official, data.place) == (None, True, "scikit-learn")
    assert DATASETS["digits"].count(Path())[0] == len(data.train)


def test_only_some_classes(tmp_path):
    write_idx(tmp_path / "mnist")
    data = load_dataset("mnist", tmp_path)
    some = data.only([7, 2])
    assert some.classes == ("7", "2")
    assert some.train.y.tolist() == some.test.y.tolist() == [1, 0]
    np.testing.assert_array_equal(some.train.x, data.train.x[[2, 7]])
    assert some.fingerprint != data.fingerprint
    assert data.only(range(10)).fingerprint == data.fingerprint
    for bad in ([], [1, 1], [10], [-1], [0.5]):
        with pytest.raises(InputError, match="classes: expected different class indices from 0 to 9"):
            data.only(bad)


def test_only_keeps_groups(tmp_path):
    write_manifest(tmp_path / "ddsm", case=["a", "b", "c"])
    assert load_dataset("ddsm", tmp_path).only([2, 0]).train.groups.tolist() == ["a", "b"]


def test_fingerprint_follows_content(tmp_path):
    arrays = {"x": bytes_of(4, 3, 3), "y": np.array([0, 1, 2, 1])}
    same = [load_dataset(str(write_npz(tmp_path / name, **arrays))).fingerprint for name in ("a.npz", "b.npz")]
    assert same[0] == same[1]
    other = {
        "pixel": {**arrays, "x": arrays["x"] ^ 1},
        "label": {**arrays, "y": np.array([0, 1, 2, 2])},
        "shape": {**arrays, "x": arrays["x"].reshape(4, 9)},
        "test": {**arrays, "x_test": arrays["x"], "y_test": arrays["y"]},
    }
    found = {load_dataset(str(write_npz(tmp_path / f"{name}.npz", **new))).fingerprint for name, new in other.items()}
    assert len(found | set(same)) == 5


# Where data are looked for.


def test_the_folder_may_be_a_text(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.zeros((6, 2)), y=np.arange(6) % 3)
    assert len(load_dataset("own.npz", str(tmp_path)).train.y) == len(load_dataset("own.npz", tmp_path).train.y)
    with pytest.raises(InputError, match=r"data: expected a folder, got .*, which is a file"):
        load_dataset("digits", str(tmp_path / "own.npz"))
    with pytest.raises(InputTypeError, match="data: expected the path of a folder, got int"):
        load_dataset("digits", 3)


def test_order_of_folders(tmp_path, monkeypatch, no_data_of_the_user):
    given, named, cache = tmp_path / "given", tmp_path / "named", no_data_of_the_user / "wcll"
    monkeypatch.setenv("WCLL_DATA", str(named))
    if sys.platform == "linux":
        assert data_folders(given) == [given, named, cache]
    given.mkdir()
    for place in (user_cache(), named, given):  # from the last to the first
        write_idx(place / "mnist")
        assert load_dataset("mnist", given).place == str(place / "mnist")
    assert load_dataset("mnist").place == str(named / "mnist")
    monkeypatch.setenv("WCLL_DATA", "")
    assert data_folders(None) == [user_cache()]


@pytest.mark.parametrize(
    ("platform", "place"), [("linux", "xdg/wcll"), ("darwin", "home/Library/Caches/wcll"), ("win32", "local/wcll")]
)
def test_the_users_cache(tmp_path, monkeypatch, platform, place):
    for name, folder in (
        ("HOME", "home"),
        ("USERPROFILE", "home"),
        ("XDG_CACHE_HOME", "xdg"),
        ("LOCALAPPDATA", "local"),
    ):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr("sys.platform", platform)
    assert user_cache() == tmp_path / place


def test_a_path_is_tried_as_given_then_under_each_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "data" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    there = write_npz(tmp_path / "data" / "sub" / "a.npz")
    assert load_dataset("sub/a.npz", tmp_path / "data").place == str(there)
    (tmp_path / "here" / "sub").mkdir()
    write_npz(tmp_path / "here" / "sub" / "a.npz")
    assert load_dataset("sub/a.npz", tmp_path / "data").place == "sub/a.npz"


def test_the_data_folder_itself_counts_if_it_tells_which_set_it_is(tmp_path, monkeypatch):
    folder = write_idx(tmp_path / "MNIST" / "raw")
    assert load_dataset("mnist", folder).place == str(folder)
    assert f"got {folder} with files of these names, which other sets may have too" in error("kmnist", folder)
    other = write_idx(tmp_path / "stuff")
    assert f"got {other} with files of these names" in error("mnist", other)
    official = {name: checksums.md5(other / name) for name in FILES}
    replace_spec(monkeypatch, "mnist", checksums=official)
    assert load_dataset("mnist", other).official


def test_missing_data(tmp_path):
    message = error("mnist", tmp_path)
    assert message.startswith("dataset 'mnist': expected train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, ")
    assert all(str(folder) in message for folder in data_folders(tmp_path))
    assert message.endswith("get it with 'wcll data download mnist', or say with --data or WCLL_DATA where it is")
    (write_idx(tmp_path / "mnist") / FILES[3]).unlink()
    assert f"got {tmp_path / 'mnist'} without {FILES[3]}" in error("mnist", tmp_path)
    assert "manifest.csv with columns path, label (normal, benign or cancer) and case" in error("ddsm", tmp_path)


def test_unknown_names(tmp_path):
    message = error("minst")
    assert message.startswith("dataset: expected one of 'cifar10', ")
    assert message.endswith("got 'minst'; did you mean 'mnist'?")
    assert "expected the path of an .npz or .parquet file" in error("no/such.npz", tmp_path)
    assert "expected the path of an .npz or .parquet file" in error("such.parquet", tmp_path)
    (tmp_path / "x.txt").write_text("")
    assert "expected an .npz or .parquet file or a folder with manifest.csv" in error(tmp_path / "x.txt")
    assert "expected an .npz or .parquet file or a folder with manifest.csv" in error(tmp_path)
    assert "data: expected a folder, got" in error("mnist", tmp_path / "no")
    assert "expected one of" in error("")


# Checksums.


def test_official_files_are_told_apart(tmp_path, monkeypatch):
    folder = write_idx(tmp_path / "mnist")
    replace_spec(monkeypatch, "mnist", checksums={name: checksums.hash_file(folder / name) for name in FILES})
    assert load_dataset("mnist", tmp_path).official
    write_idx(tmp_path / "mnist", labels=[1] * 10)
    assert not load_dataset("mnist", tmp_path).official


def test_checksums_are_computed_once(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"wcll")
    seen = []
    whole = checksums.hash_file
    monkeypatch.setattr(checksums, "hash_file", lambda path: seen.append(path) or whole(path))
    assert checksums.md5(path) == checksums.md5(path) == "8820d74d517979051491b47ffb8c30da"
    assert len(seen) == 1
    os.utime(path, ns=(1, 1))
    checksums.md5(path)
    assert len(seen) == 2
    (user_cache() / "checksums.json").write_text('{"a": 3}')  # damaged
    checksums.md5(path)
    assert len(seen) == 3
    checksums.md5(path)
    assert len(seen) == 3


def test_without_a_cache_checksums_still_work(tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(blocked))
    path = tmp_path / "file"
    path.write_bytes(b"wcll")
    assert checksums.md5(path) == checksums.hash_file(path)


def test_a_seal_breaks_when_a_file_changes(tmp_path):
    folder = write_cifar100(tmp_path / "cifar-100-binary")
    (archive,) = DATASETS["cifar100"].downloads
    checksums.seal(folder, archive.md5)
    assert load_dataset("cifar100", tmp_path).official
    (folder / "train.bin").write_bytes(records([0, 1]))
    assert not load_dataset("cifar100", tmp_path).official
    checksums.seal(folder, "of another archive")
    assert not load_dataset("cifar100", tmp_path).official


# What is wrong with a file, in one line that names it.


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            0,
            gzip.compress(idx(bytes_of(10, 4, 4)))[:-20],
            "expected a whole gzip file, got Compressed file ended before",
        ),
        (0, b"not gzip at all", "expected a whole gzip file, got Not a gzipped file"),
        (
            0,
            gzip.compress(idx(np.arange(10, dtype=np.uint8))),
            "expected an idx file that starts with 0x00000803, got 0x00000801",
        ),
        (0, gzip.compress(idx(bytes_of(10, 4, 4))[:-1]), "expected 160 bytes after its header, got 159"),
        (0, gzip.compress(idx(bytes_of(10, 4, 4)) + b"x"), "expected 160 bytes after its header, got 161"),
        (0, gzip.compress(idx(bytes_of(10, 4, 4))[:9]), "expected a header of 16 bytes, got 9 bytes"),
        (0, gzip.compress(b""), "expected an idx file that starts with 0x00000803, got 0x"),
        (2, gzip.compress(idx(bytes_of(9, 4, 4))), f"expected 10 images, as many as labels in {FILES[3]}, got 9"),
        (3, gzip.compress(idx(np.full(10, 10, np.uint8))), "expected labels from 0 to 9, got 10 in sample 0"),
    ],
    ids=["ends early", "no gzip", "labels", "short", "long", "half a header", "empty", "count", "label"],
)
def test_broken_idx(tmp_path, file, content, message):
    path = write_idx(tmp_path / "mnist") / FILES[file]
    path.write_bytes(content)
    assert error("mnist", tmp_path).startswith(f"{path}: {message}")


def test_empty_idx(tmp_path):
    folder = write_idx(tmp_path / "mnist")
    (folder / FILES[0]).write_bytes(gzip.compress(idx(bytes_of(0, 4, 4))))
    (folder / FILES[1]).write_bytes(gzip.compress(idx(np.zeros(0, np.uint8))))
    assert error("mnist", tmp_path) == f"{folder / FILES[1]}: expected at least one sample, got none"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (records(1, 2)[:-1], "expected whole records of 3073 bytes, got 1 and 3072 bytes more"),
        (records(1, 10), "expected labels from 0 to 9, got 10 in sample 1"),
        (b"", "expected at least one sample, got none"),
    ],
    ids=["ends early", "label", "empty"],
)
def test_broken_cifar10(tmp_path, content, message):
    path = write_cifar10(tmp_path / "cifar-10-batches-bin") / "data_batch_3.bin"
    path.write_bytes(content)
    assert error("cifar10", tmp_path) == f"{path}: {message}"


def test_broken_cifar100(tmp_path):
    folder = write_cifar100(tmp_path / "cifar-100-binary")
    (folder / "fine_label_names.txt").write_text("one\ntwo\n")
    assert "fine_label_names.txt: expected 100 names, one a line, got 2" in error("cifar100", tmp_path)
    (folder / "train.bin").write_bytes(records([20, 5]))
    assert "train.bin: expected labels from 0 to 19, got 20" in error("cifar100", tmp_path)
    (folder / "train.bin").write_bytes(records([2, 100]))
    assert "train.bin: expected labels from 0 to 99, got 100" in error("cifar100", tmp_path)


def test_broken_tiny_imagenet(tmp_path):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet-200")
    image = folder / "train" / "n01" / "images" / "n01_1.JPEG"
    whole = image.read_bytes()
    for content in (b"not an image", whole[: len(whole) // 2]):
        image.write_bytes(content)
        assert error("tiny-imagenet", tmp_path).startswith(f"{image}: expected an image that can be read, got ")
    save_image(image, 64, 63, 3)
    assert (
        error("tiny-imagenet", tmp_path)
        == f"{image}: expected an image of 64 x 64 pixels as n01_0.JPEG, got 63 x 64 pixels"
    )
    image.write_bytes(whole)
    (folder / "val" / "images" / "val_1.JPEG").unlink()
    assert error("tiny-imagenet", tmp_path).endswith("val_1.JPEG: expected an image, got no such file")
    annotations = folder / "val" / "val_annotations.txt"
    annotations.write_text("val_0.JPEG\tn02\nval_1.JPEG\n")
    assert "a file and a class in every line, got ['val_1.JPEG'] in line 2" in error("tiny-imagenet", tmp_path)
    annotations.write_text("val_0.JPEG\tn07\n")
    assert "expected images of the classes in train, got none" in error("tiny-imagenet", tmp_path)
    (folder / "train" / "n00").mkdir()
    assert error("tiny-imagenet", tmp_path).endswith("images: expected images named *.JPEG, got none")


def test_tiny_imagenet_of_another_size(tmp_path):
    folder = write_tiny_imagenet(tmp_path / "tiny-imagenet-200")
    for path in folder.glob("train/*/images/*.JPEG"):
        save_image(path, 32, 32, 3)
    assert "expected an image of 64 x 64 pixels, got 32 x 32" in error("tiny-imagenet", tmp_path)
    for wnid in ("n01", "n02"):
        (folder / "train" / wnid).rename(tmp_path / wnid)
    assert error("tiny-imagenet", tmp_path) == f"{folder / 'train'}: expected a folder for each class, got none"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "path,label\nnormal/0.png,normal\nnormal/9.png,normal\n",
            "expected a file for every row, got no normal/9.png (1 missing)",
        ),
        (
            "path,label\nnormal/0.png,norml\n",
            "expected labels among normal, benign, cancer, got 'norml' for normal/0.png",
        ),
        ("path,label,case\nnormal/0.png,normal,\n", "expected a case in every row, got an empty one in row 1"),
        ("path,label\nnormal/0.png\n", "expected a label in every row, got an empty one in row 1"),
        ("path,class\nnormal/0.png,1\n", "expected columns path and label, got path, class"),
        ("path,label\n", "expected at least one row, got none"),
        ("", "expected columns path and label, got none"),
        ('path,label\n"normal/0.png,normal\n', "expected a CSV file with a header line, got unexpected end of data"),
    ],
)
def test_broken_manifest(tmp_path, table, message):
    path = write_manifest(tmp_path / "ddsm-thumbs") / "manifest.csv"
    path.write_text(table)
    assert error("ddsm", tmp_path) == f"{path}: {message}"


def test_images_that_do_not_fit(tmp_path):
    folder = write_manifest(tmp_path / "ddsm-thumbs")
    deep = folder / "cancer" / "1.png"
    Image.fromarray(np.zeros((6, 5), np.uint16)).save(deep)
    assert error("ddsm", tmp_path).startswith(f"{deep}: expected an image of 8 bits a channel, got mode I")
    save_image(deep, 5, 6)
    assert error("ddsm", tmp_path) == f"{deep}: expected an image of 5 x 6 pixels as 0.png, got 6 x 5 pixels"
    deep.write_bytes(b"")
    assert error("ddsm", tmp_path).startswith(f"{deep}: expected an image that can be read, got cannot identify")


def test_a_data_folder_runs_no_program_and_takes_no_gigabytes(tmp_path, monkeypatch):
    folder = write_manifest(tmp_path / "ddsm-thumbs")
    strange = folder / "cancer" / "1.png"
    strange.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 6\n%%EndComments\nshowpage\n%%EOF\n")
    monkeypatch.setattr("subprocess.check_call", lambda *given, **options: pytest.fail("a program was called"))
    monkeypatch.setattr("subprocess.Popen", lambda *given, **options: pytest.fail("a program was called"))
    assert error("ddsm", tmp_path).startswith(f"{strange}: expected an image that can be read, got cannot identify")
    Image.new("1", (9000, 9000)).save(strange)
    expected = "an image that can be read, got 9000 x 9000 pixels, more than 67108864 in all"
    assert error("ddsm", tmp_path) == f"{strange}: expected {expected}"


@pytest.mark.parametrize("path", ["../secret.png", "/etc/hostname", "cancer/link.png"])
def test_a_manifest_leads_nowhere_else(tmp_path, path):
    folder = write_manifest(tmp_path / "ddsm-thumbs")
    save_image(tmp_path / "secret.png", 6, 5)
    (folder / "cancer" / "link.png").symlink_to(tmp_path / "secret.png")
    manifest = folder / "manifest.csv"
    manifest.write_text(f"path,label,case\n{path},cancer,a\n")
    assert error("ddsm", tmp_path).startswith(f"{manifest}: expected paths inside its folder, got {path!r}")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x": np.array([[{}]], object)},
            "expected a whole .npz file of numbers or text, got Object arrays cannot be loaded",
        ),
        ({"x": np.zeros(4)}, "expected x of shape (n, d), (n, h, w) or (n, c, h, w), not empty, got (4,)"),
        (
            {"x": np.zeros((4, 8, 8, 3), np.uint8)},
            "expected x with channels before pixels, got (4, 8, 8, 3); x.transpose(0, 3, 1, 2)",
        ),
        ({"x": np.zeros((4, 3, 3), int)}, "expected x of type uint8 or float, got int64"),
        ({"x": np.full((4, 2), np.nan)}, "expected finite numbers in x, got NaN or infinity"),
        ({"y": np.arange(3)}, "expected 4 values in y, one a sample of x, got shape (3,)"),
        ({"y": np.ones(4)}, "expected y of whole numbers or text, shape (n,), got float64, shape (4,)"),
        ({"y": np.arange(4), "classes": np.array(["a", "b", "c"])}, "expected labels in y among 0, 1, 2, got 3"),
        ({"classes": np.array(["a", "a", "c"])}, "expected different names in classes, got a, a, c"),
        (
            {"y": np.array(list("abcd")), "classes": np.array(["a", "b", "c"])},
            "expected labels in y among a, b, c, got d",
        ),
        ({"x_test": np.zeros((1, 3, 3), np.uint8)}, "expected x_test and y_test together, got x_test alone"),
        (
            {"x_test": np.zeros((1, 2, 3), np.uint8), "y_test": np.array([0])},
            "expected x_test of shape ('n', 3, 3) and type uint8, as x, got",
        ),
        ({"groups": np.arange(3)}, "expected 4 values in groups, one a sample of x, got shape (3,)"),
    ],
)
def test_broken_arrays(tmp_path, arrays, message):
    path = write_npz(tmp_path / "a.npz", **arrays)
    assert error(path).startswith(f"{path}: {message}")


def test_files_that_are_no_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.eye(2))
    assert error(path) == f"{path}: expected arrays x and y, got no y"
    whole = write_npz(path).read_bytes()
    with (tmp_path / "one.npy").open("wb") as file:
        np.save(file, np.eye(2))
    for content in (b"", b"text", whole[:100], (tmp_path / "one.npy").read_bytes()):
        path.write_bytes(content)
        assert error(path).startswith(f"{path}: expected a whole .npz file of numbers or text, got ")


def test_images_need_an_extra(tmp_path, monkeypatch):
    write_manifest(tmp_path / "ddsm")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'wcll\[images\]'"):
        load_dataset("ddsm", tmp_path)


# The real data, where they are.


def real(name):
    if REAL is None:
        pytest.skip("WCLL_DATA is not set")
    if DATASETS[name].find([Path(REAL)]) is None:
        pytest.skip(f"{name} is not in WCLL_DATA")
    return load_dataset(name, Path(REAL))


def sums(split):
    """The sum of all pixels of each class."""
    return [int(split.x[split.y == k].sum(dtype=np.int64)) for k in range(split.y.max() + 1)]


def test_real_mnist():
    data = real("mnist")
    assert data.official
    assert np.bincount(data.train.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.fingerprint == "e57e716066d82d88"
    assert sums(data.test)[0] == 33759319


CIFAR10_SUMS = (
    *(2186738454, 1792474165, 1834069962, 1785320810, 1716868592),
    *(1803175522, 1636791303, 1826153434, 2050191760, 1908898001),
)


def test_real_cifar10():
    data = real("cifar10")
    train, test = np.bincount(data.train.y, minlength=10), np.bincount(data.test.y, minlength=10)
    there = train > 0  # some classes may have been left out
    assert set(train[there]) == {5000}
    assert set(test[there]) == {1000}
    assert data.official == there.all()
    assert [(k, total) for k, total in enumerate(sums(data.train)) if there[k]] == [
        (k, CIFAR10_SUMS[k]) for k in np.flatnonzero(there)
    ]
    if there.all():
        assert data.fingerprint == "f5f6821032a4ac28"


def test_real_tiny_imagenet():
    data = real("tiny-imagenet")
    assert len(data.classes) in (5, 200)
    assert set(np.bincount(data.train.y)) == {500}
    assert set(np.bincount(data.test.y)) == {50}
    first = data.only(range(5))
    assert first.classes == ("goldfish", "European fire salamander", "bullfrog", "tailed frog", "American alligator")
    # Versions of the JPEG decoder may differ in a pixel's last bit.
    assert sums(first.train) == pytest.approx([623909369, 606765006, 596825885, 645634221, 641703065], rel=1e-3)
    assert sums(first.test) == pytest.approx([60580209, 61532429, 65593830, 66246376, 67791724], rel=1e-3)


def test_real_ddsm():
    data = real("ddsm")
    assert np.bincount(data.train.y).tolist() == [501, 755, 669]
    assert sums(data.train) == [724484629, 1071622602, 946526666]
    assert len(data.train.groups) == 1925
    assert len(np.unique(data.train.groups)) == 964


# Fewer pixels.


def of_images(x):
    return Dataset("pictures", ("a", "b"), Split(x, np.arange(len(x)) % 2), None, 255.0, False, "f", "here")


@settings(max_examples=30, deadline=None)
@given(
    pixels=st.integers(1, 5),
    block=st.integers(1, 4),
    channels=st.sampled_from([(), (1,), (3,)]),
    kind=st.sampled_from([np.uint8, np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_fewer_pixels_are_means_of_blocks(pixels, block, channels, kind, seed):
    side = pixels * block
    x = np.random.default_rng(seed).integers(0, 256, (4, *channels, side, side)).astype(kind)
    found = of_images(x).reduced(pixels).train.x
    assert found.dtype == x.dtype
    assert found.shape == (4, *channels, pixels, pixels)
    for i, row in enumerate(range(0, side, block)):
        for j, column in enumerate(range(0, side, block)):
            means = x[..., row : row + block, column : column + block].astype(float).mean(axis=(-2, -1))
            expected = np.floor(means + 0.5) if kind == np.uint8 else means
            assert np.allclose(found[..., i, j], expected, atol=1e-4)


def test_fewer_pixels_in_both_splits_and_another_fingerprint():
    x = np.full((6, 8, 8), 255, dtype=np.uint8)
    both = replace(of_images(x), test=Split(x[:2], np.arange(2)))
    half = both.reduced(4)
    assert half.test.x.shape == (2, 4, 4)
    assert (half.train.x == 255).all()
    assert half.fingerprint != both.fingerprint


@pytest.mark.parametrize(
    ("shape", "pixels", "message"),
    [
        ((4, 8, 8), 3, "pixels: expected a divisor of 8, the side of the images in dataset 'pictures', got 3"),
        ((4, 8, 8), 16, "pixels: expected a divisor of 8"),
        ((4, 8, 8), 0, "pixels: expected a divisor of 8"),
        ((4, 3, 8, 6), 2, r"pixels: expected square images in dataset 'pictures', got samples of shape \(3, 8, 6\)"),
        ((4, 9), 3, r"pixels: expected square images in dataset 'pictures', got samples of shape \(9,\)"),
    ],
)
def test_pixels_that_cannot_be(shape, pixels, message):
    with pytest.raises(InputError, match=message):
        of_images(np.zeros(shape, dtype=np.uint8)).reduced(pixels)
