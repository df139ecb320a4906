"""The page on how many labels are needed, made of what ``benchmarks/label_needs.py`` has simulated.

    python docs/label_needs_page.py

writes ``docs/guide/how-many-labels.md`` and its figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

from plots import Panel, figure
from tables import table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "label_needs.json"
PAGE = ROOT / "docs" / "guide" / "how-many-labels.md"
CALCULATOR = ROOT / "docs" / "label_needs_calculator.html"
ORDINARY, TRUE, COUNTS, DEFAULT, DIGITS = "ordinary labels", "true Q", "Q from counts", "the default", "digits"
BIASES = {"uniform": "uniform", "popularity": "some popular", "biased": "strong habits"}
NEAR = 5  #: points below the best that ordinary labels reach

Row = Mapping[str, Any]
Setting = tuple[Any, int, int, str | None, int, str]  #: world, K, p, bias, labels a sample, what is told


@cache
def found() -> dict[str, Any]:
    """The file of results."""
    return json.loads(RESULTS.read_text())


@cache
def curves() -> dict[Setting, list[Row]]:
    """Rows of every setting by the number of labels."""
    by_setting: dict[Setting, list[Row]] = {}
    for row in found()["rows"]:
        setting = (row["world"], row["k"], row["p"], row["bias"], row["per_sample"], row["told"])
        by_setting.setdefault(setting, []).append(row)
    return by_setting


def ordinary(world: Any, k: int, p: int) -> list[Row]:
    """The same samples with true labels."""
    return curves()[world, k, p, None, 1, ORDINARY]


def labels_for(rows: Sequence[Row], goal: float) -> float | None:
    """How many labels bring the mean accuracy to ``goal``, by straight lines over log labels; None if none does."""
    before: tuple[float, float] | None = None
    for row in rows:
        labels, mean = float(row["labels"]), row["accuracy"][0]
        if mean >= goal:
            if before is None:
                return labels
            share = (goal - before[1]) / (mean - before[1])
            return exp(log(before[0]) + share * log(labels / before[0]))
        before = max(before or (labels, mean), (labels, mean), key=lambda one: one[1])
    return None


def rounded(labels: float | None, most: int) -> str:
    """Two digits, as more would say too much."""
    return f"> {most:,}" if labels is None else f"{int(float(f'{labels:.2g}')):,}"


def needed_rows() -> Iterator[Sequence[str]]:
    """By world and K: labels until accuracy is near what ordinary labels reach in the end."""
    most = found()["labels"][-1]
    for limit, k in product(found()["limits"], class_numbers()):
        base = ordinary(limit, k, 1)
        goal = base[-1]["accuracy"][0] - NEAR
        kinds = [(bias, told) for bias in BIASES for told in ((TRUE, COUNTS) if bias == "biased" else (TRUE,))]
        cells = [labels_for(curves()[limit, k, 1, bias, 1, told], goal) for bias, told in kinds]
        yield f"{limit} %", str(k), *(rounded(one, most) for one in (labels_for(base, goal), *cells))


def times_as_many(k: int, bias: str, than: str) -> str:
    """How many times as many labels of one kind that takes as of another, in all worlds: "3", or "10 to 21"."""
    ratios = []
    for limit in found()["limits"]:
        base = ordinary(limit, k, 1)
        goal = base[-1]["accuracy"][0] - NEAR
        other = base if than == ORDINARY else curves()[limit, k, 1, than, 1, TRUE]
        own, theirs = (labels_for(rows, goal) for rows in (curves()[limit, k, 1, bias, 1, TRUE], other))
        assert own is not None
        assert theirs is not None
        ratios.append(float(f"{own / theirs:.2g}"))
    return " to ".join(f"{ratio:g}" for ratio in sorted(set(ratios)))


def and_so_on(bias: str, than: str) -> str:
    """The same for every K, as part of a sentence."""
    *first, last = (f"{times_as_many(k, bias, than)} ({k} classes)" for k in class_numbers())
    return f"it takes {', '.join(first)} and {last} times as many as"


def class_numbers() -> list[int]:
    """The K that were simulated."""
    return sorted({setting[1] for setting in curves() if setting[0] != DIGITS})


def several(k: int) -> int:
    """The other number of labels a sample."""
    return max(setting[4] for setting in curves() if setting[1] == k)


def cell(row: Row) -> str:
    """The mean and half of its interval; where there are two seeds, both."""
    mean, half = row["accuracy"]
    return f"{mean:.1f} ± {half:.1f}" if len(row["seeds"]) > 2 else " and ".join(f"{one:.1f}" for one in row["seeds"])


def full_rows(world: Any, k: int, p: int) -> Iterator[Sequence[str]]:
    """Everything of a world: a row a way to label."""
    numbers = found()["labels"] if world != DIGITS else found()["labels"][:4]

    def cells(rows: Sequence[Row]) -> list[str]:
        known = {row["labels"]: cell(row) for row in rows}
        return [known.get(n, "-") for n in numbers]

    yield "ordinary", "1", "", *cells(ordinary(world, k, p))
    for bias, per_sample, told in product(BIASES, (1, several(k)), (TRUE, COUNTS)):
        yield BIASES[bias], str(per_sample), told, *cells(curves()[world, k, p, bias, per_sample, told])


def full_table(about: str, world: Any, k: int, p: int) -> list[str]:
    """The same as a table that opens."""
    numbers = found()["labels"] if world != DIGITS else found()["labels"][:4]
    heads = ("annotators", "a sample", "told", *(f"{n:,}" for n in numbers))
    rows = table("", heads, full_rows(world, k, p), words=3)
    return [f"<details><summary>{about}</summary>", "", *rows[2:], "</details>", ""]


def default_rows() -> Iterator[Sequence[str]]:
    """The default beside forward correction told the true Q."""
    for (world, k, p, bias, per_sample, told), rows in curves().items():
        if told == DEFAULT and bias is not None:
            known = {row["labels"]: row for row in curves()[world, k, p, bias, per_sample, TRUE]}
            yield from ((BIASES[bias], f"{row['labels']:,}", cell(row), cell(known[row["labels"]])) for row in rows)


def recall_rows(limit: int) -> Iterator[Sequence[str]]:
    """Recall of the first class where it is five times rarer, uniform labels."""
    for k in class_numbers():
        for name, rows in (("ordinary", ordinary(limit, k, 5)), ("uniform", curves()[limit, k, 5, "uniform", 1, TRUE])):
            yield str(k), name, *("{:.0f} ± {:.0f}".format(*row["recall"]) for row in rows)


def figures() -> dict[str, tuple[str, str]]:
    """A figure for each K at the higher limit: what it shows in words, and its SVG."""
    limit, made = found()["limits"][-1], {}
    for k in class_numbers():
        ways = {
            "ordinary labels": ordinary(limit, k, 1),
            "uniform": curves()[limit, k, 1, "uniform", 1, TRUE],
            "strong habits, known": curves()[limit, k, 1, "biased", 1, TRUE],
            "strong habits, guessed": curves()[limit, k, 1, "biased", 1, COUNTS],
        }
        lines = {name: [row["accuracy"][0] for row in rows] for name, rows in ways.items()}
        ends = "; ".join(f"{name} {line[0]:.0f} to {line[-1]:.0f} %" for name, line in lines.items())
        title = f"Accuracy against labels, {k} classes, from 100 to 30,000 labels: {ends}"
        panel = Panel(f"{k} classes: accuracy in %", "labels", found()["labels"], lines, decades=True, limits=(0, 100))
        made[f"how-many-labels-{k}.svg"] = title, figure(title, panel)
    return made


def calculator() -> str:
    """The form with its numbers."""
    rows = {}
    for (world, k, p, bias, per_sample, told), some in curves().items():
        if world != DIGITS and told != DEFAULT:
            setting = (world, k, p, told) if bias is None else (world, k, p, bias, per_sample, told)
            rows["/".join(map(str, setting))] = [[row["accuracy"][i] for row in some] for i in (0, 1)]
    data = {
        "limits": found()["limits"],
        "labels": found()["labels"],
        "k": [str(k) for k in class_numbers()],
        "p": [str(p) for p in sorted({setting[2] for setting in curves()})],
        "bias": list(BIASES),
        "told": [TRUE, COUNTS],
        "ordinary": ORDINARY,
        "several": {str(k): ["1", str(several(k))] for k in class_numbers()},
        "rows": rows,
    }
    return CALCULATOR.read_text().replace("DATA", json.dumps(data, separators=(",", ":")), 1).rstrip()


def made_by() -> str:
    """Where the numbers come from."""
    made = found()["made"]
    versions = ", ".join(f"{name} {made[name]}" for name in ("wcll", "torch", "numpy", "python"))
    return (
        f"`{found()['command']}`: seeds {found()['seeds'][0]} to {found()['seeds'][-1]}, {versions}, one thread of a "
        f"busy {made['device']} machine. Every number is in `benchmarks/results/label_needs.json`."
    )


def page() -> str:
    """All of it."""
    limits = found()["limits"]
    columns = (
        *("ordinary labels reach", "classes", "ordinary", "uniform", "some popular"),
        *("strong habits, known", "strong habits, guessed"),
    )
    lines = [
        "# How many labels do I need?",
        "",
        "<!-- generated by: python docs/label_needs_page.py -->",
        "",
        "A complementary label says less than an ordinary one, so more of them are needed. In these simulations, if "
        f"annotators name every wrong class alike, {and_so_on('uniform', ORDINARY)} of ordinary ones. If they have "
        f"strong habits that are known, {and_so_on('biased', 'uniform')} without habits. If habits are only guessed "
        "from label counts, accuracy may never come near.",
        "",
        "- *uniform*: annotators name every wrong class alike.",
        "- *some popular*: some classes come to mind up to four times as easily as others, whatever the true one is.",
        "- *strong habits*: for each class a third of the wrong ones gets 75 % of the labels, a third 1 %. *Known*: "
        "the model is told so. *Guessed*: it is told that some classes are popular, which is wrong.",
        "",
        *table(
            f"Labels, one a sample, until accuracy is within {NEAR} points of what ordinary labels reach in the end "
            "(all classes equally frequent):",
            columns,
            needed_rows(),
            words=1,
        ),
        " ".join(f"![{title}](../figures/{name})" for name, (title, _) in figures().items()),
        "",
        f"Ordinary labels reach {limits[-1]} % here in the end; one label a sample, all classes equally frequent.",
        "",
        "## Calculator",
        "",
        "It draws straight lines between the simulated numbers, over the logarithm of the number of labels and between "
        f"the two accuracies ({limits[0]} and {limits[-1]} %) that ordinary labels reach. It does not go beyond them.",
        "",
        "```{raw} html",
        calculator(),
        "```",
        "",
        "## What it can't tell",
        "",
        "- The classes are Gaussian clouds, all equally far apart, and the model is linear, which is right for them. "
        "On your data some classes are nearer to each other, and a network may need more labels than a linear model.",
        "- Annotators never name the true class here. Mistakes cost more labels, and some accuracy.",
        "- *Known* means the true Q. A measured one (`wcll.labels.transition_from_pairs`, "
        "`wcll.labels.transition_from_repeated`) is as good as that only if there are many pairs or repeats.",
        "- Intervals are of the mean over five draws. One data set, which is what you have, varies more than a mean.",
        "- Labels are counted, not samples: three labels a sample mean a third of the samples. Two labels of three "
        "classes leave one class, so how annotators choose does not matter there.",
        "- Accuracy counts all classes alike. With a rare class ordinary labels fall short of the limit, too, as "
        "models follow the class shares that they are trained on.",
        "",
        "## The default",
        "",
        *table(
            '`ComplementaryClassifier(model="linear")` (its earlier search), told nothing, beside a model that is told '
            f"how annotators choose (five classes, {limits[-1]} %; two draws, both shown):",
            ("annotators", "labels", "the default", "told Q (5 seeds)"),
            default_rows(),
        ),
        "Where habits are strong, the default has to learn them as well, for which a thousand labels may be too few. "
        "`model.estimate_` says how good a model seems, and that this can't be checked.",
        "",
        "## A rare class",
        "",
        *table(
            f"Recall in % of a class five times rarer than each other one, one label a sample, {limits[-1]} %:",
            ("classes", "labels", *(f"{n:,}" for n in found()["labels"])),
            recall_rows(limits[-1]),
            words=2,
        ),
        "`target_prior` moves predictions to other class shares after training.",
        "",
        "## Every number",
        "",
        "Accuracy in %, mean over seeds ± half of its 95 % interval, by the number of labels.",
        "",
    ]
    for limit, k, p in product(limits, class_numbers(), (1, 5)):
        balance = "classes equally frequent" if p == 1 else f"one class {p} times rarer"
        lines += full_table(f"Ordinary labels reach {limit} %, {k} classes, {balance}", limit, k, p)
    for p in (1, 5):
        balance = "classes equally frequent" if p == 1 else f"the digit 0 {p} times rarer"
        lines += full_table(f"scikit-learn's digits, a real data set: 10 classes, {balance}", DIGITS, 10, p)
    return "\n".join([*lines, made_by(), ""])


def pages() -> dict[Path, str]:
    """The page and its figures."""
    drawn = {ROOT / "docs" / "figures" / name: svg for name, (_, svg) in figures().items()}
    return {PAGE: page(), **drawn}


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
