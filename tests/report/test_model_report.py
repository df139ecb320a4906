"""A page about a model that was chosen without true labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from browser import look_at, needs_browser
from wcll import ComplementaryClassifier
from wcll.labels import make_complementary
from wcll.report.model_report import model_page


@pytest.fixture(scope="module")
def model():
    x, y = make_blobs(400, centers=3, random_state=0)
    names = np.array(["ant", "<b>bee</b>", "cow"])
    return ComplementaryClassifier(budget=200, random_state=0).fit(x, names[make_complementary(y, random_state=0)])


def test_all_that_was_tried_and_estimated_is_on_the_page(model):
    page = model_page(model)
    for row in model.selection_:
        assert f"<td>{row['score']:.4f}</td>" in page
    for name, figure in model.estimate_.figures.items():
        assert name.replace("<", "&lt;").replace(">", "&gt;") in page
        assert figure.verdict.replace("'", "&#39;") in page
    assert "<b>bee</b>" not in page
    assert model.report().splitlines()[0] in page
    assert page.count("<svg") == 2
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_model_that_was_kept_has_no_estimate(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    page = model_page(ComplementaryClassifier.load(tmp_path / "model.safetensors"))
    assert "Not estimated here" in page


def test_a_model_of_a_named_loss_has_a_page():
    x, y = make_blobs(50, centers=3, random_state=0)
    model = ComplementaryClassifier("log", max_epochs=1).fit(x, make_complementary(y, random_state=0))
    assert "Trained: log, linear" in model_page(model)


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_page_in_a_browser(model, width, dark, tmp_path):
    page = tmp_path / "model.html"
    page.write_text(model_page(model))
    found = look_at(page, width, dark, tmp_path)
    assert found["overflow"] <= 0
    assert found["drawn"] == 2
