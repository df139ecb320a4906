"""HTML reports of a suite and of the demonstration."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from wcll._validation import FloatArray
from wcll.evaluation import LabelFreeConfusion, label_free_confusion
from wcll.experiments.row import Row
from wcll.experiments.suite import Suite
from wcll.losses.registry import AUTO
from wcll.report.render import bar_panel, confusion_panel, curve_group, curve_panel, render
from wcll.report.result_tables import Cell, Picked, Picks, Table, build_table, caption, finding, in_parts, pick_all

MOST_CLASSES = 30  #: beyond, bars and confusion tables are too small to read
MOST_COLUMNS = 7  #: of figures beside each other: more are shown as several tables


def suite_page(suite: Suite, rows: Mapping[str, Row], seeds: Sequence[int], command: str) -> str:
    """The page of a suite; missing trials are said where they are missing."""
    return render("suite.html", **page_parts(suite, rows, seeds, command))


def page_parts(suite: Suite, rows: Mapping[str, Row], seeds: Sequence[int], command: str) -> dict[str, Any]:
    """What the page of a suite is made of."""
    tables = [build_table(suite, spec, rows, seeds) for spec in suite.tables]
    picks = pick_all(suite, suite.tables[0], rows, seeds)
    shown = [picked.run for cell in picks.values() for picked in cell.values()]
    estimates = _estimates(picks)
    return {
        "title": suite.title,
        "found": finding(suite, tables[0]),
        "about": suite.about.strip(),
        "tables": [_parts(table) for table in tables],
        "chosen": _chosen(suite, picks),
        "tried": ", ".join(suite.grid),
        "classes": _classes(suite, picks),
        "columns": [_column(suite, i, picks) for i in range(len(suite.columns))],
        "panel_caption": tables[0].notes[0],
        "estimates": [_estimate_line(*where, found) for where, found in estimates.items()],
        "told": " or ".join(sorted({str(one.run.judge) for found in estimates.values() for one, _ in found})),
        "checked": _checked([one for found in estimates.values() for _, one in found]),
        "made": _made(suite, shown, seeds, command),
    }


def _parts(table: Table) -> dict[str, Any]:
    """A table, in parts that fit beside each other, and what is to be said of all of them."""
    parts = table.split(MOST_COLUMNS)
    return {"parts": [(part, part.head_texts()) for part in parts], "caption": caption(table)}


def _chosen(suite: Suite, picks: Picks[Row]) -> list[dict[str, Any]]:
    """Which values of the grid and which epoch every cell shows, in parts that fit beside each other."""
    parts = []
    for titles in in_parts([column.title for column in suite.columns], MOST_COLUMNS - 2):
        lines = [(row.title, [_choice(suite, picks[row.title, title]) for title in titles]) for row in suite.rows]
        parts.append({"heads": titles, "lines": lines})
    return parts


def _choice(suite: Suite, cell: Mapping[int, Picked[Row]]) -> str:
    """In words, over all trials of a cell; those that differ are counted."""
    shown = list(cell.values())
    if not shown or shown[0].run.config["loss"] == AUTO:
        return "chosen by itself" if shown else "-"
    parts = []
    for key in suite.grid:
        values = Counter(_plain(picked.run.config.get(key, "-")) for picked in shown)
        parts.append(
            ", ".join(f"{value} ({n})" if values[value] < len(shown) else value for value, n in values.items())
        )
    first, last = min(picked.epoch for picked in shown), max(picked.epoch for picked in shown)
    return "; ".join([*parts, f"epoch {first}" if first == last else f"epochs {first} to {last}"])


def _classes(suite: Suite, picks: Picks[Row]) -> list[dict[str, Any]]:
    """How many samples and labels of each class there are in the first trial; columns that agree go together."""
    found: dict[str, dict[str, Any]] = {}
    for column in suite.columns:
        shown = [picked.run for row in suite.rows for picked in picks[row.title, column.title].values()]
        if not shown or len(shown[0].class_names) > MOST_CLASSES:
            continue
        run = shown[0]
        sizes, rare = run.history["sizes"], run.rare
        each = zip(run.class_names, sizes, run.history["train_labels"], run.history["test_sizes"], strict=True)
        lines = [(*line, k in rare) for k, line in enumerate(each)]
        same = found.setdefault(str(lines), {"titles": [], "lines": lines, "mean": f"{np.mean(sizes):.0f}"})
        same["titles"].append(column.title)
    return list(found.values())


def _column(suite: Suite, index: int, picks: Picks[Row]) -> dict[str, Any]:
    """The panels of one column."""
    title = suite.columns[index].title
    cells = {row.title: list(picks[row.title, title].values()) for row in suite.rows if picks[row.title, title]}
    learn = {name: cell for name, cell in cells.items() if cell[0].run.epochs > 1}  # of one epoch there is no curve
    curves = {name: np.stack([p.run.curve("accuracy") for p in cell]) for name, cell in learn.items()}
    group = f"curves{index}"
    panels = [_panels(name, cell, curves.get(name), group) for name, cell in cells.items()]
    return {"title": title, "panels": panels, "everyone": curve_group(group, curves.values()) if curves else ""}


def _panels(name: str, cell: list[Picked[Row]], curves: FloatArray | None, group: str) -> dict[str, str]:
    tables = np.stack([_confusion(picked) for picked in cell]).mean(axis=0)
    recall = np.diag(tables)
    names, rare = cell[0].run.class_names, cell[0].run.rare
    readable = len(recall) <= MOST_CLASSES
    return {
        "title": name,
        "accuracy": _spread(picked.value("accuracy") for picked in cell),
        "curve": "" if curves is None else curve_panel(name, curves, behind=group),
        "bars": bar_panel(name, recall.tolist(), names, rare) if readable else "",
        "confusion": confusion_panel(name, tables, names) if readable else "",
    }


def _nearest(picked: Picked[Row]) -> int:
    """The checkpoint nearest to the epoch that is shown."""
    return int(np.abs(np.array(picked.run.checkpoints) - picked.epoch).argmin())


def _confusion(picked: Picked[Row]) -> FloatArray:
    """Shares of predictions within each true class."""
    counts = picked.run.confusion(_nearest(picked)).counts
    shares: FloatArray = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares


#: Picks, and what held-out labels say of each.
Estimates = list[tuple[Picked[Row], LabelFreeConfusion]]


def _estimates(picks: Picks[Row]) -> dict[tuple[str, str], Estimates]:
    """What held-out complementary labels alone say of every pick that has some, by row and column."""
    found = {}
    for where, cell in picks.items():
        judged = [picked for picked in cell.values() if picked.run.history["held_out"] is not None]
        if judged:
            found[where] = [(picked, _estimate(picked)) for picked in judged]
    return found


def _estimate_line(name: str, column: str, found: Estimates) -> dict[str, str]:
    """Balanced accuracy without true labels, beside what the test set says."""
    figures = [one.balanced_accuracy for _, one in found]
    shown = [figure for figure in figures if not figure.rejected]
    reasons = [one.check.line for _, one in found if one.check.contradicted]
    return {
        "method": name,
        "column": column,
        "estimate": _spread(figure.value for figure in shown) if shown else "-",
        "width": f"{100 * median(figure.high - figure.low for figure in shown):.0f}" if shown else "-",
        "measured": _spread(picked.value("balanced_accuracy") for picked, _ in found),
        "verdict": _counted(figure.verdict for figure in figures),
        "reason": reasons[0] if reasons else "",
    }


def _checked(found: list[LabelFreeConfusion]) -> str:
    """Whether held-out labels contradict Q, and in how many trials."""
    words = {
        "contradicted": "held-out labels contradict this Q",
        "not contradicted": "held-out labels do not contradict this Q",
        "can't be checked": "held-out labels do not contradict this Q, but would not contradict others either",
    }
    return _counted(words[one.check.state] for one in found)


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{word} ({count})" for word, count in Counter(sorted(words)).items())


def _estimate(picked: Picked[Row]) -> LabelFreeConfusion:
    table = picked.run.history["held_out"][_nearest(picked)]
    draws = 1000 if len(table) <= 20 else 200  # many classes take long
    names = picked.run.provenance["data"].get("classes")
    return label_free_confusion(table, picked.run.judge, draws=draws, classes=names)


def _spread(values: Iterable[float]) -> str:
    """Mean and standard deviation in percent, as cells have them."""
    return Cell(dict(enumerate(values)), ()).text()


def _made(suite: Suite, rows: list[Row], seeds: Sequence[int], command: str) -> list[tuple[str, str]]:
    """How the page came about; values that differ between runs are all listed."""

    def values(name: str) -> str:
        return ", ".join(sorted({str(row.provenance.get(name, "")) for row in rows} - {""}))

    settings = ", ".join(f"{key} {_plain(value)}" for key, value in suite.settings.items())
    grid = "; ".join(f"{key}: {', '.join(map(str, chosen))}" for key, chosen in suite.grid.items())
    versions = ", ".join(f"{name} {values(name)}" for name in ("wcll", "torch", "numpy", "python"))
    seconds = sum(row.provenance["seconds"] for row in rows)
    made = [
        ("command", command),
        ("settings", settings),
        ("tried", grid),
        ("seeds", f"{min(seeds)} to {max(seeds)}, shared by all methods"),
        ("training time", f"{seconds:.0f} s for the runs shown, on {values('device')}"),
        ("versions", versions),
        ("commit", values("commit")),
    ]
    return [(name, text) for name, text in made if text]


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


NEXT = """\
from wcll import ComplementaryClassifier

model = ComplementaryClassifier().fit(X, not_y)  # for every row of X, a class that it is not
print(model.report())  # what was chosen, why, and how good it seems
predicted = model.predict(X_new)"""


@dataclass(frozen=True)
class Example:
    """An image, as shares of ink, and the class that it was said not to be."""

    ink: FloatArray  #: from 0 to 1, (height, width)
    label: str

    @property
    def source(self) -> str:
        """The image itself, as pages hold it: black on white."""
        grey = np.rint(255 * (1 - self.ink.clip(0, 1))).astype(np.uint8)
        return f"data:image/png;base64,{b64encode(png(grey)).decode()}"


def demo_page(
    suite: Suite, rows: Mapping[str, Row], seeds: Sequence[int], command: str, examples: Sequence[Example]
) -> str:
    """The page of a suite, with what newcomers need around it."""
    return render("demo.html", **page_parts(suite, rows, seeds, command), examples=examples, next=NEXT)


def png(pixels: np.ndarray) -> bytes:
    """A picture of bytes (height, width), from 0 for black to 255 for white, or (height, width, 3) in colour."""
    height, width = pixels.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
