"""Beyond the paper: what its data, labels and network give when networks are trained well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from wcll.paper.part import BY_SHARES, Part
from wcll.paper.published import Published, published, show_name
from wcll.paper.result_files import command_today, read_part
from wcll.report.render import curves_panel, render, sheet
from wcll.report.result_tables import Cell, pick_all
from wcll.suites import Trial, load_suite

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
    plain = {len(line.plain.values) for line in found if line.plain is not None}
    return {
        "title": _heading(part),
        "dataset": part.suite.settings["dataset"],
        "lines": found,
        "gain": mean_gain(found),
        "plain_n": ", ".join(map(str, sorted(plain))) or "none",
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
    rows = []
    for method in (*part.methods, OURS):
        texts = [show_name(method)]
        for column in part.columns:
            plain = _cell(reproduced, dataset, column, PLAIN if method == OURS else method)
            strong = part.cell(title, part.methods[0] if method == OURS else method, column)
            if method == OURS:
                strong = _same_trials(settings.cell("last epoch", OURS, column), strong)
            texts += [_text(plain), _text(strong)]
        rows.append(texts)
    head = ["", *(f"{column}, {how}" for column in part.columns for how in ("plain", "strong"))]
    note = f"Accuracy in percent, {title}; ours: last epoch. {_n(part)}. {part.suite.about}"
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
