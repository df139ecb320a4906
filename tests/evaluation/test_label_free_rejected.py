"""Estimates that an assumed Q makes impossible are withdrawn, and labels that may be true labels are asked about."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine, make_blobs

from own_files import QUICK, write_csv
from wcll import ComplementaryClassifier, LabelWarning
from wcll.cli.app import run
from wcll.evaluation import label_free_confusion
from wcll.labels import Belief, make_complementary, uniform_transition
from wcll.labels.transition import TRANSITIONS, make_transition
from wcll.losses import LOSSES
from wcll.report.model_report import model_page

QUESTION = "are these true labels?"
NAMES = ["ash", "fir", "oak"]


def digits():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), y


def said(caught):
    return [str(one.message) for one in caught if QUESTION in str(one.message)]


def fitted(x, y, loss="forward", groups=None, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ComplementaryClassifier(loss, model="linear", random_state=0, **options).fit(x, y, groups=groups)
    return model, said(caught)


def blobs(n_classes):
    """Samples of classes that are easy to tell apart, two thirds of them to train on."""
    x, y = make_blobs(150 * n_classes, 4, centers=n_classes, random_state=0)
    x, cut = (x - x.mean(axis=0)) / x.std(axis=0), 100 * n_classes
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


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


@pytest.mark.parametrize("form", ["a mask", "lists", "lists, one of two labels"])
def test_sets_of_one_label_are_asked_about(form):
    x, y = digits()
    sets = np.eye(10, dtype=bool)[y] if form == "a mask" else [[k] for k in y]
    if form == "lists, one of two labels":
        sets[0] = [0, 1]
    assert len(fitted(x, sets, max_epochs=1)[1]) == 1


@pytest.mark.parametrize("n_labels", [2, "random"])
def test_sets_of_several_labels_are_not_asked_about(n_labels):
    x, y = digits()
    assert not fitted(x, make_complementary(y, n_labels=n_labels, random_state=0), max_epochs=1)[1]


@pytest.mark.parametrize("n_groups", [29, 30, 60])
def test_a_few_groups_are_enough_to_ask(n_groups):
    """Groups are patients, say, of whom each has samples of many classes."""
    x, y = digits()
    groups = np.arange(len(y)) % n_groups
    assert len(fitted(x, y, "auto", budget=300, groups=groups)[1]) == (n_groups >= 30)


def test_true_labels_of_150_samples_are_asked_about():
    """Each third of them is held out once."""
    x, y = digits()
    for i in range(0, 1600, 200):
        assert len(fitted(x[i : i + 150], y[i : i + 150], max_epochs=1)[1]) == 1, i


def test_named_losses_keep_groups_together():
    """Labels of a group are alike: near copies predict each other's, whatever is held out."""
    x, y = digits()
    groups = np.repeat(np.arange(100), 15)
    near = x[groups] + np.random.default_rng(0).normal(0, 1e-3, (1500, 64))
    ybar = make_complementary(y[:100], n_classes=10, random_state=0)[groups]
    assert not fitted(near, ybar, max_epochs=1, groups=groups)[1]
    assert fitted(near, ybar, max_epochs=1)[1]  # nobody said so


def test_a_constant_prediction_of_the_commonest_label_is_not_asked_about():
    belief = Belief.of("popularity", [700, 200, 100])
    constant = np.array([[700, 0, 0], [200, 0, 0], [100, 0, 0]])
    assert QUESTION not in str(label_free_confusion(constant, belief, classes=NAMES))
    right = np.array([[690, 5, 5], [5, 190, 5], [5, 5, 90]])
    assert QUESTION in str(label_free_confusion(right, belief, classes=NAMES))


def test_a_model_that_never_predicts_another_class_is_not_asked_about():
    """More than half of the labels name the one class that it predicts."""
    x = np.random.default_rng(0).normal(size=(600, 3))
    ybar = np.repeat([0, 0, 0, 1, 2], 120)
    model, _ = fitted(x, ybar, max_epochs=1, transition="popularity")
    with torch.no_grad():
        for name, tensor in model.network_.named_parameters():
            tensor.copy_(torch.tensor([9.0, 0.0, 0.0]) if name.endswith("bias") else torch.zeros_like(tensor))
    assert set(model.predict(x)) == {0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.score(x, ybar)
    assert not said(caught)
    assert QUESTION not in str(model.evaluate(x, ybar))


def test_score_asks_by_features(of_true_labels):
    """A model of true labels predicts others, so that its predictions show nothing."""
    model, _ = of_true_labels
    x, y = digits()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.score(x[1200:], y[1200:])
    (line,) = said(caught)
    assert "nearest neighbours" in line


@pytest.mark.parametrize("n_classes", [3, 4])
def test_no_figure_of_true_labels_is_shown(n_classes):
    """Neither of those that the default holds out, nor of new ones."""
    train, test = blobs(n_classes)
    model, asked = fitted(*train, "auto", budget=300)
    assert len(asked) == 1
    for found in (model.estimate_, model.evaluate(*test)):
        assert QUESTION in str(found)
        assert {figure.verdict for figure in found.figures.values()} == {"the assumed Q does not fit"}
        assert all(figure["value"] is None for figure in found.to_dict()["figures"].values())


def test_the_report_of_true_labels_has_no_accuracy():
    train, _ = blobs(3)
    model, (question,) = fitted(*train, "auto", budget=300)
    report = model.report()
    assert f"Warning: {question}" in report
    assert "Estimated accuracy" not in report
    right, _ = fitted(train[0], make_complementary(train[1], random_state=0), "auto", budget=300)
    assert "Estimated accuracy" in right.report()


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


def test_a_model_of_true_labels_has_no_figure_in_any_file(tmp_path, capsys):
    (x, y), (new, other) = blobs(4)
    names = ["ash", "fir", "oak", "yew"]
    for name, features, labels in (("train", x, y), ("test", new, other)):
        columns = {f"x{j}": features[:, j].round(4).tolist() for j in range(4)}
        write_csv(tmp_path / f"{name}.csv", {**columns, "not_label": [names[k] for k in labels]})
    out = tmp_path / "model"
    assert run(["train", str(tmp_path / "train.csv"), *QUICK, "--out", str(out), "--json"]) == 0
    shown, card = json.loads(capsys.readouterr().out), json.loads((out / "card.json").read_text())
    for one in (shown, card):
        assert {figure["value"] for figure in one["estimate"]["figures"].values()} == {None}
        assert one["confusion"] is None
    page = (out / "page.html").read_text()
    assert "Its accuracy cannot be estimated: y: nearest neighbours" in page
    assert "Confusion, estimated" not in page
    for text in ("\n".join(card["training"]["report"]), (out / "card.md").read_text(), page):
        assert "stimated accuracy" not in text
    assert run(["evaluate", str(out), str(tmp_path / "test.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["complementary"]
    assert QUESTION in found["warning"]
    assert found["figures"]["accuracy"]["value"] is None


def test_shares_that_a_wrong_q_gives_are_not_shown(tmp_path):
    """Uniform labels never name one of three classes in 80 % of the samples: a class share would be below 0."""
    rng = np.random.default_rng(0)
    labels = rng.choice(NAMES, 300, p=[0.8, 0.1, 0.1])
    data = {"x": rng.normal(size=300).round(3).tolist(), "not_label": labels.tolist()}
    out = tmp_path / "model"
    options = ["--loss", "log", "--transition", "uniform", "--epochs", "2", "--device", "cpu", "--out", str(out)]
    assert run(["train", str(write_csv(tmp_path / "t.csv", data)), *options]) == 0
    card = json.loads((out / "card.json").read_text())
    assert [one["share_by_counts"] for one in card["classes"]] == [None] * 3
    assert not re.search(r"-\d+(\.\d+)?\s*%", (out / "page.html").read_text())


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
