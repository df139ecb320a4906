"""Exports of annotation tools as plain labels, from their files alone; addresses in them are never fetched.

Label Studio's JSON export: what is chosen (``choices``) is what the item is NOT, as the tool was set up to ask.
Prodigy's JSON lines: what is rejected is what the item is NOT; what is accepted is its true class.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wcll._files import read_bytes
from wcll.datasets.base import some_names
from wcll.exceptions import InputError

OFFERED = ("offered", "options", "choices")  #: fields of a task that may list what was to choose from
ITEMS = ("id", "path", "image", "text", "_input_hash")  #: fields of a Prodigy task that may name it, the first first

Plain = dict[str, Any]


@dataclass(frozen=True)
class Label:
    """One label of one item: a class that it is not, or its true one."""

    item: str
    not_label: str = ""
    annotator: str = ""
    offered: tuple[str, ...] = ()
    time: str = ""  #: as ISO 8601 writes it, in UTC
    true_label: str = ""


@dataclass
class Imported:
    """Labels in the order of the file, and how many annotations gave none, by the reason."""

    labels: list[Label] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def read_export(path: Path, *, item: str | None = None, control: str | None = None) -> Imported:
    """Labels of an export: a list of tasks is Label Studio's, a task per line Prodigy's."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(str(path), "text in UTF-8", str(error)) from None
    if not text.lstrip().startswith("["):
        if control is not None:
            raise InputError("--control", "none for Prodigy, which has no such names", repr(control))
        return _prodigy(path, text, item)
    return _label_studio(path, text, item, control)


def _label_studio(path: Path, text: str, item: str | None, control: str | None) -> Imported:
    tasks = _parsed(path, text, "")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(str(path), "Label Studio's JSON export, a list of tasks", "something else")
    if tasks and not any("annotations" in task for task in tasks):
        raise InputError(str(path), "tasks with annotations", "none", "export as JSON, not JSON-MIN")
    control = _control(path, tasks, control)
    found = Imported()
    for number, task in enumerate(tasks, 1):
        where = f"task {number}"
        data = task.get("data") if isinstance(task.get("data"), dict) else {}
        name = _item(path, where, data if item else task, [item] if item else ["id"])
        for annotation in _dicts(path, where, task.get("annotations") or []):
            if annotation.get("was_cancelled"):
                found.skipped["skipped"] += 1
                continue
            chosen = list(_chosen(path, where, annotation, control))
            if not chosen:
                found.skipped["without a choice"] += 1
            who, when = _who(annotation.get("completed_by")), _time(annotation.get("created_at"))
            offered = _offered(data)
            found.labels += [Label(name, one, who, offered, when) for one in dict.fromkeys(chosen)]
    return found


def _control(path: Path, tasks: Sequence[Plain], control: str | None) -> str | None:
    """The control whose choices are labels: the only one, or the one that is named."""
    results = [
        result
        for number, task in enumerate(tasks, 1)
        for annotation in _dicts(path, f"task {number}", task.get("annotations") or [])
        for result in _dicts(path, f"task {number}", annotation.get("result") or [])
    ]
    there = sorted({str(result.get("from_name")) for result in results if result.get("type") == "choices"})
    if control is None and len(there) > 1:
        raise InputError("--control", f"one of {some_names(there)}", "none", "say which asks what the item is NOT")
    if control is not None and control not in there:
        raise InputError("--control", f"one of {some_names(there) or 'none, as nothing is chosen'}", repr(control))
    return control


def _chosen(path: Path, where: str, annotation: Plain, control: str | None) -> Iterator[str]:
    for result in _dicts(path, where, annotation.get("result") or []):
        if result.get("type") != "choices" or control not in (None, result.get("from_name")):
            continue
        value = result.get("value")
        names = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(str(path), "a list of choices", f"something else in {where}")
        yield from (_text(path, where, name) for name in names)


def _prodigy(path: Path, text: str, item: str | None) -> Imported:
    found = Imported()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        task = _parsed(path, line, f" in {where}")
        if not isinstance(task, dict) or "answer" not in task:
            raise InputError(
                str(path), "Prodigy's JSON lines, a task with an answer each", f"something else in {where}"
            )
        answer = task["answer"]
        if answer not in ("accept", "reject", "ignore"):
            raise InputError(str(path), "an answer accept, reject or ignore", f"{answer!r} in {where}")
        names = _named(path, where, task)
        if answer == "ignore" or not names:
            found.skipped["ignored" if answer == "ignore" else "without a label"] += 1
            continue
        kind = "true_label" if answer == "accept" else "not_label"
        more = {"annotator": _who(task.get("_annotator_id") or task.get("_session_id")), "offered": _offered(task)}
        name, when = _item(path, where, task, [item] if item else ITEMS), _time(task.get("_timestamp"))
        found.labels += [Label(name, time=when, **more, **{kind: one}) for one in names]  # type: ignore[arg-type]
    return found


def _named(path: Path, where: str, task: Plain) -> list[str]:
    """The classes that a Prodigy answer is about: its label, or what is selected among options."""
    names = task.get("accept") if "options" in task or "accept" in task else [task.get("label")]
    if not isinstance(names, list):
        raise InputError(str(path), "a list of accepted options", f"something else in {where}")
    texts = [_text(path, where, str(name)) for name in names if isinstance(name, str | int) and name != ""]
    return list(dict.fromkeys(texts))


def _parsed(path: Path, text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), "JSON", f"{str(error) or 'something else'}{where}") from None


def _dicts(path: Path, where: str, values: Any) -> list[Plain]:
    if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
        raise InputError(str(path), "a list of annotations and of their results", f"something else in {where}")
    return values


def _item(path: Path, where: str, task: Plain, fields: Iterable[str]) -> str:
    """The name of an item; pictures that stand in the file themselves are no names."""
    for name in fields:
        value = task.get(name)
        if isinstance(value, str | int) and value != "" and not str(value).startswith("data:"):
            return _text(path, where, str(value))
    raise InputError("--item", "a field that names every item", f"none in {where}", f"fields: {some_names(list(task))}")


def _text(path: Path, where: str, text: str) -> str:
    """Text that can be written; blanks around it are no part of a name."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(str(path), "text", f"characters that are none in {where}")
    return text.strip()


def _who(value: Any) -> str:
    """An annotator by number or name."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value)


def _offered(data: Plain) -> tuple[str, ...]:
    """What was to choose from, if the task says it: names, or entries with one."""
    for name in OFFERED:
        if isinstance(values := data.get(name), list):
            named = [one.get("id", one.get("value")) if isinstance(one, dict) else one for one in values]
            if named and all(isinstance(one, str | int) for one in named):
                return tuple(map(str, named))
    return ()


def _time(value: Any) -> str:
    """Seconds since 1970, or a date as text; nothing if it is neither."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC).isoformat()
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    return ""
