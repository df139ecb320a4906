"""What the paper claims of mammograms (table 7 and the text on it), asked of runs of that suite.

Differences are judged over trials, and with the error of a test set of as many images as one trial tests
(:mod:`wcll.paper.gaps`). That is cautious, as trials test different images; and as images of a case are alike, it is
not too cautious. The suite's ``about`` says what these images can't show, whatever the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from wcll.paper.evidence import PROTOCOL_NAMES, say
from wcll.paper.gaps import gap, signs
from wcll.paper.images import LEAST
from wcll.paper.part import Part
from wcll.paper.published import METHODS, RIVALS, show_name
from wcll.paper.reproduction import Reproduction
from wcll.paper.verdicts import UNTOLD, Answer, Judged, verdict_of
from wcll.report.result_tables import Cell

CLASSES = {"recall_0": "normal", "recall_1": "benign", "recall_2": "cancer"}
RARE_RECALLS = ("recall_1", "recall_2")
GUESSING = 1 / 3  #: of three classes


def best_in_all_classes(part: Part) -> Judged:
    """ "surpassing all baseline methods across all classes"."""
    if (few := _too_few(part)) is not None:
        return few
    answers, seen = [], []
    for protocol, name in PROTOCOL_NAMES.items():
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
    for protocol, name in PROTOCOL_NAMES.items():
        places = [(method, metric) for method in RIVALS for metric in RARE_RECALLS]
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
    for protocol, name in PROTOCOL_NAMES.items():
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
    trials = min(
        len(_cell(part, protocol, method, metric).values)
        for protocol, method, metric in product(PROTOCOL_NAMES, METHODS, CLASSES)
    )
    return None if trials >= LEAST else (UNTOLD, say("claims", "too_few", part.trials > 0, trials, LEAST, None, 0))


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


def _of_table7(judge: Callable[[Part], Judged]) -> Callable[[Reproduction], Judged]:
    """The same of all that was found, in which table 7 may be missing."""

    def judged(found: Reproduction) -> Judged:
        part = found.images.get("table7")
        return judge(part) if part is not None else (UNTOLD, say("claims", "too_few", False, 0, LEAST, None, 0))

    return judged


#: By statement, how it is judged.
ON_DDSM: dict[str, Callable[[Reproduction], Judged]] = {
    "On mammograms WCLL surpasses all baselines across all classes (results on table 7).": _of_table7(
        best_in_all_classes
    ),
    "On mammograms all baselines fail on benign or cancer: none is above guessing on both.": _of_table7(baselines_fail),
    "WCLL is 43.08 points ahead of the best baseline on benign mammograms.": _of_table7(
        partial(margin, metric="recall_1")
    ),
    "WCLL is 0.77 points ahead of the best baseline on mammograms of cancer.": _of_table7(
        partial(margin, metric="recall_2")
    ),
}
