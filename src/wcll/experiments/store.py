"""The store of finished runs: one SQLite file, written by one process, that survives ``kill -9``."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wcll.exceptions import InputError

if TYPE_CHECKING:
    from wcll.experiments.row import Row


APPLICATION = 0x77636C6C  # "wcll": what SQLite's header says the file is
BUSY = 60.0  # seconds to wait for another process's write


class Database:
    """An open file of the newest schema; ``steps`` lead there."""

    def __init__(self, path: Path, steps: Sequence[str], *, create: bool) -> None:
        self.path, self._steps = path, steps
        with self.saying():
            self.connection = _connect(str(path.absolute()))
            try:
                self._open(create)
            except BaseException:
                self.connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction that has the right to write from its start."""
        with self.saying():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything that is read is of one moment: others may be writing."""
        with self.saying():
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def saying(self) -> Iterator[None]:
        """SQLite's errors in one line."""
        try:
            yield
        except sqlite3.ProgrammingError as error:  # of another thread, or closed
            raise InputError("store", "an open store of this thread", str(error)) from None
        except sqlite3.DatabaseError as error:
            text = str(error)
            if is_damage(error):
                remedy = "take what can be read with 'wcll results export', and import it into a new store"
                raise InputError("--store", "a whole file", f"{self.path} ({text})", remedy) from None
            if "not a database" in text or "no such" in text:
                raise self._no_store(f"which is not one ({text})") from None
            remedy = "free space, check the folder, and run the same command again"
            raise InputError("--store", "a file that can be written", f"{self.path} ({text})", remedy) from None

    def _no_store(self, what: str) -> InputError:
        return InputError("--store", "a store of results", f"{self.path}, {what}", "name another file")

    def _open(self, create: bool) -> None:
        try:
            version = self._version(create)
            self._write_ahead()
        except sqlite3.OperationalError as error:
            if create or not _cannot_write(error):
                raise
            self._open_to_read()
            version = self._version(create)
        if version < len(self._steps):
            self._migrate()

    def _open_to_read(self) -> None:
        """A disk or folder that cannot be written, or is full: SQLite cannot even keep its notes beside the file."""
        beside = self.path.with_name(f"{self.path.name}-wal")
        if beside.exists() and beside.stat().st_size:
            remedy = f"copy it, together with {beside.name}, to a folder that can be written"
            raise InputError("--store", "a folder that can be written", f"{self.path}, not wholly written", remedy)
        self.connection.close()
        self.connection = _connect(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)

    def _version(self, create: bool) -> int:
        """The file's schema; what cannot be used is left alone."""
        version, application, fresh = self._header()
        if application != APPLICATION and not (fresh and create):
            raise self._no_store("a database of something else")
        if version > len(self._steps):
            newest = f"a store of schema {len(self._steps)} or older"
            raise InputError("--store", newest, f"{self.path} of schema {version}", "update wcll")
        return version

    def _header(self) -> tuple[int, int, bool]:
        """Schema, kind and whether nothing is in the file, all of one moment: another process may be making it."""
        execute = self.connection.execute
        execute("BEGIN")
        try:
            version = execute("PRAGMA user_version").fetchone()[0]
            application = execute("PRAGMA application_id").fetchone()[0]
            return version, application, not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            if self.connection.in_transaction:  # an error may have ended it
                execute("ROLLBACK")

    def _write_ahead(self) -> None:
        """Switch to WAL; SQLite does not wait for others here, so this does."""
        deadline = time.monotonic() + BUSY
        while True:
            try:
                if self.connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _migrate(self) -> None:
        """Bring the schema up to date, in one transaction: another process may be doing the same."""
        with self.writing():
            version = self.connection.execute("PRAGMA user_version").fetchone()[0]
            for step in self._steps[version:]:
                for statement in filter(str.strip, step.split(";")):
                    self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {len(self._steps)}")
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether a part of the file is not as SQLite wrote it."""
    return "malformed" in str(error)


def places_after(place: int, connection: sqlite3.Connection) -> list[int]:
    """The runs behind a place that cannot be read: from the other end, and those that the index of keys knows."""
    places: set[int] = set()
    ways = ("NOT INDEXED", "NOT INDEXED ORDER BY rowid DESC", "ORDER BY key", "ORDER BY key DESC")
    for way in ways:
        with suppress(sqlite3.DatabaseError):
            for (found,) in connection.execute(f"SELECT rowid FROM runs {way}"):
                places.add(found)
    return sorted(found for found in places if found > place)


def _cannot_write(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite may have failed for its notes alone, which it keeps beside the file."""
    return any(text in str(error) for text in ("readonly", "unable to open", "disk I/O error", "disk is full"))


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=BUSY, isolation_level=None, uri=uri)
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")  # damaged text is seen later
    return connection


MOST = 2**28  #: bytes that a history may unpack to
PLAIN = {str, int, float, bool}  #: what a cell may be
#: What parts may lead to that no version of this package wrote.
STRANGE = (zlib.error, AttributeError, KeyError, OverflowError, RecursionError, TypeError)

Packed = tuple[str, str, str, bytes, str, float]  #: key, config, metrics, history, provenance and the time


def pack(row: Row) -> Packed:
    """A row as the columns of a store."""
    history = zlib.compress(json.dumps(row.history, separators=(",", ":")).encode(), 1)
    return row.key, json.dumps(row.config), json.dumps(row.metrics), history, json.dumps(row.provenance), time.time()


def unpack(key: Any, config: Any, metrics: Any, history: Any, provenance: Any) -> Row:
    """The whole row, every part of it checked."""
    from wcll.experiments.row import Row, check_row

    try:
        row = Row(key, *(_table(part) for part in (config, metrics, _unzipped(history), provenance)))
        check_row(row)
    except STRANGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return row


def figures(key: Any, config: Any, metrics: Any, provenance: Any) -> dict[str, Any]:
    """One line of figures: settings, metrics of the last epoch, where it was made; histories are not looked at."""
    try:
        settings, reached, made = _table(config), _table(metrics), _table(provenance)
    except STRANGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    made.pop("data", None)
    if not isinstance(key, str) or not PLAIN.issuperset(map(type, (*reached.values(), *made.values()))):
        raise ValueError("a figure that is neither text nor a number")
    for name, value in settings.items():
        if type(value) not in PLAIN:
            settings[name] = json.dumps(value)
    return {"key": key, **settings, **reached, **made}


def _table(text: Any) -> dict[str, Any]:
    """A table that was written as JSON, which is ASCII."""
    plain = json.loads(text) if isinstance(text, str) and text.isascii() else None
    if not isinstance(plain, dict):
        raise ValueError("a part of it is no table")
    return plain


def _unzipped(history: Any) -> str:
    if not isinstance(history, bytes):
        raise ValueError("its history is not packed")
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(history, MOST)
    if not unpacking.eof:
        raise ValueError("its history is cut short, or larger than any")
    return text.decode()


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
