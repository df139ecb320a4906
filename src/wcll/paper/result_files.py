"""Result files: what is kept of a suite's runs, with the version of the suite and how they were made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from wcll._files import read_bytes, replacing
from wcll._validation import is_number
from wcll.exceptions import InputError
from wcll.paper.kept import Kept, fields_of, keep, metrics_of
from wcll.paper.part import CURVES, Part
from wcll.results import Row
from wcll.suites import Suite, Trial
from wcll.suites.suite import MOST_RUNS, Axis

MADE = ("device", "wcll", "torch", "numpy", "python", "commit")  #: what files say of their runs


def version(keys: Iterable[str]) -> str:
    """A hash of runs: another setting, grid, row, column or revision of a loss gives another."""
    return blake2b("".join(keys).encode(), digest_size=12).hexdigest()


def keys_of(suite: Suite, trials: int) -> list[str]:
    """The keys of all runs of a suite, each once."""
    return list(dict.fromkeys(trial.key for trial in suite.all_trials(range(trials))))


def make_part(suite: Suite, trials: int, rows: Sequence[Row], command: str) -> Part:
    """A part of the paper from the finished runs of its suite."""
    runs = {row.key: keep(row, metrics_of(suite), curves=CURVES.get(suite.name, 0)) for row in rows}
    return Part(suite, trials, runs, {"command": command, **made_of(rows)})


def made_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Where runs were made: every value that occurs, the training time, and the data."""
    made = {name: sorted({str(row.provenance.get(name, "")) for row in rows} - {""}) for name in MADE}
    data = {(row.config["dataset"], row.provenance["data"]["official"]) for row in rows}
    return {
        **{name: ", ".join(values) for name, values in made.items()},
        "seconds": round(sum(row.provenance["seconds"] for row in rows), 1),
        "data": [f"{name}{'' if official else ' (not the official file)'}" for name, official in sorted(data)],
    }


def grown(known: Part | None, suite: Suite, rows: Mapping[str, Row], command: str) -> Part | None:
    """What is known of a suite and what is new of it among ``rows``; ``known`` itself if nothing is."""
    runs = {} if known is None else dict(known.runs)
    wanted = keys_of(suite, suite.trials)
    new = [rows[key] for key in wanted if key in rows and key not in runs]
    if not new:
        return known
    runs |= {row.key: keep(row, metrics_of(suite), curves=CURVES.get(suite.name, 0)) for row in new}
    trials = 1 + max(trial.seed for trial in suite.all_trials() if trial.key in rows)
    made = {"command": command, **made_of(new)}
    if known is None:
        return Part(suite, trials, runs, made)
    return Part(suite, max(trials, known.trials), runs, _joined(known.made, made))


def _joined(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """How runs were made that were made in several parts."""
    texts = {name: ", ".join(sorted({*before[name].split(", "), *now[name].split(", ")} - {""})) for name in MADE}
    return {
        "command": now["command"],
        **texts,
        "seconds": round(before["seconds"] + now["seconds"], 1),
        "data": sorted({*before["data"], *now["data"]}),
    }


def write_part(part: Part, path: Path, *, partial: bool = False) -> None:
    """One run a line; all of them, unless a part will do."""
    name, keys = part.suite.name, keys_of(part.suite, part.trials)
    if (lacking := [key for key in keys if key not in part.runs]) and not partial:
        raise InputError("--results", f"all {len(keys)} runs of {name}", f"{len(lacking)} missing")
    keys = [key for key in keys if key in part.runs]
    fields = fields_of(metrics_of(part.suite), CURVES.get(name, 1))
    head = {"suite": name, "version": version(keys), "trials": part.trials, "made": part.made, "fields": fields}
    write_lines(path, head, "runs", [part.runs[key].to_list() for key in keys])


def write_lines(path: Path, head: Mapping[str, Any], name: str, lines: Iterable[Sequence[Any]]) -> None:
    """A JSON file whose last item is a list with one entry a line, so that versions of it can be compared.

    Results of more trials are not replaced.
    """
    trials = head["trials"]
    more = trials_of(path, read_file(path, head["suite"])) if path.exists() else 0
    if more > trials:
        expected = f"a file of at most {trials} trials to replace"
        raise InputError("--results", expected, f"{path} of {more}", "name another folder, or remove the file")
    entries = ",\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    text = f'{json.dumps(head, indent=1)[:-2]},\n "{name}": [\n{entries}\n]\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "--results") as draft:
        draft.write_text(text, encoding="utf-8")


def read_part(path: Path, suite: Suite, *, partial: bool = False) -> Part:
    """The results of a suite; runs of another version of it are refused, and so is a part of them unless it will do.

    Rows that were added to the suite since, of which there is no run at all, are named and left out.
    """
    plain = read_file(path, suite.name)
    with reading(path):
        trials, made = trials_of(path, plain), read_made(plain)
        runs = [Kept.from_list(run, metrics_of(suite)) for run in plain["runs"]]
    keys = [run.key for run in runs]
    known = set(keys)
    if partial:
        wanted = keys_of(suite, trials)
        check_version(path, suite.name, keys, plain, [key for key in wanted if key in known])
        return Part(suite, trials, dict(zip(keys, runs, strict=True)), made)
    new = [row for row in suite.rows if not any(trial.key in known for trial in _first_trials(suite, row))]
    there = replace(suite, rows=tuple(row for row in suite.rows if row not in new))
    check_version(path, suite.name, keys, plain, keys_of(there, trials))
    return Part(there, trials, dict(zip(keys, runs, strict=True)), made, lacking=tuple(row.title for row in new))


def _first_trials(suite: Suite, row: Axis) -> Iterator[Trial]:
    """Those of a row with the first seed."""
    for column in suite.columns:
        yield from suite.candidates(column, row, 0)


def trials_of(path: Path, plain: dict[str, Any]) -> int:
    """How many trials a file is of."""
    trials = plain.get("trials")
    if type(trials) is not int or not 1 <= trials <= MOST_RUNS:
        raise InputError(str(path), "a file that 'wcll paper' wrote", "a number of trials that is none")
    return trials


def read_made(plain: dict[str, Any]) -> dict[str, Any]:
    """How the runs of a file were made: text, but for the seconds and the list of data."""
    made = {name: plain["made"][name] for name in ("command", *MADE, "seconds", "data")}
    texts = [*(made[name] for name in ("command", *MADE)), *made["data"]]
    if not all(isinstance(text, str) for text in texts) or not isinstance(made["data"], list):
        raise ValueError("something else than text of how runs were made")
    if not is_number(made["seconds"]) or made["seconds"] < 0:
        raise ValueError("seconds that are no number")
    return made


def command_today(command: str) -> str:
    """Spell the command that made a result file as it is spelled now.

    >>> command_today("wcll paper table2 --trials 1"), command_today("wcll paper run images")
    ('wcll paper run table2 --trials 1', 'wcll paper run images')
    """
    return re.sub(r"^wcll paper (?!run )", "wcll paper run ", command)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of which file it is that something in it is missing or wrong."""
    try:
        yield
    except InputError:
        raise
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(str(path), "a file that 'wcll paper' wrote", f"{type(error).__name__}: {error}") from None


def read_file(path: Path, name: str) -> dict[str, Any]:
    """The JSON of a result file."""
    command = f"wcll paper run {name} --results {path.parent}"
    if not path.is_file():
        raise InputError(str(path), f"the results of {name}", "no such file", f"make it with: {command}")
    try:
        plain = json.loads(read_bytes(path).decode("utf-8"), parse_constant=_refuse)
    except InputError:
        raise
    except (RecursionError, ValueError) as error:
        raise InputError(str(path), "a file that 'wcll paper' wrote", str(error)) from None
    if not isinstance(plain, dict) or plain.get("suite") != name:
        raise InputError(str(path), f"the results of {name}", "those of something else", f"make them with: {command}")
    return plain


def _refuse(constant: str) -> None:
    """NaN and infinities are not JSON, whatever Python thinks."""
    raise ValueError(f"{constant}, which is no number")


def check_version(path: Path, name: str, keys: list[str] | None, plain: dict[str, Any], wanted: list[str]) -> None:
    """Fail unless the file's runs are those of the suite as it is now."""
    if plain.get("version") != version(wanted) or (keys is not None and keys != wanted):
        expected, again = f"runs of the suite {name} as it is now", f"wcll paper run {name} --results {path.parent}"
        raise InputError(str(path), expected, "those of another version", f"make them again with: {again}")
