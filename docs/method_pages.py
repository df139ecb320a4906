"""One page a loss, made of the registry and of result files alone: a new loss gets its page by being registered.

    python docs/method_pages.py FOLDER

writes ``methods/NAME.md`` and their figures there; the build of the site does it in ``docs``, and links the table of
``docs/methods.md`` to them.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from plots import Panel, figure
from tables import table

from wcll.cli.experiments import COLUMNS, cell, method_rows
from wcll.labels.transition import uniform_transition
from wcll.losses import LOSSES, Context, LossSpec
from wcll.paper.comparison import show_name
from wcll.paper.reproduction import MAIN, Reproduction, read_reproduction
from wcll.report.render import literal

ROOT = Path(__file__).parents[1]
CLASSES = 10  #: of the plots
LOSS, SLOPE = "the loss", "its derivative in that output"  #: what the plots show
FARTHEST = 8.0  #: from the other outputs, in the plots
SCENARIOS = ROOT / "benchmarks" / "results"
FIXED_RUNS, DEFAULT_RUNS, DEFAULT = SCENARIOS / "worlds.jsonl", SCENARIOS / "worlds-near.jsonl", "auto"

TOLD = {
    "weight": "class weights: `weights` of `ComplementaryClassifier`, or `wcll.labels.class_weights`",
    "transition": "Q, how annotators choose among the wrong classes: `transition`",
    "marginal": "the shares of the labels, which whoever trains counts: `wcll.labels.observed_marginal`",
    "prior": "the shares of the true classes, which whoever trains solves from label counts and Q",
    "pi": "the shares of Eq. 7, of which weights are made",
}  #: what a loss may take from whoever trains
INDEX_COLUMNS = ("name", "needs", "uses", "several", "link", "published")
PAPER_COLUMNS = ("printed", "its protocol", "fair", "rare", "settings", "trials")
PAPER_TABLES = (
    "The paper's tables, accuracy in %: means over the settings of a table. *Printed* is the paper's number, *its "
    "protocol* the last epoch at its rate, *fair* has rate and epoch chosen by held-out complementary labels; *rare* "
    "is the recall of the imbalanced classes then. [The reproduction](../reproduction.md) has every number with its "
    "spread."
)
WORLD_TABLES = (
    "24 scenarios on digits and MNIST (`benchmarks/results/worlds.txt`), accuracy in %. *Chosen* has rate and "
    "epoch chosen by held-out complementary labels; a number is a constant rate."
)
NOTATION = r"Here $p = \mathrm{softmax}(f)$ of the outputs f, K is the number of classes, "
LINKS = {
    "softmax": "class probabilities, by softmax",
    "sigmoid": "one score a class, by the sigmoid; they do not sum to 1, so there is no `predict_proba`",
    "scores": "scores that rank classes, which are no probabilities, so there is no `predict_proba`",
}


@dataclass(frozen=True)
class Docstring:
    """A docstring of the house: what it says first, and its sections by title, all of it in RST."""

    summary: str
    formula: str
    sections: dict[str, str]

    @staticmethod
    def of(function: Any) -> Docstring:
        """Take a function's docstring apart."""
        head, *rest = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
        summary, _, formula = head.strip().partition("\n\n")
        sections = dict(zip(rest[::2], (text.strip() for text in rest[1::2]), strict=True))
        return Docstring(summary, formula, sections)

    def parameters(self) -> dict[str, str]:
        """What is said of each, with its type."""
        entries = re.split(r"^(\w+) : (.*)$", self.sections.get("Parameters", ""), flags=re.MULTILINE)[1:]
        return {
            name: f"{kind}. {inspect.cleandoc(text)}"
            for name, kind, text in zip(entries[::3], entries[1::3], entries[2::3], strict=True)
        }


def myst(text: str) -> str:
    r"""RST of the docstrings as MyST: formulas, references to other losses, and names.

    >>> print(myst("With :math:`g(z) =\nz` of ``x`` [1]_"))
    With $g(z) = z$ of `x` [1]
    >>> print(myst(".. math:: a \\\\\n          b\n\nand so on"))
    $$
    a \\
    b
    $$
    <BLANKLINE>
    and so on
    """
    text = re.sub(r"^\.\. math:: (.*(?:\n[ ]+\S.*)*)", _display, text, flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", lambda found: f"${' '.join(found[1].split())}$", text)
    text = re.sub(r":(?:func|class|meth|mod):`~?([^`]+)`", lambda found: _reference(found[1]), text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r"\[(\d+)\]_", r"[\1]", text)


def _display(found: re.Match[str]) -> str:
    lines = "\n".join(line.strip() for line in found[1].splitlines())
    return f"$$\n{lines}\n$$"


@cache
def _names() -> dict[str, str]:
    """Losses by the names of their functions."""
    return {spec.function.__name__: name for name, spec in LOSSES.items()}


def _reference(target: str) -> str:
    name = _names().get(target.rpartition(".")[2])
    return f"`{target}`" if name is None else f"[{LOSSES[name].title}]({name}.md)"


def references(text: str) -> str:
    """``.. [1] A paper`` as a numbered list."""
    entries = re.split(r"^\.\. \[(\d+)\] ", text, flags=re.MULTILINE)[1:]
    return "\n".join(
        f"{number}. {literal(' '.join(entry.split()))}"
        for number, entry in zip(entries[::2], entries[1::2], strict=True)
    )


def curves(spec: LossSpec) -> tuple[list[float], list[float], list[float]]:
    """The label's output above the others', the loss, and its derivative in that output.

    Of a batch with one sample of every label, in which all outputs but the label's are 0: every loss has a value there,
    also one that is made of class means. Q, weights and shares are uniform.
    """
    even = np.full(CLASSES, 1 / CLASSES)
    told = {"weight": np.ones(CLASSES), "transition": uniform_transition(CLASSES)}
    told |= {"marginal": even, "prior": even, "pi": even}
    loss = spec.bind(Context(**{name: told[name] for name in spec.context}))
    x = torch.linspace(-FARTHEST, FARTHEST, 97, dtype=torch.float64, requires_grad=True)
    logits = x[:, None, None] * torch.eye(CLASSES, dtype=torch.float64)
    values = loss(logits, torch.arange(CLASSES).expand(len(x), -1))
    (slopes,) = torch.autograd.grad(values.sum(), x)
    return x.tolist(), values.tolist(), slopes.tolist()


def plots(spec: LossSpec) -> dict[str, str]:
    """SVG files of the loss and of its derivative, by what they show."""
    x, values, slopes = curves(spec)
    found = {}
    for name, curve in ((LOSS, values), (SLOPE, slopes)):
        ends = f"{curve[0]:.3g} at {x[0]:g}, {curve[len(x) // 2]:.3g} at 0, {curve[-1]:.3g} at {x[-1]:g}"
        title = f"{spec.title}: {name} against the label's output, {ends}"
        found[title] = figure(
            title, Panel(name.capitalize(), "the label's output above those of the others", x, {"": curve})
        )
    return found


def figure_files(spec: LossSpec) -> dict[str, str]:
    """The same by the names of their files."""
    return dict(zip((f"figures/{spec.name}.svg", f"figures/{spec.name}-slope.svg"), plots(spec).values(), strict=True))


def _percent(values: Iterable[float]) -> str:
    found = list(values)
    return f"{fmean(found):.1f}" if found else "-"


def paper_rows(found: Reproduction, name: str) -> Iterator[Sequence[str]]:
    """Its rows in the paper's tables, each as a mean over the settings of a table that were run."""
    for part in (*(part for name, part in found.parts.items() if name in MAIN), *found.on_images):
        for row in part.suite.rows:
            trial = part.suite.candidates(part.suite.columns[0], row, 0)[0]
            if trial.loss != name:
                continue
            cells = {kind: [c for c in part.cells(kind, row.title) if c.values] for kind in ("paper", "fair")}
            recall = [c for c in part.cells("fair", row.title, "minority_recall") if c.values]
            if not cells["fair"]:
                continue
            printed = _percent(one.printed.mean for place, one in part.beside.items() if place[0] == row.title)
            ours, fair, rare = (
                _percent(100 * c.mean for c in some) for some in (cells["paper"], cells["fair"], recall)
            )
            trials = min(len(c.values) for c in cells["fair"])
            named = show_name(row.title) + "".join(f" ({name}={value})" for name, value in trial.loss_options)
            title = f"{part.suite.title.partition(':')[0]}, {trial.dataset}"
            yield title, named, printed, ours, fair, rare, f"{len(cells['fair'])}", f"{trials}"


@cache
def _worlds() -> dict[str, dict[str, list[float]]]:
    """Return accuracies of every fixed configuration and of the default by scenario, over seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    lines = [line for line in map(json.loads, FIXED_RUNS.read_text().splitlines()) if line["method"] != DEFAULT]
    for line in [*lines, *map(json.loads, DEFAULT_RUNS.read_text().splitlines())]:
        if line["part"] == "worlds":
            found.setdefault(line["method"], {}).setdefault(line["setting"], []).append(line["accuracy"])
    return found


def world_rows(name: str) -> Iterator[Sequence[str]]:
    """Its constant choices and those with a chosen rate in 24 scenarios, best mean first; the default last."""
    everything = _worlds()
    complete = max(map(len, everything.values()))
    means = {
        method: [fmean(values) for values in by_world.values()]
        for method, by_world in everything.items()
        if len(by_world) == complete and (method == DEFAULT or method.split(",")[0] == name)
    }
    own = sorted((method for method in means if method != DEFAULT), key=lambda method: -fmean(means[method]))
    for method in (*own, DEFAULT) if own else ():
        title = "the default" if method == DEFAULT else show_name(method)
        yield title, *(f"{of(means[method]):.1f}" for of in (fmean, min, max))


def demo_rows(spec: LossSpec) -> Iterator[Sequence[str]]:
    """Its lines in the demonstration on digits."""
    demo = json.loads((ROOT / "docs" / "demo.json").read_text())
    for line in demo["lines"]:
        if line["method"] == spec.title or line["method"].startswith(f"{spec.title},"):
            yield line["method"], *(f"{100 * fmean(cell['values'].values()):.1f}" for cell in line["cells"])


def results(spec: LossSpec, found: Reproduction) -> list[str]:
    """What was measured of it, as tables."""
    heads = json.loads((ROOT / "docs" / "demo.json").read_text())["heads"]
    tables = [
        *table(
            "Digits, two of ten classes five times rarer and named more often, one label an image (`wcll demo`):",
            ("method", *(f"{head} %" for head in heads)),
            demo_rows(spec),
        ),
        *table(PAPER_TABLES, ("table", "row", *PAPER_COLUMNS), paper_rows(found, spec.name), words=2),
        *table(
            WORLD_TABLES, ("choice, model, rate", "mean of all", "worst world", "best world"), world_rows(spec.name)
        ),
    ]
    return ["## In our tables", "", *(tables or ["None of our result files has it.", ""])]


def facts(spec: LossSpec) -> list[str]:
    """What one must know to use it, as a list."""
    ordinary = spec.labels == "ordinary"
    needs = [TOLD[name] for name, required in spec.context.items() if required]
    uses = [TOLD[name] for name, required in spec.context.items() if not required]
    several = "yes" if spec.several else "no; `wcll.labels.to_pairs` splits sets into single labels"
    lines = [
        f"- **Paper:** {literal(spec.paper)}",
        f"- **Where:** {literal(spec.equation)}",
        f"- **Learns from:** {'ordinary labels, for comparison' if ordinary else 'complementary labels'}",
        f"- **Needs:** {'; '.join(needs) or 'labels alone'}",
        f"- **Uses, if given:** {'; '.join(uses) or 'nothing else'}",
        f"- **Outputs:** {LINKS[spec.link]}",
    ]
    return lines if ordinary else [*lines, f"- **Several labels a sample:** {several}"]


def options(spec: LossSpec, said: dict[str, str]) -> list[str]:
    """Its own choices, with their defaults."""
    if not spec.options:
        return []
    lines = ["## Options", ""]
    for name, default in spec.options.items():
        text = " ".join(myst(said.get(name, "")).split())
        lines.append(f"- `{name}` (default `{default!r}`): {text}")
    return [*lines, ""]


def page(spec: LossSpec, found: Reproduction) -> str:
    """Everything about one loss."""
    said = Docstring.of(spec.function)
    learner = f'ComplementaryClassifier("{spec.name}")' if spec.labels == "complementary" else None
    use = f"`{learner}`, or in" if learner else "In"
    lines = [
        f"# {spec.title}",
        "",
        myst(said.summary),
        "",
        f"{use} a loop of your own `wcll.functional.{spec.function.__name__}(logits, "
        f'{"ybar" if learner else "y"}, ...)`; in suites `loss = "{spec.name}"`.',
        "",
        *facts(spec),
        "",
        "## Formula",
        "",
        myst(said.formula),
        "",
        NOTATION + ("$y$ the label." if spec.labels == "ordinary" else r"$\bar y$ the complementary label."),
        "",
        " ".join(f"![{literal(title)}]({path})" for title, path in zip(plots(spec), figure_files(spec), strict=True)),
        "",
        f"A batch with one sample of each of {CLASSES} labels, in which all outputs but the label's are 0; Q, weights "
        "and shares are uniform. To the left the label has little probability, to the right nearly all.",
        "",
        *options(spec, said.parameters()),
    ]
    if "Notes" in said.sections:
        lines += ["## Pitfalls", "", myst(said.sections["Notes"]), ""]
    if "Examples" in said.sections:
        lines += ["## Example", "", "```python", said.sections["Examples"], "```", ""]
    lines += results(spec, found)
    if "References" in said.sections:
        lines += ["## References", "", references(said.sections["References"]), ""]
    return "\n".join(lines)


def published(paper: str) -> str:
    """Where and when a paper came out, which stands in brackets at its end.

    >>> published("Yu, Liu, Gong, Tao: Learning with biased complementary labels (ECCV 2018)")
    'ECCV 2018'
    """
    said = re.search(r"\(([^()]*\d{4})\)$", paper)
    return said[1] if said else "-"


def markdown(rows: list[dict[str, Any]], columns: Sequence[str]) -> str:
    """The table of ``wcll methods`` as Markdown."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row, column) for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def index(*, linked: bool = True) -> str:
    """The table of all losses; ``linked``, where their pages are beside it, with links to them."""
    rows = [{**row, "published": published(row["paper"])} for row in method_rows()]
    if linked:
        rows = [{**row, "name": f"[{row['name']}](methods/{row['name']}.md)"} for row in rows]
    pages = [f"{spec.title} <methods/{name}>" for name, spec in LOSSES.items()]
    lines = [
        "# Methods",
        "",
        "Every loss of `wcll.losses.LOSSES`. *Needs* and *uses* are what it takes beside outputs and labels; *several* "
        "says whether it is defined for several labels a sample; *link* is how outputs become probabilities. "
        "`wcll methods --json` has every field, the page of a loss in the site its formula and paper, and "
        "[which method when](guide/which-method.md) says what to take.",
        "",
        markdown(rows, INDEX_COLUMNS if linked else COLUMNS),
        *(["```{toctree}", ":hidden:", "", *pages, "```", ""] if linked else []),
    ]
    return "\n".join(lines)


def method_pages(found: Reproduction | None = None) -> dict[str, str]:
    """Every page and figure by its path below the folder of pages."""
    found = found or read_reproduction(ROOT / "results" / "paper")
    pages: dict[str, str] = {}
    for name, spec in LOSSES.items():
        below = {f"{name}.md": page(spec, found), **figure_files(spec)}
        pages |= {f"methods/{path}": text for path, text in below.items()}
    return pages


def write_pages(folder: Path) -> None:
    """Write all of them, those that changed alone, so that a build does not read the others again."""
    for path, text in method_pages().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
