"""Estimates that an assumed Q makes impossible are withdrawn, and labels that may be true labels are asked about."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from own_files import QUICK, write_csv
from wcll import ComplementaryClassifier, LabelWarning
from wcll.cli.app import run
from wcll.evaluation import label_free_confusion
from wcll.labels import TRANSITIONS, Belief, make_complementary, make_transition, uniform_transition
from wcll.losses import LOSSES
from wcll.report.model_page import model_page

QUESTION = "are these true labels?"
NAMES = ["ash", "fir", "oak"]


def digits():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), y


def said(caught):
    return [str(one.message) for one in caught if QUESTION in str(one.message)]


def fitted(x, y, loss="forward", **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ComplementaryClassifier(loss, model="linear", random_state=0, **options).fit(x, y)
    return model, said(caught)


@pytest.fixture(scope="module")
def of_true_labels():
    """A model that was trained as if true labels were complementary ones."""
    x, y = digits()
    return fitted(x[:1200], y[:1200], lr=0.01, max_epochs=20)


@pytest.fixture(scope="module")
def right():
    x, y = digits()
    return fitted(x[:1200], make_complementary(y[:1200], random_state=0), lr=0.01, max_epochs=30)


def shares_too_small():
    """Right predictions of three equal classes, of which the first is believed to be rare."""
    table = np.array([[0, 50, 50], [50, 0, 50], [50, 50, 0]]) * 20
    return label_free_confusion(table, Belief.true(uniform_transition(3), [0.1, 0.45, 0.45]), classes=NAMES)


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_one_impossible_figure_withdraws_all():
    found = shares_too_small()
    first, *rest = str(found).splitlines()
    assert first.startswith("Warning: ")
    assert "recall of ash" in first
    assert {figure.verdict for figure in found.figures.values()} == {"the assumed Q does not fit"}
    assert all(0 <= number <= 100 for number in numbers("\n".join(rest)))
    (accuracy,) = [line for line in rest if line.startswith("accuracy ")]
    assert not numbers(accuracy)


def test_json_has_no_number_of_a_figure_that_is_withdrawn():
    plain = shares_too_small().to_dict()
    assert plain["warning"].startswith("labels contradict")
    for figure in plain["figures"].values():
        assert (figure["value"], figure["low"], figure["high"]) == (None, None, None)
    json.dumps(plain, allow_nan=False)


def test_figures_of_a_q_that_fits_are_shown():
    table = np.array([[0, 50, 50], [50, 0, 50], [50, 50, 0]]) * 20
    found = label_free_confusion(table, Belief.true(uniform_transition(3), [1 / 3] * 3), classes=NAMES)
    assert not str(found).startswith("Warning")
    assert found.to_dict()["warning"] is None
    assert found.to_dict()["figures"]["accuracy"]["value"] == 1.0


def test_labels_that_name_the_prediction_are_asked_about(right):
    model, _ = right
    x, y = digits()
    found = model.evaluate(x[1200:], y[1200:])
    assert QUESTION in str(found).splitlines()[0]
    assert "of these labels name the predicted class" in str(found).splitlines()[0]
    with pytest.warns(LabelWarning, match="are these true labels") as caught:
        model.score(x[1200:], y[1200:])
    assert len(caught) == 1


def test_complementary_labels_are_not_asked_about(right):
    model, asked = right
    x, y = digits()
    held_out = make_complementary(y[1200:], n_classes=10, random_state=1)
    assert not asked
    assert QUESTION not in str(model.evaluate(x[1200:], held_out))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(x[1200:], held_out)


def test_a_fit_of_true_labels_asks_once(of_true_labels):
    (line,) = of_true_labels[1]
    assert line.startswith("y: ")


def test_the_default_asks_as_well():
    x, y = load_wine(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    _, asked = fitted(x, y, "auto", budget=300)
    assert len(asked) == 1


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_no_kind_of_simulated_labels_is_asked_about(kind):
    x, y = digits()
    for seed in range(2):
        matrix = make_transition(kind, np.bincount(y), random_state=seed)
        _, asked = fitted(x, make_complementary(y, matrix, random_state=seed), max_epochs=1, transition=matrix)
        assert not asked, seed


def test_copies_and_groups_do_not_make_labels_predictable():
    x, y = digits()
    x, ybar = x[:300], make_complementary(y[:300], n_classes=10, random_state=0)
    _, asked = fitted(np.repeat(x, 5, axis=0), np.repeat(ybar, 5), max_epochs=1)
    assert not asked
    near = np.repeat(x, 5, axis=0) + np.random.default_rng(0).normal(0, 1e-3, (1500, 64))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelWarning)
        model = ComplementaryClassifier(model="linear", budget=300, random_state=0)
        model.fit(near, np.repeat(ybar, 5), groups=np.repeat(np.arange(300), 5))


def test_a_given_q_that_is_predictable_is_not_asked_about():
    x, y = digits()
    matrix = 0.95 * np.roll(np.eye(10), 1, axis=1) + 0.05 * np.roll(np.eye(10), 2, axis=1)
    ybar = make_complementary(y, matrix, random_state=0)
    assert not fitted(x, ybar, max_epochs=1, transition=matrix)[1]
    assert fitted(x, ybar, max_epochs=1)[1]  # nobody said so: true labels of other names look the same


def table(n, y, label):
    x, _ = digits()
    return {f"p{j}": x[:n, j].tolist() for j in range(20, 44)} | {label: [f"d{k}" for k in y[:n]]}


def test_the_command_line_asks(tmp_path, capsys):
    _, y = digits()
    data = write_csv(tmp_path / "t.csv", table(1000, y, "not_label"))
    out = tmp_path / "model"
    assert run(["train", str(data), *QUICK, "--out", str(out)]) == 0
    assert QUESTION in capsys.readouterr().err
    assert any(QUESTION in line for line in json.loads((out / "card.json").read_text())["alarms"])


def test_the_command_line_withdraws_estimates(tmp_path, capsys):
    _, y = digits()
    made = table(1500, make_complementary(y, random_state=0), "not_label")
    data, out = write_csv(tmp_path / "t.csv", made), tmp_path / "model"
    options = ["--loss", "log", "--lr", "0.01", "--epochs", "20", "--model", "linear", "--device", "cpu"]
    assert run(["train", str(data), *options, "--out", str(out)]) == 0
    capsys.readouterr()
    true = write_csv(tmp_path / "true.csv", table(1500, y, "not_label"))
    assert run(["evaluate", str(out), str(true)]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("Warning: ")
    assert QUESTION in first
    assert all(0 <= number <= 100 for number in numbers("\n".join(rest)))
    assert run(["evaluate", str(out), str(true), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complementary"]["figures"]["accuracy"]["value"] is None


@pytest.mark.parametrize("name", [name for name, spec in LOSSES.items() if spec.labels != "ordinary"])
def test_every_loss_has_a_report(name):
    x, y = digits()
    model = ComplementaryClassifier(name, max_epochs=1, random_state=0).fit(
        x[:300], make_complementary(y[:300], n_classes=10, random_state=0)
    )
    report = model.report()
    assert report.startswith(f"Trained: {name}, linear, learning rate 0.0005, 1 epoch")
    assert "Assumed: " in report
    assert "evaluate(X, y)" in report
    assert "Trained: " in model_page(model)


def test_a_loss_of_ones_own_has_a_report():
    x, y = digits()

    def own(logits, targets):
        return LOSSES["log"].function(logits, targets)

    model = ComplementaryClassifier(own, max_epochs=2, random_state=0).fit(x, make_complementary(y, random_state=0))
    assert model.report().startswith("Trained: your own loss, linear, learning rate 0.0005, 2 epochs")
