"""What travels to a worker and back: a unit of runs and their rows, as JSON that is checked where it arrives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial

from wcll.checks import InputError
from wcll.datasets import data_stamp, load_dataset
from wcll.errors import short
from wcll.results.border import trial_of
from wcll.results.exchange import parse_rows, parse_table, row_text
from wcll.results.provenance import code, versions
from wcll.results.row import Row
from wcll.running.execute import Tasks, run_jobs
from wcll.running.memory import available
from wcll.running.plan import Job
from wcll.training import dtype_and_device, torch_threads

SAME = "a worker needs the versions, the code and the data of the one who asks it"


@dataclass(frozen=True)
class Terms:
    """How units are trained, and what whoever trains them must have."""

    device: str
    threads: int
    memory: int | None  #: bytes of a worker; None takes its share of what is free
    sharing: int  #: workers of one machine
    data: str | None  #: a folder
    stamps: dict[str, str | None]  #: of every data set
    made_with: dict[str, str]  #: versions, and the digest of the code

    def text(self, jobs: Sequence[Job] = ()) -> str:
        """A unit as it travels; one without jobs asks whether a worker could begin."""
        groups = [[trial.config() for trial in job.trials] for job in jobs]
        return json.dumps({**asdict(self), "groups": groups}, separators=(",", ":"))

    def check_here(self, names: Sequence[str]) -> None:
        """Fail unless this process has the same versions, code and files of some data sets."""
        here = made_with()
        for name, wanted in self.made_with.items():
            if here.get(name) != wanted:
                raise InputError("worker", f"{name} {wanted}", here.get(name, "none"), SAME)
        for name in names:
            if (stamp := data_stamp(name, self.data)) != self.stamps[name]:
                got = "one that is not there" if stamp is None else "one with other files"
                raise InputError("worker", f"the data set {name!r} of the one who asks", got, SAME)


def made_with() -> dict[str, str]:
    """Versions, and the digest of the code, of this process."""
    return {**versions(), "code": code()}


def work(text: str) -> str:
    """Train one unit on a worker; what cannot be trained comes back as an error that is written down."""
    try:
        return f"[{','.join(map(row_text, _train(text)))}]"
    except InputError as error:
        return failed(error)


def failed(error: InputError) -> str:
    """An error as it travels."""
    return json.dumps({"error": [error.argument, error.expected, short(error.got), error.remedy]})


def rows_of(reply: str, jobs: Sequence[Job]) -> list[Row]:
    """The rows that a worker has sent of some jobs, all of them and no others; its error is raised."""
    if reply.startswith("{"):
        raise _error_of(reply)
    rows = list(parse_rows(reply, "a worker's rows"))
    if sorted(row.key for row in rows) != sorted(key for job in jobs for key in job.keys):
        raise InputError("a worker's rows", "those of its unit", "others")
    return rows


def _train(text: str) -> list[Row]:
    terms, jobs = _read(text)
    device = dtype_and_device("float32", terms.device)[1]
    terms.check_here(sorted({job.first.dataset for job in jobs}) or list(terms.stamps))
    memory = available(device) // terms.sharing if terms.memory is None else terms.memory
    tasks = _tasks(terms.data, json.dumps(terms.stamps))
    with torch_threads(terms.threads):
        return run_jobs([(job, tasks.of(job)) for job in jobs], device, memory=memory)


@lru_cache(maxsize=1)
def _tasks(data: str | None, stamps: str) -> Tasks:
    """Kept from unit to unit, as they share data, until files change."""
    return Tasks(partial(load_dataset, data=data))


def _read(text: str) -> tuple[Terms, list[Job]]:
    """A unit that has arrived, every part of it checked."""
    try:
        table = parse_table(text)
        groups = table.pop("groups")
        terms = Terms(**table)
        _check(terms)
        jobs = [Job(tuple(map(trial_of, group))) for group in groups]
        if not all(job.trials for job in jobs):
            raise ValueError("a group without runs")
        return terms, jobs
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError("unit", "one that 'wcll run' has sent", f"{type(error).__name__}: {error}", SAME) from None


def _check(terms: Terms) -> None:
    whole = [terms.threads, terms.sharing, *([] if terms.memory is None else [terms.memory])]
    if not all(type(number) is int and number > 0 for number in whole):
        raise ValueError("a number that is none")
    texts = [terms.device, *([] if terms.data is None else [terms.data]), *terms.made_with.values()]
    texts += [stamp for stamp in terms.stamps.values() if stamp is not None]
    if not all(isinstance(one, str) for one in texts):
        raise ValueError("a text that is none")


def _error_of(reply: str) -> InputError:
    """What a worker says is wrong."""
    try:
        argument, expected, got, remedy = map(str, parse_table(reply)["error"])
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        return InputError("a worker's reply", "rows, or an error in its four parts", f"{type(error).__name__}: {error}")
    return InputError(argument, expected, got, remedy)
