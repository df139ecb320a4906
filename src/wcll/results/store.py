"""The store of finished runs: one SQLite file that one command at a time writes, and that survives ``kill -9``."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wcll.exceptions import InputError
from wcll.results.database import Database, is_damage, places_after
from wcll.results.packing import Packed, figures, pack, unpack
from wcll.results.where import SOUND, as_sql, column, parse

if TYPE_CHECKING:
    from wcll.results.row import Row

STORE = Path("wcll-results.sqlite")  #: where results are kept, unless said otherwise

#: Step i leads from schema i to schema i + 1; a new store takes them all. Steps are added, never changed.
#: The table of claims is empty or ignored: earlier versions used it to share a suite among several commands.
MIGRATIONS = (
    """
    CREATE TABLE runs (
        key TEXT PRIMARY KEY, config TEXT NOT NULL, metrics TEXT NOT NULL, history BLOB NOT NULL,
        provenance TEXT NOT NULL, finished REAL NOT NULL
    );
    CREATE TABLE claims (
        key TEXT PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
        started TEXT NOT NULL, heartbeat REAL NOT NULL
    );
    """,
)
WHOLE, FIGURES = "key, config, metrics, history, provenance", "key, config, metrics, provenance"
NAMED = 3  #: damaged runs that are named in one line


class Found(NamedTuple):
    """A finished run in the file."""

    place: int  #: the number of its line
    key: Any  #: text, unless it is damaged

    @property
    def raw_key(self) -> Any:
        """As SQLite has it: damaged text may be no UTF-8."""
        return self.key.encode(errors="surrogateescape") if isinstance(self.key, str) else self.key


class Store(Database):
    """Finished runs by key.

    A run that is damaged is left out by whoever reads; :meth:`damage` says which they were.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        if not create and not path.exists():
            raise InputError("--store", "a store of results", f"{path}, which does not exist", "run a suite first")
        super().__init__(path, MIGRATIONS, create=create)
        self._file = _identity(path)
        self._damaged: dict[Found, str] = {}  #: and what is wrong with them
        self._malformed, self._unreadable = False, set[int]()  #: the file, and places of runs that SQLite cannot read

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def rows(self, keys: Iterable[str] | None = None, where: Sequence[str] = ()) -> Iterator[Row]:
        """Finished runs, in the order of their keys' appearance, or all in the order in which they finished."""
        found = self._scan(WHOLE, where) if keys is None else self._look_up(WHOLE, keys)
        for place, *values in found:
            try:
                row = unpack(*values)
            except ValueError as error:
                self._damaged[Found(place, values[0])] = str(error)
            else:
                yield row

    def figures(self, where: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Settings, metrics and provenance of finished runs, in the order in which they finished."""
        return (line for _, line in self._figures(where))

    def table(self, columns: Sequence[str], where: Sequence[str] = ()) -> list[Sequence[Any]]:
        """Keys and some settings and metrics of runs, None where a run has none.

        SQLite takes them out, which is fast; if there is something odd about a run, all are read one by one.
        """
        condition, values = as_sql(where, damaged=False)
        wanted = ", ".join(["key", SOUND, *map(column, columns)])
        query = f"SELECT {wanted} FROM runs NOT INDEXED WHERE {condition} ORDER BY rowid"
        tolerant, self.connection.text_factory = self.connection.text_factory, str  # which is faster
        try:
            found = self.connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError:
            found = []  # whatever it is, reading one by one will tell
        finally:
            self.connection.text_factory = tolerant
        if found and all(line[1] and type(line[0]) is str for line in found):
            return [(line[0], *line[2:]) for line in found]
        return [[line.get(name) for name in ("key", *columns)] for line in self.figures(where)]

    def damage(self) -> str:
        """What was left out so far, and what to do, in one line; empty if nothing was."""
        said = []
        if count := len(self._damaged):
            named = "; ".join(f"{str(found.key)[:40]} ({why})" for found, why in list(self._damaged.items())[:NAMED])
            named += "; ..." if count > NAMED else ""
            remedy = f"wcll results remove --damaged --store {shlex.quote(str(self.path))}"
            runs = "1 damaged run is" if count == 1 else f"{count} damaged runs are"
            said.append(f"{self.path}: {runs} left out: {named}; to remove and run again: {remedy}")
        if self._malformed:
            lost = f"{len(self._unreadable)} runs cannot be read, and some may be missing"
            said.append(
                f"{self.path}: the file is damaged, {lost}: export the others, and import them into a new store"
            )
        return "; ".join(said)

    def data_seen(self, keys: Sequence[str]) -> dict[str, set[str]]:
        """For every data set that finished runs have used, the stamps of the files that they read."""
        seen: dict[str, set[str]] = {}
        for _, _, config, _, provenance in self._look_up(FIGURES, keys):
            try:
                name, stamp = json.loads(config)["dataset"], json.loads(provenance)["data"].get("stamp", "")
                seen.setdefault(str(name), set()).add(str(stamp))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                continue  # damaged: whoever reads the row says so
        return seen

    def finished(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` that are finished."""
        query = "SELECT 1 FROM runs WHERE key = ?"
        with self.saying():
            return {key for key in keys if self.connection.execute(query, (key,)).fetchone()}

    def count(self) -> int:
        """How many runs are finished, damaged or not."""
        with self.saying():
            return int(self.connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    def add(self, rows: Iterable[Row]) -> int:
        """Write finished runs, all or none; returns how many were new."""
        return self.put([pack(row) for row in rows])

    def put(self, packed: Sequence[Packed]) -> int:
        """The same for rows that are packed."""
        if _identity(self.path) != self._file:
            remedy = "what was not yet written is lost: run the same command again"
            raise InputError("--store", f"the file {self.path} to stay where it is", "another or none", remedy)
        with self.writing():
            before = self.connection.total_changes
            self.connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)", packed)
            return self.connection.total_changes - before

    def remove(self, runs: Sequence[Found] | None = None) -> int:
        """Remove finished runs, all or those that were found; returns how many there were."""
        with self.writing():
            before = self.connection.total_changes
            if runs is None:
                self.connection.execute("DELETE FROM runs WHERE 1")  # one by one, so that they are counted
            else:
                query = "DELETE FROM runs WHERE rowid = ? AND CAST(key AS BLOB) IS ?"
                self.connection.executemany(query, [(found.place, found.raw_key) for found in runs])
            return self.connection.total_changes - before

    def found(self, where: Sequence[str]) -> list[Found]:
        """The runs that have all the values asked for."""
        return [found for found, _ in self._figures(where)]

    def damaged(self) -> list[Found]:
        """The damaged runs; for this every run is read."""
        for _ in self.rows():
            pass
        return list(self._damaged)

    def _figures(self, where: Sequence[str]) -> Iterator[tuple[Found, dict[str, Any]]]:
        for place, *values in self._scan(FIGURES, where):
            found = Found(place, values[0])
            try:
                line = figures(*values)
            except ValueError as error:
                self._damaged[found] = str(error)
            else:
                yield found, line

    def _scan(self, columns: str, where: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Columns of runs after their place, in the order in which they finished, which is that of their places."""
        condition, values = as_sql(where)
        query, last = f"SELECT rowid, {columns} FROM runs NOT INDEXED WHERE {condition}", 0
        with self.saying():
            try:
                for found in self.connection.execute(f"{query} ORDER BY rowid", values):
                    last = found[0]
                    yield found
            except sqlite3.DatabaseError as error:
                places = places_after(last, self.connection) if is_damage(error) else []
                if not places:
                    raise
                self._malformed = True
                yield from self._one_by_one(places, query, values)
        if where and not last:
            self._check_names(where)

    def _one_by_one(self, places: Sequence[int], query: str, values: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """What SQLite can read of some runs in a damaged file."""
        for place in places:
            try:
                yield from self.connection.execute(f"{query} AND rowid = {place}", values).fetchall()
            except sqlite3.DatabaseError:
                self._unreadable.add(place)

    def _check_names(self, where: Sequence[str]) -> None:
        """Fail, for conditions that no run meets, if no run has even a figure of that name."""
        from wcll._validation import choice  # which loads numpy

        names = {name for line in self.figures() for name in line}
        for name, _ in parse(where):
            if names and name not in names:
                choice("--where", name, sorted(names))

    def _look_up(self, columns: str, keys: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Columns of the runs of some keys, after their place."""
        query = f"SELECT rowid, {columns} FROM runs WHERE key = ?"
        with self.saying():
            for key in keys:
                try:
                    found = self.connection.execute(query, (key,)).fetchall()
                except sqlite3.DatabaseError as error:
                    if not is_damage(error):
                        raise
                    found = [(0, key, *[None] * columns.count(","))]
                yield from found


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Hold the right to write to a store; the system takes it back when this process ends, even by ``kill -9``.

    Reading needs no such right. The empty file ``.lock`` stays: without it two commands might hold two locks.
    """
    from filelock import FileLock, Timeout

    real = Path(os.path.realpath(path))
    lock = FileLock(real.with_name(f"{real.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        remedy = "wait for it, or take another store and join both with 'wcll results export' and 'import'"
        raise InputError("--store", "a store that no other command is writing to", str(path), remedy) from None
    except (NotImplementedError, OSError) as error:
        raise InputError("--store", "a folder in which files can be locked", f"{real.parent} ({error})") from None
    try:
        yield
    finally:
        lock.release()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path names now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
