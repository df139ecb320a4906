"""What the paper claims, and whether it holds in what we measured on MNIST."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from wcll.paper.compare import METHODS, Comparison, Entry, mean_absolute, show_name
from wcll.paper.reproduction import Reproduction
from wcll.report.tables import SIGNIFICANCE, Cell, paired_p_value

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "can't be tested"
PROTOCOLS = {"paper": "the paper's protocol", "fair": "the fair protocol"}
NOTICEABLE = 2.0  #: points


@dataclass(frozen=True)
class Claim:
    """One claim, our verdict, and why."""

    statement: str
    verdict: str
    evidence: str


Judged = tuple[bool | None, str]
CLAIMS: list[tuple[str, Callable[[Reproduction], Judged]]] = []


def claim(statement: str) -> Callable[[Callable[[Reproduction], Judged]], Callable[[Reproduction], Judged]]:
    """Decorator: the function says whether a claim holds (None: cannot be told), and why."""

    def register(function: Callable[[Reproduction], Judged]) -> Callable[[Reproduction], Judged]:
        CLAIMS.append((statement, function))
        return function

    return register


def judge_all(found: Reproduction) -> list[Claim]:
    """Every claim with its verdict."""
    judged = []
    for statement, function in CLAIMS:
        holds, evidence = function(found)
        judged.append(Claim(statement, UNTESTED if holds is None else HOLDS if holds else FAILS, evidence))
    return judged


@claim("WCLL is the most accurate of the ten methods in every MNIST setting (tables 2, 3 and 4).")
def _best(found: Reproduction) -> Judged:
    texts, everywhere = [], True
    for protocol, name in PROTOCOLS.items():
        winners = [max(rivals, key=lambda entry: _mean(entry, protocol)) for rivals in _settings(found)]
        own = [entry for entry in winners if entry.method == "wcll"]
        others = sorted({show_name(entry.method) for entry in winners} - {"WCLL"})
        behind = max(_mean(winner, protocol) - _mean(entry, protocol)
                     for winner, entry in zip(winners, found.main("wcll"), strict=True))  # fmt: skip
        everywhere &= len(own) == len(winners)
        texts.append(f"By {name} it is best in {len(own)} of {len(winners)} settings ({_columns(own)}); "
                     f"elsewhere the best is {' or '.join(others)}, ahead by up to {behind:.1f} points.")  # fmt: skip
    forward = [_mean(entry, "paper") for entry in found.main("forward, Q from counts")]
    texts.append(f"Forward correction with the selector recovered from the label counts, which the paper does not "
                 f"have, reaches {min(forward):.1f} to {max(forward):.1f} in all of them.")  # fmt: skip
    return everywhere, " ".join(texts)


@claim("WCLL's standard deviation over trials is smaller than its rivals' (results on figure 3).")
def _spread(found: Reproduction) -> Judged:
    settings = _settings(found)
    smallest = sum(min(rivals, key=lambda entry: entry.paper["accuracy"].std).method == "wcll" for rivals in settings)
    rare = {
        m: [100 * e.paper["minority_recall"].std for e in found.parts["figure3"].of(m)] for m in ("wcll", "pc", "l-w")
    }
    steadiest = sum(min(rare, key=lambda m: rare[m][i]) == "wcll" for i in range(len(rare["wcll"])))
    mean = {m: fmean(100 * e.paper["accuracy"].std for e in found.main(m)) for m in ("wcll", "log", "l-w", "pc")}
    return smallest == len(settings) and steadiest == len(rare["wcll"]), (
        f"On accuracy it is the smallest of the ten in {smallest} of {len(settings)} settings: on average "
        f"{mean['wcll']:.1f} points, against {mean['log']:.1f} of LOG, {mean['l-w']:.1f} of L-W and {mean['pc']:.1f} of "
        f"PC. On the imbalanced class it is {min(rare['wcll']):.1f} to {max(rare['wcll']):.1f} points, of L-W "
        f"{min(rare['l-w']):.1f} to {max(rare['l-w']):.1f} and of PC {min(rare['pc']):.1f} to {max(rare['pc']):.1f} "
        f"(0 where the class is never predicted)."
    )  # fmt: skip


@claim("WCLL keeps its accuracy on the imbalanced class when p goes from 2 to 2.5 (figure 3).")
def _steady(found: Reproduction) -> Judged:
    fall, p_value, pairs = _change(found.parts["figure3"], "wcll", "minority_recall")
    total, _, _ = _change(found.parts["figure3"], "wcll", "accuracy")
    return not (fall < -NOTICEABLE and p_value < SIGNIFICANCE), (
        f"Its accuracy on the imbalanced class changes by {fall:+.1f} points on average (paired t-test over {pairs} "
        f"draws, p = {p_value:.2g}); over all classes by {total:+.1f}."
    )


@claim("WCLL is better than PC, L-W and NN on the imbalanced class in every panel of figure 3.")
def _imbalanced(found: Reproduction) -> Judged:
    figure = found.parts["figure3"]
    best = []
    for column in figure.columns:
        recalls = {m: figure.at(m, column).paper["minority_recall"].mean for m in figure.methods}
        if max(recalls, key=lambda m: recalls[m]) == "wcll":
            best.append(figure.at("wcll", column))
    lost = [entry for entry in figure.of("wcll") if entry not in best]
    rivals = [method for method in figure.methods if method != "wcll"]
    found_by_rivals = max((_recall(figure.at(method, e.column)) for method in rivals for e in best), default=0.0)
    against = "; ".join(
        f"{entry.column}: WCLL {_recall(entry):.1f}, "
        + ", ".join(f"{show_name(method)} {_recall(figure.at(method, entry.column)):.1f}" for method in rivals)
        for entry in lost
    )
    return not lost, (
        f"At the last epoch it is in {len(best)} of {len(figure.columns)} panels, where the rivals find at most "
        f"{found_by_rivals:.1f} % of the class; not in {against or 'none'}."
    )


@claim("PC gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).")
def _pc_falls(found: Reproduction) -> Judged:
    return _falls(found, "pc")


@claim("NN gets worse on the imbalanced class when p goes from 2 to 2.5 (results on figure 3).")
def _nn_falls(found: Reproduction) -> Judged:
    return _falls(found, "nn")


@claim("The experiments train the loss of Eq. 12 (experiments, first paragraph).")
def _eq12(found: Reproduction) -> Judged:
    printed = [(entry.printed.mean, _mean(found.parts[name].at("wcll, Eq. 12", entry.column), "paper"))
               for name in ("table2", "table3", "table4") for entry in found.parts[name].of("wcll")
               if entry.printed]  # fmt: skip
    off = fmean(abs(ours - theirs) for theirs, ours in printed)
    recall = max(_recall(entry) for entry in found.main("wcll, Eq. 12"))
    return off <= NOTICEABLE, (
        f"As printed, Eq. 12 reaches {min(ours for _, ours in printed):.1f} to {max(ours for _, ours in printed):.1f}, "
        f"{off:.1f} points from the printed numbers on average, and finds at most {recall:.1f} % of the imbalanced "
        f"class. Eq. 9, one weight for each sample, is {mean_absolute(found.main('wcll')):.1f} points off."
    )


@claim("WCLL needs no particular loss and no particular model.")
def _assumption_free(found: Reproduction) -> Judged:
    bases = found.parts["bases"]
    usual = _mean(bases.at("cross-entropy", "linear"), "fair")
    fair, paper = ({(e.method, e.column): _mean(e, how) for e in bases.entries} for how in ("fair", "paper"))
    worst = min(paper, key=lambda place: paper[place])
    best = max(fair, key=lambda place: fair[place])
    return min(fair.values()) >= usual - NOTICEABLE, (
        f"With rate and epoch chosen without true labels all {len(fair)} combinations of an ordinary loss and a model "
        f"learn: {min(fair.values()):.1f} to {max(fair.values()):.1f}. The best, "
        f"{show_name(best[0])} on {best[1]}, has {fair[best]:.1f}; cross-entropy on linear, the paper's, {usual:.1f}. By the paper's "
        f"protocol {show_name(worst[0])} on {worst[1]} ends at {paper[worst]:.1f}."
    )


@claim("NCLL and ML_CLL do poorly on MNIST (and are left out of its tables).")
def _poor(found: Reproduction) -> Judged:
    figures = {m: [max(_mean(e, how) for how in PROTOCOLS) for e in found.main(m)] for m in ("ncll", "ml-cll", "wcll")}
    below = all(max(figures[m][i] for m in ("ncll", "ml-cll")) < own for i, own in enumerate(figures["wcll"]))
    text = " and ".join(f"{show_name(m)} at most {max(figures[m]):.1f}" for m in ("ncll", "ml-cll"))
    return below, (
        f"By the better of the two protocols {text}, below WCLL in {'all' if below else 'not all'} of "
        f"{len(figures['wcll'])} settings. They are told that labels are uniform, which these are not."
    )


@claim("LOG does poorly on MNIST (left out of tables 2 and 3, 9.80 in table 4).")
def _log(found: Reproduction) -> Judged:
    figures = [_mean(entry, "paper") for entry in found.main("log")]
    ahead = sum(a > _mean(b, "paper") for a, b in zip(figures, found.main("wcll"), strict=True))
    table4 = [_mean(entry, "paper") for entry in found.parts["table4"].of("log")]
    return not ahead, (
        f"It reaches {min(figures):.1f} to {max(figures):.1f} and is ahead of WCLL in {ahead} of {len(figures)} "
        f"settings; in table 4's, {all_of([f'{value:.1f}' for value in table4])}."
    )


@claim("Weights that do not match pi cost accuracy (table 5).")
def _weights(found: Reproduction) -> Judged:
    table = found.parts["table5"]
    own = table.of("wcll")[0]
    wrong = [table.of(method)[0] for method in table.methods if method != "wcll"]
    worse = [_less(entry.paper["accuracy"], own.paper["accuracy"]) for entry in wrong]
    biased = [_mean(entry, "paper") for entry in wrong if "bias" in entry.method]
    fair = [_mean(entry, "fair") for entry in wrong if "bias" in entry.method]
    random = next(entry for entry in wrong if "random" in entry.method)
    return all(worse), (
        f"WCLL {_mean(own, 'paper'):.1f}; with a bias from 0.05 to 0.5 {min(biased):.1f} to {max(biased):.1f} (printed: "
        f"{_printed([entry for entry in wrong if 'bias' in entry.method])}); random weights "
        f"{_mean(random, 'paper'):.1f} (printed: {_printed([random])}). Significantly below WCLL: {sum(worse)} of "
        f"{len(worse)} (paired t-test, 5 %). By the fair protocol: {_mean(own, 'fair'):.1f}, {min(fair):.1f} to "
        f"{max(fair):.1f}, and {_mean(random, 'fair'):.1f}."
    )


@claim("Weights beat over- and under-sampling by a significant margin (table 6).")
def _resampling(found: Reproduction) -> Judged:
    table = found.parts["table6"]
    ahead = []
    for method in ("under-sampling", "over-sampling"):
        for entry, own in zip(table.of(method), table.of("wcll"), strict=True):
            ahead += [_less(getattr(entry, how)["accuracy"], getattr(own, how)["accuracy"]) for how in PROTOCOLS]

    def row(method: str, how: str) -> str:
        return all_of([f"{_mean(entry, how):.1f}" for entry in table.of(method)])

    return all(ahead), (
        f"WCLL is significantly ahead in {sum(ahead)} of {len(ahead)} comparisons (3 values of p, 2 kinds of resampling, 2 "
        f"protocols). Resampling by the complementary label corrects what the weights correct. By the paper's protocol WCLL has "
        f"{row('wcll', 'paper')}, under-sampling {row('under-sampling', 'paper')}, over-sampling "
        f"{row('over-sampling', 'paper')}; by the fair protocol {row('wcll', 'fair')}, {row('under-sampling', 'fair')} "
        f"and {row('over-sampling', 'fair')}. Printed: "
        f"{_printed([*table.of('under-sampling'), *table.of('over-sampling')])}. Resampling by the TRUE label, which nobody "
        f"could do, gives {row('under-sampling by y', 'paper')} (under) and {row('over-sampling by y', 'paper')} (over)."
    )


@claim("The estimation error falls as 1/sqrt(N) (theorem 1).")
def _rate(found: Reproduction) -> Judged:
    sizes = found.parts["sizes"]
    limit = max(_mean(entry, "paper") for entry in sizes.of("ordinary labels"))
    slopes = {how: _slope(sizes, how, limit) for how in PROTOCOLS}
    text = "; ".join(f"by {PROTOCOLS[how]} {slope:.2f} ± {error:.2f}" for how, (slope, error) in slopes.items())
    return None, (
        f"The theorem bounds a weighted risk over a class of bounded norm, not accuracy, and trained models need not "
        f"minimise that risk. What accuracies show: the gap to {limit:.1f} (ordinary labels, most images) over N, "
        f"{sizes.columns[0]} to {sizes.columns[-1]} of a majority class, has the log-log "
        f"slope {text} (95 %)."
    )


@claim("WCLL is best on CIFAR-10, Tiny-ImageNet and DDSM too (tables 2, 3, 4 and 7).")
def _elsewhere(found: Reproduction) -> Judged:
    missing = found.missing
    names = all_of(sorted({one.dataset for one in missing}))
    return None, f"{len(missing)} published numbers are about {names}, for which there are no runs here yet."


def _mean(entry: Entry, protocol: str) -> float:
    return 100 * float(getattr(entry, protocol)["accuracy"].mean)


def _recall(entry: Entry) -> float:
    return 100 * entry.paper["minority_recall"].mean


def _printed(entries: Sequence[Entry]) -> str:
    """The range of what the paper prints."""
    means = [entry.printed.mean for entry in entries if entry.printed]
    return f"{min(means):.1f} to {max(means):.1f}" if len(means) > 1 else f"{means[0]:.1f}"


def _settings(found: Reproduction) -> list[list[Entry]]:
    """The ten methods in each setting of tables 2, 3 and 4."""
    return [list(rivals) for rivals in zip(*(found.main(method) for method in METHODS), strict=True)]


def _less(cell: Cell, than: Cell) -> bool:
    """Significantly smaller, over shared seeds."""
    p_value = paired_p_value(than.values, cell.values)
    return cell.mean < than.mean and p_value is not None and p_value < SIGNIFICANCE


def _change(figure: Comparison, method: str, metric: str) -> tuple[float, float, int]:
    """How a figure changes from p = 2 to 2.5: mean over classes and draws, p-value, number of pairs."""
    half = len(figure.columns) // 2
    before, after = ({(i, seed): value for i, entry in enumerate(entries) for seed, value in
                      entry.paper[metric].values.items()}
                     for entries in (figure.of(method)[:half], figure.of(method)[half:]))  # fmt: skip
    numbered = [{n: values[key] for n, key in enumerate(sorted(before))} for values in (before, after)]
    p_value = paired_p_value(*numbered)
    change = 100 * float(np.mean([after[key] - before[key] for key in before]))
    return change, math.nan if p_value is None else p_value, len(before)


def _falls(found: Reproduction, method: str) -> Judged:
    figure = found.parts["figure3"]
    recalls = [_recall(entry) for entry in figure.of(method)]
    half = len(recalls) // 2
    if not any(recalls):
        return None, f"{show_name(method)} never predicts the imbalanced class at either p: nothing is left to lose."
    change, _, _ = _change(figure, method, "minority_recall")
    pairs = all_of([f"{a:.1f} to {b:.1f}" for a, b in zip(recalls[:half], recalls[half:], strict=True)])
    return change < 0, f"For classes 0, 1 and 2: {pairs} (mean over trials at the last epoch)."


def _slope(sizes: Comparison, protocol: str, limit: float) -> tuple[float, float]:
    """The log-log slope of the gap to a limit over N, from means over trials, and its 95 % half-width."""
    from scipy.stats import linregress, t

    n = [math.log(column.settings["n_majority"]) for column in sizes.results.suite.columns]
    gap = [math.log(limit - _mean(entry, protocol)) for entry in sizes.of("wcll")]
    fit = linregress(n, gap)
    return float(fit.slope), float(fit.stderr * t.ppf(0.975, len(n) - 2))


def _columns(entries: Sequence[Entry]) -> str:
    return "; ".join(entry.column for entry in entries) or "none"


def all_of(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
