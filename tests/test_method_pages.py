"""The pages of losses: one for each that is registered, with its formula, its paper and what it needs."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from wcll.experiments import load_suite
from wcll.losses import LOSSES, Context
from wcll.paper.comparison import read_part
from wcll.paper.reproduction import Reproduction

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "method_pages.py").exists(), reason="docs/ is not beside the package"
)


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("method_pages")
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def pages(made):
    """With one small table of the paper, as reading all of them takes long."""
    part = read_part(ROOT / "results" / "paper" / "table3-cifar10.json", load_suite("table3-cifar10"), partial=True)
    return made.method_pages(Reproduction(parts={}, search=None, images={"table3-cifar10": part}))


def test_every_loss_has_a_page_and_a_figure(pages):
    figures = {f"methods/figures/{name}{what}.svg" for name in LOSSES for what in ("", "-slope")}
    assert set(pages) == {f"methods/{name}.md" for name in LOSSES} | figures


@pytest.mark.parametrize("name", LOSSES)
def test_a_page_says_what_one_must_know(pages, made, name):
    spec, text = LOSSES[name], pages[f"methods/{name}.md"]
    assert text.startswith(f"# {spec.title}\n")
    formula = text.split("## Formula")[1].split("\n## ")[0].split("Here $p =")[0]
    assert re.search(r"\$[^$]+\$", formula)  # its own, not the words on notation
    assert made.literal(spec.paper) in text
    needs = text.split("**Needs:**")[1].splitlines()[0]
    assert all((made.TOLD[what] in needs) == spec.context.get(what, False) for what in made.TOLD)
    assert all(f"`{option}`" in text for option in spec.options)
    assert "## Pitfalls" in text
    assert "## In our tables" in text


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_of_the_docstrings_markup_is_left(pages, name):
    text = re.sub(r"```.*?```", "", pages[f"methods/{name}.md"], flags=re.DOTALL)
    assert not re.search(r":(math|func|class|meth|mod|ref):`|``|^\.\. |\]_", text, flags=re.MULTILINE)
    outside = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|`[^`]+`", "", text, flags=re.DOTALL)
    assert "$" not in outside
    assert not re.search(r"\\(frac|sum|bar|omega|log|mathrm)", outside)


def test_links_between_pages_lead_somewhere(pages):
    for path, text in pages.items():
        for target in re.findall(r"\]\(([^)]+)\)", text) if path.endswith(".md") else ():
            meant = (ROOT / "docs" / path).parent.joinpath(target).resolve().relative_to(ROOT / "docs")
            assert str(meant) in pages or (ROOT / "docs" / meant).exists(), f"{path}: {target}"


def test_what_losses_are_told_is_explained(made):
    assert set(made.TOLD) == set(vars(Context()))
    assert {spec.link for spec in LOSSES.values()} <= set(made.LINKS)


def test_results_of_a_loss_are_on_its_page(pages):
    assert "Table 3, cifar10 | WCLL (reading=eq9) | 53.2 |" in pages["methods/wcll.md"]  # as printed
    assert "| the default |" in pages["methods/forward.md"]
    assert "None of our result files has it." in pages["methods/phuber.md"]


def test_figures_are_svg_that_says_what_it_shows(pages):
    for name in LOSSES:
        root = ElementTree.fromstring(pages[f"methods/figures/{name}.svg"])
        assert root.get("role") == "img"
        assert LOSSES[name].title in root.get("aria-label")


def test_curves_are_those_of_the_formulas(made):
    """LOG is -(K-1) log(1 - p) of the label, of which the others have equal shares of the rest."""
    x, values, slopes = made.curves(LOSSES["log"])
    k, middle = made.CLASSES, len(x) // 2
    assert x[middle] == pytest.approx(0)
    assert values[middle] == pytest.approx((k - 1) * 0.105360516)  # -log(1 - 1/10)
    assert slopes[middle] == pytest.approx((k - 1) * 0.1)


def test_how_docstrings_are_converted(made):
    for module in (made, importlib.import_module("plots"), importlib.import_module("tables")):
        found = doctest.testmod(module)
        assert found.attempted > 0
        assert found.failed == 0
