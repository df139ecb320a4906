"""What does not reproduce, and what in the paper contradicts itself: computed from its numbers and ours.

The words are those of ``templates/findings.txt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import fmean

from wcll.paper.evidence import PROTOCOL_NAMES, leads, means, say
from wcll.paper.part import CLOSE, Part
from wcll.paper.published import FORMULAS, Published, published
from wcll.paper.reproduction import Reproduction
from wcll.paper.search import SIZES, Search
from wcll.report.result_tables import Table

FIRST_DIGITS = 980  #: images of digit 0 among MNIST's 10,000 test images
TEST_IMAGES = 10_000
STEPS = 3700  #: of 256 samples, in 100 epochs of 9500
TABLE3_RATES = (5e-5, 5e-6)  #: that the text gives for MNIST


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the paper should know."""

    title: str
    text: str


def contradictions() -> list[str]:
    """What the paper's formulas and sentences say differently in different places, each in a sentence or two."""
    return say("findings", "contradictions").splitlines()


def findings(found: Reproduction) -> list[Finding]:
    """Every finding, as the report lists them."""
    texts = {
        **({"Rows that look under-trained": _under_trained(found, found.search)} if found.search else {}),
        "LOG, 9.80 ± 0.00": _not_a_number(found),
        "Table 6's resampling": _resampling(found),
        "Rates": _rates(found),
        **({"Eq. 9 or Algorithm 1": _formulas(found)} if len(found.formulas) == len(FORMULAS) else {}),
        **({"Images: after the last epoch, or at the best by TEST": _on_images(found)} if found.on_images else {}),
        "The same number for 5 trials and for 10": _reused(),
        "“+17.56 %” on DDSM": _gain_on_ddsm(),
        "The test set of DDSM": _shares_of_ddsm(),
        "“Complementarily labelled” test data": say("findings", "test_data"),
    }
    return [Finding(title, text) for title, text in texts.items()]


def _under_trained(found: Reproduction, search: Search) -> str:
    rows = {}
    for method in ("nn", "exp", "l-w", "l-uw", "free", "pc"):
        apart = fmean(one.difference for one in found.main_beside(method))
        places = product(SIZES, search.base.grid["lr"])
        distances = {(size, lr): search.varied(size=size, loss=method, lr=lr) for size, lr in places}
        nearest = min(distances, key=lambda place: distances[place])
        rows[method] = apart, distances[nearest], *nearest
    return say("findings", "under_trained", rows, STEPS)


def _not_a_number(found: Reproduction) -> str:
    log = [one for one in published() if one.method == "log" and one.dataset == "mnist"]
    same = all(one.mean == 100 * FIRST_DIGITS / TEST_IMAGES and one.std == 0 for one in log)
    ours = found.parts["table4"].cells("paper", "log")
    return say("findings", "not_a_number", [one.text() for one in log], same, ours, FIRST_DIGITS, TEST_IMAGES)


def _resampling(found: Reproduction) -> str:
    table, kinds = found.parts["table6"], ("under-sampling", "over-sampling")
    theirs = [one.printed.mean for kind in kinds for one in table.of(kind)]

    def off(methods: Sequence[str]) -> float:
        ours = [mean for method in methods for mean in means(table.cells("paper", method))]
        return fmean(abs(a - b) for a, b in zip(ours, theirs, strict=True))

    by_truth = [f"{kind} by y" for kind in kinds]
    return say("findings", "resampling", table, kinds, off(kinds), by_truth, off(by_truth))


def _rates(found: Reproduction) -> str:
    table = found.parts["table3"]
    by_rate = {
        lr: fmean(100 * at_rate.cell("wcll", column, "accuracy").mean for column in table.columns)
        for lr, at_rate in table.rates.items()
    }
    printed = fmean(one.printed.mean for one in table.of("wcll"))
    nearest = min(by_rate, key=lambda lr: abs(by_rate[lr] - printed))
    return say("findings", "rates", by_rate, printed, nearest, TABLE3_RATES, dict(table.suite.tables[0].at)["lr"])


def _formulas(found: Reproduction) -> str:
    """Which of the two that may be meant does better, by either protocol: what the library calls WCLL follows."""
    rows = {}
    for how, title in PROTOCOL_NAMES.items():
        eq9, algorithm1 = (found.main(how, row) for row in FORMULAS)
        gaps = [a - b for a, b in zip(means(algorithm1), means(eq9), strict=True)]
        rows[title] = gaps, leads(list(zip(algorithm1, eq9, strict=True)))
    return say("findings", "formulas", rows)


def _on_images(found: Reproduction) -> str:
    """How far the printed numbers are at each rate, by when one looks, and which methods come near them."""
    rows = {}
    tried = [(part, lr) for part in found.on_images for lr in part.rates]
    for part, lr in tried:
        last, best = (_apart(part, tables[lr]) for tables in (part.rates, part.best_rates))
        if last:
            means_of = [fmean(distance for some in look.values() for distance in some) for look in (last, best)]
            near = [method for method, distances in best.items() if fmean(distances) <= CLOSE]
            rows[part.suite.title, lr] = *means_of, near
    return say("findings", "on_images", rows, CLOSE)


def _apart(part: Part, table: Table) -> dict[str, list[float]]:
    """By method, how far the printed accuracies are, in points."""
    found: dict[str, list[float]] = {}
    for (method, column), printed in part.printed.items():
        if (cell := table.cell(method, column, "accuracy")).values:
            found.setdefault(method, []).append(abs(100 * cell.mean - printed.mean))
    return found


def _reused() -> str:
    places: dict[tuple[float, float | None], list[Published]] = {}
    for one in published():
        if one.method == "wcll" and one.dataset == "mnist":
            places.setdefault((one.mean, one.std), []).append(one)
    return say("findings", "reused", [group for group in places.values() if len({one.trials for one in group}) > 1])


def _gain_on_ddsm() -> str:
    totals = {one.method.removesuffix(" / total"): one.mean for one in published() if one.method.endswith("/ total")}
    wcll = totals.pop("wcll")
    best = max(totals, key=lambda method: totals[method])
    return say("findings", "gain_on_ddsm", wcll, totals[best], best)


def _shares_of_ddsm() -> str:
    """Percentages of table 7 as shares of whole images."""
    numbers = [one for one in published() if one.table == 7]
    fits = [one for one in numbers if _is_share(one.mean, 780 if one.method.endswith("total") else 260)]
    return say("findings", "shares_of_ddsm", len(fits), len(numbers))


def _is_share(percent: float, of: int) -> bool:
    return any(round(float(Fraction(100 * count, of)), 2) == percent for count in range(of + 1))
