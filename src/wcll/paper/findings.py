"""What does not reproduce, and what in the paper contradicts itself: computed from its numbers and ours."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from wcll.paper.evidence import all_of, in_words, means
from wcll.paper.published import Published, published, show_name
from wcll.paper.reproduction import Reproduction
from wcll.paper.search import SIZES, Search

FIRST_DIGITS = 980  #: images of digit 0 among MNIST's 10,000 test images
TEST_IMAGES = 10_000
STEPS = 3700  #: of 256 samples, in 100 epochs of 9500
TABLE3_RATES = (5e-5, 5e-6)  #: that the text gives for MNIST


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the paper should know."""

    title: str
    text: str


def findings(found: Reproduction) -> list[Finding]:
    """All of them."""
    return [
        *([_rows_that_look_under_trained(found, found.search)] if found.search else []),
        _not_a_number(found),
        _resampling(found),
        _rates(found),
        _reused(),
        _gain_on_ddsm(),
        _shares_of_ddsm(),
        Finding(
            "“Complementarily labelled” test data",
            "The section on experiments says that class-balanced complementarily labelled data is used for testing. The tables are accuracies on ordinary labels: a complementary label cannot say whether a prediction is right, only, sometimes, that it is wrong. MNIST's test set is also not balanced, though nearly; balanced accuracy stands beside accuracy here.",
        ),
    ]


def _rows_that_look_under_trained(found: Reproduction, search: Search) -> Finding:
    texts = []
    for method in ("nn", "exp", "l-w", "l-uw", "free", "pc"):
        apart = fmean(one.difference for one in found.main_beside(method))
        distances = {
            (size, lr): search.varied(size=size, loss=method, lr=lr) for size in SIZES for lr in search.base.grid["lr"]
        }
        size, lr = min(distances, key=lambda place: distances[place])
        texts.append(f"{show_name(method)} {apart:+.0f} ({distances[size, lr]:.1f} off with {size} images at {lr:g})")
    return Finding(
        "Rows that look under-trained",
        f"Mean difference from print by the paper's protocol, in points, and what comes nearest to print with the same labels, last epoch: {'; '.join(texts)}. At 5e-6 and 1000 images 100 epochs make about {STEPS:,} steps of 5e-6, too few for a linear model to converge: rows that are nearest there look under-trained.",
    )


def _not_a_number(found: Reproduction) -> Finding:
    log = [one for one in published() if one.method == "log" and one.dataset == "mnist"]
    same = all(one.mean == 100 * FIRST_DIGITS / TEST_IMAGES and one.std == 0 for one in log)
    ours = in_words(found.parts["table4"].cells("paper", "log"))
    return Finding(
        "LOG, 9.80 ± 0.00",
        f"Table 4 prints {all_of([one.text() for one in log])}. {FIRST_DIGITS} of {TEST_IMAGES} test images show digit 0"
        + (", exactly this share: class 0 was predicted everywhere, in every trial" if same else "")
        + f". Outputs that are not numbers do that, as argmax then gives 0. What made them so is open: LOG has {ours} here, and a plain logarithm of the sum of softmax outputs does not fail in this setting either (tests/test_paper.py trains one).",
    )


def _resampling(found: Reproduction) -> Finding:
    table = found.parts["table6"]
    kinds = ("under-sampling", "over-sampling")
    theirs = [one.printed.mean for kind in kinds for one in table.of(kind)]

    def range_of(suffix: str) -> tuple[str, float]:
        ours = [mean for kind in kinds for mean in means(table.cells("paper", kind + suffix))]
        return f"{min(ours):.1f} to {max(ours):.1f}", fmean(abs(a - b) for a, b in zip(ours, theirs, strict=True))

    (by_label, off), (by_truth, off_truth) = range_of(""), range_of(" by y")
    return Finding(
        "Table 6's resampling",
        f"Printed: {min(theirs):.1f} to {max(theirs):.1f}. FREE on data resampled by the complementary label has {by_label}, {off:.0f} points off on average; by the true label, which nobody could do, {by_truth}, {off_truth:.0f} points off. The paper names neither the loss nor the label.",
    )


def _rates(found: Reproduction) -> Finding:
    table = found.parts["table3"]
    by_rate = {
        lr: fmean(100 * at_rate.cell("wcll", column, "accuracy").mean for column in table.columns)
        for lr, at_rate in table.rates.items()
    }
    printed = fmean(one.printed.mean for one in table.of("wcll"))
    text = all_of([f"{mean:.1f} at {lr:g}" for lr, mean in by_rate.items()])
    nearest = min(by_rate, key=lambda lr: abs(by_rate[lr] - printed))
    among = "is" if nearest in TABLE3_RATES else "is not"
    used = dict(table.suite.tables[0].at)["lr"]
    return Finding(
        "Rates",
        f"For tables 2 and 3 the text gives sets of rates, {{5e-4, 1e-4, 5e-5, 5e-6}} and {{5e-5, 5e-6}}, without saying which was taken for whom or how it was chosen; for table 4 on MNIST it gives none. WCLL in table 3 (mean of its three settings, printed {printed:.1f}) has {text}. The nearest, {nearest:g}, {among} in the text's set. Here {used:g} is used in all cells and for all methods; the other rates are listed with the tables.",
    )


def _reused() -> Finding:
    numbers = [one for one in published() if one.method == "wcll" and one.dataset == "mnist"]
    places: dict[tuple[float, float | None], list[Published]] = {}
    for one in numbers:
        places.setdefault((one.mean, one.std), []).append(one)
    texts = [
        f"{group[0].text()} stands " + all_of([f"in table {one.table} for {one.trials} trials" for one in group])
        for group in places.values()
        if len({one.trials for one in group}) > 1
    ]
    return Finding("The same number for 5 trials and for 10", f"WCLL's {'; its '.join(texts)}, to the last digit.")


def _gain_on_ddsm() -> Finding:
    totals = {one.method.removesuffix(" / total"): one.mean for one in published() if one.method.endswith("/ total")}
    rivals = {method: mean for method, mean in totals.items() if method != "wcll"}
    best = max(rivals, key=lambda method: rivals[method])
    gain = totals["wcll"] - rivals[best]
    return Finding(
        "“+17.56 %” on DDSM",
        f"Table 7 prints {totals['wcll']:.2f} for WCLL and {rivals[best]:.2f} for {show_name(best)}, the best of the others: the gain is {gain:.2f} points, not 17.56.",
    )


def _shares_of_ddsm() -> Finding:
    """Percentages of table 7 as shares of whole images."""
    numbers = [one for one in published() if one.table == 7]
    fits = [one for one in numbers if _is_share(one.mean, 780 if one.method.endswith("total") else 260)]
    return Finding(
        "The test set of DDSM",
        f"{len(fits)} of the {len(numbers)} percentages in table 7 are whole numbers of 260 images (of 780 for the total), to two decimals: the test set probably has 260 images of each class. There is one run and no spread.",
    )


def _is_share(percent: float, of: int) -> bool:
    return any(round(float(Fraction(100 * count, of)), 2) == percent for count in range(of + 1))
