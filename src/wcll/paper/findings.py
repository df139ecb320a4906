"""What does not reproduce, and what in the paper contradicts itself: computed from its numbers and ours."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from wcll.paper.claims import all_of
from wcll.paper.compare import show_name
from wcll.paper.published import published
from wcll.paper.reproduction import Reproduction
from wcll.paper.search import RIVAL, Protocol

FIRST_DIGITS = 980  #: images of digit 0 among MNIST's 10,000 test images
TEST_IMAGES = 10_000
TABLE3_RATES = (5e-5, 5e-6)  #: that the text gives for MNIST


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the paper should know."""

    title: str
    text: str


def findings(found: Reproduction) -> list[Finding]:
    """All of them."""
    return [
        _rows_that_look_under_trained(found),
        _not_a_number(found),
        _resampling(found),
        _rates(found),
        _reused(),
        _gain_on_ddsm(),
        _shares_of_ddsm(),
        Finding(
            "“Complementarily labelled” test data",
            "The section on experiments says that class-balanced complementarily labelled data is used for testing. "
            "The tables are accuracies on ordinary labels: a complementary label cannot say whether a prediction is right, "
            "only, sometimes, that it is wrong. MNIST's test set is also not balanced, though nearly; balanced accuracy "
            "stands beside accuracy here.",
        ),
    ]


def _rows_that_look_under_trained(found: Reproduction) -> Finding:
    search, methods = found.search, ("nn", "exp")
    texts = []
    for method in methods:
        better = fmean(e.difference for e in found.main(method) if e.difference is not None)
        distances = {
            (size, lr): search.distance(Protocol(RIVAL, size, method, lr, "last")).distance
            for size in (1000, 2000) for lr in search.base.grid["lr"]
        }  # fmt: skip
        size, lr = min(distances, key=lambda place: distances[place])
        texts.append(f"{show_name(method)} is {better:.0f} points better here than printed, and comes nearest "
                     f"({distances[size, lr]:.1f} points off) with {size} images a majority class at a rate of {lr:g}, "
                     f"where 100 epochs are too few to converge")  # fmt: skip
    lw = all_of([f"{show_name(m)} {fmean(e.difference for e in found.main(m) if e.difference is not None):+.0f}"
                 for m in ("l-w", "l-uw", "free", "pc")])  # fmt: skip
    return Finding(
        "Rows that look under-trained",
        f"{'; '.join(texts)}. The other rivals differ by {lw} points on average. No common rate explains the rows: see the "
        "search.",
    )


def _not_a_number(found: Reproduction) -> Finding:
    log = [one for one in published() if one.method == "log" and one.dataset == "mnist"]
    same = all(one.mean == 100 * FIRST_DIGITS / TEST_IMAGES and one.std == 0 for one in log)
    ours = all_of([f"{100 * entry.paper['accuracy'].mean:.1f}" for entry in found.parts["table4"].of("log")])
    return Finding(
        "LOG, 9.80 ± 0.00",
        f"Table 4 prints {all_of([one.text() for one in log])}. {FIRST_DIGITS} of {TEST_IMAGES} test images show digit 0"
        + (", exactly this share" if same else "")
        + f": a model whose outputs are not numbers predicts class 0 everywhere. A logarithm of a sum of softmax outputs "
        f"that has vanished gives that; computed in a stable way LOG has {ours}.",
    )


def _resampling(found: Reproduction) -> Finding:
    table = found.parts["table6"]
    ours = [100 * e.paper["accuracy"].mean for m in ("under-sampling", "over-sampling") for e in table.of(m)]
    oracle = [100 * e.paper["accuracy"].mean for m in table.methods if m.endswith("by y") for e in table.of(m)]
    theirs = [e.printed.mean for m in ("under-sampling", "over-sampling") for e in table.of(m) if e.printed]
    return Finding(
        "Table 6's resampling",
        f"Printed: {min(theirs):.1f} to {max(theirs):.1f}. FREE on data resampled by the complementary label has "
        f"{min(ours):.1f} to {max(ours):.1f}; by the true label (which nobody could do) {min(oracle):.1f} to "
        f"{max(oracle):.1f}, nearer to the printed numbers. The paper names neither the loss nor the label.",
    )


def _rates(found: Reproduction) -> Finding:
    table = found.parts["table3"]
    by_rate = {lr: fmean(100 * e.rates[lr].mean for e in table.of("wcll")) for lr in table.of("wcll")[0].rates}
    printed = fmean(e.printed.mean for e in table.of("wcll") if e.printed)
    text = all_of([f"{mean:.1f} at {lr:g}" for lr, mean in by_rate.items()])
    nearest = min(by_rate, key=lambda lr: abs(by_rate[lr] - printed))
    among = "is" if nearest in TABLE3_RATES else "is not"
    return Finding(
        "Rates",
        "For tables 2 and 3 the text gives sets of rates, {5e-4, 1e-4, 5e-5, 5e-6} and {5e-5, 5e-6}, without saying which "
        "was taken for whom or how it was chosen; for table 4 on MNIST it gives none. WCLL in table 3 (mean of its three "
        f"settings, printed {printed:.1f}) has {text}. The nearest, {nearest:g}, {among} in the text's set. It is used in all cells and for all methods; the other rates are listed with the tables.",
    )


def _reused() -> Finding:
    numbers = [one for one in published() if one.method == "wcll" and one.dataset == "mnist"]
    first = next(one for one in numbers if one.table == 2)
    again = [one for one in numbers if (one.mean, one.std) == (first.mean, first.std) and one.trials != first.trials]
    return Finding(
        f"{first.mean:.2f} at two numbers of trials",
        f"WCLL's {first.text()} stands in table {first.table} for {first.trials} trials and, to the last digit, in tables "
        f"{all_of([str(one.table) for one in again])} for {again[0].trials if again else 0}.",
    )


def _gain_on_ddsm() -> Finding:
    totals = {one.method.removesuffix(" / total"): one.mean for one in published() if one.method.endswith("/ total")}
    rivals = {method: mean for method, mean in totals.items() if method != "wcll"}
    best = max(rivals, key=lambda method: rivals[method])
    gain = totals["wcll"] - rivals[best]
    return Finding(
        "“+17.56 %” on DDSM",
        f"Table 7 prints {totals['wcll']:.2f} for WCLL and {rivals[best]:.2f} for {show_name(best)}, the best of the others: "
        f"the gain is {gain:.2f} points, not 17.56.",
    )


def _shares_of_ddsm() -> Finding:
    """Percentages of table 7 as shares of whole images."""
    numbers = [one for one in published() if one.table == 7]
    fits = [one for one in numbers if _is_share(one.mean, 780 if one.method.endswith("total") else 260)]
    return Finding(
        "The test set of DDSM",
        f"{len(fits)} of the {len(numbers)} percentages in table 7 are whole numbers of 260 images (of 780 for the total), "
        f"to two decimals: the test set probably has 260 images of each class. There is one run and no spread.",
    )


def _is_share(percent: float, of: int) -> bool:
    return any(round(float(Fraction(100 * count, of)), 2) == percent for count in range(of + 1))
