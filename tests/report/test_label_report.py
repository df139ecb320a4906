"""The health of labels in words, and as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from browser import look_at, needs_browser
from wcll.labels import label_health
from wcll.report.label_report import in_names, label_page, sections

HOSTILE = ["<script>alert(1)</script>", 'a "b" & c', "cow", "dog"]


def labels(n=600, m=3, seed=0):
    rng = np.random.default_rng(seed)
    matrix = np.array([np.roll([0, 0.5, 0.3, 0.2], k) for k in range(4)])
    y = rng.integers(0, 4, n)
    return (rng.random((n, m, 1)) > matrix.cumsum(axis=1)[y][:, None]).sum(axis=2).clip(max=3)


@pytest.fixture(scope="module")
def health():
    return label_health(labels(), HOSTILE, np.tile(["<i>x</i>", "y", "z"], (600, 1)))


@pytest.fixture(scope="module")
def page(health, tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "page.html"
    path.write_text(label_page(health, "<labels>.csv", [("command", "wcll labels describe x.csv")]))
    return path


def said(health):
    return {section.title: " ".join(section.lines) for section in sections(health)}


def test_every_section_is_there(health):
    assert list(said(health)) == [
        "Counts",
        "Which labels these may be",
        "What it costs if this is wrong",
        "Agreement of labels of one sample",
        "Q and class shares, estimated from repeated labels",
        "Mistakes: labels that name the true class",
        "Classes that are hard to tell apart",
        "Annotators",
        "What a label is worth",
    ]
    assert all(len(row) == len(one.heads) for one in sections(health) for row in one.rows)
    assert "600 samples, 1800 labels (3 a sample), 4 classes." in said(health)["Counts"]


def test_one_label_a_sample_says_what_cannot_be_told():
    words = said(label_health(labels(m=1)))
    assert "Annotators" not in words
    assert words["Agreement of labels of one sample"] == "Can't be told from one label a sample."
    assert words["Mistakes: labels that name the true class"] == "Can't be told from one label a sample."
    assert "one label a sample does not tell it" in words["Classes that are hard to tell apart"]


def test_labels_without_replacement_and_samples_with_every_class():
    chosen = np.argsort(np.random.default_rng(0).random((60, 4)), axis=1)[:, :2]
    assert "drawn without replacement" in said(label_health(chosen))["Agreement of labels of one sample"]
    full = label_health([["a", "b", "c"], ["a", "a", "b"], ["c", "c", "b"]] * 9)
    assert "In 9 samples every class is named" in said(full)["Mistakes: labels that name the true class"]


def section(health, title):
    return next(one for one in sections(health) if one.title == title)


def test_what_a_wrong_family_costs():
    title, names = "What it costs if this is wrong", ("uniform", "inverse-size", "popularity", "popularity-noise")
    counts = [420, 120, 110, 120, 120, 110]
    found = section(label_health(np.repeat(np.arange(6), counts)), title)
    assert found.heads == ("assumed", *names, "offered")
    assert [row[0] for row in found.rows] == list(found.heads[1:])
    assert [row[1 + y] for y, row in enumerate(found.rows)] == ["100 (100)"] * 5
    assert found.rows[3][1] == "67 (59)"  # popularity with noise assumed, uniform labels
    assert found.lines[-1].endswith("to assume popularity or offered where popularity-noise is so.")
    even = section(label_health(np.repeat(np.arange(3), 50)), title)
    several = "to assume uniform, inverse-size, popularity or offered where popularity-noise is so."
    assert even.lines[-1].endswith(several)
    skewed = section(label_health(np.repeat(np.arange(6), [420, 20, 0, 120, 120, 110]), list("abcdef")), title)
    assert skewed.rows[1][:2] == ("popularity", "ruled out")
    assert any(line.startswith('"Ruled out"') for line in skewed.lines)
    assert skewed.lines[-1].endswith("would show each of these mistakes.")


def test_what_is_assumed_is_held_against_the_q_that_repeated_labels_tell(health):
    found = section(health, "What it costs if this is wrong")
    assert health.repeated.found.identified == ("estimated" in found.heads)
    assert "estimated" in found.heads


def test_tables_of_many_classes_are_cut():
    found = label_health(np.random.default_rng(0).integers(0, 50, 5000), annotators=np.arange(5000) % 40)
    cut = {one.title: (len(one.rows), " ".join(one.lines)) for one in sections(found)}
    assert cut["Counts"][0] == cut["Annotators"][0] == 30
    assert "20 more classes are in the JSON output." in cut["Counts"][1]
    assert "10 more annotators are in the JSON output." in cut["Annotators"][1]
    huge = label_health(np.random.default_rng(0).integers(0, 1500, 3000))
    assert "Not checked" in said(huge)["Counts"]
    assert "Not worked out" in said(huge)["What a label is worth"]
    assert "wcll.labels.costs_if_wrong works it out" in said(huge)["What it costs if this is wrong"]
    assert "</html>" in label_page(huge, "x", [])


def test_reasons_name_classes():
    assert in_names("classes 2 and 0 may be swapped", ["a", "b", "c"]) == "classes 'c' and 'a' may be swapped"
    assert in_names("the row of class 1 to 10% only", ["a", "b", "c"]) == "the row of class 'b' to 10% only"
    assert (
        in_names("54 equations for the 99 unknowns of 10 classes", ["a"])
        == "54 equations for the 99 unknowns of 10 classes"
    )


class Tags(HTMLParser):
    """Every tag of a page."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


def test_annotators_have_numbers_on_the_page(health, page):
    who = ["Maria Example", "jo@example.org", "pat"]
    named = label_health(labels(), HOSTILE, np.tile(who, (600, 1)))
    text = label_page(named, "x.csv", [])
    assert not [name for name in who if name in text]
    assert all(f"<td>annotator {i}</td>" in text for i in (1, 2, 3))
    assert {one.annotator for one in named.annotators} == set(who)  # what is printed has them


def test_names_are_escaped_and_nothing_is_loaded(page):
    text, tags = page.read_text(), Tags()
    tags.feed(text)
    assert not tags.seen & {"script", "i", "labels", "img", "link", "iframe"}
    assert "&lt;script&gt;" in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1200, False)], ids=["phone", "desktop"])
def test_page_in_a_browser(page, width, dark, tmp_path):
    """Nothing sticks out sideways, text is readable against its background, every figure is drawn."""
    seen = look_at(page, width, dark, tmp_path)
    assert seen["inner"] == width
    assert seen["overflow"] <= 0
    assert seen["drawn"] == 2
    assert (seen["paper"] < 60) == dark
    assert abs(seen["ink"] - seen["paper"]) > 150
