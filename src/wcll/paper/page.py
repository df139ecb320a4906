"""Pages on the paper: every published number beside ours, findings, images, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from wcll.experiments import Trial, load_suite
from wcll.paper.claims import judge_all
from wcll.paper.comparison import (
    BY_SHARES,
    CLOSE,
    FORMULAS,
    Beside,
    Part,
    Published,
    command_today,
    find,
    mean_absolute,
    published,
    read_part,
    show_name,
)
from wcll.paper.protocols import CHOSEN, FACTORS, GENERATORS, MARGIN, NAMED, SIZES, Search
from wcll.paper.reproduction import (
    AGREEMENT,
    DEPENDS,
    FAILS,
    HOLDS,
    LATER,
    PROTOCOL_NAMES,
    TABLES,
    UNTOLD,
    Claim,
    Reproduction,
    leads,
    means,
    say,
)
from wcll.report.render import curves_panel, render, sheet
from wcll.report.result_tables import Cell, Table, pick_all, told_notes

#: Suites in the order in which a GPU's time goes to them; the first three have every setting that the paper prints.
SETTINGS = ("beyond-cifar10", "beyond-tiny", "beyond-ddsm")
METHODS, OPTIONS, AUTO = "beyond-methods", "beyond-options", "beyond-auto"
BEYOND = (*SETTINGS, METHODS, OPTIONS, AUTO)
OURS, LIMIT = "ours", "ordinary labels"
PLAIN = "forward, Q from counts"  #: the row of the reproduction that "ours" is, trained as in the paper
TOTAL = " / total"  #: how the paper's table 7 calls accuracy
TESTED = {"cifar10": 5000, "tiny-imagenet": 250, "ddsm": 300}  #: images of a trial's test set
IMAGE_RATE = 5e-5  #: the learning rate of the paper's image networks, the larger of the two that were run
TITLE = "Beyond the paper"
FIGURE = "beyond.svg"


@dataclass(frozen=True)
class Line:
    """A setting: the best published number, and ours under the paper's training and under a better one."""

    setting: str
    printed: Published  #: of any method
    plain: Cell | None  #: rate and epoch chosen without true labels; None: not run
    ours: Cell
    plain_limit: Cell | None  #: ordinary labels
    limit: Cell
    plain_last: Cell | None = None  #: as plain, at the last epoch of the larger learning rate, as "ours" is at the last

    @property
    def gain(self) -> float:
        """Points ahead of the best published number."""
        return 100 * self.ours.mean - self.printed.mean


def best_published(trial: Trial) -> Published:
    """The largest number that the paper prints for a setting."""
    p, minority = BY_SHARES if trial.imbalance == "shares" else (trial.p, " ".join(map(str, trial.minority or ())))
    place = trial.dataset, p, minority
    total = [one for one in published() if "/" not in one.method or one.method.endswith(TOTAL)]
    return max((one for one in total if (one.dataset, one.p, one.minority) == place), key=lambda one: one.mean)


def lines(part: Part, reproduced: Mapping[str, Part]) -> Iterator[Line]:
    """A suite's settings, as far as they were run, beside what the paper's training gives."""
    rows = {row.title: row for row in part.suite.rows}
    for column in part.suite.columns:
        ours, limit = (part.cell("last epoch", method, column.title) for method in (OURS, LIMIT))
        if not ours.values or not limit.values:
            continue
        trial = part.suite.candidates(column, rows[OURS], 0)[0]
        plain, plain_limit = (_cell(reproduced, trial.dataset, column.title, method) for method in (PLAIN, LIMIT))
        last = _cell(reproduced, trial.dataset, column.title, PLAIN, lr=IMAGE_RATE)
        yield Line(column.title, best_published(trial), plain, ours, plain_limit, limit, last)


def read_beyond(folder: Path) -> dict[str, Part]:
    """The results that there are, by suite."""
    paths = {name: folder / f"{name}.json" for name in BEYOND}
    return {
        name: read_part(path, load_suite(name), partial=True).begun for name, path in paths.items() if path.exists()
    }


def render_beyond(found: Mapping[str, Part], reproduced: Mapping[str, Part], annotators: Part | None = None) -> str:
    """The page as Markdown; ``annotators`` is what networks learn from labels that somebody really gave."""
    settings = [_about_beyond(found[name], list(lines(found[name], reproduced))) for name in SETTINGS if name in found]
    others = [auto_table(found[AUTO], found[SETTINGS[0]])] if AUTO in found else []
    others += [methods_table(found[METHODS], found[SETTINGS[0]], reproduced)] if METHODS in found else []
    others += [options_table(found[OPTIONS])] if OPTIONS in found else []
    others += [_table(annotators)] if annotators is not None else []
    absent = [f"`{name}`: {load_suite(name).title.partition(': ')[2]}" for name in BEYOND if name not in found]
    values: dict[str, Any] = {"settings": settings, "others": others, "left": "; ".join(absent) + "." if absent else ""}
    figure = f"figures/{FIGURE}" if SETTINGS[0] in found else ""
    values |= {"name": show_name, "command": command_today, "reach": in_reach(settings), "figure": figure}
    return render("beyond.md", package="wcll.paper", **values)


def in_reach(settings: Sequence[Mapping[str, Any]]) -> str:
    """One line: how far ahead of print all of it is, and where it is not."""
    ahead = [line.gain for line in settings[0]["lines"]]
    best = "the best number that the paper prints for any method"
    words = f"On CIFAR-10 (five classes) {min(ahead):+.1f} to {max(ahead):+.1f} points from {best}"
    against = [100 * (line.ours.mean - line.plain_last.mean) for line in settings[0]["lines"] if line.plain_last]
    if against:
        words += f", and {min(against):+.1f} to {max(against):+.1f} from plain training at the last epoch of both"
    for one in settings[1:]:
        words += f"; {one['title']} {one['gain']} on average"
    least = min(len(line.ours.values) for one in settings for line in one["lines"])
    times = "once" if least == 1 else f"{least} times"
    return f"{words}. Every setting of the first {len(settings)} tables was run {times} or more."


def beyond_figures(found: Mapping[str, Part]) -> dict[str, str]:
    """The figures of the page, as SVG files by name."""
    if (part := found.get(SETTINGS[0])) is None:
        return {}
    picks = pick_all(part.suite, part.suite.tables[0], part.runs, range(part.trials))
    panels = []
    for column in part.columns:
        curves = {
            method: np.array([picked.run.accuracies for picked in picks[method, column].values()])
            for method in (OURS, LIMIT)
        }
        if all(curve.size for curve in curves.values()):
            panels.append((column, curves_panel(f"{column}: accuracy by epoch", curves)))
    return {FIGURE: sheet("Accuracy by epoch", panels, [OURS, LIMIT])} if panels else {}


def _about_beyond(part: Part, found: list[Line]) -> dict[str, Any]:
    """A suite's settings as the page shows them."""
    tested = TESTED[str(part.suite.settings["dataset"])]
    level = fmean(line.ours.mean for line in found)
    plain = {len(cell.values) for line in found for cell in (line.plain, line.plain_last, line.plain_limit) if cell}
    return {
        "title": _heading(part),
        "dataset": part.suite.settings["dataset"],
        "lines": found,
        "gain": mean_gain(found),
        "plain_n": " or ".join(map(str, sorted(plain))) or "none",
        "tests": tested,
        "level": f"{100 * level:.0f}",
        "error": 100 * sqrt(level * (1 - level) / tested),
        "made": part.made,
    }


def mean_gain(found: Sequence[Line]) -> str:
    """Points from print, averaged over settings, and the standard error of that over trials, which settings share."""
    shared = sorted(set.intersection(*(set(line.ours.values) for line in found)))
    gains = [fmean(100 * line.ours.values[seed] - line.printed.mean for line in found) for seed in shared]
    error = f" ± {stdev(gains) / sqrt(len(gains)):.1f}" if len(gains) > 1 else ""
    return f"{fmean(line.gain for line in found):+.1f}{error}"


def auto_table(part: Part, settings: Part) -> dict[str, Any]:
    """The default, and ours in the same trials."""
    table, title = _table(part), part.suite.tables[-1].title
    (auto,) = part.methods
    cells = [
        _same_trials(settings.cell(title, OURS, column), part.cell(title, auto, column)) for column in part.columns
    ]
    return table | {"rows": [*table["rows"], [OURS, *map(_text, cells)]]}


def methods_table(part: Part, settings: Part, reproduced: Mapping[str, Part]) -> dict[str, Any]:
    """Every method as the paper trains it and as networks are trained here, and ours beside them."""
    title, dataset = part.suite.tables[-1].title, str(part.suite.settings["dataset"])
    rows, counts = [], set()
    for method in (*part.methods, OURS):
        texts = [show_name(method)]
        for column in part.columns:
            plain = _cell(reproduced, dataset, column, PLAIN if method == OURS else method)
            strong = part.cell(title, part.methods[0] if method == OURS else method, column)
            if method == OURS:
                strong = _same_trials(settings.cell("last epoch", OURS, column), strong)
            texts += [_text(plain), _text(strong)]
            counts |= {len(plain.values)} if plain else set()
        rows.append(texts)
    head = ["", *(f"{column}, {how}" for column in part.columns for how in ("plain", "strong"))]
    plain_n = " or ".join(map(str, sorted(counts))) or "none"
    note = f"Accuracy in percent, {title}; ours: last epoch. {_n(part)}; plain: {plain_n}. {part.suite.about}"
    return {"title": _heading(part), "head": head, "rows": rows, "note": note, "made": part.made}


def options_table(part: Part) -> dict[str, Any]:
    """What one option changes: the difference from ours, trial by trial, with the standard error of its mean."""
    (column,), title = part.columns, part.suite.tables[-1].title
    ours = part.cell(title, OURS, column).values
    rows = []
    for method in part.methods:
        cell, recall = (part.cell(title, method, column, metric) for metric in ("accuracy", "minority_recall"))
        changes = [100 * (value - ours[seed]) for seed, value in sorted(cell.values.items()) if seed in ours]
        error = f" ± {stdev(changes) / sqrt(len(changes)):.1f}" if len(changes) > 1 else ""
        change = "" if method == OURS else f"{fmean(changes):+.1f}{error}"
        rows.append([method, _text(cell), change, _text(recall)])
    head = ["", "accuracy", "change", "recall of rare classes"]
    note = f"In percent, {column}, {title}. {_n(part)}; change: paired, mean and its standard error. {part.suite.about}"
    return {"title": _heading(part), "head": head, "rows": rows, "note": note, "made": part.made}


def _table(part: Part) -> dict[str, Any]:
    """A suite as a table of accuracies."""
    title = part.suite.tables[-1].title
    rows = [[show_name(method), *map(_text, part.cells(title, method))] for method in part.methods]
    note = f"Accuracy in percent, {title}. {_n(part)}. {part.suite.about}"
    return {"title": _heading(part), "head": ["", *part.columns], "rows": rows, "note": note, "made": part.made}


def _heading(part: Part) -> str:
    """A suite's title without that of the page."""
    title = part.suite.title.removeprefix(f"{TITLE}: ")
    return title[0].upper() + title[1:]


def _n(part: Part) -> str:
    most = max(len(cell.values) for title in part.tables for row in part.methods for cell in part.cells(title, row))
    return f"n = {most}"


def _same_trials(cell: Cell, other: Cell) -> Cell:
    """A cell without those trials that another does not have."""
    return replace(cell, values={seed: value for seed, value in cell.values.items() if seed in other.values})


def _text(cell: Cell | None) -> str:
    """A figure without marks: tests are of the best of a column, which is not what these tables ask."""
    if cell is None or not cell.values:
        return "-"
    return f"{100 * cell.mean:.1f}" + (f" ± {100 * cell.std:.1f}" if cell.std == cell.std else "")


def _cell(
    reproduced: Mapping[str, Part], dataset: str, column: str, method: str, lr: float | None = None
) -> Cell | None:
    """Return the reproduction's cell of a method in a setting: label-free selection, or the last epoch at ``lr``."""
    for part in reproduced.values():
        if part.suite.settings["dataset"] == dataset and column in part.columns and method in part.methods:
            cell = part.cell("fair", method, column) if lr is None else part.rates[lr].cell(method, column, "accuracy")
            return cell if cell.values else None
    return None


#: By the epoch that they show, the tables of the suite and their rates.
LOOKS = {
    "after the last epoch": {"paper": "5e-5", "last epoch at 5e-6": "5e-6"},
    "at the best epoch by TEST": {"best epoch by TEST at 5e-5": "5e-5", "best epoch by TEST at 5e-6": "5e-6"},
}


@dataclass(frozen=True)
class Nearest:
    """What comes nearest to the printed numbers."""

    column: str
    lr: str
    figures: dict[str, float]  #: in percent, by method
    distance: float  #: the mean of the absolute differences, in points


def factors_printed() -> dict[str, Published]:
    """The two numbers that the paper prints in that setting, by method."""
    found = {method: find(2, "cifar10", 5.0, "0", method) for method in ("log", "wcll")}
    return {method: one for method, one in found.items() if one is not None}


def nearest(part: Part) -> dict[str, Nearest]:
    """By the epoch that is shown, the column, rate and formula that are nearest to both."""
    log, wcll = (one.mean for one in factors_printed().values())
    found = {}
    for when, tables in LOOKS.items():
        tried = []
        for table, column, own in product(tables, part.columns, FORMULAS):
            cells = {method: part.cell(table, method, column) for method in ("log", own)}
            if all(cell.values for cell in cells.values()):
                figures = {method: 100 * cell.mean for method, cell in cells.items()}
                distance = fmean((abs(figures["log"] - log), abs(figures[own] - wcll)))
                tried.append(Nearest(column, tables[table], figures, distance))
        if tried:
            found[when] = min(tried, key=lambda one: one.distance)
    return found


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


OVERFITTING = ("free", "nn", "wcll", "log")  #: rows of which accuracy is shown epoch by epoch
SHADES = (2.0, 5.0, 10.0)  #: points of difference at which the colour changes
VERDICTS = (HOLDS, FAILS, DEPENDS, UNTOLD)


def render_report(found: Reproduction, ending: str) -> str:
    """The report as one HTML page (``.html``) or as Markdown (``.md``)."""
    return render(f"paper{ending}", package="wcll.paper", **contents(found))


def figure_files(found: Reproduction) -> dict[str, str]:
    """The figures that Markdown shows, as SVG files by name."""
    names = [show_name(method) for method in found.parts["figure3"].methods]
    title = "Accuracy on the imbalanced class by epoch, mean and standard deviation"
    files = {"figure3.svg": sheet(title, all_panels(found), names)}
    if panels := overfitting_panels(found):
        files["overfitting.svg"] = sheet("Accuracy by epoch", panels, [show_name(method) for method in OVERFITTING])
    return files


def contents(found: Reproduction) -> dict[str, Any]:
    """All that a template shows."""
    claims, figure, fits = judge_all(found), found.parts["figure3"], found.fits
    shown = [found.parts[name] for name in (*TABLES, "bases", "sizes", *LATER) if name in found.parts]
    return {
        "title": "Does the paper hold?",
        "claims": claims,
        "verdicts": count_verdicts(claims),
        "findings": findings(found),
        "contradictions": contradictions(),
        "numbers": headline(found),
        "shade": _shade,
        "name": show_name,
        "command": command_today,
        "tables": [_about(part) for part in (*shown, *found.on_images)],
        "images": found.on_images,
        "factors": found.images.get(FACTORS),
        "looks": [table for tables in LOOKS.values() for table in tables],
        "factors_printed": factors_printed(),
        "factors_nearest": nearest(found.images[FACTORS]) if FACTORS in found.images else {},
        "costs": found.selection_costs,
        "fits": fits,
        "margin": MARGIN,
        "agreement": AGREEMENT,
        "named": NAMED,
        "run": found.named,
        "panels": all_panels(found),
        "overfitting": overfitting_panels(found),
        "overfitting_methods": OVERFITTING,
        "figure": figure,
        "search": found.search,
        "chosen": CHOSEN,
        "generators": GENERATORS,
        "sizes": SIZES,
        "made": [
            *found.parts.values(),
            *found.images.values(),
            *found.named.values(),
            *([found.search] if found.search else []),
        ],
    }


def count_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    """How many claims there are of each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def headline(found: Reproduction) -> dict[str, Any]:
    """How many numbers come back: WCLL's own, by which the protocol was chosen, and those that chose nothing."""
    fitted = [one for one in found.beside if one.printed.method == "wcll"]
    others = [one for one in found.beside if one.printed.method != "wcll"]
    return {
        "published": len(published()),
        "on_images": sum(len(some) for part in found.images.values() for some in part.all_beside.values()),
        "elsewhere": sum(one.dataset != "mnist" for one in published()),
        "fitted": _counts(fitted),
        "others": _counts(others),
        "measured": len(found.beside),
        "wcll": f"{mean_absolute(found.wcll):.1f}",
        "settings": len(found.wcll),
        "points": f"{CLOSE:g}",
    }


def _counts(beside: list[Beside]) -> dict[str, int]:
    """How many numbers were measured, and how many of them are near."""
    return {
        "measured": len(beside),
        "close": sum(one.close for one in beside),
        "within": sum(one.within_spread for one in beside),
    }


def _about(part: Part) -> dict[str, Any]:
    """A part with what is said of it below its table."""
    beside, lines = list(part.beside.values()), part.tables["fair"].lines
    agreement = {column: [part.rank_agreement(how, column) for how in ("paper", "fair")] for column in part.columns}
    ranks = [(column, *both) for column, both in agreement.items() if not np.isnan(both).any()]  # run, and printed
    return {
        "part": part,
        "lines": lines,
        **_counts(beside),
        "mean_absolute": mean_absolute(beside),
        "ranks": ranks if len(beside) > 3 * len(ranks) else [],  # fewer have no order
        "marks": "".join(line.mark for line in lines),
        "told": [note.replace("wcll", "WCLL") for note in told_notes(part.suite, choice=True)],
        "theirs": max((one.printed.trials for one in beside), default=0),
    }


def _shade(beside: Beside | None) -> str:
    """A class for the size of a difference: near, off, far, or very far."""
    if beside is None:
        return ""
    return ("near", "off", "far", "wrong")[sum(abs(beside.difference) > limit for limit in SHADES)]


def overfitting_panels(found: Reproduction) -> list[tuple[str, str]]:
    """Test accuracy by epoch on CIFAR-10, of methods that estimate an unbiased risk and of others."""
    if (images := found.images.get("table2-cifar10")) is None:
        return []
    return _panels(images, images.printed_columns, OVERFITTING, accuracy=True)


def all_panels(found: Reproduction) -> list[tuple[str, str]]:
    """The curves of every setting of figure 3 with their titles: MNIST's, and those of CIFAR-10 that were run."""
    figure = found.parts["figure3"]
    panels = _panels(figure, figure.columns, figure.methods)
    if (images := found.images.get("table2-cifar10")) is not None:
        more = _panels(images, images.printed_columns, figure.methods)
        panels += [(f"CIFAR-10, {column}", panel) for column, panel in more]
    return panels


def _panels(
    part: Part, columns: Sequence[str], methods: Sequence[str], *, accuracy: bool = False
) -> list[tuple[str, str]]:
    """The curves of some settings, as far as there are runs."""
    picks = pick_all(part.suite, part.suite.tables[0], part.runs, range(part.trials))
    panels = []
    for column in columns:
        curves = {
            show_name(method): np.array(
                [one.run.accuracies if accuracy else one.run.recalls for one in picks[method, column].values()]
            )
            for method in methods
        }
        what = "accuracy" if accuracy else "accuracy on the imbalanced class"
        if all(curve.size for curve in curves.values()):
            panels.append((column, curves_panel(f"{column}: {what} by epoch", curves)))
    return panels
