"""A SQLite file that several processes may write, or that can only be read; its errors are one line."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from wcll.exceptions import InputError

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
