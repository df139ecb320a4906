"""Messages to workers and back: units of runs, and their rows, as JSON that is checked on arrival."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from wcll._validation import is_number
from wcll.datasets import load_dataset
from wcll.datasets.load import data_stamp
from wcll.exceptions import InputError, short
from wcll.experiments.checkpoint import Checkpoints
from wcll.experiments.exchange import parse_rows, parse_table, row_text
from wcll.experiments.grouping import Job, Pace, now
from wcll.experiments.request import RunRequest
from wcll.experiments.row import Row, code, trial_of, versions
from wcll.experiments.worker import Tasks, available, run_jobs
from wcll.training import dtype_and_device, torch_threads

SAME = "a worker needs the versions, the code and the data of the one who asks it"
TELL = 0.5  #: seconds between two counts that a worker writes down: short units write none


@dataclass(frozen=True)
class Terms:
    """How units are trained, and what a worker must have for it."""

    device: str
    threads: int
    memory: int | None  #: bytes of a worker; None takes its share of what is free
    sharing: int  #: workers of one machine
    data: str | None  #: a folder
    stamps: dict[str, str | None]  #: of every data set
    made_with: dict[str, str]  #: versions, and the digest of the code
    store: str | None = None  #: beside which checkpoints are kept, where a worker has this very file
    inode: int | None = None  #: by which it knows the file
    deadline: float | None = None  #: seconds since 1970
    tally: str | None = None  #: a folder in which workers of this machine count epochs

    @staticmethod
    def of(request: RunRequest, jobs: Sequence[Job], sharing: int = 1, memory: int | None = None) -> Terms:
        """The terms of a request, as far as they are known before there is a store."""
        names = dict.fromkeys(job.first.dataset for job in jobs)
        return Terms(
            device=request.where.type,
            threads=request.threads,
            memory=memory,
            sharing=sharing,
            data=None if request.data is None else str(request.data.resolve()),
            stamps={name: data_stamp(name, request.data) for name in names},
            made_with=made_with(),
            deadline=None if request.pace.end == inf else time.time() + request.pace.end - now(),
        )

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
    """Train one unit on a worker; bad input comes back as an error that is written down.

    What there is no time for is not among the rows.
    """
    try:
        return f"[{','.join(map(row_text, _train(text)))}]"
    except InputError as error:
        return failed(error)


def failed(error: InputError) -> str:
    """An error as it travels."""
    return json.dumps({"error": [error.argument, error.expected, short(error.got), error.remedy]})


def rows_of(reply: str, jobs: Sequence[Job], *, partly: bool = False) -> list[Row]:
    """Return the rows that a worker has sent, of all runs of some jobs or of a part of them; or raise its error."""
    if reply.startswith("{"):
        raise _error_of(reply)
    rows = list(parse_rows(reply, "a worker's rows"))
    came, wanted = [row.key for row in rows], [key for job in jobs for key in job.keys]
    if len(set(came)) < len(came) or set(came) - set(wanted) or (len(came) < len(wanted) and not partly):
        raise InputError("a worker's rows", "those of its unit", "others")
    return rows


def counted(terms: Terms, jobs: Sequence[Job]) -> float:
    """Return the epochs of a unit that its worker has counted so far; 0 before it begins, or while it writes."""
    try:
        return float(_tally(terms, jobs).read_text() or 0)
    except (OSError, ValueError):
        return 0.0


def _tally(terms: Terms, jobs: Sequence[Job]) -> Path:
    return Path(terms.tally or "", jobs[0].first.key)


def _train(text: str) -> list[Row]:
    terms, jobs = _read(text)
    device = dtype_and_device("float32", terms.device)[1]
    terms.check_here(sorted({job.first.dataset for job in jobs}) or list(terms.stamps))
    if not jobs:
        return []
    memory = available(device) // terms.sharing if terms.memory is None else terms.memory
    tasks, count = _tasks(terms.data, json.dumps(terms.stamps)), _Count(_tally(terms, jobs))
    with torch_threads(terms.threads), _checkpoints(terms) as checkpoints:
        return run_jobs(
            [(job, tasks.of(job)) for job in jobs],
            device,
            count.add,
            within=count.write,
            memory=memory,
            checkpoints=checkpoints,
            pace=_pace(terms.deadline),
        )


class _Count:
    """Epochs of a unit that are done, in a file now and then."""

    def __init__(self, path: Path) -> None:
        self.path, self.done, self.told = path, 0, now()

    def add(self, more: int) -> None:
        """Count so many more."""
        self.done += more
        self.write()

    def write(self, part: float = 0.0) -> None:
        """Write down what is done, and the part of an epoch that is done besides."""
        if self.path.is_absolute() and now() - self.told >= TELL:
            with suppress(OSError):  # it is not there on another machine
                self.path.write_text(str(self.done + part))
            self.told = now()


@contextmanager
def _checkpoints(terms: Terms) -> Iterator[Checkpoints | None]:
    """Checkpoints next to the store, if this machine has it; else in a temporary folder, so as to end in time."""
    if terms.store is not None and _inode(Path(terms.store)) == terms.inode:
        yield Checkpoints.of_store(Path(terms.store))
        return
    if terms.deadline is None:
        yield None
        return
    with TemporaryDirectory(prefix="wcll-") as folder:
        yield Checkpoints(Path(folder))


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


@lru_cache(maxsize=1)
def _pace(deadline: float | None) -> Pace:
    """The time of a command, for all units of a worker: only the first of them may train an epoch when it is over."""
    return Pace() if deadline is None else Pace(now() + deadline - time.time())


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
    if not all(one is None or is_number(one) for one in (terms.inode, terms.deadline)):
        raise ValueError("a file or a moment that is none")
    texts = [terms.device, *terms.made_with.values()]
    texts += [one for one in (terms.data, terms.store, terms.tally, *terms.stamps.values()) if one is not None]
    if not all(isinstance(one, str) for one in texts):
        raise ValueError("a text that is none")


def _error_of(reply: str) -> InputError:
    """What a worker says is wrong."""
    try:
        argument, expected, got, remedy = map(str, parse_table(reply)["error"])
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        return InputError("a worker's reply", "rows, or an error in its four parts", f"{type(error).__name__}: {error}")
    return InputError(argument, expected, got, remedy)
