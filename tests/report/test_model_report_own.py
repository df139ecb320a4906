"""The page of a model of a user's own data, with hostile names."""

from __future__ import annotations

import pytest

from browser import look_at, needs_browser
from own_files import QUICK, columns, digits, write_all, write_csv
from wcll.cli.app import run

EVIL = "<script>document.title='evil'</script>"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table whose classes, columns and file are called as badly as can be."""
    folder = tmp_path_factory.mktemp("own")
    images, _, ruled_out = digits(90)
    names = {"zero": EVIL, "one": "<img src=x onerror=alert(1)>", "two": "\"&'|x".replace("|", "/")}
    values = {**columns(images), EVIL: [i % 5 for i in range(90)], "not_label": [names[one] for one in ruled_out]}
    data = write_csv(folder / "<b>t.csv", values)
    assert run(["train", str(data), *QUICK, "--out", str(folder / "model")]) == 0
    return folder / "model"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    files = write_all(folder, 90)
    assert run(["train", str(files["images"]), *QUICK, "--out", str(folder / "model")]) == 0
    return folder / "model"


def test_what_is_on_the_page(tables, images):
    page = (tables / "page.html").read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;b&gt;t.csv" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for title in ("Data", "What was chosen, and why", "How good it is", "What to label next", "Limits"):
        assert f"<h2>{title}</h2>" in page
    assert page.count("<svg") == 5
    assert page.count("rotate(-35)") == 2 * 3  # names below the columns of Q and of the confusion
    assert "<script" not in (tables / "card.md").read_text().replace("\\<script", "")
    seen = (images / "page.html").read_text()
    assert seen.count("data:image/png") == 12
    assert "linear, chosen" in seen


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_pages_in_a_browser(tables, images, width, dark, tmp_path):
    for name, folder in (("tables", tables), ("images", images)):
        place = tmp_path / name
        place.mkdir()
        found = look_at(folder / "page.html", width, dark, place)  # a script that ran would have changed the title
        assert found["overflow"] <= 0
        assert found["drawn"] == 5
        assert found["images"] == (12 if name == "images" else 0)
