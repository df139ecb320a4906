"""Lines of CSV files in which no text is a formula to the spreadsheet that opens them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  #: what spreadsheets take for the begin of one, or for nothing


def csv_line(values: Iterable[Any]) -> str:
    """One line; text that would be a formula begins with an apostrophe, numbers stay numbers.

    >>> csv_line(["=1+1", "plain", -0.5, "-0.5", None])
    "'=1+1,plain,-0.5,-0.5,\\n"
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text[0].isspace()
