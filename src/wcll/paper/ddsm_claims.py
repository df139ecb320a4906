"""What the paper claims of mammograms (table 7 and the text on it), asked of runs of that suite.

Differences are judged over trials, and with the error of a test set of few images: the variance of a mean over trials
is that between trials and, on top, that of shares of as many images as one trial tests. That is cautious, as trials
test different images; and as images of a case are alike, it is not too cautious. All comparisons of a claim are
adjusted by Holm, at 5 %. The suite's ``about`` says what these images can't show, whatever the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from wcll.checks import FloatArray
from wcll.paper.evidence import PROTOCOLS
from wcll.paper.part import Part
from wcll.paper.published import METHODS, show_name
from wcll.paper.verdicts import UNTOLD, Answer, Judged, verdict_of
from wcll.report.cells import ROUNDING, SIGNIFICANCE, Cell, holm

CLASSES = {"recall_0": "normal", "recall_1": "benign", "recall_2": "cancer"}
RARE = ("recall_1", "recall_2")
GUESSING = 1 / 3  #: of three classes
ENOUGH = 3  #: trials, of fewer of which nothing is said
RIVALS = tuple(method for method in METHODS if method != "wcll")


@dataclass(frozen=True)
class Gap:
    """How far a share is above another, or above a number; fractions."""

    mean: float
    error: float  #: its standard error
    freedom: float  #: degrees of freedom of the error

    @property
    def p_value(self) -> float:
        """Two-sided: how often equal shares would be as far apart."""
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        half = float(stdtrit(self.freedom, 1 - SIGNIFICANCE / 2)) * self.error
        return self.mean - half, self.mean + half

    def text(self) -> str:
        """In points, with the interval."""
        low, high = self.interval
        return f"{100 * self.mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def gap(first: Cell, second: Cell | float, n: int) -> Gap:
    """Between the shares of two methods, or of one and a number, in trials that test ``n`` images each."""
    values = [np.array(list(first.values.values()))]
    if isinstance(second, Cell):
        values = [np.array([cell.values[seed] for seed in first.values]) for cell in (first, second)]
        difference = values[0] - values[1]
    else:
        difference = values[0] - second
    trials = len(difference)
    between, tested = float(difference.var(ddof=1)) / trials, sum(_of_a_share(some, n) for some in values)
    freedom = (trials - 1) * (between + tested) ** 2 / max(between, ROUNDING) ** 2  # Welch's
    return Gap(float(difference.mean()), math.sqrt(between + tested), min(freedom, 1e6))


def _of_a_share(values: FloatArray, n: int) -> float:
    """The variance of a share among ``n`` images; one more on either side keeps 0 and 1 from being certain."""
    share = (values.mean() * n + 1) / (n + 2)
    return float(share * (1 - share) / n)


def signs(gaps: Sequence[Gap]) -> list[int]:
    """Of each gap whether it is significantly above (1) or below (-1) 0, or neither (0)."""
    adjusted = holm([one.p_value for one in gaps])
    return [int(np.sign(one.mean)) if p < SIGNIFICANCE else 0 for one, p in zip(gaps, adjusted, strict=True)]


def best_in_all_classes(part: Part) -> Judged:
    """ "surpassing all baseline methods across all classes"."""
    if (few := _too_few(part)) is not None:
        return few
    answers, seen = [], []
    for protocol, name in PROTOCOLS.items():
        gaps = {
            (method, metric): gap(
                _cell(part, protocol, "wcll", metric), _cell(part, protocol, method, metric), _n(part)
            )
            for metric in CLASSES
            for method in RIVALS
        }
        found = dict(zip(gaps, signs(list(gaps.values())), strict=True))
        answers.append(_all_above(list(found.values())))
        counts = (f"{CLASSES[metric]} {_ahead(found, metric)} of {len(RIVALS)}" for metric in CLASSES)
        seen.append(f"By {name} WCLL is significantly ahead of the baselines on {', '.join(counts)}.")
    normals = {method: value for method in METHODS if (value := _printed_normals(part, method)) is not None}
    own = normals.pop("wcll")
    printed = (
        f"By the paper's own table, as 3 total - benign - cancer, WCLL has {own:.1f} on normals and the others that "
        f"print all three figures {min(normals.values()):.1f} to {max(normals.values()):.1f}: it is the lowest."
    )
    return verdict_of(answers), " ".join([*seen, *([printed] if own < min(normals.values()) else [])])


def baselines_fail(part: Part) -> Judged:
    """ "all baseline methods failed to improve accuracy on both classes": none beats guessing on benign and cancer."""
    if (few := _too_few(part)) is not None:
        return few
    answers, seen = [], []
    for protocol, name in PROTOCOLS.items():
        places = [(method, metric) for method in RIVALS for metric in RARE]
        found = signs([gap(_cell(part, protocol, *place), GUESSING, _n(part)) for place in places])
        by_method = {method: found[2 * i : 2 * i + 2] for i, method in enumerate(RIVALS)}
        good = [method for method, both in by_method.items() if both == [1, 1]]
        failed = [method for method, both in by_method.items() if -1 in both]
        answers.append(False if good else True if len(failed) == len(RIVALS) else None)
        above = f"; above it on both: {', '.join(map(show_name, good))}" if good else ""
        of = f"{len(failed)} of {len(RIVALS)} baselines"
        seen.append(f"By {name} {of} are significantly below guessing on benign or cancer{above}.")
    return verdict_of(answers), " ".join(seen)


def margin(part: Part, metric: str) -> Judged:
    """The printed margin of WCLL over the best baseline on one class: +43.08 on benign, +0.77 on cancer.

    It holds where ours is surely above 0 and the printed one is within its interval, and not where that is outside.
    """
    if (few := _too_few(part)) is not None:
        return few
    print_of = {method: one.mean / 100 for (method, _), one in part.all_printed[metric].items()}
    theirs = print_of["wcll"] - max(value for method, value in print_of.items() if method != "wcll")
    answers: list[Answer] = []
    seen = [f"The paper prints {100 * theirs:+.2f} points on {CLASSES[metric]}."]
    for protocol, name in PROTOCOLS.items():
        best = max(RIVALS, key=lambda method: _cell(part, protocol, method, metric).mean)
        ours = gap(_cell(part, protocol, "wcll", metric), _cell(part, protocol, best, metric), _n(part))
        low, high = ours.interval
        answers.append(False if not low <= theirs <= high else True if low > 0 else None)
        seen.append(f"By {name} it is {ours.text()} over {show_name(best)}.")
    return verdict_of(answers), " ".join(seen)


def _too_few(part: Part) -> Judged | None:
    """What is said where nothing can be."""
    if lacking := [method for method in METHODS if method not in part.methods]:
        return UNTOLD, f"Can't be told yet: {', '.join(map(show_name, lacking))} was not run."
    if part.trials < ENOUGH:
        return UNTOLD, f"Can't be told yet: of {part.trials} trials; {ENOUGH} are the least."
    return None


def _all_above(found: Sequence[int]) -> Answer:
    return False if -1 in found else None if 0 in found else True


def _ahead(found: dict[tuple[str, str], int], metric: str) -> int:
    """Of how many rivals WCLL is ahead on a class."""
    return sum(sign == 1 for (_, of), sign in found.items() if of == metric)


def _cell(part: Part, protocol: str, method: str, metric: str) -> Cell:
    return part.cell(protocol, method, part.columns[0], metric)


def _n(part: Part) -> int:
    """Test images of a class, in a trial."""
    return int(part.suite.settings["test_per_class"])


def _printed_normals(part: Part, method: str) -> float | None:
    """What the paper's table implies for normals, where it prints all three figures: its classes are of equal size."""
    found = [printed.get((method, part.columns[0])) for printed in part.all_printed.values()]
    total, benign, cancer = (None if one is None else one.mean for one in found)
    return None if total is None or benign is None or cancer is None else 3 * total - benign - cancer
