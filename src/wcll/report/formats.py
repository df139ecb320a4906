"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wcll._files import csv_line
from wcll.report.cells import Cell
from wcll.report.render import render
from wcll.report.tables import Table

_LATEX = {
    **{chr(code): rf"\textbackslash{{}}x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{character: f"{{{character}}}" for character in "[]*"},  # where a line begins they would be options of the last
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"},
    **{"°": r"$^\circ$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "§": r"\S{}"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_markdown(table: Table) -> str:
    """A pipe table, the best in bold."""
    return render("table.md", table=table, caption=caption(table)) + "\n"


def to_latex(table: Table) -> str:
    """A booktabs table, the best in bold."""
    rule = "l" + "r" * len(table.heads)
    head = " & ".join(["method", *(latex_text(f"{head} %") for head in table.head_texts())])
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_text(f'{table.title}. {caption(table)}')}}}"]
    lines += [rf"\begin{{tabular}}{{{rule}}}", r"\toprule", head + r" \\", r"\midrule"]
    for line in table.lines:
        cells = [rf"\textbf{{{latex_text(c.text())}}}" if c.best else latex_text(c.text()) for c in line.cells]
        lines.append(" & ".join([latex_text(line.title + line.mark), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def to_csv(tables: Sequence[Table]) -> str:
    """One line a figure, fractions in full."""
    heads = ("table", "select", "method", "column", "metric", "mean", "std", "trials", "missing", "best", "p")
    return csv_line(heads) + "".join(
        csv_line((table.title, table.select, line.title, column, metric, *_figures(cell)))
        for table in tables
        for line in table.lines
        for (column, metric), cell in zip(table.heads, line.cells, strict=True)
    )


def to_dict(table: Table) -> dict[str, Any]:
    """Every figure of a table, for JSON."""
    lines = [
        {
            "method": line.title,
            "limit": line.limit,
            "cells": [_plain(*head, cell) for head, cell in zip(table.heads, line.cells, strict=True)],
        }
        for line in table.lines
    ]
    return {"title": table.title, "heads": table.head_texts(), "caption": caption(table), "lines": lines}


def _plain(column: str, metric: str, cell: Cell) -> dict[str, Any]:
    values = {str(seed): value for seed, value in cell.values.items()}
    figures = {"mean": cell.mean, "std": cell.std, "best": cell.best, "values": values}
    return {"column": column, "metric": metric, **figures}


def caption(table: Table) -> str:
    """How the figures came about."""
    spread = f"mean ± std over {table.trials} trials" if table.trials > 1 else "one trial"
    return ". ".join([f"In percent, {spread}; {table.notes[0]}", *table.notes[1:]]) + "."


def latex_text(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in text)


def _figures(cell: Cell) -> tuple[str, ...]:
    seeds = " ".join(map(str, cell.missing))
    number = tuple("" if x != x else repr(x) for x in (cell.mean, cell.std))
    p_value = "" if cell.p_value is None else repr(cell.p_value)
    return (*number, str(len(cell.values)), seeds, "yes" if cell.best else "", p_value)
