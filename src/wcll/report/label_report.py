"""Diagnostics of labels in words and as an HTML report; nothing here loads torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wcll.labels.diagnostics import (
    ANNOTATOR_LEVEL,
    LEAST,
    MOST_CLASSES,
    MOST_COSTED,
    POINTS,
    AnnotatorShares,
    LabelHealth,
    LabelWorth,
    RepeatedHealth,
)
from wcll.labels.family_selection import CostIfWrong, FamilyFit
from wcll.report.render import render, share_panel, transition_panel

MOST_ROWS = 30  #: of a table; the rest is in the JSON
WIDEST = 12  #: classes whose Q is shown entry by entry

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    """A title, what is said, and perhaps a table."""

    title: str
    lines: tuple[str, ...]
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left: tuple[str, ...] = ()  #: heads of columns of words; others are numbers


def sections(health: LabelHealth) -> list[Section]:
    """All that is said of labels, in order."""
    found = [_counts(health), _families(health), _costs(health), _agreement(health), *_transition(health)]
    found += [_mistakes(health), _confused(health), *_annotators(health), _worth(health)]
    return found


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people read it; "-" if there is none.

    >>> percent(0.1234), percent(-0.00001), percent(None)
    ('12.3 %', '0.0 %', '-')
    """
    if value is None:
        return "-"
    return f"{round(100 * value, digits) + 0.0:.{digits}f} %"


def with_error(value: float, error: float) -> str:
    """A share and its standard error, with as many digits as the error has to say.

    >>> with_error(0.1234, 0.0123), with_error(0.00109, 0.00003)
    ('12.3 % ± 1.2', '0.109 % ± 0.003')
    """
    digits = min(max(int(np.ceil(-np.log10(max(100 * error, 1e-9)))), 1), 4) if error > 0 else 1
    return f"{percent(value, digits)} ± {100 * error:.{digits}f}"


def _cut(rows: Rows, what: str) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
    """As many rows as can be read, and a line about the rest."""
    rest = len(rows) - MOST_ROWS
    return tuple(rows[:MOST_ROWS]), [f"{rest} more {what} are in the JSON output."] if rest > 0 else []


def _counts(health: LabelHealth) -> Section:
    least, mean, most = health.sizes
    each = f"{least}" if least == most else f"{least} to {most}, {mean:.2f} on average"
    lines = [f"{health.samples} samples, {health.labels} labels ({each} a sample), {len(health.classes)} classes."]
    lines.append(f"Under uniform labels no class has more than 1/(K-1) = {percent(health.limit)} of them.")
    if health.check is None:
        lines.append(f"Not checked against uniform labels: more than {MOST_CLASSES} classes.")
    else:
        lines.append(f"Uniform labels: {health.check}.")
    if health.never:
        named = ", ".join(health.never[:10]) + (f" and {len(health.never) - 10} more" if health.never[10:] else "")
        lines.append(f"Never a label: {named}.")
    heads = ["class", "labels", "share"]
    if health.implied is not None:
        heads.append("class share if labels are uniform")
    order = np.argsort(-health.counts, kind="stable")
    rows: Rows = []
    for k in order[: MOST_ROWS + 1]:
        row = [
            health.classes[k],
            str(health.counts[k]),
            with_error(health.shares.value[k], health.shares.standard_error[k]),
        ]
        if health.implied is not None:
            row.append(with_error(health.implied.value[k], health.implied.standard_error[k]))
        rows.append(tuple(row))
    rows += [()] * (len(order) - len(rows))
    shown, more = _cut(rows, "classes")
    return Section("Counts", (*lines, *more), tuple(heads), shown, ("class",))


def _families(health: LabelHealth) -> Section:
    if not health.families:
        return Section("Which labels these may be", (f"Not looked at: more than {MOST_CLASSES} classes.",))
    several = health.repeated is not None
    lines = ["A family says how wrong classes are chosen. Label counts can contradict uniform labels only."]
    if several:
        lines = [
            "A family says how wrong classes are chosen; sets of labels contradict it if an unrestricted Q makes "
            "samples likelier that neither has seen."
        ]
        if all(fit.state == "contradicted" for fit in health.families if fit.gain is not None):
            lines.append("None of these families fits: give an estimated Q to what learns from these labels.")
    rows = tuple(_family(fit, several) for fit in health.families)
    heads = ("family", "verdict", *(("gain of an unrestricted Q",) if several else ()), "why", "meaning")
    return Section("Which labels these may be", tuple(lines), heads, rows, ("family", "verdict", "why", "meaning"))


def _family(fit: FamilyFit, several: bool) -> tuple[str, ...]:
    gain = "-" if fit.gain is None else f"{fit.gain:.4f} ± {fit.error:.4f}"
    return (fit.name, fit.state, *((gain,) if several else ()), fit.line, fit.words)


def _costs(health: LabelHealth) -> Section:
    title, table = "What it costs if this is wrong", health.costs
    if table is None:
        long = f"more than {MOST_COSTED} classes take long: wcll.labels.costs_if_wrong works it out"
        return Section(title, (f"Not worked out: {long}.",))
    lines = [
        "Rows are what is assumed of these labels, columns what is so, in per cent: how many classes a model (forward "
        "correction) still predicts right and, in brackets, the mean chance that it gives to the right class.",
        "That is the limit of very many labels of classes that never overlap, not a forecast: few labels, or classes "
        "that overlap, may make it worse, also where it says 100 %.",
    ]
    if "estimated" in table.names:
        lines.append('"Estimated" is the Q that repeated labels tell, below.')
    if any(cost is None for row in table.costs for cost in row):
        lines.append('"Ruled out": labels would occur that cannot under what is assumed, which shows at once.')
    lines.append(_unseen(table.invisible))
    rows = tuple((name, *map(_cost, row)) for name, row in zip(table.names, table.costs, strict=True))
    return Section(title, tuple(lines), ("assumed", *table.names), rows, ("assumed",))


def _cost(cost: CostIfWrong | None) -> str:
    if cost is None:
        return "ruled out"
    return f"{100 * cost.accuracy:.0f} ({100 * cost.confidence:.0f})"


def _unseen(mistakes: Sequence[tuple[str, str]]) -> str:
    """Which mistakes nothing can show, what is assumed where the same thing is so together."""
    by_truth: dict[str, list[str]] = {}
    for assumed, truth in mistakes:
        by_truth.setdefault(truth, []).append(assumed)
    if not by_truth:
        return "Given enough labels, a model that tells the classes apart would show each of these mistakes."
    pairs = "; ".join(f"{_one_of(assumed)} where {truth} is so" for truth, assumed in by_truth.items())
    return f"No number of labels, one a sample, can show these mistakes: to assume {pairs}."


def _one_of(names: Sequence[str]) -> str:
    return " or ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])


def _agreement(health: LabelHealth) -> Section:
    title, found = "Agreement of labels of one sample", health.agreement
    if health.sizes[2] < 2:
        return Section(title, ("Can't be told from one label a sample.",))
    if found is None:
        never = "No sample names a class twice: its labels are taken as drawn without replacement, and cannot agree."
        return Section(title, (never,))
    lines = [
        f"Two labels of a sample name the same class in {with_error(found.share, found.error)} of "
        f"{found.pairs} pairs; labels that have nothing to do with their sample would in {percent(found.independent)}."
    ]
    if found.deviations > 3:
        lines.append(f"Labels depend on the sample, by {found.deviations:.0f} standard errors.")
    else:
        lines.append("That is no more than chance: agreement does not show that labels depend on the sample.")
    return Section(title, tuple(lines))


def _transition(health: LabelHealth) -> Iterator[Section]:
    title, repeated = "Q and class shares, estimated from repeated labels", health.repeated
    if repeated is None:
        yield Section(title, (_sentence(f"can't be told: {health.repeated_problem}"),))
        return
    found = repeated.found
    told = "The labels tell Q by themselves" if found.identified else "The labels do not tell Q by themselves"
    lines = [f"{told}: {in_names(found.reason, health.classes)}."]
    if repeated.samples < health.samples:
        lines.append(f"From {repeated.samples} of {health.samples} samples, drawn at random, to take seconds only.")
    yield Section(title, tuple(lines), *_matrix(health, repeated), ("true class",))


def in_names(reason: str, names: Sequence[str]) -> str:
    """A reason that numbers classes, with their names.

    >>> in_names("the rows of classes 0 and 2 nearly agree", ["ant", "bee", "cow"])
    "the rows of classes 'ant' and 'cow' nearly agree"
    """

    def named(found: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda number: repr(names[int(number[0])]), found[0])

    return re.sub(r"\bclass \d+|\bclasses \d+ and \d+", named, reason)


def _matrix(health: LabelHealth, repeated: RepeatedHealth) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Rows of Q in percent with their errors, if there are few; else class shares alone."""
    found, names = repeated.found, health.classes
    assert found.standard_error is not None
    assert found.shares is not None
    assert found.shares_error is not None
    few = len(names) <= WIDEST
    heads = ("true class", "share", *((f"not {name}" for name in names) if few else ()))
    rows = []
    for y, name in enumerate(names):
        pairs = zip(found.transition[y], found.standard_error[y], strict=True)
        entries = [f"{100 * value:.0f} ± {100 * error:.0f}" for value, error in pairs] if few else []
        rows.append((name, with_error(found.shares[y], found.shares_error[y]), *entries))
    return heads, tuple(rows)


def _mistakes(health: LabelHealth) -> Section:
    title, repeated, lines = "Mistakes: labels that name the true class", health.repeated, []
    if health.everything_named:
        several = f"{health.everything_named} sample{'s' if health.everything_named > 1 else ''}"
        lines.append(f"In {several} every class is named: at least one label of each is wrong.")
    if health.sizes[2] < 2:
        return Section(title, ("Can't be told from one label a sample.",))
    if repeated is None:
        return Section(title, (*lines, _sentence(f"can't be told: {health.repeated_problem}")))
    if repeated.noise_error is None:
        lines.append("None show: labels without mistakes fit best. This has no error, and does not say there are none.")
    else:
        lines.append(
            f"{percent(repeated.noise)} of the labels, the diagonal of the estimated Q; standard error at most "
            f"{100 * repeated.noise_error:.1f} points."
        )
    if not repeated.found.identified:
        lines.append("The labels do not tell Q by themselves, so this may be off by more.")
    return Section(title, tuple(lines))


def _confused(health: LabelHealth) -> Section:
    title = "Classes that are hard to tell apart"
    if health.repeated is None:
        return Section(title, (_sentence(f"can't be told: {health.repeated_problem}"),))
    line = (
        "The nearer the rows of Q of two classes, the harder it is to tell these classes apart from such labels; rows "
        "that are not told apart differ no more than their errors allow."
    )
    rows = tuple(
        (
            f"{pair.first}, {pair.second}",
            percent(pair.distance),
            percent(pair.error),
            "yes" if pair.told_apart else "no",
        )
        for pair in health.repeated.pairs
    )
    heads = ("classes", "distance of their rows", "by errors alone", "told apart")
    return Section(title, (line, "Distances are total variation, 0 to 100 %; nearest first."), heads, rows, heads[:1])


def _annotators(health: LabelHealth) -> Iterator[Section]:
    if health.annotators is None:
        return
    differ = [one for one in health.annotators if one.differs]
    untested = sum(one.p_value is None for one in health.annotators)
    says = f"{len(differ)} of {len(health.annotators)} differ" if differ else "No annotator is seen to differ"
    lines = [
        f"{says} from the others in how often they name each class (chi-square, adjusted by Holm, "
        f"level {ANNOTATOR_LEVEL:g}).",
        "Those who differ are not counted among the others. Annotators who saw other samples differ as well, without "
        "any fault of theirs.",
    ]
    if untested:
        lines.append(f"{untested} were not tested: fewer than {LEAST} labels, nobody else, or too many annotators.")
    rows, more = _cut([_annotator(one) for one in health.annotators], "annotators")
    heads = ("annotator", "labels", "distance", "more often than others", "p", "adjusted p", "differs")
    yield Section("Annotators", (*lines, *more), heads, rows, ("annotator", "more often than others"))


def _annotator(one: AnnotatorShares) -> tuple[str, ...]:
    chances = ["-" if p is None else f"{p:.2g}" for p in (one.p_value, one.adjusted)]
    return (one.annotator, str(one.labels), percent(one.distance), one.most, *chances, "yes" if one.differs else "no")


def _worth(health: LabelHealth) -> Section:
    title, worth = "What a label is worth", health.worth
    if worth is None:
        return Section(title, (f"Not worked out: more than {MOST_CLASSES} classes.",))
    share = worth.information / worth.entropy if worth.entropy else 0.0
    lines = [
        f"{worth.basis[0].upper()}{worth.basis[1:]}.",
        f"A label tells {worth.information:.3f} of the {worth.entropy:.3f} bits of a sample's class "
        f"({percent(share)}){_true_labels(worth)}.",
    ]
    if worth.problem:
        lines.append(f"How many labels tell an accuracy can't be said: {worth.problem}.")
        return Section(title, tuple(lines))
    lines.append("What follows is about measuring a model; it says nothing of the accuracy that a model will have.")
    lines.append(
        f"To know a model's accuracy to ±{100 * POINTS:.0f} points (95 %) from held-out labels, one a sample, if Q is "
        "right and the model's mistakes are the same for all classes:"
    )
    rows = tuple((percent(one.accuracy, 0), str(one.labels), str(one.true_labels)) for one in worth.judging)
    return Section(title, tuple(lines), ("accuracy", "labels", "true labels that would do"), rows)


def _true_labels(worth: LabelWorth) -> str:
    ratio = worth.labels_for_one
    return f": {ratio:.1f} labels or more weigh as much as one true label" if np.isfinite(ratio) else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


MOST_DRAWN_CLASSES = 30  #: beyond, bars and matrices are too small to read


def label_page(health: LabelHealth, source: str, made: Sequence[tuple[str, str]]) -> str:
    """The page: figures of label shares and of Q, then every section; ``made`` says how it came about.

    Pages are passed on, so that annotators have numbers there instead of names.
    """
    title = f"Label health: {source}"
    about = "What complementary labels (“this is NOT a …”) say of themselves. No true label was used."
    if health.annotators is not None:
        about += " Annotators have numbers here; what the command prints has their names, in the same order."
    found = sections(_without_names(health))
    return render("labels.html", title=title, about=about, panels=_panels(health), sections=found, made=made)


def _without_names(health: LabelHealth) -> LabelHealth:
    if health.annotators is None:
        return health
    numbered = tuple(replace(one, annotator=f"annotator {i}") for i, one in enumerate(health.annotators, 1))
    return replace(health, annotators=numbered)


def _panels(health: LabelHealth) -> list[tuple[str, str, str]]:
    """Figures with their titles and captions."""
    if len(health.classes) > MOST_DRAWN_CLASSES:
        return []
    names, shares = health.classes, health.shares.value
    limit = "The dashed line is the most that uniform labels allow; classes beyond it are marked."
    panels = [("Share of each label", limit, share_panel("share of each label", shares.tolist(), names, health.limit))]
    if health.repeated is not None:
        told = "told by the labels" if health.repeated.found.identified else "not told by the labels alone"
        caption = f"Rows are true classes, columns labels in the same order; darker is more. It is {told}."
        panels.append(("Q, estimated", caption, transition_panel("Q", health.repeated.found.transition, names)))
    return panels
