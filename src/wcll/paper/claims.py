"""What the paper claims, and whether it holds in what we measured on MNIST.

One rule for all: a claim on accuracies holds if it holds by both protocols; differences are tested over trials (paired
t-test, 5 %), whose runs share draws; where too few trials decide nothing, the verdict says so. The words are those of
``templates/claims.txt``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from wcll.paper.evidence import PROTOCOLS, all_or_open, change_between, less, means, printed_settings, say
from wcll.paper.part import mean_absolute
from wcll.paper.published import METHODS, show_name
from wcll.paper.reproduction import Reproduction
from wcll.report.cells import Cell

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "can't be tested"
VERDICT_OF = {True: HOLDS, False: FAILS, None: UNTESTED}
NOTICEABLE = 2.0  #: points
LEARNT = 30.0  #: percent, three times what chance gives in ten classes


@dataclass(frozen=True)
class Claim:
    """One claim, our verdict, and why."""

    statement: str
    verdict: str
    evidence: str


Judged = tuple[bool | None, str]  #: whether a claim holds (None: cannot be told), and why
Judging = Callable[..., Judged]
CLAIMS: dict[str, Judging] = {}


def claim(statement: str, *about: str) -> Callable[[Judging], Judging]:
    """Decorator: the function, called with what a reproduction found and ``about``, judges a claim of the paper."""

    def register(function: Judging) -> Judging:
        CLAIMS[statement] = lambda found: function(found, *about)
        return function

    return register


def judge_all(found: Reproduction) -> list[Claim]:
    """Every claim with its verdict."""
    judged = {statement: function(found) for statement, function in CLAIMS.items()}
    return [Claim(statement, VERDICT_OF[holds], evidence) for statement, (holds, evidence) in judged.items()]


@claim("WCLL is the most accurate of the ten methods in every MNIST setting (tables 2, 3 and 4).")
def _best(found: Reproduction) -> Judged:
    judged = {}
    for how, name in PROTOCOLS.items():
        settings = list(zip(*(means(found.main(how, method)) for method in METHODS), strict=True))
        winners = [METHODS[row.index(max(row))] for row in settings]
        own = [column for column, winner in zip(found.columns, winners, strict=True) if winner == "wcll"]
        others = sorted({show_name(winner) for winner in winners} - {"WCLL"})
        judged[name] = own, others, max(max(row) - row[METHODS.index("wcll")] for row in settings)
    everywhere = not any(others for _, others, _ in judged.values())
    forward = means(found.main("paper", "forward, Q from counts"))
    return everywhere, say("claims", "best", judged, len(found.columns), forward)


@claim("WCLL's standard deviation over trials is smaller than that of PC and L-W (results on figure 3).")
def _spread(found: Reproduction) -> Judged:
    rivals, figure = ("pc", "l-w"), found.parts["figure3"]
    total = {m: [100 * cell.std for cell in found.main("paper", m)] for m in ("wcll", *rivals)}
    rare = {m: [100 * cell.std for cell in figure.cells("paper", m, "minority_recall")] for m in ("wcll", *rivals)}
    if any(math.isnan(value) for values in (*total.values(), *rare.values()) for value in values):
        return None, "A single trial has no spread."
    below = [
        sum(min(spread[m][i] for m in rivals) > own for i, own in enumerate(spread["wcll"])) for spread in (total, rare)
    ]
    printed = [[one for one in row if one.std is not None] for row in printed_settings("mnist", (2, 3, 4))]
    first = sum(min(row, key=lambda one: one.std or 0.0).method == "wcll" for row in printed)
    holds = below == [len(total["wcll"]), len(rare["wcll"])]
    return holds, say("claims", "spread", total, rare, below, first, len(printed))


@claim("WCLL keeps its accuracy on the imbalanced class when p goes from 2 to 2.5 (figure 3).")
def _steady(found: Reproduction) -> Judged:
    change = change_between(*_from_2_to_25(found, "wcll"))
    kept = None if change.fell is None else not change.fell
    if kept is None and change.within(NOTICEABLE):
        kept = True
    return kept, say("claims", "change", change)


@claim("WCLL is better than PC, L-W and NN on the imbalanced class in every panel of figure 3.")
def _imbalanced(found: Reproduction) -> Judged:
    figure = found.parts["figure3"]
    methods = ["wcll", *(method for method in figure.methods if method != "wcll")]
    by_method = [means(figure.cells("paper", method, "minority_recall")) for method in methods]
    panels = dict(zip(figure.columns, zip(*by_method, strict=True), strict=True))  # WCLL comes first
    lost = {column: recalls for column, recalls in panels.items() if max(recalls[1:]) >= recalls[0]}
    best = [max(recalls[1:]) for column, recalls in panels.items() if column not in lost]
    return not lost, say("claims", "imbalanced", list(map(show_name, methods)), best, lost, len(panels))


@claim("NN gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).", "nn")
@claim("PC gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).", "pc")
def _falls(found: Reproduction, method: str) -> Judged:
    before, after = _from_2_to_25(found, method)
    if not any(means([*before, *after])):
        return None, say("claims", "never_predicted", method)
    change = change_between(before, after)
    return change.fell, say("claims", "falls", change, means(before), means(after))


@claim("The experiments train the loss of Eq. 12 (experiments, first paragraph).")
def _eq12(found: Reproduction) -> Judged:
    ours, eq9 = means(found.main("paper", "wcll, Eq. 12")), found.main_beside("wcll")
    off = fmean(abs(own - one.printed.mean) for own, one in zip(ours, eq9, strict=True))
    recall = max(means(found.main("paper", "wcll, Eq. 12", "minority_recall")))
    return off <= NOTICEABLE, say("claims", "eq12", ours, off, recall, mean_absolute(eq9))


@claim("WCLL can be used with any loss and any model.")
def _assumption_free(found: Reproduction) -> Judged:
    bases = found.parts["bases"]
    places = list(product(bases.methods, bases.columns))
    fair, paper = ({place: 100 * bases.cell(how, *place).mean for place in places} for how in ("fair", "paper"))
    best, worst = max(fair, key=lambda place: fair[place]), min(paper, key=lambda place: paper[place])
    holds = min(*fair.values(), *paper.values()) >= LEARNT
    return holds, say("claims", "assumption_free", fair, paper, best, worst, LEARNT)


@claim("NCLL and ML_CLL do poorly on MNIST (and are left out of its tables).")
def _poor(found: Reproduction) -> Judged:
    methods = ("ncll", "ml-cll")
    figures = {
        m: [max(both) for both in zip(*(means(found.main(how, m)) for how in PROTOCOLS), strict=True)]
        for m in (*methods, "wcll")
    }
    below = sum(max(figures[m][i] for m in methods) < own for i, own in enumerate(figures["wcll"]))
    return below == len(figures["wcll"]), say("claims", "poor", methods, figures, below)


@claim("LOG does poorly on MNIST (left out of tables 2 and 3, 9.80 in table 4).")
def _log(found: Reproduction) -> Judged:
    figures, wcll = (means(found.main("paper", method)) for method in ("log", "wcll"))
    ahead = sum(a > b for a, b in zip(figures, wcll, strict=True))
    return not ahead, say("claims", "log", figures, ahead, found.parts["table4"].cells("paper", "log"))


@claim("Weights that do not match pi cost accuracy (table 5).")
def _weights(found: Reproduction) -> Judged:
    table = found.parts["table5"]
    wrong = [method for method in table.methods if method != "wcll"]
    biased = [method for method in wrong if "bias" in method]
    (random,) = [method for method in wrong if method not in biased]
    worse = [less(*table.cells(how, method), *table.cells(how, "wcll")) for method in wrong for how in PROTOCOLS]
    return all_or_open(worse), say("claims", "weights", table, biased, random, worse)


@claim("Weights beat over- and under-sampling by a significant margin (table 6).")
def _resampling(found: Reproduction) -> Judged:
    table, kinds = found.parts["table6"], ("under-sampling", "over-sampling")
    pairs = [
        pair
        for kind, how in product(kinds, PROTOCOLS)
        for pair in zip(table.cells(how, kind), table.cells(how, "wcll"), strict=True)
    ]
    behind, ahead = [less(cell, own) for cell, own in pairs], [less(own, cell) for cell, own in pairs]
    return all_or_open(behind), say("claims", "resampling", table, kinds, behind, ahead)


@claim("The estimation error falls as 1/sqrt(N) (theorem 1).")
def _rate(found: Reproduction) -> Judged:
    sizes = found.parts["sizes"]
    return None, say("claims", "rate", sizes, max(means(sizes.cells("paper", "ordinary labels"))))


@claim("WCLL is ahead on CIFAR-10, Tiny-ImageNet and DDSM too (tables 2, 3, 4 and 7).")
def _elsewhere(found: Reproduction) -> Judged:
    datasets = sorted({one.dataset for one in found.missing})
    settings = [row for dataset in datasets for row in printed_settings(dataset, (2, 3, 4, 7))]
    best = sum(max(row, key=lambda one: one.mean).method.startswith("wcll") for row in settings)
    return None, say("claims", "elsewhere", len(found.missing), best, len(settings))


def _from_2_to_25(found: Reproduction, method: str) -> tuple[list[Cell], list[Cell]]:
    """The imbalanced class in figure 3's settings, the first of which have p = 2, with more trials than the figure."""
    cells = found.parts["steady"].cells("paper", method, "minority_recall")
    half = len(cells) // 2
    return cells[:half], cells[half:]
