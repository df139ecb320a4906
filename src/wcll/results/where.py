"""Conditions on runs, such as ``lr=5e-4``, as SQL: SQLite looks at settings and figures, and no history is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wcll.exceptions import InputError

PARTS = ("config", "metrics", "provenance")
READABLE = " AND ".join(
    ["typeof(key) = 'text'", *(f"typeof({part}) = 'text' AND json_valid({part})" for part in PARTS)]
)
#: What every run has that is not damaged.
SOUND = "json_type(config, '$.loss') = 'text' AND json_type(metrics, '$.accuracy') IN ('real', 'integer')"

#: Numbers as numbers, so that 5e-4 finds 0.0005 (SQLite may read a figure's last digit otherwise); lists as JSON;
#: all else as text.
SAME = """CASE json_type({part}, :path{i})
    WHEN 'text' THEN json_extract({part}, :path{i}) = :text{i}
    WHEN 'integer' THEN abs(json_extract({part}, :path{i}) - :number{i}) <= 1e-15 * abs(:number{i})
    WHEN 'real' THEN abs(json_extract({part}, :path{i}) - :number{i}) <= 1e-15 * abs(:number{i})
    WHEN 'true' THEN :text{i} = 'True'
    WHEN 'false' THEN :text{i} = 'False'
    WHEN 'null' THEN 0
    ELSE json_extract({part}, :path{i}) = :plain{i} END"""


def parse(where: Sequence[str]) -> list[tuple[str, str]]:
    """Names and the values that are asked for."""
    parts = [condition.encode(errors="replace").decode().partition("=") for condition in where]  # SQLite takes UTF-8
    for condition, (_, equals, _) in zip(where, parts, strict=True):
        if not equals:
            raise InputError("--where", "name=value", repr(condition))
    return [(name, wanted) for name, _, wanted in parts]


def as_sql(where: Sequence[str], *, damaged: bool = True) -> tuple[str, dict[str, Any]]:
    """What holds for runs with all the values asked for, with its parameters.

    It holds for damaged runs as well, unless there are none: looking for them takes time, and SQLite fails at them.
    """
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for i, (name, wanted) in enumerate(parse(where)):
        if name == "key":
            conditions.append(f"key = :text{i}")
        elif '"' in name:
            conditions.append("0")  # no name has one, and SQLite cannot look for it
        else:
            looks = [
                f"WHEN json_type({part}, :path{i}) IS NOT NULL THEN {SAME.format(part=part, i=i)}" for part in PARTS
            ]
            conditions.append(f"CASE {' '.join(looks)} END")
            values |= {f"path{i}": f'$."{name}"', f"number{i}": _number(wanted), f"plain{i}": _plain(wanted)}
        values[f"text{i}"] = wanted
    if not conditions:
        return "1", {}
    all_hold = " AND ".join(conditions)
    return f"CASE WHEN {READABLE} THEN {all_hold} ELSE 1 END" if damaged else all_hold, values


def column(name: str) -> str:
    """A setting or a metric as a column."""
    return f"""coalesce(json_extract(config, '$."{name}"'), json_extract(metrics, '$."{name}"'))"""


def _number(wanted: str) -> float | None:
    try:
        return float(wanted)
    except ValueError:
        return None


def _plain(wanted: str) -> str | None:
    """A list or table as SQLite writes it."""
    try:
        return json.dumps(json.loads(wanted), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
