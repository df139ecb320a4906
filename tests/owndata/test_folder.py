"""A model in a folder predicts as it did before it was written, also with extras missing."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from own_files import QUICK, write_all
from wcll.cli.app import run
from wcll.owndata.folder import OwnModel
from wcll.owndata.learning import Settings, learn
from wcll.owndata.sources import Reading, Roles, read_samples


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "images"])
def test_what_is_loaded_predicts_the_same_bit_for_bit(kind, tmp_path):
    path = write_all(tmp_path, 60)[kind]
    roles = Roles(ignore=("label",)) if kind in ("csv", "parquet") else Roles()
    samples = read_samples(path, roles, Reading())
    learnt = learn(samples, roles, Settings("forward", model="mlp", epochs=3, lr=0.01, device="cpu"))
    learnt.own.save(tmp_path)
    loaded = OwnModel.load(tmp_path)
    again = read_samples(path, Roles(), loaded.reading(labels=False))
    before, after = (
        learnt.own.classifier.predict_proba(learnt.x),
        loaded.classifier.predict_proba(loaded.features(again)),
    )
    assert np.array_equal(before, after)
    assert (loaded.roles, loaded.kind, loaded.stamp) == (roles, samples.kind, samples.stamp)


def test_tables_of_text_need_no_extras(tmp_path, monkeypatch, capsys):
    files = write_all(tmp_path, 60)
    plain = importlib.import_module

    def refuse(name: str, package: str | None = None) -> object:
        if name.startswith(("pyarrow", "PIL")):
            raise ImportError(name)
        return plain(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    assert run(["train", str(files["csv"]), "--ignore", "label", *QUICK, "--out", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    for kind, name in (("parquet", "parquet"), ("images", "images")):
        for more in ([], ["--skip-bad"]):
            assert run(["train", str(files[kind]), *QUICK, "--out", str(tmp_path / "n"), *more]) == 2
            assert f"pip install 'wcll[{name}]'" in capsys.readouterr().err.splitlines()[-1]
