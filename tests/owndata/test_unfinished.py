"""A training that was killed goes on, and ends where it would have ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from own_files import QUICK, digits, killed_after, write_all
from wcll._files import STATE
from wcll.cli.app import run
from wcll.exceptions import InputError
from wcll.labels import EstimatedTransition
from wcll.owndata.card import alarms_of
from wcll.owndata.learning import Settings, learn
from wcll.owndata.sources import Roles, Samples
from wcll.owndata.unfinished import Unfinished
from wcll.persistence import read_model

BIASED = np.array([[0.0, 0.95, 0.05], [0.05, 0.0, 0.95], [0.95, 0.05, 0.0]])
AUTO = Settings(model="linear", lr=0.01, budget=3000, device="cpu")


def samples(n: int = 240, matrix: np.ndarray | None = None) -> Samples:
    images, true, ruled_out = digits(n)
    if matrix is not None:
        names, rng = ("zero", "one", "two"), np.random.default_rng(0)
        ruled_out = [names[rng.choice(3, p=matrix[names.index(one)])] for one in true]
    flat = images.reshape(n, -1).astype(np.float64)
    names = [str(i) for i in range(n)]
    return Samples("arrays", Path("x.npz"), "sample", names, flat, [(one,) for one in ruled_out])


class Killed(BaseException):
    """As if the process were no more."""


def killed_at(epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is saved at every epoch, until the end comes."""
    plain = Unfinished._save

    def save(self, taken, at):
        plain(self, taken, at)
        if at == epoch:
            raise Killed

    monkeypatch.setattr(Unfinished, "_save", save)
    monkeypatch.setattr(Unfinished.__init__, "__defaults__", ("", 0.0))


def weights(model):
    return {name: tensor.numpy().tobytes() for name, tensor in model.network_.state_dict().items()}


@pytest.mark.parametrize(
    ("settings", "matrix"),
    [
        (replace(AUTO, budget=9000), BIASED),
        (replace(AUTO, model="mlp", budget=300), None),
        (Settings("wcll", epochs=9, lr=0.01, device="cpu"), None),
        (Settings("forward", transition="popularity", model="mlp", epochs=9, device="cpu"), None),
    ],
    ids=["auto with an estimated Q", "auto, mlp", "wcll", "forward, mlp"],
)
def test_the_same_model_bit_for_bit(settings, matrix, tmp_path, monkeypatch):
    given = samples(matrix=matrix)
    whole = learn(given, Roles(), settings, unfinished=tmp_path / "a").own.classifier
    assert whole.n_iter_ > 4
    if matrix is not None:
        assert isinstance(whole.chosen_["transition"], EstimatedTransition)
    with monkeypatch.context() as patched:
        killed_at(4, patched)
        with pytest.raises(Killed):
            learn(given, Roles(), settings, unfinished=tmp_path / "b")
    lines = []
    found = learn(given, Roles(), settings, unfinished=tmp_path / "b", resume=True, say=lines.append)
    again = found.own.classifier
    assert lines == [f"going on after epoch 4 of {whole.n_iter_}"]
    assert found.resumed_at == 4
    assert weights(again) == weights(whole)
    assert again.get_params() == whole.get_params()
    assert np.array_equal(again.prior_, whole.prior_)
    assert str(again.belief_) == str(whole.belief_)
    assert np.array_equal(again.transition_, whole.transition_)
    assert [row["loss"] for row in again.history_] == [row["loss"] for row in whole.history_]
    assert again.temperature_ == whole.temperature_
    if settings.loss == "auto":
        assert again.report() == whole.report()
        assert again.chosen_["max_epochs"] == whole.chosen_["max_epochs"]
        assert again.estimate_.to_dict() == whole.estimate_.to_dict()


def test_a_model_of_true_labels_that_goes_on_is_asked_about(tmp_path, monkeypatch):
    """The question and what it withdraws are those of a training that never stopped."""
    x, y = make_blobs(300, 4, centers=3, random_state=0)
    names = [str(i) for i in range(300)]
    given = Samples("arrays", Path("x.npz"), "sample", names, x, [(("zero", "one", "two")[k],) for k in y])
    settings = replace(AUTO, budget=300)
    whole = learn(given, Roles(), settings, unfinished=tmp_path / "a")
    with monkeypatch.context() as patched:
        killed_at(2, patched)
        with pytest.raises(Killed):
            learn(given, Roles(), settings, unfinished=tmp_path / "b")
    again = learn(given, Roles(), settings, unfinished=tmp_path / "b", resume=True)
    assert "are these true labels?" in whole.own.classifier.report()
    assert again.own.classifier.report() == whole.own.classifier.report()
    assert alarms_of(again) == alarms_of(whole)


def test_a_schedule_goes_on_where_it_was(tmp_path, monkeypatch):
    """Strong training of images: rate, views and the average of weights are those of a training that never stopped."""
    images, _, ruled_out = digits(32)
    names = [str(i) for i in range(32)]
    given = Samples("images", Path("images"), "path", names, images, [(one,) for one in ruled_out])
    settings = Settings("forward", model="cnn9", training="strong", epochs=3, device="cpu")
    whole = learn(given, Roles(), settings, unfinished=tmp_path / "a").own.classifier
    with monkeypatch.context() as patched:
        killed_at(2, patched)
        with pytest.raises(Killed):
            learn(given, Roles(), settings, unfinished=tmp_path / "b")
    again = learn(given, Roles(), settings, unfinished=tmp_path / "b", resume=True).own.classifier
    assert weights(again) == weights(whole)


def test_other_data_or_settings_are_refused(tmp_path, monkeypatch):
    settings = Settings("log", epochs=5, device="cpu")
    with monkeypatch.context() as patched:
        killed_at(2, patched)
        with pytest.raises(Killed):
            learn(samples(60), Roles(), settings, unfinished=tmp_path / "a")
    for given, other in ((samples(61), settings), (samples(60), replace(settings, seed=1))):
        with pytest.raises(InputError, match="--resume: expected the data and settings that the training began with"):
            learn(given, Roles(), other, unfinished=tmp_path / "a", resume=True)
    (tmp_path / "a" / STATE).write_bytes(b"no")
    with pytest.raises(InputError, match="a whole model file"):
        learn(samples(60), Roles(), settings, unfinished=tmp_path / "a", resume=True)
    lines = []
    learn(samples(60), Roles(), settings, unfinished=tmp_path / "a", say=lines.append)  # starts anew
    assert "going on" not in "".join(lines)


def test_killed_for_real(tmp_path, capsys):
    """``kill -9`` in the middle, then ``--resume``: the same weights as those of a run that nobody stopped."""
    data, out = write_all(tmp_path, 60)["csv"], str(tmp_path / "model")
    words = ["train", str(data), "--ignore", "label", "--loss", "log", "--epochs", "20", "--device", "cpu"]
    killed_after(7, [*words, "--out", out])
    assert not (tmp_path / "model").exists()
    assert (Unfinished.beside(tmp_path / "model") / STATE).exists()
    assert run([*words, "--out", out]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "an unfinished one in model.unfinished; --resume goes on with it, --force starts anew" in line
    (Unfinished.beside(tmp_path / "model") / "mine.txt").write_text("not of wcll")
    assert run([*words, "--out", out, "--resume"]) == 0
    assert [path.name for path in Unfinished.beside(tmp_path / "model").iterdir()] == ["mine.txt"]
    assert '"resumed_after_epoch": 7' in (tmp_path / "model" / "card.json").read_text()
    assert run([*words, "--out", str(tmp_path / "whole")]) == 0
    (_, one), (_, other) = (read_model(tmp_path / name / "model.safetensors") for name in ("model", "whole"))
    assert {name: tensor.tolist() for name, tensor in one.items()} == {name: t.tolist() for name, t in other.items()}


def test_nothing_to_go_on_from_starts_anew(tmp_path, capsys):
    data = write_all(tmp_path, 60)["csv"]
    assert run(["train", str(data), "--ignore", "label", *QUICK, "--out", str(tmp_path / "m"), "--resume"]) == 0
    assert "nothing was kept to go on from: training starts anew" in capsys.readouterr().err


class Others:
    """In place of other processes, which may say something else."""

    number, count = 1, 2

    def __init__(self, *alike: bool) -> None:
        self.answers = iter(alike)

    def alike(self, own: str) -> bool:
        return next(self.answers)


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ((False,), r"data: expected the same in all processes, got others; every machine needs the same files"),
        ((True, False), r"--resume: expected an unfinished training that all processes see, got one that only some"),
    ],
)
def test_several_processes_go_on_alike(answers, line, tmp_path, monkeypatch):
    monkeypatch.setattr("wcll.owndata.learning.ranks", lambda: Others(*answers))
    with pytest.raises(InputError, match=line):
        learn(samples(), Roles(("not_label",)), AUTO, unfinished=tmp_path / "unfinished", resume=True)
    assert not list(tmp_path.iterdir())
