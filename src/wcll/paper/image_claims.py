"""What the paper claims on images, judged from what was run so far: all is open below three trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product

from wcll.paper.evidence import PROTOCOL_NAMES, printed_settings, say
from wcll.paper.gaps import gap, signs
from wcll.paper.images import LEAST
from wcll.paper.part import Part
from wcll.paper.published import FORMULAS, RIVALS, show_name
from wcll.paper.reproduction import Reproduction
from wcll.paper.verdicts import UNTOLD, Answer, Judged, verdict_of
from wcll.report.result_tables import Cell, Table

#: Test images, and those of one class: accuracies have their sampling error however many trials there are.
TEST_IMAGES = {"cifar10": (5000, 1000), "tiny-imagenet": (250, 50)}


def sure_leads(pairs: Sequence[tuple[Cell, Cell]], images: int) -> list[int]:
    """Of each pair whether the first is surely above (1) or below (-1) the second, or neither (0)."""
    return signs([gap(first, second, images) for first, second in pairs])


def readings(part: Part) -> dict[str, Table]:
    """The ways to read its runs: at each rate the last epoch and the best by TEST, and the fair protocol."""
    last = {f"the last epoch at {lr:g}": table for lr, table in part.rates.items()}
    best = {f"the best epoch by TEST at {lr:g}": table for lr, table in part.best_rates.items()}
    return {**last, **best, PROTOCOL_NAMES["fair"]: part.tables["fair"]}


def _first(dataset: str, found: Reproduction) -> Judged:
    """Whether WCLL is ahead of all nine rivals in every setting that the paper prints of a data set."""
    parts = [part for part in found.images.values() if part.suite.settings["dataset"] == dataset and part.printed]
    columns = printed_settings(dataset, (2, 3, 4))
    best = sum(max(column, key=lambda one: one.mean).method == "wcll" for column in columns)
    pairs: dict[tuple[str, str], list[tuple[Cell, Cell]]] = {}
    for part, own in product(parts, FORMULAS):
        for how, table in readings(part).items():
            pairs.setdefault((own, how), []).extend(
                (table.cell(own, column, "accuracy"), table.cell(rival, column, "accuracy"))
                for column, rival in product(part.printed_columns, RIVALS)
            )
    return _judged(pairs, TEST_IMAGES[dataset][0], len(columns) * len(RIVALS), best, len(columns))


def _rare(found: Reproduction) -> Judged:
    """Whether WCLL is ahead on the imbalanced class in the panels of CIFAR-10, at the last epoch and the fair one."""
    pairs: dict[tuple[str, str], list[tuple[Cell, Cell]]] = {}
    panels = 0
    if (part := found.images.get("table2-cifar10")) is not None:
        panels = len(part.printed_columns)
        for own, how in product(FORMULAS, PROTOCOL_NAMES):
            pairs[own, PROTOCOL_NAMES[how]] = [
                (part.cell(how, own, column, "minority_recall"), part.cell(how, rival, column, "minority_recall"))
                for column, rival in product(part.printed_columns, ("pc", "l-w", "nn"))
            ]
    return _judged(pairs, TEST_IMAGES["cifar10"][1], 3 * panels, None, panels)


def _judged(
    pairs: Mapping[tuple[str, str], Sequence[tuple[Cell, Cell]]],
    images: int,
    comparisons: int,
    best: int | None,
    columns: int,
) -> Judged:
    """One answer for each formula and way to read the runs: yes if it leads in all pairs, no if it is behind in one."""
    trials = [min(len(cell.values) for pair in some for cell in pair) for some in pairs.values() if some]
    complete = bool(trials) and all(len(some) == comparisons for some in pairs.values())
    if not complete or min(trials) < LEAST:
        fewest = min(trials, default=0) if complete else 0
        begun = any(cell.values for some in pairs.values() for pair in some for cell in pair)
        return UNTOLD, say("claims", "too_few", begun, fewest, LEAST, best, columns)
    leads = {place: sure_leads(some, images) for place, some in pairs.items()}
    answers: list[Answer] = [False if -1 in some else True if all(some) else None for some in leads.values()]
    counts = {
        f"{show_name(own)} by {how}": (some.count(1), some.count(-1), len(some)) for (own, how), some in leads.items()
    }
    return verdict_of(answers), say("claims", "on_images", counts, min(trials), images, best, columns)


#: By statement, how it is judged.
ON_IMAGES: dict[str, Callable[[Reproduction], Judged]] = {
    "WCLL is ahead of all nine rivals in every CIFAR-10 setting (tables 2, 3 and 4).": partial(_first, "cifar10"),
    "WCLL is ahead of all nine rivals in every Tiny-ImageNet setting (table 2).": partial(_first, "tiny-imagenet"),
    "WCLL is ahead of PC, L-W and NN on the imbalanced class of CIFAR-10 (figure 3's other three panels).": _rare,
}
